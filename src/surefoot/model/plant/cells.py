"""The cells of a box of states: half-open boxes on a grid, numbered with the last coordinate running fastest.

Points are columns: an array of shape (n, P) holds P points of n coordinates, so that ``charge, temperature = x`` works
for one point (n,) and for many alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.checks import nearest
from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze
from surefoot.model.labels import shown
from surefoot.model.reals import NUMBERS, plain, real
from surefoot.tolerances import CELL

MOST_CELLS = 1 << 53  #: with an endless coordinate: every cell number is exact as a float and in JSON

Range = tuple[float | None, float | None]


@dataclass(frozen=True)
class Endless:
    """The edges of a coordinate without an end, computed on demand. There are as many as can be numbered; beyond them
    is outside, as with any other coordinate."""

    origin: float
    width: float
    cells: int
    zero: int  # the number of the edge at the origin

    def __len__(self) -> int:
        return self.cells + 1

    def __getitem__(self, number: Any) -> Any:
        index = np.asarray(number)
        return self.origin + (np.where(index < 0, index + len(self), index) - self.zero) * self.width

    def along(self, values: FloatArray) -> IntArray:
        """The cells of values; beyond the ends, the nearest cell. Exactly consistent with the computed edges."""
        steps = np.nan_to_num((values - self.origin) / self.width, nan=0.0)
        index = np.floor(np.clip(steps, -self.zero, self.cells - 1 - self.zero)).astype(np.int64) + self.zero
        index = index - (self[index] > values)
        index = index + (self[index + 1] <= values)
        return np.asarray(np.clip(index, 0, self.cells - 1))

    def document(self) -> dict[str, Any]:
        return {"origin": self.origin, "width": self.width, "cells": self.cells, "zero": self.zero}


Edges = FloatArray | Endless


@dataclass(frozen=True, eq=False)
class Cells:
    """A box of R^n, cut along every coordinate. Cell i of a coordinate is [edge i, edge i+1), the last one closed."""

    names: tuple[str, ...]
    edges: tuple[Edges, ...]  # n of (cells + 1,), increasing

    @property
    def dim(self) -> int:
        return len(self.names)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(edge) - 1 for edge in self.edges)

    @cached_property
    def number(self) -> int:
        return math.prod(self.shape)

    @property
    def endless(self) -> bool:
        """True if some coordinate has no end; then the cells cannot be listed."""
        return any(isinstance(edge, Endless) for edge in self.edges)

    @property
    def outside(self) -> int:
        """The number of the state that stands for everything outside the box."""
        return self.number

    @cached_property
    def guard(self) -> FloatArray:
        """(n,) how much boxes are widened: far more than rounding, far less than any disturbance. For an endless
        coordinate, this is the value at its origin; :meth:`slack` gives it elsewhere."""
        return freeze(CELL * np.array([_size(edge) for edge in self.edges]))

    def slack(self, x: FloatArray) -> FloatArray:
        """How much boxes are widened at points (n,) or (n, P)."""
        away = np.array([CELL * isinstance(edge, Endless) for edge in self.edges])
        shape = (-1,) + (1,) * (x.ndim - 1)
        return np.asarray(self.guard.reshape(shape) + away.reshape(shape) * np.abs(x))

    def of(self, x: FloatArray) -> IntArray:
        """(P,) the cell of each point (n, P); ``outside`` for points outside the box or with a NaN."""
        index = np.zeros(x.shape[1], np.int64)
        inside = np.ones(x.shape[1], bool)
        guard = self.slack(x)
        for d, edge in enumerate(self.edges):
            inside &= (x[d] >= edge[0] - guard[d]) & (x[d] <= edge[-1] + guard[d])
            index = index * self.shape[d] + self.along(d, x[d])
        return np.where(inside, index, self.outside)

    def along(self, d: int, values: FloatArray) -> IntArray:
        """The cells of values along one coordinate; beyond the ends, the nearest cell."""
        edge = self.edges[d]
        if isinstance(edge, Endless):
            return edge.along(values)
        found = np.searchsorted(edge, values, side="right") - 1
        return np.minimum(np.maximum(found, 0), self.shape[d] - 1)

    def met(self, low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray, BoolArray]:
        """The first and last cell (n, P) that closed boxes [low, high] meet along each coordinate, and (P,) which of
        them leave the box. For a box that lies wholly outside, the first cell comes after the last.
        """
        first: IntArray = np.empty(low.shape, np.int64)
        last: IntArray = np.empty(low.shape, np.int64)
        leaves = ~(np.isfinite(low) & np.isfinite(high)).all(axis=0)
        below, above = self.slack(low), self.slack(high)
        for d, edge in enumerate(self.edges):
            first[d] = self.along(d, low[d] - below[d])
            last[d] = self.along(d, high[d] + above[d])
            leaves |= (low[d] < edge[0] - below[d]) | (high[d] > edge[-1] + above[d])
            gone = ~((high[d] >= edge[0] - above[d]) & (low[d] <= edge[-1] + below[d]))
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

    def only(self, cell: int) -> Cells:
        """The grid of this cell alone."""
        index = np.unravel_index(cell, self.shape)
        return Cells(self.names, tuple(edge[np.arange(i, i + 2)] for edge, i in zip(self.edges, index, strict=True)))

    def said(self, cell: int) -> str:
        """A cell in words."""
        if cell == self.outside:
            return "outside the box"
        parts = zip(self.names, self.ranges(cell), strict=True)
        return ", ".join(f"{name} {low:.6g} … {high:.6g}" for name, (low, high) in parts)

    def beyond(self, x: FloatArray, low: Any = None, high: Any = None) -> str:
        """Which coordinates of a point are not in a box, in words; without one, the box of all cells."""
        low = [edge[0] for edge in self.edges] if low is None else low
        high = [edge[-1] for edge in self.edges] if high is None else high
        parts = zip(self.names, x, low, high, strict=True)
        off = [f"{name} {v:.9g} is not within {a:.9g} … {b:.9g}" for name, v, a, b in parts if not a <= v <= b]
        return ", ".join(off)

    def meets(self, box: Mapping[str, Range], cells: IntArray) -> BoolArray:
        """(P,) which of these cells meet an open box, given by the ranges of some coordinates."""
        meets, (low, high) = np.ones(len(cells), bool), self.bounds(cells)
        for d, (least, most) in enumerate(self.open_box(box)):
            meets &= (high[d] > least) & (low[d] < most)
        return meets

    def open_box(self, box: Mapping[str, Range]) -> list[tuple[float, float]]:
        """The range of each coordinate: infinite at open ends, and for coordinates that are not named."""
        if not isinstance(box, Mapping):
            raise InvalidInput("a range names its coordinate", got=shown(box), fix="Give {name: (low, high)}.")
        for name in box:
            if name not in self.names:
                raise InvalidInput("no such coordinate", got=repr(name), fix=nearest(name, self.names, "There are"))
        return [_range(name, box.get(name, (None, None))) for name in self.names]

    def in_order(self, what: str, given: Any) -> Any:
        """Values given by coordinate name, put in order; anything else is returned unchanged."""
        if not isinstance(given, Mapping):
            return given
        if odd := sorted(map(str, set(self.names) ^ set(given))):
            fix = f"They are {', '.join(self.names)}."
            raise InvalidInput(f"{what} must name every coordinate", got=f"missing or unknown: {odd}", fix=fix)
        return [given[name] for name in self.names]

    def point(self, what: str, given: Any) -> FloatArray:
        """(n,) a point given by name or in order. Text and truth values are no coordinates."""
        numbers = plain(self.in_order(what, given))
        if numbers is None:
            fix = NUMBERS if self.dim == 1 else self._listed
            raise InvalidInput(f"{what} must be numbers", got=f"{given!r:.100}", fix=fix)
        x = numbers.reshape(-1)
        if x.shape != (self.dim,) or not np.isfinite(x).all():
            count = "a finite number" if self.dim == 1 else f"{self.dim} finite numbers"
            raise InvalidInput(f"{what} must be {count}", got=f"{given!r:.100}", fix=self._listed)
        return x

    @property
    def _listed(self) -> str:
        return f"Give [{', '.join(self.names)}]."


def _range(name: str, given: Any) -> tuple[float, float]:
    """(low, high), infinite at an open end. An empty range is refused, since it would forbid nothing."""
    where, fix = f"coordinate {name!r}", "Give (low, high), with None for an end that is open."
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InvalidInput("a range has two ends", where=where, got=shown(given), fix=fix)
    low, high = (
        open_end if end is None else real("the end of a range", end, where)
        for end, open_end in zip(given, (-np.inf, np.inf), strict=True)
    )
    if not low < high:  # nor with a NaN
        raise InvalidInput("a range goes from low to high", where=where, got=shown(given), fix=fix)
    return low, high


def make_cells(state: Mapping[str, Any]) -> Cells:
    """The cells of ``state``: per coordinate ``(low, high, number of cells)``, or a list or array of edges; where an
    end is None, ``(low, high, width of a cell)``."""
    if not isinstance(state, Mapping) or not state:
        raise InvalidInput("state must name its coordinates", got=f"{state!r:.100}", fix="Give {name: (low, high, n)}.")
    endless = [name for name, value in state.items() if _has_no_end(value)]
    listed = {name: freeze(_edges(name, value)) for name, value in state.items() if name not in endless}
    room = MOST_CELLS // math.prod(len(edge) - 1 for edge in listed.values())
    most = min(int(room ** (1.0 / max(len(endless), 1))), 1 << 50)
    found = {name: listed[name] if name in listed else _endless(name, state[name], most) for name in state}
    return Cells(tuple(map(str, state)), tuple(found.values()))


def _size(edge: Edges) -> float:
    """The size of a coordinate's values, for rounding errors."""
    return abs(edge.origin) + edge.width if isinstance(edge, Endless) else float(np.abs(edge).max() + np.ptp(edge))


