"""The published learners' own rules, on cases small enough to work out by hand."""

from __future__ import annotations

import math
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import registry, tabular, two_sets
from surefoot.agents.tabular import budgets, by_triplet, fallback_chances, total_slack
from surefoot.checks import check_options, options_of
from surefoot.errors import InvalidInput
from surefoot.model.graph import NO_ACTION
from surefoot.plan.certify import Certified, certify, not_refuted
from surefoot.plan.occupancy import best_occupancy
from tests.hand_made import bounds_of, maze
from tests.made_worlds import hand_world, visits_of
from tests.reference import field_budgets as plain
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


# ---------------------------------------------------------------- tabular learners


def test_budgets_and_slacks_by_hand(thermal: sf.World) -> None:
    problem = thermal.problem
    n = problem.horizon - 1 + bool(problem.graph.terminal.has_cost.any())
    assert budgets(problem) == pytest.approx(n * problem.limits[0].bound)
    assert total_slack(problem, 0.25) == pytest.approx(n * 0.25)
    world = two_ways()
    costs = [np.array([[0.2], [0.4], [0.9]]), np.array([[1.0], [2.0], [3.0]])]
    assert by_triplet(world.problem.graph, costs)[0][:, 0].tolist() == pytest.approx([1.2, 2.4, 3.9])
    assert fallback_chances(world.problem.graph)[0].tolist() == [1.0, 0.0, 0.0]


def told_the_truth(agent: Any, world: sf.World, times: int = 10**7) -> None:
    """Counts as after so many visits of every pair, without noise."""
    for h, layer in enumerate(world.problem.graph.layers):
        agent.counts.visits[h][:] = np.rint(times * world.probabilities[h])
        pairs = layer.edge_pair()
        agent.counts.measured[h][:] = times
        mean = np.zeros((layer.n_pairs, world.costs[h].shape[1]))
        np.add.at(mean, pairs, world.probabilities[h][:, None] * world.costs[h])
        agent.counts.cost_sums[h][:] = times * mean
    if world.terminal_costs is not None:
        agent.counts.measured[-1][:] = times
        agent.counts.cost_sums[-1][:] = times * np.where(np.isfinite(world.terminal_costs), world.terminal_costs, 0.0)


def best_within_budget(world: sf.World) -> float:
    graph = world.problem.graph
    rewards = [*(layer.reward for layer in graph.layers), graph.terminal.reward]
    costs = [each.copy() for each in world.costs]
    if world.terminal_costs is not None:
        ends = np.where(np.isfinite(world.terminal_costs), world.terminal_costs, 0.0)
        costs[-1] = costs[-1] + ends[graph.layers[-1].successor]
    found = best_occupancy(graph, world.probabilities, world.probabilities, rewards, costs, budgets(world.problem))
    assert found is not None
    return found.value


@pytest.mark.parametrize(("name", "options"), [("opt-cmdp", {}), ("dope", {"initial_episodes": 0, "bonus": 0.0})])
def test_who_has_counted_enough_plays_the_best_policy_within_the_budget(
    name: str, options: dict[str, Any], thermal: sf.World
) -> None:
    """It breaks the hard limit: the expected budget is another constraint."""
    agent = sf.agents.make(name, thermal.problem, scale=0.0, **options)
    told_the_truth(agent, thermal)
    agent.replan()
    value = sf.exact.evaluate(thermal, agent.plan.chances)
    assert value == pytest.approx(best_within_budget(thermal), abs=1e-4)
    assert value > sf.exact.solve(thermal).value
    assert sf.exact.violations(thermal, agent.plan.chances).probability > 0.1
    visits = visits_of(thermal, agent.plan.chances, 0)
    cost = sum(
        float(visits[h] @ np.add.reduceat(thermal.probabilities[h] * thermal.costs[h][:, 0], layer.pair_ptr[:-1]))
        for h, layer in enumerate(thermal.problem.graph.layers)
    )
    if thermal.terminal_costs is None:
        assert cost <= budgets(thermal.problem)[0] + 1e-4


def test_dope_plays_the_fallback_for_as_long_as_published(thermal: sf.World) -> None:
    """S³H³/ξ²: the largest layer, the decisions, and the slack in units of the largest cost."""
    agent = sf.agents.make("dope", thermal.problem)
    states, slack = max(layer.n_states for layer in thermal.problem.graph.layers), min(agent.constants["slack"])
    first = math.ceil(states**3 * (thermal.problem.horizon - 1) ** 3 / slack**2)
    assert agent.constants["initial_episodes"] == first > 10**4
    run = sf.run(agent, thermal, 50, 0)
    np.testing.assert_allclose(run.value, run.fallback_value)
    short = sf.agents.make("dope", thermal.problem, initial_episodes=7)
    numbers: list[int] = []
    sf.run(short, thermal, 20, 0, on_plan=lambda plan, done: numbers.append(done))
    assert 7 in numbers  # a plan is made when the first phase ends, whatever the data


