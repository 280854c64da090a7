"""The published learners beside a second, independent transcription (tests/reference/field_*.py) on random problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import tabular
from surefoot.agents.two_sets import target
from surefoot.plan.successors import assumed_excess
from tests.differential.compare import problem_of
from tests.reference import field_budgets, field_sets, field_values
from tests.reference.generate import random_tables
from tests.reference.history import Episode, feed, random_history
from tests.reference.lsvi_new import Reference
from tests.reference.scale import cost_scales
from tests.reference.tables import Tables

P = 0.05
EPISODES = 5
CLOSE = 1e-7
TWINS: dict[str, Any] = {
    "ucrl-vtr": field_values.Vtr,
    "ucrl-vtr-plus": field_values.VtrPlus,
    "hf-ucrl-vtr-plus": field_values.Moments,
}


def made(name: str, tables: Tables, **options: Any) -> Any:
    """An agent that plans after every episode."""
    return sf.agents.make(name, problem_of(tables), failure_probability=P, replan_growth=0.0, **options)


def played(tables: Tables, seed: int, episodes: int = EPISODES) -> list[Episode]:
    """Episodes of random actions, whatever they cost."""
    rng = np.random.default_rng([seed, 5])
    return list(random_history(tables, rng, episodes, rng))


def tables_of(seed: int, **options: Any) -> Tables:
    return random_tables(seed, misspecified=False, **options)


# ---------------------------------------------------------------- value-targeted regressions


@pytest.mark.parametrize(
    ("norm", "stationary"), [(None, True), (None, False), (1e-4, True), (5e-3, False), (1e2, True)]
)
@pytest.mark.parametrize("name", ["ucrl-vtr", "ucrl-vtr-plus", "hf-ucrl-vtr-plus"])
def test_value_targeted_learners(name: str, stationary: bool, norm: float | None, seed: int) -> None:
    """Estimates, radii, Q and V after every episode.

    Published constants are so large that Q is at its cap, and so is what weighs a row, for longer than any test. Other
    norms than the declared one, and hardly any optimism, let the other terms decide.
    """
    tables = tables_of(seed, stationary_transitions=stationary)
    if norm is not None:
        tables.transition_norm = norm
    optimism = 1.0 if norm is None else 1e-3
    k = {"episodes": EPISODES} if name == "hf-ucrl-vtr-plus" else {}
    agent = made(name, tables, optimism=optimism, **k)
    twin = TWINS[name](tables, P, optimism, **k)
    for episode in played(tables, seed):
        feed(agent, episode)
        for step in episode.steps:
            twin.tell((step.h, step.s, step.a, step.s2))
        twin.end_episode()
        for h, known in enumerate(agent.plan.ellipsoids):
            own = twin.data.at(h)
            theta = np.linalg.solve(twin.data.matrix[own], twin.data.vector[own])
            np.testing.assert_allclose(known.centre, known.basis.turn(theta), rtol=1e-7, atol=1e-8 * abs(theta).max())
            assert known.radius == pytest.approx(twin.radius(h), rel=1e-9)
        for pair, q in twin.q.items():
            assert agent.plan.q(*pair) == pytest.approx(q, abs=CLOSE)
        for state, value in twin.value.items():
            assert agent.plan.value(*state) == pytest.approx(value, abs=CLOSE)


# ---------------------------------------------------------------- safe sets


@pytest.mark.parametrize("stationary", [True, False])
def test_the_set_and_the_target_of_safe_mdp_after_each_episode(stationary: bool, seed: int) -> None:
    """A process in function space, and a search over the graph, give what the regression and the sweeps give."""
    tables = tables_of(seed, stationary_costs=stationary)
    agent = made("safe-mdp", tables, successors="all")
    process, scales = field_sets.Process(tables), cost_scales(tables)
    for episode in played(tables, seed):
        feed(agent, episode)
        for step in episode.steps:
            process.tell(step.h, tables.x[step.h, step.s, step.a, step.s2], step.cost)
        if episode.terminal is not None:
            s, cost = episode.terminal
            x = tables.terminal_features(s)
            assert x is not None
            process.tell(tables.horizon - 1, x, cost)
        found = field_sets.SafeSet(tables, process)
        for key, (upper, lower) in found.bounds.items():
            np.testing.assert_allclose(agent.plan.upper(*key), upper, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(agent.plan.lower(*key), lower, rtol=1e-6, atol=1e-7)
        if agent.plan.consistent:
            assert {pair for pair in tables.pairs() if agent.plan.certified(*pair)} == found.pairs
            width = target(agent.problem, agent.plan.bounds, agent.plan.certified_sets)[2]
            assert width == pytest.approx(found.target_width(scales), rel=1e-5)


# ---------------------------------------------------------------- mixtures


@pytest.mark.parametrize("bonus", [1.0, 0.01])
@pytest.mark.parametrize("name", ["oplb", "rslucb-qvi"])
def test_mixtures_are_the_best_of_their_linear_programs(name: str, bonus: float, seed: int) -> None:
    """With a small bonus and hardly any optimism too, where Q is not at its cap."""
    tables = tables_of(seed)
    agent = made(name, tables, bonus=bonus, optimism=bonus)
    reference = Reference(tables, P, replan_growth=0.0)
    values = field_values.Vtr(tables, P)
    if name == "rslucb-qvi":
        radii = [bonus * values.radius(h) for h in range(tables.horizon - 1)]
        values.value = field_sets.rslucb_values(
            reference, lambda pair, ahead, radii=radii: values.data.expected(pair, ahead, radii[pair[0]]), bonus
        )
    for episode in played(tables, seed):
        feed(agent, episode)
        feed(reference, episode)
        assert agent.plan.consistent == reference.plan.consistent
        if not agent.plan.consistent:
            continue
        if name == "oplb":
            expected = field_sets.oplb_values(reference, bonus)
        else:
            for step in episode.steps:  # what is learned of transitions: from the values of the plan that was in force
                values.tell((step.h, step.s, step.a, step.s2))
            radii = [bonus * values.radius(h) for h in range(tables.horizon - 1)]
            expected = values.value = field_sets.rslucb_values(
                reference, lambda pair, ahead, radii=radii: values.data.expected(pair, ahead, radii[pair[0]]), bonus
            )
        q, graph = agent.plan.values.q, agent.problem.graph
        excess = assumed_excess(graph, agent.plan.bounds, agent.problem.bounds)
        for h, layer in enumerate(graph.layers):
            chances = agent.plan.chances[h]
            most = np.inf if name == "oplb" else float(tables.horizon - h)
            mean = np.add.reduceat(chances * np.minimum(q[h], most), layer.state_ptr[:-1])
            for index, s in enumerate(agent.problem.states(h)):
                assert mean[index] == pytest.approx(expected[h, s], abs=1e-6)
            feasible = np.minimum.reduceat(excess[h], layer.state_ptr[:-1]) <= 0.0
            spent = np.add.reduceat(chances * excess[h], layer.state_ptr[:-1])
            assert (spent[feasible] <= 1e-9).all()


# ---------------------------------------------------------------- budgets


def counted(tables: Tables, episodes: list[Episode]) -> field_budgets.Visits:
    seen = field_budgets.Visits({}, {})
    for episode in episodes:
        for step in episode.steps:
            key = (step.h, step.s, step.a, step.s2)
            seen.triplets[key] = seen.triplets.get(key, 0) + 1
            seen.costs.setdefault(key[:3], []).append(step.cost[0])
        if episode.terminal is not None:
            s, cost = episode.terminal
            seen.costs.setdefault((tables.horizon - 1, s), []).append(cost[0])
    return seen


@pytest.mark.parametrize(
    ("name", "scale", "share"),
    [("opt-cmdp", 0.3, 0.03), ("opt-cmdp", 0.1, 0.2), ("dope", 0.01, 3.0), ("dope", 0.003, 2.0)],
)
def test_the_linear_programs_have_the_same_optimum(
    name: str, scale: float, share: float, seed: int, monkeypatch: Any
) -> None:
    """From counts to the optimum: widths, costs, rewards, rows, with limits that are a share of the mean cost, so that
    budgets bind. Some programs have no solution: on both sides."""
    k = 10
    tables = tables_of(seed, limits=1, anchors=False)
    told = played(tables, seed, 40)
    costs = [abs(step.cost[0]) for episode in told for step in episode.steps]
    tables.limits = [replace(tables.limits[0], bound=share * sum(costs) / len(costs))]
    found: list[float | None] = []

    def remembered(*arguments: Any) -> Any:
        occupancy = original(*arguments)
        found.append(None if occupancy is None else occupancy.value)
        return occupancy

    original = tabular.best_occupancy
    monkeypatch.setattr(tabular, "best_occupancy", remembered)
    options = {"initial_episodes": 0, "bonus": 0.5, "slack": 0.2} if name == "dope" else {}
    agent = made(name, tables, episodes=k, scale=scale, **options)
    for n, episode in enumerate(told, 1):
        feed(agent, episode)
        if n % 20:
            continue
        program = field_budgets.Program(tables, counted(tables, told[:n]), k, P, scale)
        if name == "opt-cmdp":
            expected = program.opt_cmdp()
        else:
            costed = tables.horizon - 1 + any(tables.terminal_features(s) is not None for s in tables.terminal_reward)
            expected = program.dope(0.5, 0.2 * costed / program.largest)
        assert (found[-1] is None) == (expected is None)
        if expected is not None:
            assert found[-1] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert len(found) == 1 + len(told)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_opdop_takes_the_same_steps(scale: float, seed: int) -> None:
    """Policy and price after every episode, from a price that is not 0; lower bounds of costs are those of spec 3."""
    tables = tables_of(seed, limits=1)
    slack = 0.3
    agent = made("opdop", tables, episodes=20, stride=1, slack=slack, scale=scale)
    costed = tables.horizon - 1 + any(tables.terminal_features(s) is not None for s in tables.terminal_reward)
    twin = field_budgets.Opdop(tables, 20, P, slack * costed, scale)
    reference = Reference(tables, P, replan_growth=0.0)
    twin.price = agent.prices[0] = 3.0
    agent.replan()
    twin.evaluate(reference.plan.lower, reference.plan.terminal_lower)
    for episode in played(tables, seed):
        feed(agent, episode)
        feed(reference, episode)
        for step in episode.steps:
            twin.tell((step.h, step.s, step.a, step.s2))
        twin.step()
        twin.evaluate(reference.plan.lower, reference.plan.terminal_lower)
        assert agent.prices[0] == pytest.approx(twin.price, abs=1e-6)
        for pair, chance in twin.pi.items():
            layer_chances = agent.plan.chances[pair[0]]
            assert layer_chances[agent.problem.pair_index(*pair)] == pytest.approx(chance, abs=1e-6)
