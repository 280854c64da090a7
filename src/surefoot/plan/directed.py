"""Directed exploration: play what narrows the bounds that stand between us and more reward (spec 5).

*Hopeful* pairs are those that are not proved unsafe. V̄ and V are the optimistic values over hopeful and over certified
pairs, without bonuses; gap = V̄ − V at the start is what more certificates could add. While there is a gap, the greedy
policy of V̄ plays something that is not certified. Its cost rows with upper > c̄ are the *targets*, and a row that
certified pairs can reach scores the share of a target's uncertainty that playing it takes away (surefoot.plan.scores).
What is played maximises, over certified pairs,

    r + ω · share,    share = score / (largest score),    ω = gap · curiosity · max(1, foregone / patience)

and ω at least ``FLOOR`` times the number of episodes; foregone = the sum of the gaps of all episodes since the gap last
fell by a tenth. As a skier buys when the rents have added up, it explores in earnest once waiting has cost enough and
brought nothing. Q is not clipped at R_h, or a large bonus would hide the way to what lies behind it; transitions are
learned from V/(1 + ω), which is at most R_h by itself.
Where all this comes to the greedy policy of V after all, and ω is below ``HEAVY``, the plan is V's own.

**Undirected.** Where what can be played tells next to nothing about any target, the largest score being below
``USEFUL`` of the largest u/(1+u), the score is u/(1+u) itself: certifying something else may open the way.

**When to stop.** A hope that nothing can be learned about stays a hope for ever. So of the first k episodes at most
``budget``·√k are played otherwise than V's greedy policy would.

**How much work.** Of the targets, the ``MOST_TARGETS`` that are nearest to their limits: scores then cost about as much
as the bounds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surefoot.estimate.bank import Turned
from surefoot.estimate.costs import CostData
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.features import Features
from surefoot.model.graph import FloatArray, IntArray
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.hope import Hope, Marks, reached, reached_by, same_play
from surefoot.plan.scores import Aims, Sight, aims_at, joined, scores
from surefoot.plan.segments import segment_max, spread
from surefoot.plan.values import Values, most_to_come, optimistic_values

MOST_TARGETS = 32
FLOOR = 1e-5  #: of ω, per episode: next to nothing for a long time, and in the end enough for the regret theorem
HEAVY = 8.0  #: an ω from which on the values are information first, even where they lead to the same actions
USEFUL = 0.01  #: scores below this share of the largest that any target could have point nowhere


@dataclass(frozen=True)
class Waited:
    """What decides a plan beside the data. It is kept with the plan, which can then be made again."""

    episodes: int = 0  # when the plan was made
    foregone: float = 0.0  # by then, since the gap last fell by a tenth
    least: float = math.inf  # the gap, when it last did
    explored: int = 0  # episodes that were played otherwise than V's greedy policy would
    gap: float = 0.0  # of the plan
    exploring: bool = False  # by the plan

    def at(self, episodes: int, gap: float) -> Waited:
        """When the next plan is made, which does not explore yet."""
        since = episodes - self.episodes
        foregone, least = self.foregone + self.gap * since, self.least
        if 0 < gap < 0.9 * least:
            foregone, least = 0.0, gap
        return Waited(episodes, foregone, least, self.explored + since * self.exploring, gap)

    def weight(self, curiosity: float, patience: float) -> float:
        """ω of a plan that is made now."""
        return max(self.gap * curiosity * max(1.0, self.foregone / patience), FLOOR * self.episodes)

    def may_explore(self, episodes: int, budget: float) -> bool:
        """The budget is not spent yet when so many episodes have been played under the plan."""
        return self.explored + (episodes - self.episodes) * self.exploring < budget * math.sqrt(max(1, episodes))

    def due_at(self, growth: float, budget: float) -> int | None:
        """While there is a gap a plan is due when the number of episodes has grown so much, or the budget is spent;
        None: not by time."""
        if not self.gap > 0 or not math.isfinite(growth):
            return None
        due = self.episodes + max(1, math.ceil(growth * self.episodes))
        if not self.exploring or self.may_explore(due, budget):
            return due
        later = range(self.episodes + 1, due + 1)
        return later[bisect_left(later, True, key=lambda k: not self.may_explore(k, budget))]


class Shares(NamedTuple):
    """What cost rows that may be played tell about targets; per decision layer (R,), last (S,)."""

    share: tuple[FloatArray, ...]  # score / (largest score)
    aim: tuple[IntArray, ...]  # the number of the target that it narrows most, -1 where undirected
    targets: tuple[tuple[int, int], ...]  # (layer, cost row), in the last layer (layer, state)


@dataclass(frozen=True, eq=False)
class Directed:
    """How a plan explores."""

    values: Values  # what is played
    shares: Shares
    weight: float  # ω


def directed_values(
    problem: Problem,
    certified: Certified,
    known: tuple[ValueEllipsoid, ...],
    hoped: Hope,
    shares: Shares,
    weight: float,
) -> Directed | None:
    """The values and the policy that maximise r + ω · share over certified pairs; None where V's own will do."""
    graph = problem.graph
    bonus = [
        weight * segment_max(share, layer.row_ptr) for share, layer in zip(shares.share[:-1], graph.layers, strict=True)
    ]
    caps = [most * (1.0 + weight) for most in most_to_come(graph)]  # never reached, but for rounding
    values = optimistic_values(graph, certified, bonus, known, caps, weight * shares.share[-1])
    if weight < HEAVY and same_play(graph, values.action, hoped.sure.action):
        return None
    return Directed(values, shares, weight)


