"""Bonuses that send the learner where safety is uncertain (spec 5; Ideas II, III, IV).

With the relative uncertainty of a cost row, max_j (upper_j − lower_j)/slack_j, and ω(s,a) its maximum over the pair's:

    Idea II   this transition   w₂ · R_h · ω(s,a)
    Idea III  the future        w₃ · R_h · max_{s'} U_{h+1}(s'),   U_h(s) = max_{certified a} max(ω, max_{s'} U_{h+1})
    Idea IV   the past          w₄ · R_0 · ω(s,a), at layer 0 only
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.row_bounds import streamed
from surefoot.model.arrays import BoolArray, FloatArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.model.reals import reals
from surefoot.plan import kernels as sweeps


def slacks(problem: Problem, given: float | Sequence[float] | None) -> FloatArray:
    """(H, m) the scale of uncertainties: c̄ − c⁰, 1 without an anchor, or the user's number."""
    m = len(problem.limits)
    table = np.ones((problem.horizon, m))
    if given is not None:
        values = reals(given)
        if values is None or values.ndim > 1 or (values.ndim == 1 and len(values) != m):
            raise InvalidInput("slack must be one number, or one per limit", got=repr(given))
        table[:] = values
    else:
        for h, anchor in enumerate(problem.graph.anchors):
            if anchor is not None:
                table[h] = problem.bounds[h] - anchor.cost[0]
    if not (np.isfinite(table) & (table > 0)).all():
        raise InvalidInput("slack must be positive", got=repr(given if given is not None else table.min()))
    return table


def relative_uncertainty(upper: FloatArray, lower: FloatArray, slack: FloatArray) -> FloatArray:
    """(rows,) max over limits of max(0, upper − lower)/slack; a NaN counts as 0, since no data explain it."""
    with np.errstate(invalid="ignore"):
        width = np.where(np.isneginf(upper), 0.0, upper - lower)  # −∞: a terminal state without a cost
    result: FloatArray = (np.fmax(width, 0.0) / slack).max(axis=1)
    return result


def pair_uncertainty(graph: LayeredGraph, bounds: CostBounds, slack: FloatArray) -> tuple[FloatArray, ...]:
    """Per layer (N,): ω(s,a), the largest relative uncertainty over the cost rows."""
    result = tuple(np.empty(layer.n_pairs) for layer in graph.layers)
    for h, (layer, omega) in enumerate(zip(graph.layers, result, strict=True)):
        upper, lower = bounds.upper[h], bounds.lower[h]
        if (table := streamed(upper)) is not None:
            for _, pairs, rows, part in layer.parts(table.block):
                sweeps.widths(part.n_rows, part.row_ptr, upper[rows], lower[rows], slack[h], omega[pairs])
        else:
            sweeps.widths(layer.n_rows, layer.row_ptr, upper, lower, slack[h], omega)
    return result


def terminal_uncertainty(graph: LayeredGraph, bounds: CostBounds, slack: FloatArray) -> FloatArray:
    """(S,) U at the last layer: the state's own relative uncertainty, 0 without a cost."""
    if bounds.terminal_upper is None or bounds.terminal_lower is None:
        return np.zeros(graph.terminal.n_states)
    return relative_uncertainty(bounds.terminal_upper, bounds.terminal_lower, slack[-1])


class Future(NamedTuple):
    """The largest ω that lies ahead along allowed pairs; 0 where there is none."""

    states: tuple[FloatArray, ...]  # H of (S,)  U
    pairs: tuple[FloatArray, ...]  # H-1 of (N,)  max over successors of the next layer's U


def future_uncertainty(
    graph: LayeredGraph, omega: Sequence[FloatArray], last: FloatArray, allowed: Sequence[BoolArray]
) -> Future:
    """The uncertainty of Idea III, backward from that of the last layer (S,)."""
    states, pairs = [last], list[FloatArray]()
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        ahead, here = np.empty(layer.n_pairs), np.empty(layer.n_states)
        arrays = (layer.state_ptr, layer.pair_ptr, layer.successor, omega[h], allowed[h], states[0])
        sweeps.ahead(layer.n_edges, *arrays, ahead, here)
        pairs.insert(0, ahead)
        states.insert(0, here)
    return Future(tuple(states), tuple(pairs))


def bonuses(
    graph: LayeredGraph, omega: Sequence[FloatArray], future: Future, weights: tuple[float, float, float]
) -> tuple[FloatArray, ...]:
    """Per layer (N,): the sum of the three ideas, with R_h = H − h: the last three terms of eq:estimateqvalue."""
    w2, w3, w4 = weights
    result = []
    for h in range(len(graph.layers)):
        most = graph.horizon - h
        bonus = w2 * most * omega[h] + w3 * most * future.pairs[h]
        if h == 0:
            bonus = bonus + w4 * most * omega[h]
        result.append(bonus)
    return tuple(result)
