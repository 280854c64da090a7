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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze
from surefoot.model.features import Features, largest_norm, row_distances, row_norms
from surefoot.model.layer import PART, Layer, Rays, Terminal
from surefoot.model.sparse_rows import arrays_of

OUTSIDE = 0  #: in every layer but the first of a growing graph: the state, and its pair, for all that is not expanded


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
