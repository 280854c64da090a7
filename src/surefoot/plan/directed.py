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
bonus would hide the way to what lies behind it; transitions are learned from V_ω/(1 + ω), which is at most R_h anyway.
If this is the greedy policy of V after all, and ω is below ``HEAVY``, the plan does not count as exploring.

**Undirected.** If nothing that can be played tells much about any target (the largest score is below :func:`useful` of
the largest u/(1+u)), the score is u/(1+u) itself: certifying something else may open the way. What has been asked for
longer has to tell more: a hope close to its limit takes very long to tell, and may hide one that is told soon.

**When to stop.** What nothing can be learned about stays hopeful for ever. So of the first k episodes at most
``budget``·√k are played differently from V's greedy policy.

**How much work.** Only the ``MOST_TARGETS`` targets nearest to their limits are used; scores then cost about as much as
the bounds. The search for ω begins at that of the last plan, and mostly ends there.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.basis import Turned
from surefoot.estimate.costs import CostData
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.model.graph import Anchors, LayeredGraph
from surefoot.model.layer import Layer
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.hope import Hope, Met, reached, reached_by, same_play
from surefoot.plan.scores import Aims, Sight, aims_at, joined, scores
from surefoot.plan.segments import segment_max
from surefoot.plan.values import Values, most_to_come, optimistic_values, without_q

MOST_TARGETS = 32
FLOOR = 1e-5  #: per episode, of ω and of what is useful: next to nothing for a long time, and in the end enough
MOST = 1e3  #: of ω, per step: if this is too little for V̄, what is hoped for is hardly ever met
HEAVY = 8.0  #: from this ω on values are mostly about information, even if they lead to the same actions
USEFUL = (0.01, 0.1)  #: scores below this share of the largest possible one point nowhere, at first and in the end


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


@dataclass(frozen=True, eq=False)
class Shares:
    """What the cost rows that may be played tell about the targets; by step, in the last one of states."""

    sizes: tuple[int, ...]  # of the tables: R, last S
    rows: tuple[IntArray, ...]  # that may be played, (n,)
    told: tuple[FloatArray, ...]  # (n,)  score / (largest score)
    aimed: tuple[NDArray[np.int8], ...]  # (n,)  the target that it narrows most, -1 if undirected
    targets: tuple[tuple[int, int], ...]  # (layer, cost row), in the last layer (layer, state)

    @cached_property
    def share(self) -> tuple[FloatArray, ...]:
        """The same by row, (R,), last (S,)."""
        return tuple(_laid_out(n, rows, told) for n, rows, told in zip(self.sizes, self.rows, self.told, strict=True))

    @cached_property
    def aim(self) -> tuple[IntArray, ...]:
        return tuple(
            _laid_out(n, rows, aim + 1) - 1 for n, rows, aim in zip(self.sizes, self.rows, self.aimed, strict=True)
        )

    def all(self) -> Shares:
        """These; shares that are computed elsewhere are fetched by the same name."""
        return self

    def bonus(self, graph: LayeredGraph, weight: float) -> tuple[list[FloatArray], FloatArray]:
        """ω · share of the pairs of every step (N,), the largest of their rows, and of the last states (S,)."""
        *told, last = (weight * each for each in self.told)
        steps = zip(graph.layers, self.rows, told, strict=False)
        bonus = [largest_by_pair(layer, rows, own) for layer, rows, own in steps]
        return bonus, _laid_out(self.sizes[-1], self.rows[-1], last)


def _laid_out(n: int, rows: IntArray, values: NDArray[Any]) -> NDArray[Any]:
    """(n,) by row, 0 elsewhere."""
    every = np.zeros(n, values.dtype)
    every[rows] = values
    return every


def largest_by_pair(layer: Layer, rows: IntArray, values: FloatArray) -> FloatArray:
    """(N,) the largest value, at least 0, of some rows (n,) of each pair; 0 without any."""
    if 8 * len(rows) > layer.n_rows:
        return segment_max(_laid_out(layer.n_rows, rows, values), layer.row_ptr)
    result = np.zeros(layer.n_pairs)
    np.maximum.at(result, layer.pairs_of_rows(rows), values)
    return result


@dataclass(frozen=True, eq=False)
class Directed:
    """How a plan explores."""

    weight: float  # ω
    told: Callable[[], Shares]

    @cached_property
    def shares(self) -> Shares:
        return self.told()


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
    values = sweep(graph, certified, bonus, known, caps, of_last)
    values = without_q(graph, values) if problem.mapped else values
    return Explored(values, lambda: same_play(graph, values.action, hoped.sure.action))


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