def _has_no_end(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, tuple) and None in value[:2])


def _endless(name: str, value: Any, most: int) -> Endless:
    where, fix = f"coordinate {name!r}", "Give (low, None, width), (None, high, width) or (None, None, width)."
    try:
        if isinstance(value, dict):  # from a study's file
            return Endless(**value)
        low, high, width = value
        origin = 0.0 if low is None and high is None else float(high if low is None else low)
        wide = float(width)
    except (TypeError, ValueError):
        raise InvalidInput("not the cells of a coordinate", where=where, got=f"{value!r:.80}", fix=fix) from None
    if not (math.isfinite(origin) and math.isfinite(wide) and wide > 0.0):
        raise InvalidInput(
            "an endless coordinate has cells of some width above 0", where=where, got=f"{value!r:.80}", fix=fix
        )
    if most < 1000:
        fix = "Give some of the coordinates both ends."
        raise InvalidInput("too many coordinates without an end", where=where, got=f"{most} cells for each", fix=fix)
    zero = most // 2 if low is None and high is None else most * (low is None)
    return Endless(origin, wide, most, zero)


def _edges(name: str, value: Any) -> FloatArray:
    where, fix = f"coordinate {name!r}", "Give (low, high, number of cells), or a list of the cells' edges."
    try:
        if isinstance(value, tuple):
            low, high, number = value
            if isinstance(number, bool) or int(number) != number or number < 1:
                rule = "the number of cells must be a whole number of at least 1"
                raise InvalidInput(rule, where=where, got=repr(number), fix=fix)
            edges = _evenly(float(low), float(high), int(number))
        else:
            edges = np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("not the cells of a coordinate", where=where, got=f"{value!r:.80}", fix=fix) from None
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise InvalidInput("the edges of cells must increase", where=where, got=f"{value!r:.80}", fix=fix)
    return edges


