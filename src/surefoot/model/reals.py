"""Checks numbers that a user gives: they must be real. Text and complex numbers are never converted."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.labels import shown

_REAL = (Real, Decimal, np.bool_)


def reals(value: object) -> FloatArray | None:
    """The value as a new float64 array of the same shape; None unless it holds only real numbers."""
    try:
        given = np.asarray(value)
        kind = given.dtype.kind
        if kind not in "biufO" or (kind == "O" and not all(isinstance(x, _REAL) for x in given.flat)):
            return None
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def plain(value: object) -> FloatArray | None:
    """The same, but True is no number, neither alone nor among numbers."""
    given = value if isinstance(value, np.ndarray) else np.asarray(value, object)
    counted = given.dtype.kind in "iuf" or all(
        isinstance(x, (Real, Decimal)) and not isinstance(x, bool) for x in given.flat
    )
    return reals(given) if counted else None


NUMBERS = "Give plain numbers, without quotes."
_NUMBER = "Give a plain number, without quotes."
_FINITE = "Give a number that is surely large enough, such as one from a data sheet."


def real(what: str, value: object, where: str = "") -> float:
    """One number; NaN, infinity and truth values are allowed."""
    number = reals(value)
    if number is None or number.ndim:
        raise InvalidInput(f"{what} must be a number", where=where, got=shown(value), fix=_NUMBER)
    return float(number)


def constant(what: str, value: object, where: str = "") -> float:
    """One finite number; not True or False."""
    if isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{what} must be a number", where=where, got=repr(value), fix=_NUMBER)
    number = real(what, value, where)
    if not math.isfinite(number):
        fix = "Give the limit itself, in the unit of the cost." if what == "bound" else _FINITE
        raise InvalidInput(f"{what} is not finite", where=where, got=shown(value), fix=fix)
    return number


def vector(what: str, value: object, length: int | None, where: str) -> FloatArray:
    """A new flat float64 vector, of this length if one is given."""
    row = reals(value)
    if row is None or row.ndim != 1 or len(row) == 0:
        raise InvalidInput(
            f"{what} must be a list of numbers", where=where, got=shown(value), fix="Give [1.0, 0.5], say."
        )
    if length is not None and len(row) != length:
        raise InvalidInput(
            f"{what} has the wrong length",
            where=where,
            got=f"{len(row)} numbers where {length} are expected: {shown(value)}",
            fix="Give the same number of features everywhere, 0 for those that do not matter.",
        )
    return row
