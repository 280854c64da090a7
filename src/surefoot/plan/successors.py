"""Estimated transitions: P̂ on the declared support, and the graph of the likeliest successors.

Learners made for deterministic transitions ask only whether *the* next state is safe. For stochastic problems they get
a graph with only the likeliest successor of each pair by P̂ (the first of equals); certifying on it is not safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import Layer
from surefoot.plan.certify import pair_excess
from surefoot.plan.segments import first_largest, spread


def expected_of_triplets(layer: Layer, worth: FloatArray, known: ValueEllipsoid) -> FloatArray:
    """(N,) ⟨θ̂, φ_f⟩ + optimism · radius · ‖φ_f‖_{A⁻¹}, clipped to f on the support, for f (E,) of the triplets."""
    by_triplet = replace(layer, successor=np.arange(layer.n_edges, dtype=np.int64))
    return expected_next_value(by_triplet, worth, known)


def likelihoods(layer: Layer, known: ValueEllipsoid) -> FloatArray:
    """(E,) P̂(s'|s,a) = ⟨θ̂, φ(s,a,s')⟩, cut at 0 and scaled to 1 over the support; uniform if all are 0."""
    alone = replace(
        layer,
        pair_ptr=np.arange(layer.n_edges + 1, dtype=np.int64),
        successor=np.zeros(layer.n_edges, np.int64),
    )
    raw = expected_next_value(alone, np.ones(1), replace(known, optimism=0.0, clip=False), np.arange(layer.n_edges))
    raw = np.where(raw > 0.0, raw, 0.0)
    total = spread(np.add.reduceat(raw, layer.pair_ptr[:-1]), layer.pair_ptr)
    even = spread(1.0 / np.diff(layer.pair_ptr), layer.pair_ptr)
    return np.where(total > 0.0, raw / np.where(total > 0.0, total, 1.0), even)


def likeliest(layer: Layer, known: ValueEllipsoid) -> IntArray:
    """(N,) the edge of each pair with the largest P̂."""
    return first_largest(likelihoods(layer, known), layer.pair_ptr)


def with_one_successor(
    graph: LayeredGraph, bounds: CostBounds, known: Sequence[ValueEllipsoid]
) -> tuple[LayeredGraph, CostBounds]:
    """The graph with only the likeliest successor of every pair, and its bounds."""
    if all(layer.n_edges == layer.n_pairs for layer in graph.layers):  # deterministic, as they assume
        return graph, bounds
    layers, upper, lower = [], [], []
    for h, layer in enumerate(graph.layers):
        kept, pointer = likeliest(layer, known[h]), np.arange(layer.n_pairs + 1, dtype=np.int64)
        rows = kept if layer.per_triplet else np.arange(layer.n_rows)  # rows of pairs do not depend on successors
        layers.append(
            replace(
                layer,
                pair_ptr=pointer,
                row_ptr=pointer if layer.per_triplet else layer.row_ptr,
                successor=layer.successor[kept],
                cost_features=layer.cost_features[rows],
                transition_features=layer.transition_features[kept],
            )
        )
        upper.append(bounds.upper[h][rows])
        lower.append(bounds.lower[h][rows])
    return replace(graph, layers=tuple(layers)), replace(bounds, upper=tuple(upper), lower=tuple(lower))


def assumed_excess(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> tuple[FloatArray, ...]:
    """Per decision layer (N,): :func:`pair_excess` of the upper bounds, at most 0 for the fallback's own pairs, and for
    these alone if the bounds contradict each other; ``limits``: (H, m)."""
    result = []
    for h, layer in enumerate(graph.layers):
        excess = pair_excess(layer, bounds.upper[h], limits[h])
        if not bounds.consistent:
            excess = np.maximum(excess, np.finfo(np.float64).tiny)
        own = layer.fallback_pairs()
        excess[own] = np.minimum(excess[own], 0.0)
        result.append(excess)
    return tuple(result)
