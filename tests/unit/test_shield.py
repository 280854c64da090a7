"""What a shield lets through, what it learns, and what it says when an environment does not keep its word."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder
from surefoot.shields.shield import Transition
from tests.shielded import POLICIES, Random, Watched, play
from tests.tank import cell, tank_world

# ---------------------------------------------------------------- the promise


# Every world and every policy.
PLAYED = [
    ("thermal/testing", "random", "nearest"),
    ("thermal/testing", "tempted", "nearest"),
    ("driving/testing", "q-learning", "fallback"),
    ("ablation/look-ahead", "masked", "fallback"),
]


@pytest.mark.parametrize(("name", "policy", "outside"), PLAYED)
def test_no_policy_breaks_a_limit_inside_the_shield(name: str, policy: str, outside: str, seed: int) -> None:
    world = sf.worlds.make(name)
    learner, witness = Watched(world), sf.exact.Witness(world.env())
    env = sf.shield(witness, learner, outside=outside)
    play(env, POLICIES[policy](world, seed), 400, seed)
    assert witness.steps >= 400
    assert learner.episodes == len(witness.rewards)
    assert witness.violations == 0 or not learner.event
    assert (env.replacements == 0) is (policy == "masked")
    assert learner.replans > 3


@pytest.mark.parametrize(("name", "policy"), [each[:2] for each in PLAYED])
def test_the_same_policies_break_limits_without_it(name: str, policy: str, seed: int) -> None:
    """The negative control: the test above can fail."""
    world = sf.worlds.make(name)
    witness = sf.exact.Witness(world.env())
    play(witness, POLICIES[policy](world, seed), 400, seed)
    assert witness.violations > 10


def test_several_limits_and_a_cost_at_the_end(seed: int) -> None:
    """Six lines of a grid, and a last state whose cost counts; a random policy."""
    for name, steps in (("power/testing", 60), ("lower-bound/1", 120)):
        world = sf.worlds.make(name)
        learner, witness = Watched(world), sf.exact.Witness(world.env())
        play(sf.shield(witness, learner), Random(world, seed), steps, seed)
        assert witness.violations == 0 or not learner.event
        if world.terminal_costs is not None:
            learner.replan()  # what waits is entered
            rows = learner.costs.bank.rows
            assert rows[-1] == len(witness.rewards) if len(rows) > 1 else rows[0] > witness.steps


# ---------------------------------------------------------------- one step at a time


def shielded(outside: str = "fallback", **options: Any) -> Any:
    return sf.shield(sf.worlds.make("thermal/testing").env(**options), outside=outside)


def test_masks_are_what_the_plan_certifies(seed: int) -> None:
    env = shielded()
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    for _ in range(200):
        plan, h, state = env.learner.plan, info["step"], info["state"]
        if h == 0:  # a plan is for whole episodes
            certified = [plan.certified(h, state, a) for a in range(3)]
            assert env.action_masks().tolist() == certified
        assert info["action_mask"].tolist() == env.action_masks().tolist()
        assert info["exists_mask"].tolist() == [1, 1, 1]
        assert info["certificate"]["promise"] == "every step safe with probability ≥ 0.95"
        over = False
        action = int(rng.integers(3))
        allowed = bool(env.action_masks()[action])
        *_, over, _, info = env.step(action)
        assert info["replaced"] is not allowed
        assert (info["played"] == action) is allowed
        if over:
            assert not env.action_masks().any()
            _, info = env.reset()


def test_what_is_played_instead() -> None:
    """At first the fallback (power 0) and half power are certified, full power is not."""
    for outside, played in (("fallback", 0), ("nearest", 1)):
        env = shielded(outside)
        env.reset(seed=0)
        assert env.action_masks().tolist() == [True, True, False]
        *_, info = env.step(2)
        assert (info["action"], info["played"], info["replaced"], info["replacements"]) == (played, played, True, 1)
        *_, info = env.step(99)  # what does not exist is not certified
        assert (info["played"], info["replacements"]) == (played, 2)
        *_, info = env.step(-1)
        assert (info["played"], info["replacements"]) == (0, 3)


def test_the_learner_counts_what_was_played(seed: int) -> None:
    """Bit for bit the same as telling an agent of ours by its own calls, plans included."""
    world = sf.worlds.make("thermal/testing")
    told = sf.LsviNew(world.problem, replan_growth=0.0)
    env = sf.shield(world.env(), sf.LsviNew(world.problem, replan_growth=0.0))
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    told.begin_episode(info["state"])
    for _ in range(150):
        before = info["step"], info["state"]
        _, _, over, _, info = env.step(int(rng.integers(3)))
        told.observe(*before, info["action"], info["state"], info["cost"])
        if over:
            told.end_episode()
            _, info = env.reset()
            told.begin_episode(info["state"])
    told.abort_episode()
    env.reset()
    assert env.learner.replans == told.replans == 31
    _same_plan(env.learner.plan, told.plan)
    mine, other = env.learner.checkpoint(), told.checkpoint()
    assert all(np.array_equal(mine[name], other[name]) for name in other)


def _same_plan(one: sf.Plan, other: sf.Plan) -> None:
    for h in range(len(one.bounds.upper)):
        assert np.array_equal(one.bounds.upper[h], other.bounds.upper[h])
        assert np.array_equal(one.certified_sets.pairs[h], other.certified_sets.pairs[h])
        assert np.array_equal(one.values.action[h], other.values.action[h])


def test_an_episode_keeps_its_plan(seed: int) -> None:
    """Two shields share a learner. A plan made by one's episode does not change the other's, which is under way."""
    world = sf.worlds.make("thermal/testing")
    learner = sf.LsviNew(world.problem, replan_growth=0.0)
    slow, fast = sf.shield(world.env(), learner), sf.shield(world.env(), learner)
    _, begun = slow.reset(seed=seed)
    for episode in range(60):
        fast.reset(seed=seed + 1 if episode == 0 else None)
        for _ in range(5):
            *_, info = fast.step(1)
    assert info["certificate"]["plan"] > begun["certificate"]["plan"] == 1
    *_, info = slow.step(1)
    assert info["certificate"]["plan"] == 1
    _, info = slow.reset()
    assert info["certificate"]["plan"] == learner.plan.number > 50
    assert learner.episodes == 61  # the one that was given up counts


def test_the_same_seed_again_is_not_counted() -> None:
    env = shielded()
    play(env, Random(sf.worlds.make("thermal/testing"), 0), 10, seed=5)
    before = env.learner.episodes
    with pytest.warns(UserWarning, match="has learned from this seed before"):
        _, info = env.reset(seed=5)
    assert info["certificate"]["counted"] is False
    for _ in range(5):
        env.step(0)
    _, info = env.reset()  # still the same stream
    assert info["certificate"]["counted"] is False
    assert env.learner.episodes == before
    _, info = env.reset(seed=6)
    assert info["certificate"]["counted"] is True


def test_a_seed_of_a_run_is_known_too() -> None:
    world = sf.worlds.make("thermal/testing")
    agent = sf.LsviNew(world.problem)
    sf.run(agent, world, episodes=20, seed=3)
    with pytest.warns(UserWarning, match="has learned from this seed before"):
        sf.shield(world.env(), agent).reset(seed=3)


# ---------------------------------------------------------------- Gymnasium


def test_check_env_of_a_shielded_environment() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*has learned from this seed before")
        warnings.filterwarnings("ignore", message=".*unwrapped")  # it is a wrapper, and meant to be
        check_env(shielded(), skip_render_check=True)


def test_wrappers_inside_and_around() -> None:
    inside = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("surefoot/thermal-testing-v0"))
    env = gymnasium.wrappers.TransformReward(sf.shield(inside), lambda r: 10 * r)
    env.reset(seed=0)
    *_, info = env.step(2)
    assert info["replaced"]
    assert env.get_wrapper_attr("action_masks")().shape == (3,)


def test_refusals() -> None:
    world = sf.worlds.make("thermal/testing")
    with pytest.raises(InvalidInput, match=r"a shield needs an environment: a World\. Of a World: world\.env\(\)"):
        sf.shield(world)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the learner was made for a different problem"):
        sf.shield(world.env(), sf.LsviNew(sf.worlds.make("thermal/small").problem))
    with pytest.raises(InvalidInput, match="a shield needs a learner"):
        sf.shield(world.env(), sf.agents.make("fallback", world.problem))
    with pytest.raises(InvalidInput, match="a foreign environment needs a function from observations to states"):
        sf.shield(gymnasium.make("CliffWalking-v1"), sf.LsviNew(world.problem))
    with pytest.raises(InvalidInput, match="a foreign environment needs a learner"):
        sf.shield(gymnasium.make("CliffWalking-v1"), state=int)
    with pytest.raises(InvalidInput, match="Discrete action space"):
        sf.shield(gymnasium.make("Pendulum-v1"), sf.LsviNew(world.problem), state=int)
    with pytest.raises(InvalidInput, match=r"no such outside: 'random'. It is one of fallback, nearest"):
        sf.shield(world.env(), outside="random")
    with pytest.raises(InvalidInput, match="are for foreign environments"):
        sf.shield(world.env(), cost=lambda step: 0.0)
    with pytest.raises(InvalidInput, match="a shield needs the whole graph"):
        foreign(learner=sf.LsviNew(sf.worlds.make("walk/small").problem))
    env = sf.shield(world.env())
    with pytest.raises(OutOfOrder, match="step before reset"):
        env.step(0)
    env.reset(seed=0)
    for bad in (True, 0.5, "1", None):
        with pytest.raises(InvalidInput, match="action must be a whole number"):
            env.step(bad)


def test_an_action_that_is_changed_inside_is_noticed() -> None:
    env = sf.shield(gymnasium.wrappers.TransformAction(sf.worlds.make("thermal/testing").env(), lambda a: 2 - a, None))
    env.reset(seed=0)
    with pytest.raises(AssumptionBroken, match="not played the action that its shield let through"):
        env.step(0)


def test_an_environment_that_is_stepped_behind_its_back() -> None:
    inside = sf.worlds.make("thermal/testing").env()
    env = sf.shield(inside)
    env.reset(seed=0)
    inside.step(0)
    with pytest.raises(AssumptionBroken, match="its shield are at different steps"):
        env.step(0)


# ---------------------------------------------------------------- many at a time


def vector(n: int, learner: sf.LsviNew, mode: str = "NextStep", world: str = "thermal-testing") -> Any:
    kind = gymnasium.vector.AutoresetMode(mode)
    make = [lambda: gymnasium.make(f"surefoot/{world}-v0") for _ in range(n)]
    return sf.shield(gymnasium.vector.SyncVectorEnv(make, autoreset_mode=kind), learner)


class Told(Watched):
    """Notes what it is told, in order, and when it has planned."""

    def __init__(self, world: sf.World) -> None:
        self.log: list[tuple[Any, ...]] = []
        super().__init__(world)

    def take(self, *told: Any) -> None:
        self.log.append(("take", *told))
        super().take(*told)

    def replan(self) -> None:
        self.log.append(("plan", self.episodes))
        super().replan()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_eight_share_a_learner(mode: str, seed: int) -> None:
    """The same certified sets as one environment that is fed the same transitions in the same order, one by one."""
    world = sf.worlds.make("thermal/testing")
    learner = Told(world)
    envs = vector(8, learner, mode)
    rng = np.random.default_rng(seed)
    _, infos = envs.reset(seed=seed)
    for _ in range(120):
        wanted = rng.integers(3, size=8)
        masks = envs.action_masks()
        assert masks.shape == (8, 3)
        assert masks.any(axis=1).all()
        *_, infos = envs.step(wanted)
    assert envs.replacements > 0
    assert infos["replacements"].sum() == envs.replacements
    assert learner.event

    fed = sf.LsviNew(world.problem)
    for what, *told in learner.log[1:]:
        if what == "take":  # by the functions that agents of ours use, none waiting
            h, pair, edge, cost, _ = told
            fed.costs.add(h, world.problem.graph.layers[h].cost_features[edge : edge + 1], cost)
            fed.transitions.add(h, world.problem.graph.layers[h], pair, edge, fed.plan.targets[h + 1])
        else:
            fed.episodes = told[0]
            fed.replan()
    assert fed.replans == learner.replans > 10
    _same_plan(fed.plan, learner.plan)


def test_a_vector_environment_that_is_not_reset_by_itself() -> None:
    with pytest.raises(InvalidInput, match="reset themselves"):
        vector(2, sf.LsviNew(sf.worlds.make("thermal/testing").problem), "Disabled")


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
