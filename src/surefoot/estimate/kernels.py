"""Compiled: bounds and expected values of many rows, block by block.

A block is turned into the eigenbasis by one matrix product, done by BLAS, and stays in the cache while a few more
passes go over them; all ridges come out of the same turned rows. Blocks are cut by the shape of the features alone and
write to their own places: the result does not depend on the number of threads. BLAS itself is held to one thread
(surefoot.threads). Features that are stored in float32 become float64 block by block, in the cache: the result
is that of the same numbers stored in float64.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from surefoot.model.features import FeatureArray
from surefoot.model.graph import BoolArray, FloatArray, IntArray
from surefoot.threads import serial_and_parallel, usable_threads

BLOCK = 8064  # numbers in a block of rows: two blocks fit the second cache; not a power of two, see _rows_per_block
WORTH_THREADS = 1 << 19  # numbers read: waking threads up takes longer than less work than this


@numba.njit(cache=True)
def _rows_per_block(d: int) -> int:
    """Few wide rows or many narrow ones; never a power of two, where columns would compete for the same cache lines."""
    return max(56, BLOCK // d)


@numba.njit(cache=True)
def _square(w: FloatArray) -> None:
    flat = w.reshape(-1)
    for i in range(flat.size):
        flat[i] = flat[i] * flat[i]


@numba.njit(cache=True)
def _root(u: FloatArray) -> None:
    flat = u.reshape(-1)
    for i in range(flat.size):
        flat[i] = np.sqrt(flat[i])


@numba.njit(cache=True)
def _bound_block(
    x: FloatArray,  # (rows, dc)
    turn: FloatArray,  # (dc, dc)  x·turn = Uᵀz
    along: FloatArray,  # (1 + n·m, dc)  takes x to ρ, then to ⟨γ̂, z⟩ of every ridge and limit
    weights: FloatArray,  # (1 + n, dc)  ones, then 1/(e + λ)
    radii: FloatArray,  # (n, m)
    guards: FloatArray,  # (n, m)
    norms: FloatArray,  # (m,)
    errors: FloatArray,  # (m,)
    anchor_cost: FloatArray,  # (m,)
    upper: FloatArray,  # (rows, m)
    lower: FloatArray,  # (rows, m)
) -> None:
    rows, (n, m) = x.shape[0], radii.shape
    w = np.dot(x, turn)
    _square(w)
    u = np.dot(weights, w.T)  # (1 + n, rows)  ‖z‖², then u² of every ridge
    _root(u)
    told = np.dot(along, x.T)
    for j in range(m):
        for r in range(rows):
            reach = norms[j] * u[0, r] if norms[j] < np.inf else np.inf
            upper[r, j] = reach
            lower[r, j] = -reach
        for k in range(n):
            guarded, predicted = radii[k, j] + guards[k, j], 1 + k * m + j
            for r in range(rows):
                # np.minimum and np.maximum pass a NaN on, and a NaN certifies nothing
                upper[r, j] = np.minimum(upper[r, j], told[predicted, r] + guarded * u[k + 1, r])
                lower[r, j] = np.maximum(lower[r, j], told[predicted, r] - guarded * u[k + 1, r])
        for r in range(rows):
            known = told[0, r] * anchor_cost[j]
            error = errors[j] * (1.0 + abs(told[0, r]))
            upper[r, j] = known + upper[r, j] + error
            lower[r, j] = known + lower[r, j] - error


def _bounds(
    x: FeatureArray,  # (rows, dc)
    turn: FloatArray,
    along: FloatArray,
    weights: FloatArray,
    radii: FloatArray,
    guards: FloatArray,
    norms: FloatArray,
    errors: FloatArray,
    anchor_cost: FloatArray,
    upper: FloatArray,  # (rows, m)
    lower: FloatArray,  # (rows, m)
) -> None:
    """Fills upper and lower; see :func:`surefoot.estimate.costs.bound_rows`."""
    step = _rows_per_block(x.shape[1])
    blocks = (x.shape[0] + step - 1) // step
    for b in numba.prange(blocks):
        first = b * step
        last = min(x.shape[0], first + step)
        top, low = upper[first:last], lower[first:last]
        block = np.asarray(x[first:last], np.float64)  # in float64 already: itself, no copy
        _bound_block(block, turn, along, weights, radii, guards, norms, errors, anchor_cost, top, low)


def _bounds_of(
    x: FeatureArray,
    rows: IntArray,  # (n,)  the rows to look at
    turn: FloatArray,
    along: FloatArray,
    weights: FloatArray,
    radii: FloatArray,
    guards: FloatArray,
    norms: FloatArray,
    errors: FloatArray,
    anchor_cost: FloatArray,
    upper: FloatArray,
    lower: FloatArray,
) -> None:
    """:func:`_bounds` of some rows only: a block gathers them first."""
    m = radii.shape[1]
    step = _rows_per_block(x.shape[1])
    blocks = (rows.shape[0] + step - 1) // step
    for b in numba.prange(blocks):
        first = b * step
        n = min(rows.shape[0], first + step) - first
        part = np.empty((n, x.shape[1]))
        for r in range(n):
            part[r] = x[rows[first + r]]
        top, low = np.empty((n, m)), np.empty((n, m))
        _bound_block(part, turn, along, weights, radii, guards, norms, errors, anchor_cost, top, low)
        for r in range(n):
            upper[rows[first + r]] = top[r]
            lower[rows[first + r]] = low[r]


def _expectations(
    features: FeatureArray,  # (E, dp)
    successor: IntArray,  # (E,)
    pair_ptr: IntArray,  # (N+1,)
    wanted: IntArray,  # (n,)  pairs
    value: FloatArray,  # (S',)
    basis: FloatArray,  # (dp, dp)  U
    estimate: FloatArray,  # (dp,)  θ̂
    weights: FloatArray,  # (dp,)  1/(e + λ₂)
    radius: float,
    out: FloatArray,  # (N,)
) -> None:
    """Fills the optimistic expected next value of the wanted pairs, clipped to V on each pair's support."""
    d = features.shape[1]
    step = _rows_per_block(d)
    blocks = (wanted.shape[0] + step - 1) // step
    for b in numba.prange(blocks):
        first = b * step
        rows = min(wanted.shape[0], first + step) - first
        phi_v = np.zeros((rows, d))
        lowest, highest = np.empty(rows), np.empty(rows)
        for r in range(rows):
            pair = wanted[first + r]
            low, high = np.inf, -np.inf
            for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                v = value[successor[edge]]
                low, high = min(low, v), max(high, v)
                for i in range(d):
                    phi_v[r, i] += v * features[edge, i]
            lowest[r], highest[r] = low, high
        mean = np.dot(phi_v, estimate)
        w = np.dot(phi_v, basis)
        _square(w)
        u = np.dot(w, weights)
        _root(u)
        for r in range(rows):
            out[wanted[first + r]] = min(max(mean[r] + radius * u[r], lowest[r]), highest[r])


