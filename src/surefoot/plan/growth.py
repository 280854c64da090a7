"""Which actions of a growing graph are expanded next (spec 9).

An action is expanded once its own cost rows keep the limits by the upper bounds of the plan in force; otherwise it
could not be certified, whatever follows. For a plant one such row is enough: the action may be certified at the
exact state without being certified for the whole cell. The rows of a ray are taken at the intensity that they certify.

Actions that the hoped-for policy plays come first, from the first step to the last; in states added on its way, the
action with the largest reward stands for its choice. All other actions follow, again from the first step on. New rows
are bounded by the ellipsoids of the plan, so one growth can go several steps deep.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from surefoot.estimate.costs import CostBounds
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.growing import grower_of
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import within_limits
from surefoot.plan.hope import reached_by
from surefoot.plan.plan import Plan
from surefoot.plan.segments import segment_all, segment_any, spread

LEAST, MOST = 1_000, 10_000  #: one growth may add as many states as there are already, within these bounds

Queue = dict[tuple[bool, int], list[int]]
"""Pairs to expand, in order, by (not on the way, step)."""


def to_expand(problem: Problem, bounds: CostBounds) -> tuple[BoolArray, ...]:
    """H-1 of (N,): unexpanded pairs whose own cost rows keep the limits (at least one of them, if there are several),
    except those refused for lack of room. None at all if the bounds contradict each other."""
    graph, growth = problem.graph, problem.growth
    if growth is None or not bounds.consistent:
        return tuple(np.zeros(layer.n_pairs, bool) for layer in graph.layers)
    waiting = tuple(
        ~graph.expanded(h)
        & _keeps(within_limits(bounds.upper[h], problem.bounds[h]), layer.row_ptr, layer.per_triplet)
        & ~spread(layer.forbidden, layer.state_ptr)
        for h, layer in enumerate(graph.layers)
    )
    for h, pair in growth.refused.tolist():
        waiting[h][pair] = False
    return waiting


def _keeps(rows: BoolArray, ptr: IntArray, per_triplet: bool) -> BoolArray:
    """(N,) pairs whose rows keep the limits: all rows by triplet, or at least one of the pair's own."""
    return segment_all(rows, ptr) if per_triplet else segment_any(rows, ptr)


def grown(plan: Plan) -> Problem | None:
    """The plan's problem with more of it expanded; None where there is nothing to expand."""
    problem, hoped = plan.problem if plan.opened is None else plan.opened.declared, plan.hope.best.action
    waiting = to_expand(problem, plan.bounds)
    if not any(mask.any() for mask in waiting):
        return None
    return _Growing(problem, plan.bounds).grow(waiting, _played(problem, hoped))


def grown_by(problem: Problem, bounds: CostBounds) -> Problem:
    """The problem with everything expanded that these bounds allow, without a plan to order it."""
    waiting = to_expand(problem, bounds)
    if not any(mask.any() for mask in waiting):
        return problem
    return _Growing(problem, bounds, most=problem.growth.most_states if problem.growth else 0).grow(waiting, None)


def _played(problem: Problem, policy: Iterable[IntArray]) -> tuple[BoolArray, ...]:
    """H-1 of (N,): the pairs that a policy plays in the states it may reach."""
    graph, result = problem.graph, []
    met = reached_by(graph, tuple(policy))
    for h, layer in enumerate(graph.layers):
        pairs = np.zeros(layer.n_pairs, bool)
        pairs[layer.pairs_of_rows(met[h])] = True
        result.append(pairs)
    return tuple(result)


class _Growing:
    """A growth in progress."""

    def __init__(self, problem: Problem, bounds: CostBounds, most: int | None = None) -> None:
        assert problem.growth is not None
        n, beyond = problem.graph.n_all_states, problem.graph.beyond
        assert beyond is not None
        self._problem, self._bounds, self._grower = problem, bounds, grower_of(problem)
        self._left = max(0, problem.growth.most_states - n) if beyond.room else 0  # states that may still be added
        self._allowed = min(max(LEAST, n), MOST) if most is None else most
        self._queue: Queue = {}

    def grow(self, waiting: tuple[BoolArray, ...], way: tuple[BoolArray, ...] | None) -> Problem:
        for h, mask in enumerate(waiting):
            on = np.zeros(len(mask), bool) if way is None else way[h]
            for off, pairs in ((False, mask & on), (True, mask & ~on)):
                self._wait(off, h, np.flatnonzero(pairs).tolist())
        while self._queue and self._grower.added < self._allowed:
            off, h = first = min(self._queue)
            self._expand(off, h, self._queue.pop(first))
        return self._grower.problem()

    def _wait(self, off: bool, h: int, pairs: list[int]) -> None:
        if pairs:
            self._queue.setdefault((off, h), []).extend(pairs)

    def _expand(self, off: bool, h: int, pairs: list[int]) -> None:
        """Expand these pairs of a step, and consider the states that they add. Once one pair's states find no room, no
        more states are added, so that whatever is refused stays refused."""
        grower, new = self._grower, list[int]()
        for pair in pairs:
            added = grower.expand(h, pair, self._left)
            if added is None:
                self._left = 0
                continue
            new += added
            self._left -= len(added)
            if grower.added >= self._allowed:
                break
        if new and h + 1 < self._problem.horizon - 1:
            self._look(off, h + 1, new)

    def _look(self, off: bool, h: int, states: list[int]) -> None:
        """Which pairs of new states may be expanded."""
        pairs, rows, rewards, x = self._grower.pairs_of(h, states)
        limits, per_triplet = self._problem.bounds[h], self._problem.graph.layers[h].per_triplet
        kept, hopeful = (np.zeros(len(rows) - 1, bool) for _ in range(2))
        for end in x:  # a ray may be opened to some extent if either end qualifies; the next plan says how far
            upper, lower = self._bounds.at(h, end)
            kept |= _keeps(within_limits(upper, limits), rows, per_triplet)
            hopeful |= segment_all(within_limits(lower, limits), rows)
        first = int(pairs[0])
        for state, begin, end in zip(states, pairs[:-1] - first, pairs[1:] - first, strict=True):
            if self._grower.is_forbidden(h, state):
                continue
            best = NO_ACTION if off else _first_best(rewards, hopeful, int(begin), int(end))
            ready = [int(pair) for pair in range(begin, end) if kept[pair]]
            self._wait(False, h, [first + pair for pair in ready if pair == best])
            self._wait(True, h, [first + pair for pair in ready if pair != best])


def _first_best(rewards: FloatArray, hopeful: BoolArray, begin: int, end: int) -> int:
    """The hopeful pair with the largest reward, NO_ACTION where none is hopeful."""
    worth = np.where(hopeful[begin:end], rewards[begin:end], -1.0)
    return begin + int(worth.argmax()) if worth.max() >= 0.0 else NO_ACTION
