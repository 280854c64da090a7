"""Theorem 1, in two halves: a true cost event excludes every violation, and the event is true as often as promised.

The first half is no statistics at all. It must hold in every episode of every run: no violation while all true
costs lie within the plan's bounds. The second counts runs: the event of spec 3 spends p, so over N runs the number of
misses is at most binomial(N, p). A radius halved must break that, or the count would prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot as sf
from surefoot.runs.run import Run
from tests.alike import AGENTS
from tests.drawn_worlds import certified_world, paper_world

pytestmark = pytest.mark.statistical

NOISES = ("gaussian", "uniform", "rademacher")
BATCHES = 3  # of random worlds; one of them by default, all with --thorough
BATCH = 11
EPISODES = 120
FLUKE = 1e-6  # how rarely a correct program may fail a count


def while_true(run: Run) -> Any:
    """(K,) was the plan's cost event true in this episode?"""
    held = dict(zip(run.plans_table.number, run.plans_table.cost_event, strict=True))
    return np.array([held[number] for number in run.episodes_table.plan.tolist()])


def assert_safe_while_true(runs: Iterable[Run]) -> None:
    for run in runs:
        assert not run.violations[while_true(run)].any(), run
        if run.cost_event:
            assert run.violations.sum() == 0
            assert (run.margin >= -1e-9).all()


def most_misses(runs: int, p: float) -> int:
    """More misses of the cost event than this have a probability below FLUKE, if it spends p."""
    return int(binom.isf(FLUKE, runs, p))


def misses(runs: Iterable[Run]) -> int:
    return sum(not run.cost_event for run in runs)


# ---------------------------------------------------------------- a true event excludes violations


@pytest.mark.parametrize("size", ["testing", "small"])
def test_thermal_is_safe(size: str, seed: int) -> None:
    runs = []
    for number, noise in enumerate(NOISES):
        world = sf.worlds.make(f"thermal/{size}", noise=noise)
        runs += [sf.run(sf.LsviNew(world.problem), world, 3000, 10 * seed + number)]
    assert_safe_while_true(runs)
    assert misses(runs) == 0  # not a count: the chance is far below p, see the tight worlds below
    assert all(run.gap_closed > 0.5 for run in runs)  # safe, and not by standing still


