"""Directed exploration never touches safety: what it hopes for is never played, and what it plays is certified."""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot.plan.hope import reached_by
from tests.differential.compare import problem_of
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed


@pytest.mark.parametrize("number", range(12))
def test_what_is_played_is_certified_and_what_is_refuted_is_not_hoped_for(number: int, seed: int) -> None:
    tables = random_tables(number + 100_000 * seed)
    problem, rng = problem_of(tables), np.random.default_rng([seed, number, 5])
    agent = sf.LsviNew(problem, budget=(1.0, 1e6)[number % 2])
    for episode in random_history(tables, rng, 40, rng):  # any action, also of what no learner would play
        feed(agent, episode)
        check(agent)


def check(agent: sf.LsviNew) -> None:
    plan, graph, limits = agent.plan, agent.problem.graph, agent.problem.limits
    bound = np.array([limit.bound for limit in limits])
    hopeful, certified = plan.hope.hopeful, plan.certified_sets
    met = reached_by(graph, plan.values.action)
    for h, layer in enumerate(graph.layers):
        played = plan.values.action[h][plan.values.action[h] >= 0]
        assert certified.pairs[h][played].all()
        assert hopeful.pairs[h][certified.pairs[h]].all()
        refuted = np.logical_or.reduceat((plan.bounds.lower[h] > bound).any(axis=1), layer.pair_ptr[:-1])
        refuted[certified.pairs[h]] = False  # the fallback's own, safe by assumption
        if plan.consistent:
            assert not hopeful.pairs[h][refuted].any()
        # values that transitions are learned from stay in the range that their confidence needs
        assert plan.targets[h].max() <= graph.horizon - h + 1e-9
        assert plan.targets[h].min() >= 0
        assert np.repeat(certified.pairs[h], np.diff(layer.pair_ptr))[met[h]].all()
    assert plan.to_gain >= plan.gap >= 0


def test_exploring_without_end_stays_safe(seed: int) -> None:
    """With no budget, on a world where most of what tells something is unsafe."""
    world = sf.worlds.make("thermal/testing")
    agent = sf.LsviNew(world.problem, budget=1e6)
    run = sf.run(agent, world, 3000, seed=seed, progress=False)
    assert run.cost_event
    assert not run.violations.any()
