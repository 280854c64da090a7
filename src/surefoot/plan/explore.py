"""Bonuses that send the learner where safety is uncertain (spec 5; Ideas II, III, IV).

With the relative uncertainty of a triplet, max_j (upper_j − lower_j)/slack_j, and ω(s,a) its maximum over successors:

    Idea II   this transition   w₂ · R_h · ω(s,a)
    Idea III  the future        w₃ · R_h · max_{s'} U_{h+1}(s'),   U_h(s) = max_{certified a} max(ω, max_{s'} U_{h+1})
    Idea IV   the past          w₄ · R_0 · ω(s,a), at layer 0 only
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.model.layered import BoolArray, FloatArray, LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan.kernels import segment_max


def slacks(problem: Problem, given: float | Sequence[float] | None) -> FloatArray:
    """(H, m) what an uncertainty is measured against: c̄ − c⁰, 1 without an anchor, or what the user says."""
    m = len(problem.limits)
    table = np.ones((problem.horizon, m))
    if given is not None:
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty((0, 0))
        if values.ndim > 1 or (values.ndim == 1 and len(values) != m):
            raise InvalidInput("slack must be one number, or one per limit", got=repr(given))
        table[:] = values
    else:
        for h, anchor in enumerate(problem.graph.anchors):
            if anchor is not None:
                table[h] = [limit.bound - c for limit, c in zip(problem.limits, anchor.cost, strict=True)]
    if not (np.isfinite(table) & (table > 0)).all():
        raise InvalidInput("slack must be positive", got=repr(given if given is not None else table.min()))
    return table


def relative_uncertainty(upper: FloatArray, lower: FloatArray, slack: FloatArray) -> FloatArray:
    """(rows,) max over limits of max(0, upper − lower)/slack."""
    with np.errstate(invalid="ignore"):
        width = np.where(np.isneginf(upper), 0.0, upper - lower)  # −∞: a terminal state without a cost
    result: FloatArray = (np.maximum(width, 0.0) / slack).max(axis=1)
    return result


def pair_uncertainty(graph: LayeredGraph, bounds: CostBounds, slack: FloatArray) -> tuple[FloatArray, ...]:
    """Per layer (N,): ω(s,a), the largest relative uncertainty over the successors."""
    return tuple(
        segment_max(relative_uncertainty(bounds.upper[h], bounds.lower[h], slack[h]), layer.pair_ptr)
        for h, layer in enumerate(graph.layers)
    )


def terminal_uncertainty(graph: LayeredGraph, bounds: CostBounds, slack: FloatArray) -> FloatArray:
    """(S,) U at the last layer: the state's own relative uncertainty, 0 without a cost."""
    if bounds.terminal_upper is None or bounds.terminal_lower is None:
        return np.zeros(graph.terminal.n_states)
    return relative_uncertainty(bounds.terminal_upper, bounds.terminal_lower, slack[-1])


def future_uncertainty(
    graph: LayeredGraph, omega: Sequence[FloatArray], last: FloatArray, allowed: Sequence[BoolArray]
) -> tuple[FloatArray, ...]:
    """Per layer 0 … H-1 (S,): U, the largest ω that lies ahead along allowed pairs; 0 where there is none."""
    future = [last]
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        ahead = np.maximum(omega[h], segment_max(future[0][layer.successor], layer.pair_ptr))
        future.insert(0, segment_max(np.where(allowed[h], ahead, 0.0), layer.state_ptr))
    return tuple(future)


def bonuses(
    graph: LayeredGraph,
    omega: Sequence[FloatArray],
    future: Sequence[FloatArray],
    weights: tuple[float, float, float],
) -> tuple[FloatArray, ...]:
    """Per layer (N,): the sum of the three ideas, with R_h = H − h."""
    w2, w3, w4 = weights
    result = []
    for h, layer in enumerate(graph.layers):
        most = graph.horizon - h
        ahead = segment_max(future[h + 1][layer.successor], layer.pair_ptr)
        bonus = w2 * most * omega[h] + w3 * most * ahead
        if h == 0:
            bonus = bonus + w4 * most * omega[h]
        result.append(bonus)
    return tuple(result)
