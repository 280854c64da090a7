"""Shields around environments that surefoot did not make, and what they do when these do not keep their word."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder
from surefoot.shields.shield import Transition
from tests.shielded import Random, play
from tests.tank import cell, tank_world

# ---------------------------------------------------------------- foreign environments


class Corridor(gymnasium.Env[int, int]):
    """Ours it is not: walk right for reward; a jump may land beyond the declared support when ``broken``."""

    observation_space = gymnasium.spaces.Discrete(9)
    action_space = gymnasium.spaces.Discrete(3)  # stay, walk, jump

    def __init__(self, broken: int | None = None, cost: float = 0.1) -> None:
        self._broken, self._given = broken, cost

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._at += action
        if self._broken is not None:
            self._at = self._broken
        return self._at, float(action), False, False, {"cost": self._given}


def corridor(*starts: int, **other: Any) -> sf.Problem:
    declared: dict[str, Any] = {
        "horizon": 4,
        "start": list(starts) or 0,
        "actions": lambda h, s: ["stay", "walk", "jump"] if s < 5 else ["stay"],
        "successors": lambda h, s, a: [s + ["stay", "walk", "jump"].index(a)],
        "reward": lambda h, s, a: 0.2,
        "cost_features": lambda h, s, a, s2: [1.0, float(a == "jump")],
        "transition_features": lambda h, s, a, s2: [1.0],
        "fallback": lambda h, s: "stay",
        "limits": sf.Limit("cost", bound=0.5, noise=0.05, norm=1.0),
    }
    return sf.Problem.from_functions(**(declared | other))


def foreign(**options: Any) -> Any:
    options.setdefault("learner", sf.LsviNew(corridor(), replan_growth=0.0))
    env = options.pop("env", None) or Corridor(**options.pop("corridor", {}))
    return sf.shield(env, options.pop("learner"), state=int, actions=["stay", "walk", "jump"], **options)


def test_a_foreign_environment_by_hand() -> None:
    env = foreign()
    env.reset(seed=0)
    assert env.action_masks().tolist() == [True, False, False]
    for _ in range(3):
        *_, terminated, truncated, info = env.step(1)
        assert info["replaced"]
    assert (terminated, truncated) == (False, True)  # the problem's horizon is the end
    for _ in range(40):
        env.reset()
        for _ in range(3):
            env.step(0)
    env.reset()
    assert env.action_masks().tolist() == [True, True, False]  # (1, 0) is known, what a jump costs is not
    *_, info = env.step(1)
    assert not info["replaced"]
    assert info["exists_mask"].tolist() == [1, 1, 1]


def test_the_users_own_cost(seed: int) -> None:
    seen: list[Transition] = []

    def cost(step: Transition) -> float:
        seen.append(step)
        return 0.25

    env = foreign(cost=cost)
    env.reset(seed=seed)
    env.step(0)
    assert seen[0][:6] == (0, 0, 0, 0.0, False, False)
    env.reset()
    assert env.learner.costs.bank.state.targets[0, 0, 0] == 0.25


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), None])
def test_a_cost_that_is_not_finite_is_not_learned_and_takes_the_promise(cost: float | None) -> None:
    """A sensor that fails when costs are high would make bounds of what it measures too low. None: it was not read."""
    env = foreign(corridor={"cost": cost})
    for _ in range(30):
        env.reset()
        for _ in range(3):
            *_, info = env.step(0)
    assert env.learner.costs.bank.rows.sum() == 0
    assert env.learner.transitions.bank.rows.sum() == 90
    assert info["certificate"]["guaranteed"] is (cost is None)
    assert (f"measured [{cost}]" in info["certificate"]["promise"]) is (cost is not None)
    env.reset()
    assert env.action_masks().tolist() == [True, False, False]


def test_what_was_declared_impossible_leaves_the_fallback() -> None:
    env = foreign(corridor={"broken": 1}, learner=sf.LsviNew(corridor(0, 1)))
    env.reset()
    *_, info = env.step(0)
    assert env.action_masks().tolist() == [True, False, False]
    assert info["certificate"]["guaranteed"] is False
    assert "led to 1, which was declared impossible" in info["certificate"]["promise"]
    before = env.learner.transitions.bank.rows.sum()
    *_, info = env.step(2)
    assert info["replaced"]
    env.step(0)
    _, info = env.reset()
    assert env.learner.transitions.bank.rows.sum() == before == 0  # nothing is learned from there on
    assert info["certificate"]["guaranteed"] is False  # nor is anything promised, by any shield of this learner
    _, info = foreign(learner=env.learner).reset()
    assert "led to 1, which was declared impossible" in info["certificate"]["promise"]


def test_where_the_fallback_has_no_action_it_stops() -> None:
    env = foreign(corridor={"broken": 1})
    env.reset()
    with pytest.raises(AssumptionBroken, match="left the declared support, and the fallback has no action here"):
        env.step(0)
    assert not env.action_masks().any()
    with pytest.raises(OutOfOrder, match="Call reset first"):
        env.step(0)  # what was certified was so in the state before


def test_a_state_that_nobody_declared_stops_it() -> None:
    env = foreign(corridor={"broken": 8})
    env.reset()
    with pytest.raises(AssumptionBroken, match=r"a state that the problem does not know.*8"):
        env.step(0)
    with pytest.raises(OutOfOrder, match="Call reset first"):
        env.step(0)
    _, info = env.reset()
    assert not info["certificate"]["guaranteed"]


def test_a_vector_environment_after_an_error_and_before_its_reset() -> None:
    def cost(step: Transition) -> float:
        if len(told) == 2:
            raise RuntimeError("the sensor is gone")
        told.append(step)
        return 0.1

    told: list[Transition] = []
    made = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.wrappers.TimeLimit(Corridor(), 3)] * 2)
    env = foreign(env=made, cost=cost)
    for bad in ([0], [0.5, 1.0], ["x", "y"]):
        with pytest.raises((OutOfOrder, InvalidInput)):
            env.step(bad)
    env.reset()
    for bad in ([0], [0.5, 1.0], ["x", "y"]):
        with pytest.raises(InvalidInput, match="2 whole numbers"):
            env.step(bad)
    env.step([2, 2])
    with pytest.raises(RuntimeError, match="the sensor is gone"):
        env.step([0, 0])
    with pytest.raises(OutOfOrder, match="Call reset first"):
        env.step([2, 2])
    assert [step.action for step in told] == [0, 0]  # no jump was ever let through


def test_more_refusals_of_foreign_environments() -> None:
    with pytest.raises(InvalidInput, match="actions must name every action"):
        sf.shield(Corridor(), sf.LsviNew(corridor()), state=int, actions=["stay"])
    plain = sf.shield(Corridor(), sf.LsviNew(corridor()), state=int)  # 0, 1, 2 are not the problem's names
    plain.reset()
    with pytest.raises(AssumptionBroken, match=r"the environment has no such action.*'stay'"):
        plain.step(0)
    with pytest.raises(InvalidInput, match="a shield needs the whole graph"):
        foreign(learner=sf.LsviNew(sf.worlds.make("walk/small").problem))
    env = foreign(env=gymnasium.wrappers.TransformReward(_Silent(), lambda r: r))
    env.reset()
    with pytest.raises(InvalidInput, match="does not say what a step costs"):
        env.step(0)


class _Silent(Corridor):
    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return *super().step(action)[:4], {}


def test_a_forbidden_state_is_a_violation_and_never_entered(seed: int) -> None:
    """Two steps to the right are forbidden: a jump, or walking twice. Costs are known to be low from the first."""
    problem = corridor(forbidden=lambda h, s: s == 2, limits=sf.Limit("cost", bound=2.0, noise=0.05, norm=1.0))
    world = sf.World(problem, transition=[1.0], cost=[0.1, 0.1])
    bare = sf.exact.Witness(world.env(cost="excess"))
    bare.reset(seed=seed)
    *_, info = bare.step(2)
    assert (info["forbidden"], info["cost"], bare.violations) == (True, 1.0, 1)
    witness = sf.exact.Witness(world.env())
    env = sf.shield(witness)
    play(env, Random(world, seed), 300, seed)
    assert witness.violations == 0
    assert env.replacements > 30
    env.reset()
    assert env.action_masks().tolist() == [True, True, False]  # one may walk once


class Cell(gymnasium.Env[int, int]):
    """One state, two actions, and always the same cost."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, 0.0, False, False, {"cost": 0.2}


