"""The audit's own answer to: is a graph the one before, grown? (spec 9)"""

from __future__ import annotations

import numpy as np

from surefoot.audits.problem import NONE, Layer, Problem


def other_growth(old: Problem, new: Problem) -> str:
    """'' if states were only appended, and only triplets that led outside, to state 0, lead elsewhere now."""
    if fault := other_graph(old, new):
        return fault
    if old.limits != new.limits or old.transition_norm != new.transition_norm:
        return "other limits"
    for a, b in zip(old.anchors, new.anchors, strict=True):
        if (a is None) != (b is None) or any(not np.array_equal(p, q) for p, q in zip(a or (), b or (), strict=True)):
            return "another anchor"
    return ""


def other_graph(old: Problem, new: Problem) -> str:
    """The same for the graphs alone, whatever the limits and anchors are."""
    if old.longest_row is None or old.longest_row != new.longest_row:
        return "it does not grow, or has another longest row"
    if (old.horizon, old.stationary, old.starts, old.names) != (new.horizon, new.stationary, new.starts, new.names):
        return "another horizon, other starts or features"
    for h, (was, now) in enumerate(zip(old.layers, new.layers, strict=True)):
        n = len(was.fallback)
        if fault := _other(was, now):
            return f"step {h}: other {fault}"
        if any(old.states[h][i] != new.states[h][i] for i in range(n)):
            return f"step {h}: other states"
    n, last = len(old.has_cost), slice(0, len(old.has_cost))
    if old.has_cost != new.has_cost[last] or old.fallback_ends != new.fallback_ends[last] or any(new.fallback_ends[n:]):
        return "the last step: other costs or ends of the fallback"
    if old.last_forbidden != {i for i in new.last_forbidden if i < n}:
        return "the last step: other forbidden states"
    if old.last_x is not None and (new.last_x is None or not np.array_equal(old.last_x, new.last_x[last])):
        return "the last step: other costs"
    same = all(old.states[-1][i] == new.states[-1][i] for i in range(n))
    return "" if same and (old.last_x is None) == (new.last_x is None) else "the last step: other states"


def _other(was: Layer, now: Layer) -> str:
    states, pairs, edges = len(was.fallback), len(was.pair_ptr), len(was.successor)
    if was.state_ptr != now.state_ptr[: states + 1] or was.pair_ptr != now.pair_ptr[:pairs]:
        return "actions"
    if any(a not in (0, b) for a, b in zip(was.successor, now.successor[:edges], strict=True)):
        return "successors"
    if was.fallback != now.fallback[:states] or any(pair != NONE for pair in now.fallback[states:]):
        return "actions of the fallback"
    if was.by_edge is not now.by_edge or was.row_ptr != now.row_ptr[:pairs]:
        return "rows"
    if was.actions != (None if now.actions is None else now.actions[: pairs - 1]):
        return "names of actions"
    if was.forbidden != {i for i in now.forbidden if i < states}:
        return "forbidden states"
    if (was.x0 is None) != (now.x0 is None) or was.rays != {
        pair: centre for pair, centre in now.rays.items() if pair < pairs - 1
    }:
        return "rays"
    same = was.x0 is None or np.array_equal(was.x0, now.x0[: len(was.x0)])
    return "" if same and np.array_equal(was.x, now.x[: len(was.x)]) else "cost features"
