"""Plans of a problem on the disk: every table is read once for each step that has it.

The results are those of :mod:`surefoot.plan.hope` and :mod:`surefoot.plan.directed`, bit for bit. V of a step needs V
of all the next one: so a table that steps share is read once for each of them, and that is all. What a step does with
its rows is done part by part while the part is in memory, each behind the one before:

    bounds of its cost rows → certified and hopeful pairs → Q of both → the greedy pairs → what they are worth at least

Q is computed in chunks of pairs (:func:`surefoot.estimate.kernels.cut`), and who is in a chunk has to be known. So each
goes as far as the one before it has whole chunks, and states, done; the rest waits for the next part.

What explores goes over certified pairs once more, when it is known what for. Where these are few, their rows were kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.kernels import chunk_size
from surefoot.estimate.row_bounds import BLOCK, streamed
from surefoot.estimate.values import ValueEllipsoid, fill_expected
from surefoot.model.graph import BoolArray, FloatArray, IntArray, Layer, LayeredGraph, freeze
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan import directed
from surefoot.plan import kernels as sweeps
from surefoot.plan.certify import Certified, certified_by, certify
from surefoot.plan.directed import Directed, Shares
from surefoot.plan.hope import Hope, NextStates, hope, hope_of, last_ahead
from surefoot.plan.values import Values, most_to_come, without_q
from surefoot.storage.raw_arrays import expect

FEW = 1 / 32  #: of a step's rows: so many are kept beside it


class StepSweep:
    """Q, V and the greedy pairs of one step, as far as it is known which pairs are allowed; with ``low``, which is of
    the next step's states, also what these are worth at least."""

    def __init__(
        self,
        layer: Layer,
        allowed: BoolArray,  # (N,)  filled in while it goes on
        bonus: FloatArray,
        known: ValueEllipsoid,
        cap: float,
        following: FloatArray,
        low: FloatArray | None = None,
    ) -> None:
        self._layer, self._allowed, self._bonus, self._known, self._cap = layer, allowed, bonus, known, cap
        self._following, self._next_low = following, low
        self._chunk = chunk_size(layer.transition_features)
        self.q = np.full(layer.n_pairs, np.nan)
        self.value, self.action = np.empty(layer.n_states), np.empty(layer.n_states, np.int64)
        self.low = None if low is None else np.zeros(layer.n_states)
        self._pairs = self._states = self._worth = 0  # so far: with Q, with an action, evaluated

    def advance(self, pairs: int, same: StepSweep | None = None) -> None:
        """It is known which of so many pairs are allowed. ``same``: who has done the same, wherever both allow the same
        pairs, and as far."""
        layer, first, end = self._layer, self._pairs, self._whole(pairs)
        own = slice(first, end)
        if same is not None and np.array_equal(self._allowed[own], same._allowed[own]):
            self.q[own] = same.q[own]
        else:
            wanted = np.flatnonzero(self._allowed[own]) + first
            fill_expected(layer, self._following, self._known, wanted, self.q)
            self.q[own] = layer.reward[own] + self.q[own] + self._bonus[own]
        self._pairs = end
        self._choose()

    def _whole(self, pairs: int) -> int:
        """How many of the first pairs are in whole chunks."""
        return pairs if pairs == self._layer.n_pairs else pairs - pairs % self._chunk

    def _choose(self) -> None:
        """As :func:`surefoot.plan.values.greedy`, in the states all of whose pairs have a Q."""
        layer, first = self._layer, self._states
        end = int(np.searchsorted(layer.state_ptr, self._pairs, side="right")) - 1
        own, pointer = slice(first, end), layer.state_ptr[first : end + 1]
        edges = int(layer.pair_ptr[pointer[-1]] - layer.pair_ptr[pointer[0]])
        words = pointer, self.q, self._allowed, self._cap, layer.fallback[own], self.value[own], self.action[own]
        sweeps.greedy(edges, *words)
        self._states = end

    def evaluate(self) -> None:
        """As :func:`surefoot.plan.hope.step_worth` of the greedy pairs, in whole chunks of which all are known. Their Q
        is not needed any more, and its place is used."""
        assert self.low is not None
        assert self._next_low is not None
        layer, first = self._layer, self._worth
        end = self._whole(int(layer.state_ptr[self._states]))
        state = int(np.searchsorted(layer.state_ptr, first, side="right")) - 1
        chosen = self.action[state : self._states]
        states = np.flatnonzero((chosen >= first) & (chosen < end)) + state
        wanted, least = self.action[states], replace(self._known, optimism=-self._known.optimism)
        fill_expected(layer, self._next_low, least, wanted, self.q)
        self.low[states] = layer.reward[wanted] + self.q[wanted]
        self._worth = end


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


