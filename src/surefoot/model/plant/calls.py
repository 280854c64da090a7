"""Calls a user's function for many points at once.

If possible, a function of (h, x, u) is called once with x as an array (n, P) of P points. Its result must have a column
per point, and agree with calls for single points (n,): at 64 of them at first, and then in every call at both ends and
at three others, new ones each time. A function that branches on a number, or uses :mod:`math`, is called point by
point, which is slower. One that disagrees only after results for many points were used is refused: those may be wrong,
too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.tolerances import CELL, FEATURE

_AT_FIRST, _LATER = 64, 3  # points that are compared
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)  # its multiples, modulo 1, are spread evenly however many there are


class Call:
    """A user's function, its name for error messages, and how many values it must return (None: as at first)."""

    def __init__(self, name: str, function: Callable[..., Any], values: int | None) -> None:
        self.name, self.function, self.values = name, function, values
        self.by_point = False  #: True once it is known to take only one point at a time
        self._compared, self._relied_on = 0, False  # points compared; was a result given of which some were not?

    def at(self, h: int, x: FloatArray, *rest: Any) -> FloatArray:
        """(values, P) of points (n, P)."""
        if x.shape[1] == 1:
            return self.one(h, x[:, 0], *rest)[:, None]
        if not self.by_point:
            found = self._together(h, x, *rest)
            if found is not None:
                return found
            self.by_point = True
        return np.stack([self.one(h, x[:, i], *rest) for i in range(x.shape[1])], axis=1)

    def one(self, h: int, x: FloatArray, *rest: Any) -> FloatArray:
        """(values,) of one point (n,)."""
        given = self.function(h, x.copy(), *rest)  # it may change what it is given
        try:
            values = np.array([_number(part) for part in _values(given)])
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        if not len(values):
            raise InvalidInput(f"{self.name} must give numbers", where=said(h, x), got=f"{given!r:.100}")
        if self.values is None:
            self.values = len(values)
        if values.shape != (self.values,):
            got = f"{len(values)} values where {self.values} are expected"
            raise InvalidInput(f"{self.name} gives the wrong number of values", where=said(h, x), got=got)
        if not np.isfinite(values).all():
            raise InvalidInput(f"{self.name} must give finite numbers", where=said(h, x), got=repr(values.tolist()))
        return values

    def _together(self, h: int, x: FloatArray, *rest: Any) -> FloatArray | None:
        """The result of one call for all points; None if the function cannot be called that way."""
        n = x.shape[1]
        if self.values is None:
            self.one(h, x[:, 0], *rest)
        try:
            with np.errstate(all="ignore"):
                given = self.function(h, x.copy(), *rest)
                parts = [np.asarray(part, np.float64) for part in _columns(given, self.values)]
            found = np.stack([np.broadcast_to(part, (n,)) for part in parts])
        except Exception:  # a real error will come up again when it is called point by point
            return None
        if found.shape != (self.values, n) or not np.isfinite(found).all():
            return None
        sizes = np.abs(found).max(axis=1)
        chosen = self._chosen(n)
        for i in chosen:
            alone = self.one(h, x[:, i], *rest)
            if (np.abs(found[:, i] - alone) > FEATURE * sizes + CELL * max(1.0, float(sizes.max()))).any():
                self._refuse_late(h, x[:, i], found[:, i], alone)
                return None
        self._relied_on |= len(chosen) < n
        return np.ascontiguousarray(found)

    def _chosen(self, n: int) -> list[int]:
        """The points of the next n that are compared."""
        count = max(_AT_FIRST - self._compared, _LATER)
        if n <= count:
            self._compared += n
            return list(range(n))
        spread = (np.arange(self._compared, self._compared + count) * _GOLDEN % 1.0 * n).astype(np.int64)
        self._compared += count
        return sorted({0, n - 1, *spread.tolist()})

    def _refuse_late(self, h: int, x: FloatArray, together: FloatArray, alone: FloatArray) -> None:
        """Refuse a function that disagrees with itself, if some of its results were used without a comparison."""
        if not self._relied_on:
            return
        got = f"{together.tolist()} among others, {alone.tolist()} alone"
        fix = "Write it for x of shape (coordinates, states), or let it refuse arrays: x = [float(v) for v in x]."
        raise InvalidInput(f"{self.name} gives a state another value among others", where=said(h, x), got=got, fix=fix)


def _number(part: Any) -> Any:
    """One number; a text is none."""
    if np.asarray(part).dtype.kind in "SU":
        raise TypeError
    return np.asarray(part, np.float64).reshape(())


def _values(given: Any) -> list[Any]:
    """The values at one point: the entries of a list or a one-dimensional array, else the number itself."""
    return list(given) if isinstance(given, (list, tuple)) or np.ndim(given) == 1 else [given]


def _columns(given: Any, values: int | None) -> list[Any]:
    """The values at many points, as rows: a list, or a 2-d array; a 1-d array holds a single value per point."""
    if isinstance(given, (list, tuple)) or np.ndim(given) == 2 or (np.ndim(given) == 1 and values != 1):
        return list(given)
    return [given]


def said(h: int, x: FloatArray) -> str:
    return f"step {h}, state {[round(float(v), 9) for v in x]}"
