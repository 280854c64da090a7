"""Which actions are proved safe, for this step and all that may follow (spec 4; Step 2, Idea I).

Backward from the last layer: a pair is certified when each of its cost rows keeps every limit by its upper bound
(eq:safetycondition1; in the paper each possible successor has its own row) and each possible successor is itself a
state with a certified action (eq:safetycondition2). A forbidden state has none (spec 9). The fallback's own pairs are
certified by assumption. On the event that all bounds hold, no certified action ever violates a limit (Theorem 1,
thm:constraintsatisfaction).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.costs import CostBounds
from surefoot.estimate.row_bounds import streamed
from surefoot.model.arrays import BoolArray, FloatArray
from surefoot.model.graph import OUTSIDE, LayeredGraph
from surefoot.model.layer import Layer
from surefoot.plan import kernels as sweeps
from surefoot.plan.segments import first_marked, segment_any, segment_max, spread


@dataclass(frozen=True, eq=False)
class Certified:
    """Masks over the graph."""

    pairs: tuple[BoolArray, ...]  # H-1 of (N,)
    states: tuple[BoolArray, ...]  # H of (S,)


def within_limits(upper: FloatArray, limits: FloatArray) -> BoolArray:
    """(rows,) True where every limit (m,) is kept by its upper bound; False for a NaN.

    The comparison is exact (spec 4): a tie lost to rounding costs nothing.
    """
    kept: BoolArray = np.all(upper <= limits, axis=1)
    return kept


def certify(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> Certified:
    """The certified pairs and states: eq:safetycondition1 and eq:safetycondition2, backward (spec 4); limits (H, m).

    Bounds that contradict each other certify the fallback alone.
    """
    if not bounds.consistent:
        return fallback_only(graph)
    return _backward(graph, bounds.upper, _kept_last(graph, bounds.terminal_upper, limits), limits)


def not_refuted(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> Certified:
    """The *hopeful* pairs and states (spec 5): those that may yet be certified, as no lower bound proves them unsafe.

    The same sweep with lower in place of upper. If the bounds contradict each other they prove nothing, and all are
    hopeful. So is what a growing graph does not contain yet, while there is room for it (spec 9).
    """
    if not bounds.consistent:
        states = tuple(~graph.forbidden(h) for h in range(graph.horizon))
        return Certified(tuple(spread(y, z.state_ptr) for y, z in zip(states, graph.layers, strict=False)), states)
    last = _kept_last(graph, bounds.terminal_lower, limits)
    return _backward(graph, bounds.lower, last, limits, graph.beyond is not None and graph.beyond.room)


def everything(graph: LayeredGraph) -> Certified:
    """All pairs and states."""
    states = tuple(np.ones(graph.n_states(h), bool) for h in range(graph.horizon))
    return Certified(tuple(np.ones(layer.n_pairs, bool) for layer in graph.layers), states)


def _backward(
    graph: LayeredGraph, costs: tuple[FloatArray, ...], last: BoolArray, limits: FloatArray, outside: bool = False
) -> Certified:
    """The pairs that keep every limit at these costs, now and later, from the last layer's states (S,) backward;
    ``outside``: also the state and the pair that stand for what is not in the graph yet."""
    states, pairs = [last], list[BoolArray]()
    if outside:
        last[OUTSIDE] = True
    for h in reversed(range(len(graph.layers))):
        kept, some = _layer(graph.layers[h], costs[h], limits[h], states[0])
        if outside and h > 0:
            kept[OUTSIDE] = some[OUTSIDE] = True
        pairs.insert(0, kept)
        states.insert(0, some)
    return Certified(tuple(pairs), tuple(states))


def _layer(
    layer: Layer, upper: FloatArray | NDArray[np.uint8], limits: FloatArray, following: BoolArray
) -> tuple[BoolArray, BoolArray]:
    """(N,) pairs whose cost rows all keep every limit and whose successors are all in ``following`` (S',), and those
    that the fallback plays; none in forbidden states. (S,) states with such a pair."""
    pairs, states = np.empty(layer.n_pairs, bool), np.empty(layer.n_states, bool)
    if (table := streamed(upper)) is not None:
        for own, its, rows, part in layer.parts(table.block):
            pairs[its], states[own] = certified_by(part, table.kept(rows, limits), following)
        return pairs, states
    graph = (layer.state_ptr, layer.pair_ptr, layer.successor, layer.row_ptr)
    known = (layer.fallback, layer.forbidden)
    sweeps.certified(layer.n_edges, *graph, upper, limits, following, *known, pairs, states)
    return pairs, states


def certified_by(layer: Layer, kept: BoolArray, following: BoolArray) -> tuple[BoolArray, BoolArray]:
    """(pairs (N,), states (S,)) of a step, given which cost rows (R,) keep every limit."""
    # a row that exceeds some limit has 1 here, one that keeps all has 0, and 0 is allowed
    return _layer(layer, (~kept).view(np.uint8)[:, None], np.zeros(1), following)


def margins(upper: FloatArray, limits: FloatArray, certified: bool) -> list[float | None]:
    """(m,) the margins bound − upper shown for one step; None where nothing is proved.

    Nothing is proved without a bound, or if an action is certified only because it is the fallback's; so no certified
    action shows a negative margin.
    """
    room = (limits - upper).tolist()
    return [m if np.isfinite(m) and (m >= 0.0 or not certified) else None for m in room]


def last_states(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> tuple[BoolArray, BoolArray]:
    """(S,) terminal states that are certified, and those that are not refuted."""
    if not bounds.consistent:
        return graph.terminal.fallback_reached, ~graph.terminal.forbidden
    return _kept_last(graph, bounds.terminal_upper, limits), _kept_last(graph, bounds.terminal_lower, limits)


def _kept_last(graph: LayeredGraph, costs: FloatArray | None, limits: FloatArray) -> BoolArray:
    """(S,) terminal states that keep every limit at these costs (S, m), have no cost, or end the fallback's episodes;
    none is forbidden."""
    last = graph.terminal
    if costs is None:
        return ~last.forbidden
    kept: BoolArray = within_limits(costs, limits[-1]) | ~last.has_cost | last.fallback_reached
    return kept & ~last.forbidden


def fallback_only(graph: LayeredGraph) -> Certified:
    """What is certified if the data contradict the assumptions: the fallback alone, which is safe by assumption."""
    pairs = tuple(layer.played_by_fallback() for layer in graph.layers)
    states = (segment_any(mask, layer.state_ptr) for mask, layer in zip(pairs, graph.layers, strict=True))
    return Certified(pairs, (*states, graph.terminal.fallback_reached))


def certify_one_step(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> Certified:
    """Without Idea I: condition 1 only, no look-ahead. It can lead into states without a safe action."""
    if not bounds.consistent:
        return fallback_only(graph)
    pairs, states = [], []
    for h, layer in enumerate(graph.layers):
        anywhere = np.ones(graph.n_states(h + 1), bool)
        safe, some = _layer(layer, bounds.upper[h], limits[h], anywhere)
        pairs.append(safe)
        states.append(some)
    return Certified(tuple(pairs), (*states, _kept_last(graph, bounds.terminal_upper, limits)))


def certified_now(graph: LayeredGraph, bounds: CostBounds, limits: FloatArray) -> tuple[Certified, Certified]:
    """For learners that do not look ahead: what is certified in this step, and what they may play."""
    certified = certify_one_step(graph, bounds, limits)
    return certified, with_least_worst(graph, certified, bounds, limits)


def pair_excess(layer: Layer, costs: FloatArray, limits: FloatArray) -> FloatArray:
    """(N,) the largest amount by which any cost row (R, m) of a pair exceeds any limit (m,)."""
    return segment_max((costs - limits).max(axis=1), layer.row_ptr)


def with_least_worst(graph: LayeredGraph, safe: Certified, bounds: CostBounds, limits: FloatArray) -> Certified:
    """In states without a certified pair, add the one whose worst upper bound exceeds its limit least.

    Only for learners without a guarantee, which must act even where they should not be.
    """
    pairs = []
    for h, layer in enumerate(graph.layers):
        excess = pair_excess(layer, bounds.upper[h], limits[h])
        least = -segment_max(-excess, layer.state_ptr)
        best = first_marked(excess == spread(least, layer.state_ptr), layer.state_ptr)
        chosen = safe.pairs[h].copy()
        chosen[best[~safe.states[h] & (best >= 0)]] = True
        pairs.append(chosen)
    everywhere = tuple(np.ones_like(mask) for mask in safe.states)
    return Certified(tuple(pairs), everywhere)