def test_an_offset_that_an_episode_shares() -> None:
    """Costs are counted while the policy does what the plan would: one that strays may have seen the offset."""
    noisy = sf.Limit("cost", bound=0.5, noise=0.05, norm=1.0, episode_noise=0.02)
    learner = sf.LsviNew(corridor(limits=noisy), replan_growth=1e9)
    env = foreign(learner=learner)
    planned = learner.plan.action(0, 0)
    env.reset()
    assert planned == "stay"  # nothing else is certified yet
    for _ in range(3):
        env.step(0)
    learner.replan()
    assert learner.costs.bank.rows.sum() == 3
    for pair in learner.plan.values.action:
        pair.setflags(write=True)
        pair[:] = -1  # as if the plan would do otherwise
    env.reset()
    for _ in range(3):
        env.step(0)
    learner._enter()
    assert learner.costs.bank.rows.sum() == 3
    assert learner.transitions.bank.rows.sum() == 6


def test_plans_never_know_a_part_of_an_episode_that_shares_an_offset() -> None:
    """Several at a time are refused where one regression takes several rows of an episode, and only there."""
    for stationary, tau, refused in ((True, 0.02, True), (True, 0.0, False), (False, 0.02, False)):
        noisy = sf.Limit("cost", bound=0.5, noise=0.05, norm=1.0, episode_noise=tau)
        problem = corridor(limits=noisy, stationary_costs=stationary)
        for n in (1, 2):
            envs = gymnasium.vector.SyncVectorEnv([Corridor] * n)
            options: dict[str, Any] = {"state": int, "actions": ["stay", "walk", "jump"]}
            if refused and n == 2:
                with pytest.raises(InvalidInput, match=r"one at a time.*2 environments"):
                    sf.shield(envs, sf.LsviNew(problem), **options)
            else:
                sf.shield(envs, sf.LsviNew(problem), **options)


