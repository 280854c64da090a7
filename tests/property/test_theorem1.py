"""Theorem 1 against the worst truths: no γ that the data allow breaks a limit on any certified action.

The confidence set is computed here, from the raw observations and the formulas of spec 3, not by the engine. A truth
is put on its boundary, where it hurts a given triplet most: γ̂ + radius·A⁻¹z/u is the point of a ridge's ellipsoid with
the largest cost of z. With an anchor only the part across the anchor is free; the rest is known exactly.

A truth that lies outside some other ellipsoid, or beyond ‖γ‖ ≤ L, is impossible: it is pulled towards the
real truth until all allow it. So that margins do not hide errors, limits are set to the very upper bounds of a pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import surefoot as sf
from tests.differential.compare import problem_of
from tests.reference.generate import Episode, random_history, random_tables
from tests.reference.history import feed
from tests.reference.tables import Tables

PROBLEMS = 24
P = 0.05
CLOSE = 1e-9
SHAPED = 10.0  # κ
MULTIPLES = (0.01, 0.1, 1.0, 10.0)  # of (R/L)², for which there are ellipsoids
EVERY_MULTIPLE = [10.0 ** (k / 2) for k in range(-8, 9)]  # the worst of some is the worst of the intersection


# ---------------------------------------------------------------- what the data allow, from the formulas


@dataclass(frozen=True)
class Noise:
    """{γ : ‖b_j − Gγ‖ ≤ R_j in the norm of (G + λN)⁻¹}: what the data allow under one ridge, for every limit."""

    gram: np.ndarray  # (dc, dc)
    ridge: np.ndarray  # (dc, dc)  λN
    targets: np.ndarray  # (m, dc)
    radii: np.ndarray  # (m,)

    def worst(self, z: np.ndarray, j: int, c: float, norm: float, inflate: float = 1.0) -> np.ndarray:
        """The γ of limit j with the largest ⟨γ, z⟩ in the ellipsoid that this set and c times the ball make."""
        inverse, R = np.linalg.inv(self.gram + self.ridge), inflate * self.radii[j]
        M = self.gram @ inverse @ self.gram + c * np.eye(len(z))
        q = self.gram @ inverse @ self.targets[j]
        centre = np.linalg.solve(M, q)
        square = R * R + c * norm * norm + q @ centre - self.targets[j] @ inverse @ self.targets[j]
        step = np.linalg.solve(M, z)
        return centre + math.sqrt(max(square, 0.0)) * step / math.sqrt(z @ step)

    def multiples(self, j: int, norm: float, tried: Sequence[float]) -> list[float]:
        return [t * (self.radii[j] / norm) ** 2 for t in tried]


@dataclass(frozen=True)
class Knowledge:
    """The confidence set of one regression: all its noise ellipsoids, and the ball ‖γ_j‖ ≤ L_j."""

    noises: list[Noise]
    norms: np.ndarray  # (m,)

    def share(self, inside: np.ndarray, outside: np.ndarray, j: int) -> float:
        """The largest t ≤ 1 with inside + t·(outside − inside) allowed; negative where ``inside`` is not."""
        step, found = outside - inside, [_share(np.eye(len(inside)), inside, outside - inside, self.norms[j])]
        for one in self.noises:
            inverse = np.linalg.inv(one.gram + one.ridge)
            found.append(_share(inverse, one.gram @ inside - one.targets[j], one.gram @ step, one.radii[j]))
        return min(found)


def _share(A: np.ndarray, start: np.ndarray, step: np.ndarray, radius: float) -> float:
    """The largest t ≤ 1 with ‖start + t·step‖_A ≤ radius."""
    a, b, c = step @ A @ step, start @ A @ step, start @ A @ start - radius * radius
    if c > 0:
        return -1.0
    return 1.0 if a <= 1e-300 else min(1.0, (-b + math.sqrt(b * b - a * c)) / a)


def split(tables: Tables, h: int, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """z and the known part k (m,) of a feature (spec 3)."""
    anchor, x = tables.anchor(h), np.array(x)
    if anchor is None:
        return x, np.zeros(len(tables.limits))
    x0, c0 = np.array(anchor[0]), np.array(anchor[1])
    rho = float(x @ x0 / (x0 @ x0))
    return x - rho * x0, rho * c0


def regression(tables: Tables, h: int) -> int:
    return 0 if tables.stationary_costs else h


def ridges_of(tables: Tables, even: list[float] | None) -> list[list[tuple[float, np.ndarray]]]:
    """(λ, N) for every regression: N = I of a grid, else λ = κ s and N = dc·mean(zzᵀ)/s + I/100."""
    dim, rows = len(next(iter(tables.x.values()))), dict[int, list[np.ndarray]]()
    for h in range(tables.horizon):
        rows.setdefault(regression(tables, h), [])
    for h, s, a, s2 in tables.triplets():
        rows[regression(tables, h)].append(split(tables, h, tables.x[h, s, a, s2])[0])
    last = tables.horizon - 1
    for s in tables.terminal_reward:
        if (x := tables.terminal_features(s)) is not None:
            rows[regression(tables, last)].append(split(tables, last, x)[0])
    if even is not None:
        return [[(ridge, np.eye(dim)) for ridge in even] for _ in rows]
    scale = float(np.mean([z @ z for own in rows.values() for z in own]))
    shapes = []
    for r in sorted(rows):
        mean = sum((np.outer(z, z) for z in rows[r]), np.zeros((dim, dim))) / max(1, len(rows[r]))
        shapes.append([(SHAPED * scale, dim * mean / scale + np.eye(dim) / 100.0)])
    return shapes


def knowledge(tables: Tables, history: list[Episode], even: list[float] | None) -> list[Knowledge]:
    """(S3) for every regression, straight from the observations."""
    m, dim = len(tables.limits), len(next(iter(tables.x.values())))
    rows: dict[int, list[Any]] = {regression(tables, h): [] for h in range(tables.horizon)}
    for episode in history:
        for step in episode.steps:
            x = tables.x[step.h, step.s, step.a, step.s2]
            rows[regression(tables, step.h)].append((*split(tables, step.h, x), step.cost))
        if episode.terminal is not None:
            h, (s, cost) = tables.horizon - 1, episode.terminal
            rows[regression(tables, h)].append((*split(tables, h, tables.terminal_features(s)), cost))
    ridges, made = ridges_of(tables, even), []
    union = 2 * math.log(m * len(rows) * len(ridges[0]) / P)
    for r in sorted(rows):
        z = np.array([row[0] for row in rows[r]]).reshape(-1, dim)
        target = np.array([np.array(row[2]) - row[1] for row in rows[r]]).reshape(-1, m)
        noises = []
        for ridge, shape in ridges[r]:
            growth = np.linalg.slogdet(np.eye(dim) + np.linalg.solve(ridge * shape, z.T @ z))[1]
            radii = [max(x.noise * math.sqrt(growth + union), 1e-6 * x.norm * math.sqrt(ridge)) for x in tables.limits]
            noises.append(Noise(z.T @ z, ridge * shape, (z.T @ target).T, np.array(radii)))
        made.append(Knowledge(noises, np.array([x.norm for x in tables.limits])))
    return made


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    tables: Tables
    history: list[Episode]
    ridges: list[float] | None  # even ones

    def plan(self, **options: Any) -> Any:
        kind = {"shaped": SHAPED} if self.ridges is None else {"ridges": self.ridges}  # κ would follow the limits
        agent = sf.LsviNew(problem_of(self.tables), P, replan_growth=1e9, **kind, **options)
        for episode in self.history:
            feed(agent, episode)
        agent.replan()
        return agent.plan


@cache
def cases(seed: int) -> tuple[Case, ...]:
    """Random problems and histories, with the default ridge or even ones, limits drawn tight."""
    return tuple(_cases(seed))


def _cases(seed: int) -> Iterator[Case]:
    for number in range(PROBLEMS):
        tables = random_tables(1000 * seed + number, misspecified=False)  # model errors: test_visits
        rng = np.random.default_rng([seed, number])
        history = list(random_history(tables, rng, int(rng.integers(3, 60)), rng))
        grid = [share * sf.LsviNew(problem_of(tables)).options.ridges[0] for share in (0.1, 1.0, 10.0)]
        yield tightened(Case(tables, history, (None, grid, None, [grid[rng.integers(3)]])[number % 4]), rng)


def tightened(case: Case, rng: np.random.Generator) -> Case:
    """Limits at the upper bounds of a pair off the fallback, so that it just passes; above the anchors."""
    tables, plan = case.tables, case.plan()
    off_fallback = [pair for pair in tables.pairs() if pair not in tables.fallback_pairs()]
    if not off_fallback:
        return case
    pair = off_fallback[int(rng.integers(len(off_fallback)))]
    upper = np.max([plan.upper(*pair, s2) for s2 in tables.successors[pair]], axis=0)
    anchors = [tables.anchor(h) for h in range(tables.horizon)]
    least = np.max([anchor[1] for anchor in anchors if anchor is not None], axis=0, initial=-np.inf) + 1e-6
    limits = [replace(x, bound=float(b)) for x, b in zip(tables.limits, np.maximum(upper, least), strict=True)]
    return replace(case, tables=replace(tables, limits=limits))


@dataclass(frozen=True)
class Target:
    """Something certified, off the fallback, whose cost must stay within the limits whatever the truth."""

    name: Any
    h: int
    z: np.ndarray
    fixed: np.ndarray  # (m,) what is known of its cost
    upper: np.ndarray  # (m,) the engine's


def targets(case: Case, plan: Any) -> list[Target]:
    tables, seed = case.tables, case.tables.fallback_pairs()
    found = []

    def add(name: Any, h: int, x: Any, upper: Any) -> None:
        z, known = split(tables, h, x)
        found.append(Target(name, h, z, known, upper))

    for h, s, a in tables.pairs():
        if plan.certified(h, s, a) and (h, s, a) not in seed:
            for s2 in tables.successors[h, s, a]:
                add((h, s, a, s2), h, tables.x[h, s, a, s2], plan.upper(h, s, a, s2))
    last = tables.horizon - 1
    for s in tables.terminal_reward:
        x = tables.terminal_features(s)
        if x is not None and plan.safe(last, s) and s not in tables.fallback_terminals():
            add((last, s), last, x, plan.terminal_upper(s))
    return found


def bounds(case: Case) -> np.ndarray:
    return np.array([limit.bound for limit in case.tables.limits])


def truth(case: Case, h: int, j: int) -> np.ndarray:
    """The free part of the real γ: across the anchor."""
    gamma, anchor = np.array(case.tables.gamma[h][j]), case.tables.anchor(h)
    if anchor is None:
        return gamma
    x0 = np.array(anchor[0])
    return gamma - (gamma @ x0) / (x0 @ x0) * x0


# ---------------------------------------------------------------- attacks


def worst_possible_excess(case: Case, plan: Any) -> float:
    """The most by which any truth that all the data allow takes any certified triplet over a limit."""
    known, limits, prey = knowledge(case.tables, case.history, case.ridges), bounds(case), targets(case, plan)
    excess = -math.inf
    for target in prey:
        here = known[regression(case.tables, target.h)]
        others = [x for x in prey if regression(case.tables, x.h) == regression(case.tables, target.h)]
        for j, limit in enumerate(limits):
            if not np.linalg.norm(target.z) > 1e-9:
                continue
            centre = truth(case, target.h, j)
            norm = float(here.norms[j])
            attacks = [
                one.worst(target.z, j, c, norm) for one in here.noises for c in one.multiples(j, norm, EVERY_MULTIPLE)
            ]
            attacks.append(norm * target.z / np.linalg.norm(target.z))
            for attack in attacks:
                share = here.share(centre, attack, j)
                assert share >= 0, "the event of (S3) has failed for the real truth"
                gamma = centre + share * (attack - centre)
                excess = max(excess, *(float(x.z @ gamma + x.fixed[j] - limit) for x in others))
    return excess


def worst_own_excess(case: Case, plan: Any, inflate: float = 1.0) -> tuple[float, float]:
    """Over certified triplets and limits, the point of the deciding set that hurts the triplet most.

    Returns the largest excess over a limit, and the largest distance between that cost and the engine's upper bound.
    """
    known, limits = knowledge(case.tables, case.history, case.ridges), bounds(case)
    excess, apart = -math.inf, 0.0
    for target in targets(case, plan):
        here = known[regression(case.tables, target.h)]
        size = float(np.linalg.norm(target.z))
        if not size > 1e-9:
            continue
        for j, limit in enumerate(limits):
            norm = float(here.norms[j])
            costs = [
                float(target.z @ one.worst(target.z, j, c, norm, inflate))
                for one in here.noises
                for c in one.multiples(j, norm, MULTIPLES)
            ]
            most = min(*costs, norm * size) + float(target.fixed[j])
            excess = max(excess, most - limit)
            apart = max(apart, abs(most - float(target.upper[j])))
    return excess, apart


# ---------------------------------------------------------------- the theorem, and that the test could fail


def test_no_possible_truth_breaks_a_limit(seed: int) -> None:
    attacked = 0
    tight = -math.inf
    for case in cases(seed):
        plan = case.plan()
        if not plan.consistent or not targets(case, plan):
            continue
        attacked += 1
        excess = worst_possible_excess(case, plan)
        assert excess <= CLOSE
        tight = max(tight, excess)
    assert attacked >= PROBLEMS // 3
    assert tight >= -1e-3  # some truth comes very close to a limit: there is no hidden margin


def test_the_worst_point_of_the_deciding_set_is_the_upper_bound(seed: int) -> None:
    """Equality on both sides: the bound holds, and nothing is given away."""
    tight = 0
    for case in cases(seed):
        plan = case.plan()
        if not plan.consistent:
            continue
        excess, apart = worst_own_excess(case, plan)
        assert excess <= CLOSE
        assert apart <= 1e-6
        tight += excess > -1e-7
    assert tight >= 3


def test_a_radius_five_percent_larger_breaks_limits(seed: int) -> None:
    """Negative control: the certified sets are as large as the radius allows."""
    broken = 0
    for case in cases(seed):
        plan = case.plan()
        broken += plan.consistent and worst_own_excess(case, plan, inflate=1.05)[0] > CLOSE
    assert broken >= 3


def test_half_the_radius_is_caught(seed: int) -> None:
    """Negative control: what a plan with half the radius certifies, some possible truth breaks."""
    broken = 0
    for case in cases(seed):
        plan = case.plan(safety_radius_scale=0.5)
        broken += plan.consistent and worst_possible_excess(case, plan) > CLOSE
    assert broken >= 3


def test_certified_actions_lead_to_certified_actions(seed: int) -> None:
    """The induction of Theorem 1: whatever the support allows, there is a certified action next."""
    steps = 0
    for case in cases(seed):
        plan, tables = case.plan(), case.tables
        for h, s, a in tables.pairs():
            if not plan.certified(h, s, a):
                continue
            steps += (h, s, a) not in tables.fallback_pairs()
            for s2 in tables.successors[h, s, a]:
                assert plan.safe(h + 1, s2)
                if h + 1 < tables.horizon - 1:
                    assert plan.certified(h + 1, s2, plan.action(h + 1, s2))
    assert steps > 0


def test_the_real_truth_is_where_it_should_be(seed: int) -> None:
    """The event of (S3) holds in these histories, so the attacks above start from possible truths."""
    for case in cases(seed):
        known = knowledge(case.tables, case.history, case.ridges)
        for h in range(case.tables.horizon):
            for j in range(len(case.tables.limits)):
                gamma = truth(case, h, j)
                assert known[regression(case.tables, h)].share(gamma, gamma, j) >= 0
