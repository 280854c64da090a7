"""Why an action is or is not certified: the explanation agrees with the plan in every pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.model.labels import Label
from surefoot.plan.certify import certify, fallback_only
from surefoot.plan.plan import Plan
from surefoot.plan.why import Kind
from tests.hand_made import corridor, tell

MIXED = {"thermal/testing": 40, "driving/testing": 60, "power/testing": 40, "figure1": 2, "ablation/look-ahead": 1}


def plan_of(world: str, episodes: int, agent: str = "lsvi-new", **options: Any) -> Plan:
    place = sf.worlds.make(world)
    plan = sf.run(sf.agents.make(agent, place.problem, **options), place, episodes=episodes, seed=0).plan
    assert plan is not None
    return plan


def triples(problem: sf.Problem) -> Iterator[tuple[int, Label, Label]]:
    for h, layer in enumerate(problem.graph.layers):
        for pair, state in enumerate(layer.pair_state().tolist()):
            yield h, problem.naming.states[h][state], problem.naming.action(layer, h, pair)


@pytest.mark.parametrize("world", MIXED)
def test_every_explanation_agrees_with_the_plan(world: str) -> None:
    plan = plan_of(world, MIXED[world])
    problem, seen = plan.problem, set()
    rng = np.random.default_rng(0)
    everything = list(triples(problem))
    chosen = rng.permutation(len(everything))[:120]
    for h, s, a in (everything[i] for i in chosen):
        found = plan.why(h, s, a)
        assert found.certified == plan.certified(h, s, a)
        assert (found.kind in (Kind.FALLBACK, Kind.PROVED)) == found.certified
        for step, later in zip(found.chain, found.chain[1:], strict=False):
            assert (later.step, later.state) == (step.step + 1, step.successor)
        for step in found.chain:
            check_step(plan, step)
            seen.add(step.kind)
        assert found.cause.kind != Kind.FUTURE
        assert repr(s) in str(found)
    assert Kind.COST in seen


def check_step(plan: Plan, step: Any) -> None:
    """The numbers are the plan's own, and the reason is true."""
    h, s, a = step.step, step.state, step.action
    j = [limit.name for limit in plan.problem.limits].index(step.limit)
    assert step.bound == plan.problem.limits[j].bound
    assert step.upper == plan.upper(h, s, a, step.successor)[j]
    assert step.lower == plan.lower(h, s, a, step.successor)[j]
    keeps = bool(plan.condition_1(h)[plan.problem.pair_index(h, s, a)])
    if step.kind == Kind.PROVED:
        assert keeps
        assert step.upper <= step.bound + 1e-12
    elif step.kind == Kind.COST:
        assert not plan.certified(h, s, a)
        assert step.upper > step.bound
    elif step.kind == Kind.FUTURE:
        assert keeps
        assert not plan.certified(h, s, a)
        assert not plan.safe(h + 1, step.successor)
    else:
        assert step.kind == Kind.FALLBACK
        assert plan.problem.fallback_action(h, s) == a


def test_the_future_is_followed_to_its_cause() -> None:
    """The shortcut breaks nothing for two steps: the cause is found in the gorge."""
    found = plan_of("ablation/look-ahead", 200).why(0, "start", "shortcut")
    assert not found.certified
    assert [step.kind for step in found.chain] == [Kind.FUTURE, Kind.FUTURE, Kind.COST]
    assert [step.state for step in found.chain] == ["start", "bridge", "gorge"]
    assert found.cause.lower > found.cause.bound
    assert "proved unsafe" in str(found)
    assert f"at least {found.cause.lower:.4g}" in str(found)


def test_the_fallback_is_safe_by_assumption() -> None:
    found = plan_of("thermal/testing", 1).why(0, 0, 0)
    assert found.certified
    assert found.kind == Kind.FALLBACK
    assert "fallback's own" in str(found)


def test_an_end_that_breaks_its_limit_is_the_cause() -> None:
    """Going aside ends in 'edge', whose own cost may be 5 and is not to exceed 1."""
    problem = sf.Problem.from_functions(
        horizon=2,
        start="s",
        actions=lambda h, s: ["stay", "aside"],
        successors=lambda h, s, a: ["home" if a == "stay" else "edge"],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, s2: [0.1],
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: "stay",
        limits=sf.Limit("load", bound=1.0, noise=0.1, norm=1.0),
        terminal_cost_features=lambda s: [5.0] if s == "edge" else [0.1],
    )
    plan = plan_from(sf.LsviNew(problem))
    found = plan.why(0, "s", "aside")
    assert [step.kind for step in found.chain] == [Kind.FUTURE, Kind.LAST]
    upper = plan.terminal_upper("edge")
    assert upper is not None
    assert found.cause.upper == upper[0]
    assert found.cause.upper > 1.0
    assert "'edge'" in str(found)


def plan_from(agent: Any) -> Plan:
    agent.begin_episode(agent.problem.starts[0])
    plan: Plan = agent.plan
    return plan


def test_data_that_contradict_the_assumptions_are_said_so() -> None:
    plan = plan_of("thermal/testing", 40)
    bounds = dataclasses.replace(plan.bounds, consistent=False)
    broken = dataclasses.replace(plan, bounds=bounds, certified_sets=fallback_only(plan.problem.graph))
    kinds = {broken.why(h, s, a).kind for h, s, a in triples(plan.problem)}
    assert kinds == {Kind.FALLBACK, Kind.INCONSISTENT}


def test_an_agent_without_look_ahead_allows_what_is_not_proved() -> None:
    plan = plan_of("thermal/testing", 300, "slucb-qvi")
    found = {(h, s, a): plan.why(h, s, a) for h, s, a in triples(plan.problem)}
    assert all(why.certified == plan.certified(*where) for where, why in found.items())
    assert Kind.UNPROVED in {why.kind for why in found.values()}
    assert Kind.FUTURE not in {why.kind for why in found.values()}


def test_a_bound_exactly_at_its_limit_is_certified() -> None:
    problem = corridor({"idle": [0.1], "run": [1.0]}, sf.Limit("load", bound=1.0, noise=0.1, norm=1.0))
    agent = sf.LsviNew(problem)
    tell(agent, [("idle", 0.05)])
    plan = agent.plan
    assert plan is not None
    for move in (-1e-12, 0.0, 1e-12, 1.1e-12, 1e-9):
        upper = (np.array([[0.1], [1.0 + move]]),)
        bounds = dataclasses.replace(plan.bounds, upper=upper)
        certified = certify(problem.graph, bounds, problem.bounds)
        moved = dataclasses.replace(plan, bounds=bounds, certified_sets=certified)
        expected = Kind.PROVED if moved.certified(0, "s", "run") else Kind.COST
        assert moved.why(0, "s", "run").kind == expected


def test_unknown_labels_are_refused() -> None:
    plan = plan_of("thermal/testing", 1)
    with pytest.raises(LookupError, match="no such action"):
        plan.why(0, 0, 17)
