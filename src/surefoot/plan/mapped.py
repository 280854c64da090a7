"""Plans of a problem on the disk: every table is read once for each step that has it.

The results are those of :mod:`surefoot.plan.hope` and :mod:`surefoot.plan.directed`, bit for bit. V of a step needs V
of all the next one: so a table that steps share is read once for each of them, and that is all. What a step does with
its rows is done part by part, while the part is in the cache:

    bounds of its cost rows → certified and hopeful pairs → Q of both → the greedy pairs → what they are worth at least

What explores is known when it is known what for. Its values differ from V where certified pairs may lead to something
that has a bonus: parts of the table without such a pair are not read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.row_bounds import BLOCK, streamed
from surefoot.estimate.update import sealed
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.graph import BoolArray, FloatArray, IntArray, Layer, LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan import directed
from surefoot.plan import kernels as sweeps
from surefoot.plan.certify import Certified, certified_by, certify
from surefoot.plan.directed import Explored, Shares
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
from surefoot.plan.values import Values, most_to_come, step_values, without_q
from surefoot.storage.read_ahead import ReadAhead


class Mapped:
    """Makes one plan of a problem that lies on the disk."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: Sequence[ValueEllipsoid] = ()
        self._steps = list[Backward]()
        self._low = list[FloatArray]()
        self._last: NextStates | None = None

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
            found = self._step(h, bounds, rounding, ahead)
            if found is None:
                return False
            self._steps.insert(0, found)
            ahead = found.ahead
        return True

    def _step(self, h: int, bounds: CostBounds, rounding: FloatArray, ahead: NextStates) -> Backward | None:
        """Steps 1 to 3 of one step and what they are worth; None where bounds contradict each other."""
        layer, limits = self._problem.graph.layers[h], self._problem.bounds[h]
        cap, alike = most_to_come(self._problem.graph)[h], ahead.alike()
        upper, lower = (streamed(table[h]) for table in (bounds.upper, bounds.lower))
        assert upper is not None
        assert lower is not None
        result = Backward.room(layer)
        for own, its, rows, part in _walked(layer, upper.block):
            if not upper.rows.look(rounding, rows.stop):
                return None
            certified = certified_by(part, upper.kept(rows, limits), ahead.certified)
            hopeful = certified_by(part, lower.kept(rows, limits), ahead.hopeful)
            result.put(own, its, backward(part, certified, hopeful, ahead, self._known[h], cap, alike))
        return result

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

    shares = staticmethod(directed.shares)

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
        sweep = partial(self._values, hoped.sure)
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
    ) -> Values:
        """As :func:`surefoot.plan.values.optimistic_values` of certified pairs, and what they are worth at least: by V
        and its policy, ``sure``, which they differ from where something may lead to a bonus."""
        ends, most = graph.terminal.reward, most_to_come(graph)
        value, low, action = [np.where(allowed.states[-1], ends + last_bonus, 0.0)], ends, list[IntArray]()
        differs = value[0] != sure.value[-1]
        for h in reversed(range(len(graph.layers))):
            layer, pairs = graph.layers[h], allowed.pairs[h]
            here, chosen, least = self._of_sure(h, layer, sure)
            affected = _affected(layer, bonus[h], pairs, differs)
            affected |= here >= most[h]  # which is no limit here
            for own, its, _, part in _walked(layer, BLOCK, affected):
                _, here[own], found = step_values(part, pairs[its], bonus[h][its], known[h], caps[h], value[0])
                chosen[own], least[own] = in_the_step(found, its.start), least_worth(part, found, known[h], low)
            differs = (here != sure.value[h]) | (least != self._low[h]) if self._low else np.ones(len(here), bool)
            value.insert(0, here)
            action.insert(0, chosen)
            low = least
        return without_q(graph, Values((), tuple(bonus), tuple(value), tuple(action), low))

    def _of_sure(self, h: int, layer: Layer, sure: Values) -> tuple[FloatArray, IntArray, FloatArray]:
        """V, its policy, and what that is worth at least; V = ∞ where the last is not known."""
        if not self._low:
            n = layer.n_states
            return np.full(n, np.inf), np.empty(n, np.int64), np.empty(n)
        return sure.value[h].copy(), sure.action[h].copy(), self._low[h].copy()


def _affected(layer: Layer, bonus: FloatArray, pairs: BoolArray, following: BoolArray) -> BoolArray:
    """(S,) states with one of these pairs that has a bonus, or may lead to a marked state."""
    states = np.empty(layer.n_states, bool)
    graph = map(sealed, (layer.state_ptr, layer.pair_ptr, layer.successor))
    sweeps.led_to(layer.n_edges, *graph, bonus, sealed(pairs), following, states)
    return states


def _walked(layer: Layer, rows: int, states: BoolArray | None = None) -> Iterator[tuple[slice, slice, slice, Layer]]:
    """Its parts, or those with one of these states, one after the other; the next ones are read from the disk
    meanwhile."""
    n, only = layer.n_states, [(0.0, 1.0)]
    if states is not None:
        only = [(first / n, end / n) for first, end in layer.cuts(rows) if states[first:end].any()]
    with ReadAhead(layer.arrays(), only) as reader:
        reader.come_to(0.0)
        for first, end in layer.cuts(rows):
            if states is None or states[first:end].any():
                reader.come_to(end / n)
                yield layer.part(first, end)
