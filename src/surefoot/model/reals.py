"""Numbers that a user gives: real ones, or refused by name. A text or a complex number is never converted."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.graph import FloatArray
from surefoot.model.labels import shown

_REAL = (Real, Decimal, np.bool_)


def reals(value: object) -> FloatArray | None:
    """The value as float64 in its own shape and memory; None unless it holds real numbers alone."""
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
_FINITE = "Give a number that is large enough, such as a bound on it from a data sheet."


def real(what: str, value: object, where: str = "") -> float:
    """One number; a NaN, an infinity and a truth value are numbers here."""
    number = reals(value)
    if number is None or number.ndim:
        raise InvalidInput(f"{what} must be a number", where=where, got=shown(value), fix=_NUMBER)
    return float(number)


def constant(what: str, value: object, where: str = "") -> float:
    """One finite number; True is a mistake here."""
    if isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{what} must be a number", where=where, got=repr(value), fix=_NUMBER)
    number = real(what, value, where)
    if not math.isfinite(number):
        fix = "Give the limit itself, in the unit of the cost." if what == "bound" else _FINITE
        raise InvalidInput(f"{what} is not finite", where=where, got=shown(value), fix=fix)
    return number


def vector(what: str, value: object, length: int | None, where: str) -> FloatArray:
    """A flat float64 vector of its own, of this length if one is given."""
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
            fix="Give as many numbers everywhere, 0 where a feature plays no part.",
        )
    return row
