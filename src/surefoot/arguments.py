"""Checks of plain arguments: the value itself, or an error that names it."""

from __future__ import annotations

import math

import numpy as np

from surefoot.errors import InvalidInput


def at_least(name: str, value: float, least: float, *, strictly: bool = False) -> float:
    """A finite number ≥ least (or > least), or an error that names it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a number", got=repr(value)) from None
    if not math.isfinite(number) or number < least or (strictly and number == least):
        raise InvalidInput(f"{name} must be {'above' if strictly else 'at least'} {least:g}", got=repr(value))
    return number


def probability(name: str, value: float) -> float:
    number = at_least(name, value, 0.0, strictly=True)
    if number >= 1:
        raise InvalidInput(f"{name} must be below 1", got=repr(value))
    return number


def whole(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}", got=repr(value))
    return int(value)
