"""A plan: what is certified, what it is worth, what to do. Frozen: it never changes during an episode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surefoot.errors import AssumptionBroken, InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.model.rays import Intensities
from surefoot.plan.certify import Certified, within_limits
from surefoot.plan.directed import Directed, arrivals_allow
from surefoot.plan.hope import Hope, exploiting, hope, worth_at_least
from surefoot.plan.rays import Opened
from surefoot.plan.segments import segment_all
from surefoot.plan.values import Values, limits_of
from surefoot.plan.why import Explanation, why

ANY_SUCCESSOR: Label = object()  #: where costs do not depend on the next state, it may be left out


@dataclass(frozen=True, eq=False)
class Plan:
    """What is certified, what it is worth and what to do: arrays in graph order, and accessors by label.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> plan = sf.run(sf.LsviNew(world.problem), world, episodes=200, seed=0).plan
        >>> plan.certified(0, 0, 2), plan.action(0, 0)
        (True, 2)
        >>> bool(plan.upper(0, 0, 2, 3) <= world.problem.limits[0].bound)  # of the transition to state 3
        True
        >>> print(plan.why(0, 0, 0))
        step 0, state 0, action 0 is the fallback's own, safe by assumption
    """

    problem: Problem
    bounds: CostBounds
    certified_sets: Certified
    values: Values
    ellipsoids: tuple[ValueEllipsoid, ...]  # H-1, of the value regressions
    number: int  # 1 for the first plan
    directed: Directed | None = None  # how it explores, with directed exploration
    known_hope: Hope | None = None  # if the planner needed it; otherwise computed on demand
    chances: tuple[FloatArray, ...] | None = None  # H-1 of (N,), if actions are drawn; values.action are the likeliest
    opened: Opened | None = None  # with rays: then ``problem`` has each at its certified intensity (spec 9)

    def __repr__(self) -> str:
        pairs = self.problem.expanded_actions[1]
        broken = "" if self.consistent else ", the data contradict the assumptions"
        return f"Plan(number={self.number}, certified={self.n_certified()} of {pairs} actions{broken})"

    def over(self, problem: Problem) -> Plan:
        """The same plan, of an equal problem that is another object."""
        if self.opened is None:
            return replace(self, problem=problem)
        at, hoped = problem.at(self.opened.intensities), problem.at(self.opened.hoped_intensities)
        return replace(self, problem=at, opened=self.opened._replace(declared=problem, problem=at, hoped=hoped))

    @property
    def consistent(self) -> bool:
        """False if the data contradict the assumptions; then only the fallback is certified."""
        return self.bounds.consistent

    @cached_property
    def hope(self) -> Hope:
        """The pairs that may yet be certified, and what they would be worth (spec 5)."""
        known = self.problem, self.bounds, self.certified_sets, self.ellipsoids
        return self.known_hope or hope(*known, opened=self.opened)

    @property
    def gap(self) -> float:
        """V̄ − V: the optimistic value over all that is not proved unsafe, minus that over what is certified (spec 5).

        Of several starts the largest. 0: no certificate is missing, and any regret left comes from transitions.
        """
        return self.hope.gap

    @cached_property
    def to_gain(self) -> float:
        """With probability 1 − 2p no safe policy is worth more than this plan's by more than this: stop when small.

        V̄ minus a lower bound on the value of what the plan plays, by the learner's own bounds; of several starts the
        largest. It holds for ``optimism`` ≥ 1 and for policies that are safe over the declared support.
        """
        played, low = self.values.action if self.chances is None else self.chances, self.values.low
        low = worth_at_least(self.problem.graph, played, self.ellipsoids) if low is None else low
        return float((self.hope.best.value[0] - low)[self.problem.graph.starts].max())

    @cached_property
    def exploiting(self) -> tuple[IntArray, ...]:
        """H-1 of (S,): what to play without exploring: greedy by the estimates, but still certified."""
        return exploiting(self.problem.graph, self.certified_sets, self.ellipsoids)

    @property
    def targets(self) -> tuple[FloatArray, ...]:
        """H of (S,): the targets for transitions while this plan is in force, at most R_h: V, without what explores."""
        return self.values.value if self.directed is None else self.hope.sure.value

    def upper(self, h: int, s: Label, a: Label, s2: Label = ANY_SUCCESSOR) -> FloatArray:
        """(m,) upper bounds on the costs of this triplet, which hold with the promised probability.

        ``s2`` may be left out if costs do not depend on it; of several cost rows of a pair, the largest bound.
        """
        return self._bound(self.bounds.upper, h, s, a, s2)

    def lower(self, h: int, s: Label, a: Label, s2: Label = ANY_SUCCESSOR) -> FloatArray:
        """(m,) lower bounds on the costs of this triplet; of several cost rows of a pair, on the largest cost."""
        return self._bound(self.bounds.lower, h, s, a, s2)

    def _bound(self, tables: tuple[FloatArray, ...], h: int, s: Label, a: Label, s2: Label) -> FloatArray:
        pair = self.problem.pair_index(h, s, a)
        layer, table = self.problem.graph.layers[h], tables[h]
        edge = None if s2 is ANY_SUCCESSOR else self.problem.edge_index(h, s, a, s2)
        if not layer.per_triplet:
            return np.array(table[layer.own_rows(pair)].max(axis=0))
        if edge is None and int(layer.pair_ptr[pair + 1] - layer.pair_ptr[pair]) > 1:
            raise InvalidInput(
                "name the next state",
                where=self.problem.naming.at_pair(layer, h, pair),
                fix="The costs of this problem depend on it: give s2.",
            )
        return np.array(table[layer.pair_ptr[pair] if edge is None else edge])

    def certified(self, h: int, s: Label, a: Label) -> bool:
        """Are this action and all that may follow proved to keep every limit?"""
        pair = self.problem.pair_index(h, s, a)
        return bool(self.certified_sets.pairs[h][pair])

    def hopeful(self, h: int, s: Label, a: Label) -> bool:
        """Is this action not proved unsafe, by its own costs or by what must follow (spec 5)?"""
        pair = self.problem.pair_index(h, s, a)
        return bool(self.hope.hopeful.pairs[h][pair])

    def intensity(self, h: int, s: Label, a: Label) -> float:
        """How far an action may be opened (spec 9): the largest certified intensity, 0 if the action is not certified,
        1 for a certified action without an intensity."""
        pair = self.problem.pair_index(h, s, a)
        if not self.certified_sets.pairs[h][pair]:
            return 0.0
        return 1.0 if self.intensities is None else float(self.intensities[h][pair])

    @property
    def declared(self) -> Problem:
        """The problem as it was declared, with its rays; :attr:`problem` has each at its intensity (spec 9)."""
        return self.problem if self.opened is None else self.opened.declared

    @property
    def intensities(self) -> Intensities | None:
        """H-1 of (N,): the intensity of each pair in this plan, certified by its own cost rows; None without rays."""
        return None if self.opened is None else self.opened.intensities

    def safe(self, h: int, s: Label) -> bool:
        """Does the state have a certified action? In the last layer: does it keep every limit?"""
        state = self.problem.state_index(h, s)
        return bool(self.certified_sets.states[h][state])

    def q(self, h: int, s: Label, a: Label) -> float:
        """The optimistic value of an action, unclipped; also of uncertified ones."""
        pair = self.problem.pair_index(h, s, a)
        known = float(self.values.q[h][pair])
        return known if known == known else float(self._q_of(h, np.array([pair]))[pair])

    def q_row(self, h: int) -> FloatArray:
        """(N,) Q of every pair of a layer, certified or not."""
        row = self.values.q[h]
        missing = np.flatnonzero(np.isnan(row))
        return np.where(np.isnan(row), self._q_of(h, missing), row)

    def _q_of(self, h: int, pairs: IntArray) -> FloatArray:
        layer = self.problem.graph.layers[h]
        expected = expected_next_value(layer, self.values.value[h + 1], self.ellipsoids[h], pairs)
        row: FloatArray = layer.reward + expected + self.values.bonus[h]
        if self.directed is None:
            return row
        known = self.problem.graph, self.ellipsoids, self.hope.sure, self.directed.told, self.directed.weight
        most = limits_of(layer.n_pairs, *arrivals_allow(*known)(h, self.values.value[h + 1]))
        return np.minimum(row, layer.reward + most)

    def value(self, h: int, s: Label) -> float:
        """V: the optimistic value of the best certified action, 0 without one."""
        state = self.problem.state_index(h, s)
        return float(self.values.value[h][state])

    def action(self, h: int, s: Label) -> Label:
        """The greedy certified action; a state without one is an error, never a guess."""
        state = self.problem.state_index(h, s)
        return self.problem.naming.action(self.problem.decisions(h), h, self.pair(h, state))

    def pair(self, h: int, state: int) -> int:
        pair = int(self.values.action[h][state])
        if pair == NO_ACTION:
            raise AssumptionBroken(
                "no certified action",
                where=self.problem.naming.at_state(h, state),
                fix="This state cannot be reached by certified actions within the declared support.",
            )
        return pair

    def terminal_upper(self, s: Label) -> FloatArray | None:
        """(m,) upper bounds on the last layer's own cost, None where it has none."""
        return self._terminal(self.bounds.terminal_upper, s)

    def terminal_lower(self, s: Label) -> FloatArray | None:
        return self._terminal(self.bounds.terminal_lower, s)

    def _terminal(self, table: FloatArray | None, s: Label) -> FloatArray | None:
        state = self.problem.state_index(self.problem.horizon - 1, s)
        if table is None or not self.problem.graph.terminal.has_cost[state]:
            return None
        return np.array(table[state])

    def condition_1(self, h: int) -> BoolArray:
        """(N,) pairs all of whose cost rows keep every limit by their upper bounds (eq:safetycondition1)."""
        kept = within_limits(self.bounds.upper[h], self.problem.bounds[h])
        return segment_all(kept, self.problem.graph.layers[h].row_ptr)

    def why(self, h: int, s: Label, a: Label) -> Explanation:
        """Why this action is or is not certified: the successor and limit, or the future state, that decide; and what
        it is played for, if it explores."""
        return why(self, h, s, a)

    def n_certified(self) -> int:
        return int(sum(mask.sum() for mask in self.certified_sets.pairs))
