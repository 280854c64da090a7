"""Checks measured costs, for agents, studies and logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, owner
from surefoot.model.features import Features
from surefoot.model.labels import shown
from surefoot.model.layer import NO_ROW, Layer
from surefoot.model.problem import Problem
from surefoot.model.reals import vector
from surefoot.model.sparse_rows import SparseRows
from surefoot.tolerances import LENGTH

Cost = float | Sequence[float] | FloatArray | None
"""A measured cost: one number per limit, or a plain number if there is one limit; None if it was not measured."""

_NUMBERS = (int, float, np.integer, np.floating)


def measured(problem: Problem, cost: Any, where: str) -> tuple[list[float] | None, list[str] | None]:
    """(cost, raw): one finite number per limit; (None, texts) if one is not finite; (None, None) if not measured.

    Anything but a list of the right length is refused: that is a mistake of the caller, not of the plant.
    """
    if cost is None:
        return None, None
    m = len(problem.limits)
    if isinstance(cost, np.ndarray):
        cost = cost.tolist()
    values = list(cost) if isinstance(cost, (list, tuple)) else [cost]
    each = ", ".join(limit.name for limit in problem.limits)
    fix = f"Give one number for each limit, in this order: {each}." if m > 1 else f"Give one number, of {each}."
    for value in values:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, _NUMBERS):
            if value is None or isinstance(value, str):
                fix = "A cost is measured for every limit, or None." if value is None else "Give it without quotes."
            raise InvalidInput("a cost must be a number", where=where, got=shown(value), fix=fix)
    if len(values) != m:
        got = f"{shown(cost)}: {len(values)} where {m} {'is' if m == 1 else 'are'} expected"
        raise InvalidInput("wrong number of costs", where=where, got=got, fix=fix)
    try:
        numbers = [float(value) for value in values]
    except OverflowError:
        raise InvalidInput("a cost is too large to be a number", where=where, got=shown(cost)) from None
    if all(map(math.isfinite, numbers)):
        return numbers, None
    return None, [repr(number) for number in numbers]


def finite_cost(problem: Problem, cost: Any, where: str) -> FloatArray | None:
    """(m,) a measured cost of finite numbers, or None."""
    numbers, raw = measured(problem, cost, where)
    if raw is not None:
        raise InvalidInput("a cost is not finite", where=where, got=shown(cost))
    return None if numbers is None else np.array(numbers)


def measured_features(problem: Problem, layer: Layer, edge: int, given: Any, place: object) -> Features:
    """A table of one row: the features of a cost that was measured on an edge, given or declared (spec 9).

    If a pair has several cost rows, none of them is the one that was measured, so the features must be given.
    """
    if given is None:
        row = layer.row_of(edge)
        if row == NO_ROW:
            raise InvalidInput(
                "the features of a measured cost are missing",
                where=str(place),
                got="the action has several cost rows, and none of them is what was measured",
                fix="Pass features=, the cost features at the exact state.",
            )
        return layer.cost_features[row : row + 1]
    where = str(place)
    x = vector("features", given, problem.graph.cost_dim, where)
    if not np.isfinite(x).all():
        raise InvalidInput("features are not finite", where=where, got=shown(x.tolist()))
    length, longest = float(np.linalg.norm(x)), problem.graph.largest_cost_norm()
    if length > longest * (1.0 + LENGTH):
        raise InvalidInput(
            "features are longer than any that is declared",
            where=where,
            got=f"{length!r}, declared are up to {longest!r}",
            fix="Bounds rely on the declared rows: their convex hull must contain whatever can be measured.",
        )
    return _sparse(layer, edge, x, where) if isinstance(layer.cost_features, SparseRows) else x[None, :]


def _sparse(layer: Layer, edge: int, x: FloatArray, where: str) -> SparseRows:
    """The row (dc,) as a sparse table; it may only use columns of its pair's rows."""
    assert isinstance(layer.cost_features, SparseRows)
    pair = owner(layer.pair_ptr, edge)
    own = layer.cost_features[layer.own_rows(pair)]
    columns = np.flatnonzero(x).astype(np.int32)
    odd = np.setdiff1d(columns, own.columns)
    if len(odd):
        got, fix = f"column {int(odd[0])}", "Declare a row of the action that has it."
        raise InvalidInput("features have a column that no row of the action has", where=where, got=got, fix=fix)
    return SparseRows(np.array([0, len(columns)]), columns, x[columns], len(x))
