"""The history of a study, read from its journal record by record. A live page continues reading where it stopped."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.errors import SurefootError
from surefoot.model.labels import label_of
from surefoot.model.problem import Problem
from surefoot.storage.disk import FileLayer
from surefoot.study import journal as journals


@dataclass
class Course:
    """One episode."""

    number: int
    certified: int  # pairs, of the plan in force
    to_gain: float | None
    reward: float = 0.0
    ended: bool = False  # it came to its end: it was not aborted, nor ended by an alarm
    highest: list[float] = field(default_factory=list)  # measured, per limit
    promised: list[float] = field(default_factory=list)  # largest certified upper bound, per limit
    asks: int = 0
    own: int = 0  # asks that were not the fallback's
    exact: list[list[float]] = field(default_factory=list)  # of a plant: where it was


@dataclass(frozen=True)
class Event:
    """Something a person should know about."""

    time: str
    kind: str
    words: str


class History:
    """What the journal says: a :class:`Course` for each episode, and the events."""

    def __init__(self, problem: Problem) -> None:
        self._low, self._problem = [-math.inf] * len(problem.limits), problem
        self._offset, self._n = 0, 0
        self.all: list[Course] = []
        self.events: list[Event] = []
        self.told: dict[str, Any] | None = None  # the last tell of an action that was used

    @property
    def courses(self) -> list[Course]:
        """The episodes in which something was asked."""
        return [course for course in self.all if course.asks]

    def read(self, journal: Path) -> History:
        """Continue reading as far as the journal is intact; the audit reports what is wrong with the rest."""
        layer = FileLayer()
        end = journals.scan(journal, layer).end.size if self._offset == 0 else None
        for line in journals.read_lines(journal, layer, offset=self._offset, end=end, n=self._n):
            if not line.text.endswith(b"\n"):
                break  # being written
            self.add(line.record(journal))
            self._offset, self._n = line.end, line.n + 1
        return self

    def add(self, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "begin":
            course = Course(record["episode"], record["certified"], record["to_gain"])
            course.highest, course.promised = list(self._low), list(self._low)
            course.exact = [] if record["point"] is None else [record["point"]]
            self.all.append(course)
        elif kind == "ask":
            self._ask(record["certificate"])
        elif kind in ("tell", "terminal"):
            self._tell(record)
        elif kind == "import" and record["repeated"]:
            words = f"{record['repeated']} of {len(record['rows'])} rows are like others, said to be different: "
            self._event(record, words + str(record["different"]))
        elif kind in ("alarm", "acknowledge", "abort"):
            words = str(record.get("message") or record.get("reason") or "")
            changed = ", ".join(record.get("changes", ()))
            self._event(record, f"{words} ({changed})" if changed else words)
        elif kind == "doubt":
            self._event(record, f"step {record['step']}: next state {record['point']['state']} was refused")
        elif kind == "grow":
            self._event(record, f"the graph has grown: {len(record['expanded'])} actions expanded")
        elif kind == "clock":
            self._event(record, f"the clock went back, from {record['expected']}")

    def _event(self, record: dict[str, Any], words: str) -> None:
        self.events.append(Event(record["time"], record["kind"], words))

    def _ask(self, certificate: dict[str, Any]) -> None:
        course = self.all[-1]
        course.asks += 1
        course.own += not certificate["fallback"]
        for row in certificate["successors"]:
            upper = [math.inf if value is None else value for value in row["upper"]]
            course.promised = [max(a, b) for a, b in zip(course.promised, upper, strict=True)]

    def _tell(self, record: dict[str, Any]) -> None:
        course = self.all[-1]
        if record["cost"] is not None:
            course.highest = [max(a, b) for a, b in zip(course.highest, record["cost"], strict=True)]
        if record["kind"] == "terminal":
            course.ended = True
            return
        if record["unused"] is not None:
            return
        self.told = record
        if record["point"] is not None:
            course.exact.append(record["point"]["state"])
        course.ended = course.ended or bool(record["ends"])
        problem, h = self._problem, record["step"]
        with contextlib.suppress(SurefootError):  # a label that a wider declaration has and this one has not
            pair = problem.pair_index(h, label_of(record["state"]), label_of(record["action"]))
            layer, share = problem.graph.layers[h], record["intensity"]
            course.reward += float(layer.reward[pair])
            if share is not None:  # affine along a ray (spec 9)
                course.reward += (share - 1.0) * float(layer.reward[pair] - problem.graph.rays[h].reward(layer)[pair])
            if h == problem.horizon - 2:
                last = problem.state_index(h + 1, label_of(record["next_state"]))
                course.reward += float(problem.graph.terminal.reward[last])
