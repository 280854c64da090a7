"""Units change nothing: a problem in other units is decided alike, from 10⁻⁸ to 10⁸ and beyond (spec 3, 4 and 8).

Costs are rescaled with all that is measured in their units (bound, noise, norm, γ, anchors, misspecification), features
with the norm and γ inversely. By a power of two every number is the old one times a power of two, to the bit; by a
power of ten, but for rounding. Transition features keep their units: they have a ridge of their own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.optimistic import UcrlVtr
from surefoot.audits.audit import audit
from surefoot.monitor.monitor import Monitor
from tests.differential.compare import problem_of
from tests.drawn_worlds import world_of
from tests.monitored import told
from tests.reference.generate import random_tables
from tests.reference.lsvi_new import Reference
from tests.reference.tables import Tables
from tests.studies import Plant, Quick, go_on

POWERS = [("two", 2.0), ("ten", 10.0)]


def times(factor: float, row: Any) -> Any:
    return None if row is None else [factor * number for number in row]


def rescaled(tables: Tables, costs: float, features: float) -> Tables:
    """The same plant with costs and cost features in other units."""
    known = tables.anchors
    return replace(
        tables,
        x={key: times(features, row) for key, row in tables.x.items()},
        phi=tables.phi,
        shared_features=False,
        terminal_x=None if tables.terminal_x is None else {s: times(features, x) for s, x in tables.terminal_x.items()},
        anchors=None
        if known is None
        else {h: None if a is None else (times(features, a[0]), times(costs, a[1])) for h, a in known.items()},
        limits=[
            replace(
                limit,
                bound=costs * limit.bound,
                noise=costs * limit.noise,
                norm=costs / features * limit.norm,
                misspecification=costs * limit.misspecification,
            )
            for limit in tables.limits
        ],
        gamma=[[times(costs / features, g) for g in layer] for layer in tables.gamma],
        deviation={key: times(costs, off) for key, off in tables.deviation.items()},
        terminal_deviation={s: times(costs, off) for s, off in tables.terminal_deviation.items()},
    )


def drawn(seed: int, base: float) -> tuple[Tables, Tables, float]:
    """A random plant, the same one in other units, and how much larger its costs are."""
    rng = np.random.default_rng([seed, int(base)])
    reach = 60 if base == 2.0 else 20
    costs, features = (base ** int(k) for k in rng.integers(-reach, reach + 1, 2))
    tables = random_tables(seed)
    return rescaled(tables, 1.0, 1.0), rescaled(tables, costs, features), costs


def decisions(world: sf.World, agent: Any, episodes: int) -> tuple[Any, ...]:
    """What was played, what was certified and what was counted, in every episode."""
    run = sf.run(agent, world, episodes=episodes, seed=1)
    table, plans = run.episodes_table, run.plans_table
    return (
        [table.reward.tolist(), table.violations.tolist(), table.certified.tolist(), table.plan.tolist()],
        [plans.consistent, plans.cost_event, plans.certified_pairs],
        (table.margin >= 0).tolist(),
    )


@pytest.mark.parametrize(("name", "base"), POWERS)
def test_a_run_decides_alike_in_all_units(name: str, base: float, seed: int) -> None:
    for k in range(3):
        one, other, costs = drawn(10 * seed + k, base)
        found = [
            decisions(world := world_of(tables), sf.LsviNew(world.problem, slack=unit), 150)
            for tables, unit in ((one, 1.0), (other, costs))
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize(("name", "base"), POWERS)
def test_violations_are_counted_in_all_units(name: str, base: float, seed: int) -> None:
    """A learner that does not look breaks limits, however small they are."""
    broken = 0
    for k in range(3):
        one, other, _ = drawn(10 * seed + k, base)
        found = [decisions(world := world_of(tables), UcrlVtr(world.problem), 100) for tables in (one, other)]
        assert found[0] == found[1]
        assert sf.exact.solve(world_of(one)).safe_actions[0].tolist() == (
            sf.exact.solve(world_of(other)).safe_actions[0].tolist()
        )
        broken += sum(found[0][0][1])
    assert broken > 0


def test_powers_of_two_change_no_bit(seed: int) -> None:
    one, other, costs = drawn(seed, 2.0)
    plans = []
    for tables, unit in ((one, 1.0), (other, costs)):
        world = world_of(tables)
        agent = sf.LsviNew(world.problem, slack=unit)
        sf.run(agent, world, episodes=60, seed=seed)
        plans.append(agent.plan)
    for h in range(one.horizon - 1):
        np.testing.assert_array_equal(plans[0].bounds.upper[h] * costs, plans[1].bounds.upper[h])
        np.testing.assert_array_equal(plans[0].bounds.lower[h] * costs, plans[1].bounds.lower[h])
        np.testing.assert_array_equal(plans[0].values.q[h], plans[1].values.q[h])


@pytest.mark.parametrize(("name", "base"), POWERS)
def test_the_reference_decides_alike_in_all_units(name: str, base: float, seed: int) -> None:
    one, other, costs = drawn(seed, base)
    first = [Reference(tables, 0.05, slack=unit).plan for tables, unit in ((one, 1.0), (other, costs))]
    assert first[0].certified == first[1].certified
    ours = sf.LsviNew(problem_of(other)).plan
    assert all(ours.certified(*pair) == kept for pair, kept in first[1].certified.items())


@pytest.mark.parametrize(("name", "base"), POWERS)
@pytest.mark.parametrize("truth", [1.0, 3.0])
def test_a_monitor_raises_the_same_alarms_in_all_units(name: str, base: float, truth: float, seed: int) -> None:
    """``truth``: how much larger costs are than declared, from the 40th measurement on."""
    one, other, _ = drawn(seed, base)
    found = []
    for tables in (one, other):
        world, rng = world_of(tables), np.random.default_rng(seed)
        monitor, alarms = Monitor(world.problem, 0.01), []
        scales = np.array([limit.noise for limit in world.problem.limits])
        for t in range(80):
            edge = int(rng.integers(len(world.costs[0])))
            beyond = np.abs(world.costs[0][edge]) * (truth - 1.0) * (t >= 40)
            cost = world.costs[0][edge] + beyond * 10 + scales * rng.standard_normal(len(scales))
            alarm = told(monitor, 0, edge, *cost)
            alarms.append(None if alarm is None else (alarm.kind, alarm.details["limit"]))
        found.append(alarms)
        assert any(alarms) or truth == 1.0
    assert found[0] == found[1]


def studied(tables: Tables, unit: float, path: Path, seed: int) -> tuple[Any, ...]:
    """The offers of a study and what the audit says of them."""
    world, offers = world_of(tables), list[Any]()

    def seen(what: str, content: Any) -> None:
        if what == "ask":
            told = content["certificate"]
            proved = told["margin"] is not None
            assert not proved or told["margin"] >= 0.0 or told["safe_by"] == "nothing"
            offers.append((content["step"], content["state"], content["action"], told["safe_by"], proved))

    with sf.Study.open(path, world.problem, slack=unit, files=Quick()) as study:
        go_on(study, Plant(world, seed), 25, seen)
        state = study.status()
    report = audit(path)
    assert report.clean, str(report)
    return offers, state["safe_mode"], state["plan"], report.counts


@pytest.mark.parametrize(("name", "base"), POWERS)
def test_a_study_and_its_audit_decide_alike_in_all_units(name: str, base: float, seed: int, tmp_path: Path) -> None:
    one, other, costs = drawn(seed, base)
    found = [studied(t, unit, tmp_path / str(i), seed) for i, (t, unit) in enumerate(((one, 1.0), (other, costs)))]
    assert found[0] == found[1]


# ---------------------------------------------------------------- features and noise of very different sizes


def unscaled(seed: int) -> Tables:
    """Features and costs anywhere from 10⁻⁸ to 10⁸, and next to no noise: least squares at their worst."""
    rng = np.random.default_rng([seed, 7])
    tables = random_tables(seed, misspecified=False)
    tables = replace(tables, limits=[replace(limit, noise=1e-6 * limit.noise) for limit in tables.limits])
    costs, features = 10.0 ** rng.uniform(-8, 8, 2)
    return rescaled(tables, float(costs), float(features))


def test_unscaled_features_are_learnt_safely(seed: int) -> None:
    for k in range(4):
        world = world_of(unscaled(10 * seed + k))
        for ridges in (None, [1e-14 * world.problem.graph.largest_cost_norm() ** 2]):  # the latter: no digit is left
            run = sf.run(sf.LsviNew(world.problem, ridges=ridges), world, episodes=300, seed=k)
            assert run.violations.sum() == 0
            assert run.cost_event
            assert all(run.plans_table.consistent)
            assert run.failed_replans == 0


def test_shared_unscaled_features_do_not_stop_a_run(seed: int) -> None:
    """Features of 10⁶ with noise of 10⁻³, in costs and transitions alike: a Cholesky factor could not be had."""
    tables = random_tables(seed, misspecified=False, shared_features=True)
    large = rescaled(tables, 1e6, 1e6)
    large = replace(
        large,
        limits=[replace(limit, noise=1e-3) for limit in large.limits],
        phi=large.x,
        shared_features=True,
        mu=[times(1e-6, row) for row in tables.mu],
        transition_norm=1e-6 * tables.transition_norm,
    )
    world = world_of(large)
    run = sf.run(sf.LsviNew(world.problem), world, episodes=200, seed=seed)
    assert run.violations.sum() == 0
    assert run.cost_event


def test_truthful_plants_with_unscaled_features_raise_no_alarm(seed: int, tmp_path: Path) -> None:
    tables = random_tables(seed, misspecified=False)
    large = rescaled(tables, 1e6, 1e6)
    large = replace(large, limits=[replace(limit, noise=1e-3) for limit in large.limits])
    for i, plant in enumerate((large, unscaled(seed))):
        _, safe_mode, plans, _ = studied(plant, 1.0, tmp_path / str(i), seed)
        assert not safe_mode
        assert plans > 1
