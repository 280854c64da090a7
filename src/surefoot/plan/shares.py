"""Shares: how much of the uncertainty in the way what can be played would remove (spec 5, directed exploration).

The *targets* are cost rows with upper > c̄ that the greedy policy of V̄ may meet; those nearest to their limits,
``MOST_TARGETS`` at most, so that scores cost about as much as the bounds. A row that certified pairs may meet scores
the mean share that it removes from them (surefoot.plan.scores), and no less than :func:`useful` · u/(1+u).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.arrivals import Played
from surefoot.estimate.basis import Turned
from surefoot.estimate.costs import CostData
from surefoot.model.arrays import FloatArray, IntArray, segments
from surefoot.model.features import Features
from surefoot.model.graph import Anchors, LayeredGraph
from surefoot.model.layer import Layer
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.hope import Hope, Met, reached, reached_by
from surefoot.plan.scores import Aims, Sight, aims_at, joined, scores
from surefoot.plan.segments import segment_max

MOST_TARGETS = 32
FLOOR = 1e-5  #: per episode, of ω and of what is useful: next to nothing for a long time, and in the end enough
USEFUL = (0.01, 0.1)  #: what a row scores at least, as a share of the most that it might, at first and in the end


@dataclass(frozen=True, eq=False)
class Shares:
    """What the cost rows that may be played tell about the targets; by step, in the last one of states.

    The share of a pair is that of its best row; but if rows belong to triplets and the pair was played, the share that
    can be expected at most (surefoot.estimate.arrivals).
    """

    sizes: tuple[int, ...]  # of the tables: R, last S
    rows: tuple[IntArray, ...]  # that may be played, (n,)
    told: tuple[FloatArray, ...]  # (n,)  score / (largest score of a pair)
    aimed: tuple[NDArray[np.int8], ...]  # (n,)  the target that it narrows most, -1 where undirected
    targets: tuple[tuple[int, int], ...]  # (layer, cost row), in the last layer (layer, state)
    played: tuple[Played, ...]  # H-1
    of_played: tuple[OfPlayed, ...]  # H-1: their shares

    @cached_property
    def share(self) -> tuple[FloatArray, ...]:
        """The same by row, (R,), last (S,)."""
        return tuple(by_row(n, rows, told) for n, rows, told in zip(self.sizes, self.rows, self.told, strict=True))

    @cached_property
    def aim(self) -> tuple[IntArray, ...]:
        return tuple(
            by_row(n, rows, aim + 1) - 1 for n, rows, aim in zip(self.sizes, self.rows, self.aimed, strict=True)
        )

    def all(self) -> Shares:
        """These; shares that are computed elsewhere are fetched by the same name."""
        return self

    def bonus(self, graph: LayeredGraph, weight: float) -> tuple[list[FloatArray], FloatArray]:
        """ω · share of the pairs of every step (N,) and of the last states (S,)."""
        *told, last = (weight * each for each in self.told)
        steps = zip(graph.layers, self.rows, told, self.played, self.of_played, strict=False)
        bonus = [bonus_by_pair(layer, rows, own, seen.pairs, weight * of.pair) for layer, rows, own, seen, of in steps]
        return bonus, by_row(self.sizes[-1], self.rows[-1], last)


class OfPlayed(NamedTuple):
    """Scores or shares of the pairs of a step that were played."""

    pair: FloatArray  # (P,)
    triplet: FloatArray  # (F,) of their triplets; () where rows belong to pairs

    def over(self, most: float) -> OfPlayed:
        return OfPlayed(self.pair / most, self.triplet / most)


def of_played(layer: Layer, played: Played, rows: IntArray, score: FloatArray) -> tuple[OfPlayed, float]:
    """From the scores of some rows (n,), rising: what is expected of the triplets of pairs that were played, or the
    largest of a pair's own rows; and the largest score of the others."""
    own, ptr = (played.edges, played.ptr) if layer.per_triplet else segments(layer.row_ptr, played.pairs)
    place, found, others = np.searchsorted(rows, own), np.zeros(len(own)), score
    has = place < len(rows)
    has[has] = rows[place[has]] == own[has]
    if has.any():
        found[has], others = score[place[has]], score.copy()
        others[place[has]] = 0.0
    if layer.per_triplet:
        return OfPlayed(played.expected(found), found), largest([others])
    return OfPlayed(segment_max(found, ptr) if len(found) else found, np.empty(0)), largest([others])


