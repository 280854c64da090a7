"""ladder, lower-bound/1 and toy-text: what they claim of learners, over several seeds."""

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.runs.run import Run

EPISODES = {  # fewer than the 20,000 that are allowed; what the slowest world needs is another test
    "ladder/testing": 8000,
    "lower-bound/1": 1000,
    "toy-text/cliff-walking": 1500,
    "toy-text/frozen-lake-4x4": 1000,
    "toy-text/frozen-lake-8x8": 1000,
    "toy-text/taxi": 1500,
}


def runs(world: sf.World, episodes: int, seeds: range, **keywords: object) -> list[Run]:
    return [
        sf.run(sf.LsviNew(world.problem, **keywords), world, episodes=episodes, seed=s)  # type: ignore[arg-type]
        for s in seeds
    ]


def assert_safe_and_learnt(run: Run) -> None:
    if run.cost_event:
        assert not run.violations.any()
    assert run.gap_closed >= 0.8


@pytest.mark.statistical
@pytest.mark.parametrize("name", EPISODES)
def test_the_gap_is_closed_without_a_violation(name: str, seeds: range) -> None:
    world = sf.worlds.make(name)
    assert exact.solve(world).value >= 1.3 * exact.fallback_value(world)
    done = runs(world, EPISODES[name], seeds)
    assert sum(run.cost_event for run in done) >= len(done) - 2  # fails with probability 0.05 at most, in truth less
    for run in done:
        assert_safe_and_learnt(run)


@pytest.mark.statistical
def test_the_slippery_cliff_too(seed: int) -> None:
    """One seed: it needs some 15,000 episodes of 60 steps."""
    world = sf.worlds.make("toy-text/cliff-walking-slippery")
    assert_safe_and_learnt(sf.run(sf.LsviNew(world.problem), world, episodes=20_000, seed=seed))


@pytest.mark.statistical
def test_on_the_ladder_whoever_does_not_look_ahead_falls_into_traps(seeds: range) -> None:
    world = sf.worlds.make("ladder/testing")
    done = runs(world, 2500, seeds, ideas=("II", "III", "IV"))
    assert sum(run.violations.any() for run in done) >= 0.75 * len(done)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "mismatch", "episodes"), [("ladder/testing", 0.02, 1200), ("toy-text/cliff-walking", 0.045, 300)]
)
def test_a_mismatch_hurts_only_where_it_is_not_declared(
    name: str, mismatch: float, episodes: int, seeds: range
) -> None:
    declared = sf.worlds.make(name, mismatch=mismatch)
    assert not np.any([run.violations.any() for run in runs(declared, episodes, seeds)])
    silent = sf.worlds.make(name, mismatch=mismatch, declared=False)
    assert sum(run.violations.any() for run in runs(silent, episodes, seeds)) >= 0.75 * len(seeds)