def _crossed(
    upper: FloatArray,  # (rows, m)
    lower: FloatArray,
    rounding: FloatArray,  # (m,)
    found: BoolArray,  # (blocks,)  written
) -> None:
    """Marks blocks of rows in which a lower bound lies above its upper beyond rounding, or one of them is a NaN."""
    (n, m), blocks = upper.shape, len(found)
    for b in numba.prange(blocks):
        wrong = False
        for row in range(n * b // blocks, n * (b + 1) // blocks):
            for j in range(m):
                wrong |= not (lower[row, j] <= upper[row, j] + rounding[j])
        found[b] = wrong


_bounds_all = serial_and_parallel(_bounds)
_bounds_some = serial_and_parallel(_bounds_of)
_expected = serial_and_parallel(_expectations)
_checked = serial_and_parallel(_crossed)


def bounds(x: FeatureArray, rows: IntArray | None, *rest: FloatArray) -> None:
    """:func:`_bounds` of all rows, or of the given ones, on threads where that pays."""
    if rows is None:
        _bounds_all[_worth_threads(x.size)](x, *rest)
    else:
        _bounds_some[_worth_threads(len(rows) * x.shape[1])](x, rows, *rest)


def expectations(features: FeatureArray, successor: IntArray, pair_ptr: IntArray, wanted: IntArray, *rest: Any) -> None:
    """:func:`_expectations`, on threads where that pays."""
    work = len(wanted) * features.size // max(1, len(pair_ptr) - 1)
    _expected[_worth_threads(work)](features, successor, pair_ptr, wanted, *rest)


def possible(upper: FloatArray, lower: FloatArray, rounding: FloatArray) -> bool:
    """No lower bound lies above its upper by more than rounding (m,); False for a NaN."""
    found = np.empty(16, np.bool_)
    _checked[_worth_threads(2 * upper.size)](upper, lower, rounding, found)
    return not found.any()


def _worth_threads(numbers: int) -> bool:
    return numbers >= WORTH_THREADS and usable_threads() > 1
