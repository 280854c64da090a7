"""The audit's own transcription of spec 4: what is certified, surely and possibly, from the bounds of spec 3.

Part of the audit: imports nothing of surefoot.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from surefoot.audits.bounds import Bounds, Confidence, Data, Ellipsoids
from surefoot.audits.problem import NONE, Problem
from surefoot.audits.rays import Opened, opened

CONTRADICTION = 1e-9  #: of a limit's scale: a lower bound above its upper by more than this is a contradiction


@dataclass(frozen=True, eq=False)
class Sets:
    """What is certified, surely or possibly: a flag per pair of each layer, and per state (the last layer included)."""

    pairs: list[list[bool]]
    states: list[list[bool]]


@dataclass(frozen=True, eq=False)
class Plan:
    """Bounds and certified sets at one moment."""

    rows: list[Bounds]
    last: Bounds | None
    sure: Sets
    possible: Sets
    surely_consistent: bool
    possibly_consistent: bool
    at: Callable[[int, Any], Bounds]  # (step, rows): the bounds of other rows than the graph's

    def with_pair_at(self, problem: Problem, h: int, pair: int, intensity: Any) -> Plan:
        """The plan with one ray at the intensity at which it was offered (spec 9): certified there, or not. Other
        actions have none to choose."""
        layer = problem.layers[h]
        if not layer.can_have(pair, intensity):
            raise ValueError(f"no intensity of action number {pair} of step {h}: {intensity!r}")
        if pair not in layer.rays:
            return self
        own = layer.pair_rows(pair)
        there, rows = self.at(h, layer.rows_at(pair, intensity)), self.rows[h]
        parts = [np.array(table) for table in (rows.upper, rows.lower, rows.slop)]
        for table, new in zip(parts, (there.upper, there.lower, there.slop), strict=True):
            table[own] = new
        changed = Bounds(*parts)
        after = layer.successor[layer.pair_ptr[pair] : layer.pair_ptr[pair + 1]]
        found = []
        for sets, side, consistent in (
            (self.sure, 1.0, self.surely_consistent),
            (self.possible, -1.0, self.possibly_consistent),
        ):
            here = list(sets.pairs[h])
            keeps = all(kept(problem, h, there, side)) and all(sets.states[h + 1][s] for s in after)
            here[pair] = consistent and keeps and not layer.of_forbidden(pair)
            found.append(replace(sets, pairs=[*sets.pairs[:h], here, *sets.pairs[h + 1 :]]))
        return replace(self, rows=[*self.rows[:h], changed, *self.rows[h + 1 :]], sure=found[0], possible=found[1])

    def certified_at(self, problem: Problem, h: int, pair: int | None, intensity: Any) -> tuple[bool, bool]:
        """Is a pair certified at the intensity at which it was played, surely and possibly?"""
        if pair is None:
            if intensity is not None:
                raise ValueError(f"an intensity of an action that is not known: {intensity!r}")
            return False, False
        plan = self.with_pair_at(problem, h, pair, intensity)
        return plan.sure.pairs[h][pair], plan.possible.pairs[h][pair]


def make_plan(problem: Problem, data: Data, confidence: Confidence) -> Plan:
    """Spec 3 and 4 for the data at hand."""
    n = 1 if problem.stationary else problem.horizon
    known = [Ellipsoids(problem, data, r, confidence) for r in range(n)]
    done: dict[tuple[int, int], Bounds] = {}  # layers that share features, regression and anchor share the work

    def bounds(h: int, x: Any) -> Bounds:
        r = 0 if problem.stationary else h
        if (r, id(x)) not in done:
            done[r, id(x)] = known[r].bounds(h, x)
        return done[r, id(x)]

    own = [_opened(problem, known[0 if problem.stationary else h], h) for h in range(problem.horizon - 1)]
    rows = [
        bounds(h, layer.x) if rays is None else known[0 if problem.stationary else h].bounds(h, rays.x)
        for h, (layer, rays) in enumerate(zip(problem.layers, own, strict=True))
    ]
    surely_kept, possibly_kept = (
        [
            kept(problem, h, each, side) if rays is None else rays.kept(side)
            for h, (each, rays) in enumerate(zip(rows, own, strict=True))
        ]
        for side in (1.0, -1.0)
    )
    last = None if problem.last_x is None else bounds(problem.horizon - 1, problem.last_x)
    everything = [*rows]
    if last is not None:
        costed = np.array(problem.has_cost)
        everything.append(Bounds(last.upper[costed], last.lower[costed], last.slop[costed]))
    surely, possibly = (all(_consistent(problem, each, side) for each in everything) for side in (-1.0, 1.0))
    return Plan(
        rows=rows,
        last=last,
        sure=certified(problem, surely_kept, last, 1.0) if surely else fallback_only(problem),
        possible=certified(problem, possibly_kept, last, -1.0) if possibly else fallback_only(problem),
        surely_consistent=surely,
        possibly_consistent=possibly,
        at=lambda h, x: known[0 if problem.stationary else h].bounds(h, x),
    )


def _consistent(problem: Problem, bounds: Bounds, side: float) -> bool:
    """lower ≤ upper everywhere, but for rounding; a NaN is a contradiction."""
    room = CONTRADICTION * np.array(problem.scales) + side * bounds.slop
    with np.errstate(invalid="ignore"):
        return bool(np.all(bounds.lower <= bounds.upper + np.maximum(room, 0.0)))


def kept(problem: Problem, h: int, bounds: Bounds, side: float) -> list[bool]:
    """Per row of layer h: does every upper bound keep its limit? side 1: surely, −1: possibly."""
    limit = np.array(problem.bounds[h])
    found: list[bool] = np.all(bounds.upper + side * bounds.slop <= limit, axis=1).tolist()
    return found


def _opened(problem: Problem, known: Ellipsoids, h: int) -> Opened | None:
    """What is certified of the rows of a layer with rays; None without any."""
    layer = problem.layers[h]
    if layer.x0 is None:
        return None

    def bounds(x: Any) -> tuple[Any, Any]:
        found = known.bounds(h, x)
        return found.upper, found.slop

    lines, limits = partial(known.lines, h), np.array(problem.bounds[h])
    return opened((layer.x0, layer.x), np.array(layer.row_pairs()), limits, lines, bounds)


def certified(problem: Problem, keeps: list[list[bool]], last: Bounds | None, side: float) -> Sets:
    """Backward: every cost row keeps every limit (``keeps``, by layer and row) and every successor is certified; the
    fallback always is, a forbidden state never."""
    n_last = len(problem.has_cost)
    kept_last = [True] * n_last if last is None else kept(problem, problem.horizon - 1, last, side)
    ends = [kept_last[s] or not problem.has_cost[s] or problem.fallback_ends[s] for s in range(n_last)]
    states = [[ends[s] and s not in problem.last_forbidden for s in range(n_last)]]
    pairs: list[list[bool]] = []
    for h in reversed(range(problem.horizon - 1)):
        layer, own, after = problem.layers[h], keeps[h], states[0]
        safe = [
            all(
                after[layer.successor[e]] and all(own[r] for r in layer.rows(p, e))
                for e in range(layer.pair_ptr[p], layer.pair_ptr[p + 1])
            )
            for p in range(len(layer.pair_ptr) - 1)
        ]
        for pair in layer.fallback:
            if pair != NONE:
                safe[pair] = True
        for state in layer.forbidden:
            first, end = layer.state_ptr[state], layer.state_ptr[state + 1]
            safe[first:end] = [False] * (end - first)
        pairs.insert(0, safe)
        states.insert(0, _with_a_pair(layer.state_ptr, safe))
    return Sets(pairs, states)


def fallback_only(problem: Problem) -> Sets:
    """What is left when bounds contradict each other."""
    pairs = [[p in set(layer.fallback) for p in range(len(layer.pair_ptr) - 1)] for layer in problem.layers]
    states = [_with_a_pair(layer.state_ptr, row) for layer, row in zip(problem.layers, pairs, strict=True)]
    return Sets(pairs, [*states, problem.fallback_ends])


def _with_a_pair(state_ptr: list[int], safe: list[bool]) -> list[bool]:
    return [any(safe[first:end]) for first, end in itertools.pairwise(state_ptr)]
