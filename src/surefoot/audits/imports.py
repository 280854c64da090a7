"""The audit's own look at logged rows: what they are of, is any counted twice, and which a person vouched for. Which
rows are alike is described in :mod:`surefoot.study.importing`."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

from surefoot.audits.chain import Record, compact
from surefoot.audits.problem import Problem, label

_PLAIN = re.compile(r"(?P<sign>[-+]?)(?P<digits>[0-9]+(\.[0-9]*)?)([eE](?P<power>[-+]?[0-9]{1,9}))?")


class Measurements:
    """All that was measured, told or logged, in every epoch."""

    def __init__(self, problem: Problem, counts: Counter[str], wrong: Callable[[str], None]) -> None:
        self._counts, self._wrong = counts, wrong
        self._noisy = any(limit.noise > 0 for limit in problem.limits)
        self._seen: set[Any] = set()
        self._steps: set[tuple[Any, int]] = set()  # (episode, layer) of logged rows
        self._episodes: set[Any] = set()  # of former imports
        self.remarks: list[str] = []

    def enter(self, row: list[Any]) -> bool:
        """Remember a measured row; True if there was one like it before."""
        names, cost = row[1 : min(4, len(row) - 1)], row[-1]  # at whatever step and intensity
        key = (*map(label, names), *(float(f"{value:.12g}") for value in cost))
        repeated = self._noisy and key in self._seen
        self._seen.add(key)
        return repeated

    def judge_import(self, record: Record, alike: list[int], shared: bool) -> None:
        """Check an import as a whole. ``alike``: its rows, from 1, that are like a measurement before them; ``shared``:
        the rows of an episode share an offset, so they are imported together or not at all."""
        rows, ids, why, claimed = (record[key] for key in ("rows", "episodes", "different", "repeated"))
        if hashlib.sha256(compact(rows)).hexdigest() != record["digest"]:
            self._wrong("its digest is not that of its rows")
        if ids is not None and len(ids) != len(rows):
            self._wrong("its rows and their episodes differ in number")
        for i, (name, row) in enumerate(zip(ids or (), rows, strict=False)):
            step = (episode(name), row[0])
            if step in self._steps:
                self._wrong(f"row {i + 1} is there twice: episode {name!r}, step {row[0]}")
            self._steps.add(step)
            if shared and step[0] in self._episodes:
                self._wrong(f"row {i + 1} is of episode {name!r}, of which a part was imported before")
        self._episodes |= {episode(name) for name in ids or ()}
        if type(claimed) is not int or claimed != len(alike):
            self._wrong(f"{claimed!r} of its rows are said to be like others, {len(alike)} are")
        if why is None and alike:
            self._wrong(f"{len(alike)} of its rows are there twice, row {alike[0]} is the first")
        if why is not None:
            self._vouched(record, len(alike))

    def _vouched(self, record: Record, alike: int) -> None:
        why = record["different"]
        if type(why) is not str or not why.strip() or record["episodes"] is None:
            self._wrong("rows are said to be different measurements without a reason, or without their episodes")
        self._counts["rows vouched for"] += alike
        if alike:
            of = f"{alike} of {len(record['rows'])} rows imported"
            self.remarks.append(
                f"record {record['n']}: {of} are like others; a person says that they are different: {why!r}"
            )


def episode(name: Any) -> Any:
    """An id as a person reads it: "1", 1 and " 01.0" are the same."""
    if type(name) not in (str, int, float):
        raise ValueError(f"{name!r} is no id of an episode")
    text = unicodedata.normalize("NFKC", name).strip() if type(name) is str else repr(name)
    number = _PLAIN.fullmatch(text)
    if number is None:
        return text
    whole, _, fraction = number["digits"].partition(".")
    digits, power = (whole + fraction).lstrip("0"), int(number["power"] or 0) - len(fraction)
    while digits.endswith("0"):
        digits, power = digits[:-1], power + 1
    return (number["sign"] == "-", digits, power) if digits else (False, "", 0)


# --- single rows ----------------------------------------------------------------------------------------


def is_cost(problem: Problem, cost: Any) -> bool:
    """Is this a finite number for every limit, or None?"""
    return cost is None or (
        len(cost) == len(problem.limits) and all(type(value) in (int, float) and math.isfinite(value) for value in cost)
    )


def logged_features(problem: Problem, row: list[Any]) -> Any:
    """The features of a logged row; None if there is no such transition or last state."""
    h = row[0]
    if type(h) is not int or not 0 <= h < problem.horizon or not is_cost(problem, row[-1]):
        return None
    state = problem.state(h, label(row[1]))
    if state is None or (h == problem.horizon - 1) != (len(row) == 3):
        return None
    if len(row) == 3:
        return problem.last_x[state] if problem.has_cost[state] else None
    pair, after = problem.pair(h, state, label(row[2])), problem.state(h + 1, label(row[3]))
    edge = None if pair is None or after is None else problem.edge(h, pair, after)
    layer, intensity = problem.layers[h], row[4] if len(row) == 6 else None
    if edge is None or pair is None or not problem.expanded(h, pair) or not layer.can_have(pair, intensity):
        return None
    return layer.measured(pair, edge, intensity)
