"""Compiled: the largest intensity along a ray that some bound certifies, in closed form (see surefoot.plan.rays)."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from surefoot.model.graph import FloatArray, IntArray

NOTHING = -1.0  #: no intensity at all
_SLIVER = 1e-13  # of the length of a ray: less is no direction


class RayEnds(NamedTuple):
    """Cost rows of rays at both ends, as one family of limits sees them. (n rows, a anchors, k limits)"""

    x: tuple[FloatArray, FloatArray]  # (n, dc)
    rho: tuple[FloatArray, FloatArray]  # (n, a)
    z: tuple[FloatArray, FloatArray]  # (n, dc)
    w: tuple[FloatArray, FloatArray]  # (n, dc)  Uᵀz
    known: tuple[FloatArray, FloatArray]  # (n, k)  ⟨m, x⟩ + Σ ρ c⁰


class RayBalls(NamedTuple):
    """The ellipsoids of one family, flat; (e ellipsoids, k limits)."""

    weights: FloatArray  # (shapes, …)
    shape: IntArray  # (e, k)
    centres: FloatArray  # (e, k, …)
    radii: FloatArray  # (e, k)
    norms: FloatArray  # (k,)
    errors: FloatArray  # (k,)
    guards: FloatArray  # (k,)
    prior_guards: FloatArray  # (k,)
    boxed: IntArray  # (k,)
    outer: FloatArray  # (k,)
    tolerances: FloatArray  # (a, k)
    lengths: FloatArray  # (a,)


@numba.njit(cache=True)
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
    for i in range(w0.shape[0]):  # about o, and what is left of w beside Δ
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


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def _pieces(v0: FloatArray, v1: FloatArray) -> FloatArray:
    """0, 1 and the α between at which some entry of v₀ + α(v₁ − v₀) changes its sign, rising."""
    found = [0.0, 1.0]
    for i in range(v0.shape[0]):
        if v0[i] * v1[i] < 0.0:
            alpha = v0[i] / (v0[i] - v1[i])
            if 0.0 < alpha < 1.0:
                found.append(alpha)
    return np.unique(np.array(found))


@numba.njit(cache=True)
def _length(v0: FloatArray, v1: FloatArray, alpha: float) -> float:
    square = 0.0
    for i in range(v0.shape[0]):
        v = (1.0 - alpha) * v0[i] + alpha * v1[i]
        square += v * v
    return float(np.sqrt(square))


@numba.njit(cache=True)
def _affine(ends: RayEnds, row: int, j: int, at: FloatArray, sign: float, flip: bool, balls: RayBalls) -> FloatArray:
    """sign·(known part) + all that is added to a bound whatever the data say, at some α; convex, so that the straight
    line between two α is above it. ``flip``: α counts from the other end."""
    zero, one = (1, 0) if flip else (0, 1)
    total = np.empty(at.shape[0])
    for k in range(at.shape[0]):
        alpha = at[k]
        size, length, blur = 0.0, 0.0, 0.0
        for i in range(balls.lengths.shape[0]):
            rho = abs((1.0 - alpha) * ends.rho[zero][row, i] + alpha * ends.rho[one][row, i])
            size += rho
            length += rho * balls.lengths[i]
            blur += rho * balls.tolerances[i, j]
        total[k] = sign * ((1.0 - alpha) * ends.known[zero][row, j] + alpha * ends.known[one][row, j])
        total[k] += balls.errors[j] * (1.0 + size) + blur
        # twice the guards: rounding in here is as large as in the bounds
        total[k] += 2.0 * balls.guards[j] * (_length(ends.z[zero][row], ends.z[one][row], alpha) + length)
        total[k] += 2.0 * balls.prior_guards[j] * _length(ends.x[zero][row], ends.x[one][row], alpha)
    return total


@numba.njit(cache=True)
def _by_limit(ends: RayEnds, row: int, j: int, limit: float, sign: float, flip: bool, balls: RayBalls) -> float:
    """The largest α at which some bound of limit j on sign·cost is at most ``limit``."""
    zero, one = (1, 0) if flip else (0, 1)
    w0, w1, z0, z1 = ends.w[zero][row], ends.w[one][row], ends.z[zero][row], ends.z[one][row]
    n, ones, none = balls.radii.shape[0], np.ones(w0.shape[0]), np.zeros(w0.shape[0])
    at = _pieces(ends.rho[zero][row], ends.rho[one][row])
    affine = _affine(ends, row, j, at, sign, flip, balls)
    best = NOTHING
    if balls.norms[j] < np.inf:
        best = max(best, largest(at, affine, limit, w0, w1, ones, none, balls.norms[j]))
    for k in range(n):
        if np.isnan(balls.radii[k, j]):
            return NOTHING  # no γ explains the data: a NaN certifies nothing, and refutes nothing
        if best == 1.0:
            continue
        weights, centre = balls.weights[balls.shape[k, j]], sign * balls.centres[k, j]
        best = max(best, largest(at, affine, limit, w0, w1, weights, centre, balls.radii[k, j]))
    if best < 1.0 and balls.boxed[j]:
        both = np.concatenate((ends.rho[zero][row], z0)), np.concatenate((ends.rho[one][row], z1))
        at = _pieces(both[0], both[1])
        affine = _affine(ends, row, j, at, sign, flip, balls)
        for k in range(at.shape[0]):
            for i in range(z0.shape[0]):
                affine[k] += abs((1.0 - at[k]) * z0[i] + at[k] * z1[i])
        best = max(best, largest(at, affine, limit, w0, w1, ones, none, 0.0))
    if best < 1.0 and balls.outer[j] < np.inf:
        x0, x1 = ends.x[zero][row], ends.x[one][row]  # as long as w: ``ones`` and ``none`` fit
        at = np.array([0.0, 1.0])
        affine = np.full(2, balls.errors[j])
        for k in range(2):
            affine[k] += 2.0 * balls.prior_guards[j] * _length(x0, x1, at[k])
        best = max(best, largest(at, affine, limit, x0, x1, ones, none, balls.outer[j]))
    return best


@numba.njit(cache=True)
def open_between(
    ends: RayEnds, limits: FloatArray, balls: RayBalls, certified: FloatArray, hopeful: FloatArray
) -> None:
    """Lowers (n,) the largest certified and hopeful α of each row to what one family's limits (k,) allow."""
    for row in range(certified.shape[0]):
        for j in range(limits.shape[0]):
            certified[row] = min(certified[row], _by_limit(ends, row, j, limits[j], 1.0, False, balls))
            refuted = _by_limit(ends, row, j, -limits[j], -1.0, True, balls)  # counted from the far end
            if refuted >= 0.0:
                hopeful[row] = min(hopeful[row], 1.0 - refuted)
