"""Two agents, two plans or two runs are the same to the bit, in every recorded number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.agents.agent import Agent
from surefoot.estimate.values import ValueEllipsoid
from surefoot.plan.plan import Plan
from surefoot.runs.run import Run


def same_state(one: Any, two: Any) -> None:
    first, second = one.checkpoint(), two.checkpoint()
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype
        assert first[name].tobytes() == second[name].tobytes(), name
    assert (one.episodes, one.replans) == (two.episodes, two.replans)
    same_plan(one.plan, two.plan)


def same_plan(one: Any, two: Any) -> None:
    if one is None:
        assert two is None
        return
    assert one.number == two.number
    for first, second in zip(plan_arrays(one), plan_arrays(two), strict=True):
        assert first.tobytes() == second.tobytes()


def plan_arrays(plan: Any) -> list[np.ndarray]:
    ends = [table for table in (plan.bounds.terminal_upper, plan.bounds.terminal_lower) if table is not None]
    sets, values = plan.certified_sets, plan.values
    return [
        *(*plan.bounds.upper, *plan.bounds.lower, *ends),
        *(*sets.pairs, *sets.states),
        *(*values.q, *values.value, *values.action),
    ]


AGENTS: dict[str, Callable[[sf.Problem], Agent]] = {
    "lsvi-new": sf.LsviNew,
    "a small budget": lambda problem: sf.LsviNew(problem, budget=2.0),
    "bonuses": lambda problem: sf.LsviNew(problem, exploration="ideas"),
    "every episode a plan": lambda problem: sf.LsviNew(problem, replan_growth=0.0),
    "first the fallback": lambda problem: sf.LsviNew(problem, initial_episodes=9),
    "no look-ahead": lambda problem: sf.LsviNew(problem, ideas="II III IV"),
    "ucrl-vtr": lambda problem: sf.agents.make("ucrl-vtr", problem),
    "slucb-qvi": lambda problem: sf.agents.make("slucb-qvi", problem),
    "fallback": lambda problem: sf.agents.make("fallback", problem),
}


def record(run: Run) -> dict[str, Any]:
    """All that a run measured, but its wall time: nested names, arrays and plain values."""
    return {
        "episodes": run.episodes_table.columns(),
        "plans": run.plans_table.columns(),
        "best": {str(start): value for start, value in run.best_values.items()},
        "fallback value": run.fallback_value,
        "replans": run.replans,
        "plan": {} if run.plan is None else plan_record(run.plan),
    }


def plan_record(plan: Plan) -> dict[str, Any]:
    return {
        "number": plan.number,
        "bounds": {key: value for key, value in vars(plan.bounds).items() if key not in ("known", "anchors")},
        "certified": vars(plan.certified_sets),
        "values": vars(plan.values),
        "ellipsoids": {str(h): ellipsoid(known) for h, known in enumerate(plan.ellipsoids)},
    }


def ellipsoid(known: ValueEllipsoid) -> dict[str, Any]:
    basis = known.basis
    return {**vars(known), "basis": basis.flat, "spot": basis.spot, "entry": basis.entry}


def differences(one: Any, two: Any, name: str = "") -> list[str]:
    """The names of all entries that differ in any bit, shape or type."""
    if isinstance(one, Mapping):
        assert list(one) == list(two), f"{name}: {list(one)} and {list(two)}"
        return [found for key in one for found in differences(one[key], two[key], f"{name}/{key}")]
    if isinstance(one, (tuple, list)):
        assert len(one) == len(two), name
        return [f for i, (a, b) in enumerate(zip(one, two, strict=True)) for f in differences(a, b, f"{name}[{i}]")]
    a, b = np.asarray(one), np.asarray(two)
    same = a.dtype == b.dtype and a.shape == b.shape and (a.tobytes() == b.tobytes() if a.dtype != object else a == b)
    return [] if same else [name]


def assert_same_run(one: Run, two: Run) -> None:
    assert not differences(record(one), record(two))
