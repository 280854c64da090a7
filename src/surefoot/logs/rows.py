"""Reads a row of a log as a transition of a problem.

A row has ``step``, ``state``, ``action``, ``next_state`` and ``cost`` (a number, one per limit, or empty; with several
limits perhaps one column ``cost.NAME`` for each), and ``intensity`` for an action that has one (spec 9). The cost of a
last state is a row with ``step`` H−1, ``state`` and ``cost``. Other columns are ignored.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput, SurefootError, UnknownLabel
from surefoot.logs.files import Text
from surefoot.model.labels import Label, label_of, other_spellings, same_label, shown
from surefoot.model.measured import measured
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL

# --- what a cell stands for: an error rather than a guess -------------------------------------------------------

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STEP = re.compile(r"0|[1-9][0-9]{0,8}")
_ANY_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")


def readings(value: object) -> list[object]:
    """What a label's cell may mean. A CSV cell ``3`` is the number or the text; only the problem knows."""
    if not isinstance(value, Text):
        return [value]
    if value.startswith("("):  # a tuple as Python writes it
        return [*(each for each in other_spellings(str(value)) if repr(each) == value), str(value)]
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return [str(value)]
    if parsed == str(value) or value not in _spellings(parsed):  # " 3", 3.00 and NaN are text, and most likely unknown
        return [str(value)]
    return [parsed, str(value)]


def _spellings(value: object) -> list[str]:
    return [
        json.dumps(value, ensure_ascii=plain, separators=between)
        for plain in (True, False)
        for between in ((", ", ": "), (",", ":"))
    ]


def step_in(value: object) -> object:
    """The number of a step, from a cell or as it is; other text is refused later."""
    if isinstance(value, Text):
        return int(value) if _STEP.fullmatch(value) else str(value)
    return int(value) if isinstance(value, np.integer) else value


def no_such_step(given: object, last: int) -> UnknownLabel:
    """What to raise where a row's step is none of 0 … last."""
    fix = "" if type(given) is int else "Give a whole number, not text."
    return UnknownLabel("no such step", got=f"{shown(given)}, steps are 0 … {last}", fix=fix)


def cost_in(value: object, where: str) -> object:
    """A cost: a number, a list of them, or None, from a cell or as it is.

    In single precision 0.21 is 0.20999999344348907; it is read as 0.21, so that copies of a row are recognized.
    """
    if isinstance(value, np.float32):
        return float(str(value))
    if not isinstance(value, Text):
        return value
    if _NUMBER.fullmatch(value):
        return float(value)
    if value.startswith("["):
        try:
            parsed: object = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list):
            return parsed
    fix = "Write it as 0.5, -12 or 3e-4 and nothing else; leave the cell empty if it was not measured."
    raise InvalidInput("a cost must be a number", where=where, got=shown(str(value)), fix=fix)


def episode_key(name: str | int | float) -> str:
    """An id in one spelling: without blanks around it, and numbers by value."""
    text = unicodedata.normalize("NFKC", name).strip() if isinstance(name, str) else repr(name)
    match = _ANY_NUMBER.fullmatch(text)
    if match is None:
        return text
    sign, whole, fraction, exponent = match.groups("")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    return f"{sign.strip('+')}{significant}e{power}"


def episode_in(value: object) -> str | int | float:
    """An episode's id: text or a number."""
    name = label_of(str(value) if isinstance(value, Text) else value, "column 'episode'")
    if type(name) not in (str, int, float) or (type(name) is str and not name.strip()):
        raise InvalidInput("an episode is text or a number", where="column 'episode'", got=shown(name))
    known: str | int | float = name
    return known


# --- what a row stands for --------------------------------------------------------------------------------------

LABELS = ("state", "action", "next_state")
OUTSIDE, LAST = -1, -2  #: in place of an edge: the successor is not declared; the row is the cost of a last state


@dataclass(frozen=True)
class LoggedTransition:
    """One row, with the numbers of the problem's graph."""

    step: int
    state: int
    pair: int  # LAST in the last step
    edge: int  # OUTSIDE or LAST
    cost: list[float] | None  # one per limit, None: not measured
    partly: bool  # only some limits' costs were there, so none is used
    following: Label  # the successor as logged, None in the last step
    intensity: float = FULL  # at which the action was played


