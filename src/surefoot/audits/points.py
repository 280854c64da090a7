"""The audit's look at the exact states of a plant (spec 9).

Cells, start and guard come from the plant's file, the corner rows and successors of every cell from the problem's, the
exact states, features and boxes from the journal. Of each offer this verifies: its state is the one told before and
lies in its cell; its features lie within the range of the cell's corner rows; the cells that its boxes meet are the
ones written, declared successors of its cell, and certified; the bounds at its features keep the limits; and the tell
has the same boxes and features. It cannot verify that these are those of the user's functions, which no file can hold.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.audits.bounds import Bounds
from surefoot.audits.certified import Plan
from surefoot.audits.chain import Record, Say
from surefoot.audits.problem import Problem, Unreadable

UNVERIFIED = "that features and boxes of a plant are those of its models: functions cannot be stored"
_AWAY = 1e-12  # of where it is: by so much more are boxes widened along an endless coordinate
_ROUNDING = 1e-9  # relative, of features against their corners


@dataclass(frozen=True)
class Endless:
    """The edges of a coordinate without an end: edge ``zero`` is at ``origin``."""

    origin: float
    width: float
    cells: int
    zero: int

    def __len__(self) -> int:
        return self.cells + 1

    def __getitem__(self, i: int) -> float:
        return self.origin + (i % (self.cells + 1) - self.zero) * self.width

    def cell(self, value: float) -> int:
        """Of a value; beyond the ends the nearest."""
        i = math.floor(min(max((value - self.origin) / self.width, -self.zero), self.cells - self.zero)) + self.zero
        while i > 0 and self[min(i, self.cells)] > value:
            i -= 1
        while i < self.cells - 1 and self[i + 1] <= value:
            i += 1
        return min(i, self.cells - 1)


@dataclass(frozen=True, eq=False)
class Proof:
    """What the audit finds of an offer at an exact state."""

    states: list[int]  # that may follow
    bounds: Bounds  # of the rows at the exact state
    sure: bool  # every limit is kept and every cell is certified
    possible: bool  # or rounding decides


class Points:
    """Where a plant is, from record to record."""

    def __init__(self, problem: Problem, document: Record, wrong: Say) -> None:
        self.problem, self._wrong = problem, wrong  # of a graph that grows the one in force
        self._edges = [
            Endless(**edges) if isinstance(edges, dict) else np.array(edges, np.float64)
            for edges in document["state"].values()
        ]
        self._guard = np.array(document["guard"], np.float64)
        self._inputs: list[Any] = document["inputs"]["values"]
        self._start = [np.array(end, np.float64) for end in document["start"]]
        self._shape = [len(edges) - 1 for edges in self._edges]
        self._outside = math.prod(self._shape)
        self._x: Any = None
        sizes = {*(len(layer.state_ptr) - 1 for layer in problem.layers), len(problem.has_cost)}
        whole = problem.longest_row is not None or sizes == {self._outside + 1}
        if not whole or document["problem"] != problem.digest:
            wrong(0, "the plant's file is one of another problem")

    def begin(self, record: Record) -> None:
        n = record["n"]
        self._x = self._point(record["point"])
        low, high = self._start
        guard = self._slack(self._x)
        if not ((self._x >= low - guard).all() and (self._x <= high + guard).all()):
            self._wrong(n, f"{record['point']!r} is not a declared start")
        self._in_cell(n, self._x, record["start"])

    def ask(self, record: Record, state: int, pair: int, plan: Plan) -> Proof:
        """Examine an offer; what does not fit is reported."""
        point, h, n = record["point"], record["step"], record["n"]
        layer, names = self.problem.layers[h], self.problem.states[h + 1]
        if not np.array_equal(self._point(point["state"]), self._x):
            self._wrong(n, f"it is for state {point['state']!r}, but the last one told was {self._x.tolist()!r}")
        self._in_cell(n, self._point(point["state"]), record["state"])
        number, played = pair - layer.state_ptr[state], record["intensity"]
        own = self._input(layer.rays.get(pair, pair) - layer.state_ptr[state], number, played)
        if point["input"] != own:
            self._wrong(n, f"its input is {point['input']!r}, action {number} is {own!r}")
        x = np.stack([self._features(n, h, pair, row, played) for row in point["features"]])
        cells = self._met(point["boxes"])
        declared = {names[state] for state in layer.after(pair)}
        if cells != point["cells"] or not set(cells) <= declared:
            self._wrong(n, f"its boxes meet cells {cells[:20]}, written are {point['cells'][:20]}")
        states = [i for i in map(names.index, cells) if i is not None]  # one that is missing was reported above
        bounds, known = plan.at(h, x), bool(cells) and len(states) == len(cells)
        return Proof(states, bounds, *(known and plan.proves(sets, h, bounds, states) for sets in plan.both))

    def tell(
        self, record: Record, pair: int | None, edge: int | None, offered: Record | None
    ) -> tuple[int | None, Any]:
        """(edge, features); the edge is None unless the next state lies in the boxes written there. ``offered``: the
        point of the offer, whose boxes and features these must be; None where something else was applied."""
        point, n = record["point"], record["n"]
        after = self._point(point["state"])
        if self._cell(after) != record["next_state"]:
            self._wrong(n, f"{point['state']!r} does not lie in cell {record['next_state']!r}")
        if pair is None:
            return None, None
        if offered is not None and point["boxes"] != offered["boxes"]:
            self._wrong(n, "its boxes are not those of what was offered")
        guard = self._slack(after)
        may = any(
            (after >= np.array(low) - guard).all() and (after <= np.array(high) + guard).all()
            for low, high in point["boxes"]
        )
        if edge is None or not may:
            return None, None
        x = self._features(n, record["step"], pair, point["features"], record["intensity"])
        if offered is not None and not _between(np.array(offered["features"], np.float64), x):
            self._wrong(n, "its features are not those of what was offered")
        self._x = after
        return edge, x

    # --- geometry ---------------------------------------------------------------------------------------

    def _point(self, value: Any) -> Any:
        x = np.array(value, np.float64)
        if x.shape != self._guard.shape or not np.isfinite(x).all():
            raise ValueError(f"no state of the plant: {value!r}")
        return x

    def _slack(self, x: Any) -> Any:
        """How much boxes are widened at a point; along an endless coordinate more, the further away it is."""
        away = np.array([_AWAY * isinstance(edges, Endless) for edges in self._edges])
        return self._guard + away * np.abs(x)

    def _along(self, d: int, value: float) -> int:
        edges = self._edges[d]
        if isinstance(edges, Endless):
            return edges.cell(value)
        found = int(np.searchsorted(edges, value, side="right")) - 1
        return min(max(found, 0), self._shape[d] - 1)

    def _cell(self, x: Any) -> int:
        """The number of a state's cell; the last one is for all that is outside."""
        number, guard = 0, self._slack(x)
        for d, value in enumerate(x.tolist()):
            if not self._edges[d][0] - guard[d] <= value <= self._edges[d][-1] + guard[d]:
                return self._outside
            number = number * self._shape[d] + self._along(d, value)
        return number

    def _in_cell(self, n: int, x: Any, cell: Any) -> None:
        if self._cell(x) != cell:
            self._wrong(n, f"state {x.tolist()!r} does not lie in cell {cell!r}")

    def _met(self, boxes: Any) -> list[int]:
        """All cells that some box meets, in order, with the cell of the outside where one leaves the state space."""
        found: set[int] = set()
        for low, high in boxes:
            ranges, gone = [], False
            guards = zip(self._slack(np.array(low)).tolist(), self._slack(np.array(high)).tolist(), strict=True)
            for d, (least, most, (under, over)) in enumerate(zip(low, high, guards, strict=True)):
                first, last = self._edges[d][0], self._edges[d][-1]
                if not (least >= first - under and most <= last + over):
                    found.add(self._outside)
                gone = gone or not (most + over >= first and least - under <= last)
                ranges.append(range(self._along(d, least - under), self._along(d, most + over) + 1))
            if not gone:
                found.update(int(np.ravel_multi_index(at, self._shape)) for at in itertools.product(*ranges))
        return sorted(found)

    def _input(self, centre: int, number: int, intensity: float | None) -> Any:
        """The input at an intensity between the centre and an input of the grid."""
        zero, one = self._inputs[centre], self._inputs[number]
        if intensity is None or intensity in (0.0, 1.0):
            return zero if intensity == 0.0 else one
        if not isinstance(one, list):
            return (1.0 - intensity) * zero + intensity * one
        return [(1.0 - intensity) * low + intensity * high for low, high in zip(zero, one, strict=True)]

    def _features(self, n: int, h: int, pair: int, written: Any, intensity: float | None) -> Any:
        """The features as written, which must lie between the corner rows of the pair, coordinate by coordinate."""
        rows = self.problem.layers[h].rows_at(pair, 1.0 if intensity is None else intensity)
        x = np.array(written, np.float64)
        if x.shape != rows.shape[1:] or not np.isfinite(x).all():
            raise ValueError(f"no features of the problem: {written!r}")
        if not _between(rows, x):
            self._wrong(n, "its features lie outside those of its cell's corners")
        return x


def _between(rows: Any, x: Any) -> bool:
    """Does x (d,) lie between rows (R, d), coordinate by coordinate?"""
    off = _ROUNDING * np.maximum(np.abs(rows).max(), 1e-300)
    return bool((x >= rows.min(axis=0) - off).all() and (x <= rows.max(axis=0) + off).all())


def read_points(folder: Path, opened: Record, problem: Problem, wrong: Say) -> Points | None:
    """The points of a study of a plant; None for any other."""
    named = opened["plant"]
    if named is None:
        return None
    if named["file"] != "plant.json":
        raise Unreadable(f"{named['file']!r} is not the name of a plant's file")
    try:
        data = (folder / "plant.json").read_bytes()
        if hashlib.sha256(data).hexdigest() != named["sha256"]:
            wrong(0, "plant.json is not what was written")
        return Points(problem, json.loads(data), wrong)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(f"plant.json cannot be read: {error}") from error
