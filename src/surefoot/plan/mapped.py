"""Plans of a problem on the disk: every table is read once for each step that has it.

The results are those of :mod:`surefoot.plan.hope` and :mod:`surefoot.plan.directed`, bit for bit. V of a step needs V
of all the next one: so a table that steps share is read once for each of them, and that is all. What a step does with
its rows is done part by part, while the part is in the cache:

    bounds of its cost rows → certified and hopeful pairs → Q of both → the greedy pairs → what they are worth at least

What explores is known when it is known what for. Its values differ from V where certified pairs may lead to something
that has a bonus: parts of the table without such a pair are not read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.row_bounds import BLOCK, LOWER, UPPER, streamed
from surefoot.estimate.tables import sealed
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import Layer
from surefoot.model.problem import Problem
from surefoot.plan import directed
from surefoot.plan import kernels as sweeps
from surefoot.plan.certify import Certified, certified_by, certify
from surefoot.plan.directed import Explored
from surefoot.plan.hope import (
    Backward,
    Hope,
    NextStates,
    backward,
    hope,
    hope_of,
    in_the_step,
    last_ahead,
    least_worth,
)
from surefoot.plan.shares import Shares, shares_towards
from surefoot.plan.values import AtMost, Values, limits_of, most_to_come, optimistic_values, step_values, without_q
from surefoot.storage.read_ahead import Lent, ReadAhead, Room
from surefoot.threads import in_ranges, on_threads


class Mapped:
    """Makes one plan of a problem that lies on the disk."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: Sequence[ValueEllipsoid] = ()
        self._steps = list[Backward]()
        self._low = list[FloatArray]()
        self._last: NextStates | None = None
        self._rooms = deque[Room]()

    def bound_costs(self, data: CostData, confidence: CostConfidence, values: Sequence[ValueEllipsoid]) -> CostBounds:
        """Step 1. Rows are looked at where Steps 2 and 3 need them, in the hope that none contradicts another."""
        self._known = values
        return bound_costs(self._problem, data, confidence, look=self._backward)

    def _backward(self, bounds: CostBounds, rounding: FloatArray) -> bool:
        graph = self._problem.graph
        if not bounds.consistent:
            return False
        self._last = ahead = last_ahead(graph, bounds, self._problem.bounds)
        for h in reversed(range(len(graph.layers))):
            found = Backward.room(graph.layers[h])
            if not self._step(h, bounds, rounding, ahead, found):
                return False
            self._steps.insert(0, found)
            ahead = found.ahead
        return True

    def _step(self, h: int, bounds: CostBounds, rounding: FloatArray, ahead: NextStates, result: Backward) -> bool:
        """Writes Steps 1 to 3 of one step and what they are worth; False where bounds contradict each other."""
        layer, limits = self._problem.graph.layers[h], self._problem.bounds[h]
        cap, alike = most_to_come(self._problem.graph)[h], ahead.alike()
        table = streamed(bounds.upper[h])
        assert table is not None
        both = table.rows

        def work(own: slice, its: slice, rows: slice, part: Layer) -> bool:
            if not both.look_at(rows, part.cost_features, rounding):
                return False
            certified = certified_by(part, both.kept(UPPER, rows, limits), ahead.certified)
            hopeful = certified_by(part, both.kept(LOWER, rows, limits), ahead.hopeful)
            result.put(own, its, backward(part, certified, hopeful, ahead, self._known[h], cap, alike))
            return True

        return self._walk(layer, both.block, work)

    def hope(self, bounds: CostBounds) -> tuple[Certified, Hope]:
        """Steps 2 and 3, and what may still be had."""
        problem, graph = self._problem, self._problem.graph
        if not bounds.consistent:
            self._low.clear()  # of what is not certified after all
            certified = certify(graph, bounds, problem.bounds)
            return certified, hope(problem, bounds, certified, self._known)
        assert self._last is not None
        _, pairs, either, action, best_action = zip(*self._steps, strict=True)
        steps = [*(step.ahead for step in self._steps), self._last]
        self._low = [step.low for step in steps]
        self._steps.clear()  # the plan keeps less than is there
        return hope_of(problem, bounds, steps, pairs, either, action, best_action)

    shares = staticmethod(shares_towards)

    def exploring_values(
        self,
        problem: Problem,
        certified: Certified,
        known: tuple[ValueEllipsoid, ...],
        hoped: Hope,
        shares: Shares,
        weight: float,
    ) -> Explored:
        """As :func:`surefoot.plan.directed.exploring_values`."""
        sweep = partial(self._values, hoped.sure) if self._low else optimistic_values
        return directed.exploring_values(problem, certified, known, hoped, shares, weight, sweep)

    def _values(
        self,
        sure: Values,
        graph: LayeredGraph,
        allowed: Certified,
        bonus: Sequence[FloatArray],
        known: Sequence[ValueEllipsoid],
        caps: Sequence[float],
        last_bonus: FloatArray,
        at_most: AtMost,
    ) -> Values:
        """As :func:`surefoot.plan.values.optimistic_values` of certified pairs, and what they are worth at least: by V
        and its policy, ``sure``, which they differ from where something may lead to a bonus."""
        ends, most = graph.terminal.reward, most_to_come(graph)
        last = sure.value[-1]
        if last_bonus.any():
            last = np.where(allowed.states[-1], ends + last_bonus, 0.0)
        steps, before = [_OfStates(last, ends, np.empty(0, np.int64), last != sure.value[-1])], list[_Low]()
        try:
            for h in reversed(range(len(graph.layers))):
                layer, pairs, ahead = graph.layers[h], allowed.pairs[h], steps[0]
                here = _OfStates.beside(sure.value[h], self._low[h], sure.action[h])
                limits = at_most(h, ahead.value)
                marked = bonus[h] != 0.0
                marked[limits[0]] = True
                affected = _affected(layer, marked, pairs, ahead.differs)
                affected |= here.value >= most[h]  # which is no limit here

                work = partial(_explore, here, before, pairs, bonus[h], limits, known[h], caps[h], ahead)
                self._walk(layer, BLOCK, work, affected)
                steps.insert(0, here)
            value, _, action, _ = zip(*steps, strict=True)
            return without_q(graph, Values((), tuple(bonus), value, action[:-1], steps[0].low.copy()))
        finally:
            for low, own, was in before:  # another ω begins from V again
                low[own] = was

    def _walk(self, layer: Layer, rows: int, work: Callable[..., object], states: BoolArray | None = None) -> bool:
        """``work`` of its parts (as :meth:`Layer.part` gives them), or of what they have of these states, on threads;
        the next ones are read from the disk meanwhile. → False once it has said so."""
        cuts = layer.cuts(rows) if states is None else _around(states, layer.cuts(rows))

        def of(part: Lent[Any]) -> object:
            with part as found:
                return work(*found)

        with ReadAhead(layer.arrays(), self._rooms) as reading:
            return on_threads(reading.parts(cuts, lambda cut, read: layer.part(*cut, read)), of)


