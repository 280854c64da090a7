"""The audit's look at the exact states of a plant (spec 9).

Part of the audit: imports nothing of surefoot. From the plant's file come cells, start and guard, from the problem's
the corner rows and successors of every cell, from the journal the exact states, features and boxes. What is verified of
each offer: its state is the one told before and lies in its cell; its features lie in the range of the cell's corner
rows; the cells that its boxes meet are the ones written, declared successors of its cell, and certified; and the bounds
at its features keep the limits. What is not: that features and boxes are those of the user's functions, which no file
can hold.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.audits.bounds import Bounds
from surefoot.audits.certified import Plan, kept
from surefoot.audits.chain import Record, Say
from surefoot.audits.problem import Problem, Unreadable

UNVERIFIED = "that features and boxes of a plant are those of its models: functions cannot be stored"
_ROUNDING = 1e-9  # relative, of features against their corners


@dataclass(frozen=True, eq=False)
class Proof:
    """What the audit finds of an offer at an exact state."""

    cells: list[int]  # that may follow
    bounds: Bounds  # of the rows at the exact state
    sure: bool  # every limit is kept and every cell is certified
    possible: bool  # or rounding decides


class Points:
    """Where a plant is, from record to record."""

    def __init__(self, problem: Problem, document: Record, wrong: Say) -> None:
        self._problem, self._wrong = problem, wrong
        self._edges = [np.array(edges, np.float64) for edges in document["state"].values()]
        self._guard = np.array(document["guard"], np.float64)
        self._inputs: list[Any] = document["inputs"]["values"]
        self._start = [np.array(end, np.float64) for end in document["start"]]
        self._shape = [len(edges) - 1 for edges in self._edges]
        self._x: Any = None
        wanted = int(np.prod(self._shape)) + 1
        sizes = {*(len(layer.state_ptr) - 1 for layer in problem.layers), len(problem.has_cost)}
        if sizes != {wanted} or document["problem"] != problem.digest:
            wrong(0, "the plant's file is one of another problem")

    def begin(self, n: int, record: Record, state: int | None) -> None:
        self._x = self._point(record["point"])
        low, high = self._start
        if not ((self._x >= low - self._guard).all() and (self._x <= high + self._guard).all()):
            self._wrong(n, f"{record['point']!r} is no declared start")
        self._in_cell(n, self._x, state)

    def ask(self, n: int, record: Record, state: int, pair: int, plan: Plan) -> Proof:
        """The offer examined; what does not fit is said."""
        point, h = record["point"], record["step"]
        layer = self._problem.layers[h]
        if not np.array_equal(self._point(point["state"]), self._x):
            self._wrong(n, f"it is of state {point['state']!r}, told last was {self._x.tolist()!r}")
        self._in_cell(n, self._point(point["state"]), state)
        number = pair - layer.state_ptr[state]
        if point["input"] != self._inputs[number]:
            self._wrong(n, f"its input is {point['input']!r}, action {number} is {self._inputs[number]!r}")
        x = np.stack([self._features(n, h, pair, row) for row in point["features"]])
        cells = self._met(point["boxes"])
        declared = {layer.successor[e] for e in range(layer.pair_ptr[pair], layer.pair_ptr[pair + 1])}
        if cells != point["cells"] or not set(cells) <= declared:
            self._wrong(n, f"its boxes meet cells {cells[:20]}, written are {point['cells'][:20]}")
        bounds = plan.at(h, x)
        found = []
        for sets, side, consistent in (
            (plan.sure, 1.0, plan.surely_consistent),
            (plan.possible, -1.0, plan.possibly_consistent),
        ):
            keeps = all(kept(self._problem, h, bounds, side))
            found.append(bool(consistent and cells and keeps and all(sets.states[h + 1][c] for c in cells)))
        return Proof(cells, bounds, *found)

    def tell(self, n: int, record: Record, pair: int | None, edge: int | None) -> tuple[int | None, Any]:
        """(edge, features): the edge only when the next state lies in the boxes that stand there."""
        point = record["point"]
        after = self._point(point["state"])
        if self._cell(after) != record["next_state"]:
            self._wrong(n, f"{point['state']!r} does not lie in cell {record['next_state']!r}")
        if pair is None:
            return None, None
        may = any(
            (after >= np.array(low) - self._guard).all() and (after <= np.array(high) + self._guard).all()
            for low, high in point["boxes"]
        )
        if edge is None or not may:
            return None, None
        x = self._features(n, record["step"], pair, point["features"])
        self._x = after
        return edge, x

    # --- geometry ---------------------------------------------------------------------------------------

    def _point(self, value: Any) -> Any:
        x = np.array(value, np.float64)
        if x.shape != self._guard.shape or not np.isfinite(x).all():
            raise ValueError(f"no state of the plant: {value!r}")
        return x

    def _along(self, d: int, value: float) -> int:
        found = int(np.searchsorted(self._edges[d], value, side="right")) - 1
        return min(max(found, 0), self._shape[d] - 1)

    def _cell(self, x: Any) -> int:
        """The number of a state's cell; the last one is for all that is outside."""
        number = 0
        for d, value in enumerate(x.tolist()):
            if not self._edges[d][0] - self._guard[d] <= value <= self._edges[d][-1] + self._guard[d]:
                return int(np.prod(self._shape))
            number = number * self._shape[d] + self._along(d, value)
        return number

    def _in_cell(self, n: int, x: Any, state: int | None) -> None:
        if self._cell(x) != state:
            self._wrong(n, f"state {x.tolist()!r} does not lie in cell {state!r}")

    def _met(self, boxes: Any) -> list[int]:
        """All cells that some box meets, in order; that of the outside where one leaves the box of states."""
        found: set[int] = set()
        for low, high in boxes:
            ranges, gone = [], False
            for d, (least, most) in enumerate(zip(low, high, strict=True)):
                first, last = self._edges[d][0], self._edges[d][-1]
                below, above = least - self._guard[d], most + self._guard[d]
                if not (below >= first - 2 * self._guard[d] and above <= last + 2 * self._guard[d]):
                    found.add(int(np.prod(self._shape)))
                gone = gone or not (above >= first and below <= last)
                ranges.append(range(self._along(d, below), self._along(d, above) + 1))
            if not gone:
                found.update(int(np.ravel_multi_index(at, self._shape)) for at in itertools.product(*ranges))
        return sorted(found)

    def _features(self, n: int, h: int, pair: int, written: Any) -> Any:
        """The features as written, which must lie between the corner rows of the pair, coordinate by coordinate."""
        layer = self._problem.layers[h]
        rows = layer.x[list(layer.rows(pair, layer.pair_ptr[pair]))]
        x = np.array(written, np.float64)
        if x.shape != rows.shape[1:] or not np.isfinite(x).all():
            raise ValueError(f"no features of the problem: {written!r}")
        off = _ROUNDING * np.maximum(np.abs(rows).max(), 1e-300)
        if not ((x >= rows.min(axis=0) - off).all() and (x <= rows.max(axis=0) + off).all()):
            self._wrong(n, "its features lie outside those of its cell's corners")
        return x


def read_points(folder: Path, opened: Record, problem: Problem, wrong: Say) -> Points | None:
    """Of a study of a plant; None of any other."""
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
