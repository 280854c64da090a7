"""Compiled: bounds and expected values of many rows, chunk by chunk.

A chunk of dense rows is turned into the eigenbasis by one matrix product, done by BLAS, and stays in the cache while a
few more passes go over it; all ellipsoids come out of the same turned rows. A sparse row is laid out inside its own
block and turned there; in a block without data every direction is an eigenvector of eigenvalue zero, whose weight
stands last. Chunks are cut by the shape of the features alone and write to their own places: the result does not depend
on the number of threads. BLAS itself is held to one thread (surefoot.threads). Features that are stored in float32
become float64 chunk by chunk, in the cache: the result is that of the same numbers stored in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from surefoot.estimate.bank import NO_DATA, Lens
from surefoot.estimate.blocks import BlockShape
from surefoot.estimate.boxes import cut_by_box
from surefoot.estimate.update import NOWHERE, Frames, Rows, along, cost_row, rows_of, value_row
from surefoot.model.features import Features
from surefoot.model.graph import BoolArray, FloatArray, IntArray
from surefoot.model.sparse_rows import SparseRows
from surefoot.threads import serial_and_parallel, usable_threads

CHUNK = 8064  # numbers in a chunk of dense rows: two fit the second cache; not a power of two, see _rows_per_chunk
SPARSE_ROWS = 512  # rows in a chunk of sparse ones
WORTH_THREADS = 1 << 19  # numbers read: waking threads up takes longer than less work than this
_PER_ENTRY = 8  # a stored entry is as much work as so many of a dense row


class Seen(NamedTuple):
    """A chunk of rows through a lens. (n anchors, k weights, c centres)"""

    rho: FloatArray  # (n, rows)
    u: FloatArray  # (k, rows)  √Σ_i w_i² weights_i,  w = Uᵀz
    told: FloatArray  # (c, rows)  ⟨centre, w⟩
    z: FloatArray  # (rows, largest block)  inside its block; only where a lens is not folded
    block: IntArray  # (rows,)  likewise; NOWHERE for a row of zeros


@numba.njit(cache=True)
def _rows_per_chunk(d: int) -> int:
    """Few wide rows or many narrow ones; never a power of two, where columns would compete for the same cache lines."""
    return max(56, CHUNK // d)


@numba.njit(cache=True)
def chunk_of(x: Rows) -> int:
    return _rows_per_chunk(x.values.shape[1]) if x.indptr.size == 0 else SPARSE_ROWS


def chunk_size(x: Features) -> int:
    """Rows of a table, or pairs of its step, that are computed together."""
    return int(chunk_of(rows_of(x[:1])))


def cut(numbers: IntArray, x: Features, first: int = 0) -> IntArray:
    """Where numbers of rows or pairs (rising) are cut into chunks: at multiples of a chunk, counted over all of them.

    So who else is in a chunk does not depend on what is asked for elsewhere, and a part of a step, which begins at
    ``first``, is cut where the whole is: the same bits, to the last digit, whoever computes them.
    """
    if not len(numbers):
        return np.zeros(1, np.int64)
    step = chunk_size(x)
    low, high = (int(numbers[0]) + first) // step, (int(numbers[-1]) + first) // step
    inside = np.searchsorted(numbers, np.arange(low + 1, high + 1) * step - first)
    return np.unique(np.concatenate([[0], inside, [len(numbers)]]))


@numba.njit(cache=True)
def _turn_dense(x: FloatArray, turn: FloatArray, weights: FloatArray, centres: FloatArray, seen: Seen) -> None:
    """Of dense rows (rows, d): u and told, all at once."""
    w = np.dot(x, turn)
    if centres.shape[0]:
        seen.told[:] = np.dot(centres, w.T)
    flat = w.reshape(-1)
    for i in range(flat.size):
        flat[i] = flat[i] * flat[i]
    seen.u[:] = np.sqrt(np.dot(weights, w.T))


@numba.njit(cache=True)
def _turn_row(
    z: FloatArray,
    b: int,
    look: Lens,
    shape: BlockShape,
    weights: FloatArray,
    centres: FloatArray,
    w: FloatArray,
    i: int,
    seen: Seen,
) -> None:
    """Of a row z that lies in block b: column i of u and told."""
    none = weights.shape[1] - 1
    size, spot = 0, NO_DATA
    if b != NOWHERE:
        size, spot = shape.size[b], look.spot[b - look.block[1]]
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
        if z[n] != 0.0:  # in a large block most of a row is zero
            for p in range(size):
                w[p] += basis[n * size + p] * z[n]
    for k in range(weights.shape[0]):
        for p in range(size):
            seen.u[k, i] += w[p] * w[p] * weights[k, spot + p]
        seen.u[k, i] = np.sqrt(seen.u[k, i])
    for c in range(centres.shape[0]):
        for p in range(size):
            seen.told[c, i] += centres[c, spot + p] * w[p]


@numba.njit(cache=True)
def dense_rows(x: Rows, rows: IntArray) -> FloatArray:
    """Some rows (rising) of a dense table, in float64; no copy where they follow each other and are in float64."""
    n = rows.shape[0]
    if rows[n - 1] - rows[0] == n - 1:
        return np.asarray(x.values[rows[0] : rows[0] + n], np.float64)
    part = np.empty((n, x.values.shape[1]))
    for i in range(n):
        part[i] = x.values[rows[i]]
    return part


@numba.njit(cache=True)
def beside(part: FloatArray, look: Lens, rho: FloatArray) -> FloatArray:
    """z (rows, d) of dense rows, and their ρ (n, rows), where a lens is not folded."""
    z: FloatArray = part * look.widths[0]
    for a in range(rho.shape[0]):
        rho[a] = np.dot(part, look.directions[0, a])
        for i in range(z.shape[0]):
            for k in range(z.shape[1]):
                z[i, k] -= rho[a, i] * look.anchors[0, a, k]
    return z


@numba.njit(cache=True)
def turned_rows(part: FloatArray, look: Lens) -> FloatArray:
    """(rows, d) Uᵀz of dense rows."""
    if look.folded:
        turned: FloatArray = np.dot(part, look.turn)
    else:
        turned = np.dot(beside(part, look, np.empty((look.anchors.shape[1], part.shape[0]))), look.turn)
    return turned


@numba.njit(cache=True)
def _see(
    x: Rows, rows: IntArray, look: Lens, shape: BlockShape, room: int, weights: FloatArray, centres: FloatArray
) -> Seen:
    """Rows (rising) of a table of costs, through a lens."""
    n, anchors, kept = rows.shape[0], look.anchors.shape[1], 0 if look.folded else rows.shape[0]
    rho, u, told = np.empty((anchors, n)), np.empty((weights.shape[0], n)), np.empty((centres.shape[0], n))
    seen = Seen(rho, u, told, np.zeros((kept, room)), np.full(kept, look.block[1]))
    if x.indptr.size == 0:
        part = dense_rows(x, rows)
        if look.folded:
            seen.rho[0] = np.dot(part, look.directions[0, 0])
            _turn_dense(part, look.turn, weights, centres, seen)
            return seen
        seen.z[:] = beside(part, look, seen.rho)
        _turn_dense(seen.z, look.turn, weights, centres, seen)
        return seen
    z, w, own = np.empty(room), np.empty(room), np.empty(anchors)
    frames = Frames(look.anchors, look.directions, look.widths)
    for i in range(n):
        b = cost_row(x, rows[i], look.block[0], 0, frames, shape, z, own)
        seen.rho[:, i] = own
        if kept:
            seen.block[i] = b
            if b != NOWHERE:
                seen.z[i, : shape.size[b]] = z[: shape.size[b]]
        _turn_row(z, b, look, shape, weights, centres, w, i, seen)
    return seen


class Balls(NamedTuple):
    """n ellipsoids for each of m limits, a anchors, as :func:`bounds` takes them."""

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


@numba.njit(cache=True)
def _in_the_box(
    j: int, seen: Seen, look: Lens, shape: BlockShape, balls: Balls, top: FloatArray, low: FloatArray
) -> None:
    """The box joins the bounds of limit j: alone, and with every ellipsoid (surefoot.estimate.boxes)."""
    (n, m), room = balls.radii.shape, seen.z.shape[1]
    v, y = np.empty(room), np.empty(room)
    for i in range(top.shape[0]):
        whole = np.abs(seen.z[i]).sum()
        top[i], low[i] = np.minimum(top[i], whole), np.maximum(low[i], -whole)
        b = seen.block[i]
        spot = NO_DATA if b == NOWHERE else look.spot[b - look.block[1]]
        if spot == NO_DATA:  # there an ellipsoid is a ball around 0
            continue
        size, basis = shape.size[b], look.flat[look.entry[b - look.block[1]] :]
        own = slice(spot, spot + size)
        for k in range(n):
            c, shaped, radius = k * m + j, balls.shape[k, j], balls.radii[k, j]
            weights, diagonal = balls.weights[shaped, own], balls.diagonals[shaped, own]
            centre, middle, z = balls.centres[c, own], balls.middles[c, own], seen.z[i, :size]
            most = cut_by_box(z, 1.0, basis, weights, diagonal, centre, middle, radius, balls.guards[j], v, y)
            least = -cut_by_box(z, -1.0, basis, weights, diagonal, centre, middle, radius, balls.guards[j], v, y)
            top[i], low[i] = np.minimum(top[i], most), np.maximum(low[i], least)


@numba.njit(cache=True)
def _with_counts(j: int, seen: Seen, balls: Balls, top: FloatArray, low: FloatArray) -> None:
    """The ellipsoid of the noise alone joins the bounds of limit j, moved by model errors row by row of the data."""
    (m, v), k = balls.amounts.shape, balls.radii.size + j * (1 + balls.amounts.shape[1])
    first, (radius, rest, guard) = seen.u.shape[0] - 2 * (m - j), balls.factors[j]
    for i in range(top.shape[0]):
        off = radius * seen.u[first, i] + rest * seen.u[first + 1, i] + guard * seen.u[0, i]
        for e in range(v):
            off += balls.amounts[j, e] * abs(seen.told[k + 1 + e, i])
        top[i], low[i] = np.minimum(top[i], seen.told[k, i] + off), np.maximum(low[i], seen.told[k, i] - off)


@numba.njit(cache=True)
def _add_prior(x: Rows, row: int, balls: Balls, upper: FloatArray, lower: FloatArray) -> None:
    """⟨m_j, x⟩ joins the bounds of a row, and norms that were declared beside priors."""
    square = 0.0
    if x.indptr.size == 0:
        for i in range(x.values.shape[1]):
            square += np.float64(x.values[row, i]) * np.float64(x.values[row, i])
    else:
        for k in range(x.indptr[row], x.indptr[row + 1]):
            square += x.values[k, 0] * x.values[k, 0]
    length = np.sqrt(square)
    for j in range(upper.shape[1]):
        middle, off = along(x, row, balls.prior_centres, j), balls.prior_guards[j] * length
        upper[row, j] += middle + off
        lower[row, j] += middle - off
        if balls.outer[j] < np.inf:  # of a NaN a NaN is left
            most = balls.outer[j] * length + balls.errors[j] + off
            upper[row, j] = np.minimum(upper[row, j], most)
            lower[row, j] = np.maximum(lower[row, j], -most)


def _bounds(
    x: Rows,
    rows: IntArray,
    look: Lens,
    shape: BlockShape,
    room: int,
    balls: Balls,
    upper: FloatArray,
    lower: FloatArray,
) -> None:
    """Fills upper and lower (…, m) of some rows: eq:estimatesafetyvalue, as surefoot.estimate.costs has it.

    upper_j = ⟨m_j, x⟩ + ⟨ρ, c⁰_j⟩ + min( L_j‖z‖ , min_k told_kj + radius_kj u_kj , box ) + ζ_j (1 + Σ|ρ|) + Σ|ρ| t_j
              + guard_j ‖x‖, and no more than outer_j ‖x‖ + ζ_j; lower_j likewise.
    """
    step = chunk_of(x)
    for chunk in numba.prange((rows.shape[0] + step - 1) // step):
        own = rows[chunk * step : min(rows.shape[0], (chunk + 1) * step)]
        seen = _see(x, own, look, shape, room, balls.weights, balls.centres)
        rho, u, told = seen.rho, seen.u, seen.told
        norms, radii = balls.norms, balls.radii
        n, m = radii.shape
        for j in range(m):
            top = norms[j] * u[0] if norms[j] < np.inf else np.full(own.shape[0], np.inf)
            low = -top
            for k in range(n):
                radius, predicted, width = radii[k, j], told[k * m + j], u[balls.shape[k, j]]
                for i in range(own.shape[0]):
                    # np.minimum and np.maximum pass a NaN on, and a NaN certifies nothing
                    top[i] = np.minimum(top[i], predicted[i] + radius * width[i])
                    low[i] = np.maximum(low[i], predicted[i] - radius * width[i])
            if balls.counted[j]:
                _with_counts(j, seen, balls, top, low)
            if balls.boxed[j]:
                _in_the_box(j, seen, look, shape, balls, top, low)
            error, guard = balls.errors[j], balls.guards[j]
            for i in range(own.shape[0]):
                known, size, length, blur = 0.0, 0.0, 0.0, 0.0
                for a in range(rho.shape[0]):
                    known += rho[a, i] * balls.anchor_costs[a, j]
                    size += abs(rho[a, i])
                    length += abs(rho[a, i]) * balls.anchor_lengths[a]
                    blur += abs(rho[a, i]) * balls.tolerances[a, j]
                off = error * (1.0 + size) + blur + guard * (u[0, i] + length)
                upper[own[i], j] = known + top[i] + off
                lower[own[i], j] = known + low[i] - off
        if balls.prior_centres.shape[0]:
            for i in range(own.shape[0]):
                _add_prior(x, own[i], balls, upper, lower)


def _lengths(x: Rows, look: Lens, shape: BlockShape, room: int, weights: FloatArray, out: FloatArray) -> None:
    """Fills √Σ_i w_i² weights_i, w = Uᵀz, of every row."""
    step, none = chunk_of(x), np.empty((0, weights.shape[1]))
    for chunk in numba.prange((out.shape[0] + step - 1) // step):
        own = np.arange(chunk * step, min(out.shape[0], (chunk + 1) * step))
        out[own[0] : own[-1] + 1] = _see(x, own, look, shape, room, weights, none).u[0]


class Ahead(NamedTuple):
    """What may follow the pairs of one step, and what it is worth."""

    following: IntArray  # (E,)
    pair_ptr: IntArray  # (N+1,)
    value: FloatArray  # (S',)


def _expectations(
    x: Rows,
    ahead: Ahead,
    wanted: IntArray,  # (n,)  pairs, rising
    cuts: IntArray,  # between them, by :func:`cut`
    look: Lens,
    shape: BlockShape,
    room: int,
    weights: FloatArray,  # (1, …)  1/(e + λ₂)
    centres: FloatArray,  # (1, …)  Uᵀθ̂
    radius: float,
    clip: bool,
    out: FloatArray,  # (N,)
) -> None:
    """Fills ⟨θ̂, φ_V⟩ + radius ‖φ_V‖_{A⁻¹} of the wanted pairs (eq:optqvalue); ``clip``: to V on each pair's support."""
    zero: Any = np.int64(0)  # a plain 0 would have value_row compiled once more, for this number
    for chunk in numba.prange(cuts.shape[0] - 1):
        own = wanted[cuts[chunk] : cuts[chunk + 1]]
        n, dense = own.shape[0], x.indptr.size == 0
        seen = Seen(np.empty((0, n)), np.empty((1, n)), np.empty((1, n)), np.empty((0, 0)), np.empty(0, np.int64))
        phi_v, w = np.empty((n if dense else 1, room)), np.empty(room)
        for i in range(n):
            first, end = ahead.pair_ptr[own[i]], ahead.pair_ptr[own[i] + 1]
            row = phi_v[i if dense else 0]
            b = value_row(x, zero, ahead.following, zero, first, end, ahead.value, zero, look.block[0], shape, row)
            if not dense:
                _turn_row(row, b, look, shape, weights, centres, w, i, seen)
        if dense:
            _turn_dense(phi_v, look.turn, weights, centres, seen)
        for i in range(n):
            out[own[i]] = seen.told[0, i] + radius * seen.u[0, i]
            if not clip:
                continue
            low, high = np.inf, -np.inf
            for edge in range(ahead.pair_ptr[own[i]], ahead.pair_ptr[own[i] + 1]):
                v = ahead.value[ahead.following[edge]]
                low, high = min(low, v), max(high, v)
            out[own[i]] = min(max(out[own[i]], low), high)


# Each for one thread and for several: picked by :func:`worth_threads`.
bounds = serial_and_parallel(_bounds)
lengths = serial_and_parallel(_lengths)
expectations = serial_and_parallel(_expectations)


def worth_threads(x: Features, rows: int) -> bool:
    """Is looking at so many rows of a table worth waking threads up?"""
    per_entry = _PER_ENTRY if isinstance(x, SparseRows) else 1
    return enough(per_entry * x.size * rows // max(1, len(x)))


def enough(numbers: int) -> bool:
    """Is reading so many numbers?"""
    return numbers >= WORTH_THREADS and usable_threads() > 1
