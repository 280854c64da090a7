"""After an alarm: what it disproves, what answers it, and how a study goes on under a declaration given anew.

A cost that is not finite disproves nothing, nor does a plan that cannot be computed, nor a limit that is exceeded by an
action that was not certified, an operator's or a logged one. All other alarms disprove what was declared: the promise
ends. It returns with an answer:

"limit"                      a noise scale that explains the measurement, or all data discarded
"successor", "forbidden"     a support that holds the transition; or, once for each transition, all data discarded (it
                             was a slip of the pen, or the plant has been mended; seen again, it belongs to the
                             support). Of a plant only the latter: its functions cannot be declared anew
"residual", "contradiction", "computation"      all data discarded

**A declaration only widens**: every transition, feature, limit and choice of the fallback stays; noise, norm and
misspecification may grow, transitions, states and actions may be added. Then the data can be kept and nothing of p is
spent. The confidence sets grow with each of these numbers, as long as p and the ridges stay (so the ridges do), and
those of the new declaration contain those of the true one: the one event on which the truth lies in these is enough.
An offset that the readings of an episode share is the exception: where none was declared, what an operator chose after
a reading was learned from, and logs did not name their episodes (spec 3).

**A graph that has grown** keeps its functions, and so its support: of another declaration all but that is taken over
(:func:`on_graph`). Its ridges stay, whatever happens: they are those of the first graph.

**Anchors** were measured on the plant from before. When data are discarded they go too, unless a person trusts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput, SurefootError
from surefoot.model.document import to_document
from surefoot.model.graph import NO_ACTION, FloatArray
from surefoot.model.labels import label_of, shown
from surefoot.model.priors import Prior
from surefoot.model.problem import Problem
from surefoot.study.grown import another_graph
from surefoot.study.records import Record, compact

Declarations = Callable[[Record], Problem]
"""The problem that a record names, by ``problem`` and ``problem_file``."""

DISCARDING = frozenset(
    {"residual", "contradiction", "computation"}
)  #: after these, what was learnt cannot be trusted any more

DISCARDED, DROPPED, TRUSTED = "data discarded", "anchors dropped", "anchors trusted"
NOISE, SUPPORT, MODEL = "larger noise", "wider support", "larger norm or misspecification"


@dataclass(frozen=True)
class Raised:
    """An alarm, before or after it is journalled."""

    kind: str
    record: int  # that raised it
    message: str
    details: dict[str, Any]

    def entries(self) -> Record:
        return {"alarm": self.kind, "record": self.record, "message": self.message, "details": self.details}

    @property
    def disproves(self) -> bool:
        """True when something that was declared cannot be so."""
        return self.kind not in ("cost", "plan") and not (
            self.kind == "limit" and self.details.get("certified") is False
        )

    @property
    def transition(self) -> str:
        """What an alarm "successor" or "forbidden" saw, as one text."""
        return compact([self.details.get(key) for key in ("step", "state", "action", "next_state")])


# --- what is declared -----------------------------------------------------------------------------------


def revised(problem: Problem, noise: Any, given: Problem | None, discard: bool, trust_anchors: bool) -> Problem:
    """The declaration from here on: as given, or with other noise; without anchors after a discard."""
    if noise is not None and given is not None:
        raise InvalidInput("give other noise or another problem, not both", fix="The problem declares the noise.")
    if given is not None and not isinstance(given, Problem):
        raise InvalidInput("a declaration is a Problem", got=f"a {type(given).__name__}")
    if trust_anchors and not discard:
        raise InvalidInput("anchors are in doubt only when data are discarded", fix="Leave trust_anchors out.")
    new = given or (problem if noise is None else _with_noise(problem, noise))
    return new if not discard or trust_anchors else _without_anchors(new)


def on_graph(graph_of: Problem, said: Problem) -> Problem:
    """The graph of one problem, with all else that another one declares."""
    graph = replace(graph_of.graph, anchors=said.graph.anchors)
    return replace(graph_of, graph=graph, limits=said.limits, transition_norm=said.transition_norm)


def _with_noise(problem: Problem, noise: Any) -> Problem:
    names = [limit.name for limit in problem.limits]
    scales = noise if isinstance(noise, Mapping) else {names[0]: noise}
    if not isinstance(noise, Mapping) and len(names) > 1:
        raise InvalidInput("say which limit's noise it is", got=shown(noise), fix=f"Use noise={{{names[0]!r}: …}}.")
    for name in scales:
        if name not in names:
            raise InvalidInput("no such limit", got=shown(name), fix=f"The limits are {', '.join(names)}.")
    limits = tuple(replace(limit, noise=scales.get(limit.name, limit.noise)) for limit in problem.limits)
    return replace(problem, limits=limits)


def _without_anchors(problem: Problem) -> Problem:
    if not _anchored(problem):
        return problem
    return replace(problem, graph=replace(problem.graph, anchors=(None,) * problem.horizon))


def _anchored(problem: Problem) -> bool:
    return any(anchor is not None for anchor in problem.graph.anchors)


def changes(old: Problem, new: Problem, discard: bool) -> list[str]:
    """What an acknowledgement changes, in words."""
    pairs = list(zip(old.limits, new.limits, strict=True))
    larger = any(b.misspecification > a.misspecification for a, b in pairs)
    larger |= any(b.norm > a.norm or _other(a, b) for a, b in zip(old.priors, new.priors, strict=True))
    found = {
        DISCARDED: discard,
        NOISE: any(b.noise > a.noise or b.episode_noise > a.episode_noise for a, b in pairs),
        SUPPORT: _edges(new) > _edges(old),
        MODEL: larger or new.transition_norm > old.transition_norm,
        DROPPED: _anchored(old) and not _anchored(new),
        TRUSTED: discard and _anchored(new),
    }
    return [words for words, true in found.items() if true]


def _other(a: Prior, b: Prior) -> bool:
    """The coefficients are known otherwise than by a larger norm."""
    same = a.boxed == b.boxed and np.array_equal(a.centre, b.centre) and np.array_equal(a.width, b.width)
    return not same


def _edges(problem: Problem) -> int:
    return sum(layer.n_edges for layer in problem.graph.layers)


# --- what may change ------------------------------------------------------------------------------------


def refuse_narrower(old: Problem, new: Problem, discard: bool) -> None:
    """Raises where the new declaration takes back something of the old one."""
    if new is old:
        return
    try:
        fault = _other_frame(old, new) or _other_limits(old, new, discard) or _other_anchors(old, new, discard)
        if new.graph.layers is not old.graph.layers:
            fault = fault or (_other_graph if old.graph.beyond is None else another_graph)(old, new)
    except SurefootError as error:  # a label that is not there any more
        fault = str(error)
    if fault:
        fix = "Noise, norm, misspecification and support may grow; a prior, and a first episode_noise, with the data "
        fix += "discarded; "
        fix += "for another plant begin a new study."
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
    if (
        not discard and new.shared_offsets and not old.shared_offsets
    ):  # rows after an override, or of no episode, are among them
        return "episode_noise where there was none, while the data are kept"
    for a, p, q in zip(old.limits, old.priors, new.priors, strict=True):
        if _other(p, q):
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


def _other_graph(old: Problem, new: Problem) -> str:
    """With rays at both ends of each (spec 9)."""
    ends = (1.0, 0.0) if old.has_rays or new.has_rays else (1.0,)
    found = (_other_layers(old.at(end), new.at(end)) for end in ends)
    return next(filter(None, found), "") or _other_ends(old, new)


def _other_layers(old: Problem, new: Problem) -> str:
    for h, layer in enumerate(old.graph.layers):
        states, later = old.naming.states[h], new.graph.layers[h]
        ends = layer.pair_ptr.tolist()
        for i in range(layer.n_states):
            chosen = old.fallback_action(h, states[i])
            if layer.fallback[i] != NO_ACTION and new.fallback_action(h, states[i]) != chosen:
                return f"step {h}, state {states[i]!r}: another action of the fallback"
            for pair in range(int(layer.state_ptr[i]), int(layer.state_ptr[i + 1])):
                action = old.naming.action(layer, h, pair)
                for edge in range(ends[pair], ends[pair + 1]):
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


# --- what answers an alarm ------------------------------------------------------------------------------


def refuse_unanswered(raised: list[Raised], old: Problem, new: Problem, discard: bool, outside: Iterable[str]) -> None:
    """Raises unless the declaration only widens, and answers every alarm."""
    refuse_narrower(old, new, discard)
    missing = unanswered(raised, new, discard, outside)
    if missing:
        said, fix = "; ".join(alarm.message for alarm in raised), f"Acknowledge with {'; '.join(missing)}."
        raise InvalidInput("an alarm has disproved what is declared, or the data are in doubt", got=said, fix=fix)


def unanswered(raised: Iterable[Raised], new: Problem, discard: bool, outside: Iterable[str]) -> list[str]:
    """What the alarms still ask for, in words; ``outside``: transitions that a discard has answered before."""
    return [words for alarm in raised if (words := _asks(alarm, new, discard, outside))]


def answered_by_discard(raised: Iterable[Raised], new: Problem) -> list[str]:
    """Undeclared transitions that the new declaration does not hold either."""
    return [alarm.transition for alarm in raised if alarm.kind == "successor" and not _declares(new, alarm.details)]


def join(details: Record, further: Record, certified: bool) -> None:
    """One alarm speaks for all rows of an import: it needs the noise that explains each of them."""
    needed: dict[str, float] = details.get("noise_needed", {})
    for name, scale in further.get("noise_needed", {}).items() if needed else ():
        needed[name] = max(scale, needed.get(name, 0.0))
    details["certified"] = details["certified"] or certified


def _asks(alarm: Raised, new: Problem, discard: bool, outside: Iterable[str]) -> str:
    if not alarm.disproves:
        return ""
    if alarm.kind in ("successor", "forbidden"):
        if _declares(new, alarm.details) or (discard and alarm.transition not in outside):
            return ""
        seen = f"a problem in which {alarm.details.get('next_state')!r} may follow"
        if "exact" in alarm.details:
            return "a new study of a plant with larger disturbance" if discard else "discard_data=True"
        return f"{seen} (discard_data does not answer it a second time)" if discard else f"{seen}, or discard_data=True"
    if discard:
        return ""
    needed = alarm.details.get("noise_needed") or {} if alarm.kind == "limit" else {}
    noises = {limit.name: limit.noise for limit in new.limits}
    if needed and all(noises.get(name, -1.0) >= scale for name, scale in needed.items()):
        return ""
    scales = ", ".join(f"{name!r}: {scale * (1 + 1e-5):.6g}" for name, scale in needed.items())
    return f"noise of at least {{{scales}}}, or discard_data=True" if needed else "discard_data=True"


def _declares(problem: Problem, details: Record) -> bool:
    if "exact" in details:  # of a plant the cell may be declared: the box of next states is wrong all the same
        return False
    try:
        names = [label_of(details[key]) for key in ("state", "action", "next_state")]
        problem.edge_index(details["step"], *names)
    except (SurefootError, KeyError):
        return False
    return True


# --- what differs between two declarations, said so that a person sees what was changed ------------------------

_MOST = 5


def problem_difference(there: Problem, here: Problem) -> str:
    """The first places where two problems differ: what the study has, and what was given."""
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
