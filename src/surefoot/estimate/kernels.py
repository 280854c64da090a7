"""Compiled: the bounds of many rows.

Dense rows are computed ``LANES`` at a time, their features laid out column by column, so that one instruction works on
several rows. No sum runs across rows and none is reordered, so a row's result depends neither on the rows beside it,
nor on threads, nor on which part of a table is computed. (BLAS is as fast, but its last digits depend on the shape of
the whole.) A sparse row is laid out and turned inside its own block; in a block without data every direction has
eigenvalue zero, whose weight comes last. Features stored in float32 become float64 first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefoot.estimate.basis import NO_DATA, Lens
from surefoot.estimate.boxes import cut_by_box
from surefoot.estimate.prefetch import prefetch
from surefoot.estimate.tables import Rows, number
from surefoot.estimate.update import NOWHERE, along, cost_row
from surefoot.jit import compiled, fused, leaf, unlocked
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.features import FeatureArray, Features
from surefoot.model.sparse_rows import SparseRows

LANES = 128  # rows side by side
ROOM = LANES + 8  # numbers from one column to the next: not a power of two, or columns compete for cache lines
NEAR = 128  # bytes: shorter rows the processor reads ahead by itself
WORTH_THREADS = 1 << 19  # numbers read: with fewer, waking threads takes longer than the work
_PER_ENTRY = 8  # a sparse entry is as much work as so many dense ones


class Seen(NamedTuple):
    """Up to LANES rows through a lens, column by column; the room is reused. (n anchors, k weights, c centres)"""

    z: FloatArray  # (largest block, …)  inside its block
    w: FloatArray  # (largest block, …)  Uᵀz, and then its squares
    rho: FloatArray  # (n, …)
    u: FloatArray  # (k, …)  √Σ_i w_i² weights_i
    told: FloatArray  # (c, …)  ⟨centre, w⟩
    block: IntArray  # (…,)  NOWHERE for a row of zeros


@compiled
def room_to_see(look: Lens, weights: int, centres: int) -> Seen:
    z, w, rho = np.zeros((look.room, ROOM)), np.zeros((look.room, ROOM)), np.zeros((look.frames.anchors.shape[1], ROOM))
    return Seen(z, w, rho, np.zeros((weights, ROOM)), np.zeros((centres, ROOM)), np.zeros(LANES, np.int64))


@fused
def product(a: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """out = a·x of a (m, d) and LANES columns x (d, …), each sum from the first term to the last.

    Four by four numbers of a stay in registers while all columns pass.
    """
    m, d = a.shape
    fours, by_four = m - m % 4, d - d % 4
    for p in range(m):
        for i in range(LANES):
            out[p, i] = 0.0
    for p in range(0, fours, 4):
        for n in range(0, by_four, 4):
            a00, a01, a02, a03 = a[p, n], a[p, n + 1], a[p, n + 2], a[p, n + 3]
            a10, a11, a12, a13 = a[p + 1, n], a[p + 1, n + 1], a[p + 1, n + 2], a[p + 1, n + 3]
            a20, a21, a22, a23 = a[p + 2, n], a[p + 2, n + 1], a[p + 2, n + 2], a[p + 2, n + 3]
            a30, a31, a32, a33 = a[p + 3, n], a[p + 3, n + 1], a[p + 3, n + 2], a[p + 3, n + 3]
            for i in range(LANES):
                x0, x1, x2, x3 = x[n, i], x[n + 1, i], x[n + 2, i], x[n + 3, i]
                out[p, i] = out[p, i] + a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
                out[p + 1, i] = out[p + 1, i] + a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
                out[p + 2, i] = out[p + 2, i] + a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
                out[p + 3, i] = out[p + 3, i] + a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3
    for p in range(fours, m):
        for n in range(0, by_four, 4):
            a0, a1, a2, a3 = a[p, n], a[p, n + 1], a[p, n + 2], a[p, n + 3]
            for i in range(LANES):
                out[p, i] = out[p, i] + a0 * x[n, i] + a1 * x[n + 1, i] + a2 * x[n + 2, i] + a3 * x[n + 3, i]
    for p in range(m):
        for n in range(by_four, d):
            for i in range(LANES):
                out[p, i] += a[p, n] * x[n, i]


@leaf
def _squared(x: FloatArray) -> None:
    for p in range(x.shape[0]):
        for i in range(LANES):
            x[p, i] = x[p, i] * x[p, i]


@leaf
def rooted(x: FloatArray) -> None:
    for p in range(x.shape[0]):
        for i in range(LANES):
            x[p, i] = np.sqrt(x[p, i])


@leaf
def in_columns(x: FeatureArray, rows: IntArray, z: FloatArray) -> None:
    """Some rows of a dense table, column by column; zeros where there are fewer than LANES."""
    n, apart = rows.shape[0], x.shape[1] * x.itemsize > NEAR
    for i in range(n):
        row = rows[i]
        if apart:
            prefetch(x, row)
        for k in range(x.shape[1]):
            z[k, i] = x[row, k]
    for k in range(x.shape[1]):
        for i in range(n, LANES):
            z[k, i] = 0.0


@leaf
def _beside(look: Lens, z: FloatArray, rho: FloatArray) -> None:
    """x becomes z = δ∘x − X⁰ᵀρ, for a lens that is not folded."""
    anchors, _, widths = look.frames
    for k in range(z.shape[0]):
        for i in range(LANES):
            z[k, i] *= widths[0, k]
    for a in range(rho.shape[0]):
        for k in range(z.shape[0]):
            for i in range(LANES):
                z[k, i] -= rho[a, i] * anchors[0, a, k]


@leaf
def turn_dense(turn: FloatArray, weights: FloatArray, centres: FloatArray, seen: Seen) -> None:
    """Of dense rows: Uᵀz and its squares, told, and u²."""
    z, w, _, u, told, _ = seen
    product(turn, z, w)
    product(centres, w, told)
    _squared(w)
    product(weights, w, u)


@leaf
def see_dense(x: Rows, rows: IntArray, look: Lens, weights: FloatArray, centres: FloatArray, seen: Seen) -> None:
    """Up to LANES rows of a dense table of costs, through a lens; u is not rooted yet."""
    frames, folded, turn = look[:3]
    z, _, rho, _, _, _ = seen
    if x.narrow.size:
        in_columns(x.narrow, rows, z)
    else:
        in_columns(x.values, rows, z)
    product(frames.directions[0], z, rho)
    if not folded:
        _beside(look, z, rho)
    turn_dense(turn, weights, centres, seen)


@compiled
def turn_row(
    z: FloatArray,
    b: int,
    look: Lens,
    weights: FloatArray,
    centres: FloatArray,
    w: FloatArray,
    i: int,
    seen: Seen,
) -> None:
    """Column i of u and told, from a row z in block b."""
    none = weights.shape[1] - 1
    size, spot = 0, NO_DATA
    if b != NOWHERE:
        size, spot = look.shape.size[b], look.spot[b - look.block[1]]
    seen.u[:, i] = 0.0
    seen.told[:, i] = 0.0
    if spot == NO_DATA:
        for k in range(weights.shape[0]):
            for n in range(size):
                seen.u[k, i] += z[n] * z[n] * weights[k, none]
            seen.u[k, i] = np.sqrt(seen.u[k, i])
        return
    basis = look.flat[look.entry[b - look.block[1]] :]
    w[:size] = 0.0
    for n in range(size):
        if z[n] != 0.0:  # most of a row is zero in a large block
            for p in range(size):
                w[p] += basis[n * size + p] * z[n]
    for k in range(weights.shape[0]):
        for p in range(size):
            seen.u[k, i] += w[p] * w[p] * weights[k, spot + p]
        seen.u[k, i] = np.sqrt(seen.u[k, i])
    for c in range(centres.shape[0]):
        for p in range(size):
            seen.told[c, i] += centres[c, spot + p] * w[p]


@compiled
def _see(x: Rows, rows: IntArray, look: Lens, weights: FloatArray, centres: FloatArray, seen: Seen) -> None:
    """Up to LANES rows of a table of costs, through a lens."""
    if x.indptr.size == 0:
        see_dense(x, rows, look, weights, centres, seen)
        rooted(seen.u)
        seen.block[:] = look.block[1]
        return
    frames, shape, room = look.frames, look.shape, look.room
    z, w, own = np.empty(room), np.empty(room), np.empty(frames.anchors.shape[1])
    for i in range(rows.shape[0]):
        b = cost_row(x, rows[i], look.block[0], 0, frames, shape, z, own)
        seen.rho[:, i], seen.z[:, i], seen.block[i] = own, z, b
        turn_row(z, b, look, weights, centres, w, i, seen)


class Balls(NamedTuple):
    """n ellipsoids for each of m limits, a anchors, as :func:`bound` takes them."""

    weights: FloatArray  # (1 + w + 2m, …)  ones, then those of the ellipsoids, then of those with counts
    shape: IntArray  # (n, m)  the row of weights of each
    centres: FloatArray  # (n·m + m·(1 + v), …)  likewise
    radii: FloatArray  # (n, m)
    norms: FloatArray  # (m,)
    errors: FloatArray  # (m,)
    guards: FloatArray  # (m,)  per ‖δ∘x‖
    boxed: BoolArray  # (m,)  |γ′_i| ≤ 1 too
    diagonals: FloatArray  # (1 + w, …)  of U diag(weights) Uᵀ; these two only where some limit is boxed
    middles: FloatArray  # (n·m, …)  U·centre
    prior_centres: FloatArray  # (m, dc)  of γ; (0, dc) where all are zero and no norm stands beside a prior
    outer: FloatArray  # (m,)  |⟨γ, x⟩| ≤ outer·‖x‖ too
    prior_guards: FloatArray  # (m,)  per ‖x‖
    anchor_costs: FloatArray  # (a, m)
    tolerances: FloatArray  # (a, m)
    anchor_lengths: FloatArray  # (a,)
    counted: BoolArray  # (m,)  these three as in surefoot.estimate.ellipsoids.Counted
    factors: FloatArray  # (m, 3)
    amounts: FloatArray  # (m, v)


@compiled
def _in_the_box(rows: int, j: int, seen: Seen, look: Lens, balls: Balls, top: FloatArray, low: FloatArray) -> None:
    """Bound limit j by the box too: alone, and with every ellipsoid (surefoot.estimate.boxes)."""
    (n, m), shape = balls.radii.shape, look.shape
    v, y = np.empty(look.room), np.empty(look.room)
    for i in range(rows):
        b = seen.block[i]
        if b == NOWHERE:
            continue
        size = shape.size[b]
        z = np.ascontiguousarray(seen.z[:size, i])
        whole = np.abs(z).sum()
        top[i], low[i] = np.minimum(top[i], whole), np.maximum(low[i], -whole)
        spot = look.spot[b - look.block[1]]
        if spot == NO_DATA:  # there an ellipsoid is a ball around 0
            continue
        basis = look.flat[look.entry[b - look.block[1]] :]
        own = slice(spot, spot + size)
        for k in range(n):
            c, shaped, radius = k * m + j, balls.shape[k, j], balls.radii[k, j]
            weights, diagonal = balls.weights[shaped, own], balls.diagonals[shaped, own]
            centre, middle = balls.centres[c, own], balls.middles[c, own]
            most = cut_by_box(z, 1.0, basis, weights, diagonal, centre, middle, radius, balls.guards[j], v, y)
            least = -cut_by_box(z, -1.0, basis, weights, diagonal, centre, middle, radius, balls.guards[j], v, y)
            top[i], low[i] = np.minimum(top[i], most), np.maximum(low[i], least)


@compiled
def _with_counts(j: int, seen: Seen, balls: Balls, top: FloatArray, low: FloatArray) -> None:
    """Bound limit j by the ellipsoid of the noise alone too, which model errors move row by row."""
    (m, v), k = balls.amounts.shape, balls.radii.size + j * (1 + balls.amounts.shape[1])
    first, (radius, rest, guard) = seen.u.shape[0] - 2 * (m - j), balls.factors[j]
    for i in range(LANES):
        off = radius * seen.u[first, i] + rest * seen.u[first + 1, i] + guard * seen.u[0, i]
        for e in range(v):
            off += balls.amounts[j, e] * abs(seen.told[k + 1 + e, i])
        top[i], low[i] = np.minimum(top[i], seen.told[k, i] + off), np.maximum(low[i], seen.told[k, i] - off)


@compiled
def _add_prior(x: Rows, row: int, balls: Balls, upper: FloatArray, lower: FloatArray) -> None:
    """Add ⟨m_j, x⟩ to the bounds of a row, and use norms that were declared beside priors."""
    square = 0.0
    if x.indptr.size == 0:
        for i in range(balls.prior_centres.shape[1]):
            square += number(x, row, i) * number(x, row, i)
    else:
        for k in range(x.indptr[row], x.indptr[row + 1]):
            square += x.values[k, 0] * x.values[k, 0]
    length = np.sqrt(square)
    for j in range(upper.shape[1]):
        middle, off = along(x, row, balls.prior_centres, j), balls.prior_guards[j] * length
        upper[row, j] += middle + off
        lower[row, j] += middle - off
        if balls.outer[j] < np.inf:  # a NaN stays a NaN
            most = balls.outer[j] * length + balls.errors[j] + off
            upper[row, j] = np.minimum(upper[row, j], most)
            lower[row, j] = np.maximum(lower[row, j], -most)


@leaf
def _ellipsoids(j: int, balls: Balls, u: FloatArray, told: FloatArray, top: FloatArray, low: FloatArray) -> None:
    """min( L‖z‖ , min_k told_k + radius_k u_k ) of limit j, and what bounds it from below."""
    norm, radii, (n, m) = balls.norms[j], balls.radii, balls.radii.shape
    for i in range(LANES):
        top[i] = norm * u[0, i] if norm < np.inf else np.inf
        low[i] = -top[i]
    for k in range(n):
        radius, c, w = radii[k, j], k * m + j, balls.shape[k, j]
        for i in range(LANES):
            # np.minimum and np.maximum pass a NaN on, and a NaN certifies nothing
            top[i] = np.minimum(top[i], told[c, i] + radius * u[w, i])
            low[i] = np.maximum(low[i], told[c, i] - radius * u[w, i])


@leaf
def _beside_them(j: int, balls: Balls, rho: FloatArray, u: FloatArray, known: FloatArray, off: FloatArray) -> None:
    """⟨ρ, c⁰_j⟩ of limit j, and what errors and rounding add to every bound."""
    error, guard = balls.errors[j], balls.guards[j]
    for i in range(LANES):
        length, size, blur = 0.0, 0.0, 0.0
        known[i] = 0.0
        for a in range(rho.shape[0]):
            known[i] += rho[a, i] * balls.anchor_costs[a, j]
            size += abs(rho[a, i])
            length += abs(rho[a, i]) * balls.anchor_lengths[a]
            blur += abs(rho[a, i]) * balls.tolerances[a, j]
        off[i] = error * (1.0 + size) + blur + guard * (u[0, i] + length)


@unlocked
def bound(x: Rows, rows: IntArray, look: Lens, balls: Balls, upper: FloatArray, lower: FloatArray) -> None:
    """Fills upper and lower (…, m) of some rows: eq:estimatesafetyvalue, as surefoot.estimate.costs has it.

    upper_j = ⟨m_j, x⟩ + ⟨ρ, c⁰_j⟩ + min( L_j‖z‖ , min_k told_kj + radius_kj u_kj , box ) + ζ_j (1 + Σ|ρ|) + Σ|ρ| t_j
              + guard_j ‖x‖, and no more than outer_j ‖x‖ + ζ_j; lower_j likewise.
    """
    n, m = rows.shape[0], balls.norms.shape[0]
    seen = room_to_see(look, balls.weights.shape[0], balls.centres.shape[0])
    top, low, rho = np.empty(LANES), np.empty(LANES), seen.rho
    known, off = np.empty(LANES), np.empty(LANES)
    for first in range(0, n, LANES):
        own = rows[first : min(n, first + LANES)]
        _see(x, own, look, balls.weights, balls.centres, seen)
        for j in range(m):
            _ellipsoids(j, balls, seen.u, seen.told, top, low)
            if balls.counted[j]:
                _with_counts(j, seen, balls, top, low)
            if balls.boxed[j]:
                _in_the_box(own.shape[0], j, seen, look, balls, top, low)
            _beside_them(j, balls, rho, seen.u, known, off)
            for i in range(own.shape[0]):
                upper[own[i], j] = known[i] + top[i] + off[i]
                lower[own[i], j] = known[i] + low[i] - off[i]
        if balls.prior_centres.shape[0]:
            for i in range(own.shape[0]):
                _add_prior(x, own[i], balls, upper, lower)


@unlocked
def length(x: Rows, begin: int, end: int, look: Lens, weights: FloatArray, out: FloatArray) -> None:
    """Fills √Σ_i w_i² weights_i, w = Uᵀz, of the rows begin … end-1; weights (1, …)."""
    seen, none = room_to_see(look, 1, 0), np.empty((0, weights.shape[1]))
    for first in range(begin, end, LANES):
        own = np.arange(first, min(end, first + LANES))
        _see(x, own, look, weights, none, seen)
        for i in range(own.shape[0]):
            out[first + i] = seen.u[0, i]


def worth_threads(x: Features, rows: int) -> bool:
    """Is reading so many rows of a table worth waking threads?"""
    per_entry = _PER_ENTRY if isinstance(x, SparseRows) else 1
    return enough(per_entry * x.size * rows // max(1, len(x)))


def enough(numbers: int) -> bool:
    """Is reading so many numbers worth it?"""
    return numbers >= WORTH_THREADS
