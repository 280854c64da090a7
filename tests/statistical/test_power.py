"""The power world at its testing size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.agents.agent import Agent
from surefoot.runs.run import Run
from tests.made_worlds import visits_of

pytestmark = pytest.mark.statistical


def runs(world: sf.World, episodes: int, seeds: range) -> list[Run]:
    return [sf.run(sf.LsviNew(world.problem), world, episodes, seed) for seed in seeds]


@pytest.fixture(scope="module")
def world() -> sf.World:
    return sf.worlds.make("power/testing")


def test_lsvi_new_closes_the_gap_without_a_violation(world: sf.World, seeds: range) -> None:
    for run in runs(world, 20_000, seeds):
        assert run.guaranteed
        assert run.best_value >= 1.3 * run.fallback_value
        assert run.regret[0] == pytest.approx(run.best_value - run.fallback_value)  # it begins with the fallback …
        assert run.value[100] > run.fallback_value + 0.5 * (run.best_value - run.fallback_value)  # … and soon leaves it
        assert run.gap_closed >= 0.8
        assert run.violations.sum() == 0 or not run.cost_event


def enters(world: sf.World, agent: Agent, unsafe: Callable[[int, int], bool], episodes: int, seed: int) -> bool:
    """Does it come to an unsafe state? The steps are those of a real plant; what is played is what is counted."""
    sampler = world.sampler(seed)
    for _ in range(episodes):
        state = int(world.problem.graph.starts[0])
        agent._begin(state)
        for h, layer in enumerate(world.problem.graph.layers):
            if unsafe(h, state):
                return True
            pair = agent._choose(h, state)
            edge = sampler.step(h, pair)
            agent._record(h, pair, edge, sampler.measure(h, edge))
            state = int(layer.successor[edge])
        agent._finish()
    return False


@pytest.mark.parametrize(("name", "at_least", "at_most"), [("slucb-qvi", 0.75, 1.0), ("lsvi-new", 0.0, 0.0)])
def test_who_does_not_look_ahead_empties_the_storage(
    name: str, at_least: float, at_most: float, world: sf.World, seeds: range
) -> None:
    safe = exact.solve(world).safe_states
    entered = sum(
        enters(world, sf.agents.make(name, world.problem), lambda h, s: not safe[h][s], 300, seed) for seed in seeds
    )
    assert at_least * len(seeds) <= entered <= at_most * len(seeds)


def test_it_goes_on_emptying_it(world: sf.World, seed: int) -> None:
    """Not by an early mistake: about every second day the learner without look-ahead comes to the evening empty."""
    safe = exact.solve(world).safe_states
    agent = sf.agents.make("slucb-qvi", world.problem)
    run = sf.run(agent, world, 3000, seed)
    assert run.violations.sum() > 100
    assert agent.plan is not None
    graph = world.problem.graph
    chances = [np.zeros(layer.n_pairs) for layer in graph.layers]
    for row, action in zip(chances, agent.plan.values.action, strict=True):
        row[action[action >= 0]] = 1.0
    played = visits_of(world, chances, int(graph.starts[0]))[6]
    visits = np.add.reduceat(played, graph.layers[6].state_ptr[:-1])
    assert visits[~safe[6]].sum() > 0.3


# ---------------------------------------------------------------- misspecification


def test_with_ac_flow_declared_nothing_is_violated(seeds: range) -> None:
    ac = sf.worlds.make("power/testing-ac")
    for run in runs(ac, 1000, seeds):
        assert run.guaranteed
        assert run.violations.sum() == 0
        assert run.gap_closed > 0.5  # and it is no empty promise


def test_with_a_declared_mismatch_nothing_is_violated(seeds: range) -> None:
    off = sf.worlds.make("power/testing", mismatch=0.05)
    for run in runs(off, 1000, seeds):
        assert run.guaranteed
        assert run.violations.sum() == 0
        assert run.gap_closed > 0.3


def test_an_undeclared_mismatch_is_violated(seeds: range) -> None:
    off = sf.worlds.make("power/testing", mismatch=0.05, declared=False)
    done = runs(off, 1000, seeds)
    assert sum(run.violations.any() for run in done) >= 0.75 * len(done)
    assert not any(run.guaranteed for run in done)