def bonus_by_pair(layer: Layer, rows: IntArray, told: FloatArray, played: IntArray, own: FloatArray) -> FloatArray:
    """(N,) the largest of some rows (n,) of each pair; of those that were played (P,), what is said of them."""
    result = largest_by_pair(layer, rows, told)
    result[played] = own
    return result


def by_row(n: int, rows: IntArray, values: NDArray[Any]) -> NDArray[Any]:
    """(n,) by row, 0 elsewhere."""
    every = np.zeros(n, values.dtype)
    every[rows] = values
    return every


def largest_by_pair(layer: Layer, rows: IntArray, values: FloatArray) -> FloatArray:
    """(N,) the largest value, at least 0, of some rows (n,) of each pair; 0 without any."""
    if 8 * len(rows) > layer.n_rows:
        return segment_max(by_row(layer.n_rows, rows, values), layer.row_ptr)
    result = np.zeros(layer.n_pairs)
    np.maximum.at(result, layer.pairs_of_rows(rows), values)
    return result


def useful(episodes: int) -> float:
    """η: what a row scores at least, as a share of u/(1+u)."""
    return min(max(USEFUL[0], FLOOR * episodes), USEFUL[1])


def shares_towards(
    problem: Problem,
    data: CostData,
    certified: Certified,
    hoped: Hope,
    ridge: float,
    slack: FloatArray,
    least: float,
    played: tuple[Played, ...],
) -> Shares | None:
    """What each cost row that certified pairs may meet tells about what is hoped for; None if no row tells anything."""
    graph = problem.graph
    targets = _targets(hoped, certified, reached_by(graph, hoped.best.action), slack)
    seen = seen_from(hoped.problem, data, targets, ridge)
    return shares_of(problem, certified, seen, targets, least, played)


def shares_of(
    problem: Problem,
    certified: Certified,
    seen: Sequence[Sequence[RowView]],
    targets: Targets,
    least: float,
    played: tuple[Played, ...],
) -> Shares | None:
    """The same for given targets."""
    graph = problem.graph
    *told, last = _told_by_step(problem, reached(graph, certified.pairs), seen, least)
    steps = list(zip(graph.layers, told, played, strict=True))
    own, others = zip(*(of_played(layer, seen, each.rows, each.score) for layer, each, seen in steps), strict=True)
    most = largest([last.score, *(each.pair for each in own)], *others)
    if not most > 0:
        return None
    rows, shares, aims = zip(*((each.rows, each.score / most, each.aim) for each in (*told, last)), strict=True)
    sizes = (*(layer.n_rows for layer in graph.layers), graph.terminal.n_states)
    return Shares(sizes, rows, shares, aims, targets.places, played, tuple(each.over(most) for each in own))


def largest(parts: Iterable[FloatArray], *more: float) -> float:
    return max(0.0, *(float(part.max(initial=0.0)) for part in parts), *more)


def _told_by_step(problem: Problem, met: Met, seen: Sequence[Sequence[RowView]], least: float) -> list[Tells]:
    """Steps that share a table and its views share the work."""
    alike: dict[tuple[int, int], list[int]] = {}
    for h, views in enumerate(seen):
        alike.setdefault((id(feature_table(problem, h)), id(views)), []).append(h)
    found: dict[int, Tells] = {}
    for steps in alike.values():
        of = feature_table(problem, steps[0])
        every = reduce(np.union1d, [met[h] for h in steps])
        told = told_by(of, every, seen[steps[0]], least)
        found |= {h: told if len(steps) == 1 else told.of(np.searchsorted(every, met[h])) for h in steps}
    return [found[h] for h in range(len(seen))]


class Tells(NamedTuple):
    """What n rows of a step tell."""

    score: FloatArray  # (n,)
    rows: IntArray  # (n,)  their numbers
    aim: NDArray[np.int8]  # (n,)  the number of the target, -1 where none

    def of(self, places: IntArray) -> Tells:
        return Tells(self.score[places], self.rows[places], self.aim[places])


def told_by(x: Features | None, rows: IntArray, seen: Sequence[RowView], least: float) -> Tells:
    """What some rows (rising) of a table tell about the targets of every family; ``least``: :func:`useful`."""
    if x is None or not len(rows):
        return Tells(np.zeros(0), rows[:0], np.zeros(0, np.int8))
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
    score, alone = score / max(1, sum(len(each.numbers) for each in seen)), least * alone
    return Tells(np.maximum(score, alone), rows, np.where(score < alone, -1, aim).astype(np.int8))


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
