"""Arrivals: how often each triplet came, and so how likely it is at most (spec 5).

A triplet that came N times in n plays of its pair has a probability of at most 1.6·(N + ℓ)/n. With ℓ = log(E/p) this
holds for all E triplets at all times with probability 1 − p (docs/regret.md, Lemma 0). Where nothing else comes it
shrinks like 1/n, while what a regression of n rows says shrinks like 1/√n.
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

SURE = math.e / (math.e - 1.0)  # of Lemma 0
FEW = 16  # plays


@leaf
def _fill(ptr: IntArray, chance: FloatArray, worth: FloatArray, found: FloatArray) -> None:
    """By pair, in this order until a probability of 1 is used up."""
    for pair in range(found.shape[0]):
        left, total = 1.0, 0.0
        for i in range(ptr[pair], ptr[pair + 1]):
            weight = min(left, chance[i])
            total += weight * worth[i]
            left -= weight
        found[pair] = total


class Played(NamedTuple):
    """The pairs of a step that were played, and how likely each of their triplets is at most."""

    pairs: IntArray  # (P,)  rising
    ptr: IntArray  # (P+1,)  of their triplets, among the next two
    edges: IntArray  # (F,)  all triplets of these pairs
    chance: FloatArray  # (F,)  at most

    def expected(self, worth: FloatArray) -> FloatArray:
        """(P,) the most that can be expected where the triplets are worth so much (F,): as likely as they can be, the
        best first."""
        order = np.lexsort((-worth, np.repeat(np.arange(len(self.pairs)), np.diff(self.ptr))))
        found = np.empty(len(self.pairs))
        _fill(self.ptr, self.chance[order], worth[order], found)
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
        return Played(self.pairs[own] - pairs.start, ptr - ptr[0], self.edges[mine] - edges.start, self.chance[mine])


NOT_PLAYED = Played(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))


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
        """H-1: the pairs that were played in each step."""
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
    plays = np.repeat(np.add.reduceat(counts, ptr[:-1]), np.diff(ptr))
    return Played(pairs, ptr, edges, np.minimum(1.0, SURE * (counts + log_term) / plays))