def test_lsvi_ucb_by_hand() -> None:
    """keep twice and go once, ends worth 0: Q = n·r/(1+n) + β/√(1+n), β = 0.01·3·√log(6·10/0.05), and V the largest."""
    world = two_ways()
    agent = sf.agents.make("lsvi-ucb", world.problem, episodes=10, scale=0.01)
    agent.counts.visits[0][:] = [2, 1, 0]
    agent.replan()
    beta = 0.01 * 3 * 1 * math.sqrt(math.log(2 * 3 * 10 * 1 / 0.05))
    expected = [2 * 0.1 / 3 + beta / math.sqrt(3), 0.6 / 2 + beta / math.sqrt(2), beta]
    np.testing.assert_allclose(agent.plan.values.q[0], expected)
    assert agent.plan.values.value[0][0] == pytest.approx(max(expected))
    assert isinstance(agent, tabular.LsviUcb)


# ---------------------------------------------------------------- CRPO and OptPrimalDual


@pytest.mark.parametrize(
    ("name", "options", "plans"),
    [("crpo", {"scale": 300.0, "tolerance": 0.0}, 300), ("opt-primal-dual", {"scale": 0.0, "step": 30.0}, 300)],
)
def test_small_steps_on_the_true_counts_end_within_the_budget(
    name: str, options: dict[str, Any], plans: int, thermal: sf.World
) -> None:
    """Told the truth, and stepping on and on, the last policies earn nearly the most that the budget allows."""
    agent = sf.agents.make(name, thermal.problem, episodes=plans, stride=1, **options)
    told_the_truth(agent, thermal)
    values, spent = [], []
    for episode in range(1, plans + 1):
        agent.episodes = episode
        agent.replan()
        values.append(sf.exact.evaluate(thermal, agent.plan.chances))
        spent.append(float(agent._seen.spent[0] * agent._largest[0]))
    assert values[0] < np.mean(values[-50:])
    assert np.mean(values[-50:]) == pytest.approx(best_within_budget(thermal), rel=0.1)
    assert np.mean(spent[-50:]) == pytest.approx(budgets(thermal.problem)[0], rel=0.1)


def test_crpo_earns_while_it_may_and_saves_when_it_must() -> None:
    """One step: keep 0.1 at 0.2, go 0.6 at 0.4, dash 0.9 at 0.9, C = 1, S·A = 3, n = 1; α = scale/√(3·100)."""
    world = two_ways(limit=0.45)
    agent = sf.agents.make("crpo", world.problem, episodes=100, tolerance=0.0, stride=5)
    told_the_truth(agent, world)
    agent.replan()
    assert agent._largest[0] == pytest.approx(0.9)  # the largest cost of this world, whose features are its costs
    assert agent._seen.spent[0] * 0.9 == pytest.approx(0.5)  # every action alike
    alpha = 5 / math.sqrt(3 * 100)
    agent.episodes = 5
    agent.replan()  # 0.5 is above 0.45: save
    weight = np.exp(-alpha * np.array([0.2, 0.4, 0.9]) / 0.9)
    np.testing.assert_allclose(agent.plan.chances[0], weight / weight.sum(), rtol=1e-6)
    lax = sf.agents.make("crpo", world.problem, episodes=100, stride=5)
    assert lax.constants["tolerance"] == pytest.approx(math.sqrt(3 / 100))
    told_the_truth(lax, world)
    lax.replan()
    lax.episodes = 5
    lax.replan()  # 0.05/0.9 is within its tolerance: earn
    weight = np.exp(alpha * np.array([0.1, 0.6, 0.9]))
    np.testing.assert_allclose(lax.plan.chances[0], weight / weight.sum(), rtol=1e-6)


def test_a_step_of_opt_primal_dual_by_hand() -> None:
    """The same step: ρ = n/ξ = 0.9/0.1, t = √(2 log 3/(n²(1+ρ)²K)), the price rises by (0.5 − 0.3)/0.9·ρ/(n√K)."""
    world = two_ways(limit=0.3)
    agent = sf.agents.make("opt-primal-dual", world.problem, episodes=100, scale=0.0, slack=0.1, stride=1)
    told_the_truth(agent, world)
    agent.prices[0] = 0.5
    agent.replan()
    agent.episodes = 1
    agent.replan()
    rho = 9.0
    t = math.sqrt(2 * math.log(3) / ((1 + rho) ** 2 * 100))
    weight = np.exp(t * (np.array([0.1, 0.6, 0.9]) - 0.5 * np.array([0.2, 0.4, 0.9]) / 0.9))
    np.testing.assert_allclose(agent.plan.chances[0], weight / weight.sum(), rtol=1e-6)
    assert agent.prices[0] == pytest.approx(0.5 + rho / 10 * (0.5 - 0.3) / 0.9)


