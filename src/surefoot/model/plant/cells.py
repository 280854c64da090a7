"""The cells of a box of states: half-open boxes on a grid, numbered with the last coordinate running fastest.

Points are columns: an array of shape (n, P) holds P points of n coordinates, so that ``charge, temperature = x`` works
for one point (n,) and for many alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.checks import nearest
from surefoot.errors import InvalidInput
from surefoot.model.graph import BoolArray, FloatArray, IntArray, freeze

ROUNDING = 1e-12  #: of a coordinate's size: boxes are widened by it, so that rounding leaves out no cell

Range = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False)
class Cells:
    """A box of R^n, cut along every coordinate. Cell i of a coordinate is [edge i, edge i+1), the last one closed."""

    names: tuple[str, ...]
    edges: tuple[FloatArray, ...]  # n of (cells + 1,), increasing

    @property
    def dim(self) -> int:
        return len(self.names)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(edge) - 1 for edge in self.edges)

    @cached_property
    def number(self) -> int:
        return int(np.prod(self.shape))

    @property
    def outside(self) -> int:
        """The number of the state that stands for everything outside the box."""
        return self.number

    @cached_property
    def guard(self) -> FloatArray:
        """(n,) how much boxes are widened: far above what rounding does to a next state, far below any disturbance."""
        return freeze(ROUNDING * np.array([np.abs(edge).max() + np.ptp(edge) for edge in self.edges]))

    def of(self, x: FloatArray) -> IntArray:
        """(P,) the cell of each point (n, P); ``outside`` outside the box, and where it is no number."""
        index = np.zeros(x.shape[1], np.int64)
        inside = np.ones(x.shape[1], bool)
        for d, edge in enumerate(self.edges):
            inside &= (x[d] >= edge[0] - self.guard[d]) & (x[d] <= edge[-1] + self.guard[d])
            index = index * self.shape[d] + self._along(d, x[d])
        return np.where(inside, index, self.outside)

    def _along(self, d: int, values: FloatArray) -> IntArray:
        """The cells of values along one coordinate; beyond the ends the nearest."""
        found = np.searchsorted(self.edges[d], values, side="right") - 1
        return np.minimum(np.maximum(found, 0), self.shape[d] - 1)

    def met(self, low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray, BoolArray]:
        """First and last cell (n, P) that closed boxes [low, high] meet along each coordinate, and (P,) which of them
        leave the box. A box that is wholly outside has a first cell after its last.
        """
        first: IntArray = np.empty(low.shape, np.int64)
        last: IntArray = np.empty(low.shape, np.int64)
        leaves = ~(np.isfinite(low) & np.isfinite(high)).all(axis=0)
        for d, edge in enumerate(self.edges):
            guard = self.guard[d]
            first[d] = self._along(d, low[d] - guard)
            last[d] = self._along(d, high[d] + guard)
            leaves |= (low[d] < edge[0] - guard) | (high[d] > edge[-1] + guard)
            gone = ~((high[d] >= edge[0] - guard) & (low[d] <= edge[-1] + guard))
            first[d, gone], last[d, gone] = 1, 0
        return first, last, np.asarray(leaves)

    def ranges(self, cell: int) -> tuple[tuple[float, float], ...]:
        """The range of each coordinate in a cell."""
        index = np.unravel_index(cell, self.shape)
        return tuple((float(e[i]), float(e[i + 1])) for e, i in zip(self.edges, index, strict=True))

    def bounds(self, cells: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n, P) lower and upper ends of cells."""
        index = np.unravel_index(cells, self.shape)
        low = np.stack([edge[i] for edge, i in zip(self.edges, index, strict=True)])
        high = np.stack([edge[i + 1] for edge, i in zip(self.edges, index, strict=True)])
        return low, high

    def said(self, cell: int) -> str:
        """A cell in words."""
        if cell == self.outside:
            return "outside the box"
        parts = zip(self.names, self.ranges(cell), strict=True)
        return ", ".join(f"{name} {low:.6g} … {high:.6g}" for name, (low, high) in parts)

    def meets(self, box: Mapping[str, Range]) -> BoolArray:
        """(cells,) those that an open box of some coordinates meets."""
        meets = np.ones(self.shape, bool)
        for d, (low, high) in enumerate(self.open_box(box)):
            edge = self.edges[d]
            along = (edge[1:] > low) & (edge[:-1] < high)
            meets &= along.reshape([-1 if i == d else 1 for i in range(self.dim)])
        return meets.reshape(-1)

    def open_box(self, box: Mapping[str, Range]) -> list[tuple[float, float]]:
        """The range of each coordinate; without an end, or not named, it is unbounded."""
        for name in box:
            if name not in self.names:
                raise InvalidInput("no such coordinate", got=repr(name), fix=nearest(name, self.names, "There are"))
        ends = [box.get(name, (None, None)) for name in self.names]
        return [(-np.inf if low is None else float(low), np.inf if high is None else float(high)) for low, high in ends]

    def point(self, what: str, given: Any) -> FloatArray:
        """(n,) a point given by name or in order."""
        if isinstance(given, Mapping):
            missing = set(self.names) ^ set(given)
            if missing:
                raise InvalidInput(f"{what} must name every coordinate", got=f"{sorted(missing)} too few or too many")
            given = [given[name] for name in self.names]
        try:
            x = np.asarray(given, np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise InvalidInput(f"{what} must be numbers", got=f"{given!r:.100}") from None
        if x.shape != (self.dim,) or not np.isfinite(x).all():
            raise InvalidInput(f"{what} must be {self.dim} finite numbers", got=f"{given!r:.100}")
        return x


def make_cells(state: Mapping[str, Any]) -> Cells:
    """Of each coordinate a tuple ``(low, high, number of cells)``, or a list or array of its cells' edges."""
    if not isinstance(state, Mapping) or not state:
        raise InvalidInput("state must name its coordinates", got=f"{state!r:.100}", fix="Give {name: (low, high, n)}.")
    return Cells(tuple(map(str, state)), tuple(freeze(_edges(name, value)) for name, value in state.items()))


def _edges(name: str, value: Any) -> FloatArray:
    where, fix = f"coordinate {name!r}", "Give (low, high, number of cells), or a list of the cells' edges."
    try:
        if isinstance(value, tuple):
            low, high, number = value
            if isinstance(number, bool) or int(number) != number or number < 1:
                raise InvalidInput(
                    "the number of cells must be a whole number from 1 on", where=where, got=repr(number)
                )
            edges = np.linspace(float(low), float(high), int(number) + 1)
        else:
            edges = np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("not the cells of a coordinate", where=where, got=f"{value!r:.80}", fix=fix) from None
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise InvalidInput("the edges of cells must increase", where=where, got=f"{value!r:.80}", fix=fix)
    return edges


@dataclass(frozen=True, eq=False)
class Inputs:
    """The grid of inputs: every combination of the levels of each."""

    names: tuple[str, ...]
    values: tuple[Any, ...]  # U: a number each, or, of several inputs, a tuple of them

    def __len__(self) -> int:
        return len(self.values)

    def index(self, value: Any) -> int:
        """The number of an input; one that is not on the grid is refused."""
        wanted = tuple(map(float, np.atleast_1d(np.asarray(value, np.float64)))) if _numeric(value) else None
        for i, own in enumerate(self.values):
            if wanted is not None and wanted == tuple(map(float, np.atleast_1d(own))):
                return i
        raise InvalidInput("no such input", got=f"{value!r:.80}", fix=f"The inputs are {self.said()}.")

    def said(self) -> str:
        shown = ", ".join(map(repr, self.values[:8]))
        return shown + (", …" if len(self.values) > 8 else "")


def _numeric(value: Any) -> bool:
    try:
        return bool(np.isfinite(np.asarray(value, np.float64)).all())
    except (TypeError, ValueError):
        return False


def make_inputs(inputs: Mapping[str, Sequence[float]]) -> Inputs:
    if not isinstance(inputs, Mapping) or not inputs:
        raise InvalidInput("inputs must be named", got=f"{inputs!r:.100}", fix="Give {name: [levels]}.")
    axes = []
    for name, levels in inputs.items():
        if (
            not _numeric(levels)
            or np.ndim(levels) != 1
            or len(levels) == 0
            or len(set(map(float, levels))) < len(levels)
        ):
            raise InvalidInput("the levels of an input are different numbers", where=repr(name), got=f"{levels!r:.80}")
        axes.append([float(level) for level in levels])
    if len(axes) == 1:
        return Inputs(tuple(map(str, inputs)), tuple(axes[0]))
    grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    return Inputs(tuple(map(str, inputs)), tuple(map(tuple, grid.tolist())))
