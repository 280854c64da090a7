"""The layered graph: states → actions → successors, as frozen CSR arrays.

A *pair* is a state with one of its actions; an *edge* is a pair with one of its possible successors
(the paper's triplet). Pairs are sorted by state, edges by pair, both in declaration order:

    pairs of state i   state_ptr[i] : state_ptr[i+1]
    edges of pair p    pair_ptr[p]  : pair_ptr[p+1]
    cost rows of p     row_ptr[p]   : row_ptr[p+1]

A *cost row* is a feature vector whose cost must keep the limits. If each triplet has its own, ``row_ptr`` is the same
object as ``pair_ptr``, and row e belongs to edge e. Otherwise rows belong to the pair: one if the cost does not depend
on the successor, or several, all of which must keep the limits (spec 9).

Letters in the shapes: S states, N pairs, E edges, R cost rows of the layer, S' states of the next layer, dc and dp the
lengths of cost and transition features, m limits, H layers (H-1 of them with decisions).
Layers may share array objects; whatever depends on a shared array is computed and stored once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.model.features import Features, largest_norm, row_distances, row_norms
from surefoot.model.sparse_rows import SparseRows, arrays_of

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


AnyArray = TypeVar("AnyArray", bound=NDArray[Any] | SparseRows)

NO_ACTION = -1  #: where the fallback does not go, and where nothing is certified
PART = 1 << 20  #: rows of a layer that are processed at a time
NO_ROW = -1  #: for a pair with several cost rows, none of which is the one that was measured
OUTSIDE = 0  #: in every layer but the first of a growing graph: the state, and its pair, for all that is not expanded


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


@dataclass(frozen=True, eq=False)
class Anchors:
    """Features of a step whose costs are known (the paper's φ(s⁰,a⁰,s⁰′) and c⁰, ass:knownseedsubgraph), n ≥ 1.

    Slacks and the paper's constants refer to the first one.
    """

    features: FloatArray  # (n, dc)
    cost: FloatArray  # (n, m)
    tolerance: FloatArray  # (n, m)  how far a cost may be off, in addition to the misspecification

    def __len__(self) -> int:
        return len(self.features)

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.features, self.cost, self.tolerance


@dataclass(frozen=True)
class Beyond:
    """What is known about the states that a growing graph does not hold (spec 9)."""

    longest_row: float  # no cost row is longer, not even theirs
    room: bool  # False once the budget of states is spent: then nothing is hoped of them


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """All layers of a problem; every array is read-only."""

    layers: tuple[Layer, ...]  # H-1
    terminal: Terminal
    starts: IntArray  # (n,) states of layer 0, in declaration order
    anchors: tuple[Anchors | None, ...]  # H
    beyond: Beyond | None = None  # of a graph that grows, in which state OUTSIDE stands for all other states
    rays: tuple[Rays, ...] = ()  # H-1, or none if no action has an intensity

    @property
    def horizon(self) -> int:
        return len(self.layers) + 1

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Every array of every layer, as many times as it is used."""
        for layer in self.layers:
            yield from layer.arrays()
        for table in vars(self.terminal).values():
            yield from arrays_of(table)

    @property
    def cost_dim(self) -> int:
        return int(self.layers[0].cost_features.shape[1])

    @property
    def transition_dim(self) -> int:
        return int(self.layers[0].transition_features.shape[1])

    @property
    def shared_features(self) -> bool:
        """True if the transition features are the cost features, as in the paper."""
        return all(layer.shares_features for layer in self.layers)

    @cached_property
    def several_rows(self) -> bool:
        """True if some pair has several cost rows."""
        return any(layer.several_rows for layer in self.layers)

    def n_states(self, h: int) -> int:
        return self.layers[h].n_states if h < len(self.layers) else self.terminal.n_states

    def forbidden(self, h: int) -> BoolArray:
        """(S,) the forbidden states of a layer."""
        return self.layers[h].forbidden if h < len(self.layers) else self.terminal.forbidden

    def known_forbidden(self, h: int) -> BoolArray:
        """(S,) the same without the state that stands for what is not expanded, which is not known to be forbidden."""
        mask = self.forbidden(h)
        if self.beyond is not None and h > 0:
            mask = mask.copy()
            mask[OUTSIDE] = False
        return mask

    @cached_property
    def n_all_states(self) -> int:
        """How many states all layers have, not counting those that stand for what is outside."""
        outside = 0 if self.beyond is None else self.horizon - 1
        return sum(self.n_states(h) for h in range(self.horizon)) - outside

    def expanded(self, h: int) -> BoolArray:
        """(N,) pairs all of whose successors are in the graph; all pairs, if the graph does not grow."""
        layer = self.layers[h]
        if self.beyond is None:
            return np.ones(layer.n_pairs, bool)
        inside = np.logical_and.reduceat(layer.successor != OUTSIDE, layer.pair_ptr[:-1])
        if h > 0:
            inside[OUTSIDE] = True  # there is nothing to expand
        return inside

    @cached_property
    def fallback(self) -> tuple[IntArray, ...]:
        """Per decision layer (S,): the fallback's pair, NO_ACTION where it never goes."""
        return tuple(layer.fallback for layer in self.layers)

    @cached_property
    def reachable(self) -> tuple[BoolArray, ...]:
        """Per layer (S,): what some action sequence can reach from a start."""
        return self.reached_along([np.ones(layer.n_pairs, bool) for layer in self.layers])

    def reached_along(self, pairs: Sequence[BoolArray]) -> tuple[BoolArray, ...]:
        """Per layer (S,): where the marked pairs, H-1 of (N,), may lead from a start."""
        masks = [np.zeros(self.n_states(0), bool)]
        masks[0][self.starts] = True
        for h, layer in enumerate(self.layers):
            met = pairs[h] & np.repeat(masks[h], np.diff(layer.state_ptr))
            masks.append(layer.reached_by(met, self.n_states(h + 1)))
        return tuple(map(freeze, masks))

    def largest_feature_distance(self) -> float:
        """max over pairs and two cost rows of one pair of ‖x(s,a,s′) − x(s,a,s″)‖ (for Δ_φ, eq:epss)."""
        largest = 0.0
        for layer in {(id(y.row_ptr), id(y.cost_features)): y for y in self.layers}.values():
            pair, x = np.repeat(np.arange(layer.n_pairs), np.diff(layer.row_ptr)), layer.cost_features
            for apart in range(1, int(np.diff(layer.row_ptr).max())):
                first = np.flatnonzero(pair[apart:] == pair[:-apart])
                gaps = row_distances(x, first + apart, first)
                largest = max(largest, float(gaps.max(initial=0.0)))
        return largest

    def largest_feature_sum(self) -> float:
        """max over pairs of Σ_{s′} ‖φ(s,a,s′)‖. H times this bounds ‖φ_V‖ (the paper's D)."""
        return max(
            float(np.add.reduceat(row_norms(part.transition_features), part.pair_ptr[:-1]).max())
            for layer in {(id(y.transition_features), id(y.pair_ptr)): y for y in self.layers}.values()
            for *_, part in layer.parts(PART)
        )

    def largest_cost_norm(self) -> float:
        """max ‖x‖ over all cost rows and last states; in a graph that grows, the declared bound."""
        return self._largest_cost_norm

    @cached_property
    def _largest_cost_norm(self) -> float:
        if self.beyond is not None:
            return self.beyond.longest_row
        return max(largest_norm(x) for x in self.cost_tables())

    def cost_tables(self) -> list[Features]:
        """Every table of cost features, each once; of rays both ends, since no row in between is longer."""
        tables = [layer.cost_features for layer in self.layers] + [rays.cost_features for rays in self.rays]
        if self.terminal.cost_features is not None:
            tables.append(self.terminal.cost_features)
        return list({id(x): x for x in tables}.values())


def freeze(array: AnyArray) -> AnyArray:
    """Make an array read-only, so that it can be shared without copies."""
    for own in arrays_of(array):
        own.flags.writeable = False
    return array


def owner(pointer: IntArray, index: int) -> int:
    """What an index belongs to: with ``state_ptr`` the state of a pair, with ``pair_ptr`` the pair of an edge, …"""
    return int(np.searchsorted(pointer, index, side="right")) - 1


def rows_of_pairs(row_ptr: IntArray, pair_ptr: IntArray) -> IntArray:
    """``row_ptr`` of rows that belong to pairs; if every pair has one row and one edge, ``pair_ptr`` itself."""
    n = len(pair_ptr) - 1
    return pair_ptr if int(pair_ptr[-1]) == int(row_ptr[-1]) == n else row_ptr


def pointer_of(lengths: IntArray) -> NDArray[np.int64]:
    """(n+1,) where each of n parts with these lengths begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
