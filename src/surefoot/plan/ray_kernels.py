"""Compiled: the largest intensity along a ray that some bound certifies, in closed form (see surefoot.plan.rays)."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from surefoot.model.graph import FloatArray, IntArray

NOTHING = -1.0  #: no intensity at all
_SLIVER = 1e-13  # of the length of a ray: less is no direction


class RayEnd(NamedTuple):
    """One end of some cost rows, as one family of limits sees it. (n rows, a anchors, k limits, e ellipsoids)"""

    x: FloatArray  # (n, dc)
    rho: FloatArray  # (n, a)
    z: FloatArray  # (n, dc)
    w: FloatArray  # (n, dc)  Uᵀz
    known: FloatArray  # (n, k)  ⟨m, x⟩ + Σ ρ c⁰
    told: FloatArray  # (n, e·k)  ⟨centre, w⟩
    square: FloatArray  # (n, shapes)  Σ weights w²


class RayBalls(NamedTuple):
    """The ellipsoids of one family, the ball of the norm first; (e of them, k limits)."""

    weights: FloatArray  # (shapes, …)
    shape: IntArray  # (e, k)
    centres: FloatArray  # (e, k, …)
    radii: FloatArray  # (e, k)
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
    crossings = 0
    for i in range(v0.shape[0]):
        crossings += v0[i] * v1[i] < 0.0
    if crossings == 0:
        return np.array([0.0, 1.0])
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
def _affine(zero: RayEnd, one: RayEnd, row: int, j: int, at: FloatArray, sign: float, balls: RayBalls) -> FloatArray:
    """sign·(known part) + all that is added to a bound whatever the data say, at some α; convex, so that the straight
    line between two α is above it."""
    total = np.empty(at.shape[0])
    for k in range(at.shape[0]):
        alpha = at[k]
        size, length, blur = 0.0, 0.0, 0.0
        for i in range(balls.lengths.shape[0]):
            rho = abs((1.0 - alpha) * zero.rho[row, i] + alpha * one.rho[row, i])
            size += rho
            length += rho * balls.lengths[i]
            blur += rho * balls.tolerances[i, j]
        total[k] = sign * ((1.0 - alpha) * zero.known[row, j] + alpha * one.known[row, j])
        total[k] += balls.errors[j] * (1.0 + size) + blur
        # twice the guards: rounding in here is as large as in the bounds
        total[k] += 2.0 * balls.guards[j] * (_length(zero.z[row], one.z[row], alpha) + length)
        total[k] += 2.0 * balls.prior_guards[j] * _length(zero.x[row], one.x[row], alpha)
    return total


@numba.njit(cache=True)
def _glance(
    alpha: float, at: FloatArray, affine: FloatArray, told: FloatArray, squares: FloatArray, radius: float
) -> tuple[float, float, float]:
    """f(α), its slope to the right, and how far rounding may reach: from inner products, so digits may be lost.

    ``told`` (2,) at both ends; ``squares`` (3,): ‖w‖² at both ends, and ‖Δ‖².
    """
    piece = 1
    while piece < at.shape[0] - 1 and at[piece] <= alpha:
        piece += 1
    rise = (affine[piece] - affine[piece - 1]) / (at[piece] - at[piece - 1])
    across = 0.5 * (squares[1] - squares[0] - squares[2])  # ⟨w₀, Δ⟩
    length = np.sqrt(max(0.0, squares[0] + alpha * (2.0 * across + alpha * squares[2])))
    turn = 0.0 if length == 0.0 else (across + alpha * squares[2]) / length
    value = affine[piece - 1] + rise * (alpha - at[piece - 1]) + (1.0 - alpha) * told[0] + alpha * told[1]
    scale = abs(affine[0]) + abs(affine[-1]) + abs(told[0]) + abs(told[1])
    scale += radius * np.sqrt(max(squares[0], squares[1]))
    return value + radius * length, rise + told[1] - told[0] + radius * turn, 1e-7 * scale


@numba.njit(cache=True)
def _by_limit(
    zero: RayEnd, one: RayEnd, lengths: FloatArray, row: int, j: int, limit: float, sign: float, balls: RayBalls
) -> float:
    """The largest α at which some bound of limit j on sign·cost is at most ``limit``.

    An ellipsoid is solved only if a glance says that it may reach beyond the best so far: where its bound is above the
    limit there, and rises, it stays above, being convex.
    """
    w0, w1, z0, z1 = zero.w[row], one.w[row], zero.z[row], one.z[row]
    n, m = balls.radii.shape
    at = _pieces(zero.rho[row], one.rho[row])
    affine = _affine(zero, one, row, j, at, sign, balls)
    told, squares, first, least = np.empty((n, 2)), np.empty((n, 3)), 0, np.inf
    for k in range(n):
        if np.isnan(balls.radii[k, j]):
            return NOTHING  # no γ explains the data: a NaN certifies nothing, and refutes nothing
        shape = balls.shape[k, j]
        told[k, 0], told[k, 1] = sign * zero.told[row, k * m + j], sign * one.told[row, k * m + j]
        squares[k, 0], squares[k, 1] = zero.square[row, shape], one.square[row, shape]
        squares[k, 2] = lengths[row, shape]
        value, _, near = _glance(1.0, at, affine, told[k], squares[k], balls.radii[k, j])
        if value <= limit - near:
            return 1.0
        if value < least:
            first, least = k, value
    best = NOTHING
    for turn in range(n + 1):
        k = first if turn == 0 else turn - 1
        if turn > 0 and k == first:
            continue
        value, slope, near = _glance(max(best, 0.0), at, affine, told[k], squares[k], balls.radii[k, j])
        if value > limit + near and slope >= 0.0:
            continue
        centre = sign * balls.centres[k, j]
        weights, radius = balls.weights[balls.shape[k, j]], balls.radii[k, j]
        best = max(best, largest(at, affine, limit, w0, w1, weights, centre, radius))
        if best == 1.0:
            return best
    ones, none = np.ones(w0.shape[0]), np.zeros(w0.shape[0])
    if best < 1.0 and balls.boxed[j]:
        both = np.concatenate((zero.rho[row], z0)), np.concatenate((one.rho[row], z1))
        at = _pieces(both[0], both[1])
        affine = _affine(zero, one, row, j, at, sign, balls)
        for k in range(at.shape[0]):
            for i in range(z0.shape[0]):
                affine[k] += abs((1.0 - at[k]) * z0[i] + at[k] * z1[i])
        best = max(best, largest(at, affine, limit, w0, w1, ones, none, 0.0))
    if best < 1.0 and balls.outer[j] < np.inf:
        x0, x1 = zero.x[row], one.x[row]  # as long as w: ``ones`` and ``none`` fit
        at = np.array([0.0, 1.0])
        affine = np.full(2, balls.errors[j])
        for k in range(2):
            affine[k] += 2.0 * balls.prior_guards[j] * _length(x0, x1, at[k])
        best = max(best, largest(at, affine, limit, x0, x1, ones, none, balls.outer[j]))
    return best


@numba.njit(cache=True)
def furthest(
    zero: RayEnd,
    one: RayEnd,
    lengths: FloatArray,  # (n, shapes)  Σ weights Δ²
    limits: FloatArray,  # (k,)
    sign: float,
    balls: RayBalls,
    out: FloatArray,  # (n, k)
) -> None:
    """Fills the largest α, from ``zero`` to ``one``, at which some bound on sign·cost is at most sign·limit."""
    for row in range(out.shape[0]):
        for j in range(limits.shape[0]):
            out[row, j] = _by_limit(zero, one, lengths, row, j, sign * limits[j], sign, balls)
