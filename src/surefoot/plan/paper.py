"""The paper's constants for a problem, and its exploration to the letter (spec 6; eq:estimateqvalue).

Bonuses are multiples of u = ‖z‖_{A⁻¹}, not of relative widths. That of the future is taken over all actions and is one
number per state. That of the past depends on the first action and enters every Q, so there is one backward sweep per
certified first action, and the best is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot import theory
from surefoot.checks import at_least
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostData, uncertainty_rows
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import FloatArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.explore import future_uncertainty
from surefoot.plan.segments import segment_max, spread
from surefoot.plan.values import Values, optimistic_values


@dataclass(frozen=True)
class PaperWeights:
    """ε₂ and ε₃ per decision layer, ε₄; zero if an idea is switched off."""

    epsilon_2: tuple[float, ...]
    epsilon_3: tuple[float, ...]
    epsilon_4: float


def paper_uncertainty(
    problem: Problem, data: CostData, confidence: CostConfidence
) -> tuple[tuple[FloatArray, ...], FloatArray]:
    """Per layer (N,) max over the pair's cost rows of u, and (S,) u of the last states (0 without a cost)."""
    graph = problem.graph
    pairs = tuple(
        segment_max(
            uncertainty_rows(layer.cost_features, graph.anchors[h], data.ellipsoids(h, confidence)),
            layer.row_ptr,
        )
        for h, layer in enumerate(graph.layers)
    )
    last = np.zeros(graph.terminal.n_states)
    if graph.terminal.cost_features is not None:
        h = graph.horizon - 1
        known = data.ellipsoids(h, confidence)
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
    candidates = [pair for pair in first.pairs_of(start) if allowed.pairs[0][pair]]
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


def without_fallback(graph: LayeredGraph) -> LayeredGraph:
    """The graph for a certification in which the fallback, too, is certified only by its bounds."""
    layers = tuple(replace(layer, fallback=np.full_like(layer.fallback, NO_ACTION)) for layer in graph.layers)
    last = replace(graph.terminal, fallback_reached=np.zeros_like(graph.terminal.fallback_reached))
    return replace(graph, layers=layers, terminal=last)


def with_fallback(graph: LayeredGraph, values: Values) -> Values:
    """The same values, playing the fallback where no action is certified; V stays 0 there."""
    played = zip(values.action, graph.fallback, strict=True)
    return replace(values, action=tuple(np.where(a == NO_ACTION, fallback, a) for a, fallback in played))


def setting_for(
    problem: Problem,
    *,
    failure_probability: float,
    feature_bound: float | None,
    coverage_rate: float,
    value_radius_scale: float,
    lipschitz: float,
    ridge: float | None,
    union: bool,
) -> theory.Setting:
    """A problem's constants for the regret theorem (thm:regret; spec 6). Every step must have an anchor."""
    graph = problem.graph
    costed = graph.anchors if graph.terminal.cost_features is not None else graph.anchors[:-1]
    anchor_costs = []
    for h, anchor in enumerate(costed):
        if anchor is None:
            raise InvalidInput("no anchor, and the paper's constants need an anchor at every step", where=f"step {h}")
        # The constants depend only on c̄ − c⁰, so a bound unlike the first step's can be expressed as another cost.
        anchor_costs.append((anchor.cost[0] - (problem.bounds[h] - problem.bounds[0])).tolist())
    dimension = graph.cost_dim + (0 if graph.shared_features else graph.transition_dim)
    return theory.Setting(
        horizon=problem.horizon,
        bounds=problem.bounds[0].tolist(),
        cost_norms=[prior.norm for prior in problem.priors],
        noises=problem.noises.tolist(),
        transition_norm=problem.transition_norm,
        anchor_costs=anchor_costs,
        largest_distance=graph.largest_feature_distance(),
        dimension=dimension,
        feature_bound=_feature_bound(problem, feature_bound),
        failure_probability=failure_probability,
        ridge=float(dimension if ridge is None else ridge),
        lambda_0=at_least("coverage_rate", coverage_rate, 0.0, strictly=True),
        b_beta=at_least("value_radius_scale", value_radius_scale, 0.0),
        delta_tilde=at_least("lipschitz", lipschitz, 0.0, strictly=True),
        union=union,
    )


def usual_setting(problem: Problem, failure_probability: float) -> theory.Setting:
    """The setting with λ = d and λ₀ = b_β = δ̃ = 1, for descriptions."""
    return setting_for(
        problem,
        failure_probability=failure_probability,
        feature_bound=None,
        coverage_rate=1.0,
        value_radius_scale=1.0,
        lipschitz=1.0,
        ridge=None,
        union=True,
    )


def _feature_bound(problem: Problem, given: float | None) -> float:
    """D. Since β₁ is also the safety radius, D must bound the cost features, whatever the user gives."""
    largest = problem.graph.largest_cost_norm()
    if given is None:
        return max(problem.horizon * problem.graph.largest_feature_sum(), largest)
    bound = at_least("feature_bound", given, 0.0, strictly=True)
    if bound < largest:
        raise InvalidInput(
            "feature_bound is below the largest cost feature",
            got=f"{given!r} < {largest!r}",
            fix="The safety radius would be too small.",
        )
    return bound
