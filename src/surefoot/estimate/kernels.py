"""Compiled: bounds and expected values of many rows, block by block.

A block is one matrix product, done by BLAS, and a few passes along its rows while they are in the cache. Everything
that is linear in a row (its coordinates in the eigenbasis, the predictions of all ridges, ρ) comes out of that one
product. Blocks are cut by the number of rows alone and write to their own places: the result does not depend on the
number of threads. BLAS itself is held to one thread (surefoot.estimate.threads).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from surefoot.estimate.threads import usable_threads
from surefoot.model.layered import FloatArray, IntArray

BLOCK = 504  # rows; not a power of two, so that the rows of a block do not compete for the same cache lines
WORTH_THREADS = 1 << 19  # numbers read: waking threads up takes longer than less work than this


@numba.njit(cache=True)
def _norms(w: FloatArray, weights: FloatArray) -> FloatArray:
    """(n, rows) √Σ_i w_i² weights_ki, from w (≥ d, rows) and weights (n, d)."""
    n, d = weights.shape
    rows = w.shape[1]
    u = np.zeros((n, rows))
    for i in range(d):
        for k in range(n):
            weight = weights[k, i]
            for r in range(rows):
                u[k, r] += w[i, r] * w[i, r] * weight
    for k in range(n):
        for r in range(rows):
            u[k, r] = np.sqrt(u[k, r])
    return u


@numba.njit(cache=True)
def _bound_block(
    w: FloatArray,  # (dc + 1 + n·m, rows)  Uᵀz, then ρ, then ⟨γ̂, z⟩ of every ridge and limit
    weights: FloatArray,  # (1 + n, dc)  ones, then 1/(e + λ)
    radii: FloatArray,  # (n, m)
    guards: FloatArray,  # (n, m)
    norms: FloatArray,  # (m,)
    errors: FloatArray,  # (m,)
    anchor_cost: FloatArray,  # (m,)
    upper: FloatArray,  # (rows, m)
    lower: FloatArray,  # (rows, m)
) -> None:
    rows, d = w.shape[1], weights.shape[1]
    n, m = radii.shape
    u = _norms(w, weights)
    for j in range(m):
        for r in range(rows):
            reach = norms[j] * u[0, r] if norms[j] < np.inf else np.inf
            upper[r, j] = reach
            lower[r, j] = -reach
        for k in range(n):
            radius, guarded, predicted = radii[k, j], radii[k, j] + guards[k, j], d + 1 + k * m + j
            for r in range(rows):
                # np.minimum and np.maximum pass a NaN on, and a NaN certifies nothing
                upper[r, j] = np.minimum(upper[r, j], w[predicted, r] + guarded * u[k + 1, r])
                lower[r, j] = np.maximum(lower[r, j], w[predicted, r] - radius * u[k + 1, r])
        for r in range(rows):
            along = w[d, r] * anchor_cost[j]
            error = errors[j] * (1.0 + abs(w[d, r]))
            upper[r, j] = along + upper[r, j] + error
            lower[r, j] = along + lower[r, j] - error


def _bounds(
    x: FloatArray,  # (rows, dc)
    linear: FloatArray,  # (dc + 1 + n·m, dc)  takes x to w
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
    blocks = (x.shape[0] + BLOCK - 1) // BLOCK
    for b in numba.prange(blocks):
        first = b * BLOCK
        last = min(x.shape[0], first + BLOCK)
        w = np.dot(linear, x[first:last].T)
        _bound_block(w, weights, radii, guards, norms, errors, anchor_cost, upper[first:last], lower[first:last])


def _bounds_of(
    x: FloatArray,
    rows: IntArray,  # (n,)  the rows to look at
    linear: FloatArray,
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
    blocks = (rows.shape[0] + BLOCK - 1) // BLOCK
    for b in numba.prange(blocks):
        first = b * BLOCK
        n = min(rows.shape[0], first + BLOCK) - first
        part = np.empty((n, x.shape[1]))
        for r in range(n):
            part[r] = x[rows[first + r]]
        top, low = np.empty((n, m)), np.empty((n, m))
        _bound_block(np.dot(linear, part.T), weights, radii, guards, norms, errors, anchor_cost, top, low)
        for r in range(n):
            upper[rows[first + r]] = top[r]
            lower[rows[first + r]] = low[r]


def _expectations(
    features: FloatArray,  # (E, dp)
    successor: IntArray,  # (E,)
    pair_ptr: IntArray,  # (N+1,)
    wanted: IntArray,  # (n,)  pairs
    value: FloatArray,  # (S',)
    linear: FloatArray,  # (dp + 1, dp)  takes φ_V to Uᵀφ_V, then ⟨θ̂, φ_V⟩
    weights: FloatArray,  # (1, dp)  1/(e + λ₂)
    radius: float,
    out: FloatArray,  # (N,)
) -> None:
    """Fills the optimistic expected next value of the wanted pairs, clipped to V on each pair's support."""
    d = features.shape[1]
    blocks = (wanted.shape[0] + BLOCK - 1) // BLOCK
    for b in numba.prange(blocks):
        first = b * BLOCK
        rows = min(wanted.shape[0], first + BLOCK) - first
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
        w = np.dot(linear, phi_v.T)
        u = _norms(w, weights)
        for r in range(rows):
            optimistic = w[d, r] + radius * u[0, r]
            out[wanted[first + r]] = min(max(optimistic, lowest[r]), highest[r])


def _both(kernel: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A kernel compiled for one thread and for several."""
    return numba.njit(cache=True)(kernel), numba.njit(cache=True, parallel=True)(kernel)


_bounds_all, _bounds_some, _expected = _both(_bounds), _both(_bounds_of), _both(_expectations)


def bounds(x: FloatArray, rows: IntArray | None, *rest: FloatArray) -> None:
    """:func:`_bounds` of all rows, or of the given ones, on threads where that pays."""
    if rows is None:
        _bounds_all[_worth_threads(x.size)](x, *rest)
    else:
        _bounds_some[_worth_threads(len(rows) * x.shape[1])](x, rows, *rest)


def expectations(features: FloatArray, successor: IntArray, pair_ptr: IntArray, wanted: IntArray, *rest: Any) -> None:
    """:func:`_expectations`, on threads where that pays."""
    work = len(wanted) * features.size // max(1, len(pair_ptr) - 1)
    _expected[_worth_threads(work)](features, successor, pair_ptr, wanted, *rest)


def _worth_threads(numbers: int) -> bool:
    return numbers >= WORTH_THREADS and usable_threads() > 1