def shares(
    problem: Problem,
    data: CostData,
    certified: Certified,
    hoped: Hope,
    ridge: float,
    slack: FloatArray,
    least: float,
) -> Shares | None:
    """How much each cost row that certified pairs reach tells about the targets; None if no row tells anything."""
    graph = problem.graph
    targets = _targets(hoped, certified, reached_by(graph, hoped.best.action), slack)
    seen = seen_from(hoped.problem, data, targets, ridge)
    return shares_of(problem, certified, seen, targets, least)


def shares_of(
    problem: Problem, certified: Certified, seen: Sequence[Sequence[RowView]], targets: Targets, least: float
) -> Shares | None:
    """The same for given targets."""
    told = _told_by_step(problem, reached(problem.graph, certified.pairs), seen)
    scale = share_scale(_largest(each.score for each in told), _largest(each.alone for each in told), least)
    if scale is None:
        return None
    sizes = (*(layer.n_rows for layer in problem.graph.layers), problem.graph.terminal.n_states)
    rows = tuple(each.rows for each in told)
    column = tuple((each.alone if scale.undirected else each.score) / scale.most for each in told)
    if scale.undirected:
        return Shares(sizes, rows, column, tuple(np.full(len(part), -1, np.int8) for part in column), ())
    return Shares(sizes, rows, column, tuple(each.aim for each in told), targets.places)


def _told_by_step(problem: Problem, met: Met, seen: Sequence[Sequence[RowView]]) -> list[Tells]:
    """Steps that share a table and its views share the work."""
    alike: dict[tuple[int, int], list[int]] = {}
    for h, views in enumerate(seen):
        alike.setdefault((id(feature_table(problem, h)), id(views)), []).append(h)
    found: dict[int, Tells] = {}
    for steps in alike.values():
        of = feature_table(problem, steps[0])
        every = reduce(np.union1d, [met[h] for h in steps])
        told = told_by(of, every, seen[steps[0]])
        found |= {h: told if len(steps) == 1 else told.of(np.searchsorted(every, met[h])) for h in steps}
    return [found[h] for h in range(len(seen))]


def _largest(parts: Iterable[FloatArray]) -> float:
    return max(float(part.max(initial=0.0)) for part in parts)


class Tells(NamedTuple):
    """What n rows of a step tell."""

    score: FloatArray  # (n,)
    alone: FloatArray  # (n,)  u/(1+u)
    rows: IntArray  # (n,)  their numbers
    aim: NDArray[np.int8]  # (n,)  the number of the target, -1 where none

    def of(self, places: IntArray) -> Tells:
        return Tells(self.score[places], self.alone[places], self.rows[places], self.aim[places])


def told_by(x: Features | None, rows: IntArray, seen: Sequence[RowView]) -> Tells:
    """What some rows (rising) of a table tell about the targets of every family."""
    if x is None or not len(rows):
        return Tells(np.zeros(0), np.zeros(0), rows[:0], np.zeros(0, np.int8))
    score, most, alone = (np.zeros(len(rows)) for _ in range(3))
    aim = np.full(len(rows), -1, np.int8)
    for each in seen:
        found, own, square = scores(x, rows, each.sight, each.aims)
        if len(each.numbers):
            own = np.where(own >= 0, each.numbers[own], -1).astype(np.int8)
        aim = np.where(found > most, own, aim)
        most = np.maximum(most, found)
        score += found
        alone = np.maximum(alone, np.divide(square, 1.0 + square, out=square))
    return Tells(score / max(1, sum(len(each.numbers) for each in seen)), alone, rows, aim)


class ShareScale(NamedTuple):
    """How scores become shares."""

    most: float  # the largest
    undirected: bool  # the score is u/(1+u)


def useful(episodes: int) -> float:
    """The least share of the largest u/(1+u) that a score must have to point anywhere."""
    return min(max(USEFUL[0], FLOOR * episodes), USEFUL[1])


def share_scale(most: float, alone: float, least: float) -> ShareScale | None:
    """From the largest score and the largest u/(1+u); ``least``: :func:`useful`. None if no row tells anything."""
    if not alone > 0:
        return None
    return ShareScale(alone, True) if most < least * alone else ShareScale(most, False)


def feature_table(problem: Problem, h: int) -> Features | None:
    """The cost rows of a step, (R, dc), in the last one (S, dc)."""
    graph = problem.graph
    return graph.terminal.cost_features if h == graph.horizon - 1 else graph.layers[h].cost_features


