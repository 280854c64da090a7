"""The Gymnasium side of a world."""

import math
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds import make, names, register_all
from surefoot.worlds.env import SurefootEnv, environment_id
from surefoot.worlds.world import World


def uneven(noise: float = 0.0) -> World:
    """Two starts. 'a' has three actions, 'b' one; everything is certain; only 'end' has a terminal cost.

    The fallback stays in 'a' by its last action, so that it never comes to the 'b' of layer 1.
    """
    problem = Problem.from_functions(
        horizon=3,
        start=["a", ("b", 1)],
        actions=lambda h, s: ["end", "b", "a"] if s == "a" else ["only"],
        successors=lambda h, s, a: [_next(h, s, a)],
        reward=lambda h, s, a: {"a": 0.25, "b": 0.75}.get(a, 0.5),
        cost_features=lambda h, s, a, s2: [1.0, float(a == "b")],
        transition_features=lambda h, s, a, s2: [1.0],
        terminal_reward=lambda s: 0.125,
        terminal_cost_features=lambda s: [0.0, 1.0] if s == "end" else None,
        fallback=lambda h, s: "a" if s == "a" else "only",
        limits=[Limit("one", bound=2.0, noise=noise, norm=3.0), Limit("two", bound=4.0, noise=noise, norm=5.0)],
    )
    return World(problem, transition=[1.0], cost=[[0.5, 1.5], [1.0, 3.0]])


def _next(h: int, s: Any, a: str) -> Any:
    if a == "b":
        return ("b", 1)
    return "end" if h == 1 and a != "a" else "a"


# The same environments over another truth, or only larger, would show nothing new.
NAMES = [name for name in names() if not name.endswith("-ac") and name not in ("ladder/1e5", "ladder/1e6")]


@pytest.mark.parametrize("name", NAMES)
def test_check_env_without_a_warning(name: str) -> None:
    register_all()
    env = gymnasium.make(environment_id(name)).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


def test_spaces_and_first_information() -> None:
    env = uneven().env()
    assert env.observation_space == gymnasium.spaces.MultiDiscrete([3, 3])
    assert env.action_space == gymnasium.spaces.Discrete(3)
    observation, info = env.reset(seed=0)
    assert observation.tolist() == [0, 0]
    assert observation.dtype == np.int64
    assert set(info) == {"state", "step", "forbidden", "limits", "action_mask"}
    assert (info["state"], info["step"]) == ("a", 0)
    assert info["limits"].tolist() == [2.0, 4.0]
    assert info["action_mask"].tolist() == [1, 1, 1]
    assert info["action_mask"].dtype == np.int8


def test_a_whole_episode_by_hand() -> None:
    env = uneven().env()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(2)
    assert (observation.tolist(), reward, terminated, truncated) == ([1, 0], 0.25, False, False)
    assert (info["state"], info["step"], info["action"]) == ("a", 1, "a")
    assert info["cost"].tolist() == [0.5, 1.0]
    assert info["invalid_action"] is False
    assert "terminal_cost" not in info
    observation, reward, terminated, truncated, info = env.step(0)
    assert (observation[0], reward, terminated, truncated) == (2, 0.5 + 0.125, True, False)
    assert info["terminal_cost"].tolist() == [1.5, 3.0]
    assert info["action_mask"].tolist() == [0, 0, 0]


def test_a_last_state_without_cost_carries_none() -> None:
    env = uneven().env()
    env.reset(seed=0)
    env.step(2)
    *_, terminated, _, info = env.step(2)
    assert terminated
    assert "terminal_cost" not in info


def test_the_truth_is_not_told() -> None:
    env = uneven(noise=0.5).env()
    env.reset(seed=0)
    *_, info = env.step(2)
    assert info["cost"].tolist() != [0.5, 1.0]
    assert not any("true" in key for key in info)


@pytest.mark.parametrize("index", [3, 99, -1])
def test_an_action_that_does_not_exist_plays_the_seed(index: int) -> None:
    env = uneven().env()
    env.reset(seed=0)
    *_, info = env.step(index)
    assert (info["action"], info["invalid_action"]) == ("a", True)


def test_off_the_fallback_it_plays_the_first_action() -> None:
    env = uneven().env()
    env.reset(seed=0)
    env.step(1)
    *_, info = env.step(2)
    assert (info["action"], info["invalid_action"]) == ("only", True)


@pytest.mark.parametrize("action", [0.5, "a", None, True, np.array([0])])
def test_an_action_that_is_no_index(action: Any) -> None:
    env = uneven().env()
    env.reset(seed=0)
    with pytest.raises(InvalidInput, match="action must be a whole number"):
        env.step(action)


def test_reset_options() -> None:
    env = uneven().env()
    observation, info = env.reset(options={"state": ("b", 1)})
    assert observation.tolist() == [0, 1]
    assert info["action_mask"].tolist() == [1, 0, 0]
    with pytest.raises(InvalidInput, match=r"no such start state: 'c'. Starts are \['a', \('b', 1\)\]"):
        env.reset(options={"state": "c"})
    with pytest.raises(InvalidInput, match="no such reset option: 'stat'"):
        env.reset(options={"stat": "a"})


def test_calls_out_of_order() -> None:
    env = uneven().env()
    with pytest.raises(OutOfOrder, match="step before reset"):
        env.step(0)
    env.reset(seed=0)
    env.step(2)
    env.step(2)
    with pytest.raises(OutOfOrder, match="step after the end"):
        env.step(0)


def test_it_does_not_draw() -> None:
    with pytest.raises(InvalidInput, match="render_mode 'human'"):
        SurefootEnv(uneven(), render_mode="human")


def test_draws_are_the_worlds_own(seed: int) -> None:
    """reset(seed) then resets without one: the same as one sampler over several episodes."""
    world = make("thermal/testing")
    env, sampler = world.env(), world.sampler(seed)
    for episode in range(5):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        for h, layer in enumerate(world.problem.graph.layers):
            pair = int(layer.state_ptr[observation[1]]) + 1
            edge = sampler.step(h, pair)
            observation, *_, info = env.step(1)
            assert observation[1] == layer.successor[edge]
            assert info["cost"].tolist() == sampler.measure(h, edge).tolist()


def test_without_a_seed_episodes_differ() -> None:
    def reading(env: SurefootEnv) -> float:
        env.reset()
        return float(env.step(0)[-1]["cost"][0])

    world = make("thermal/testing")
    env = world.env()
    assert len({reading(env), reading(env), reading(world.env())}) == 3
    assert math.isfinite(reading(env))


def test_registration_and_options() -> None:
    register_all()
    register_all()  # a second time changes nothing and warns of nothing
    assert environment_id("thermal/small") == "surefoot/thermal-small-v0"
    env = gymnasium.make("surefoot/thermal-small-v0", horizon=4, bound=0.7)
    _, info = env.reset(seed=0)
    assert info["limits"].tolist() == [0.7]
    assert env.observation_space[0].n == 4  # type: ignore[index]


def test_gymnasium_finds_it_by_the_modules_name() -> None:
    code = "import gymnasium; gymnasium.make('surefoot.worlds.env:surefoot/thermal-small-v0').reset(seed=0)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
