"""Directed exploration: play what narrows the bounds that stand between us and more reward (spec 5).

*Hopeful* pairs are those not proved unsafe. V̄ and V are the optimistic values over hopeful and over certified pairs,
without bonuses; gap = V̄ − V at the start is the most that further certificates can add. While there is a gap, the
greedy policy of V̄ plays something that is not certified. Its cost rows with upper > c̄ are the *targets*; a row that
certified pairs can reach scores the share of the targets' uncertainty that playing it removes (surefoot.plan.scores).
The policy played maximises, over certified pairs,

    V_ω  =  the value of  r + ω · share,      share = score / (largest score)

with the ω for which V_ω = V̄ at the start, within a factor of two. That ω is derived, not chosen. If certification takes
n units of share, a policy that earns v and collects i of them per episode costs (V̄ − v)·n/i until then; the least
(V̄ − v)/i over all policies is the ω for which the largest v + ω·i is V̄, and the policy that attains it is best for
r + ω · share (Dinkelbach). ω is at least ``FLOOR`` times the number of episodes. Q is not clipped at R_h, or a large
bonus would hide the way to what lies behind it. Transitions are learned from V all the time. If this policy is V's own
after all, the plan does not count as exploring.

**What never comes.** Where costs depend on the next state, a share belongs to a triplet, which may be unlikely. So what
a pair tells, and how far V_ω exceeds V behind it, is expected no higher than the times allow that its triplets came
(surefoot.estimate.arrivals). Nobody waits long for what was declared and never comes.

**Undirected.** A row that tells little about any target still has the score η · u/(1+u), with η of
:func:`surefoot.plan.shares.useful`: certifying something else may open the way. What has been asked for longer has to
tell more, so η grows: a hope close to its limit takes very long to tell, and may hide one that is told soon.

**When to stop.** What nothing can be learned about stays hopeful for ever. So of the first k episodes at most
``budget``·√k are played differently from V's greedy policy.

The search for ω begins at that of the last plan, and mostly ends there.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from surefoot.estimate.arrivals import Played
from surefoot.estimate.values import ValueEllipsoid, expected_of
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.hope import Hope, same_play
from surefoot.plan.shares import FLOOR, OfPlayed, Shares, shares_towards
from surefoot.plan.values import AtMost, Values, most_to_come, optimistic_values, without_q

MOST = 1e6  #: of ω, per step: if this is too little for V̄, what is hoped for is hardly ever met


@dataclass(frozen=True)
class Waited:
    """What a plan depends on besides the data; kept with the plan, so that it can be made again."""

    episodes: int = 0  # when the plan was made
    weight: float = 0.0  # ω of the last plan that needed one, 0 without any
    explored: int = 0  # episodes that were played differently from V's greedy policy
    gap: float = 0.0  # of the plan
    exploring: bool = False  # by the plan

    def at(self, episodes: int, gap: float) -> Waited:
        """For the next plan, which does not explore yet."""
        since = episodes - self.episodes
        return Waited(episodes, self.weight, self.explored + since * self.exploring, gap)

    def may_explore(self, episodes: int, budget: float) -> bool:
        """Is the budget not spent yet after so many episodes?"""
        return self.explored + (episodes - self.episodes) * self.exploring < budget * math.sqrt(max(1, episodes))

    def due_at(self, growth: float, budget: float) -> int | None:
        """While there is a gap, a plan is due when the number of episodes has grown by this share, or the budget is
        spent; None: not by time."""
        if not self.gap > 0 or not math.isfinite(growth):
            return None
        due = self.episodes + max(1, math.ceil(growth * self.episodes))
        if not self.exploring or self.may_explore(due, budget):
            return due
        later = range(self.episodes + 1, due + 1)
        return later[bisect_left(later, True, key=lambda k: not self.may_explore(k, budget))]


class Told(Protocol):
    """What can be played tells about the targets, wherever that was computed."""

    @property
    def played(self) -> tuple[Played, ...]:
        """H-1: pairs that were played."""

    @property
    def of_played(self) -> tuple[OfPlayed, ...]:
        """H-1: their shares."""

    def all(self) -> Shares:
        """The shares of all rows."""


@dataclass(frozen=True, eq=False)
class Directed:
    """How a plan explores."""

    weight: float  # ω
    told: Told

    @cached_property
    def shares(self) -> Shares:
        return self.told.all()


class Explored(NamedTuple):
    """The values of r + ω · share over certified pairs, and the policy that is greedy for them."""

    values: Values
    alike: Callable[[], bool]  # does it play what V's greedy policy plays?


def exploring_values(
    problem: Problem,
    certified: Certified,
    known: tuple[ValueEllipsoid, ...],
    hoped: Hope,
    shares: Shares,
    weight: float,
    sweep: Callable[..., Values] = optimistic_values,
) -> Explored:
    """For some ω; ``sweep`` computes them."""
    graph = problem.graph
    bonus, of_last = shares.bonus(graph, weight)
    caps = [most * (1.0 + weight) for most in most_to_come(graph)]  # never reached, but for rounding
    at_most = arrivals_allow(graph, known, hoped.sure, shares, weight)
    values = sweep(graph, certified, bonus, known, caps, of_last, at_most)
    values = without_q(graph, values) if problem.mapped else values
    return Explored(values, lambda: same_play(graph, values.action, hoped.sure.action))


def arrivals_allow(
    graph: LayeredGraph, known: Sequence[ValueEllipsoid], sure: Values, told: Told, weight: float
) -> AtMost:
    """What may be expected after pairs that were played: what V expects, and so much of V_ω − V and of the shares of
    their triplets as the times allow that these came."""

    def of(h: int, following: FloatArray) -> tuple[IntArray, FloatArray]:
        layer, played, own, v = graph.layers[h], told.played[h], told.of_played[h], sure.value[h + 1]
        after = layer.successor[played.edges]
        more = following[after] - v[after]
        if layer.per_triplet:
            most = played.expected(more + weight * own.triplet)
        else:
            most = played.expected(more) + weight * own.pair
        return played.pairs, expected_of(layer, v, known[h], played.pairs) + most

    return of


def weighed(
    graph: LayeredGraph, hoped: Hope, waited: Waited, values: Callable[[float], Explored]
) -> tuple[float, Explored]:
    """ω and its values: doubled or halved from the last one until the start is worth V̄, within a factor of two of the
    gap; if none is, the smallest ω tried that is worth more."""
    start = graph.starts[(hoped.best.value[0][graph.starts] - hoped.sure.value[0][graph.starts]).argmax()]
    least, most = FLOOR * waited.episodes, MOST * graph.horizon
    weight, too_small = max(least, waited.weight or hoped.gap), 0.0
    while True:
        found = values(weight)
        more = found.values.value[0][start] - hoped.sure.value[0][start]
        if more < hoped.gap / 2 and weight < most:
            too_small, weight = weight, 2.0 * weight
        elif more > hoped.gap * 2 and weight > max(least, 2.0 * too_small):
            weight = max(least, weight / 2.0)
        else:
            return weight, found
        del found  # of a large problem there is no room for two


class InMemory:
    """Explores where all tables are in memory."""

    shares = staticmethod(shares_towards)
    exploring_values = staticmethod(exploring_values)