# ---------------------------------------------------------------- MASE


def test_mase_stops_where_nothing_passes_and_pays_for_it() -> None:
    """ "left" leads to a, where nothing passes: −c/width there. Right leads to b, worth 0.4."""
    graph = {
        (0, "s"): {"stay": ["s"], "left": ["a"], "right": ["b"]},
        (1, "s"): {"stay": ["s"], "right": ["s"]},
        (1, "a"): {"stay": ["s"], "right": ["s"]},
        (1, "b"): {"stay": ["s"], "right": ["s"]},
    }
    pays = {(0, "s", "left"): 0.9, (0, "s", "right"): 0.2, (1, "a", "right"): 1.0, (1, "b", "right"): 0.4}
    problem = maze(
        graph,
        {(0, "s"): "stay", (1, "s"): "stay"},
        reward=pays,
        cost_features=lambda h, s, a, s2: [1.0 if s == "a" else 0.0, 1.0 if (s, a) == ("a", "right") else 0.0],
        transition_features=lambda h, s, a, s2: [1.0],
        limits=[sf.Limit("limit", bound=1.0, noise=0.1, norm=2.0)],
    )

    def plan(**options: Any) -> sf.Plan:
        return sf.agents.make("mase", problem, **options).plan

    # The width of "stay" in a is 4 (±2), its slack 1: −c/4. Left is worth 0.9 − c/4, right 0.2 + 0.4.
    assert plan(punishment=1.0).action(0, "s") == "left"
    assert plan(punishment=1.3).action(0, "s") == "right"
    assert plan().action(1, "a") == "stay"  # the least worst bound: 2 against 2√2
    assert plan(stop="right").action(1, "a") == "right"
    assert plan(stop="right").action(1, "b") == "right"  # it passes
    assert min(float(value.min()) for value in plan(punishment=100.0).targets) >= 0.0
    with pytest.raises(InvalidInput, match=r"emergency stop must be an action of every state: step 0.*'halt'"):
        plan(stop="halt")


# ---------------------------------------------------------------- OPSE-LCMDP


def test_opse_agrees_with_a_plain_transcription(thermal: sf.World, seed: int) -> None:
    """The policy of a price, from the same counts, by loops."""
    agent = sf.agents.make("opse-lcmdp", thermal.problem)
    sf.run(agent, thermal, 60, seed)
    problem, graph = thermal.problem, thermal.problem.graph
    tables = plain.Counted(
        actions=[np.diff(layer.state_ptr).tolist() for layer in graph.layers],
        successors=[
            [layer.successor[a:b].tolist() for a, b in zip(layer.pair_ptr, layer.pair_ptr[1:], strict=False)]
            for layer in graph.layers
        ],
        rewards=[layer.reward.tolist() for layer in graph.layers],
        last=graph.terminal.reward.tolist(),
        visits=[
            [agent.counts.visits[h][a:b].tolist() for a, b in zip(layer.pair_ptr, layer.pair_ptr[1:], strict=False)]
            for h, layer in enumerate(graph.layers)
        ],
        measured=[each.tolist() for each in agent.counts.measured],
        costs=[each[:, 0].tolist() for each in agent.counts.cost_sums],
        has_cost=graph.terminal.has_cost.tolist(),
    )
    (limit,) = problem.limits
    largest = limit.norm * graph.largest_cost_norm()
    for price in (0.0, 3.0):
        policy, utility = plain.opse_policy(tables, price, kappa=0.1, noise=limit.noise, largest=largest)
        mine = agent._priced(price)
        for h in range(len(graph.layers)):
            np.testing.assert_allclose(mine.chances[h], policy[h], atol=1e-9)
        assert mine.utilities[0] == pytest.approx(utility[0], abs=1e-9)


def test_opse_prices_what_is_overspent(thermal: sf.World) -> None:
    """Told the truth, it stays within the budget; the fallback is its way out while it knows nothing."""
    agent = sf.agents.make("opse-lcmdp", thermal.problem)
    assert sf.exact.evaluate(thermal, agent.plan.chances) == pytest.approx(sf.exact.fallback_value(thermal))
    told_the_truth(agent, thermal)
    agent.replan()
    assert sf.exact.evaluate(thermal, agent.plan.chances) > sf.exact.fallback_value(thermal) + 0.5
    assert sf.exact.evaluate(thermal, agent.plan.chances) < best_within_budget(thermal) + 1e-3


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
