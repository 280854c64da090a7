"""Compiled: bounds and expected values of many rows, block by block.

Each block is one matrix product, done by BLAS, and a few passes that run along the block's rows, so that every row is
computed alike wherever it stands. Blocks are fixed by the number of rows alone and write to their own places: the
result does not depend on the number of threads. BLAS itself is held to one thread (surefoot.estimate.threads).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from surefoot.model.layered import FloatArray, IntArray

BLOCK = 512  # rows: with 64 features a block and its product stay in the second-level cache


@numba.njit(cache=True)
def _bound_block(
    w: FloatArray,  # (dc, rows)  Uᵀz
    rho: FloatArray,  # (rows,)
    weights: FloatArray,  # (n, dc)
    centres: FloatArray,  # (n, m, dc)
    radii: FloatArray,  # (n, m)
    guards: FloatArray,  # (n, m)
    norms: FloatArray,  # (m,)
    errors: FloatArray,  # (m,)
    anchor_cost: FloatArray,  # (m,)
    upper: FloatArray,  # (rows, m)
    lower: FloatArray,  # (rows, m)
) -> None:
    d, rows = w.shape
    n, m = radii.shape
    squares = np.empty((d, rows))
    total, u, predicted = np.zeros(rows), np.empty(rows), np.empty(rows)
    for i in range(d):
        for r in range(rows):
            squares[i, r] = w[i, r] * w[i, r]
            total[r] += squares[i, r]
    for j in range(m):
        for r in range(rows):
            reach = norms[j] * np.sqrt(total[r]) if norms[j] < np.inf else np.inf
            upper[r, j] = reach
            lower[r, j] = -reach
    for k in range(n):
        u[:] = 0.0
        for i in range(d):
            weight = weights[k, i]
            for r in range(rows):
                u[r] += squares[i, r] * weight
        for r in range(rows):
            u[r] = np.sqrt(u[r])
        for j in range(m):
            predicted[:] = 0.0
            for i in range(d):
                centre = centres[k, j, i]
                for r in range(rows):
                    predicted[r] += w[i, r] * centre
            radius, guarded = radii[k, j], radii[k, j] + guards[k, j]
            for r in range(rows):
                # np.minimum and np.maximum pass a NaN on, and a NaN certifies nothing
                upper[r, j] = np.minimum(upper[r, j], predicted[r] + guarded * u[r])
                lower[r, j] = np.maximum(lower[r, j], predicted[r] - radius * u[r])
    for j in range(m):
        for r in range(rows):
            along = rho[r] * anchor_cost[j]
            error = errors[j] * (1.0 + abs(rho[r]))
            upper[r, j] = along + upper[r, j] + error
            lower[r, j] = along + lower[r, j] - error


def _bounds(
    x: FloatArray,  # (rows, dc)
    turn: FloatArray,  # (dc, dc)  takes x to w: projects the anchor away, then turns into the eigenbasis
    direction: FloatArray,  # (dc,)  x⁰/‖x⁰‖²; zero without an anchor
    weights: FloatArray,
    centres: FloatArray,
    radii: FloatArray,
    guards: FloatArray,
    norms: FloatArray,
    errors: FloatArray,
    anchor_cost: FloatArray,
    upper: FloatArray,
    lower: FloatArray,
) -> None:
    """Fills upper and lower, (rows, m) each; see :func:`surefoot.estimate.costs.bound_rows`."""
    blocks = (x.shape[0] + BLOCK - 1) // BLOCK
    for b in numba.prange(blocks):
        first = b * BLOCK
        last = min(x.shape[0], first + BLOCK)
        part = x[first:last]
        _bound_block(
            np.dot(turn.T, part.T),
            np.dot(part, direction),
            weights,
            centres,
            radii,
            guards,
            norms,
            errors,
            anchor_cost,
            upper[first:last],
            lower[first:last],
        )


def _expectations(
    features: FloatArray,  # (E, dp)
    successor: IntArray,  # (E,)
    pair_ptr: IntArray,  # (N+1,)
    wanted: IntArray,  # (n,) pairs
    value: FloatArray,  # (S',)
    basis: FloatArray,  # (dp, dp)
    weights: FloatArray,  # (dp,)
    centre: FloatArray,  # (dp,)
    radius: float,
    out: FloatArray,  # (N,)
) -> None:
    """Fills the optimistic expected next value of the wanted pairs, clipped to V on each pair's support."""
    d = features.shape[1]
    blocks = (wanted.shape[0] + BLOCK - 1) // BLOCK
    for b in numba.prange(blocks):
        first = b * BLOCK
        last = min(wanted.shape[0], first + BLOCK)
        rows = last - first
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
        w = np.dot(basis.T, phi_v.T)
        mean, spread = np.zeros(rows), np.zeros(rows)
        for i in range(d):
            for r in range(rows):
                mean[r] += w[i, r] * centre[i]
                spread[r] += w[i, r] * w[i, r] * weights[i]
        for r in range(rows):
            optimistic = mean[r] + radius * np.sqrt(spread[r])
            out[wanted[first + r]] = min(max(optimistic, lowest[r]), highest[r])


_serial: Callable[..., Any] = numba.njit(cache=True)
_parallel: Callable[..., Any] = numba.njit(cache=True, parallel=True)
_bounds_serial, _bounds_parallel = _serial(_bounds), _parallel(_bounds)
_expectations_serial, _expectations_parallel = _serial(_expectations), _parallel(_expectations)


def bounds(x: FloatArray, *arguments: FloatArray) -> None:
    _pick(_bounds_serial, _bounds_parallel, x.shape[0])(x, *arguments)


def expectations(features: FloatArray, successor: IntArray, pair_ptr: IntArray, wanted: IntArray, *rest: Any) -> None:
    _pick(_expectations_serial, _expectations_parallel, len(wanted))(features, successor, pair_ptr, wanted, *rest)


def _pick(serial: Callable[..., Any], parallel: Callable[..., Any], rows: int) -> Callable[..., Any]:
    """Threads where there is work for them; waking them up takes longer than a few blocks."""
    return parallel if rows >= 16 * BLOCK and numba.get_num_threads() > 1 else serial