class _Step(NamedTuple):
    """What one step backward found."""

    ahead: NextStates
    pairs: BoolArray  # (N,)  certified
    either: BoolArray  # (N,)  certified, or not refuted
    action: IntArray  # (S,)
    best_action: IntArray


class Mapped:
    """Makes one plan of a problem that lies on the disk."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: Sequence[ValueEllipsoid] = ()
        self._steps = list[_Step]()
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

    def _step(self, h: int, bounds: CostBounds, rounding: FloatArray, ahead: NextStates, few: FewRows) -> _Step | None:
        """Steps 1 to 3 of one step and what they are worth; None where bounds contradict each other."""
        layer, limits, cap = (
            self._problem.graph.layers[h],
            self._problem.bounds[h],
            most_to_come(self._problem.graph)[h],
        )
        upper, lower = (streamed(table[h]) for table in (bounds.upper, bounds.lower))
        assert upper is not None
        assert lower is not None
        pairs, either = (np.empty(layer.n_pairs, bool) for _ in range(2))
        states, hopeful = (np.empty(layer.n_states, bool) for _ in range(2))
        nothing, alike = np.broadcast_to(0.0, layer.n_pairs), np.array_equal(ahead.sure, ahead.best)
        sure = StepSweep(layer, pairs, nothing, self._known[h], cap, ahead.sure, ahead.low)
        best = StepSweep(layer, either, nothing, self._known[h], cap, ahead.best)
        for own, its, rows, part in layer.parts(upper.block):
            if not upper.rows.look(rounding, rows.stop):
                return None
            _read_ahead(layer, its.stop, upper.block)
            pairs[its], states[own] = certified_by(part, upper.kept(rows, limits), ahead.certified)
            either[its], hopeful[own] = certified_by(part, lower.kept(rows, limits), ahead.hopeful)
            either[its] |= pairs[its]
            sure.advance(its.stop)
            best.advance(its.stop, sure if alike else None)
            sure.evaluate()
            few.add(part, pairs[its], its.start)
        assert sure.low is not None
        return _Step(
            NextStates(states, hopeful, sure.value, best.value, sure.low), pairs, either, sure.action, best.action
        )

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

    def directed_values(
        self,
        problem: Problem,
        certified: Certified,
        known: tuple[ValueEllipsoid, ...],
        hoped: Hope,
        shares: Shares,
        weight: float,
    ) -> Directed | None:
        """As :func:`surefoot.plan.directed.directed_values`."""
        return directed.directed_values(problem, certified, known, hoped, shares, weight, self._values)

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
        self._few.clear()
        return without_q(graph, Values((), tuple(bonus), tuple(value), tuple(action), low))

    def _exploring_step(
        self, h: int, layer: Layer, words: tuple[BoolArray, FloatArray, ValueEllipsoid, float, FloatArray, FloatArray]
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """One step of these; all else that it needs is let go before the next one needs as much."""
        few = self._few[h].layer() if self._few else None
        step = StepSweep(layer if few is None else few, *words)
        for end in _pieces(layer) if few is None else [layer.n_pairs]:
            step.advance(end)
            step.evaluate()
        assert step.low is not None
        return step.value, step.action, step.low


def _pieces(layer: Layer) -> Iterator[int]:
    """Pairs until which a step is read, block by block."""
    step = max(1, BLOCK * layer.n_pairs // layer.n_edges)
    for first in range(0, layer.n_pairs, step):
        end = min(layer.n_pairs, first + step)
        _read_ahead(layer, end, BLOCK)
        yield end


def _read_ahead(layer: Layer, pair: int, rows: int) -> None:
    """So many rows from this pair on are wanted next."""
    edge = int(layer.pair_ptr[pair])
    expect(layer.transition_features, edge, edge + rows)
