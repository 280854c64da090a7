"""What a caller may give as a measured cost. Agents and studies have this one check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.graph import FloatArray
from surefoot.model.labels import shown
from surefoot.model.problem import Problem

Cost = float | Sequence[float] | FloatArray | None
"""A measured cost: a number when there is one limit, one number per limit otherwise; None: not measured."""

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
    for value in values:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, _NUMBERS):
            fix = "A cost is measured for every limit, or None." if value is None else "Give a number, without quotes."
            raise InvalidInput("a cost must be a number", where=where, got=shown(value), fix=fix)
    if len(values) != m:
        got = f"{shown(cost)}: {len(values)} where {m} are expected"
        raise InvalidInput("wrong number of costs", where=where, got=got)
    try:
        numbers = [float(value) for value in values]
    except OverflowError:
        raise InvalidInput("a cost is too large to be a number", where=where, got=shown(cost)) from None
    if all(map(math.isfinite, numbers)):
        return numbers, None
    return None, [repr(number) for number in numbers]


def finite_cost(problem: Problem, cost: Any, where: str) -> FloatArray | None:
    """(m,) a measured cost whose every number is finite, or None."""
    numbers, raw = measured(problem, cost, where)
    if raw is not None:
        raise InvalidInput("a cost is not finite", where=where, got=shown(cost))
    return None if numbers is None else np.array(numbers)
