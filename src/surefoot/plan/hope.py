"""What may still be had: pairs that are not proved unsafe, and what they would be worth (spec 5).

    V̄   optimistic value over *hopeful* pairs, those that no lower bound proves unsafe
    V    optimistic value over certified pairs
    gap = V̄ − V at the start: the most that further certificates can add

No policy that is safe over the declared support is worth more than V̄, while all confidence sets hold; so V̄ − (a lower
bound on the value of the policy played) bounds what is still to be gained. Safety never looks at any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from surefoot.estimate.costs import CostBounds
from surefoot.estimate.tables import sealed
from surefoot.estimate.values import ValueEllipsoid, asked, expected_next_value
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.graph import OUTSIDE, LayeredGraph
from surefoot.model.layer import NO_ACTION, Layer
from surefoot.model.problem import Problem
from surefoot.plan import kernels as sweeps
from surefoot.plan.certify import Certified, last_states, not_refuted
from surefoot.plan.rays import Opened
from surefoot.plan.values import Values, most_to_come, optimistic_values, step_values, without_q

CLOSED = 1e-9  #: a gap below this share of R_0 is rounding

Met = tuple[IntArray, ...]
"""The numbers, rising, of some cost rows of each decision layer and of some states of the last one."""


@dataclass(frozen=True, eq=False)
class Hope:
    """What may still be had, beside what is certified."""

    hopeful: Certified
    best: Values  # V̄, and the policy that is hoped for
    sure: Values  # V, and the policy that is certified
    gap: float  # the largest over the starts; 0 where rounding alone is left
    problem: Problem  # that it is about: with rays, each at the largest intensity that is not proved unsafe (spec 9)
    bounds: CostBounds  # of that
    done: tuple[BoolArray, ...]  # H-1 of (N,)  pairs that are certified as they are hoped for


def hope(
    problem: Problem,
    bounds: CostBounds,
    certified: Certified,
    known: Sequence[ValueEllipsoid],
    opened: Opened | None = None,
) -> Hope:
    """Hopeful sets and the gap. ``opened``: of a problem with rays, whose certified intensities ``problem`` has."""
    graph, done = problem.graph, certified.pairs
    about, about_bounds = problem, bounds
    if opened is not None:
        about, about_bounds = opened.hoped, opened.hoped_bounds
        fully = (a == b for a, b in zip(opened.intensities, opened.hoped_intensities, strict=True))
        done = tuple(mask & same for mask, same in zip(done, fully, strict=True))
    found = not_refuted(about.graph, about_bounds, problem.bounds)
    hopeful = Certified(_either(found.pairs, certified.pairs), _either(found.states, certified.states))
    nothing, most = [np.broadcast_to(0.0, layer.n_pairs) for layer in graph.layers], most_to_come(graph)
    sure = optimistic_values(graph, certified, nothing, known, most)
    sure = without_q(graph, sure) if problem.mapped else sure
    best = sure
    if opened is not None or not _alike(hopeful, certified):
        best = replace(optimistic_values(about.graph, hopeful, nothing, known, most), q=())  # which nobody asks for
    return Hope(hopeful, best, sure, gap_of(graph, best, sure), about, about_bounds, done)


class NextStates(NamedTuple):
    """What is known of the states of a step, or of some of them, when the one before is planned."""

    certified: BoolArray
    hopeful: BoolArray  # not refuted
    sure: FloatArray  # V
    best: FloatArray  # V̄
    low: FloatArray  # no less is expected from V's policy

    def of(self, own: slice) -> NextStates:
        """Of some of the states."""
        return NextStates(self.certified[own], self.hopeful[own], self.sure[own], self.best[own], self.low[own])

    def alike(self) -> bool:
        """V̄ is V."""
        return np.array_equal(self.best, self.sure)


def joined_states(parts: Sequence[NextStates]) -> NextStates:
    """Of the states of all parts."""
    certified, hopeful, sure, best, low = (np.concatenate(field) for field in zip(*parts, strict=True))
    return NextStates(certified, hopeful, sure, best, low)


def in_the_step(action: IntArray, first: int) -> IntArray:
    """Pairs of a part in numbers of the whole step, of which ``first`` is the part's own first."""
    return np.where(action == NO_ACTION, NO_ACTION, action + first)


