"""Plans of a problem on the disk: every table is read once for each step that has it.

The results are those of :mod:`surefoot.plan.hope` and :mod:`surefoot.plan.directed`, bit for bit. V of a step needs V
of all the next one: so a table that steps share is read once for each of them, and that is all. What a step does with
its rows is done part by part, while the part is in the cache:

    bounds of its cost rows → certified and hopeful pairs → Q of both → the greedy pairs → what they are worth at least

What explores goes over certified pairs once more, when it is known what for. Where these are few, their rows were kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.row_bounds import BLOCK, streamed
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.graph import BoolArray, FloatArray, IntArray, Layer, LayeredGraph, freeze
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan import directed
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
    joined_states,
    last_ahead,
    least_worth,
)
from surefoot.plan.values import Values, most_to_come, step_values, without_q
from surefoot.storage.read_ahead import ReadAhead

FEW = 1 / 32  #: of a step's rows: so many are kept beside it


class FewRows:
    """The rows of some pairs of a step, while they are few."""

    def __init__(self, layer: Layer) -> None:
        dense = not isinstance(layer.transition_features, SparseRows)
        self._layer, self._left = layer, FEW * layer.n_edges if dense else -1.0
        self._pairs, self._sizes, self._successors = list[IntArray](), list[IntArray](), list[IntArray]()
        self._rows = list[NDArray[Any]]()

    def add(self, part: Layer, pairs: BoolArray, first: int) -> None:
        """The next part of the step, which of its pairs (n,), and the number of the first of them in the step."""
        if self._left < 0:
            return
        chosen = np.flatnonzero(pairs)
        begin, end = part.pair_ptr[chosen], part.pair_ptr[chosen + 1]
        sizes = end - begin
        self._left -= int(sizes.sum())
        if self._left < 0:
            self._rows.clear()
            return
        edges = np.repeat(end - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        self._pairs.append(chosen + first)
        self._sizes.append(sizes)
        self._successors.append(part.successor[edges])
        self._rows.append(np.asarray(part.transition_features[edges]))

    def layer(self) -> Layer | None:
        """The step, in which all other pairs lead nowhere; pairs have their numbers. None where they were not few."""
        if self._left < 0:
            return None
        pointer = np.zeros(self._layer.n_pairs + 1, np.int64)
        pointer[np.concatenate(self._pairs) + 1] = np.concatenate(self._sizes)
        return replace(
            self._layer,
            pair_ptr=freeze(np.cumsum(pointer, out=pointer)),
            successor=freeze(np.concatenate(self._successors)),
            transition_features=freeze(np.concatenate(self._rows)),
        )


class Mapped:
    """Makes one plan of a problem that lies on the disk."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: Sequence[ValueEllipsoid] = ()
        self._steps = list[Backward]()
        self._few = list[FewRows]()
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
            few = FewRows(graph.layers[h])
            found = self._step(h, bounds, rounding, ahead, few)
            if found is None:
                return False
            self._steps.insert(0, found)
            self._few.insert(0, few)
            ahead = found.ahead
        return True

    def _step(
        self, h: int, bounds: CostBounds, rounding: FloatArray, ahead: NextStates, few: FewRows
    ) -> Backward | None:
        """Steps 1 to 3 of one step and what they are worth; None where bounds contradict each other."""
        layer, limits, found = self._problem.graph.layers[h], self._problem.bounds[h], list[Backward]()
        cap = most_to_come(self._problem.graph)[h]
        upper, lower = (streamed(table[h]) for table in (bounds.upper, bounds.lower))
        assert upper is not None
        assert lower is not None
        for _, its, rows, part in _walked(layer, upper.block):
            if not upper.rows.look(rounding, rows.stop):
                return None
            certified = certified_by(part, upper.kept(rows, limits), ahead.certified)
            hopeful = certified_by(part, lower.kept(rows, limits), ahead.hopeful)
            here = backward(part, certified, hopeful, ahead, self._known[h], cap)
            action, best_action = (in_the_step(each, its.start) for each in (here.action, here.best_action))
            found.append(here._replace(action=action, best_action=best_action))
            few.add(part, here.pairs, its.start)
        states, *others = zip(*found, strict=True)
        return Backward(joined_states(states), *map(np.concatenate, others))

    def hope(self, bounds: CostBounds) -> tuple[Certified, Hope]:
        """Steps 2 and 3, and what may still be had."""
        problem, graph = self._problem, self._problem.graph
        if not bounds.consistent:
            self._few.clear()  # of pairs that are not certified after all
            certified = certify(graph, bounds, problem.bounds)
            return certified, hope(problem, bounds, certified, self._known)
        assert self._last is not None
        _, pairs, either, action, best_action = zip(*self._steps, strict=True)
        steps = [*(step.ahead for step in self._steps), self._last]
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
        return directed.exploring_values(problem, certified, known, hoped, shares, weight, self._values)

    def _values(
        self,
        graph: LayeredGraph,
        allowed: Certified,
        bonus: Sequence[FloatArray],
        known: Sequence[ValueEllipsoid],
        caps: Sequence[float],
        last_bonus: FloatArray,
    ) -> Values:
        """As :func:`surefoot.plan.values.optimistic_values` of certified pairs, and what they are worth at least."""
        ends = graph.terminal.reward
        value, low, action = [np.where(allowed.states[-1], ends + last_bonus, 0.0)], ends, list[IntArray]()
        for h in reversed(range(len(graph.layers))):
            words = allowed.pairs[h], bonus[h], known[h], caps[h], value[0], low
            here, chosen, low = self._exploring_step(h, graph.layers[h], words)
            value.insert(0, here)
            action.insert(0, chosen)
        return without_q(graph, Values((), tuple(bonus), tuple(value), tuple(action), low))

    def _exploring_step(
        self, h: int, layer: Layer, words: tuple[BoolArray, FloatArray, ValueEllipsoid, float, FloatArray, FloatArray]
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """One step of these; all else that it needs is let go before the next one needs as much."""
        (allowed, bonus, known, cap, following, low), found = words, list[tuple[FloatArray, IntArray, FloatArray]]()
        few = self._few[h].layer() if self._few else None
        for _, its, _, part in _walked(layer, BLOCK) if few is None else few.parts(BLOCK):
            _, value, action = step_values(part, allowed[its], bonus[its], known, cap, following)
            least = least_worth(part, action, known, low)
            found.append((value, in_the_step(action, its.start), least))
        value, action, least = (np.concatenate(column) for column in zip(*found, strict=True))
        return value, action, least


def _walked(layer: Layer, rows: int) -> Iterator[tuple[slice, slice, slice, Layer]]:
    """Its parts, one after the other; the next ones are read from the disk meanwhile."""
    with ReadAhead(layer.arrays()) as reader:
        for found in layer.parts(rows):
            reader.come_to(found[1].stop / layer.n_pairs)
            yield found
