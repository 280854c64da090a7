"""What no data can certify, because the graph forces it (and whether the fallback itself is among it).

Before any data a cost is at least  lower = k − L‖z‖ − ζ(1 + |ρ|)  (spec 3), for every truth that the declaration
allows. A cost row with lower > c̄ for some limit is over it in all of them. Backward from the last step, an action
is lost when one of its rows is over a limit or it may lead to a lost state, and a state when it is forbidden or all its
actions are lost.
The fallback's are never lost (spec 4).
"""

from __future__ import annotations

import numpy as np

from surefoot.diagnosis.diagnosis import FallbackFault, Forced
from surefoot.estimate.costs import CostBounds
from surefoot.model.graph import BoolArray, FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.segments import segment_all, segment_any, spread

_EXAMPLES = 5


def surely_over(lower: FloatArray, problem: Problem, h: int) -> BoolArray:
    """(rows, m) True where even the lower bound of rows of step h is a violation (spec 8)."""
    result: BoolArray = lower > problem.violation_thresholds[h]
    return result


def lost_sets(problem: Problem, bounds: CostBounds) -> Certified:
    """Masks of the pairs and states that can never be certified."""
    graph = problem.graph
    last = graph.terminal
    lost = last.forbidden
    if bounds.terminal_lower is not None:
        over = surely_over(bounds.terminal_lower, problem, problem.horizon - 1)
        lost = lost | over.any(axis=1) & ~last.fallback_reached
    states: list[BoolArray] = [lost]
    pairs: list[BoolArray] = []
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        lost_pairs = segment_any(np.any(surely_over(bounds.lower[h], problem, h), axis=1), layer.row_ptr)
        lost_pairs |= segment_any(states[0][layer.successor], layer.pair_ptr)
        lost_pairs |= spread(layer.forbidden, layer.state_ptr)
        lost_pairs[layer.fallback_pairs()] = False
        pairs.insert(0, lost_pairs)
        states.insert(0, segment_all(lost_pairs, layer.state_ptr))
    return Certified(tuple(pairs), tuple(states))


def describe_forced(problem: Problem, lost: Certified) -> Forced:
    """Totals over reachable states, and a few of them by name, latest steps last."""
    reachable = problem.graph.reachable
    states = [mask & reached for mask, reached in zip(lost.states, reachable, strict=True)]
    actions = sum(lost_actions(problem, lost, h) for h in range(problem.horizon - 1))
    examples = [
        (h, problem.naming.states[h][int(i)]) for h, mask in enumerate(states) for i in np.flatnonzero(mask)[:_EXAMPLES]
    ]
    return Forced(int(sum(mask.sum() for mask in states)), actions, tuple(examples[:_EXAMPLES]))


def lost_actions(problem: Problem, lost: Certified, h: int) -> int:
    """How many pairs of step h, in reachable states, can never be certified."""
    layer = problem.graph.layers[h]
    possible = np.repeat(problem.graph.reachable[h], np.diff(layer.state_ptr))
    return int((lost.pairs[h] & possible).sum())


def find_fallback_fault(problem: Problem, bounds: CostBounds) -> FallbackFault | None:
    """The first of the fallback's own cost rows that is over a limit for every truth, None if there is none."""
    graph, naming = problem.graph, problem.naming
    count, first = 0, None
    for h, layer in enumerate(graph.layers):
        played = np.zeros(layer.n_pairs, bool)
        played[layer.fallback_pairs()] = True
        own = spread(played, layer.row_ptr)
        over = surely_over(bounds.lower[h], problem, h) & own[:, None]
        count += int(over.any(axis=1).sum())
        if first is None and over.any():
            row, j = (int(i) for i in np.argwhere(over)[0])
            first = naming.at_row(layer, h, row), h, j, float(bounds.lower[h][row, j])
    if bounds.terminal_lower is not None:
        over = (
            surely_over(bounds.terminal_lower, problem, problem.horizon - 1) & graph.terminal.fallback_reached[:, None]
        )
        count += int(over.any(axis=1).sum())
        if first is None and over.any():
            state, j = (int(i) for i in np.argwhere(over)[0])
            first = (
                naming.at_state(problem.horizon - 1, state),
                problem.horizon - 1,
                j,
                float(bounds.terminal_lower[state, j]),
            )
    if first is None:
        return None
    where, h, j, lowest = first
    return FallbackFault(count, where, problem.limits[j].name, lowest, float(problem.bounds[h, j]))
