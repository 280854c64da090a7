"""What a shield lets through and what it learns; environments of others: test_shield_foreign."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder
from tests.shielded import POLICIES, Random, Watched, play

# ---------------------------------------------------------------- the promise

# Every world and every policy.
PLAYED = [
    ("thermal/testing", "random", "nearest"),
    ("thermal/testing", "tempted", "nearest"),
    ("driving/testing", "masked", "fallback"),
    ("ablation/look-ahead", "q-learning", "fallback"),
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
    play(witness, POLICIES[policy](world, seed), 800, seed)
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