class Backward(NamedTuple):
    """One step of a sweep that does all at once, of all states of a step or of some."""

    ahead: NextStates
    pairs: BoolArray  # (N,)  certified
    either: BoolArray  # (N,)  certified, or not refuted
    action: IntArray  # (S,)
    best_action: IntArray

    @staticmethod
    def room(layer: Layer) -> Backward:
        """For a step that is put together part by part."""
        n = layer.n_states
        marks, values, actions = ([np.empty(n, kind) for _ in range(3)] for kind in (bool, np.float64, np.int64))
        pairs, either = (np.empty(layer.n_pairs, bool) for _ in range(2))
        return Backward(NextStates(*marks[:2], *values), pairs, either, *actions[:2])

    def put(self, own: slice, its: slice, part: Backward) -> None:
        """A part, by its states and its pairs."""
        for whole, found in zip(self.ahead, part.ahead, strict=True):
            whole[own] = found
        self.pairs[its], self.either[its] = part.pairs, part.either
        for whole, found in zip(self[3:], part[3:], strict=True):
            whole[own] = in_the_step(found, its.start)


def backward(
    layer: Layer,
    certified: tuple[BoolArray, BoolArray],  # pairs (N,), states (S,)
    hopeful: tuple[BoolArray, BoolArray],  # not refuted
    ahead: NextStates,
    known: ValueEllipsoid,
    cap: float,
    alike: bool,
) -> Backward:
    """Steps 2 and 3 of a step, or of a part of it, from what is known of the next one's states; ``alike``: their V̄ is
    their V."""
    pairs, either, nothing = certified[0], hopeful[0] | certified[0], np.zeros(layer.n_pairs)
    _, sure, action = step_values(layer, pairs, nothing, known, cap, ahead.sure)
    best, best_action = sure, action
    if not (alike and np.array_equal(either, pairs)):
        _, best, best_action = step_values(layer, either, nothing, known, cap, ahead.best)
    low = least_worth(layer, action, known, ahead.low)
    return Backward(NextStates(certified[1], hopeful[1], sure, best, low), pairs, either, action, best_action)


def least_worth(layer: Layer, action: IntArray, known: ValueEllipsoid, following: FloatArray) -> FloatArray:
    """(S,) no less is expected from a policy, from the states of a step or of a part of it."""
    least, worth = replace(known, optimism=-known.optimism), np.empty(layer.n_states)
    ahead = asked(layer, following, least)
    sweeps.worths(layer.n_edges, sealed(layer.reward), sealed(action), ahead, worth)
    return worth


def last_ahead(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> NextStates:
    """What is known of the last states, where a sweep begins that does all at once; limits (H, m)."""
    last, hopeful = last_states(graph, bounds, limits)
    ends = graph.terminal.reward
    return NextStates(last, hopeful, np.where(last, ends, 0.0), np.where(hopeful | last, ends, 0.0), ends)


def hope_of(
    problem: Problem,
    bounds: CostBounds,
    steps: Sequence[NextStates],  # H
    certified: tuple[BoolArray, ...],  # H-1 of (N,)
    hopeful: tuple[BoolArray, ...],
    action: tuple[IntArray, ...],  # H-1 of (S,)
    best_action: tuple[IntArray, ...],
) -> tuple[Certified, Hope]:
    """What such a sweep has found, without Q."""
    graph = problem.graph
    nothing = tuple(np.broadcast_to(0.0, layer.n_pairs) for layer in graph.layers)
    sure = Values((), nothing, tuple(step.sure for step in steps), action, steps[0].low)
    best = Values((), nothing, tuple(step.best for step in steps), best_action)
    safe = Certified(certified, tuple(step.certified for step in steps))
    either = Certified(hopeful, tuple(step.hopeful | step.certified for step in steps))
    gap = gap_of(graph, best, sure)
    return safe, Hope(either, best, without_q(graph, sure), gap, problem, bounds, certified)


def gap_of(graph: LayeredGraph, best: Values, sure: Values) -> float:
    """V̄ − V at the start, of several the largest; 0 where rounding alone is left."""
    gap = float((best.value[0][graph.starts] - sure.value[0][graph.starts]).max())
    return gap if gap > CLOSED * graph.horizon else 0.0


def _alike(one: Certified, other: Certified) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.pairs + one.states, other.pairs + other.states, strict=True))


def _either(one: Sequence[BoolArray], other: Sequence[BoolArray]) -> tuple[BoolArray, ...]:
    return tuple(a | b for a, b in zip(one, other, strict=True))


def reached(graph: LayeredGraph, pairs: Sequence[BoolArray]) -> Met:
    """What may be met from the starts along some pairs, over the declared support."""
    return tuple(rows for _, rows in _met(graph, lambda h, here: pairs[h]))


