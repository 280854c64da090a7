"""Tolerances are shares of a limit's own scale; a plan that fails leaves the one before."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.optimistic import UcrlVtr
from surefoot.audits.audit import audit
from surefoot.errors import InvalidInput
from surefoot.estimate import bank
from tests.forgery import forge
from tests.studies import kettle, off_the_fallback, opener


def small(unit: float, norm: float = 0.9) -> sf.World:
    """One decision: the seed costs a tenth of a unit, the other action 0.9 of one; the limit is half a unit."""
    problem = sf.Problem.from_functions(
        horizon=2,
        start="s",
        actions=lambda h, s: ["wait", "go"],
        successors=lambda h, s, a: ["end"],
        reward=lambda h, s, a: float(a == "go"),
        cost_features=lambda h, s, a, s2: [1.0 / 9.0 if a == "wait" else 1.0],
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: "wait",
        limits=sf.Limit("load", bound=0.5 * unit, noise=0.01 * unit, norm=norm * unit),
    )
    return sf.World(problem, transition=[1.0], cost=[0.9 * unit])


@pytest.mark.parametrize("unit", [1e-100, 1e-9, 1.0, 1e100])
def test_a_cost_of_1_8_times_its_limit_is_never_certified(unit: float) -> None:
    world = small(unit)
    plan = sf.LsviNew(world.problem).plan
    assert not plan.certified(0, "s", "go")
    assert plan.upper(0, "s", "go", "end")[0] == pytest.approx(0.9 * unit)
    assert sf.exact.solve(world).safe_actions[0].tolist() == [True, False]
    run = sf.run(UcrlVtr(world.problem), world, episodes=5, seed=0)  # does not look, and goes
    assert run.violations.tolist() == [1] * 5
    assert run.margin.max() == pytest.approx(-0.4 * unit)


@pytest.mark.parametrize("unit", [1e-12, 1e9])
@pytest.mark.parametrize(("beyond", "broken"), [(0.9e-9, 0), (1.1e-9, 1)])
def test_a_violation_begins_at_a_billionth_of_the_scale(unit: float, beyond: float, broken: int) -> None:
    """Scale: bound 0.5, norm 0.9 × ‖x‖ 1, in units. Within rounding of the limit the margin is zero, not less."""
    world = small(unit)
    assert world.problem.cost_scales == pytest.approx([1.4 * unit], rel=1e-15)
    off = np.array([[0.0], [0.5 * unit + beyond * 1.4 * unit - 0.9 * unit]])
    near = sf.World(world.problem, transition=[1.0], cost=[0.9 * unit], deviation=[off])
    for compiled in (True, False):
        run = sf.run(UcrlVtr(world.problem), near, episodes=3, seed=0, compiled=compiled)
        assert run.violations.tolist() == [broken] * 3
        assert (run.margin < 0).all() if broken else (run.margin == 0.0).all()


# ---------------------------------------------------------------- margins


def test_no_certified_action_shows_a_negative_margin(tmp_path: Path) -> None:
    """Before any data the fallback's own bound is 1, twice the limit: safe by assumption, and nothing is proved."""
    world = off_the_fallback(norm=10.0)
    path = tmp_path / "plant.study"
    with opener(path, world)() as study:
        study.begin("s")
        told = study.ask().certificate
    assert told["safe_by"] == "assumption"
    assert told["successors"][0]["upper"] == [pytest.approx(1.0)]
    assert told["successors"][0]["margin"] == [None]
    assert told["margin"] is None
    assert audit(path).clean


def test_a_forged_margin_is_found(tmp_path: Path) -> None:
    path = tmp_path / "plant.study"
    with opener(path, off_the_fallback(norm=10.0))() as study:
        study.begin("s")
        study.ask()

    def forged(records: list[dict[str, Any]]) -> None:
        records[-1]["certificate"]["successors"][0]["margin"] = [0.25]

    forge(path, forged)
    assert any("margin" in str(found) for found in audit(path).exceptions)


# ---------------------------------------------------------------- what cannot be squared


