"""Probabilities and costs of every triplet, computed from the hidden parameters and checked.

Steps with the same feature arrays and parameters share their tables. Letters in the shapes as in
:mod:`surefoot.model.graph`: N pairs, E edges, S states, m limits, dc and dp feature lengths, H steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from surefoot.checks import refuse_first
from surefoot.model.arrays import FloatArray, IntArray, freeze
from surefoot.model.features import Features, pieces, table_times
from surefoot.model.layer import Layer
from surefoot.model.problem import Problem
from surefoot.model.rays import mixed
from surefoot.model.sharing import made_once
from surefoot.model.sparse_rows import SparseRows
from surefoot.tolerances import NEGATIVE_PROBABILITY, PROBABILITY_SUM

NO_COST = -np.inf  #: the cost of a terminal state without one: below every bound, and never a NaN


def ranges(pointer: IntArray, pairs: IntArray) -> IntArray:
    """The edges (pointer: ``pair_ptr``) or cost rows (``row_ptr``) of the given pairs, in the order of the pairs."""
    first = pointer[pairs]
    lengths = pointer[pairs + 1] - first
    before = np.cumsum(lengths) - lengths
    numbers: IntArray = np.repeat(first - before, lengths) + np.arange(int(lengths.sum()))
    return numbers


def probability_tables(problem: Problem, transition: FloatArray) -> tuple[FloatArray, ...]:
    """Per decision step (E,): P(s'|s,a) = ⟨μ_h, φ⟩, checked and normalized; ``transition`` holds μ, (H-1, dp)."""
    steps = list(zip(problem.graph.layers, transition, strict=True))
    keys = [(id(layer.transition_features), id(layer.pair_ptr), mu.tobytes()) for layer, mu in steps]
    return made_once(keys, lambda h: _probabilities(problem, h, *steps[h]))


def _probabilities(problem: Problem, h: int, layer: Layer, mu: FloatArray) -> FloatArray:
    p: FloatArray = table_times(layer.transition_features, mu)
    refuse_first(
        ~(p >= -NEGATIVE_PROBABILITY),  # a NaN is not
        "probability is negative",
        partial(problem.naming.at_edge, layer, h),
        fix="Correct the transition parameters or the transition features.",
        got=lambda edge: f"⟨μ, φ⟩ = {float(p[edge])!r}",
    )
    starts = layer.pair_ptr[:-1]
    np.maximum(p, 0.0, out=p)
    sums: FloatArray = np.add.reduceat(p, starts)
    refuse_first(
        ~(np.abs(sums - 1.0) <= PROBABILITY_SUM),
        "probabilities do not sum to one over the declared successors",
        partial(problem.naming.at_pair, layer, h),
        fix="Correct the transition parameters, or declare the successors that are missing.",
        got=lambda pair: f"sum {float(sums[pair])!r}",
    )
    p /= np.repeat(sums, np.diff(layer.pair_ptr))
    return freeze(p)


def cumulative_tables(layers: Sequence[Layer], probabilities: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    """Per decision step (E,): cumulative probabilities within each pair, for drawing the next edge.

    The first edge e of a pair with u < cumulative[e] is drawn, u uniform in [0, 1). From the last edge with a positive
    probability on, the entries are exactly 1, so that rounding never draws an edge of probability zero.
    """
    return made_once(map(id, probabilities), lambda h: _cumulative(layers[h], probabilities[h]))


def _cumulative(layer: Layer, p: FloatArray) -> FloatArray:
    starts, lengths = layer.pair_ptr[:-1], np.diff(layer.pair_ptr)
    result = np.empty_like(p)
    # One pass per position within the pairs: a running sum over the whole layer would lose digits.
    alive = np.arange(len(starts))
    total = np.zeros(len(starts))
    for k in range(int(lengths.max())):
        alive = alive[lengths[alive] > k]
        edges = starts[alive] + k
        total[alive] += p[edges]
        result[edges] = total[alive]
    np.minimum(result, 1.0, out=result)
    edge = np.arange(len(p))
    last = np.maximum.reduceat(np.where(p > 0.0, edge, -1), starts)
    result[edge >= np.repeat(last, lengths)] = 1.0
    return freeze(result)


def cost_tables(
    problem: Problem, cost: FloatArray, deviation: Sequence[FloatArray] | None
) -> tuple[tuple[FloatArray, ...], FloatArray | None]:
    """True costs: per decision step (R, m), one per cost row, and (S, m) of the terminal step or None.

    ``cost`` (H, m, dc); ``deviation`` holds what is added to ⟨γ, x⟩ per decision step and, last, at the terminal step.
    """
    layers = problem.graph.layers
    extra = [None if deviation is None else deviation[h] for h in range(len(layers))]
    keys = [(id(layer.cost_features), id(extra[h]), cost[h].tobytes()) for h, layer in enumerate(layers)]

    def of_step(h: int) -> FloatArray:
        return freeze(_costs(layers[h].cost_features, cost[h], extra[h], partial(problem.naming.at_row, layers[h], h)))

    return made_once(keys, of_step), _terminal_costs(problem, cost[-1], deviation)


class AtZero(NamedTuple):
    """The truth of one layer at intensity 0 (spec 9); for actions without an intensity, their own."""

    probabilities: FloatArray  # (E,)
    costs: FloatArray  # (R, m)


def rays_at_zero(problem: Problem, transition: FloatArray, cost: FloatArray) -> tuple[AtZero, ...]:
    """Per decision step; empty for a problem without rays."""
    if not problem.has_rays:
        return ()
    at_zero = problem.at(0.0)
    probabilities = probability_tables(at_zero, transition)
    return tuple(map(AtZero, probabilities, cost_tables(at_zero, cost, None)[0]))


def at_intensities(
    problem: Problem,
    at_zero: Sequence[AtZero],
    probabilities: Sequence[FloatArray],
    costs: Sequence[FloatArray],
    intensities: Sequence[FloatArray],
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Probabilities (E,) and costs (R, m) of every step with every ray at its intensity; steps go on sharing arrays."""
    steps = list(zip(problem.graph.layers, at_zero, probabilities, costs, intensities, strict=True))
    keys = [
        tuple(map(id, (layer.pair_ptr, layer.row_ptr, zero.costs, zero.probabilities, p, c, intensity)))
        for layer, zero, p, c, intensity in steps
    ]

    def of_step(h: int) -> tuple[FloatArray, FloatArray]:
        layer, zero, p, c, intensity = steps[h]
        by_edge, by_row = (np.repeat(intensity, np.diff(pointer)) for pointer in (layer.pair_ptr, layer.row_ptr))
        return freeze(mixed((zero.probabilities, p), by_edge)), freeze(mixed((zero.costs, c), by_row))

    both = made_once(keys, of_step)
    return tuple(p for p, _ in both), tuple(c for _, c in both)


def cumulative_at(zero: AtZero, full: FloatArray, first: int, end: int, intensity: float) -> FloatArray:
    """(n,) cumulative probabilities of the edges of one pair at an intensity, as :func:`cumulative_tables` has them."""
    p = (1.0 - intensity) * zero.probabilities[first:end] + intensity * full[first:end]
    result = np.minimum(np.cumsum(p), 1.0)
    result[int(np.flatnonzero(p > 0.0)[-1]) :] = 1.0
    return result


def arrival_costs(problem: Problem, costs: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    """Per decision step (E, m): the costs that decide whether an edge is safe (spec 9): that of its row, or the largest
    of its pair's rows; ∞ if it enters a forbidden state.
    """
    layers, banned = problem.graph.layers, [problem.graph.forbidden(h) for h in range(1, problem.horizon)]
    keys = [
        tuple(map(id, (cost, layer.pair_ptr, layer.row_ptr, layer.successor, after)))
        for layer, cost, after in zip(layers, costs, banned, strict=True)
    ]

    def of_step(h: int) -> FloatArray:
        table = layers[h].worst_of_edges(costs[h])
        if banned[h].any():
            table = np.where(banned[h][layers[h].successor][:, None], np.inf, table)
        return freeze(table)

    return made_once(keys, of_step)


def _costs(x: Features, gamma: FloatArray, extra: FloatArray | None, place: Callable[[int], str]) -> FloatArray:
    """(rows, m); ``place`` says where a row is."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused by name right after
        table: FloatArray = table_times(x, gamma.T)
        if extra is not None:
            table += extra
    bad = ~np.all(np.isfinite(table), axis=1)
    refuse_first(bad, "cost is not finite", place, got=lambda row: repr(table[row].tolist()))
    return table


def rounding_deviations(
    exact: Problem, rounded: Problem, cost: FloatArray, deviation: Sequence[FloatArray] | None
) -> tuple[FloatArray, ...]:
    """Per step with a cost: the deviation as it was, plus ⟨γ, x − fl(x)⟩ of the exact and the rounded features.

    Computed from differences of features, which are exact; subtracting two costs would lose most digits.
    """
    both = list(zip(_cost_features(exact), _cost_features(rounded), strict=True))
    extra = [None if deviation is None or len(deviation) <= h else deviation[h] for h in range(len(both))]
    keys = [(id(x), id(extra[h]), cost[h].tobytes()) for h, (x, _) in enumerate(both)]

    def of_step(h: int) -> FloatArray:
        (x, fl), own = both[h], extra[h]
        table = np.zeros((len(x), cost.shape[1])) if own is None else own.copy()
        if not (isinstance(x, SparseRows) or isinstance(fl, SparseRows)):  # those are never rounded
            for rows, piece in pieces(x):
                table[rows] += (piece - fl[rows]) @ cost[h].T
        return freeze(table)

    return made_once(keys, of_step)


def _cost_features(problem: Problem) -> list[Features]:
    last = problem.graph.terminal.cost_features
    return [layer.cost_features for layer in problem.graph.layers] + ([] if last is None else [last])


def _terminal_costs(problem: Problem, gamma: FloatArray, deviation: Sequence[FloatArray] | None) -> FloatArray | None:
    terminal, last = problem.graph.terminal, problem.horizon - 1
    if terminal.cost_features is None:
        return None
    extra = deviation[last] if deviation is not None and len(deviation) > last else None
    table = _costs(terminal.cost_features, gamma, extra, partial(problem.naming.at_state, last))
    table[~terminal.has_cost] = NO_COST
    return freeze(table)
