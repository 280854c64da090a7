"""Compiled: the expected next values of many pairs (spec 6), whose rows are turned as cost rows are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surefoot.estimate.basis import Lens
from surefoot.estimate.kernels import LANES, Seen, in_columns, room_to_see, rooted, turn_dense, turn_row
from surefoot.estimate.tables import Rows
from surefoot.estimate.update import value_row
from surefoot.jit import compiled, leaf, unlocked
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import FeatureArray


class Ahead(NamedTuple):
    """What may follow the pairs of one step, and what it is worth."""

    following: IntArray  # (E,)
    pair_ptr: IntArray  # (N+1,)
    value: FloatArray  # (S',)


@leaf
def _worth(ahead: Ahead, pair: int) -> tuple[float, float]:
    """The least and the most that may follow a pair."""
    following, pair_ptr, value = ahead
    low, high = np.inf, -np.inf
    for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
        v = value[following[edge]]
        low, high = min(low, v), max(high, v)
    return low, high


@leaf
def _value_rows(x: FeatureArray, ahead: Ahead, pairs: IntArray, rows: FloatArray) -> None:
    """φ_V of some pairs, row by row (spec 6)."""
    following, pair_ptr, value = ahead
    for i in range(pairs.shape[0]):
        first, end = pair_ptr[pairs[i]], pair_ptr[pairs[i] + 1]
        for k in range(rows.shape[1]):
            rows[i, k] = 0.0
        for edge in range(first, end):
            v = value[following[edge]]
            for k in range(rows.shape[1]):
                rows[i, k] += v * x[edge, k]


@compiled
def _see_values(
    x: Rows,
    ahead: Ahead,
    pairs: IntArray,  # up to LANES
    rows: FloatArray,  # (LANES, largest block)  room
    numbers: IntArray,  # (LANES,)  0, 1, …
    look: Lens,
    weights: FloatArray,
    centres: FloatArray,
    seen: Seen,
) -> None:
    """φ_V of some pairs, through a lens."""
    if x.indptr.size == 0:
        if x.narrow.size:
            _value_rows(x.narrow, ahead, pairs, rows)
        else:
            _value_rows(x.values, ahead, pairs, rows)
        in_columns(rows, numbers[: pairs.shape[0]], seen.z)
        turn_dense(look.turn, weights, centres, seen)
        rooted(seen.u)
        return
    zero: Any = np.int64(0)  # a plain 0 would have value_row compiled once more, for this number
    for i in range(pairs.shape[0]):
        first, end = ahead.pair_ptr[pairs[i]], ahead.pair_ptr[pairs[i] + 1]
        b = value_row(x, zero, ahead.following, zero, first, end, ahead.value, zero, look.block[0], look.shape, rows[0])
        turn_row(rows[0], b, look, weights, centres, rows[1], i, seen)


class Asked(NamedTuple):
    """A question about the pairs of one step: their expected next value, by a value ellipsoid."""

    x: Rows
    ahead: Ahead
    look: Lens
    weights: FloatArray  # (1, …)  1/(e + λ₂)
    centres: FloatArray  # (1, …)  Uᵀθ̂
    radius: float
    clip: bool  # to V on each pair's support


@unlocked
def expected(asked: Asked, wanted: IntArray, out: FloatArray) -> None:
    """Writes ⟨θ̂, φ_V⟩ + radius ‖φ_V‖_{A⁻¹} (eq:optqvalue) of some pairs (n,), rising, into out (n,)."""
    x, ahead, look, weights, centres, radius, clip = asked
    seen, rows, numbers = room_to_see(look, 1, 1), np.empty((LANES, look.room)), np.arange(LANES)
    pairs, place, low, high = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES), np.empty(LANES)
    n = 0  # pairs that wait
    for i in range(wanted.shape[0]):
        pairs[n], place[n] = wanted[i], i
        low[n], high[n] = _worth(ahead, pairs[n]) if clip else (-np.inf, np.inf)
        if low[n] == high[n]:  # nothing to estimate
            out[i] = low[n]
        else:
            n += 1
        if n == LANES or (n > 0 and i == wanted.shape[0] - 1):
            _see_values(x, ahead, pairs[:n], rows, numbers, look, weights, centres, seen)
            for k in range(n):
                found = seen.told[0, k] + radius * seen.u[0, k]
                out[place[k]] = min(max(found, low[k]), high[k]) if clip else found
            n = 0
