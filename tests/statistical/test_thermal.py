"""The quick-start world: the learner arrives without a violation; learners that do not look ahead break the limit."""

from __future__ import annotations

import pytest

import surefoot as sf

pytestmark = pytest.mark.statistical

EPISODES = 100_000


@pytest.mark.parametrize("number", range(3))
def test_lsvi_new_closes_the_gap_without_a_violation(number: int, seed: int) -> None:
    world = sf.worlds.make("thermal/small")
    run = sf.run(sf.LsviNew(world.problem), world, EPISODES, 3 * seed + number)
    gap = run.best_value - run.fallback_value
    assert gap > 1.0  # there is something to learn
    assert run.regret[0] > 0.25 * gap  # which is not done at once
    assert (run.regret[-1000:] < 0.05 * gap).all()
    assert run.regret[-10_000:].mean() < 0.05 * gap
    assert (run.regret >= 0).all()
    assert run.violations.sum() == 0
    assert run.cost_event
    assert run.guaranteed


@pytest.mark.parametrize("name", ["ucrl-vtr", "slucb-qvi"])
def test_the_others_violate(name: str, seed: int) -> None:
    world = sf.worlds.make("thermal/small")
    for run_seed in (2 * seed, 2 * seed + 1):
        run = sf.run(sf.agents.make(name, world.problem), world, 2000, run_seed)
        assert run.violations.sum() > 50
        assert run.promise == "no safety guarantee"


def test_so_does_lsvi_new_without_idea_one(seed: int) -> None:
    world = sf.worlds.make("thermal/small")
    run = sf.run(sf.LsviNew(world.problem, ideas="II III IV"), world, 2000, seed)
    assert run.violations.sum() > 10
    assert run.promise == "no safety guarantee"


def test_the_fallback_neither_learns_nor_violates(seed: int) -> None:
    world = sf.worlds.make("thermal/small")
    run = sf.run(sf.agents.make("fallback", world.problem), world, 2000, seed)
    assert run.violations.sum() == 0
    assert run.gap_closed == 0.0
