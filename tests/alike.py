"""Two agents, or two plans, are the same to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np


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
