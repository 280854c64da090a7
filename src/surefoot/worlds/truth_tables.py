"""From hidden parameters to tables: probabilities and costs of every triplet, and the rules they keep.

Steps with the same feature arrays and the same parameters share their tables: a template of 1e7 triplets
is evaluated once, however many steps it has. Letters in the shapes as in
:mod:`surefoot.model.graph`: N pairs, E edges, S states, m limits, dc and dp feature lengths, H steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.features import Features, pieces, product
from surefoot.model.graph import FloatArray, IntArray, Layer, freeze
from surefoot.model.problem import Problem
from surefoot.model.rays import mixed
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
    """Per decision step (E,): P(s'|s,a) = ⟨μ_h, φ⟩, checked and freed of rounding.

    ``transition`` holds μ, (H-1, dp).
    """
    known: dict[tuple[int, int, bytes], FloatArray] = {}
    tables = []
    for h, (layer, mu) in enumerate(zip(problem.graph.layers, transition, strict=True)):
        key = (id(layer.transition_features), id(layer.pair_ptr), mu.tobytes())
        if key not in known:
            known[key] = _probabilities(problem, h, layer, mu)
        tables.append(known[key])
    return tuple(tables)


def _probabilities(problem: Problem, h: int, layer: Layer, mu: FloatArray) -> FloatArray:
    p: FloatArray = product(layer.transition_features, mu)
    negative = np.flatnonzero(~(p >= -NEGATIVE_PROBABILITY))  # a NaN is not
    if len(negative):
        edge = int(negative[0])
        raise InvalidInput(
            "probability is negative",
            where=problem.naming.at_edge(layer, h, edge),
            got=f"⟨μ, φ⟩ = {float(p[edge])!r}",
            fix="Correct the transition parameters or the transition features.",
        )
    starts = layer.pair_ptr[:-1]
    np.maximum(p, 0.0, out=p)
    sums: FloatArray = np.add.reduceat(p, starts)
    wrong = np.flatnonzero(~(np.abs(sums - 1.0) <= PROBABILITY_SUM))
    if len(wrong):
        pair = int(wrong[0])
        raise InvalidInput(
            "probabilities do not sum to one over the declared successors",
            where=problem.naming.at_pair(layer, h, pair),
            got=f"sum {float(sums[pair])!r}",
            fix="Correct the transition parameters, or declare the successors that are missing.",
        )
    p /= np.repeat(sums, np.diff(layer.pair_ptr))
    return freeze(p)


def cumulative_tables(layers: Sequence[Layer], probabilities: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    """Per decision step (E,): cumulative probabilities within each pair, for drawing the next edge.

    The first edge e of a pair with u < cumulative[e] is drawn, u uniform in [0, 1). From the last edge with
    a positive probability on the entries are exactly 1, so that rounding can neither run past the pair nor
    draw an edge of probability zero.
    """
    known: dict[int, FloatArray] = {}
    for layer, p in zip(layers, probabilities, strict=True):
        if id(p) not in known:
            known[id(p)] = _cumulative(layer, p)
    return tuple(known[id(p)] for p in probabilities)


def _cumulative(layer: Layer, p: FloatArray) -> FloatArray:
    starts, lengths = layer.pair_ptr[:-1], np.diff(layer.pair_ptr)
    result = np.empty_like(p)
    # One pass per position within the pairs. A running sum over the whole layer, less each pair's offset,
    # would lose the digits that its size takes.
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
    known: dict[tuple[int, int, bytes], FloatArray] = {}
    tables = []
    naming = problem.naming
    for h, layer in enumerate(problem.graph.layers):
        extra = None if deviation is None else deviation[h]
        key = (id(layer.cost_features), id(extra), cost[h].tobytes())
        if key not in known:
            table = _costs(layer.cost_features, cost[h], extra)
            bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
            if len(bad):
                row = int(bad[0])
                raise InvalidInput(
                    "cost is not finite",
                    where=naming.at_row(layer, h, row),
                    got=repr(table[row].tolist()),
                )
            known[key] = freeze(table)
        tables.append(known[key])
    return tuple(tables), _terminal_costs(problem, cost[-1], deviation)


class AtZero(NamedTuple):
    """The truth of one layer at intensity 0 (spec 9); for actions without an intensity, their own."""

    probabilities: FloatArray  # (E,)
    costs: FloatArray  # (R, m)


def rays_at_zero(problem: Problem, transition: FloatArray, cost: FloatArray) -> tuple[AtZero, ...]:
    """Per decision step; none for a problem without rays."""
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
    """Probabilities (E,) and costs (R, m) of every step, every ray at its intensity; what steps share they share."""
    made: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}
    keys = []
    steps = zip(problem.graph.layers, at_zero, probabilities, costs, intensities, strict=True)
    for layer, zero, p, c, intensity in steps:
        keys.append(tuple(map(id, (layer.pair_ptr, layer.row_ptr, zero.costs, zero.probabilities, p, c, intensity))))
        if keys[-1] not in made:
            by_edge, by_row = (np.repeat(intensity, np.diff(pointer)) for pointer in (layer.pair_ptr, layer.row_ptr))
            made[keys[-1]] = (
                freeze(mixed((zero.probabilities, p), by_edge)),
                freeze(mixed((zero.costs, c), by_row)),
            )
    return tuple(made[key][0] for key in keys), tuple(made[key][1] for key in keys)


def cumulative_at(zero: AtZero, full: FloatArray, first: int, end: int, intensity: float) -> FloatArray:
    """(n,) cumulative probabilities of the edges of one pair at an intensity, as :func:`cumulative_tables` has them."""
    p = (1.0 - intensity) * zero.probabilities[first:end] + intensity * full[first:end]
    result = np.minimum(np.cumsum(p), 1.0)
    result[int(np.flatnonzero(p > 0.0)[-1]) :] = 1.0
    return result


def arrival_costs(problem: Problem, costs: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    """Per decision step (E, m): by what an edge is judged (spec 9). The cost of its row, or the largest of its pair's
    rows; ∞, beyond every bound, if it enters a forbidden state. The cost tables themselves if nothing differs.
    """
    graph = problem.graph
    known: dict[tuple[int, ...], FloatArray] = {}  # steps may share arrays
    tables = []
    for h, (layer, cost) in enumerate(zip(graph.layers, costs, strict=True)):
        banned = graph.forbidden(h + 1)
        key = tuple(map(id, (cost, layer.pair_ptr, layer.row_ptr, layer.successor, banned)))
        if key not in known:
            table = layer.worst_of_edges(cost)
            if banned.any():
                table = np.where(banned[layer.successor][:, None], np.inf, table)
            known[key] = freeze(table)
        tables.append(known[key])
    return tuple(tables)


def _costs(features: Features, gamma: FloatArray, extra: FloatArray | None) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):  # refused by name right after
        table: FloatArray = product(features, gamma.T)
        if extra is not None:
            table += extra
    return table


def rounding_deviations(
    exact: Problem, rounded: Problem, cost: FloatArray, deviation: Sequence[FloatArray] | None
) -> tuple[FloatArray, ...]:
    """Per step with a cost: the deviation as it was, plus ⟨γ, x − fl(x)⟩ of the exact and the rounded features.

    Computed from the differences of features, which float64 holds exactly; subtracting two costs would lose most
    digits.
    """
    known: dict[tuple[int, int, bytes], FloatArray] = {}
    tables = []
    for h, (x, fl) in enumerate(zip(_cost_features(exact), _cost_features(rounded), strict=True)):
        extra = None if deviation is None or len(deviation) <= h else deviation[h]
        key = (id(x), id(extra), cost[h].tobytes())
        if key not in known:
            table = np.zeros((len(x), cost.shape[1])) if extra is None else extra.copy()
            if not (isinstance(x, SparseRows) or isinstance(fl, SparseRows)):  # those are never rounded
                for rows, piece in pieces(x):
                    table[rows] += (piece - fl[rows]) @ cost[h].T
            known[key] = freeze(table)
        tables.append(known[key])
    return tuple(tables)


def _cost_features(problem: Problem) -> list[Features]:
    last = problem.graph.terminal.cost_features
    return [layer.cost_features for layer in problem.graph.layers] + ([] if last is None else [last])


def _terminal_costs(problem: Problem, gamma: FloatArray, deviation: Sequence[FloatArray] | None) -> FloatArray | None:
    terminal, last = problem.graph.terminal, problem.horizon - 1
    if terminal.cost_features is None:
        return None
    extra = deviation[last] if deviation is not None and len(deviation) > last else None
    table = _costs(terminal.cost_features, gamma, extra)
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        state = int(bad[0])
        raise InvalidInput(
            "cost is not finite",
            where=problem.naming.at_state(last, state),
            got=repr(table[state].tolist()),
        )
    table[~terminal.has_cost] = NO_COST
    return freeze(table)
