"""Calls a user's function for many points at once.

If possible, a function of (h, x, u) is called once with x as an array (n, P) of P points. Its result must have a column
per point, and agree at three of them with a call for that point (n,) alone. A function that branches on a number, or
uses :mod:`math`, is called point by point, which is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.tolerances import FEATURE

_TRIED = 3


class Call:
    """A user's function, its name for error messages, and how many values it must return (None: as at first)."""

    def __init__(self, name: str, function: Callable[..., Any], values: int | None) -> None:
        self.name, self.function, self.values = name, function, values
        self.by_point = False  #: True once it is known to take only one point at a time

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
        for i in sorted({0, n // 2, n - 1})[:_TRIED]:
            alone = self.one(h, x[:, i], *rest)
            if not np.allclose(found[:, i], alone, rtol=FEATURE, atol=FEATURE * max(1.0, float(np.abs(alone).max()))):
                return None
        return np.ascontiguousarray(found)


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