def declared(x: float, *, bound: float = 1.0, noise: float = 0.1, norm: float = 1.0) -> sf.Problem:
    return sf.Problem.from_functions(
        horizon=2,
        start=0,
        actions=lambda h, s: [0, 1],
        successors=lambda h, s, a: [0],
        reward=lambda h, s, a: 0.0,
        cost_features=lambda h, s, a, s2: [x if a else 1.0, 0.0],
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: 0,
        limits=sf.Limit("load", bound=bound, noise=noise, norm=norm),
    )


@pytest.mark.parametrize("x", [5e-324, -1e-160, 1e160])
def test_features_that_cannot_be_squared_are_refused(x: float) -> None:
    size = "large" if abs(x) > 1 else "small"
    with pytest.raises(InvalidInput, match=f"cost feature is too {size} to be squared: step 0, state 0, action 1"):
        declared(x)
    assert declared(0.0).graph.largest_cost_norm() == 1.0


@pytest.mark.parametrize(
    ("numbers", "what"),
    [
        ({"bound": 1e200}, "cost is too large"),
        ({"bound": 1e-200, "norm": 1e-200}, "cost is too small"),
        ({"norm": 1e200}, "cost is too large"),
        ({"noise": 1e200}, "noise is too large"),
        ({"noise": 1e-200}, "noise is too small"),
    ],
)
def test_limits_that_cannot_be_squared_are_refused(numbers: dict[str, float], what: str) -> None:
    with pytest.raises(InvalidInput, match=f"{what} to be squared: limit 'load'"):
        declared(1.0, **numbers)


def test_a_ridge_that_leaves_no_digit_or_that_no_data_outweigh_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ridges too small to compute with"):
        sf.LsviNew(declared(1.0), ridges=[1.0, 1e-308])
    for tiny in (5e-324, 1e-200):
        with pytest.raises(InvalidInput, match="ridges times shaped too small to compute with"):
            sf.LsviNew(declared(1.0), shaped=tiny)
    for options in ({"ridges": [1.0, 1e20]}, {"shaped": 1e308}, {"ridge_ratios": [1e308]}, {"value_ridge": 1e30}):
        with pytest.raises(InvalidInput, match=f"{next(iter(options))} too large to learn anything: .* Use at most "):
            sf.LsviNew(declared(1.0), **options)
    noisy = declared(1.0, noise=1e120, norm=1e-3)  # a default that would overflow
    assert all(math.isfinite(r) for r in sf.LsviNew(noisy).cost_confidence.ridges)


# ---------------------------------------------------------------- a plan that cannot be computed


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Switches the decomposition of data off and on; that of no data always works."""
    found, off = bank.factored, [False]

    def factored(grams: Any, *rest: Any) -> Any:
        if off[0] and np.any(grams):
            raise np.linalg.LinAlgError("did not converge")
        return found(grams, *rest)

    monkeypatch.setattr(bank, "factored", factored)

    def switch(value: bool) -> None:
        off[0] = value

    return switch


def test_a_failed_plan_leaves_the_one_before_and_says_so(broken: Any) -> None:
    world = kettle()
    agent = sf.LsviNew(world.problem)
    first = agent.plan
    broken(True)
    run = sf.run(agent, world, episodes=20, seed=0)
    assert agent.plan.bounds is first.bounds
    assert agent.replans == 1
    assert "did not converge" in agent.plan_failure
    assert run.failed_replans == run.manifest["failed_replans"] == agent.failed_replans > 0
    assert "failed_replans" in repr(run)
    assert agent.costs.bank.rows.sum() > 20  # nothing is lost
    broken(False)
    twin = sf.LsviNew(world.problem)
    twin.restore(agent.checkpoint())
    assert twin.failed_replans == agent.failed_replans
    for each in (agent, twin):
        each.replan()
        assert each.plan_failure == ""
        assert each.replans == 2
    np.testing.assert_array_equal(agent.plan.bounds.upper[0], twin.plan.bounds.upper[0])


def test_policies_show_no_negative_margin_either(tmp_path: Path) -> None:
    world = off_the_fallback(norm=10.0)
    study = opener(tmp_path / "plant.study", world)()
    study.export_policy(tmp_path / "policy.json")
    text = (tmp_path / "policy.json").read_text()
    assert '"margin": [null], "certified": true' in text
