"""The audit's own transcription of spec 4: what is certified, given the bounds of spec 3.

Everything is computed twice, as what is *surely* and what is *possibly* certified. The two differ only by rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.audits.bounds import POSSIBLY, SURELY, Bounds, Confidence, Data, Ellipsoids
from surefoot.audits.problem import NONE, Problem
from surefoot.audits.rays import largest_kept, mixed

CONTRADICTION = 1e-9  #: of a limit's scale: a lower bound above its upper by more than this is a contradiction


@dataclass(frozen=True, eq=False)
class Sets:
    """What is certified, surely or possibly: a flag per pair of each layer, and per state (the last layer included)."""

    side: float  # SURELY or POSSIBLY
    consistent: bool  # no bounds contradict each other
    pairs: list[list[bool]]
    states: list[list[bool]]


@dataclass(frozen=True, eq=False)
class Plan:
    """Bounds and certified sets at one moment."""

    problem: Problem
    rows: list[Bounds]
    last: Bounds | None
    sure: Sets
    possible: Sets
    at: Callable[[int, Any], Bounds]  # (step, rows): the bounds of other rows than the graph's

    @property
    def both(self) -> tuple[Sets, Sets]:
        return self.sure, self.possible

    def proves(self, sets: Sets, h: int, bounds: Bounds, after: Iterable[int]) -> bool:
        """Do these rows keep every limit, and is every state that may follow certified?"""
        keeps = sets.consistent and bounds.keep(self.problem.bounds[h], sets.side).all()
        return bool(keeps and all(sets.states[h + 1][state] for state in after))

    def with_pair_at(self, h: int, pair: int, intensity: Any) -> Plan:
        """The plan with one ray at the intensity that was offered (spec 9); other actions have no choice of one."""
        layer = self.problem.layers[h]
        if not layer.can_have(pair, intensity):
            raise ValueError(f"no intensity of action number {pair} of step {h}: {intensity!r}")
        if pair not in layer.rays:
            return self
        there, own = self.at(h, layer.rows_at(pair, intensity)), layer.pair_rows(pair)
        parts = [np.array(table) for table in self.rows[h].tables]
        for table, new in zip(parts, there.tables, strict=True):
            table[own] = new
        found = []
        for sets in self.both:
            here = list(sets.pairs[h])
            here[pair] = self.proves(sets, h, there, layer.after(pair)) and not layer.of_forbidden(pair)
            found.append(replace(sets, pairs=[*sets.pairs[:h], here, *sets.pairs[h + 1 :]]))
        rows = [*self.rows[:h], Bounds(*parts), *self.rows[h + 1 :]]
        return replace(self, rows=rows, sure=found[0], possible=found[1])

    def certified_at(self, h: int, pair: int | None, intensity: Any) -> tuple[bool, bool]:
        """Is a pair certified at the intensity at which it was played, surely and possibly?"""
        if pair is None:
            if intensity is not None:
                raise ValueError(f"an intensity of an action that is not known: {intensity!r}")
            return False, False
        plan = self.with_pair_at(h, pair, intensity)
        return plan.sure.pairs[h][pair], plan.possible.pairs[h][pair]


def make_plan(problem: Problem, data: Data, confidence: Confidence) -> Plan:
    """Spec 3 and 4 for the data at hand."""
    known = [Ellipsoids(problem, data, r, confidence) for r in range(1 if problem.stationary else problem.horizon)]
    done: dict[tuple[int, int], Bounds] = {}

    def at(h: int, x: Any) -> Bounds:
        return known[0 if problem.stationary else h].bounds(h, x)

    def once(h: int, x: Any) -> Bounds:  # layers that share features, regression and anchor share the work
        key = (0 if problem.stationary else h, id(x))
        if key not in done:
            done[key] = at(h, x)
        return done[key]

    rows: list[Bounds] = []
    keeps: dict[float, list[list[bool]]] = {SURELY: [], POSSIBLY: []}
    for h, layer in enumerate(problem.layers):
        if layer.x0 is None:
            rows.append(once(h, layer.x))
            sure, possible = (rows[h].keep(problem.bounds[h], side) for side in (SURELY, POSSIBLY))
        else:
            x, sure, possible = _opened(problem, known[0 if problem.stationary else h], h)
            rows.append(at(h, x))
        keeps[SURELY].append(sure.tolist())
        keeps[POSSIBLY].append(possible.tolist())
    last = None if problem.last_x is None else once(problem.horizon - 1, problem.last_x)
    costed = [] if last is None else [last.part(np.array(problem.has_cost))]

    def sets(side: float) -> Sets:
        consistent = all(_consistent(problem, each, -side) for each in (*rows, *costed))
        found = certified(problem, keeps[side], last, side) if consistent else fallback_only(problem)
        return Sets(side, consistent, *found)

    return Plan(problem, rows, last, sets(SURELY), sets(POSSIBLY), at)


def _consistent(problem: Problem, bounds: Bounds, side: float) -> bool:
    """lower ≤ upper everywhere, but for rounding; a NaN is a contradiction."""
    room = CONTRADICTION * np.array(problem.scales) + side * bounds.slop
    with np.errstate(invalid="ignore"):
        return bool(np.all(bounds.lower <= bounds.upper + np.maximum(room, 0.0)))


def _opened(problem: Problem, known: Ellipsoids, h: int) -> tuple[Any, Any, Any]:
    """(rows, d) of a layer with rays, each pair at an intensity at which it surely keeps its limits, or at 0; and which
    rows surely, and which possibly, keep them at some intensity.

    A pair is surely certified at one intensity that all its rows have, and possibly when each row has some.
    """
    layer, limits = problem.layers[h], np.array(problem.bounds[h])
    zero, one, pair_of = layer.x0, layer.x, np.array(layer.row_pairs())
    at_zero, along = known.bounds(h, zero), known.lines(h, zero, one)
    slop = np.maximum(at_zero.slop, known.bounds(h, one).slop)
    found = largest_kept(along, limits - 1.5 * slop)
    alpha = np.ones(int(pair_of.max()) + 1)
    np.minimum.at(alpha, pair_of, np.maximum(found, 0.0))
    x = mixed(zero, one, alpha[pair_of])
    fails = np.zeros(len(alpha), bool)
    np.logical_or.at(fails, pair_of, ~known.bounds(h, x).keep(limits, SURELY))
    closed = fails[pair_of]  # then at intensity 0, or not at all
    sure = ~closed | at_zero.keep(limits, SURELY)
    possible = sure | at_zero.keep(limits, POSSIBLY) | (largest_kept(along, limits + slop) >= 0.0)
    return np.where(closed[:, None], zero, x), sure, possible


_Flags = list[list[bool]]


def certified(problem: Problem, keeps: _Flags, last: Bounds | None, side: float) -> tuple[_Flags, _Flags]:
    """(pairs, states), backward: every cost row keeps every limit (``keeps``, by layer and row) and every successor is
    certified; the fallback always is, a forbidden state never."""
    n_last = len(problem.has_cost)
    kept_last = [True] * n_last if last is None else last.keep(problem.bounds[-1], side).tolist()
    ends = [kept_last[s] or not problem.has_cost[s] or problem.fallback_ends[s] for s in range(n_last)]
    states = [[ends[s] and s not in problem.last_forbidden for s in range(n_last)]]
    pairs: _Flags = []
    for layer, own in zip(reversed(problem.layers), reversed(keeps), strict=True):
        safe = [
            all(states[0][s] for s in layer.after(p)) and all(own[layer.pair_rows(p)])
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
    return pairs, states


def fallback_only(problem: Problem) -> tuple[_Flags, _Flags]:
    """What is left when bounds contradict each other."""
    pairs = [[p in set(layer.fallback) for p in range(len(layer.pair_ptr) - 1)] for layer in problem.layers]
    states = [_with_a_pair(layer.state_ptr, row) for layer, row in zip(problem.layers, pairs, strict=True)]
    return pairs, [*states, problem.fallback_ends]


def _with_a_pair(state_ptr: list[int], safe: list[bool]) -> list[bool]:
    return [any(safe[first:end]) for first, end in itertools.pairwise(state_ptr)]
