"""What still matters: pairs that are not proved unsafe, in states that such pairs can reach from a start.

A pair is *hopeless* once the lower bound of some cost row exceeds a limit, or some successor is forbidden or a state
with hopeless pairs only: on the event that all bounds hold it is truly unsafe, and will never be certified. Confidence
sets stay valid, so hopeless once is hopeless for ever. What only hopeless pairs lead to need not be looked at: no
certified action, value or bonus of the rest depends on it (Idea III looks along certified pairs only).
"""

from __future__ import annotations

import numpy as np

from surefoot.estimate.costs import CostBounds
from surefoot.model.graph import BoolArray, FloatArray, LayeredGraph
from surefoot.plan.segments import segment_any, spread


class Scope:
    """Shrinks from plan to plan; the fallback's pairs always stay."""

    def __init__(self, graph: LayeredGraph) -> None:
        self._graph = graph
        self.hopeful = [spread(~layer.forbidden, layer.state_ptr) for layer in graph.layers]  # H-1 of (N,)
        self.planned = self.hopeful  # what it was when the plan in force was made, for checkpoints

    def rows(self) -> tuple[BoolArray, ...]:
        """H-1 of (R,): the cost rows that still matter, for a plan that is made now."""
        graph = self._graph
        reached = np.zeros(graph.n_states(0), bool)
        reached[graph.starts] = True
        result = []
        for h, layer in enumerate(graph.layers):
            pairs = self.hopeful[h] & spread(reached, layer.state_ptr)
            edges = spread(pairs, layer.pair_ptr)
            reached = np.zeros(graph.n_states(h + 1), bool)
            reached[layer.successor[edges]] = True
            result.append(edges if layer.per_triplet else spread(pairs, layer.row_ptr))
        return tuple(result)

    def narrow(self, bounds: CostBounds, thresholds: FloatArray) -> None:
        """Drop what the bounds prove to be a violation (spec 8), backward from the last layer; thresholds
        (H, m)."""
        self.planned = [mask.copy() for mask in self.hopeful]  # the plan is made
        if not bounds.consistent:
            return  # bounds that contradict each other prove nothing
        graph, last = self._graph, self._graph.terminal
        dead = last.forbidden
        if bounds.terminal_lower is not None:
            over = _exceeds(bounds.terminal_lower, thresholds[-1])
            dead = dead | over & last.has_cost & ~last.fallback_reached
        for h in reversed(range(len(graph.layers))):
            layer = graph.layers[h]
            self.hopeful[h] &= ~segment_any(_exceeds(bounds.lower[h], thresholds[h]), layer.row_ptr)
            self.hopeful[h] &= ~segment_any(dead[layer.successor], layer.pair_ptr)
            self.hopeful[h][layer.fallback_pairs()] = True
            dead = ~segment_any(self.hopeful[h], layer.state_ptr)


def _exceeds(lower: FloatArray, thresholds: FloatArray) -> BoolArray:
    over: BoolArray = np.any(lower > thresholds, axis=1)
    return over
