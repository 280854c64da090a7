"""The exploration of the paper, to the letter (spec 6, "The paper profile"; eq:estimateqvalue).

Bonuses are multiples of u = ‖z‖_{A⁻¹}, not of relative widths; the future is looked for over all actions and gives one
number per state; the past's bonus depends on the first action that is about to be chosen and enters every Q, so there
is one backward sweep per certified first action, of which the best is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.estimate.costs import CostConfidence, CostData, uncertainty_rows
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.graph import FloatArray, LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.explore import future_uncertainty
from surefoot.plan.segments import segment_max, spread
from surefoot.plan.values import Values, optimistic_values


@dataclass(frozen=True)
class PaperWeights:
    """ε₂ and ε₃ per decision layer, ε₄; zero where an idea is switched off."""

    epsilon_2: tuple[float, ...]
    epsilon_3: tuple[float, ...]
    epsilon_4: float


def paper_uncertainty(
    problem: Problem, data: CostData, confidence: CostConfidence
) -> tuple[tuple[FloatArray, ...], FloatArray]:
    """Per layer (N,) max over successors of u, and (S,) u of the last states (0 without a cost)."""
    graph = problem.graph
    pairs = tuple(
        segment_max(
            uncertainty_rows(layer.cost_features, graph.anchors[h], data.ellipsoids(h, problem.limits, confidence)),
            layer.pair_ptr,
        )
        for h, layer in enumerate(graph.layers)
    )
    last = np.zeros(graph.terminal.n_states)
    if graph.terminal.cost_features is not None:
        h = graph.horizon - 1
        known = data.ellipsoids(h, problem.limits, confidence)
        u = uncertainty_rows(graph.terminal.cost_features, graph.anchors[h], known)
        last = np.where(graph.terminal.has_cost, u, 0.0)
    return pairs, last


def paper_values(
    graph: LayeredGraph,
    start: int,
    allowed: Certified,
    uncertainty: Sequence[FloatArray],
    last: FloatArray,
    known: Sequence[ValueEllipsoid],
    weights: PaperWeights,
) -> Values:
    """Q (eq:estimateqvalue), V and the greedy policy for episodes that begin in ``start``; Q is clipped at H."""
    everything = [np.ones(layer.n_pairs, bool) for layer in graph.layers]
    future = future_uncertainty(graph, uncertainty, last, everything).states
    bonus = [
        weights.epsilon_2[h] * uncertainty[h] + weights.epsilon_3[h] * spread(future[h], layer.state_ptr)
        for h, layer in enumerate(graph.layers)
    ]
    caps = [float(graph.horizon)] * len(graph.layers)
    first = graph.layers[0]
    candidates = [
        pair for pair in range(int(first.state_ptr[start]), int(first.state_ptr[start + 1])) if allowed.pairs[0][pair]
    ]
    best, best_score = None, (-np.inf, -np.inf)
    for pair in candidates:
        past = weights.epsilon_4 * float(uncertainty[0][pair])
        swept = optimistic_values(graph, allowed, [b + past for b in bonus], known, caps)
        q = float(swept.q[0][pair])
        score = (min(q, caps[0]), q)
        if score > best_score:
            best, best_score = _committed(swept, start, pair, score[0]), score
    if best is None:
        return optimistic_values(graph, allowed, bonus, known, caps)
    return best


def _committed(swept: Values, start: int, pair: int, value: float) -> Values:
    """The sweep, playing at the start the very action that its bonus assumed."""
    action, first = swept.action[0].copy(), swept.value[0].copy()
    action[start], first[start] = pair, value
    return replace(swept, action=(action, *swept.action[1:]), value=(first, *swept.value[1:]))
