"""A policy as a file, for people and controllers: what a run ends with, and what a study exports.

``.json``, which any language reads::

    {"format": "surefoot-policy", "version": 3, "problem": digest, "agent": "lsvi-new",
     "plan": 308,                                        its number; null for an agent without plans
     "exploring": true, "guaranteed": true, "promise": "every step safe with probability ≥ 0.95",
     "failure_probability": 0.05, "safe_mode": false, "start": null, "states": "all",
     "limits": [{"name": "temperature", "bound": 0.6}],
     "source": {"kind": "run", "world": digest, "seed": 0, "episodes": 20000},
                or {"kind": "study", "epoch": 0, "records": 451, "episodes": 150}
     "starts": [{"state": …, "value": 3.48, "value_low": 3.31, "value_high": 3.62}, …],
     "steps": [[{"state": …, "action": …, "value": 3.48, "value_low": 3.31, "value_high": 3.62, "margin": [0.02],
                 "certified": true, "fallback": false}, …], …]}

``value``: what this policy is worth from here on, exactly; null where no truth is known, as in a study. ``value_low``,
``value_high``: confidence bounds of the same number, all of which hold together with probability 1 − p
(:func:`surefoot.plan.hope.worth_between`); null for an agent without plans. The optimistic value that a plan chooses by
is not the value of any policy, and is not written. ``exploring``: false for a policy that does not explore
(``--exploit``): greedy by the estimates, over certified actions still. ``margin``: per limit, bound − upper bound, the
least over the action's successors; null where nothing is proved (the fallback's action may be safe by assumption
alone). ``certified``: proved safe, with all that may follow. ``fallback``: the fallback's own action. ``start``: the
start state that the policy is for, null when it is for all. In safe mode every action is the fallback's. States without
an action are left out: asking for one is an error, never a guess. In a problem with more than ``MOST_STATES`` states,
those that the policy never reaches are left out too (``"states": "reached"``).

With rays (spec 9) the version is 4 and every entry has the ``intensity`` at which to play the action, 1 for an action
without one.

``.py``: a module that needs nothing but Python, with a function ``action(step, state)``; with rays it gives the action
and its intensity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import checked
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import margins
from surefoot.plan.hope import played, worth_between
from surefoot.plan.plan import Plan
from surefoot.storage import disk, documents

FORMAT, VERSION = "surefoot-policy", 3
WITH_RAYS = 4  #: a reader that does not know about intensities must refuse it
MOST_STATES = 100_000  #: of all decision steps

Entry = dict[str, Any]
Document = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Exported:
    """What a document is made of."""

    problem: Problem
    plan: Plan | None
    chosen: Sequence[IntArray]  # H-1 of (S,): the pair played, NO_ACTION where there is none
    agent: str
    guaranteed: bool
    promise: str
    failure_probability: float | None
    start: Label
    source: Mapping[str, Any]
    exact: Sequence[FloatArray] | None = None  # H of (S,): what the policy is worth, where the truth is known
    exploring: bool = True
    safe_mode: bool = False

    @cached_property
    def _bounds(self) -> tuple[Sequence[FloatArray] | None, Sequence[FloatArray] | None]:
        if self.plan is None:
            return None, None
        return worth_between(self.plan.problem.graph, self.chosen, self.plan.ellipsoids)

    @cached_property
    def _intensities(self) -> Sequence[FloatArray] | None:
        """H-1 of (N,) with rays; an agent without plans plays actions in full."""
        if not self.problem.has_rays:
            return None
        return self.problem.intensities(1.0) if self.plan is None else self.plan.intensities

    def _value(self, h: int, state: int) -> Entry:
        low, high = self._bounds
        columns = {"value": self.exact, "value_low": low, "value_high": high}
        return {name: None if column is None else _finite(column[h][state]) for name, column in columns.items()}

    @property
    def everywhere(self) -> bool:
        return sum(layer.n_states for layer in self.problem.graph.layers) <= MOST_STATES

    def head(self) -> Document:
        """All but the steps."""
        return {
            "format": FORMAT,
            "version": WITH_RAYS if self.problem.has_rays else VERSION,
            "problem": self.problem.digest,
            "agent": self.agent,
            "plan": None if self.plan is None else self.plan.number,
            "exploring": self.exploring,
            "guaranteed": self.guaranteed,
            "promise": self.promise,
            "failure_probability": self.failure_probability,
            "safe_mode": self.safe_mode,
            "start": self.start,
            "states": "all" if self.everywhere else "reached",
            "limits": [limit.told() for limit in self.problem.limits],
            "source": dict(self.source),
            "starts": [
                {"state": self.problem.naming.states[0][state], **self._value(0, state)}
                for state in self.problem.graph.starts.tolist()
            ],
        }

    def steps(self) -> Iterator[Iterator[Entry]]:
        """One after the other, since there may be many states."""
        layers = zip(self.problem.graph.layers, self.chosen, strict=True)
        marked = None if self.everywhere else [played(layer, row) for layer, row in layers]
        shown = None if marked is None else self.problem.graph.reached_along(marked)
        for h, row in enumerate(self.chosen):
            yield self._entries(h, row if shown is None else np.where(shown[h], row, NO_ACTION))

    def document(self) -> Document:
        return {**self.head(), "steps": [list(step) for step in self.steps()]}

    def _entries(self, h: int, row: IntArray) -> Iterator[Entry]:
        layer, naming, plan = self.problem.graph.layers[h], self.problem.naming, self.plan
        opened = self._intensities
        worst = None if plan is None else np.maximum.reduceat(plan.bounds.upper[h], layer.row_ptr[:-1], axis=0)
        for state in np.flatnonzero(row != NO_ACTION).tolist():
            pair = int(row[state])
            fallback = pair == int(layer.fallback[state])
            certified = fallback if plan is None else bool(plan.certified_sets.pairs[h][pair])
            yield {
                "state": naming.states[h][state],
                "action": naming.action(layer, h, pair),
                **({} if opened is None else {"intensity": float(opened[h][pair])}),
                **self._value(h, state),
                "margin": None if worst is None else margins(worst[pair], self.problem.bounds[h], certified),
                "certified": certified,
                "fallback": fallback,
            }


def _finite(value: float) -> float | None:
    """JSON has no NaN: nothing is known where data have overflowed, or the policy has no action."""
    return float(value) if np.isfinite(value) else None


# --- writing --------------------------------------------------------------------------------------------


def save_policy(path: Path, head: Document, steps: Iterable[Iterable[Entry]]) -> Path:
    """Write a document in the format of the path's suffix, atomically. Equal documents give equal bytes."""
    writers = {".json": _write_json, ".py": _write_python}
    if path.suffix.lower() not in writers:
        raise InvalidInput("a policy's file ends in .json or .py", got=repr(path.name))
    disk.DISK.replace(path, partial(writers[path.suffix.lower()], head=head, steps=steps))
    return path


