"""Compiled: bounds and expected values of many sparse rows; the twin of ``kernels.py``.

A row is laid out inside its own block, turned into the block's eigenbasis, and judged there; in a block without data
every direction is an eigenvector of eigenvalue zero, whose weight stands last. Rows do not touch each other, so the
result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from surefoot.estimate import kernels
from surefoot.estimate.block_bank import NO_DATA, TurnedBlocks
from surefoot.estimate.block_rows import NOWHERE, block_value_row, cost_row
from surefoot.estimate.blocks import Blocks, BlockShape
from surefoot.model.graph import FloatArray, IntArray
from surefoot.model.sparse_rows import RowParts, SparseRows
from surefoot.threads import serial_and_parallel, usable_threads

CHUNK = 512  # rows that share their working memory
_PER_ENTRY = 8  # a stored entry is as much work as so many of a dense row


@numba.njit(cache=True)
def _turned(
    z: FloatArray,
    size: int,
    spot: int,
    entry: int,
    basis: FloatArray,
    weights: FloatArray,
    w: FloatArray,
    u: FloatArray,
) -> None:
    """Writes w = Uᵀz of one block and u_k = √Σ_i w_i² weights_ki; without data U is the identity."""
    n, none = weights.shape[0], weights.shape[1] - 1
    u[:n] = 0.0
    if spot == NO_DATA:
        w[:size] = z[:size]
    else:
        w[:size] = 0.0
        for k in range(size):
            if z[k] != 0.0:  # in a large block most of a row is zero
                for i in range(size):
                    w[i] += basis[entry + k * size + i] * z[k]
    for i in range(size):
        for k in range(n):
            u[k] += w[i] * w[i] * (weights[k, none] if spot == NO_DATA else weights[k, spot + i])
    for k in range(n):
        u[k] = np.sqrt(u[k])


def _bounds(
    x: RowParts,
    rows: IntArray,  # (n,)  the rows to look at
    r: int,
    anchor: FloatArray,  # (dc,)
    direction: FloatArray,  # (dc,)
    shape: BlockShape,
    largest: int,
    first: int,  # block of the regression
    spots: IntArray,
    entries: IntArray,
    basis: FloatArray,
    weights: FloatArray,  # (1 + n, …)  ones, then 1/(e + λ)
    centres: FloatArray,  # (n, m, …)
    radii: FloatArray,  # (n, m)
    guards: FloatArray,  # (n, m)
    norms: FloatArray,  # (m,)
    errors: FloatArray,  # (m,)
    anchor_cost: FloatArray,  # (m,)
    upper: FloatArray,  # (rows, m)
    lower: FloatArray,
) -> None:
    """Fills upper and lower of the rows; see :func:`surefoot.estimate.costs.bound_rows`."""
    n, m = radii.shape
    for chunk in numba.prange((rows.shape[0] + CHUNK - 1) // CHUNK):
        z, w, u = np.empty(largest), np.empty(largest), np.empty(1 + n)
        for at in range(chunk * CHUNK, min(rows.shape[0], (chunk + 1) * CHUNK)):
            e = rows[at]
            rho, b = cost_row(x, e, r, anchor, direction, shape, z)
            size, spot = 0, NO_DATA
            if b != NOWHERE:
                size, spot = shape.size[b], spots[b - first]
            _turned(z, size, spot, entries[b - first] if spot != NO_DATA else 0, basis, weights, w, u)
            for j in range(m):
                reach = norms[j] * u[0] if norms[j] < np.inf else np.inf
                top, low = reach, -reach
                for k in range(n):
                    predicted = 0.0
                    if spot != NO_DATA:
                        for i in range(size):
                            predicted += centres[k, j, spot + i] * w[i]
                    # np.minimum and np.maximum pass a NaN on, and a NaN certifies nothing
                    guarded = radii[k, j] + guards[k, j]
                    top = np.minimum(top, predicted + guarded * u[k + 1])
                    low = np.maximum(low, predicted - guarded * u[k + 1])
                along = rho * anchor_cost[j]
                error = errors[j] * (1.0 + abs(rho))
                upper[e, j] = along + top + error
                lower[e, j] = along + low - error


def _lengths(
    x: RowParts,
    r: int,
    anchor: FloatArray,
    direction: FloatArray,
    shape: BlockShape,
    largest: int,
    first: int,
    spots: IntArray,
    entries: IntArray,
    basis: FloatArray,
    weights: FloatArray,  # (1, …)
    out: FloatArray,  # (rows,)
) -> None:
    """Fills √Σ_i w_i² weights_i, w = Uᵀz, of every row."""
    n = out.shape[0]
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        z, w, u = np.empty(largest), np.empty(largest), np.empty(1)
        for e in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            _, b = cost_row(x, e, r, anchor, direction, shape, z)
            size, spot = 0, NO_DATA
            if b != NOWHERE:
                size, spot = shape.size[b], spots[b - first]
            _turned(z, size, spot, entries[b - first] if spot != NO_DATA else 0, basis, weights, w, u)
            out[e] = u[0]


def _expectations(
    features: RowParts,
    successor: IntArray,  # (E,)
    pair_ptr: IntArray,  # (N+1,)
    wanted: IntArray,  # (n,)  pairs
    value: FloatArray,  # (S',)
    r: int,
    shape: BlockShape,
    largest: int,
    first: int,
    spots: IntArray,
    entries: IntArray,
    basis: FloatArray,
    weights: FloatArray,  # (1, …)  1/(e + λ₂)
    centre: FloatArray,  # (…,)
    radius: float,
    out: FloatArray,  # (N,)
) -> None:
    """Fills the optimistic expected next value of the wanted pairs, clipped to V on each pair's support."""
    for chunk in numba.prange((wanted.shape[0] + CHUNK - 1) // CHUNK):
        phi_v, w, u = np.empty(largest), np.empty(largest), np.empty(1)
        for at in range(chunk * CHUNK, min(wanted.shape[0], (chunk + 1) * CHUNK)):
            pair = wanted[at]
            begin, end = pair_ptr[pair], pair_ptr[pair + 1]
            lowest, highest = np.inf, -np.inf
            for edge in range(begin, end):
                v = value[successor[edge]]
                lowest, highest = min(lowest, v), max(highest, v)
            b = block_value_row(features, 0, successor, 0, begin, end, value, 0, r, shape, phi_v)
            size, spot = 0, NO_DATA
            if b != NOWHERE:
                size, spot = shape.size[b], spots[b - first]
            _turned(phi_v, size, spot, entries[b - first] if spot != NO_DATA else 0, basis, weights, w, u)
            predicted = 0.0
            if spot != NO_DATA:
                for i in range(size):
                    predicted += centre[spot + i] * w[i]
            out[pair] = min(max(predicted + radius * u[0], lowest), highest)


_bounds_of = serial_and_parallel(_bounds)
_lengths_of = serial_and_parallel(_lengths)
_expected = serial_and_parallel(_expectations)


@numba.njit(cache=True)
def _lay_out(
    x: RowParts,
    rows: IntArray,
    r: int,
    anchor: FloatArray,
    direction: FloatArray,
    shape: BlockShape,
    begin: IntArray,
    flat: FloatArray,
) -> None:
    for at in range(rows.shape[0]):
        cost_row(x, rows[at], r, anchor, direction, shape, flat[begin[at] : begin[at + 1]])


def laid_out(
    x: SparseRows, blocks: Blocks, r: int, anchor: FloatArray, direction: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """(block, where z begins, all z inside their blocks one after the other) of the rows that are not empty."""
    rows = np.flatnonzero(np.diff(x.indptr))
    block = blocks.shape.block[r, x.columns[x.indptr[rows]]]
    begin = np.concatenate([[0], np.cumsum(blocks.shape.size[block])])
    flat = np.empty(int(begin[-1]))
    _lay_out(x.parts, rows, r, anchor, direction, blocks.shape, begin, flat)
    return block, begin[:-1], flat


def bounds(x: SparseRows, rows: IntArray | None, known: TurnedBlocks, anchor: Any, direction: Any, *rest: Any) -> None:
    """:func:`_bounds` of all rows, or of the given ones, on threads where that pays."""
    chosen = np.arange(len(x)) if rows is None else rows
    threads = _worth_threads(x, len(chosen))
    _bounds_of[threads](x.parts, chosen, known.regression, anchor, direction, *_of(known), *rest)


def lengths(x: SparseRows, known: TurnedBlocks, anchor: Any, direction: Any, weights: FloatArray) -> FloatArray:
    """(rows,) :func:`_lengths`, on threads where that pays."""
    out = np.empty(len(x))
    threads = _worth_threads(x, len(x))
    _lengths_of[threads](x.parts, known.regression, anchor, direction, *_of(known), weights, out)
    return out


def expectations(
    features: SparseRows,
    successor: IntArray,
    pair_ptr: IntArray,
    wanted: IntArray,
    value: FloatArray,
    known: TurnedBlocks,
    *rest: Any,
) -> None:
    """:func:`_expectations`, on threads where that pays."""
    edges = len(wanted) * len(features) // max(1, len(pair_ptr) - 1)
    threads = _worth_threads(features, edges)
    _expected[threads](features.parts, successor, pair_ptr, wanted, value, known.regression, *_of(known), *rest)


def _of(known: TurnedBlocks) -> tuple[Any, ...]:
    blocks = known.blocks
    first = int(blocks.first[known.regression])
    return blocks.shape, blocks.largest, first, known.spot, known.entry, known.basis


def _worth_threads(x: SparseRows, rows: int) -> bool:
    numbers = _PER_ENTRY * x.size * rows // max(1, len(x))
    return numbers >= kernels.WORTH_THREADS and usable_threads() > 1
