"""Compiled: the largest intensity along a ray that some bound certifies, of many rays (see surefoot.plan.rays)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefoot.jit import leaf
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.plan.ray_root_kernels import NOTHING, largest

NOBODY = -1  # no ellipsoid


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


class RayRoom(NamedTuple):
    """Room to work in, overwritten for every row. (n anchors, d directions, e ellipsoids)"""

    at: FloatArray  # (n + d + 2,)
    affine: FloatArray  # likewise
    ends: FloatArray  # (e, 2)  each bound at 1, and its slope there
    ones: FloatArray  # (d,)
    none: FloatArray  # (d,)


class RaySide(NamedTuple):
    """Some rays from one end to the other, as one family of limits bounds sign·cost along them. (n rows, k limits)"""

    zero: RayEnd
    one: RayEnd
    lengths: FloatArray  # (n, shapes)  Σ weights Δ²
    limits: FloatArray  # (k,)  of sign·cost
    sign: float
    balls: RayBalls  # for −cost, their centres are negated
    room: RayRoom


@leaf
def _cut(v0: FloatArray, v1: FloatArray, at: FloatArray, n: int) -> int:
    """Insert every α at which an entry of v₀ + α(v₁ − v₀) changes sign into the first n of ``at``, which are sorted and
    distinct. → the new n"""
    for i in range(v0.shape[0]):
        if v0[i] * v1[i] < 0.0:
            alpha = v0[i] / (v0[i] - v1[i])
            spot = n - 1
            while spot > 0 and at[spot] > alpha:
                spot -= 1
            if at[spot] < alpha < at[n - 1]:
                for k in range(n, spot + 1, -1):
                    at[k] = at[k - 1]
                at[spot + 1] = alpha
                n += 1
    return n


@leaf
def _length(v0: FloatArray, v1: FloatArray, alpha: float) -> float:
    square = 0.0
    for i in range(v0.shape[0]):
        v = (1.0 - alpha) * v0[i] + alpha * v1[i]
        square += v * v
    return float(np.sqrt(square))


@leaf
def _fill_affine(side: RaySide, row: int, j: int, pieces: int) -> None:
    """sign·(known part) plus everything that a bound adds whatever the data say, at some α. Convex, so a straight line
    between two α lies above it."""
    zero, one, balls, total = side.zero, side.one, side.balls, side.room.affine
    for k in range(pieces):
        alpha = side.room.at[k]
        size, length, blur = 0.0, 0.0, 0.0
        for i in range(balls.lengths.shape[0]):
            rho = abs((1.0 - alpha) * zero.rho[row, i] + alpha * one.rho[row, i])
            size += rho
            length += rho * balls.lengths[i]
            blur += rho * balls.tolerances[i, j]
        total[k] = side.sign * ((1.0 - alpha) * zero.known[row, j] + alpha * one.known[row, j])
        total[k] += balls.errors[j] * (1.0 + size) + blur
        # twice the guards: rounding in here is as large as in the bounds
        total[k] += 2.0 * balls.guards[j] * (_length(zero.z[row], one.z[row], alpha) + length)
        if balls.prior_guards[j] > 0.0:
            total[k] += 2.0 * balls.prior_guards[j] * _length(zero.x[row], one.x[row], alpha)


@leaf
def _glance(side: RaySide, row: int, j: int, k: int, alpha: float, pieces: int) -> tuple[float, float, float]:
    """f(α) of ellipsoid k, its slope to the right, and a bound on rounding: from inner products, so digits are lost."""
    zero, one, balls, at, affine = side.zero, side.one, side.balls, side.room.at, side.room.affine
    piece = 1
    while piece < pieces - 1 and at[piece] <= alpha:
        piece += 1
    rise = (affine[piece] - affine[piece - 1]) / (at[piece] - at[piece - 1])
    shape, radius, m = balls.shape[k, j], balls.radii[k, j], balls.radii.shape[1]
    told0, told1 = side.sign * zero.told[row, k * m + j], side.sign * one.told[row, k * m + j]
    square0, square1, between = zero.square[row, shape], one.square[row, shape], side.lengths[row, shape]
    across = 0.5 * (square1 - square0 - between)  # ⟨w₀, Δ⟩
    length = np.sqrt(max(0.0, square0 + alpha * (2.0 * across + alpha * between)))
    turn = 0.0 if length == 0.0 else (across + alpha * between) / length
    value = affine[piece - 1] + rise * (alpha - at[piece - 1]) + (1.0 - alpha) * told0 + alpha * told1
    scale = abs(affine[0]) + abs(affine[pieces - 1]) + abs(told0) + abs(told1)
    scale += radius * np.sqrt(max(square0, square1))
    return value + radius * length, rise + told1 - told0 + radius * turn, 1e-7 * scale


@leaf
def _above(first: float, rise: float, last: float, fall: float, length: float, limit: float) -> bool:
    """Is a convex function surely above the limit throughout, by its values and slopes at both ends? Its tangents lie
    below it and are lowest where they meet."""
    if not (first > limit and last > limit):
        return False
    if rise >= 0.0 or fall <= 0.0:
        return True
    return bool(first + rise * (last - fall * length - first) / (rise - fall) > limit)


@leaf
def _lay(side: RaySide, row: int, j: int) -> int:
    """Compute the affine part of a row's bounds. → at how many α, 0 and 1 included"""
    at = side.room.at
    at[0], at[1] = 0.0, 1.0
    pieces = _cut(side.zero.rho[row], side.one.rho[row], at, 2)
    _fill_affine(side, row, j, pieces)
    return pieces


