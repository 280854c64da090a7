"""Is a graph another one, grown? Arrays that are appended to, and triplets that no longer lead outside (spec 9)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surefoot.model.graph import NO_ACTION, OUTSIDE, Layer, Rays, Terminal
from surefoot.model.problem import Problem


def other_growth(old: Problem, new: Problem) -> str:
    """'' where the new problem is the old one with states appended and unexpanded pairs expanded; else what differs."""
    fault, anchors = other_graph(old, new), replace(old.graph, anchors=new.graph.anchors)
    bare = replace(new, graph=anchors, naming=replace(old.naming, features=new.naming.features), growth=None)
    same = fault or bare.digest == replace(old, growth=None).digest
    return fault if same else "other limits, anchors or names of features"


def another_graph(old: Problem, new: Problem) -> str:
    """'' where two declarations have the very same graph, each a growth of the other; else what differs."""
    return other_graph(old, new) or other_graph(new, old)


def other_graph(old: Problem, new: Problem) -> str:
    """'' where the new graph is the old one, grown, whatever else is declared."""
    a, b = old.graph, new.graph
    if a.beyond is None or b.beyond is None or a.beyond.longest_row != b.beyond.longest_row:
        return "another longest row"
    if bool(a.rays) != bool(b.rays) or a.horizon != b.horizon or not np.array_equal(a.starts, b.starts):
        return "another horizon, other starts, or rays in one of them only"
    for h, (was, now) in enumerate(zip(a.layers, b.layers, strict=True)):
        if fault := _layer(was, now):
            return f"step {h}: other {fault}"
        if a.rays and not (b.rays and _same_rays(a.rays[h], b.rays[h])):
            return f"step {h}: other centres of rays"
        names = old.naming.states[h][:], old.naming.actions[h] or ()
        if new.naming.states[h][: was.n_states] != names[0] or (new.naming.actions[h] or ())[: was.n_pairs] != names[1]:
            return f"step {h}: other names"
    if fault := _end(a.terminal, b.terminal):
        return f"the last step: other {fault}"
    same = new.naming.states[-1][: a.terminal.n_states] == old.naming.states[-1][:]
    return "" if same else "the last step: other names"


def _same_rays(was: Rays, now: Rays) -> bool:
    pairs = (was.center, now.center), (was.cost_features, now.cost_features)
    return all(np.array_equal(one, other[: len(one)]) for one, other in pairs)


def _layer(was: Layer, now: Layer) -> str:
    for name in ("state_ptr", "pair_ptr", "row_ptr", "reward", "cost_features", "transition_features", "fallback"):
        one, other = getattr(was, name), getattr(now, name)
        if len(other) < len(one) or not np.array_equal(one, other[: len(one)]):
            return name
    led = was.successor != OUTSIDE
    if not np.array_equal(was.successor[led], now.successor[: was.n_edges][led]):
        return "successors"
    if (now.fallback[was.n_states :] != NO_ACTION).any():
        return "fallback"
    return "" if np.array_equal(was.forbidden, now.forbidden[: was.n_states]) else "forbidden states"


def _end(was: Terminal, now: Terminal) -> str:
    for name in ("reward", "has_cost", "forbidden", "fallback_reached"):
        one, other = getattr(was, name), getattr(now, name)
        if len(other) < len(one) or not np.array_equal(one, other[: len(one)]):
            return name
    if now.fallback_reached[was.n_states :].any() or (was.cost_features is None) != (now.cost_features is None):
        return "costs"
    if was.cost_features is None or now.cost_features is None:
        return ""
    one, other = np.asarray(was.cost_features), np.asarray(now.cost_features)
    return "" if np.array_equal(one, other[: was.n_states]) else "costs"
