"""Published learners with a budget of cost: what they count, what they pay, how their prices move; by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import tabular
from surefoot.agents.tabular import budgets, by_triplet, fallback_chances, total_slack
from surefoot.errors import InvalidInput
from surefoot.plan.occupancy import best_occupancy
from tests.hand_made import maze
from tests.made_worlds import visits_of
from tests.reference import field_budgets as plain
from tests.unit.test_field_agents import two_ways


@pytest.fixture(scope="module")
def thermal() -> sf.World:
    return sf.worlds.make("thermal/testing")


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
