"""A plan made by many processes: the sweeps of a single process, with each step a question to all blocks.

Messages grow with the states of a step; rows, and what is computed from them, stay where they are. One sweep backward
gives the certified and hopeful sets with their values. Then, while there is something to explore: one forward to see
what may be met, one for the scores, one backward for the values that explore, and one forward to compare. The result is
that of :mod:`surefoot.plan.hope` and :mod:`surefoot.plan.directed`, bit for bit. Q is not kept: a plan computes it on
demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.clusters import Cluster
from surefoot.errors import InvalidInput
from surefoot.estimate.arrivals import Played
from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan import shares as sharing
from surefoot.plan.blockwise.block import Exploring, ExploringStep, Met, OwnStates, ProblemFacts, Scored
from surefoot.plan.blockwise.team import Team
from surefoot.plan.certify import Certified
from surefoot.plan.directed import Explored, arrivals_allow
from surefoot.plan.hope import Hope, hope_of, in_the_step, joined_states, last_ahead
from surefoot.plan.shares import OfPlayed, Shares, Targets
from surefoot.plan.values import Values, most_to_come, without_q


@dataclass(frozen=True, eq=False)
class SharesOfBlocks:
    """Shares that stay with the blocks, but for those of pairs that were played."""

    most: float  # the largest score
    last: FloatArray  # (S,)  of the last states, which are looked at here
    played: tuple[Played, ...]
    of_played: tuple[OfPlayed, ...]
    all: Callable[[], Shares]  # computed here, for anyone who wants to see them


class Blockwise:
    """Makes the plans of one problem on a cluster."""

    def __init__(self, problem: Problem, data: CostData, slack: FloatArray, cluster: Cluster) -> None:
        refuse_unsuited(problem)
        self._problem, self._slack = problem, slack
        graph = problem.graph
        regression = [data.regression(h) for h in range(len(graph.layers))]
        declared = ProblemFacts(problem.bounds, slack, most_to_come(graph), data.families, regression, graph.anchors)
        self.team = Team(graph, declared, cluster)

    def bound_costs(self, data: CostData, confidence: CostConfidence, values: Sequence[ValueEllipsoid]) -> CostBounds:
        """Step 1: every block goes through its rows; single bounds are computed here on demand."""

        def look(bounds: CostBounds, rounding: FloatArray) -> bool:
            known = {data.regression(h): each for h, each in enumerate(bounds.known)}
            return all(self.team.ask("look", [(known, values, rounding)] * len(self.team.members)))

        return bound_costs(self._problem, data, confidence, look=look)

    def hope(self, bounds: CostBounds) -> tuple[Certified, Hope]:
        """Steps 2 and 3 and the hopeful values, in one sweep backward."""
        problem, graph = self._problem, self._problem.graph
        steps = [last_ahead(graph, bounds, problem.bounds)]
        found: list[list[OwnStates]] = []
        for h in reversed(range(len(graph.layers))):
            words = [(h, steps[0].of(m.next[h].all), bounds.consistent) for m in self.team.members]
            here: list[OwnStates] = self.team.ask("backward", words)
            steps.insert(0, joined_states([each.ahead for each in here]))
            found.insert(0, here)
        certified, either = (
            tuple(self._pairs(h, [each[i] for each in here]) for h, here in enumerate(found)) for i in (3, 4)
        )
        action, best_action = (
            tuple(self._actions(h, [each[i] for each in here]) for h, here in enumerate(found)) for i in (1, 2)
        )
        return hope_of(problem, bounds, steps, certified, either, action, best_action)

    def shares(
        self,
        problem: Problem,
        data: CostData,
        certified: Certified,
        hoped: Hope,
        ridge: float,
        slack: FloatArray,
        least: float,
        played: tuple[Played, ...],
    ) -> SharesOfBlocks | None:
        """As :func:`surefoot.plan.shares.shares_towards`, with the shares left where they are."""
        graph, bounds = problem.graph, hoped.bounds
        hoped_here, certified_here = (self._starts() for _ in range(2))
        found = list[Targets]()
        for h in range(len(graph.layers)):
            held = [member.extents[h].states.all for member in self.team.members]
            met: list[Met] = self.team.ask("forward", [(h, hoped_here[own], certified_here[own]) for own in held])
            found += [each.targets for each in met]
            hoped_here = self._joined(h, [each.hoped for each in met])
            certified_here = self._joined(h, [each.certified for each in met])
        if bounds.terminal_upper is not None:
            rows = np.flatnonzero(hoped_here & ~certified.states[-1])
            last = len(graph.layers)
            upper = bounds.terminal_upper[rows]
            found.append(sharing.failing_rows(last, rows, upper, problem.bounds[last], slack[last]))
        targets = sharing.joined_targets(found).nearest()
        seen = sharing.seen_from(problem, data, targets, ridge)
        words = [(seen, least, self._parts_of(played, i)) for i in range(len(self.team.members))]
        answers: list[Scored] = self.team.ask("score", words)
        ends = sharing.told_by(graph.terminal.cost_features, np.flatnonzero(certified_here), seen[-1], least)
        by_step = zip(*(each.of_played for each in answers), strict=True)
        own = [OfPlayed(*map(np.concatenate, zip(*parts, strict=True))) for parts in by_step]
        most = sharing.largest([ends.score, *(each.pair for each in own)], *(each.most for each in answers))
        if not most > 0:
            return None

        def every() -> Shares:
            shares = sharing.shares_of(problem, certified, seen, targets, least, played)
            assert shares is not None
            return shares

        at_the_end = sharing.by_row(graph.terminal.n_states, ends.rows, ends.score / most)
        return SharesOfBlocks(most, at_the_end, played, tuple(each.over(most) for each in own), every)

    def _parts_of(self, played: tuple[Played, ...], i: int) -> list[Played]:
        """What a block owns of the pairs that were played, by step."""
        extents = self.team.members[i].extents
        return [each.part(own.pairs.all, own.edges.all) for each, own in zip(played, extents, strict=True)]

    def exploring_values(
        self,
        problem: Problem,
        certified: Certified,
        known: tuple[ValueEllipsoid, ...],
        hoped: Hope,
        told: SharesOfBlocks,
        weight: float,
    ) -> Explored:
        """As :func:`surefoot.plan.directed.exploring_values`; blocks compare the last values that they computed."""
        graph = problem.graph
        ends = graph.terminal.reward
        value = [np.where(certified.states[-1], ends + weight * told.last, 0.0)]
        low, action, bonus = ends, list[IntArray](), list[FloatArray]()
        at_most = arrivals_allow(graph, known, hoped.sure, told, weight)
        for h in reversed(range(len(graph.layers))):
            cap, limits = most_to_come(graph)[h] * (1.0 + weight), at_most(h, value[0])[1]
            words = []
            for member in self.team.members:
                own, ahead = told.played[h].among(member.extents[h].pairs.all), member.next[h].all
                asked = Exploring(weight, told.most, cap, weight * told.of_played[h].pair[own], limits[own])
                words.append((h, value[0][ahead], low[ahead], asked))
            found: list[ExploringStep] = self.team.ask("explore", words)
            value.insert(0, np.concatenate([each.value for each in found]))
            low = np.concatenate([each.low for each in found])
            action.insert(0, self._actions(h, [each.action for each in found]))
            bonus.insert(0, np.concatenate([each.bonus for each in found]))
        return Explored(self._values(tuple(value), tuple(action), low, tuple(bonus)), self._same_play)

    def _same_play(self) -> bool:
        here = self._starts()
        for h in range(len(self._problem.graph.layers)):
            found = self.team.ask("same", [(h, here[m.extents[h].states.all]) for m in self.team.members])
            if not all(alike for alike, _ in found):
                return False
            here = self._joined(h, [packed for _, packed in found])
        return True

    # --- answers of blocks, together --------------------------------------------------------------------

    def _starts(self) -> BoolArray:
        graph = self._problem.graph
        here = np.zeros(graph.n_states(0), bool)
        here[graph.starts] = True
        return here

    def _joined(self, h: int, packed: list[Any]) -> BoolArray:
        """(S',) states of the next step that some block marked."""
        there = np.zeros(self._problem.graph.n_states(h + 1), bool)
        for member, bits in zip(self.team.members, packed, strict=True):
            own = member.next[h]
            there[own.all] |= np.unpackbits(bits, count=own.size).astype(bool)
        return there

    def _pairs(self, h: int, packed: list[Any]) -> BoolArray:
        """(N,) marks of pairs."""
        sizes = [member.extents[h].pairs.size for member in self.team.members]
        parts = [np.unpackbits(bits, count=n) for bits, n in zip(packed, sizes, strict=True)]
        return np.concatenate(parts).astype(bool)

    def _actions(self, h: int, parts: list[Any]) -> IntArray:
        """(S,) pairs in numbers of the whole step."""
        firsts = [member.extents[h].pairs.first for member in self.team.members]
        return np.concatenate([in_the_step(p.astype(np.int64), n) for p, n in zip(parts, firsts, strict=True)])

    def _values(
        self,
        value: tuple[FloatArray, ...],
        action: tuple[IntArray, ...],
        low: FloatArray | None,
        bonus: tuple[FloatArray, ...] | None = None,
    ) -> Values:
        graph = self._problem.graph
        nothing = tuple(np.broadcast_to(0.0, layer.n_pairs) for layer in graph.layers)
        return without_q(graph, Values((), nothing if bonus is None else bonus, value, action, low))


def refuse_unsuited(problem: Problem) -> None:
    """Before anything is sent, refuse problems that many machines cannot plan."""
    fix = "Leave out on= to plan this problem on one machine."
    tables = [x for layer in problem.graph.layers for x in (layer.cost_features, layer.transition_features)]
    if any(isinstance(x, SparseRows) for x in tables):
        raise InvalidInput("plans on many machines need dense features", got="sparse ones", fix=fix)
    if problem.has_rays:
        raise InvalidInput("plans on many machines need actions without intensities", got="rays", fix=fix)
    if problem.growth is not None:
        raise InvalidInput("plans on many machines need the whole graph", got="a problem that grows", fix=fix)