def _around(states: BoolArray, cuts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Of each cut, what lies between the first and the last of these states."""
    for first, end in cuts:
        own = np.flatnonzero(states[first:end])
        if len(own):
            yield first + int(own[0]), first + int(own[-1]) + 1


class _OfStates(NamedTuple):
    """The values that explore, of the states of a step."""

    value: FloatArray
    low: FloatArray  # no less is expected from their policy
    action: IntArray
    differs: BoolArray  # from V, or what that is worth at least

    @staticmethod
    def beside(of_v: FloatArray, low: FloatArray, policy: IntArray) -> _OfStates:
        """Copies of V and its policy; what that is worth at least is written over, and put back in the end."""
        value, action = np.empty_like(of_v), np.empty_like(policy)

        def some(first: int, end: int) -> None:
            value[first:end], action[first:end] = of_v[first:end], policy[first:end]

        in_ranges(len(value), len(value) >= sweeps.WORTH_THREADS, some)
        return _OfStates(value, low, action, np.zeros(len(value), bool))


class _Low(NamedTuple):
    """What was known of the worth of some states before it was written over."""

    low: FloatArray
    own: slice
    was: FloatArray


def _explore(
    here: _OfStates,  # as V; written
    before: list[_Low],  # likewise
    pairs: BoolArray,  # (N,)
    bonus: FloatArray,  # (N,)
    limits: tuple[IntArray, FloatArray],  # on what follows some pairs
    known: ValueEllipsoid,
    cap: float,
    ahead: _OfStates,
    own: slice,
    its: slice,
    _: slice,
    part: Layer,
) -> None:
    """A part of a step."""
    mine = slice(*np.searchsorted(limits[0], (its.start, its.stop)))
    most = limits_of(part.n_pairs, limits[0][mine] - its.start, limits[1][mine])
    value, action = step_values(part, pairs[its], bonus[its], known, cap, ahead.value, most)[1:]
    low = least_worth(part, action, known, ahead.low)
    here.differs[own] = (value != here.value[own]) | (low != here.low[own])
    before.append(_Low(here.low, own, here.low[own].copy()))
    here.value[own], here.low[own], here.action[own] = value, low, in_the_step(action, its.start)


def _affected(layer: Layer, marked: BoolArray, pairs: BoolArray, following: BoolArray) -> BoolArray:
    """(S,) states with one of these pairs that is marked, or may lead to a marked state."""
    states = np.empty(layer.n_states, bool)
    graph = map(sealed, (layer.state_ptr, layer.pair_ptr, layer.successor))
    sweeps.led_to(layer.n_edges, *graph, marked, sealed(pairs), following, states)
    return states
