"""Problems for tests of the monitor, and how it is told of a cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.monitor.monitor import Alarm, Monitor

ALPHA = 0.01


def chain(
    features: np.ndarray,
    limits: Sequence[Limit] | Limit,
    *,
    horizon: int = 3,
    stationary: bool = True,
    anchor: tuple[Any, Any] | None = None,
    terminal: np.ndarray | None = None,
) -> Problem:
    """One state, one action with as many successors in the last layer as there are features; all are costs."""
    n = len(features)
    rows = [features[:1]] * (horizon - 2) + [features]
    ends = [1] * (horizon - 2) + [n]
    return Problem.from_arrays(
        horizon=horizon,
        start=0,
        state_ptr=[np.array([0, 1])] * (horizon - 1),
        pair_ptr=[np.array([0, end]) for end in ends],
        successors=[np.arange(end) for end in ends],
        reward=[np.zeros(1)] * (horizon - 1),
        cost_features=[np.ascontiguousarray(row, float) for row in rows],
        fallback=[np.zeros(1, np.int64)] * (horizon - 1),
        limits=limits,
        terminal_cost_features=terminal,
        anchor=None if anchor is None else lambda h: anchor,
        stationary_costs=stationary,
    )


def told(monitor: Monitor, h: int, edge: int, *cost: float) -> Alarm | None:
    layer = monitor.problem.graph.layers[h]
    return monitor.observe(h, layer.cost_features[layer.row_of(edge)], np.array(cost))
