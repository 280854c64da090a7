"""One process's part of a plan: everything that needs the rows of the states it owns.

It holds its part of every step and answers questions step by step, given what is known about the next one: what is
certified, what is hopeful, what they are worth, what may be met. Answers are about its own states only. It calls the
functions that a plan in one process calls, on its own part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.arrivals import Played
from surefoot.estimate.costs import bound_all
from surefoot.estimate.ellipsoids import CostEllipsoids
from surefoot.estimate.families import Family
from surefoot.estimate.row_bounds import LOWER, UPPER, RowBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.graph import Anchors
from surefoot.model.layer import NO_ACTION, Layer
from surefoot.plan.certify import certified_by
from surefoot.plan.hope import NextStates, backward, followed, least_worth, played
from surefoot.plan.segments import segment_any, spread
from surefoot.plan.shares import (
    OfPlayed,
    RowView,
    Targets,
    Tells,
    bonus_by_pair,
    failing_rows,
    of_played,
    told_by,
)
from surefoot.plan.values import limits_of, step_values
from surefoot.threads import one_blas_thread


class Range(NamedTuple):
    first: int
    end: int

    @property
    def all(self) -> slice:
        return slice(self.first, self.end)

    @property
    def size(self) -> int:
        return self.end - self.first


class Extent(NamedTuple):
    """One process's part of a step, as indices within the whole step."""

    states: Range
    pairs: Range
    edges: Range
    rows: Range


def extents(layer: Layer, blocks: int) -> list[Extent]:
    """A step cut into parts with about equally many triplets; some may have no states."""
    cuts = np.searchsorted(layer.edge_ptr, np.linspace(0, layer.n_edges, blocks + 1)[1:-1])
    found = []
    for first, end in pairwise([0, *cuts.tolist(), layer.n_states]):
        pairs = Range(int(layer.state_ptr[first]), int(layer.state_ptr[end]))
        edges, rows = (Range(int(p[pairs.first]), int(p[pairs.end])) for p in (layer.pair_ptr, layer.row_ptr))
        found.append(Extent(Range(first, end), pairs, edges, rows))
    return found


class ProblemFacts(NamedTuple):
    """What every process knows about the problem."""

    limits: FloatArray  # (H, m)
    slack: FloatArray  # (H, m)
    most: list[float]  # H-1: R_h
    families: tuple[Family, ...]
    regression: list[int]  # H-1: of the first family
    anchors: tuple[Anchors | None, ...]  # H


class OwnStates(NamedTuple):
    """The same for a block's own states; pairs are counted from its first one, and marks of pairs are packed bits."""

    ahead: NextStates
    action: IntArray
    best_action: IntArray
    certified_pairs: NDArray[np.uint8]
    hopeful_pairs: NDArray[np.uint8]


class Met(NamedTuple):
    """One step forward."""

    hoped: NDArray[np.uint8]  # packed: states of the next step that V̄'s policy may meet
    certified: NDArray[np.uint8]  # packed: that certified pairs may meet
    targets: Targets


class Scored(NamedTuple):
    """What own rows tell."""

    most: float  # the largest score of a pair that was not played
    of_played: list[OfPlayed]  # scores of the others, by step


class Exploring(NamedTuple):
    """What is asked of a step of the values that explore."""

    weight: float  # ω
    most: float  # the largest score
    cap: float
    bonus: FloatArray  # (P,) of own pairs that were played
    limits: FloatArray  # (P,) on what follows them


class ExploringStep(NamedTuple):
    """One step of the values that explore; of own states."""

    value: FloatArray
    low: FloatArray
    action: IntArray
    bonus: FloatArray  # of own pairs


@dataclass(frozen=True, eq=False)
class _Part:
    """This process's part of a step; successors are counted from the first that is known here."""

    extent: Extent
    layer: Layer
    next: Range  # states of the next step


def timed(method: Callable[..., Any]) -> Callable[..., tuple[float, Any]]:
    """→ (seconds that it took here, the answer)."""

    @wraps(method)
    def run(*words: Any) -> tuple[float, Any]:
        began = time.perf_counter()
        with one_blas_thread():
            found = method(*words)
        return time.perf_counter() - began, found

    return run


