"""SafeMDP (Turchetta, Berkenkamp, Krause 2016): explore all that can be explored safely, whatever it pays.

Before a plan, of the rows that the pessimistic safe set (surefoot.agents.blocks.two_sets) reaches from a start,

    expanders   lower_j + L_j·‖x − x'‖ ≤ c̄_j for all j and some x' of a pair that is not in the set
    target      the expander with the largest width max_j (upper_j − lower_j)/scale_j; without expanders the widest row

The plan goes to the target along pairs of the set, by the shortest way that the declared support allows.

Port of: the algorithm as its published code has it. Sources: read in the authors' code.
Changed to fit: returnability becomes that every step of the set has a next one, to the end of the episode; the
Lipschitz constant is the declared norm, which bounds |cost(x) − cost(x')| by L‖x − x'‖; once safe is not always safe,
as the set is computed anew; an episode makes one trip; last states are no targets. Features too many for a dense
copy: no expanders.
Assumes: deterministic transitions (``successors="one"``), and β = 2 standard deviations (``confidence="published"``).
Guarantees: every step safe with probability 1 − p with ``confidence="proved", successors="all"``; else nothing.
May violate: where an action has a second outcome, and where two standard deviations are not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from surefoot.agents.blocks.two_sets import Sets, TwoSets
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.features import Features
from surefoot.model.graph import BoolArray, FloatArray, IntArray, LayeredGraph
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan.certify import Certified
from surefoot.plan.explore import relative_uncertainty
from surefoot.plan.hope import reached
from surefoot.plan.segments import segment_max
from surefoot.plan.values import Values, greedy

DENSE = 1 << 24  #: numbers of a table that may be copied


class SafeMdp(TwoSets):
    """Widens what is known to be safe, and earns nothing by it."""

    name: ClassVar[str] = "safe-mdp"

    def _values(self, sets: Sets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        aim = target(self.problem, bounds, sets.sure)[:2]
        return towards(self.problem.graph, sets.playable, aim)


def target(problem: Problem, bounds: CostBounds, sure: Certified) -> tuple[int, int, float]:
    """(step, pair, width) of the row to go and measure."""
    graph, scales = problem.graph, problem.cost_scales
    inside = [
        np.repeat(mask, np.diff(layer.row_ptr))
        for mask, layer in zip(reached_pairs(graph, sure), graph.layers, strict=True)
    ]
    away = _away(problem, inside, sure)
    norm = np.array([prior.norm for prior in problem.priors])
    best, widest = (0, int(graph.layers[0].fallback_pairs()[0]), 0.0), (-1, -1.0)
    for h, layer in enumerate(graph.layers):
        own = np.flatnonzero(inside[h])
        if len(own) == 0:
            continue
        width = relative_uncertainty(bounds.upper[h][own], bounds.lower[h][own], scales)
        # Could a row outside the set be safe, if this one's cost were as low as its lower bound?
        opens = np.all(bounds.lower[h][own] + norm * away[h][own, None] <= problem.bounds[h], axis=1)
        top = int(np.argmax(np.where(opens, width, -1.0) if opens.any() else width))
        rank = (int(opens.any()), float(width[top]))  # any expander comes before all else
        if rank > widest:
            pair = int(np.searchsorted(layer.row_ptr, own[top], side="right")) - 1
            best, widest = (h, pair, float(width[top])), rank
    return best


def reached_pairs(graph: LayeredGraph, sure: Certified) -> list[BoolArray]:
    """Per decision layer (N,) the pairs of the set in states that it reaches from a start."""
    edges = reached(graph, sure.pairs)
    return [np.logical_or.reduceat(edges[h], layer.pair_ptr[:-1]) for h, layer in enumerate(graph.layers)]


def _away(problem: Problem, inside: list[BoolArray], sure: Certified) -> list[FloatArray]:
    """Per decision layer (R,): how far each row of the set is from the nearest row outside it; ∞ for all other rows.

    Outside are the rows of the same step, or of all steps where costs are the same at every step. Steps that share a
    table share the work.
    """
    layers = problem.graph.layers
    outside = [np.repeat(~sure.pairs[h], np.diff(layer.row_ptr)) for h, layer in enumerate(layers)]
    groups = [range(len(layers))] if problem.stationary_costs else [range(h, h + 1) for h in range(len(layers))]
    found: list[FloatArray] = [np.full(layer.n_rows, np.inf) for layer in layers]
    for group in groups:
        tables = {id(layers[h].cost_features): layers[h].cost_features for h in group}
        asked = {key: np.zeros(len(table), bool) for key, table in tables.items()}
        beyond = {key: np.zeros(len(table), bool) for key, table in tables.items()}
        for h in group:
            asked[id(layers[h].cost_features)] |= inside[h]
            beyond[id(layers[h].cost_features)] |= outside[h]
        others = [table[np.flatnonzero(beyond[key])] for key, table in tables.items() if beyond[key].any()]
        distance = {key: np.full(len(table), np.inf) for key, table in tables.items()}
        for key, table in tables.items():
            rows = np.flatnonzero(asked[key])
            if len(rows):
                distance[key][rows] = nearest_distance(others, table[rows])
        for h in group:
            found[h] = distance[id(layers[h].cost_features)]
    return found


def nearest_distance(tables: list[Features], x: Features) -> FloatArray:
    """(rows,) the distance of each row of x from the nearest row of the tables; ∞ without any."""
    from scipy.spatial import cKDTree

    if not tables or sum(table.size for table in tables) + x.size > DENSE:
        return np.full(len(x), np.inf)
    others = np.vstack([_dense(table) for table in tables])
    return np.asarray(cKDTree(others).query(_dense(x))[0])


def _dense(x: Features) -> FloatArray:
    return x.dense() if isinstance(x, SparseRows) else np.asarray(x, np.float64)


def towards(graph: LayeredGraph, allowed: Certified, aim: tuple[int, int]) -> Values:
    """Backward: 1 at the target, 0 elsewhere, and of several successors the best one; along allowed pairs."""
    value, q, action = [np.zeros(graph.terminal.n_states)], list[FloatArray](), list[IntArray]()
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        ahead = segment_max(value[0][layer.successor], layer.pair_ptr)
        if h == aim[0]:
            ahead = np.where(np.arange(layer.n_pairs) == aim[1], 1.0, 0.0)
        worth, chosen = greedy(layer, ahead, allowed.pairs[h], 1.0)
        q.insert(0, np.where(allowed.pairs[h], ahead, np.nan))
        value.insert(0, np.where(allowed.states[h], worth, 0.0))
        action.insert(0, chosen)
    nothing = tuple(np.zeros(layer.n_pairs) for layer in graph.layers)
    return Values(tuple(q), nothing, tuple(value), tuple(action))