class Targets(NamedTuple):
    """Cost rows that fail a limit, n of them."""

    layer: IntArray  # (n,)
    row: IntArray  # (n,)  in the last layer the state
    excess: FloatArray  # (n,)  by how many slacks, at most
    failing: IntArray  # (n,)  the limit that it fails most

    def nearest(self) -> Targets:
        """Those nearest to their limits, the first of equals; at most ``MOST_TARGETS``."""
        order = np.argsort(self.excess, kind="stable")[:MOST_TARGETS]
        return Targets(self.layer[order], self.row[order], self.excess[order], self.failing[order])

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """(layer, cost row) of each."""
        return tuple(zip(self.layer.tolist(), self.row.tolist(), strict=True))


def joined_targets(parts: Sequence[Targets]) -> Targets:
    return Targets(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def failing_rows(h: int, rows: IntArray, upper: FloatArray, limits: FloatArray, slack: FloatArray) -> Targets:
    """Those of some rows (n,) of a step, with upper bounds (n, m), that fail a limit (m,)."""
    over = (upper - limits) / slack
    most = over.max(axis=1)
    fails = most > 0
    return Targets(np.full(int(fails.sum()), h), rows[fails], most[fails], over[fails].argmax(axis=1))


def _targets(hoped: Hope, certified: Certified, met: Met, slack: FloatArray) -> Targets:
    """The nearest of the met cost rows that are not certified and fail a limit."""
    problem, bounds, graph, found = hoped.problem, hoped.bounds, hoped.problem.graph, list[Targets]()
    for h, rows in enumerate(met):
        if h < graph.horizon - 1:
            done, upper = hoped.done[h][graph.layers[h].pairs_of_rows(rows)], bounds.upper[h]
        elif bounds.terminal_upper is None:
            break
        else:
            done, upper = certified.states[-1][rows], bounds.terminal_upper
        rows = rows[~done]
        found.append(failing_rows(h, rows, upper[rows], problem.bounds[h], slack[h]))
    return joined_targets(found).nearest()


class RowView(NamedTuple):
    """How to look at the rows of one step and family, and the targets that they may tell about."""

    sight: Sight
    numbers: IntArray  # of these targets, among all
    aims: Aims


def seen_from(problem: Problem, data: CostData, targets: Targets, ridge: float) -> list[list[RowView]]:
    """By step and family; steps that look at their rows in the same way share their views. A target belongs to the
    family of the limit that it fails and to the regression of its step, whose rows tell about it."""
    turned = [data.bank.turned(r) for r in range(len(data.bank.rows))]
    sights = _sights(problem.graph, data, turned, ridge)
    numbers: list[list[IntArray]] = [[np.empty(0, np.int64)] for _ in turned]
    parts: list[list[Aims]] = [[] for _ in turned]
    family, alike = data.state.family[targets.failing].tolist(), dict[tuple[int, int, int], list[int]]()
    for target, (h, f) in enumerate(zip(targets.layer.tolist(), family, strict=True)):
        alike.setdefault((id(feature_table(problem, h)), id(sights[h]), f), []).append(target)
    for (*_, f), own in alike.items():
        h, r = int(targets.layer[own[0]]), data.regression(int(targets.layer[own[0]]), f)
        if (x := feature_table(problem, h)) is not None:
            parts[r].append(aims_at(x, targets.row[own], sights[h][f]))
            numbers[r].append(np.array(own))
    aims = []
    for of, several, data_of in zip(numbers, parts, turned, strict=True):
        order, found = np.argsort(np.concatenate(of)), joined(several, data_of)  # nearest first again, for ties
        aims.append((np.concatenate(of)[order], Aims(found.turned[order], found.block[order])))
    views: dict[int, list[RowView]] = {}
    for h, looks in enumerate(sights):
        if id(looks) not in views:
            views[id(looks)] = [RowView(look, *aims[data.regression(h, f)]) for f, look in enumerate(looks)]
    return [views[id(looks)] for looks in sights]


def _sights(graph: LayeredGraph, data: CostData, turned: Sequence[Turned], ridge: float) -> list[list[Sight]]:
    """By step and family; one list for all steps with the same regression and anchors."""
    found: dict[tuple[int, Anchors | None], list[Sight]] = {}
    for h, anchors in enumerate(graph.anchors):
        if (data.regression(h), anchors) not in found:
            found[data.regression(h), anchors] = [
                Sight(turned[data.regression(h, f)], family, anchors, ridge * family.ratio)
                for f, family in enumerate(data.families)
            ]
    return [found[data.regression(h), anchors] for h, anchors in enumerate(graph.anchors)]
