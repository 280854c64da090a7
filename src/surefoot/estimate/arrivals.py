"""Arrivals: how often each triplet came, and so how likely some are at most (spec 5).

If triplets of a set came N times in n plays of their pair, then for every λ > 0

    P(the set)  ≤  ( λN + ℓ ) / ( (1 − e^−λ) n )

with ℓ large enough to hold for all sets, times and λ = 1, ¼, … together with probability 1 − p (docs/regret.md, Lemma
0). Where nothing else comes it shrinks like 1/n, while what a regression of n rows says shrinks like 1/√n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.jit import leaf
from surefoot.model.arrays import FloatArray, IntArray, pointer_of, segments
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import Layer

FEW = 16  # plays
SHARPER = 12  # values of λ, each a quarter of the one before


@leaf
def at_most(times: float, plays: float, log_term: float) -> float:
    """The probability of a set of triplets that came so often, at most."""
    least, rate = 1.0, 1.0
    for j in range(SHARPER):
        found = (rate * times + log_term + (j + 1) * math.log(2.0)) / ((1.0 - math.exp(-rate)) * plays)
        least, rate = min(least, found), 0.25 * rate
    return least


@leaf
def _expect(ptr: IntArray, times: FloatArray, worth: FloatArray, log_term: float, found: FloatArray) -> None:
    """By pair, whose triplets come in the order of their worth, the best first: Σ_i F_i (f_i − f_{i+1}), with F_i at
    least the probability of the first i."""
    for pair in range(found.shape[0]):
        first, end = ptr[pair], ptr[pair + 1]
        plays, came, sets = 0.0, 0.0, 0.0
        for i in range(first, end):
            plays += times[i]
        total = worth[end - 1]
        for i in range(first, end - 1):
            came += times[i]
            sets += math.log((end - i) / (i - first + 1.0))  # log of how many sets have as many triplets
            total += at_most(came, plays, log_term + sets) * (worth[i] - worth[i + 1])
        found[pair] = total


class Played(NamedTuple):
    """The pairs of a step that were played, and how often each of their triplets came."""

    pairs: IntArray  # (P,)  rising
    ptr: IntArray  # (P+1,)  of their triplets, among the next two
    edges: IntArray  # (F,)  all triplets of these pairs
    times: FloatArray  # (F,)
    log_term: float  # log(E/p), of E triplets in the graph

    def expected(self, worth: FloatArray) -> FloatArray:
        """(P,) the most that can be expected where the triplets are worth so much (F,)."""
        order = np.lexsort((-worth, np.repeat(np.arange(len(self.pairs)), np.diff(self.ptr))))
        found = np.empty(len(self.pairs))
        _expect(self.ptr, self.times[order], worth[order], self.log_term, found)
        return found

    def among(self, pairs: slice) -> slice:
        """Which of these pairs are among some of the step."""
        first, end = np.searchsorted(self.pairs, (pairs.start, pairs.stop))
        return slice(int(first), int(end))

    def part(self, pairs: slice, edges: slice) -> Played:
        """Some pairs of the step with their edges, numbered from the first of them on."""
        own = self.among(pairs)
        ptr = self.ptr[own.start : own.stop + 1]
        mine = slice(ptr[0], ptr[-1])
        inside = self.pairs[own] - pairs.start, ptr - ptr[0], self.edges[mine] - edges.start
        return Played(*inside, self.times[mine], self.log_term)


NOT_PLAYED = Played(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0), 0.0)


class Arrivals:
    """Counts of the triplets that came."""

    def __init__(self, graph: LayeredGraph) -> None:
        self._edges: list[IntArray] = [np.empty(0, np.int64) for _ in graph.layers]  # rising; replaced, never changed
        self._times: list[IntArray] = [np.empty(0, np.int64) for _ in graph.layers]
        self._new: list[list[int]] = [[] for _ in graph.layers]

    def add(self, h: int, edges: Iterable[int]) -> None:
        """Count some edges of a step, as often as they are named."""
        self._new[h].extend(edges)

    def of(self, h: int) -> tuple[IntArray, IntArray]:
        """(the edges of a step that came, how often)."""
        if self._new[h]:
            more, times = np.unique(np.array(self._new[h]), return_counts=True)
            self._new[h].clear()
            edges = np.union1d(self._edges[h], more)
            counts = np.zeros(len(edges), np.int64)
            counts[np.searchsorted(edges, self._edges[h])] = self._times[h]
            counts[np.searchsorted(edges, more)] += times
            self._edges[h], self._times[h] = edges, counts
        return self._edges[h], self._times[h]

    def played(self, graph: LayeredGraph, failure_probability: float) -> tuple[Played, ...]:
        """H-1: the pairs that were played in each step; rays at whatever intensity, for which F only steers."""
        log_term = math.log(sum(layer.n_edges for layer in graph.layers) / failure_probability)
        return tuple(_played(layer, *self.of(h), log_term) for h, layer in enumerate(graph.layers))

    def doubled(self, then: Mapping[str, IntArray], graph: LayeredGraph) -> bool:
        """Was some pair played more often since than before? ``then``: :meth:`flat` at that time. Few plays do not
        count."""
        for h, layer in enumerate(graph.layers):
            edges, now = self.of(h)
            own = slice(*then["ptr"][h : h + 2])
            before = np.zeros(len(edges), np.int64)
            before[np.searchsorted(edges, then["edge"][own])] = then["times"][own]  # whatever came then came by now
            _, pair = np.unique(np.searchsorted(layer.pair_ptr, edges, side="right"), return_inverse=True)
            plays, known = np.bincount(pair, now), np.bincount(pair, before)
            if (plays - known > np.maximum(known, FEW)).any():
                return True
        return False

    # --- as arrays, for checkpoints ---------------------------------------------------------------------

    def flat(self) -> dict[str, IntArray]:
        """Where each step begins, the edges that came, how often."""
        edges, times = zip(*(self.of(h) for h in range(len(self._new))), strict=True)
        ptr = pointer_of(np.array([len(each) for each in edges]))
        return {"ptr": ptr, "edge": np.concatenate(edges), "times": np.concatenate(times)}

    def load(self, flat: Mapping[str, IntArray], graph: LayeredGraph) -> None:
        """What :meth:`flat` gave."""
        ptr, edges, times = (np.asarray(flat[name]) for name in ("ptr", "edge", "times"))
        whole = all(each.dtype.kind == "i" for each in (ptr, edges, times))
        if not (whole and len(ptr) == len(graph.layers) + 1 and ptr[0] == 0 and (np.diff(ptr) >= 0).all()):
            raise InvalidInput("the checkpoint is of another agent", where="came", got=f"{ptr.tolist()}")
        if not (ptr[-1] == len(edges) == len(times) and (times > 0).all()):
            raise InvalidInput("the checkpoint is of another agent", where="came", got=f"{len(edges)} triplets")
        for h, layer in enumerate(graph.layers):
            own = edges[ptr[h] : ptr[h + 1]]
            if len(own) and not (own[0] >= 0 and own[-1] < layer.n_edges and (np.diff(own) > 0).all()):
                raise InvalidInput("the checkpoint is of another agent", where=f"came, step {h}")
            self._edges[h], self._times[h] = own, times[ptr[h] : ptr[h + 1]]
            self._new[h].clear()


def _played(layer: Layer, came: IntArray, times: IntArray, log_term: float) -> Played:
    if not len(came):
        return NOT_PLAYED
    pairs = np.unique(np.searchsorted(layer.pair_ptr, came, side="right") - 1)
    edges, ptr = segments(layer.pair_ptr, pairs)
    counts = np.zeros(len(edges))
    counts[np.searchsorted(edges, came)] = times
    return Played(pairs, ptr, edges, counts, log_term)
