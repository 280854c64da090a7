"""Pruning: a problem without the states that no sequence of actions can reach."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from surefoot.model.graph import NO_ACTION, BoolArray, IntArray, Layer, LayeredGraph, Terminal, freeze
from surefoot.model.rays import refuse_rays

if TYPE_CHECKING:
    from surefoot.model.problem import Problem


def pruned(problem: Problem) -> Problem:
    """The same problem without them; itself where there are none, or where the graph still grows."""
    graph = problem.graph
    if graph.beyond is not None or all(mask.all() for mask in graph.reachable):
        return problem
    refuse_rays(problem, "pruning")
    return replace(problem, graph=_pruned(graph), naming=problem.naming.kept(graph.reachable, graph.layers))


def _pruned(graph: LayeredGraph) -> LayeredGraph:
    """The graph without the states that nothing can reach; layers that keep all stay shared."""
    keep = graph.reachable
    layers = tuple(_restrict(layer, keep[h], keep[h + 1]) for h, layer in enumerate(graph.layers))
    last, kept = graph.terminal, keep[-1]
    terminal = Terminal(
        reward=freeze(last.reward[kept]),
        cost_features=None if last.cost_features is None else freeze(last.cost_features[kept]),
        has_cost=freeze(last.has_cost[kept]),
        fallback_reached=freeze(last.fallback_reached[kept]),
        forbidden=freeze(last.forbidden[kept]),
    )
    starts = freeze(_renumber(keep[0])[graph.starts])
    return LayeredGraph(layers, terminal, starts, graph.anchors)


def _renumber(keep: BoolArray) -> IntArray:
    """New index of every kept entry; dropped ones get a number that must not be used."""
    return np.cumsum(keep, dtype=np.int64) - 1


def _pointer(lengths: IntArray) -> IntArray:
    return freeze(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _restrict(layer: Layer, keep: BoolArray, keep_next: BoolArray) -> Layer:
    if keep.all() and keep_next.all():
        return layer
    pairs = np.repeat(keep, np.diff(layer.state_ptr))
    edges = np.repeat(pairs, np.diff(layer.pair_ptr))
    cost_features = freeze(layer.cost_features[np.repeat(pairs, np.diff(layer.row_ptr))])
    shared = layer.transition_features is layer.cost_features
    fallback = layer.fallback[keep]
    pair_ptr = _pointer(np.diff(layer.pair_ptr)[pairs])
    return Layer(
        state_ptr=_pointer(np.diff(layer.state_ptr)[keep]),
        pair_ptr=pair_ptr,
        successor=freeze(_renumber(keep_next)[layer.successor[edges]].astype(layer.successor.dtype)),
        reward=freeze(layer.reward[pairs]),
        cost_features=cost_features,
        transition_features=cost_features if shared else freeze(layer.transition_features[edges]),
        fallback=freeze(np.where(fallback == NO_ACTION, NO_ACTION, _renumber(pairs)[fallback])),
        row_ptr=pair_ptr if layer.per_triplet else _pointer(np.diff(layer.row_ptr)[pairs]),
        forbidden=freeze(layer.forbidden[keep]),
    )
