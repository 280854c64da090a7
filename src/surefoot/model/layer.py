"""One layer of the graph, with the shapes of :mod:`surefoot.model.graph`: states, their actions, what may follow.

The layers before the last one take actions; the last one ends the episode.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze, owner
from surefoot.model.features import Features
from surefoot.model.sparse_rows import SparseRows, arrays_of

NO_ACTION = -1  #: where the fallback does not go, and where nothing is certified
PART = 1 << 20  #: rows of a layer that are processed at a time
NO_ROW = -1  #: for a pair with several cost rows, none of which is the one that was measured


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer in which actions are taken."""

    state_ptr: IntArray  # (S+1,) int64
    pair_ptr: IntArray  # (N+1,) int64
    successor: IntArray  # (E,) int32 or int64, in 0 … S'-1
    reward: FloatArray  # (N,)   in [0, 1]
    cost_features: Features  # (R, dc)
    transition_features: Features  # (E, dp); the same object as cost_features when shared
    fallback: IntArray  # (S,)   the fallback's pair, NO_ACTION where the fallback never goes
    row_ptr: IntArray  # (N+1,) int64; the same object as pair_ptr if each triplet has its own row
    forbidden: BoolArray  # (S,)   states that must not be entered

    @property
    def n_states(self) -> int:
        return len(self.state_ptr) - 1

    @property
    def n_pairs(self) -> int:
        return len(self.pair_ptr) - 1

    @property
    def n_edges(self) -> int:
        return len(self.successor)

    @property
    def n_rows(self) -> int:
        return len(self.cost_features)

    @property
    def per_triplet(self) -> bool:
        """True if each triplet has its own cost row; otherwise rows belong to pairs."""
        return self.row_ptr is self.pair_ptr

    @property
    def shares_features(self) -> bool:
        """True if the transition features are the cost features, as in the paper."""
        return self.transition_features is self.cost_features

    @property
    def several_rows(self) -> bool:
        """True if some pair has several cost rows: then a measured cost must come with its exact features."""
        return not self.per_triplet and self.n_rows > self.n_pairs

    def rows_of(self, edge: int) -> slice:
        """The cost rows of an edge: its own, or all rows of its pair."""
        if self.per_triplet:
            return slice(edge, edge + 1)
        return self.own_rows(owner(self.pair_ptr, edge))

    def pairs_of(self, state: int) -> range:
        """The pairs of a state."""
        return range(int(self.state_ptr[state]), int(self.state_ptr[state + 1]))

    def edges_of(self, pair: int) -> range:
        """The edges of a pair."""
        return range(int(self.pair_ptr[pair]), int(self.pair_ptr[pair + 1]))

    def own_rows(self, pair: int) -> slice:
        """The cost rows of a pair."""
        return slice(int(self.row_ptr[pair]), int(self.row_ptr[pair + 1]))

    def successors_of(self, pair: int) -> IntArray:
        """What may follow a pair, edge by edge."""
        return self.successor[self.pair_ptr[pair] : self.pair_ptr[pair + 1]]

    def edge_to(self, pair: int, state: int) -> int | None:
        """The edge of a pair that leads to a state of the next layer; None if there is none."""
        found = np.flatnonzero(self.successors_of(pair) == state)
        return int(self.pair_ptr[pair]) + int(found[0]) if len(found) else None

    def row_of(self, edge: int) -> int:
        """The cost row that is measured on an edge: its own, or the only one of its pair; else NO_ROW."""
        own = self.rows_of(edge)
        return own.start if own.stop - own.start == 1 else NO_ROW

    def pairs_of_rows(self, rows: IntArray) -> IntArray:
        """(n,) the pairs of some cost rows (n,)."""
        return np.searchsorted(self.row_ptr, rows, side="right") - 1

    def worst_of_edges(self, by_row: FloatArray) -> FloatArray:
        """(E, m) from numbers of the cost rows (R, m): that of the edge's own row, or the largest of its pair's."""
        if self.per_triplet:
            return by_row
        worst = np.maximum.reduceat(by_row, self.row_ptr[:-1], axis=0)
        return np.repeat(worst, np.diff(self.pair_ptr), axis=0)

    @property
    def edge_ptr(self) -> IntArray:
        """(S+1,) the edges of state i, all actions together, are edge_ptr[i] : edge_ptr[i+1]."""
        return np.asarray(self.pair_ptr[self.state_ptr])

    def pair_state(self) -> IntArray:
        """(N,) the state that each pair belongs to."""
        return np.repeat(np.arange(self.n_states, dtype=np.int64), np.diff(self.state_ptr))

    def edge_pair(self) -> IntArray:
        """(E,) the pair that each edge belongs to."""
        return np.repeat(np.arange(self.n_pairs, dtype=np.int64), np.diff(self.pair_ptr))

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Every array, as many times as it is used."""
        for table in vars(self).values():
            yield from arrays_of(table)

    def parts(self, rows: int) -> Iterator[tuple[slice, slice, slice, Layer]]:
        """The layer in parts of about so many cost rows and edges, at least a state each (see :meth:`part`)."""
        for first, end in self.cuts(rows):
            yield self.part(first, end)

    def cuts(self, rows: int) -> Iterator[tuple[int, int]]:
        """Where the states of each of these parts begin and end; only a few entries of the pointers are read."""
        state_ptr, *pointers = map(np.asarray, (self.state_ptr, self.pair_ptr, self.row_ptr))
        first, n = 0, self.n_states
        while first < n:
            end = n
            for pointer in pointers[:1] if self.per_triplet else pointers:
                begin = _begin(pointer, state_ptr, first)
                among = range(min(end, first + rows) + 1)  # a state has a row at least
                end = bisect_right(among, begin + rows, first, key=partial(_begin, pointer, state_ptr)) - 1
            end = max(first + 1, end)
            yield first, end
            first = end

    def part(
        self, first: int, end: int, read: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
    ) -> tuple[slice, slice, slice, Layer]:
        """The numbers of states first … end-1, of their pairs and of their cost rows; and the layer of these states
        alone, whose pairs, edges and rows are numbered from 0. ``read``: how its arrays come into memory."""
        cut = partial(_cut, read)
        pairs = slice(int(self.state_ptr[first]), int(self.state_ptr[end]))
        edges, rows = (slice(int(p[pairs.start]), int(p[pairs.stop])) for p in (self.pair_ptr, self.row_ptr))
        pair_ptr = cut(self.pair_ptr, slice(pairs.start, pairs.stop + 1)) - edges.start
        cost_features = cut(self.cost_features, rows)
        fallback, row_ptr = cut(self.fallback, slice(first, end)), pair_ptr
        if not self.per_triplet:
            row_ptr = cut(self.row_ptr, slice(pairs.start, pairs.stop + 1)) - rows.start
        part = Layer(
            state_ptr=cut(self.state_ptr, slice(first, end + 1)) - pairs.start,
            pair_ptr=pair_ptr,
            successor=cut(self.successor, edges),
            reward=cut(self.reward, pairs),
            cost_features=cost_features,
            transition_features=cost_features if self.shares_features else cut(self.transition_features, edges),
            fallback=np.where(fallback == NO_ACTION, NO_ACTION, fallback - pairs.start),
            row_ptr=row_ptr,
            forbidden=cut(self.forbidden, slice(first, end)),
        )
        return slice(first, end), pairs, rows, part

    def fallback_pairs(self) -> IntArray:
        """Pairs that the fallback plays."""
        played: IntArray = self.fallback[self.fallback != NO_ACTION]
        return played

    def played_by_fallback(self) -> BoolArray:
        """(N,) the pairs that the fallback plays."""
        played = np.zeros(self.n_pairs, bool)
        played[self.fallback_pairs()] = True
        return played

    def reached_by(self, pairs: BoolArray, n_next: int) -> BoolArray:
        """(S',) what the marked pairs (N,) can reach."""
        reached = np.zeros(n_next, bool)
        reached[self.successor[np.repeat(pairs, np.diff(self.pair_ptr))]] = True
        return reached


def _begin(pointer: IntArray, state_ptr: IntArray, state: int) -> int:
    return int(pointer[state_ptr[state]])


def _cut(read: Callable[[NDArray[Any]], NDArray[Any]], table: Any, part: slice) -> Any:
    """Some rows; of a mapped array as a plain one, since numpy is slow to slice a mapping."""
    if isinstance(table, SparseRows):
        rows = table[part]
        return replace(rows, columns=read(rows.columns), values=read(rows.values))
    return read(np.asarray(table)[part])


@dataclass(frozen=True, eq=False)
class Rays:
    """The actions of a layer at intensity 0 (spec 9, surefoot.model.rays); those without an intensity as they are."""

    center: IntArray  # (N,) the pair that each becomes; -1 for an action without an intensity
    cost_features: FloatArray  # (R, dc)
    transition_features: FloatArray  # (E, dp)

    def reward(self, layer: Layer) -> FloatArray:
        """(N,)"""
        return np.asarray(layer.reward[np.where(self.center < 0, np.arange(layer.n_pairs), self.center)])


@dataclass(frozen=True, eq=False)
class Terminal:
    """The last layer: its states have a reward and perhaps a cost."""

    reward: FloatArray  # (S,)    in [0, 1]
    cost_features: Features | None  # (S, dc) or None; rows without a cost are zero
    has_cost: BoolArray  # (S,)
    fallback_reached: BoolArray  # (S,)    where the fallback can end
    forbidden: BoolArray  # (S,)    states that must not be entered

    @property
    def n_states(self) -> int:
        return len(self.reward)

    def part(self, states: slice | BoolArray) -> Terminal:
        """The layer with these states only."""
        own: dict[str, Any] = {name: x if x is None else freeze(x[states]) for name, x in vars(self).items()}
        return Terminal(**own)