class RowReader:
    """Reads the rows of a problem's log; a row that does not fit is an error."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def read(self, row: Mapping[str, Any], *, outside: bool) -> LoggedTransition:
        """The transition in a row; with ``outside``, its successor need not be declared."""
        problem, h = self._problem, step_in(entry(row, "step"))
        if type(h) is not int or not 0 <= h < problem.horizon:
            raise no_such_step(h, problem.horizon - 1)
        states = problem.naming.states
        i = self._known(row, "state", lambda label: states[h].index(label, f"step {h}"), states[h].__getitem__)
        cost, partly = self.cost(row)
        if h == problem.horizon - 1:
            if not problem.graph.terminal.has_cost[i]:
                raise InvalidInput("the problem declares no cost for this last state", got=repr(states[h][i]))
            if any(row.get(name) is not None for name in LABELS[1:]):
                raise InvalidInput("nothing follows the last step", got="an action or a next state")
            return LoggedTransition(h, i, LAST, LAST, cost, partly, None)
        layer, naming = problem.graph.layers[h], problem.naming
        pair = self._known(
            row, "action", lambda label: naming.pair(layer, h, i, label), lambda pair: naming.action(layer, h, pair)
        )
        state, action = states[h][i], naming.action(layer, h, pair)
        intensity = self._intensity(row, h, pair)

        def reached(edge: int) -> Label:
            return states[h + 1][int(layer.successor[edge])]

        try:
            edge = self._known(row, "next_state", lambda label: problem.edge_index(h, state, action, label), reached)
        except UnknownLabel:
            if not outside:
                raise
            first = readings(entry(row, "next_state", null=True))[0]
            return LoggedTransition(
                h, i, pair, OUTSIDE, cost, partly, label_of(first, "column 'next_state'"), intensity
            )
        return LoggedTransition(h, i, pair, edge, cost, partly, reached(edge), intensity)

    def _intensity(self, row: Mapping[str, Any], h: int, pair: int) -> float:
        """The intensity at which an action was played. In problems without rays the column is ignored."""
        problem, given = self._problem, row.get("intensity")
        if not problem.has_rays or (given is None and not problem.is_ray(h, pair)):
            return FULL
        if given is None:
            fix = "Add a column 'intensity', between 0 and 1."
            raise InvalidInput("the action has an intensity, and the row does not say at which it was played", fix=fix)
        if isinstance(given, Text):
            if not _NUMBER.fullmatch(given):
                raise InvalidInput("an intensity is a number", where="column 'intensity'", got=shown(str(given)))
            given = float(given)
        return problem.intensity(h, pair, given, "column 'intensity'")

    @staticmethod
    def _known(
        row: Mapping[str, Any], name: str, find: Callable[[Label], int], label_at: Callable[[int], Label]
    ) -> int:
        """The index that a cell stands for; exactly one of its readings must be known, with the problem's own type."""
        found: set[int] = set()
        refusal: SurefootError | None = None
        for reading in readings(entry(row, name, null=True)):
            label = label_of(reading, f"column {name!r}")
            try:
                index = find(label)
                if not same_label(label_at(index), label):
                    got = f"{shown(label)}, the problem has {shown(label_at(index))}"
                    raise UnknownLabel(f"no such {name}", where=f"column {name!r}", got=got)
                found.add(index)
            except UnknownLabel as error:
                refusal = refusal or error
        if not found and refusal is not None:
            raise refusal
        if len(found) != 1:
            fix = "Use JSON lines."
            raise InvalidInput(f"the {name} can be read in two ways", got=repr(row[name]), fix=fix)
        return found.pop()

    def cost(self, row: Mapping[str, Any]) -> tuple[list[float] | None, bool]:
        """The costs of a row, one per limit, and whether only some of them were there."""
        names = [f"cost.{limit.name}" for limit in self._problem.limits]
        columns = [key for key in row if isinstance(key, str) and key.startswith("cost.")]
        for column in columns:
            if column not in names:
                fix = f"Use {', '.join(names)}."
                raise InvalidInput("a cost of no limit", where=f"column {column!r}", fix=fix)
        if "cost" in row and columns:
            raise InvalidInput("the cost is given twice", got=f"cost and {columns[0]}")
        where = "columns 'cost.…'" if columns else "column 'cost'"
        if columns:
            value: Any = [cost_in(row.get(name), f"column {name!r}") for name in names]
        else:
            value = cost_in(entry(row, "cost", null=True), where)
        partly = False
        if isinstance(value, (list, tuple)) and any(part is None for part in value):
            partly = any(part is not None for part in value)
            value = None
        numbers, raw = measured(self._problem, value, where)
        if raw is not None:
            fix = "Leave it empty if it was not measured."
            raise InvalidInput("a cost is not finite", where=where, got=", ".join(raw), fix=fix)
        return numbers, partly


def entry(row: Mapping[str, Any], name: str, *, null: bool = False) -> Any:
    if name not in row:
        fix = f"A row has {', '.join(('step', *LABELS))} and cost, or cost.NAME of each limit."
        raise InvalidInput(f"the {name} is missing", got=f"there are {', '.join(map(str, row))}", fix=fix)
    if row[name] is None and not null:
        raise InvalidInput(f"the {name} is missing")
    return row[name]


class Faults:
    """What is wrong with the rows of a log: for each broken rule, the first places and how many there are."""

    MOST, SHOWN = 10, 3  #: rules, and places of each

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[tuple[str, str]]] = {}  # by rule and cure: (place, what is there)
        self._more: Counter[tuple[str, str]] = Counter()

    def add(self, place: str, error: SurefootError) -> None:
        found = self._found.setdefault(kind := (error.rule, error.fix), [])
        if len(found) < self.SHOWN:
            found.append((place, ": ".join(filter(None, (error.rule, error.where, error.got)))))
        else:
            self._more[kind] += 1

    def __len__(self) -> int:
        return len(self._found)

    @property
    def enough(self) -> bool:
        """True if no more need to be found."""
        return len(self) == self.MOST

    def __str__(self) -> str:
        told = []
        for kind, found in self._found.items():
            alike = len({text for _, text in found}) == 1
            places = ", ".join(place for place, _ in found)
            what = f"{places}: {found[0][1]}" if alike else "; ".join(f"{place}: {text}" for place, text in found)
            more = f"; and {self._more[kind]} more like {'it' if alike else 'these'}" if self._more[kind] else ""
            told.append(". ".join(filter(None, (what + more, kind[1].rstrip(".")))))
        return "; ".join(told) + ("; …" if self.enough else "")