def _met(graph: LayeredGraph, pairs: Callable[[int, BoolArray], BoolArray]) -> Iterator[tuple[BoolArray, IntArray]]:
    """Step by step, the states (S,) that may be met, and cost rows along ``pairs(h, those states)`` (N,); last the
    numbers of states."""
    here = np.zeros(graph.n_states(0), bool)
    here[graph.starts] = True
    for h, layer in enumerate(graph.layers):
        rows, there = followed(layer, pairs(h, here), here, graph.n_states(h + 1))
        if graph.beyond is not None:
            there[OUTSIDE] = False  # nothing is met there that could be measured
        yield here, rows
        here = there
    yield here, np.flatnonzero(here)


def followed(layer: Layer, pairs: BoolArray, here: BoolArray, n_next: int) -> tuple[IntArray, BoolArray]:
    """One step along some pairs (N,) from some states (S,): the cost rows, rising, and the next states (S',) that may
    be met."""
    there = np.zeros(n_next, bool)
    own = map(sealed, (layer.state_ptr, layer.pair_ptr, layer.successor, layer.row_ptr, pairs, here))
    rows: IntArray = sweeps.met(tuple(own), there)
    return rows, there


def reached_by(graph: LayeredGraph, action: Sequence[IntArray]) -> Met:
    """Likewise along the pairs of a policy."""
    return tuple(rows for _, rows in _met_by(graph, action))


def _met_by(graph: LayeredGraph, action: Sequence[IntArray]) -> Iterator[tuple[BoolArray, IntArray]]:
    return _met(graph, lambda h, here: played(graph.layers[h], action[h][here]))


def played(layer: Layer, chosen: IntArray) -> BoolArray:
    """(N,) the pairs that are chosen in some states (n,)."""
    pairs = np.zeros(layer.n_pairs, bool)
    pairs[chosen[chosen != NO_ACTION]] = True
    return pairs


def same_play(graph: LayeredGraph, one: Sequence[IntArray], other: Sequence[IntArray]) -> bool:
    """True when two policies do the same wherever the first one may come."""
    places = zip(one, other, _met_by(graph, one), strict=False)
    return all(np.array_equal(own[here], another[here]) for own, another, (here, _) in places)


def worth_at_least(
    graph: LayeredGraph, policy: Sequence[IntArray] | Sequence[FloatArray], known: Sequence[ValueEllipsoid]
) -> FloatArray:
    """(S,) no less is expected from a policy, from each state of the first layer, while its value ellipsoids hold."""
    return worth(graph, policy, [replace(each, optimism=-each.optimism) for each in known])[0]


def worth(
    graph: LayeredGraph, policy: Sequence[IntArray] | Sequence[FloatArray], known: Sequence[ValueEllipsoid]
) -> tuple[FloatArray, ...]:
    """H of (S,): what is expected from a policy, by the expected next value of spec 6 of the pairs that it plays.

    With −radius at least that much, with +radius at most, while the ellipsoids hold; 0 where the policy has no pair. A
    policy is the pair of each state (S,), or how likely each pair is (N,), per layer.
    """
    value = [graph.terminal.reward]
    for h in reversed(range(len(graph.layers))):
        layer, own = graph.layers[h], cast(Any, policy[h])
        weight = own if own.dtype.kind == "f" else played(layer, own).astype(np.float64)
        value.insert(0, step_worth(layer, weight, known[h], value[0]))
    return tuple(value)


def step_worth(layer: Layer, weight: FloatArray, known: ValueEllipsoid, following: FloatArray) -> FloatArray:
    """(S,) what is expected in one step from pairs of these weights (N,), by the next one's worth."""
    pairs, here = np.flatnonzero(weight), np.zeros(layer.n_pairs)
    ahead = expected_next_value(layer, following, known, pairs)[pairs]
    here[pairs] = weight[pairs] * (layer.reward[pairs] + ahead)
    return np.add.reduceat(here, layer.state_ptr[:-1])


def worth_between(
    graph: LayeredGraph, action: Sequence[IntArray], known: Sequence[ValueEllipsoid]
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """(low, high), each H of (S,): confidence bounds of a policy's value, both at the whole radius of spec 6.

    They hold together, for every state and every policy, with probability 1 − p (the value event of spec 8), whatever
    share of the radius the planner's optimism uses.
    """
    low, high = (
        worth(graph, action, [replace(each, optimism=sign, clip=True) for each in known]) for sign in (-1.0, 1.0)
    )
    return low, high


def exploiting(graph: LayeredGraph, certified: Certified, known: Sequence[ValueEllipsoid]) -> tuple[IntArray, ...]:
    """H-1 of (S,): the greedy policy of the estimates alone, without bonus or optimism, over certified pairs only."""
    nothing = [np.broadcast_to(0.0, layer.n_pairs) for layer in graph.layers]
    plain = [replace(each, optimism=0.0) for each in known]
    return optimistic_values(graph, certified, nothing, plain, most_to_come(graph)).action
