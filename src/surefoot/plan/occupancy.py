"""The extended linear program: the best occupancies over all models within intervals on the declared support.

Each triplet has a variable z(h,s,a,s'): how often an episode takes it. With P in [low, high] triplet by triplet,

    maximise   Σ z r   +  Σ over the last step of z · terminal reward
    such that  Σ_{a,s'} z(0,s,·,·) = share of the starts in s,      Σ_{a,s'} z(h,s,·,·) = Σ z(h−1,·,·,s)
               low · Σ_y z(h,s,a,y)  ≤  z(h,s,a,s')  ≤  high · Σ_y z(h,s,a,y),      z ≥ 0
               Σ z c_j ≤ budget_j                                                   for every limit j

(Efroni, Mannor and Pirotta 2020). low = high = P is the exact best policy under expected budgets. A policy of the
optimum plays a in s with the share of z(h,s,a,·) in z(h,s,·,·).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.model.arrays import FloatArray, pointer_of
from surefoot.model.graph import LayeredGraph
from surefoot.plan.drawing import uniform
from surefoot.plan.segments import spread


@dataclass(frozen=True, eq=False)
class Occupancy:
    """An optimum."""

    value: float
    triplets: tuple[FloatArray, ...]  # H-1 of (E,)
    chances: tuple[FloatArray, ...]  # H-1 of (N,); equal chances in states that it never visits


def best_occupancy(
    graph: LayeredGraph,
    low: Sequence[FloatArray],
    high: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    costs: Sequence[FloatArray],
    budgets: FloatArray,
) -> Occupancy | None:
    """The optimum; None if no model within the intervals has a policy that keeps the budgets.

    ``low``, ``high``: per decision layer (E,). ``rewards``: per decision layer (N,), the last one for the last states
    (S,). ``costs``: per decision layer (E, m), what a triplet costs. ``budgets``: (m,).
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    sizes = [layer.n_edges for layer in graph.layers]
    begins = pointer_of(np.array(sizes))
    worth = [rewards[h][layer.edge_pair()] for h, layer in enumerate(graph.layers)]
    worth[-1] = worth[-1] + rewards[-1][graph.layers[-1].successor]
    flow, right = _flow(graph, begins)
    inside = _intervals(graph, begins, low, high)
    budget_rows = csr_array(np.concatenate(list(costs)).T)
    solved: Any = linprog(
        -np.concatenate(worth),
        A_ub=vstack([inside, budget_rows], format="csr"),
        b_ub=np.concatenate([np.zeros(inside.shape[0]), budgets]),
        A_eq=flow,
        b_eq=right,
        method="highs",
    )
    if solved.status != 0:
        return None
    z = [np.maximum(solved.x[begins[h] : begins[h + 1]], 0.0) for h in range(len(sizes))]
    return Occupancy(-float(solved.fun), tuple(z), _policy(graph, z))


def _flow(graph: LayeredGraph, begins: Any) -> tuple[Any, FloatArray]:
    """Flow into a state equals flow out of it: a row per state of a decision layer."""
    from scipy.sparse import csr_array

    rows, columns, entries = [], [], []
    first = pointer_of(np.array([layer.n_states for layer in graph.layers]))
    for h, layer in enumerate(graph.layers):
        edges = begins[h] + np.arange(layer.n_edges)
        rows.append(first[h] + layer.pair_state()[layer.edge_pair()])
        columns.append(edges)
        entries.append(np.ones(layer.n_edges))
        if h + 1 < len(graph.layers):
            rows.append(first[h + 1] + layer.successor)
            columns.append(edges)
            entries.append(-np.ones(layer.n_edges))
    table = csr_array(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(first[-1], begins[-1])
    )
    right = np.zeros(first[-1])
    np.add.at(right, graph.starts, 1.0 / len(graph.starts))
    return table, right


def _intervals(graph: LayeredGraph, begins: Any, low: Sequence[FloatArray], high: Sequence[FloatArray]) -> Any:
    """z − high·Σz ≤ 0 where high < 1, and low·Σz − z ≤ 0 where low > 0."""
    from scipy.sparse import csr_array

    rows, columns, entries, n = [], [], [], 0
    for h, layer in enumerate(graph.layers):
        pair, length = layer.edge_pair(), np.diff(layer.pair_ptr)
        for bound, sign, binding in ((high[h], 1.0, high[h] < 1.0), (low[h], -1.0, low[h] > 0.0)):
            edges = np.flatnonzero(binding)
            own = length[pair[edges]]
            number = n + np.arange(len(edges))
            # one row per edge: sign·z(edge) on the diagonal, −sign·bound on every triplet of its pair
            among = np.repeat(layer.pair_ptr[pair[edges]], own) + _within(own)
            rows += [number, np.repeat(number, own)]
            columns += [begins[h] + edges, begins[h] + among]
            entries += [np.full(len(edges), sign), -sign * np.repeat(bound[edges], own)]
            n += len(edges)
    if not rows:
        return csr_array((0, begins[-1]))
    return csr_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(n, begins[-1]))


def _within(lengths: Any) -> Any:
    """0, 1, … of each stretch, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _policy(graph: LayeredGraph, z: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    chances = []
    for layer, along in zip(graph.layers, z, strict=True):
        pairs = np.add.reduceat(along, layer.pair_ptr[:-1])
        total = spread(np.add.reduceat(pairs, layer.state_ptr[:-1]), layer.state_ptr)
        chances.append(np.where(total > SEEN, pairs / np.where(total > SEEN, total, 1.0), uniform(layer)))
    return tuple(chances)


SEEN = 1e-12  #: a state visited less often than this counts as never visited
