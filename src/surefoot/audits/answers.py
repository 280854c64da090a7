"""The audit's own account of what is declared: is every alarm answered, does a declaration only widen? The rules are
those of :mod:`surefoot.study.alarms` and :mod:`surefoot.study.comparing`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.audits.chain import Record, compact
from surefoot.audits.grown import other_graph, other_growth
from surefoot.audits.problem import NONE, Knowledge, Layer, Problem, label

_ROUNDING = 1e-9  # relative, of a noise scale that is just large enough


class Declared:
    """The problem in force, what disproved it, and what the promise has rested on since."""

    def __init__(self, problem: Problem, opened: Record, load: Callable[[str], Problem]) -> None:
        self.problem, self._file, self._load = problem, opened["problem_file"], load
        self.restored: Record | None = None
        self.despite: Record | None = opened["despite"]  # errors of the declaration, and why it is used all the same
        self.discarded_at = ""
        self._needed: dict[int, dict[str, float]] = {}  # record -> noise that explains its costs
        self._certified: set[int] = set()  # records of which a certified action exceeded a limit
        self._seen: dict[int, bytes] = {}  # record -> a transition outside the support
        self._exact: set[int] = set()  # records of them that are outside a plant's boxes
        self._outside: set[bytes] = set()  # such transitions, answered by a discard

    def exceeded(self, n: int, limit: str, scale: float, certified: bool) -> None:
        """The least noise scale that explains a cost of record n."""
        if certified:
            self._certified.add(n)
        needed = self._needed.setdefault(n, {})
        needed[limit] = max(scale, needed.get(limit, 0.0))

    def left_support(self, n: int, record: Record) -> None:
        """Record n raises the alarm about the next state of a tell."""
        self._seen[n] = compact([record[key] for key in ("step", "state", "action", "next_state")])
        if record["point"] is not None:
            self._exact.add(n)

    def _named(self, record: Record) -> Problem:
        """The problem of a record that brings a new one, in a file with the record's number."""
        n, self._file = record["n"], record["problem_file"]
        if self._file not in (f"problem-{n}.json", f"problem-{n}.npz"):
            raise ValueError(f"{self._file!r} is not the name of its problem's file")
        return self._load(self._file)

    def _other_digest(self, record: Record) -> Iterator[str]:
        if self.problem.digest != record["problem"]:
            yield f"{self._file} is another problem, of digest {self.problem.digest}"

    def grow(self, record: Record) -> Iterator[str]:
        """What is wrong with a growth; its graph is then in force."""
        old, new = self.problem, self._named(record)
        self.problem = replace(new, first=old.first or old)
        yield from self._other_digest(record)
        if fault := other_growth(old, new):
            yield f"its graph is not the one before, grown: {fault}"

    def answer(self, record: Record, alarms: list[tuple[int, Record]]) -> Iterator[str]:
        """What is wrong with an acknowledgement; its declaration is then in force."""
        old, discard = self.problem, record["discard"] is True
        if record["problem_file"] != self._file:
            self.problem = replace(self._named(record), first=old.first)
        new = self.problem
        yield from self._other_digest(record)
        fault = "" if new is old else narrower(old, new, discard)
        if fault:
            yield f"its declaration takes something back: {fault}"
        changed = changes(old, new, discard) if not fault else record["changes"]
        if record["changes"] != changed:
            yield f"its changes are {record['changes']!r}, found are {changed!r}"
        if new is old and record["despite"] != self.despite:
            yield "it declares nothing new, but gives another reason for the errors of the declaration"
        self.despite = record["despite"]
        yield from (words for _, alarm in alarms if (words := self._unanswered(alarm, discard)))
        if any(self._disproves(alarm) for _, alarm in alarms):
            self.restored = {"record": record["n"], "by": changed}
        if discard:
            self.discarded_at = record["time"]
            left = (alarm["record"] for _, alarm in alarms if alarm["alarm"] == "successor")
            self._outside |= {self._seen.get(at, b"") for at in left if not self._holds(at)}

    def measured(self, n: int, h: int, cost: list[float], quantile: float, certified: bool) -> None:
        """Note which limits a cost of step h exceeds by more than their noise, and what noise would explain it."""
        problem = self.problem
        for j, (value, limit, bound) in enumerate(zip(cost, problem.limits, problem.bounds[h], strict=True)):
            needed = (value - bound) / quantile
            if value - bound > problem.noise(j, 1) * quantile:
                if limit.episode_noise > 0:
                    needed = math.sqrt(max(0.0, needed**2 - limit.episode_noise**2))
                self.exceeded(n, limit.name, needed, certified)

    def _disproves(self, alarm: Record) -> bool:
        allowed = alarm["details"].get("certified") is False and alarm["record"] not in self._certified
        return alarm["alarm"] not in ("cost", "plan") and not (alarm["alarm"] == "limit" and allowed)

    def _unanswered(self, alarm: Record, discard: bool) -> str:
        kind, at = alarm["alarm"], alarm["record"]
        if not self._disproves(alarm) or (discard and kind != "successor"):
            return ""
        if kind == "limit":
            needed, noises = self._needed.get(at, {}), {limit.name: limit.noise for limit in self.problem.limits}
            explained = all(noises[name] >= scale * (1 - _ROUNDING) for name, scale in needed.items())
            return "" if needed and explained else f"what the alarm of record {at} disproved is declared as before"
        if kind == "successor":
            seen = self._seen.get(at, b"")
            good = self._holds(at) or (discard and seen not in self._outside)
            return "" if good else f"what followed in record {at} is outside the support as before"
        return "data in doubt are kept"

    def _holds(self, at: int) -> bool:
        """True if the transition of record ``at`` is in the declared support; for a plant that is not known."""
        if at not in self._seen or at in self._exact:
            return False
        problem, (h, *names) = self.problem, label(json.loads(self._seen[at]))
        state, after = problem.state(h, names[0]), problem.state(h + 1, names[2])
        pair = None if state is None else problem.pair(h, state, names[1])
        return pair is not None and after is not None and problem.edge(h, pair, after) is not None

    def promise(self, alarms: list[tuple[int, Record]]) -> str:
        """Of which steps the study promises anything at its end."""
        if any(self._disproves(alarm) for _, alarm in alarms):
            return f"none: ended by the alarm of record {alarms[0][0]}"
        if alarms:
            return f"none in safe mode: the alarm of record {alarms[0][0]} is not answered"
        if self.restored is None:
            return "every step of the study"
        return f"every step since record {self.restored['record']} ({', '.join(self.restored['by'])})"