def _evenly(low: float, high: float, number: int) -> FloatArray:
    """Even edges as one would write them, to twelve digits of a cell's width. An edge of 0.7000000000000001 would let a
    range that is forbidden from 0.7 on forbid the cell below it."""
    edges, width = np.linspace(low, high, number + 1), (high - low) / number
    if 0.0 < width < math.inf:
        digits, size = 12 - math.floor(math.log10(width)), math.floor(math.log10(max(abs(low), abs(high))))
        if digits <= min(15 - size, 300):  # else a double does not hold so many
            edges[1:-1] = np.round(edges[1:-1], digits)
    return edges


@dataclass(frozen=True, eq=False)
class Inputs:
    """The grid of inputs: every combination of the levels of each."""

    names: tuple[str, ...]
    values: tuple[Any, ...]  # U: numbers, or tuples where there are several inputs

    def __len__(self) -> int:
        return len(self.values)

    def index(self, value: Any) -> int:
        """The index of an input; an input that is not on the grid is refused."""
        wanted = tuple(map(float, np.atleast_1d(np.asarray(value, np.float64)))) if _numeric(value) else None
        for i, own in enumerate(self.values):
            if wanted is not None and wanted == tuple(map(float, np.atleast_1d(own))):
                return i
        raise InvalidInput("no such input", got=f"{value!r:.80}", fix=f"The inputs are {self.said()}.")

    def between(self, centre: int, number: int, intensity: float) -> Any:
        """The input at an intensity along the ray from one input of the grid to another; exact at both ends."""
        zero, one = self.values[centre], self.values[number]
        if intensity == 1.0 or intensity == 0.0:
            return one if intensity else zero
        ends = zip(np.atleast_1d(zero).tolist(), np.atleast_1d(one).tolist(), strict=True)
        found = tuple((1.0 - intensity) * low + intensity * high for low, high in ends)
        return found if isinstance(one, tuple) else found[0]

    def along(self, centre: int, value: Any) -> tuple[int, float]:
        """(number, intensity) of an input: on the grid, or on the shortest ray from the centre that contains it. An
        input on no ray is refused."""
        grid = np.array([np.atleast_1d(own) for own in self.values])
        wanted = np.asarray(value, np.float64).reshape(-1) if _numeric(value) else np.empty(0)
        if wanted.shape == grid.shape[1:] and not (wanted == grid).all(axis=1).any():
            off, ways = wanted - grid[centre], grid - grid[centre]
            lengths = (ways * ways).sum(axis=1)
            share = (ways @ off) / np.where(lengths > 0.0, lengths, np.inf)
            beside = np.abs(off - share[:, None] * ways).max(axis=1) <= CELL * np.abs(grid).max()
            fits = np.flatnonzero(beside & (share > 0.0) & (share < 1.0))
            if len(fits):
                number = int(fits[lengths[fits].argmin()])
                return number, float(share[number])
            rule, fix = "no such input", f"Give one on the line from {self.values[centre]!r} to one of {self.said()}."
            raise InvalidInput(rule, got=f"{value!r:.80}", fix=fix)
        return self.index(value), 1.0

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
            raise InvalidInput(
                "the levels of an input must be different numbers", where=repr(name), got=f"{levels!r:.80}"
            )
        axes.append([float(level) for level in levels])
    if len(axes) == 1:
        return Inputs(tuple(map(str, inputs)), tuple(axes[0]))
    grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    return Inputs(tuple(map(str, inputs)), tuple(map(tuple, grid.tolist())))
