"""How two declarations differ: does one take back something of the other, is a graph the other one, grown?

**A declaration only widens**: every transition, feature, limit and choice of the fallback stays; noise, norm and
misspecification may grow; transitions, states and actions may be added. The data can then be kept, and nothing of p is
spent: with the same p and ridges (so the ridges stay) the confidence sets grow with each of these numbers, so those of
the new declaration contain those of the true one, and the one event on which the truth lies in the latter is enough.
An offset that the readings of an episode share is the exception: while none was declared, the agent learned from what
operators chose after a reading, and logs did not name their episodes (spec 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput, SurefootError
from surefoot.model.arrays import FloatArray
from surefoot.model.document import to_document
from surefoot.model.graph import OUTSIDE
from surefoot.model.labels import shown
from surefoot.model.layer import NO_ACTION, Layer, Terminal
from surefoot.model.priors import Prior
from surefoot.model.problem import Problem


def refuse_narrower(old: Problem, new: Problem, discard: bool) -> None:
    """Raise if the new declaration takes back something of the old one."""
    if new is old:
        return
    try:
        fault = _other_frame(old, new) or _other_limits(old, new, discard) or _other_anchors(old, new, discard)
        if new.graph.layers is not old.graph.layers:
            fault = fault or (_narrower_graph if old.graph.beyond is None else another_graph)(old, new)
    except SurefootError as error:  # a label that is not there any more
        fault = str(error)
    if fault:
        fix = "Noise, norm, misspecification and support may grow; a prior and a first episode_noise only if the data "
        fix += "are discarded; for another plant begin a new study."
        raise InvalidInput("a new declaration keeps what the study has declared", got=fault, fix=fix)


def _other_frame(old: Problem, new: Problem) -> str:
    for name in ("horizon", "stationary_costs", "stationary_transitions"):
        if getattr(old, name) != getattr(new, name):
            return f"{name} {getattr(new, name)}, it was {getattr(old, name)}"
    for name in ("cost_dim", "transition_dim"):
        if getattr(old.graph, name) != getattr(new.graph, name):
            return f"{getattr(new.graph, name)} features, there were {getattr(old.graph, name)} ({name})"
    gone = [start for start in old.starts if start not in new.starts]
    return f"start {gone[0]!r} is left out" if gone else ""


def _other_limits(old: Problem, new: Problem, discard: bool) -> str:
    if [(a.name, a.bound) for a in old.limits] != [(a.name, a.bound) for a in new.limits]:
        return "other limits"
    for a, b in zip(old.limits, new.limits, strict=True):
        for name in ("noise", "episode_noise", "misspecification"):
            if getattr(b, name) < getattr(a, name):
                return f"limit {a.name!r}: {name} {getattr(b, name):g}, it was {getattr(a, name):g}"
    if not discard and new.shared_offsets and not old.shared_offsets:  # see above
        return "episode_noise where there was none, while the data are kept"
    for a, p, q in zip(old.limits, old.priors, new.priors, strict=True):
        if other_prior(p, q):
            if not discard:  # rows are scaled by the half-widths, and counted so
                return f"limit {a.name!r}: another prior, while the data are kept"
            if not _holds(q, p):
                return f"limit {a.name!r}: a prior that leaves out some of what it was"
        elif q.norm < p.norm:
            return f"limit {a.name!r}: norm {q.norm:g}, it was {p.norm:g}"
    smaller = new.transition_norm < old.transition_norm
    return f"transition_norm {new.transition_norm:g}, it was {old.transition_norm:g}" if smaller else ""


def _holds(wide: Prior, narrow: Prior) -> bool:
    """Every γ of the one is possible under the other."""
    if wide.boxed and not narrow.boxed:
        reach = narrow.length * narrow.width
        return wide.outer >= narrow.norm and _covers(wide, narrow.centre - reach, narrow.centre + reach)
    if wide.boxed:
        inside = _covers(wide, narrow.centre - narrow.width, narrow.centre + narrow.width)
        return inside and wide.outer >= min(narrow.outer, math.hypot(*(np.abs(narrow.centre) + narrow.width).tolist()))
    used = (narrow.width > 0.0) | (narrow.centre != 0.0)
    return wide.length >= narrow.norm and bool((wide.width[used] > 0.0).all())


def _covers(wide: Prior, low: FloatArray, high: FloatArray) -> bool:
    inside = (wide.centre - wide.width <= low) & (high <= wide.centre + wide.width)
    return bool(inside.all())


def _other_anchors(old: Problem, new: Problem, discard: bool) -> str:
    for h, (a, b) in enumerate(zip(old.graph.anchors, new.graph.anchors, strict=True)):
        if a is None or b is None:
            same = a is b
        else:
            same = all(np.array_equal(p, q) for p, q in zip(a.parts, b.parts, strict=True))
        if not (same or discard):
            return f"another anchor of step {h}, while the data are kept"
    return ""


def _narrower_graph(old: Problem, new: Problem) -> str:
    """Rays are compared at both ends (spec 9)."""
    ends = (1.0, 0.0) if old.has_rays or new.has_rays else (1.0,)
    found = (_other_layers(old.at(end), new.at(end)) for end in ends)
    return next(filter(None, found), "") or _other_ends(old, new)


def _other_layers(old: Problem, new: Problem) -> str:
    for h, layer in enumerate(old.graph.layers):
        states, later = old.naming.states[h], new.graph.layers[h]
        for i in range(layer.n_states):
            chosen = old.fallback_action(h, states[i])
            if layer.fallback[i] != NO_ACTION and new.fallback_action(h, states[i]) != chosen:
                return f"step {h}, state {states[i]!r}: another action of the fallback"
            for pair in layer.pairs_of(i):
                action = old.naming.action(layer, h, pair)
                for edge in layer.edges_of(pair):
                    after = old.naming.states[h + 1][int(layer.successor[edge])]
                    same = new.edge_index(h, states[i], action, after)
                    costs = layer.cost_features[layer.rows_of(edge)], later.cost_features[later.rows_of(same)]
                    chances = layer.transition_features[edge], later.transition_features[same]
                    for table, rows in (("cost_features", costs), ("transition_features", chances)):
                        if not np.array_equal(*rows):
                            return f"other {table} of {old.naming.at_edge(layer, h, edge)}"
            if bool(layer.forbidden[i]) != bool(later.forbidden[new.state_index(h, states[i])]):
                return f"step {h}, state {states[i]!r}: forbidden in one of them only"
    return ""


def _other_ends(old: Problem, new: Problem) -> str:
    last, later, h = old.graph.terminal, new.graph.terminal, old.horizon - 1
    for i in range(last.n_states):
        name = old.naming.states[h][i]
        k = new.state_index(h, name)
        same = bool(last.has_cost[i]) == bool(later.has_cost[k])
        if same and last.has_cost[i] and last.cost_features is not None and later.cost_features is not None:
            same = np.array_equal(last.cost_features[i], later.cost_features[k])
        if not same:
            return f"another cost of the last state {name!r}"
        if bool(last.forbidden[i]) != bool(later.forbidden[k]):
            return f"last state {name!r}: forbidden in one of them only"
    return ""


def other_prior(a: Prior, b: Prior) -> bool:
    """Do two priors differ in more than their norm?"""
    return a.boxed != b.boxed or not (np.array_equal(a.centre, b.centre) and np.array_equal(a.width, b.width))


# --- a graph, grown (spec 9): arrays that are appended to, and triplets that no longer lead outside -----------


def other_growth(old: Problem, new: Problem) -> str:
    """'' if the new problem is the old one with states appended and pairs expanded; otherwise what differs."""
    if fault := _not_grown(old, new):
        return fault
    anchors = replace(old.graph, anchors=new.graph.anchors)
    bare = replace(new, graph=anchors, naming=replace(old.naming, features=new.naming.features), growth=None)
    same = bare.digest == replace(old, growth=None).digest
    return "" if same else "other limits, anchors or names of features"


def another_graph(old: Problem, new: Problem) -> str:
    """'' if two declarations have the very same graph, each a growth of the other; otherwise what differs."""
    return _not_grown(old, new) or _not_grown(new, old)


def _not_grown(old: Problem, new: Problem) -> str:
    """'' if the new graph is the old one, grown, whatever else is declared."""
    a, b = old.graph, new.graph
    if a.beyond is None or b.beyond is None or a.beyond.longest_row != b.beyond.longest_row:
        return "another longest row"
    if bool(a.rays) != bool(b.rays) or a.horizon != b.horizon or not np.array_equal(a.starts, b.starts):
        return "another horizon, other starts, or rays in one of them only"
    for h, (was, now) in enumerate(zip(a.layers, b.layers, strict=True)):
        if fault := _layer(was, now):
            return f"step {h}: other {fault}"
        if a.rays and b.rays and _changed(a.rays[h], b.rays[h], ("center", "cost_features")):
            return f"step {h}: other centres of rays"
        names = old.naming.states[h][:], old.naming.actions[h] or ()
        if new.naming.states[h][: was.n_states] != names[0] or (new.naming.actions[h] or ())[: was.n_pairs] != names[1]:
            return f"step {h}: other names"
    if fault := _end(a.terminal, b.terminal):
        return f"the last step: other {fault}"
    same = new.naming.states[-1][: a.terminal.n_states] == old.naming.states[-1][:]
    return "" if same else "the last step: other names"


def _changed(was: object, now: object, names: Iterable[str]) -> str:
    """The first of these arrays that was not merely appended to; '' if there is none."""
    for name in names:
        one, other = getattr(was, name), getattr(now, name)
        if (one is None) != (other is None):
            return name
        if one is not None and not np.array_equal(np.asarray(one), np.asarray(other)[: len(one)]):
            return name
    return ""


def _layer(was: Layer, now: Layer) -> str:
    arrays = ("state_ptr", "pair_ptr", "row_ptr", "reward", "cost_features", "transition_features", "fallback")
    if name := _changed(was, now, (*arrays, "forbidden")):
        return name
    led = was.successor != OUTSIDE
    if not np.array_equal(was.successor[led], now.successor[: was.n_edges][led]):
        return "successor"
    return "fallback" if (now.fallback[was.n_states :] != NO_ACTION).any() else ""


def _end(was: Terminal, now: Terminal) -> str:
    if name := _changed(was, now, ("reward", "has_cost", "forbidden", "fallback_reached", "cost_features")):
        return name
    return "fallback_reached" if now.fallback_reached[was.n_states :].any() else ""


# --- what differs between two declarations, for people ----------------------------------------------------------

_MOST = 5


def problem_difference(there: Problem, here: Problem) -> str:
    """The first places where two problems differ: the study's ("there") and the given one ("here")."""
    before, now = to_document(there), to_document(here)
    for document in (before, now):
        for layer in document["layers"]:
            if layer["transition_features"] is None:
                layer["transition_features"] = layer["cost_features"]
    return difference(before, now)