def test_costs_measured_between_several_rows() -> None:
    """The second action's cost lies between two rows; only what was measured where can be counted."""
    learner = sf.LsviNew(cell([[0.3, 0.0], [0.0, 0.3]]), replan_growth=0.0)
    with pytest.raises(InvalidInput, match="the features of measured costs are missing"):
        sf.shield(Cell(), learner, state=int)
    env = sf.shield(Cell(), learner, state=int, features=lambda step: [0.1, 0.2])
    for _ in range(30):
        env.reset()
        for _ in range(2):
            env.step(1)
    assert learner.costs.bank.rows.sum() == 60
    assert learner.transitions.bank.rows.sum() == 60
    target = learner.costs.bank.state.targets[0, 0]
    assert target[:2].tolist() == pytest.approx([60 * 0.2 * 0.1, 60 * 0.2 * 0.2])


def test_plans_keep_pace_with_data_that_never_wait() -> None:
    """Rows with features of their own are counted at once; whether a plan is due is looked at all the same."""
    learner = sf.LsviNew(cell([[0.3, 0.0], [0.0, 0.3]]), replan_growth=0.5)
    env = sf.shield(Cell(), learner, state=int, features=lambda step: [0.1, 0.2])
    for _ in range(200):
        env.reset()
        for _ in range(2):
            env.step(0)
    assert learner.costs.bank.rows.sum() == 400
    assert not learner.costs.bank.has_grown(learner.planned_cost_log_det, math.log(1.7))


def test_parts_of_a_vector_environment_declare_the_same_problem() -> None:
    worlds = [tank_world(forbidden=forbidden) for forbidden in (False, True)]
    for other, refused in ((worlds[0], False), (worlds[1], True)):
        envs = gymnasium.vector.SyncVectorEnv([worlds[0].env, other.env])
        if refused:
            with pytest.raises(InvalidInput, match="different problems"):
                sf.shield(envs)
        else:
            sf.shield(envs)


def test_longer_episodes_of_a_foreign_vector_environment() -> None:
    envs = gymnasium.vector.SyncVectorEnv([Corridor, Corridor])
    env = sf.shield(envs, sf.LsviNew(corridor()), state=int, actions=["stay", "walk", "jump"])
    env.reset()
    env.step(np.zeros(2, int))
    env.step(np.zeros(2, int))
    with pytest.raises(InvalidInput, match="longer than the problem's horizon"):
        env.step(np.zeros(2, int))