class Block:
    """The states of every step that one process owns. Lives on a Dask worker, as an actor."""

    def __init__(self, declared: ProblemFacts) -> None:
        self._declared = declared
        self._arrays: dict[str, NDArray[Any]] = {}
        self._next: dict[str, Range] = {}
        self._parts: list[_Part] = []
        self._bounds: list[RowBounds] = []
        self._values: Sequence[ValueEllipsoid] = ()
        n = len(declared.most)
        self._certified: list[Any] = [None] * n  # (N,) masks
        self._sure: list[Any] = [None] * n  # (S,) actions
        self._best: list[Any] = [None] * n
        self._explored: list[Any] = [None] * n
        self._met: list[Any] = [None] * n  # cost rows that certified pairs may meet
        self._told: list[Tells] = []
        self._played: Sequence[Played] = ()

    # --- what it holds ----------------------------------------------------------------------------------

    def receive(self, name: str, piece: NDArray[Any], at: int, length: int) -> None:
        """Receive some entries of an array, which comes in pieces."""
        if name not in self._arrays:
            self._arrays[name] = np.empty((length, *piece.shape[1:]), piece.dtype)
        self._arrays[name][at : at + len(piece)] = piece

    def begin_step(self, extent: Extent, names: dict[str, str]) -> Range:
        """Make the next step from these arrays, by the layer's field. → the states that may follow."""
        found = {field: self._arrays[name] for field, name in names.items()}
        following = names["successor"]
        if following not in self._next:
            array = self._arrays[following]
            low, high = (int(array.min()), int(array.max()) + 1) if len(array) else (0, 0)
            array -= array.dtype.type(low)
            self._next[following] = Range(low, high)
        table, first = found.pop("table"), extent.pairs.first
        pair_ptr = found["pair_ptr"] - extent.edges.first
        fallback = found["fallback"]
        layer = Layer(
            state_ptr=found["state_ptr"] - first,
            pair_ptr=pair_ptr,
            successor=found["successor"],
            reward=found["reward"],
            cost_features=table,
            transition_features=found.get("transition_features", table),
            fallback=np.where(fallback == NO_ACTION, NO_ACTION, fallback - first),
            row_ptr=found["row_ptr"] - extent.rows.first if "row_ptr" in found else pair_ptr,
            forbidden=found["forbidden"],
        )
        self._parts.append(_Part(extent, layer, self._next[following]))
        return self._next[following]

    # --- one plan ---------------------------------------------------------------------------------------

    @timed
    def look(
        self,
        known: dict[int, list[CostEllipsoids]],
        values: Sequence[ValueEllipsoid],
        rounding: FloatArray,
    ) -> bool:
        """Step 1: go through all rows once. → True if no bound contradicts another."""
        declared, done = self._declared, dict[tuple[int, int], RowBounds]()
        self._values, self._bounds, fine = values, [], True
        for h, part in enumerate(self._parts):
            r = declared.regression[h]
            key = r, id(part.layer.cost_features)
            if key not in done:
                anchors, families = declared.anchors[h], declared.families
                bounding = partial(bound_all, anchors=anchors, known=known[r], families=families)
                done[key] = RowBounds(part.layer.cost_features, declared.limits[:-1], bounding)
                fine &= done[key].look(rounding)
            self._bounds.append(done[key])
        return fine

    @timed
    def backward(self, h: int, ahead: NextStates, consistent: bool) -> OwnStates:
        """Steps 2 and 3 of one step, and what they are worth."""
        layer = self._parts[h].layer
        sets, cap = self._sets(h, ahead, consistent), self._declared.most[h]
        found = backward(layer, *sets, ahead, self._values[h], cap, ahead.alike())
        self._certified[h], self._sure[h], self._best[h] = found.pairs, found.action, found.best_action
        action, best_action = (
            each.astype(np.int32) for each in (found.action, found.best_action)
        )  # small messages travel fast
        return OwnStates(found.ahead, action, best_action, np.packbits(found.pairs), np.packbits(found.either))

    def _sets(
        self, h: int, ahead: NextStates, consistent: bool
    ) -> tuple[tuple[BoolArray, BoolArray], tuple[BoolArray, BoolArray]]:
        """Pairs and states that are certified, and that are not refuted."""
        layer, limits = self._parts[h].layer, self._declared.limits[h]
        if not consistent:
            pairs, allowed = layer.played_by_fallback(), ~layer.forbidden
            return (pairs, segment_any(pairs, layer.state_ptr)), (spread(allowed, layer.state_ptr), allowed)
        upper, lower = (self._bounds[h].kept(side, slice(0, layer.n_rows), limits) for side in (UPPER, LOWER))
        return certified_by(layer, upper, ahead.certified), certified_by(layer, lower, ahead.hopeful)

    @timed
    def forward(self, h: int, hoped: BoolArray, certified: BoolArray) -> Met:
        """From states that V̄'s policy and certified pairs meet, both of all states that are held here."""
        part, layer, declared = self._parts[h], self._parts[h].layer, self._declared
        rows, next_hoped = followed(layer, played(layer, self._best[h][hoped]), hoped, part.next.size)
        self._met[h], next_certified = followed(layer, self._certified[h], certified, part.next.size)
        rows = rows[~self._certified[h][layer.pairs_of_rows(rows)]]
        upper, _ = self._bounds[h].of(rows)
        found = failing_rows(h, rows + part.extent.rows.first, upper, declared.limits[h], declared.slack[h])
        return Met(np.packbits(next_hoped), np.packbits(next_certified), found.nearest())

    @timed
    def score(self, seen: Sequence[Sequence[RowView]], least: float, played: Sequence[Played]) -> Scored:
        """Score the rows that may be met by what they tell about the targets. ``played``: by step, own pairs that were,
        counted from the first."""
        self._told, self._played, most, found = [], played, 0.0, list[OfPlayed]()
        for part, met, views, own in zip(self._parts, self._met, seen[:-1], played, strict=True):
            told = told_by(part.layer.cost_features, met, views, least)
            mine, others = of_played(part.layer, own, told.rows, told.score)
            most = max(most, others)
            found.append(mine)
            self._told.append(told)
        return Scored(most, found)

    @timed
    def explore(self, h: int, value: FloatArray, low: FloatArray, asked: Exploring) -> ExploringStep:
        """One step of r + ω · share over certified pairs."""
        layer, known, told, pairs = self._parts[h].layer, self._values[h], self._told[h], self._played[h].pairs
        bonus = bonus_by_pair(layer, told.rows, asked.weight * (told.score / asked.most), pairs, asked.bonus)
        limits = limits_of(layer.n_pairs, pairs, asked.limits)
        _, best, action = step_values(layer, self._certified[h], bonus, known, asked.cap, value, limits)
        self._explored[h] = action
        return ExploringStep(best, least_worth(layer, action, known, low), action.astype(np.int32), bonus)

    @timed
    def same(self, h: int, here: BoolArray) -> tuple[bool, NDArray[np.uint8]]:
        """(exploring plays as V does in these states, those of the next step that it may meet, packed)."""
        part = self._parts[h]
        alike = np.array_equal(self._explored[h][here], self._sure[h][here])
        _, there = followed(part.layer, played(part.layer, self._explored[h][here]), here, part.next.size)
        return alike, np.packbits(there)
