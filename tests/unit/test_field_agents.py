"""The published learners' own rules, on cases small enough to work out by hand."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import registry, two_sets
from surefoot.checks import check_options, options_of
from surefoot.errors import InvalidInput
from surefoot.model.layer import NO_ACTION
from surefoot.plan.certify import Certified, certify, not_refuted
from tests.hand_made import bounds_of, maze
from tests.made_worlds import hand_world
from tests.sparse_worlds import sparse_worlds

THERMAL = "thermal/testing"


@pytest.fixture(scope="module")
def thermal() -> sf.World:
    return sf.worlds.make(THERMAL)


def two_ways(limit: float = 0.5, **options: Any) -> sf.World:
    """One decision: keep (0.1 at cost 0.2), go (0.6 at 0.4), dash (0.9 at 0.9), each to an end of its own."""
    table = {
        (0, "s"): {"keep": (0.1, {"k": (1.0, 0.2)}), "go": (0.6, {"g": (1.0, 0.4)}), "dash": (0.9, {"d": (1.0, 0.9)})}
    }
    return hand_world(table, {"k": (0.0, None), "g": (0.0, None), "d": (0.0, None)}, bounds=(limit,), **options)


# ---------------------------------------------------------------- UCRL-VTR+


def test_ucrl_vtr_plus_keeps_the_truth_inside(thermal: sf.World, seed: int) -> None:
    run = sf.run(sf.agents.make("ucrl-vtr-plus", thermal.problem), thermal, 120, seed)
    assert run.value_event
    tight = sf.run(sf.agents.make("ucrl-vtr-plus", thermal.problem, optimism=0.0), thermal, 120, seed)
    assert tight.value_event  # optimism is of the plan, not of the confidence set


# ---------------------------------------------------------------- safe sets


def test_the_published_confidence_knows_of_no_model_error() -> None:
    """A declared misspecification widens the proved bounds alone, before data and after."""
    world = sf.worlds.make("heights/testing")
    (limit,), graph = world.problem.limits, world.problem.graph
    assert limit.misspecification > 0
    staying = int(graph.layers[0].state_ptr[0])  # x = 0: nothing to learn
    for confidence, error in (("published", 0.0), ("proved", limit.misspecification)):
        agent = sf.agents.make("sno-mdp", world.problem, confidence=confidence)
        for episodes in (0, 20):
            if episodes:
                sf.run(agent, world, episodes, 0)
            assert agent.plan.bounds.upper[0][staying, 0] == pytest.approx(error, abs=1e-12)
    told = sf.agents.make("sno-mdp", world.problem)
    sf.run(told, world, 20, 0)
    radius = told.costs.ellipsoids(0, told.cost_confidence, 0).radii
    assert radius == pytest.approx(2.0 * limit.noise)


@pytest.mark.parametrize("name", ["safe-mdp", "sno-mdp", "safe-exp-opt"])
def test_proved_bounds_on_all_successors_are_the_certified_sets(name: str, thermal: sf.World, seed: int) -> None:
    """Told the same data, and asked for everything, the pessimistic set is that of LSVI-NEW; then it may promise."""
    agent = sf.agents.make(name, thermal.problem, confidence="proved", successors="all", replan_growth=0.0)
    assert agent.guaranteed
    assert agent.promise == "every step safe with probability ≥ 0.95"
    assert not sf.agents.make(name, thermal.problem, confidence="proved").guaranteed
    run = sf.run(agent, thermal, 60, seed)
    other = sf.LsviNew(thermal.problem)
    for told in (other.costs.bank.state, other.transitions.bank.state):
        source = (agent.costs if told is other.costs.bank.state else agent.transitions).bank.state
        for mine, theirs in zip(told, source, strict=True):
            mine[...] = theirs
    other.costs.spread[...] = agent.costs.spread
    other.replan()
    for mine, theirs in zip(agent.plan.certified_sets.pairs, other.plan.certified_sets.pairs, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert run.violations.sum() == 0


@pytest.mark.parametrize("option", [{"confidence": "firm"}, {"successors": "two"}, {"ridges": (1.0, 2.0)}])
def test_unknown_options_of_safe_sets_are_refused(option: dict[str, Any], thermal: sf.World) -> None:
    with pytest.raises(InvalidInput, match=r"no such|one ridge"):
        sf.agents.make("safe-mdp", thermal.problem, **option)


LANES = {
    (0, "s"): {"stay": ["s"], "left": ["a"], "right": ["b"]},
    (1, "s"): {"stay": ["s"]},
    (1, "a"): {"on": ["s"]},
    (1, "b"): {"on": ["s"], "risky": ["s"]},
}


def test_sno_mdp_settles_when_the_dream_stays_inside() -> None:
    """A step that is not proved may be dreamt of where it leads to a state that the set reaches in another way."""
    problem = maze(
        {**LANES, (1, "b"): {"on": ["s"], "risky": ["s"], "far": ["z"]}}, {(0, "s"): "stay", (1, "s"): "stay"}
    )
    graph = problem.graph
    unproved = {(1, "b", "risky", "s"): 2.0, (1, "b", "far", "z"): 2.0}
    sure = certify(graph, bounds_of(problem, unproved), problem.bounds)
    first = [layer.state_ptr[:-1].copy() for layer in graph.layers]
    at_b = np.arange(3) == problem.state_index(1, "b")

    def stays(action: str, sure: Certified = sure, by_steps: bool = False) -> bool:
        dream = (first[0], np.where(at_b, problem.pair_index(1, "b", action), first[1]))
        return two_sets.stays(graph, sure, SimpleNamespace(action=dream), by_steps)

    assert stays("on")
    assert stays("on", by_steps=True)
    assert stays("risky")
    assert not stays("risky", by_steps=True)
    assert not stays("far")
    # A state that the set does not reach may dream what it likes.
    left = (np.arange(graph.layers[0].n_pairs) != problem.pair_index(0, "s", "right"), sure.pairs[1])
    assert stays("far", Certified(left, sure.states))
    assert stays("far", Certified(left, sure.states), by_steps=True)


def test_sno_mdp_makes_its_trips_and_then_earns(thermal: sf.World, seed: int) -> None:
    agent = sf.agents.make("sno-mdp", thermal.problem, trips=20, tolerance=0.0)
    sf.run(agent, thermal, 15, seed)
    settled_early = bool(agent.settled[0])
    sf.run(agent, thermal, 30)
    assert agent.settled[0]
    assert agent.episodes == 45
    if not settled_early:
        assert sf.agents.make("sno-mdp", thermal.problem, trips=0).settled[0]


def test_hope_of_safe_exp_opt_decides_between_two_values(thermal: sf.World, seed: int) -> None:
    """η = 0 is greedy in the pessimistic set, as SNO-MDP is when settled; η = 1 goes where more may be hoped for."""
    careful = sf.agents.make("safe-exp-opt", thermal.problem, hope=0.0)
    settled = sf.agents.make("sno-mdp", thermal.problem, trips=0)
    one, two = (sf.run(agent, thermal, 40, seed) for agent in (careful, settled))
    np.testing.assert_allclose(one.value, two.value)
    graph = {
        (0, "s"): {"stay": ["s"], "left": ["a"]},
        (1, "s"): {"stay": ["s"]},
        (1, "a"): {"on": ["s"], "jump": ["s"]},  # 0, or 1 if it were safe: its cost is anything up to 2
    }
    pays = {(0, "s", "stay"): 0.3, (1, "s", "stay"): 0.3, (0, "s", "left"): 0.2, (1, "a", "jump"): 1.0}
    jumps = maze(
        graph,
        {(0, "s"): "stay", (1, "s"): "stay"},
        reward=pays,
        cost_features=lambda h, s, a, s2: [1.0 if a == "jump" else 0.0],
        transition_features=lambda h, s, a, s2: [1.0],
    )
    for hope, action in ((0.0, "stay"), (0.3, "stay"), (0.6, "left"), (1.0, "left")):  # 0.3 + 0.3 against 0.2 + η·1
        assert sf.agents.make("safe-exp-opt", jumps, hope=hope).plan.action(0, "s") == action
    with pytest.raises(InvalidInput, match="hope must be at most 1"):
        sf.agents.make("safe-exp-opt", thermal.problem, hope=1.5)


# ---------------------------------------------------------------- LSVI-AE


def test_lsvi_ae_plays_nothing_that_is_refuted_while_there_is_hope(thermal: sf.World, seed: int) -> None:
    refuted = []

    def look(plan: sf.Plan, done: int) -> None:
        hopeful = not_refuted(plan.problem.graph, plan.bounds, plan.problem.bounds)
        for h, action in enumerate(plan.values.action):
            assert (action != NO_ACTION).all()
            here = hopeful.states[h]
            assert hopeful.pairs[h][action[here]].all()
            refuted.append(int((~hopeful.pairs[h]).sum()))

    sf.run(sf.agents.make("lsvi-ae", thermal.problem), thermal, 300, seed, on_plan=look)
    assert refuted[0] == 0
    assert refuted[-1] + refuted[-2] > 0  # it has learned to refuse something


# ---------------------------------------------------------------- mixtures


def test_a_bandit_of_one_step_by_hand() -> None:
    """With nothing left to learn (norm 1 in one known direction): keep 0.2, go 0.4, dash 0.9 against a limit of 0.5.

    OPLB mixes go and dash so that the mean is 0.5: a fifth of dashes, 0.8·0.6 + 0.2·0.9. Safe-LUCB plays go.
    """
    world = two_ways()
    agent = sf.agents.make("oplb", world.problem, bonus=0.0)
    lucb = sf.agents.make("safe-lucb", world.problem, episodes=8)
    assert lucb.constants["initial_episodes"] == 4  # 8^(2/3)
    for one in (agent, lucb):
        for layer_edge, cost in ((0, 0.2), (1, 0.4), (2, 0.9)):
            for _ in range(8000 if one is agent else 1):
                one.costs.add(0, world.problem.graph.layers[0].cost_features[layer_edge], np.array([cost]))
        one.replan()
    chances = agent.plan.chances[0]
    assert chances[0] == 0.0
    assert chances[2] == pytest.approx(0.2, abs=0.02)
    assert lucb.policy()[0].tolist() == [0]  # the fallback first
    for _ in range(4):
        lucb.begin_episode("s")
        lucb.observe(0, "s", "keep", "k", 0.2)
        lucb.end_episode()
    lucb.costs.bank.state.squares[...] = agent.costs.bank.state.squares
    lucb.costs.bank.state.targets[...] = agent.costs.bank.state.targets
    lucb.replan()
    assert lucb.policy()[0].tolist() == [1]


# ---------------------------------------------------------------- sparse features


@pytest.mark.parametrize("name", ["ucrl-vtr-plus", "opdop", "safe-exp-opt", "rslucb-qvi", "opt-cmdp"])
def test_sparse_features_are_played_as_dense_ones(name: str, seed: int) -> None:
    """The same world, its features stored both ways: the same regret and the same plans."""
    both = sparse_worlds(np.random.default_rng(seed), costs="general", transitions="mixture", terminal=True)
    runs = [sf.run(sf.agents.make(name, world.problem), world, 12, seed) for world in both]
    np.testing.assert_allclose(runs[0].regret, runs[1].regret, atol=1e-6)
    assert runs[0].replans == runs[1].replans


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("name", [name for name in sf.agents.names() if name != "lsvi-new-paper"])
def test_every_option_of_an_agent_is_found_taken_and_stored(name: str, thermal: sf.World) -> None:
    """What is stored are the fields of its options, and no other option is taken."""
    known = options_of(registry.AGENTS.kind(name), without=("problem",))
    given = {key: p.default for key, p in known.items()}
    agent = sf.agents.make(name, thermal.problem, **given)
    if name != "fallback":
        assert list(agent.constants) == [each.name for each in fields(agent.options)]
        assert set(known) - {"on"} <= set(agent.constants)  # where a plan is computed changes nothing
    with pytest.raises(TypeError):
        sf.agents.make(name, thermal.problem, **given, nonsense=1)
    with pytest.raises(InvalidInput, match="has no option 'nonsense'"):
        check_options(name, registry.AGENTS.kind(name), {"nonsense": 1}, without=("problem",))
    if "replan_growth" in known:
        with pytest.raises(InvalidInput, match=r"replan_growth of .* must be a number"):
            check_options(name, registry.AGENTS.kind(name), {"replan_growth": "often"}, without=("problem",))