def difference(there: object, here: object) -> str:
    """'a.b[2]: 3 there, 4 here; …', of values made of dicts, lists, arrays and scalars."""
    found = [text for text, _ in zip(_differences(there, here, ""), range(_MOST + 1), strict=False)]
    return "; ".join(found[:_MOST]) + ("; …" if len(found) > _MOST else "")


def _differences(there: Any, here: Any, at: str) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            place = f"{at}.{key}" if at else str(key)
            if key not in there:
                yield f"{place}: not given there, {shown(here[key])} here"
            elif key not in here:
                yield f"{place}: {shown(there[key])} there, not given here"
            else:
                yield from _differences(there[key], here[key], place)
    elif isinstance(there, np.ndarray) and isinstance(here, np.ndarray):
        yield from _array_differences(there, here, at)
    elif isinstance(there, (list, tuple)) and isinstance(here, (list, tuple)):
        if len(there) != len(here):
            yield f"{at}: {len(there)} entries there, {len(here)} here"
        for i, (a, b) in enumerate(zip(there, here, strict=False)):
            yield from _differences(a, b, f"{at}[{i}]")
    elif type(there) is not type(here) or there != here:
        yield f"{at}: {shown(there)} there, {shown(here)} here"


def _array_differences(there: Any, here: Any, at: str) -> Iterator[str]:
    kinds = there.dtype, here.dtype
    same_kind = kinds[0] == kinds[1] or {kind.kind for kind in kinds} == {"f"}  # a number is one in any precision
    if there.shape != here.shape or not same_kind:
        yield f"{at}: {there.dtype} {there.shape} there, {here.dtype} {here.shape} here"
        return
    for index in np.argwhere(there != here):
        place = ", ".join(map(str, index.tolist()))
        yield f"{at}[{place}]: {there[tuple(index)]} there, {here[tuple(index)]} here"
