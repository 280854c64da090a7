"""The instances of Theorem 3: costs, rewards and safe sets as the proof has them, and what no safe learner can do."""

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput
from surefoot.worlds.named.lower_bound import theorem3

INSTANCES = ["1", "2"]
C, C0, DELTA = 0.5, 0.1, 0.2  # c̄, c⁰, Δ
HORIZON = 6
COSTS = {  # of a(1) … a(6)
    "1": [C0, 2 * C - C0, C0, 2 * C - C0 - DELTA, 2 * C - C0, 2 * C - C0],
    "2": [C0, 2 * C - C0, C0, C0 + DELTA, 2 * C - C0, 2 * C - C0],
}
REWARDS = [1 / 8, 1.0, 0.0, 1 / 2, 1 / 2, 1 / 2]


@pytest.mark.parametrize("instance", INSTANCES)
def test_costs_and_rewards_of_the_proof(instance: str) -> None:
    world = sf.worlds.make(f"lower-bound/{instance}")
    problem = world.problem
    assert world.costs[0].ravel().tolist() == pytest.approx(COSTS[instance])
    assert problem.graph.layers[0].reward.tolist() == REWARDS
    for h in range(1, HORIZON - 1):
        assert list(problem.states(h)) == [1, 2, 3, 4, 5, 6]
        assert world.costs[h].ravel().tolist() == pytest.approx(COSTS[instance])
        assert problem.graph.layers[h].reward.tolist() == REWARDS
    assert world.terminal_costs is not None
    assert world.terminal_costs.ravel().tolist() == pytest.approx(COSTS[instance])
    assert problem.graph.terminal.reward.tolist() == REWARDS
    every = np.concatenate([*world.costs, world.terminal_costs])
    assert every.min() >= 0.0
    assert every.max() <= 1.0
    assert problem.limits[0].noise == 1.0


@pytest.mark.parametrize(("instance", "safe", "best"), [("1", [1, 3], HORIZON / 8), ("2", [1, 3, 4], HORIZON / 2)])
def test_what_is_safe_and_best(instance: str, safe: list[int], best: float) -> None:
    world = sf.worlds.make(f"lower-bound/{instance}")
    solution = exact.solve(world)
    assert [int(i) + 1 for i in np.flatnonzero(solution.safe_actions[0])] == safe
    for h in range(1, HORIZON):
        assert [world.problem.states(h)[int(i)] for i in np.flatnonzero(solution.safe_states[h])] == safe
    assert solution.value == pytest.approx(best)
    assert exact.fallback_value(world) == 0.0


def test_the_learner_is_told_the_same_in_both() -> None:
    first, second = (theorem3(instance) for instance in INSTANCES)
    assert first.problem.digest == second.problem.digest
    assert first.digest != second.digest


def test_only_the_fourth_tells_them_apart() -> None:
    first, second = (theorem3(instance) for instance in INSTANCES)
    for one, two in zip(first.costs, second.costs, strict=True):
        assert np.flatnonzero(one != two).tolist() == [3]


@pytest.mark.parametrize("noise_scale", [1.0, 0.001])
def test_a_safe_learner_never_plays_it_and_pays_for_that_in_the_second(noise_scale: float, seed: int) -> None:
    first, second = (theorem3(instance, noise_scale=noise_scale) for instance in INSTANCES)
    one = sf.run(sf.LsviNew(first.problem), first, episodes=150, seed=seed)
    two = sf.run(sf.LsviNew(second.problem), second, episodes=150, seed=seed)
    assert not one.violations.any()
    assert not two.violations.any()
    assert not one.regret.any()  # a(1) from the first episode
    np.testing.assert_allclose(two.regret, 3 / 8 * HORIZON)  # for ever
    assert two.gap_closed == pytest.approx(1 / 4)
    np.testing.assert_array_equal(one.certified, two.certified)


def test_options() -> None:
    world = theorem3("2", horizon=3, actions=9, bound=0.4, fallback_cost=0.05, gap=0.3, noise="uniform")
    assert world.problem.horizon == 3
    assert world.costs[0].ravel().tolist() == pytest.approx([0.05, 0.75, 0.05, 0.35] + [0.75] * 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"instance": "3"}, "no such instance: '3'. Choose from 1, 2."),
        ({"actions": 4}, "actions must be a whole number, at least 5: 4"),
        (
            {"bound": 0.6},
            "costs would leave [0, 1]: 2·bound − fallback_cost = 1.1. Lower bound, or raise fallback_cost.",
        ),
        ({"gap": 0.4}, "gap must be below bound − fallback_cost: 0.4 and 0.4. Lower gap or fallback_cost."),
        ({"fallback_cost": -0.1}, "fallback_cost must be at least 0: -0.1"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        theorem3(**options)
    assert str(refused.value) == message
