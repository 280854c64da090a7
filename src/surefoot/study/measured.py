"""What a caller may give as a cost, and how it is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.labels import shown
from surefoot.model.problem import Problem

_NUMBERS = (int, float, np.integer, np.floating)


def measured(problem: Problem, cost: Any, where: str) -> tuple[list[float] | None, list[str] | None]:
    """(cost, raw): one finite number per limit; (None, text) when one is not finite; (None, None) when not measured.

    What is no list of so many numbers at all is refused: that is a mistake of the caller, not of the plant.
    """
    if cost is None:
        return None, None
    m = len(problem.limits)
    if isinstance(cost, np.ndarray):
        cost = cost.tolist()
    values = list(cost) if isinstance(cost, (list, tuple)) else [cost]
    if len(values) != m:
        raise InvalidInput("wrong number of costs", where=where, got=f"{shown(cost)}: {len(values)}, expected {m}")
    for value in values:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, _NUMBERS):
            fix = "A cost is measured for every limit, or None." if value is None else "Give a number, without quotes."
            raise InvalidInput("a cost must be a number", where=where, got=shown(value), fix=fix)
    try:
        numbers = [float(value) for value in values]
    except OverflowError:
        raise InvalidInput("a cost is too large to be a number", where=where, got=shown(cost)) from None
    if all(map(math.isfinite, numbers)):
        return numbers, None
    return None, [repr(number) for number in numbers]