def despite_errors(said: Record) -> str:
    """The errors that a person has left in a declaration, and why."""
    return f"the study continues despite errors in its declaration ({said['reason']}): {' '.join(said['findings'])}"


def of_the_fallback(problem: Problem, row: list[Any]) -> bool:
    """Is a logged row of the fallback? Every plan certifies those, whichever was in force."""
    h, state = row[0], problem.state(row[0], label(row[1])) or 0
    if len(row) == 3:
        return bool(problem.fallback_ends[state])
    return bool(problem.layers[h].fallback[state] == problem.pair(h, state, label(row[2])))


def changes(old: Problem, new: Problem, discard: bool) -> list[str]:
    pairs = list(zip(old.limits, new.limits, strict=True))
    model = any(b.misspecification > a.misspecification for a, b in pairs)
    model |= any(b.norm > a.norm or _other_prior(a, b) for a, b in zip(old.known, new.known, strict=True))
    before, now = (any(anchor is not None for anchor in each.anchors) for each in (old, new))
    found = {
        "data discarded": discard,
        "larger noise": any(b.noise > a.noise or b.episode_noise > a.episode_noise for a, b in pairs),
        "wider support": _edges(new) > _edges(old),
        "larger norm or misspecification": model or new.transition_norm > old.transition_norm,
        "anchors dropped": before and not now,
        "anchors trusted": discard and now,
    }
    return [words for words, true in found.items() if true]


def _edges(problem: Problem) -> int:
    return sum(len(layer.successor) for layer in problem.layers)