def _write_json(stream: BinaryIO, head: Document, steps: Iterable[Iterable[Entry]]) -> None:
    def write(text: str) -> None:
        stream.write(text.encode("ascii"))  # a label may hold half a character

    write(json.dumps(head, indent=2, allow_nan=False)[:-2] + ',\n  "steps": [')
    for h, step in enumerate(steps):
        write(",\n    [" if h else "\n    [")
        for i, entry in enumerate(step):
            write((",\n      " if i else "\n      ") + json.dumps(entry, allow_nan=False))
        write("\n    ]")
    write("\n  ]\n}\n")


_BEGIN = '''"""A certified policy, exported by surefoot. It needs nothing but Python."""

PROMISE = {promise!a}
PROBLEM = {problem!a}
PLAN = {plan!a}
VALUES = {values!a}  # per start: exact where the truth is known, and confidence bounds

_ACTIONS = (
'''
_END = ''')


def action(step, state):
    """{what} in a state at a step, counted from 0; KeyError where nothing is certified."""
    if type(step) is not int or not 0 <= step < len(_ACTIONS):
        raise KeyError(step)
    return _ACTIONS[step][state]
'''


def _write_python(stream: BinaryIO, head: Document, steps: Iterable[Iterable[Entry]]) -> None:
    plan = {
        "agent": head["agent"],
        "plan": head["plan"],
        "exploring": head["exploring"],
        "safe_mode": head["safe_mode"],
        **head["source"],
    }
    stream.write(
        _BEGIN.format(promise=head["promise"], problem=head["problem"], plan=plan, values=head["starts"]).encode()
    )
    for step in steps:
        stream.write(b"    {\n")
        for entry in step:
            played = entry["action"] if "intensity" not in entry else (entry["action"], entry["intensity"])
            stream.write(f"        {entry['state']!a}: {played!a},\n".encode("ascii"))
        stream.write(b"    },\n")
    what = "The action to take" if head["version"] == VERSION else "The action to take and its intensity"
    stream.write(_END.format(what=what).encode())


# --- reading --------------------------------------------------------------------------------------------