def test_random_worlds_are_safe(batch: int, seed: int) -> None:
    runs = []
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        world = certified_world(200_000 + 1000 * seed + number, NOISES[number % 3])
        growth = (0.1, 0.0, 0.5)[number // 3 % 3]
        for run_seed in (2 * seed, 2 * seed + 1):
            runs.append(sf.run(sf.LsviNew(world.problem, replan_growth=growth), world, EPISODES, run_seed))
    assert_safe_while_true(runs)
    assert misses(runs) <= most_misses(len(runs), 0.05)
    assert sum(run.certified[-1] > run.certified[0] for run in runs) > len(runs) // 3  # something was learned


def test_random_worlds_are_safe_with_the_papers_constants(batch: int, seed: int) -> None:
    runs = []
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        world, options = paper_world(300_000 + 1000 * seed + number, NOISES[number % 3])
        agent = sf.LsviNewPaper(world.problem, **options, initial_episodes=10 * (number % 2))
        runs.append(sf.run(agent, world, EPISODES, seed))
    assert_safe_while_true(runs)
    assert misses(runs) <= most_misses(len(runs), 0.05)
    assert sum(bool((run.value > run.value[0]).any()) for run in runs) > len(runs) // 3  # it left the fallback


@pytest.mark.parametrize("scale", [0.1, 0.3])
def test_even_a_radius_too_small_is_safe_while_its_event_is_true(scale: float, seed: int) -> None:
    """Here the event fails again and again: runs have true and false episodes, and violations only in the latter.

    Before any data every bound is true, and of 320 runs 94 % came to a false one. Fewer than 8 of 20 have a
    probability below FLUKE even if it were 85 %.
    """
    runs = []
    for number in range(20):
        world = certified_world(400_000 + 1000 * seed + number, NOISES[number % 3])
        runs.append(sf.run(sf.LsviNew(world.problem, safety_radius_scale=scale), world, EPISODES, seed))
    assert_safe_while_true(runs)
    true = [while_true(run) for run in runs]
    assert all(each[0] for each in true)
    assert sum(not each.all() for each in true) >= 8
    assert not any(run.guaranteed for run in runs)


def almost_safe() -> sf.World:
    """ "go" costs 0.95 where 0.9 is allowed, and all that is measured is "stay", half as long, in much noise."""
    problem = sf.Problem.from_functions(
        horizon=2,
        start=0,
        actions=lambda h, s: ["stay", "go"],
        successors=lambda h, s, a: [0],
        reward=lambda h, s, a: 0.1 if a == "stay" else 1.0,
        cost_features=lambda h, s, a, s2: [0.5 if a == "stay" else 1.0],
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: "stay",
        limits=sf.Limit("load", bound=0.9, noise=0.5, norm=2.0),
    )
    return sf.World(problem, transition=[1.0], cost=[0.95])


@pytest.mark.parametrize(("scale", "least", "most"), [(0.1, 10, 20), (1.0, 0, 0)])
def test_a_radius_too_small_does_break_limits(scale: float, least: int, most: int, seed: int) -> None:
    """The negative control: of twenty runs many break the limit with a tenth of the radius, and none with all of it."""
    world, broken = almost_safe(), 0
    for s in range(20 * seed, 20 * seed + 20):
        run = sf.run(sf.LsviNew(world.problem, safety_radius_scale=scale), world, EPISODES, s)
        broken += bool(run.violations.any())
    assert least <= broken <= most


@pytest.mark.parametrize("name", ["ucrl-vtr", "no look-ahead"])
def test_without_look_ahead_a_true_event_is_not_enough(name: str, seed: int) -> None:
    """The counter counts: agents that do not look ahead violate while every true cost is within its bounds."""
    runs = []
    for number in range(16):
        world = certified_world(500_000 + 1000 * seed + number)
        runs.append(sf.run(AGENTS[name](world.problem), world, EPISODES, seed))
    assert sum(int(run.violations[while_true(run)].sum()) for run in runs) > 0


# ---------------------------------------------------------------- the event is true as often as promised


def tight_world(noise: str, cost: float = 1.0, **known: Any) -> sf.World:
    """Nothing helps the bounds here: one feature, one state, four limits and two layers that share nothing.

    The truth is at the end of its norm, so that the ball adds nothing to the ellipsoid (costs of 0 miss two thirds as
    often), and noise is as large as the norm. The union over limits and layers is nearly exact, since their noises are
    independent.
    """
    problem = sf.Problem.from_functions(
        horizon=2,
        start=0,
        actions=lambda h, s: [0],
        successors=lambda h, s, a: [0],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, s2: [1.0],
        transition_features=lambda h, s, a, s2: [1.0],
        terminal_cost_features=lambda s: [1.0],
        fallback=lambda h, s: 0,
        limits=[sf.Limit(f"limit {j}", bound=2.0, noise=1.0, **(known or {"norm": 1.0})) for j in range(4)],
    )
    return sf.World(problem, transition=[1.0], cost=np.full((4, 1), cost), noise=noise)


def tight_runs(noise: str, p: float, scale: float, seeds: range, **truth: Any) -> list[Run]:
    world = tight_world(noise, **truth)
    options: dict[str, Any] = {"ridges": [1.0], "replan_growth": 0.25, "safety_radius_scale": scale}
    return [sf.run(sf.LsviNew(world.problem, p, **options), world, 300, s) for s in seeds]


@pytest.mark.parametrize(("p", "often"), [(0.05, 0.0), (0.5, 0.09), (0.9, 0.17)])
def test_the_event_fails_no_more_often_than_promised(p: float, often: float, seed: int) -> None:
    """And where it may fail often it does fail: the bounds are no wider than they must be. Below the rate ``often``,
    which is less than was counted (0.10 and 0.20 of 240 runs), it could hardly fail so rarely."""
    runs = [run for noise in NOISES for run in tight_runs(noise, p, 1.0, range(50 * seed, 50 * seed + 50))]
    assert int(binom.ppf(FLUKE, len(runs), often)) <= misses(runs) <= most_misses(len(runs), p)
    assert often == 0.0 or misses(runs) > 0


@pytest.mark.parametrize("noise", NOISES)
def test_half_the_radius_is_caught(noise: str, seed: int) -> None:
    """The negative control: the same worlds and the same count, half the radius."""
    runs = tight_runs(noise, 0.05, 0.5, range(30 * seed, 30 * seed + 30))
    assert misses(runs) > 2 * most_misses(len(runs), 0.05)


@pytest.mark.parametrize(("p", "scale", "caught"), [(0.05, 1.0, False), (0.9, 1.0, False), (0.05, 0.4, True)])
def test_with_an_interval_the_event_fails_no_more_often_either(p: float, scale: float, caught: bool, seed: int) -> None:
    """The truth at a quarter of its interval: ball, box and noise all have a say. A radius too small is caught."""
    seeds = range(50 * seed, 50 * seed + 50)
    runs = [run for noise in NOISES[:2] for run in tight_runs(noise, p, scale, seeds, cost=0.5, prior=[(0.0, 2.0)])]
    assert (misses(runs) > 2 * most_misses(len(runs), p)) is caught
    assert p < 0.5 or 0 < misses(runs) <= most_misses(len(runs), p)


def test_half_the_radius_is_caught_on_random_worlds(seed: int) -> None:
    """There the truth nearly fills its declared norm, and the prior part of the radius is missed as well."""
    counts, worlds = [], 60
    for scale in (1.0, 0.5):
        runs = []
        for number in range(worlds):
            world = certified_world(600_000 + 1000 * seed + number)
            agent = sf.LsviNew(world.problem, safety_radius_scale=scale, replan_growth=0.5)
            runs.append(sf.run(agent, world, 60, seed))
        counts.append(misses(runs))
    assert counts[0] <= most_misses(worlds, 0.05) < counts[1]
