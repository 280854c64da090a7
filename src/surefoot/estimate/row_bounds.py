"""Bounds of the rows of a table that is too large to keep all of them: computed on demand, some rows at a time.

A row's bounds do not depend on other rows, so they equal those of a table in memory, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from surefoot.estimate.kernels import enough
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.storage.raw_arrays import expect
from surefoot.threads import in_ranges

BLOCK = 1 << 17  #: rows at a time, few enough to stay in the cache for the next use
UPPER, LOWER = 0, 1
SEEN, KEPT = 1, (2, 4)  #: of a row: it has been looked at; its upper, and its lower bounds keep the limits

Both = tuple[FloatArray, FloatArray]
Bounding = Callable[[Features], Both]
"""Rows of features (n, dc) → their upper and lower bounds, each (n, m)."""


class RowBounds:
    """Upper and lower bounds of a table's rows, ``limits`` (H, m).

    The last rows that somebody asked for are kept, because they are usually requested again. It is also kept, in a byte
    per row and set of limits, whether the row's upper and lower bounds are within the limits of a step, so steps that
    share the table and the limits do not compute the bounds again.
    """

    def __init__(self, x: Features, limits: FloatArray, bounding: Bounding) -> None:
        self._x, self._bounding = x, bounding
        self.shape = (len(x), limits.shape[1])
        self._limits = np.unique(limits, axis=0)
        self._verdicts = np.zeros((len(self._limits), len(x)), np.uint8)
        self.block = BLOCK
        self._kept: tuple[int, int, Both] | None = None

    def between(self, first: int, end: int) -> Both:
        """Of the rows first … end-1."""
        kept = self._kept
        if kept is None or not (kept[0] <= first and end <= kept[1]):
            kept = self._kept = first, end, self._bounding(self._x[first:end])
        low, _, (upper, lower) = kept
        return upper[first - low : end - low], lower[first - low : end - low]

    def of(self, rows: IntArray) -> Both:
        """Of some rows, in any order."""
        upper, lower = (np.empty((len(rows), self.shape[1])) for _ in range(2))
        for first in range(0, len(rows), self.block):
            own = slice(first, first + self.block)
            upper[own], lower[own] = self._bounding(self._x[rows[own]])
        return upper, lower

    def blocks(self) -> Iterator[Both]:
        for first in range(0, self.shape[0], self.block):
            expect(self._x, first + self.block, first + 2 * self.block)
            yield self.between(first, min(self.shape[0], first + self.block))

    def look(self, rounding: FloatArray) -> bool:
        """Go once through all rows. → True: no lower bound exceeds its upper by more than rounding (m,); False for a
        NaN."""
        fine = True
        for first in range(0, self.shape[0], self.block):
            expect(self._x, first + self.block, first + 2 * self.block)
            rows = slice(first, min(self.shape[0], first + self.block))
            fine &= self.look_at(rows, self._x[rows], rounding)
        return fine

    def look_at(self, rows: slice, x: Features, rounding: FloatArray) -> bool:
        """Likewise of some rows, which are x, unless all was well with them before; several threads may look at
        different rows."""
        verdicts = self._verdicts[:, rows]
        if verdicts.all():
            return True
        both = self._bounding(x)
        fine = possible(*both, rounding)
        if fine:
            _judge(*both, self._limits, verdicts)
        return fine

    def kept(self, side: int, rows: slice, limits: FloatArray) -> BoolArray:
        """(n,) True where the bounds of one side keep the limits (m,) of a step; False for a NaN."""
        known = (self._limits == limits).all(axis=1)
        verdicts = self._verdicts[known, rows]
        if not (len(verdicts) and verdicts.all()):
            verdicts = np.empty((1, rows.stop - rows.start), np.uint8)
            _judge(*self.between(rows.start, rows.stop), limits[None], verdicts)
        kept: BoolArray = (verdicts[0] & KEPT[side]) != 0
        return kept


def streamed(table: object) -> BoundTable | None:
    """The table if it must be read in parts; None for an array."""
    return table if isinstance(table, BoundTable) else None


class BoundTable:
    """One side of :class:`RowBounds`, readable like an array (rows, m)."""

    ndim = 2

    def __init__(self, rows: RowBounds, side: int) -> None:
        self.rows, self._side = rows, side
        self.shape = rows.shape

    @property
    def block(self) -> int:
        return self.rows.block

    def kept(self, rows: slice, limits: FloatArray) -> BoolArray:
        """(n,) True where every limit (m,) is kept by the bounds of these rows; False for a NaN."""
        return self.rows.kept(self._side, rows, limits)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Indexed by a row, a slice, row numbers or a mask; a second index selects the column of a limit."""
        if isinstance(key, tuple):
            return self[key[0]][..., key[1]]
        if isinstance(key, slice):
            first, end, step = key.indices(self.shape[0])
            return self.rows.between(first, max(first, end))[self._side][:: step or 1]
        if isinstance(key, (int, np.integer)):
            row = range(self.shape[0])[int(key)]
            return self.rows.between(row, row + 1)[self._side][0]
        rows = np.asarray(key)
        return self.rows.of(np.flatnonzero(rows) if rows.dtype == bool else rows)[self._side]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """The whole table in memory, for small tables such as a snapshot's."""
        whole = np.concatenate([both[self._side] for both in self.rows.blocks()])
        return whole.astype(dtype, copy=False) if dtype is not None else whole


@numba.njit(cache=True, nogil=True)
def _judge(upper: FloatArray, lower: FloatArray, limits: FloatArray, verdicts: Any) -> None:
    """Writes verdicts (k, n): of k sets of limits (k, m), which of a row's bounds (n, m) keep them; never a NaN."""
    for k in range(limits.shape[0]):
        for row in range(upper.shape[0]):
            above, below = True, True
            for j in range(limits.shape[1]):
                above &= upper[row, j] <= limits[k, j]
                below &= lower[row, j] <= limits[k, j]
            verdicts[k, row] = SEEN + above * KEPT[UPPER] + below * KEPT[LOWER]


@numba.njit(cache=True, nogil=True)
def _crossed(upper: FloatArray, lower: FloatArray, rounding: FloatArray) -> bool:
    """In some row a lower bound (…, m) exceeds its upper bound beyond rounding (m,), or a bound is NaN."""
    wrong = False
    for row in range(upper.shape[0]):
        for j in range(upper.shape[1]):
            wrong |= not (lower[row, j] <= upper[row, j] + rounding[j])
    return wrong


def possible(upper: FloatArray, lower: FloatArray, rounding: FloatArray) -> bool:
    """No lower bound lies above its upper by more than rounding (m,); False for a NaN."""
    found: list[bool] = []

    def some(first: int, end: int) -> None:
        found.append(_crossed(upper[first:end], lower[first:end], rounding))

    in_ranges(len(upper), enough(2 * upper.size), some)
    return not any(found)
