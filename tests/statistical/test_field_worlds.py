"""thermal, driving and rover at their testing sizes.

That a learner without look-ahead comes to states without a safe action is asked of all worlds that claim it, in
tests/contract/test_worlds.py; here it is also what it costs, and that LSVI-NEW never does.
"""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot import exact
from tests.made_worlds import first_unsafe_entry

pytestmark = pytest.mark.statistical

FIELDS = ("thermal", "driving", "rover")
EPISODES = 20_000


@pytest.fixture(scope="module", params=FIELDS)
def world(request: pytest.FixtureRequest) -> sf.World:
    return sf.worlds.make(f"{request.param}/testing")


def test_lsvi_new_closes_the_gap_without_a_violation(world: sf.World, seeds: range) -> None:
    for seed in seeds:
        run = sf.run(sf.LsviNew(world.problem), world, EPISODES, seed)
        assert run.guaranteed
        assert run.best_value >= 1.3 * run.fallback_value
        assert run.regret[0] > 0.25 * (run.best_value - run.fallback_value)  # it is not done at once
        assert run.gap_closed >= 0.8
        assert run.violations.sum() == 0 or not run.cost_event


def test_who_does_not_look_ahead_breaks_the_limit(world: sf.World, seeds: range) -> None:
    violated = 0
    for seed in seeds:
        agent = sf.agents.make("slucb-qvi", world.problem)
        run = sf.run(agent, world, 1500, seed)
        violated += bool(run.violations.any())
        assert not run.guaranteed
    assert violated >= 0.75 * len(seeds)


def test_lsvi_new_never_comes_where_no_action_is_safe(world: sf.World, seeds: range) -> None:
    safe = exact.solve(world).safe_states
    for seed in seeds[:3]:
        entry = first_unsafe_entry(world, safe, "lsvi-new", seed=seed, episodes=300)
        assert entry is None
