"""What may be passed to a formula; a NaN never."""

from __future__ import annotations

import math

from surefoot import checks
from surefoot.errors import InvalidInput


def count(**values: int) -> None:
    """Whole numbers from 1 on."""
    for name, value in values.items():
        checks.whole(name, value, 1)


def decisions(horizon: int) -> None:
    """There is at least one decision."""
    checks.whole("horizon", horizon, 2)


def probabilities(**values: float) -> None:
    """Strictly within (0, 1)."""
    for name, value in values.items():
        checks.probability(name, value)


def positive(**values: float) -> None:
    for name, value in values.items():
        checks.at_least(name, value, 0.0, strictly=True)


def at_least_zero(**values: float) -> None:
    for name, value in values.items():
        checks.at_least(name, value, 0.0)


def all_finite(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise InvalidInput(f"{name} must be finite", got=repr(value))
