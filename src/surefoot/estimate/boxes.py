"""Compiled: the largest ⟨γ, z⟩ over an ellipsoid cut by the box of a prior, |γ_i| ≤ 1 (spec 3).

Write z = v + (z − v). The box bounds the first part and the ellipsoid the second, so for **every** v

    ⟨γ, z⟩ ≤ ‖v‖₁ + ⟨centre, z − v⟩ + radius √((z − v)ᵀ W (z − v)),        W = U diag(weights) Uᵀ

and the least of these is exactly the largest cost over the intersection (the support function of an intersection is the
infimal convolution of the two). In one coordinate t = v_i the least has a closed form: under the root is
rest + W_ii (t − t₀)², and where the slope of |t| is ±1

    t = t₀ + k √(rest / W_ii) / √(radius² W_ii − k²),    k = centre_i ∓ 1,    if it has that sign; else t = 0.

``ROUNDS`` rounds over the coordinates come within a few per cent of the least. A coordinate along which the ellipsoid
stays inside the box is skipped.
"""

from __future__ import annotations

import math

from surefoot.jit import leaf
from surefoot.model.arrays import FloatArray

ROUNDS = 2
FAR = 8.0  #: no v_i exceeds this multiple of ‖z‖₁: beyond it digits are lost for nothing


@leaf
def cut_by_box(
    z: FloatArray,  # (size,)
    side: float,  # 1: the largest ⟨γ, z⟩; −1: that of −γ
    basis: FloatArray,  # (size·size,)  U, of the block that z is in
    weights: FloatArray,  # (size,)
    diagonal: FloatArray,  # (size,)  W_ii
    centre: FloatArray,  # (size,)  in the eigenbasis
    middle: FloatArray,  # (size,)  U·centre
    radius: float,
    guard: float,  # per ‖v‖₁
    v: FloatArray,  # room to work in, (size or more,) each
    y: FloatArray,  # Uᵀ(z − v)
) -> float:
    """The bound above for a v that is nearly best; v and y are written."""
    size, length = z.shape[0], 0.0
    for p in range(size):
        y[p] = 0.0
        v[p] = 0.0
        length += abs(z[p])
    for i in range(size):
        for p in range(size):
            y[p] += basis[i * size + p] * z[i]
    for _ in range(ROUNDS):
        for i in range(size):
            own, g = diagonal[i], side * middle[i]
            most = radius * radius * own
            if not own > 0.0 or not abs(g) + math.sqrt(most) > 1.0:
                continue
            slope, rest, t = 0.0, 0.0, 0.0
            for p in range(size):
                slope += basis[i * size + p] * weights[p] * y[p]
            for p in range(size):  # not a difference of squares, which would lose half of the digits
                beside = y[p] - slope / own * basis[i * size + p]
                rest += weights[p] * beside * beside
            for sign in (1.0, -1.0):
                k = g - sign
                if k * k < most:
                    found = v[i] + slope / own + k * math.sqrt(rest / own) / math.sqrt(most - k * k)
                    if found * sign > 0.0:
                        t = sign * min(abs(found), FAR * length)
            step = t - v[i]
            if step != 0.0:
                v[i] = t
                for p in range(size):
                    y[p] -= step * basis[i * size + p]
    return _evaluated(z, side, basis, weights, centre, radius, guard, v, y)


@leaf
def _evaluated(
    z: FloatArray,
    side: float,
    basis: FloatArray,
    weights: FloatArray,
    centre: FloatArray,
    radius: float,
    guard: float,
    v: FloatArray,
    y: FloatArray,
) -> float:
    """The bound for this v, computed from v alone, so that rounding in the updates does not matter."""
    size, taken, told, square = z.shape[0], 0.0, 0.0, 0.0
    for p in range(size):
        y[p] = 0.0
        taken += abs(v[p])
    for i in range(size):
        left = z[i] - v[i]
        for p in range(size):
            y[p] += basis[i * size + p] * left
    for p in range(size):
        told += centre[p] * y[p]
        square += weights[p] * y[p] * y[p]
    return taken + guard * taken + side * told + radius * math.sqrt(square)