def shares(
    problem: Problem,
    data: CostData,
    certified: Certified,
    hoped: Hope,
    ridge: float,
    slack: FloatArray,
) -> Shares | None:
    """How much each cost row that certified pairs reach tells about the targets; None where all tell nothing at all."""
    graph = problem.graph
    turned = [data.bank.turned(r) for r in range(len(data.bank.rows))]
    targets, failing = _targets(hoped, certified, reached_by(graph, hoped.best.action), slack)
    aims = _aims(hoped.problem, data, turned, targets, failing, ridge)
    score, aim, alone = [], [], []
    for h, mask in enumerate(reached(graph, certified.pairs)):
        best, which, most_told = np.zeros(len(mask)), np.full(len(mask), -1, np.int8), np.zeros(len(mask))
        x = _table(problem, h)
        if x is not None and mask.any():
            for f in range(len(data.families)):
                numbers, aimed = aims[data.regression(h, f)]
                found, own, square = scores(x, np.flatnonzero(mask), _sight(problem, data, turned, h, f, ridge), aimed)
                if len(numbers):
                    own = np.where(own >= 0, numbers[own], -1).astype(np.int8)
                which = np.where(found > best, own, which)
                best = np.maximum(best, found)
                most_told = np.maximum(most_told, np.divide(square, 1.0 + square, out=square))
        score.append(best)
        aim.append(which)
        alone.append(most_told)
    most, most_alone = _largest(score), _largest(alone)
    if not most_alone > 0:
        return None
    if most < USEFUL * most_alone:
        nowhere = tuple(np.full(len(part), -1, np.int8) for part in alone)
        return Shares(tuple(part / most_alone for part in alone), nowhere, ())
    return Shares(tuple(np.divide(part, most, out=part) for part in score), tuple(aim), tuple(targets))


def _largest(parts: list[FloatArray]) -> float:
    return max(float(part.max(initial=0.0)) for part in parts)


def _table(problem: Problem, h: int) -> Features | None:
    graph = problem.graph
    return graph.terminal.cost_features if h == graph.horizon - 1 else graph.layers[h].cost_features


def _targets(
    hoped: Hope, certified: Certified, marks: Marks, slack: FloatArray
) -> tuple[list[tuple[int, int]], list[int]]:
    """Of some cost rows, those that are not certified and fail a limit, the nearest to it first; not too many.

    And the limit that each fails most.
    """
    problem, bounds, graph = hoped.problem, hoped.bounds, hoped.problem.graph
    layer, row, excess, failing = [], [], [], []
    for h, mask in enumerate(marks):
        if h < graph.horizon - 1:
            done, upper = spread(hoped.done[h], graph.layers[h].row_ptr), bounds.upper[h]
        elif bounds.terminal_upper is None:
            break
        else:
            done, upper = certified.states[-1], bounds.terminal_upper
        rows = np.flatnonzero(mask & ~done)
        over = (upper[rows] - problem.bounds[h]) / slack[h]
        most = over.max(axis=1)
        fails = most > 0
        layer.append(np.full(int(fails.sum()), h))
        row.append(rows[fails])
        excess.append(most[fails])
        failing.append(over[fails].argmax(axis=1))
    order = np.argsort(np.concatenate(excess), kind="stable")[:MOST_TARGETS]
    layers, rows, limits = (np.concatenate(part)[order].tolist() for part in (layer, row, failing))
    return list(zip(layers, rows, strict=True)), limits


def _sight(problem: Problem, data: CostData, turned: list[Turned], h: int, family: int, ridge: float) -> Sight:
    own = data.families[family]
    return Sight(turned[data.regression(h, family)], own, problem.graph.anchors[h], ridge * own.ratio)


def _aims(
    problem: Problem,
    data: CostData,
    turned: list[Turned],
    targets: list[tuple[int, int]],
    failing: list[int],
    ridge: float,
) -> list[tuple[IntArray, Aims]]:
    """By regression: the numbers of its targets, and these. A target belongs to the family of the limit it fails."""
    numbers: list[list[int]] = [[] for _ in turned]
    parts: list[list[Aims]] = [[] for _ in turned]
    for number, ((h, row), j) in enumerate(zip(targets, failing, strict=True)):
        x, f = _table(problem, h), data.family_of(j)
        r = data.regression(h, f)
        if x is not None:
            parts[r].append(aims_at(x, np.array([row]), _sight(problem, data, turned, h, f, ridge)))
            numbers[r].append(number)
    return [(np.array(n, np.int64), joined(p, t)) for n, p, t in zip(numbers, parts, turned, strict=True)]
