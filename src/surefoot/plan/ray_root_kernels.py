"""Compiled: the largest intensity at which one convex bound keeps a limit, in closed form (see surefoot.plan.rays)."""

from __future__ import annotations

import numpy as np

from surefoot.jit import leaf
from surefoot.model.arrays import FloatArray

NOTHING = -1.0  #: no intensity at all
_SLIVER = 1e-13  # of the length of a ray: anything shorter has no direction


@leaf
def largest(
    ends: FloatArray,  # (n,)  0 = ends[0] < … < ends[n-1] = 1
    affine: FloatArray,  # (n,)  the piecewise linear, convex part at these
    limit: float,
    w0: FloatArray,  # (d,)
    w1: FloatArray,
    weights: FloatArray,
    centre: FloatArray,
    radius: float,
) -> float:
    """The largest α in [0, 1] with affine + ⟨centre, w(α)⟩ + radius·√Σ weights w(α)² ≤ limit; NOTHING if there is none.

    w(α) = w₀ + α(w₁ − w₀).
    """
    last = ends.shape[0] - 1
    told0, told1, q, g, a0, a1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(w0.shape[0]):
        delta = w1[i] - w0[i]
        told0 += centre[i] * w0[i]
        told1 += centre[i] * w1[i]
        q += weights[i] * delta * delta
        g += weights[i] * w0[i] * delta
        a0 += weights[i] * w0[i] * w0[i]
        a1 += weights[i] * w1[i] * w1[i]
    if affine[last] + told1 + radius * np.sqrt(a1) <= limit:
        return 1.0
    if not radius >= 0.0 or radius == np.inf:
        return NOTHING
    slope = told1 - told0
    if q <= _SLIVER * _SLIVER * max(a0, a1):  # the norm does not change: a straight line
        q = 0.0
    o = 0.0 if q == 0.0 else min(1.0, max(0.0, -g / q))
    a, go, far = 0.0, 0.0, 0.0
    for i in range(w0.shape[0]):  # about o, and the part of w orthogonal to Δ
        delta = w1[i] - w0[i]
        w = w0[i] + o * delta
        a += weights[i] * w * w
        go += weights[i] * w * delta
    if q == 0.0:
        a, go = max(a0, a1), 0.0
    share = 0.0 if q == 0.0 else go / q
    for i in range(w0.shape[0]):
        delta = w1[i] - w0[i]
        beside = w0[i] + (o - share) * delta
        far += weights[i] * beside * beside
    told = told0 + o * slope
    r2 = radius * radius
    for piece in range(last, 0, -1):
        low, high = ends[piece - 1], ends[piece]
        rise = (affine[piece] - affine[piece - 1]) / (high - low)
        b = rise + slope
        t_o = limit - (affine[piece - 1] + rise * (o - low)) - told
        p = b * b - r2 * q
        middle = t_o * b + r2 * go
        square = -r2 * q * far
        for i in range(w0.shape[0]):  # ‖TΔ + B w_o‖²
            delta = w1[i] - w0[i]
            v = t_o * delta + b * (w0[i] + o * delta)
            square += weights[i] * v * v
        if q == 0.0:
            square = b * b * a
        found = np.nan
        if square >= 0.0:
            root = radius * np.sqrt(square)
            if middle > 0.0 and middle + root > 0.0:
                size = np.sqrt(a)
                found = o + (t_o - radius * size) * (t_o + radius * size) / (middle + root)
            elif p != 0.0:
                found = o + (middle - root) / p
        starts = _at(low, affine[piece - 1], limit, w0, w1, weights, centre, radius) <= 0.0
        if not starts:
            # it dips below the limit inside the piece, if at all: a root must be a root of this branch
            if not (found >= low and found <= high and t_o - b * (found - o) >= 0.0 and (p < 0.0 or b > 0.0)):
                continue
            return float(found)
        if np.isnan(found):  # rounding took the root at its end
            return float(low)
        return float(min(max(found, low), high))
    return NOTHING


@leaf
def _at(
    alpha: float,
    affine: float,
    limit: float,
    w0: FloatArray,
    w1: FloatArray,
    weights: FloatArray,
    centre: FloatArray,
    radius: float,
) -> float:
    """f(α) − limit."""
    told, square = 0.0, 0.0
    for i in range(w0.shape[0]):
        w = (1.0 - alpha) * w0[i] + alpha * w1[i]
        told += centre[i] * w
        square += weights[i] * w * w
    return float(affine + told + radius * np.sqrt(square) - limit)