@leaf
def _beyond(side: RaySide, row: int, j: int, pieces: int, best: float) -> float:
    """The largest α above ``best`` at which some bound keeps limit j; ``best`` without one. The affine part must have
    been computed.

    An ellipsoid is solved only if a quick test says that it may go beyond the best so far.
    """
    zero, one, balls, room, limit = side.zero, side.one, side.balls, side.room, side.limits[j]
    w0, w1, z0, z1 = zero.w[row], one.w[row], zero.z[row], one.z[row]
    n = balls.radii.shape[0]
    at, affine = room.at[:pieces], room.affine[:pieces]
    first, least = 0, np.inf
    for k in range(n):
        value, slope, near = _glance(side, row, j, k, 1.0, pieces)
        if value <= limit - near:
            return 1.0
        room.ends[k, 0], room.ends[k, 1] = value, slope
        if value < least:
            first, least = k, value
    for turn in range(n + 1):
        k = first if turn == 0 else turn - 1
        if turn > 0 and k == first:
            continue
        begin = max(best, 0.0)
        value, slope, near = _glance(side, row, j, k, begin, pieces)
        if _above(value, slope, room.ends[k, 0], room.ends[k, 1], 1.0 - begin, limit + near):
            continue
        weights, radius = balls.weights[balls.shape[k, j]], balls.radii[k, j]
        best = max(best, largest(at, affine, limit, w0, w1, weights, balls.centres[k, j], radius))
        if best == 1.0:
            return best
    if best < 1.0 and balls.boxed[j]:
        pieces = _cut(z0, z1, room.at, pieces)
        _fill_affine(side, row, j, pieces)
        at, affine = room.at[:pieces], room.affine[:pieces]
        for k in range(pieces):
            for i in range(z0.shape[0]):
                affine[k] += abs((1.0 - at[k]) * z0[i] + at[k] * z1[i])
        best = max(best, largest(at, affine, limit, w0, w1, room.ones, room.none, 0.0))
    if best < 1.0 and balls.outer[j] < np.inf:
        x0, x1 = zero.x[row], one.x[row]  # as long as w
        room.at[1] = 1.0
        at, affine = room.at[:2], room.affine[:2]
        for k in range(2):
            affine[k] = balls.errors[j] + 2.0 * balls.prior_guards[j] * _length(x0, x1, at[k])
        best = max(best, largest(at, affine, limit, x0, x1, room.ones, room.none, balls.outer[j]))
    return best


def room_for(zero: RayEnd, balls: RayBalls) -> RayRoom:
    e, d = balls.radii.shape[0], zero.w.shape[1]
    most = zero.rho.shape[1] + d + 2
    return RayRoom(np.empty(most), np.empty(most), np.empty((e, 2)), np.ones(d), np.zeros(d))


class RayRows(NamedTuple):
    """The cost rows of each of n rays; a row may belong to several."""

    row: IntArray
    begin: IntArray  # (n + 1,)  where those of a ray begin, one after the other


@leaf
def _keeper(side: RaySide, row: int, j: int, alpha: float, pieces: int, first: int) -> int:
    """An ellipsoid that certainly keeps the limit at α, searched from ``first`` on; NOBODY without one."""
    n = side.balls.radii.shape[0]
    for i in range(n):
        k = int((first + i) % n)
        value, _, near = _glance(side, row, j, k, alpha, pieces)
        if value <= side.limits[j] - near:  # not for a NaN
            return k
    return NOBODY


@leaf
def _worst(side: RaySide, rows: IntArray, j: int) -> tuple[int, int]:
    """(place of the row that costs most at 1, by the ellipsoid that bounds the first row best; that ellipsoid)."""
    k, least = 0, np.inf
    place, most = 0, -np.inf
    for i in range(rows.shape[0]):
        pieces = _lay(side, rows[i], j)
        if i == 0:
            for other in range(side.balls.radii.shape[0]):
                value, _, _ = _glance(side, rows[i], j, other, 1.0, pieces)
                if value < least:
                    k, least = other, value
        value, _, _ = _glance(side, rows[i], j, k, 1.0, pieces)
        if value > most:
            place, most = i, value
    return place, k


@leaf
def fill_certified(side: RaySide, rays: RayRows, out: FloatArray) -> None:
    """The largest α, from ``zero`` to ``one``, at which every row of a ray keeps every limit by some bound; NOTHING
    without one.

    That is the least over its rows. A quick test shows if some ellipsoid keeps a row at the least so far, which then
    stays. So the row that seems to cost most comes first, and few others are solved.
    """
    for ray in range(out.shape[0]):
        rows, least = rays.row[rays.begin[ray] : rays.begin[ray + 1]], 1.0
        for j in range(side.limits.shape[0]):
            worst, k = _worst(side, rows, j)
            for i in range(-1, rows.shape[0]):
                row = rows[worst if i < 0 else i]
                if least < 0.0 or i == worst:
                    continue
                pieces = _lay(side, row, j)
                keeper = _keeper(side, row, j, least, pieces, k)
                if keeper != NOBODY:
                    k = keeper
                    continue
                least = min(least, _beyond(side, row, j, pieces, NOTHING))
        out[ray] = least


@leaf
def fill_refuted(side: RaySide, rays: RayRows, out: FloatArray) -> None:
    """The largest α, from ``zero`` to ``one``, at which some row of a ray is at some limit or beyond it by some lower
    bound; NOTHING without one."""
    for ray in range(out.shape[0]):
        most = NOTHING
        for row in rays.row[rays.begin[ray] : rays.begin[ray + 1]]:
            for j in range(side.limits.shape[0]):
                if most < 1.0:
                    most = _beyond(side, row, j, _lay(side, row, j), most)
        out[ray] = most