_HEAD = (
    *("format", "version", "problem", "agent", "plan", "exploring", "guaranteed", "promise", "failure_probability"),
    *("safe_mode", "start", "states", "limits", "source", "starts", "steps"),
)
_VALUES = ("value", "value_low", "value_high")
_ENTRY = ("state", "action", *_VALUES, "margin", "certified", "fallback")
_SOURCES = {"run": ("kind", "world", "seed", "episodes"), "study": ("kind", "epoch", "records", "episodes")}


def load_policy(path: Path) -> Document:
    """The document of a ``.json`` file, every entry checked, labels as they are in the problem."""
    with documents.reading(path, "the policy cannot be read"):
        return _checked(documents.read_json(path)[0])


def _checked(found: object) -> Document:
    with_rays = isinstance(found, dict) and found.get("version") == WITH_RAYS
    version = WITH_RAYS if with_rays else VERSION
    checked.of_format(found, "a policy", FORMAT, version, "Run anew, or export it again.")
    document = checked.mapping(found, "$", _HEAD)
    for name in ("problem", "agent", "promise", "states"):
        checked.string(document[name], f"$.{name}")
    for name in ("exploring", "guaranteed", "safe_mode"):
        checked.flag(document[name], f"$.{name}")
    if document["plan"] is not None:
        checked.integer(document["plan"], "$.plan")
    if document["failure_probability"] is not None:
        checked.finite(document["failure_probability"], "$.failure_probability")
    for i, limit in enumerate(checked.sequence(document["limits"], "$.limits")):
        checked.string(checked.mapping(limit, f"$.limits[{i}]", ("name", "bound"))["name"], f"$.limits[{i}].name")
        for bound in limit["bound"] if isinstance(limit["bound"], list) else [limit["bound"]]:
            checked.finite(bound, f"$.limits[{i}].bound")
    _check_source(document["source"])
    (start,) = checked.labels([document["start"]], "$.start")
    starts = _starts(document["starts"])
    limits, steps = len(document["limits"]), checked.sequence(document["steps"], "$.steps")
    entries = [_step(step, f"$.steps[{h}]", limits, with_rays) for h, step in enumerate(steps)]
    return {**document, "start": start, "starts": starts, "steps": entries}


def _starts(value: object) -> list[Entry]:
    found = [checked.mapping(each, f"$.starts[{i}]", ("state", *_VALUES))
             for i, each in enumerate(checked.sequence(value, "$.starts"))]  # fmt: skip
    states = checked.labels([each["state"] for each in found], "$.starts")
    for i, each in enumerate(found):
        _check_numbers([each[name] for name in _VALUES], f"$.starts[{i}]")
    return [{**each, "state": state} for each, state in zip(found, states, strict=True)]


def _check_numbers(values: Iterable[object], at: str) -> None:
    for number in values:
        if number is not None:
            checked.finite(number, at)


def _check_source(value: object) -> None:
    kind = checked.string(checked.entries(value, "$.source", ("kind",))["kind"], "$.source.kind")
    if kind not in _SOURCES:
        raise checked.wrong("$.source.kind", " or ".join(_SOURCES), kind)
    for name, part in checked.mapping(value, "$.source", _SOURCES[kind]).items():
        (checked.string if name in ("kind", "world") else checked.integer)(part, f"$.source.{name}")


def _step(value: object, at: str, limits: int, with_rays: bool) -> list[Entry]:
    keys = (*_ENTRY, "intensity") if with_rays else _ENTRY
    found = [checked.mapping(entry, f"{at}[{i}]", keys) for i, entry in enumerate(checked.sequence(value, at))]
    states = checked.labels([entry["state"] for entry in found], f"{at}.state")
    actions = checked.labels([entry["action"] for entry in found], f"{at}.action")
    if len(set(states)) < len(states):
        raise UnreadableFile("a state is there twice", where=at)
    for i, entry in enumerate(found):
        for name in ("certified", "fallback"):
            checked.flag(entry[name], f"{at}[{i}].{name}")
        if (margin := entry["margin"]) is not None:
            checked.sequence(margin, f"{at}[{i}].margin", limits, "limits")
        if with_rays and not 0.0 <= checked.floating(entry["intensity"], f"{at}[{i}].intensity") <= 1.0:
            raise checked.wrong(f"{at}[{i}].intensity", "a number from 0 to 1", entry["intensity"])
        _check_numbers((*(entry[name] for name in _VALUES), *(margin or ())), f"{at}[{i}]")
    return [{**entry, "state": s, "action": a} for entry, s, a in zip(found, states, actions, strict=True)]
