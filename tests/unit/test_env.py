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
from surefoot.worlds import make, register_all
from surefoot.worlds.env import SurefootEnv, environment_id
from surefoot.worlds.observing import coordinates
from surefoot.worlds.registry import FAMILIES, environments
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


NAMES = [name for family in FAMILIES if (name := next(iter(family.ids()))) in environments()]


@pytest.mark.parametrize("name", NAMES)
def test_check_env_without_a_warning(name: str) -> None:
    register_all()
    env = gymnasium.make(environment_id(name)).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*no window can be opened")
        check_env(env, skip_render_check=name not in ("thermal/testing", "figure1"))


@pytest.mark.parametrize("observation", ["onehot", "features"])
def test_check_env_of_other_observations(observation: str) -> None:
    for name in ("thermal/testing", "power/testing", "figure1", "toy-text/cliff-walking"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(make(name).env(observation=observation, cost="excess"), skip_render_check=True)


def test_spaces_and_first_information() -> None:
    env = uneven().env()
    assert env.observation_space == gymnasium.spaces.MultiDiscrete([3, 3])  # 'a', ('b', 1) and 'end'
    assert env.action_space == gymnasium.spaces.Discrete(3)
    observation, info = env.reset(seed=0)
    assert observation.tolist() == [0, 0]
    assert observation.dtype == np.int64
    assert set(info) == {"state", "step", "index", "forbidden", "limits", "action_mask"}
    assert (info["state"], info["step"], info["index"]) == ("a", 0, 0)
    assert info["limits"].tolist() == [2.0, 4.0]
    assert info["action_mask"].tolist() == [1, 1, 1]
    assert info["action_mask"].dtype == np.int8


def test_a_whole_episode_by_hand() -> None:
    env = uneven().env()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(2)
    assert (observation.tolist(), reward, terminated, truncated) == ([1, 0], 0.25, False, False)
    assert (info["state"], info["step"], info["action"], info["played"]) == ("a", 1, "a", 2)
    assert info["cost"].tolist() == info["measured"].tolist() == [0.5, 1.0]
    assert info["invalid_action"] is False
    assert "terminal_cost" not in info
    observation, reward, terminated, truncated, info = env.step(0)
    assert (observation[0], reward, terminated, truncated) == (2, 0.5 + 0.125, True, False)
    assert info["terminal_cost"].tolist() == [1.5, 3.0]
    assert info["action_mask"].tolist() == [0, 0, 0]


def test_the_truth_is_not_told() -> None:
    env = uneven(noise=0.5).env()
    env.reset(seed=0)
    *_, info = env.step(2)
    assert info["cost"].tolist() != [0.5, 1.0]
    assert not any("true" in key for key in info)


@pytest.mark.parametrize("index", [3, -1])
def test_an_action_that_does_not_exist_plays_the_seed(index: int) -> None:
    env = uneven().env()
    env.reset(seed=0)
    *_, info = env.step(index)
    assert (info["action"], info["played"], info["invalid_action"]) == ("a", 2, True)
    strict = uneven().env(unknown_action="error")
    strict.reset(seed=0)
    with pytest.raises(InvalidInput, match="no such action"):
        strict.step(index)


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


@pytest.mark.parametrize(
    "options",
    [{"render_mode": "ansi"}, {"observation": "pixels"}, {"cost": "max"}, {"unknown_action": "ignore"}],
)
def test_an_unknown_option_is_refused_with_the_known_ones(options: dict[str, str]) -> None:
    (name,) = options
    with pytest.raises(InvalidInput, match=f"no such {name}: .* It is one of"):
        SurefootEnv(uneven(), **options)  # type: ignore[arg-type]


# ---------------------------------------------------------------- observations


def test_an_index_is_the_same_state_at_every_step() -> None:
    world = make("thermal/testing")
    env, names = world.env(), {}
    for state in range(6):
        env.reset(seed=state)
        done = False
        while not done:
            (_, number), _, done, _, info = env.step(2)
            assert names.setdefault(number, info["state"]) == info["state"]
    assert len(names) > 3


def test_one_hot_is_the_index_spelled_out(seed: int) -> None:
    index, onehot = (make("driving/testing").env(observation=kind) for kind in ("index", "onehot"))
    horizon = index.problem.horizon
    (step, number), _ = index.reset(seed=seed)
    seen, _ = onehot.reset(seed=seed)
    for _ in range(horizon - 1):
        assert seen in onehot.observation_space
        assert np.flatnonzero(seen).tolist() == [step, horizon + number]
        (step, number), *_ = index.step(1)
        seen, *_ = onehot.step(1)


def test_coordinates_by_hand() -> None:
    """Numbers are stretched to [0, 1], parts that are words get a column each, and so does what has another form."""
    labels = [(10, "up"), (20, "down"), (40, "up"), "over"]
    third = np.float32(1 / 3)
    expected = [[0, 1, 0, 0], [third, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    assert coordinates(labels).tolist() == expected
    assert coordinates([5]).tolist() == [[0.0]]


def test_features_are_the_step_and_the_coordinates() -> None:
    env = make("thermal/testing").env(observation="features")
    seen, info = env.reset(seed=0)
    assert seen.tolist() == [0.0, 0.0]
    assert seen.dtype == np.float32
    for h in range(1, 6):
        seen, *_, info = env.step(2)
        assert seen.tolist() == pytest.approx([h / 5, info["state"] / 7])  # heat 0 … 7


# ---------------------------------------------------------------- costs in one number


@pytest.mark.parametrize(("kind", "expected"), [("excess", 0.25), ("sum", 0.35)])
def test_one_number_of_all_costs(kind: str, expected: float) -> None:
    """Limits 2 and 4; the last state costs (2.5, 4.4): excess 0.5/2 and 0.4/4. The step there costs less."""
    env = World(uneven().problem, transition=[1.0], cost=[[0.5, 2.5], [1.0, 4.4]]).env(cost=kind)
    env.reset(seed=0)
    *_, info = env.step(2)
    assert info["cost"] == 0.0
    assert info["measured"].tolist() == [0.5, 1.0]
    *_, info = env.step(0)
    assert info["cost"] == pytest.approx(expected)


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("name", ["thermal/testing", "figure1"])
def test_a_picture_of_the_episode(name: str) -> None:
    env = make(name).env("rgb_array")
    with pytest.raises(OutOfOrder, match="render before reset"):
        env.render()
    env.reset(seed=0)
    before = env.render()
    env.step(0)
    env.step(0)
    after = env.render()
    assert before.shape == after.shape
    assert before.dtype == np.uint8
    assert before.shape[2] == 3
    assert (before != after).any()
    env.close()


def test_a_window_where_there_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    env = make("thermal/testing").env("human")
    with pytest.warns(UserWarning, match="no window can be opened"):
        env.reset(seed=0)
    env.step(0)
    assert env.render() is None
    env.close()


# ---------------------------------------------------------------- draws


def test_draws_are_the_worlds_own(seed: int) -> None:
    """reset(seed) then resets without one: the same as one sampler over several episodes."""
    world = make("thermal/testing")
    env, sampler = world.env(), world.sampler(seed)
    for episode in range(5):
        _, info = env.reset(seed=seed if episode == 0 else None)
        for h, layer in enumerate(world.problem.graph.layers):
            pair = int(layer.state_ptr[info["index"]]) + 1
            edge = sampler.step(h, pair)
            *_, info = env.step(1)
            assert info["index"] == layer.successor[edge]
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


FOUND = {  # by the package's name: test_a_spawned_worker_finds_it
    "before import surefoot": "import gymnasium, surefoot; gymnasium.make('surefoot/thermal-testing-v0')",
    "by a part of Gymnasium": "import surefoot; from gymnasium.envs.registration import make as m; "
    "m('surefoot/thermal-testing-v0')",
}


@pytest.mark.parametrize("how", FOUND)
def test_gymnasium_finds_it(how: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FOUND[how]], check=True)


def test_a_spawned_worker_finds_it() -> None:
    """A process that has imported nothing, as a vector environment spawns it."""
    code = """
import gymnasium, functools
if __name__ == "__main__":
    make = functools.partial(gymnasium.make, "surefoot:surefoot/thermal-testing-v0")
    envs = gymnasium.vector.AsyncVectorEnv([make, make], context="spawn")
    print(envs.reset(seed=0)[0].tolist())
    envs.close()
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[[0, 0], [0, 0]]\n"


def test_states_of_different_kinds_fit_into_a_vector_environment(seed: int) -> None:
    """Of the cliff, states are numbers, pairs and a word: Gymnasium would put them into an array of numbers."""
    envs = gymnasium.make_vec("surefoot/toy-text-cliff-walking-v0", num_envs=3, vectorization_mode="sync")
    envs.reset(seed=seed)
    envs.action_space.seed(seed)
    seen = set()
    for _ in range(80):
        infos = envs.step(envs.action_space.sample())[-1]
        seen |= set(infos["state"].tolist())
    assert 36 in seen or (36, -1.0) in seen  # a name is what it was
    assert len(seen) > 3