def narrower(old: Problem, new: Problem, discard: bool) -> str:
    """The first place where a declaration takes something back; '' if there is none."""
    frame = (old.horizon, old.stationary, old.dim, old.transition_dim, [(a.name, a.bound) for a in old.limits])
    if frame != (new.horizon, new.stationary, new.dim, new.transition_dim, [(a.name, a.bound) for a in new.limits]):
        return "horizon, stationarity, number of features, names or bounds of limits"
    for a, b in zip(old.limits, new.limits, strict=True):
        if b.noise < a.noise or b.episode_noise < a.episode_noise or b.misspecification < a.misspecification:
            return f"noise or misspecification of {a.name!r}"
    if new.shared and not old.shared and not discard:
        return "episode_noise where there was none, while the data are kept"
    for a, p, q in zip(old.limits, old.known, new.known, strict=True):
        if _other_prior(p, q):
            if not discard or not _holds(q, p):
                return f"the prior of {a.name!r}"
        elif q.norm < p.norm:
            return f"the norm of {a.name!r}"
    if new.transition_norm < old.transition_norm:
        return "transition_norm"
    names = {new.states[0][s] for s in new.starts}
    if not all(old.states[0][s] in names for s in old.starts):
        return "a start"
    if not discard and not all(map(_same_anchor, old.anchors, new.anchors)):
        return "an anchor, while the data are kept"
    if old.longest_row is not None or new.longest_row is not None:  # of a graph that has grown the support stays
        return other_graph(old, new) or other_graph(new, old)
    return next(_lost_transitions(old, new), "") or next(_lost_ends(old, new), "")


def _other_prior(a: Knowledge, b: Knowledge) -> bool:
    return a.boxed != b.boxed or not (np.array_equal(a.centre, b.centre) and np.array_equal(a.width, b.width))


def _holds(wide: Knowledge, narrow: Knowledge) -> bool:
    """Every γ that was possible is possible still."""
    reach = narrow.width * (1.0 if narrow.boxed else narrow.length)
    low, high = narrow.centre - reach, narrow.centre + reach
    corner = math.hypot(*np.maximum(abs(low), abs(high)).tolist())
    longest = min(narrow.outer, corner) if narrow.boxed else narrow.norm
    if wide.boxed:
        inside = (wide.centre - wide.width <= low) & (high <= wide.centre + wide.width)
        return bool(inside.all()) and wide.outer >= longest
    return wide.length >= narrow.norm and bool((wide.width[(low != 0.0) | (high != 0.0)] > 0.0).all())


def _same_anchor(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _lost_transitions(old: Problem, new: Problem) -> Iterator[str]:
    for h, layer in enumerate(old.layers):
        for i, fallback in enumerate(layer.fallback):
            state = new.state(h, old.states[h][i])
            where = f"step {h}, state {old.states[h][i]!r}"
            if state is None:
                yield where
                continue
            if (i in layer.forbidden) is not (state in new.layers[h].forbidden):
                yield f"{where}: forbidden in one of them only"
            first, end = layer.state_ptr[i], layer.state_ptr[i + 1]
            for p in range(first, end):
                action = p - first if layer.actions is None else layer.actions[p]
                pair = new.pair(h, state, action)
                if fallback == p != NONE and new.layers[h].fallback[state] != pair:
                    yield f"{where}: the choice of the fallback"
                for e in range(layer.pair_ptr[p], layer.pair_ptr[p + 1]):
                    after = new.state(h + 1, old.states[h + 1][layer.successor[e]])
                    edge = None if pair is None or after is None else new.edge(h, pair, after)
                    if edge is None or pair is None or not _same_rows(layer, p, e, new.layers[h], pair, edge):
                        yield f"{where}, action {action!r}: a successor or its features"


def _same_rows(old: Layer, p: int, e: int, new: Layer, pair: int, edge: int) -> bool:
    """The cost features of a transition are what they were, at both ends of a ray."""
    same = [np.array_equal(a[old.rows(p, e)], b[new.rows(pair, edge)]) for a, b in _ends(old, new)]
    return all(same) and (p in old.rays) is (pair in new.rays)


def _ends(old: Layer, new: Layer) -> list[tuple[Any, Any]]:
    return [(old.x, new.x), *([] if old.x0 is None or new.x0 is None else [(old.x0, new.x0)])]


def _lost_ends(old: Problem, new: Problem) -> Iterator[str]:
    for i, costs in enumerate(old.has_cost):
        name = old.states[-1][i]
        state = new.state(old.horizon - 1, name)
        if state is None or new.has_cost[state] is not costs:
            yield f"last state {name!r}"
        elif costs and not np.array_equal(old.last_x[i], new.last_x[state]):
            yield f"last state {name!r}: its features"
        elif (i in old.last_forbidden) is not (state in new.last_forbidden):
            yield f"last state {name!r}: forbidden in one of them only"
