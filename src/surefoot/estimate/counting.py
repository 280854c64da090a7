"""Compiled: one step's cost and transition enter the statistics, for dense and for sparse features.

The step-by-step path and the compiled roll-out both call this. Which kind it is, numba sees by type: a dense table is
an array, a sparse one a tuple of arrays. A function that raises NotImplementedError here has its two bodies in the
``overload`` below it, which only compiled code reaches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from surefoot.estimate.block_rows import BlockState, add_block_row, block_value_row, cost_row
from surefoot.estimate.ridge import BankState
from surefoot.estimate.rows import add_row, has_grown, project, value_row
from surefoot.model.features import FeatureArray, Features
from surefoot.model.graph import FloatArray, IntArray
from surefoot.model.sparse_rows import RowParts, SparseRows

Table = FeatureArray | RowParts


class CostState(NamedTuple):
    """The cost regressions, and room to work in."""

    regression: NDArray[np.int64]  # (H,)  that of a layer
    anchors: FloatArray  # (H, dc)  x⁰, zero where there is no anchor
    directions: FloatArray  # (H, dc)  x⁰/‖x⁰‖²
    anchor_costs: FloatArray  # (H, m)  c⁰
    spread: FloatArray  # (R,)  Σ (1 + |ρ|)²
    bank: BankState | BlockState
    z: FloatArray
    rest: FloatArray  # (m,)


class ValueState(NamedTuple):
    """The value regressions, and room to work in."""

    regression: NDArray[np.int64]  # (H-1,)
    bank: BankState | BlockState
    phi_v: FloatArray
    target: FloatArray  # (1,)


def compiled(table: Features) -> Table:
    """The table as compiled code takes it."""
    return table.parts if isinstance(table, SparseRows) else table


def _enter_cost(
    table: Table,
    e: int,
    cost: FloatArray,
    h: int,
    r: int,
    anchors: FloatArray,
    directions: FloatArray,
    anchor_costs: FloatArray,
    bank: BankState | BlockState,
    z: FloatArray,
    rest: FloatArray,
) -> float:
    """Row e of the table with a measured cost (m,) enters regression r; → ρ."""
    raise NotImplementedError


@overload(_enter_cost, inline="always")
def _(
    table: Any,
    e: Any,
    cost: Any,
    h: Any,
    r: Any,
    anchors: Any,
    directions: Any,
    anchor_costs: Any,
    bank: Any,
    z: Any,
    rest: Any,
) -> Any:
    def dense(
        table: Any,
        e: Any,
        cost: Any,
        h: Any,
        r: Any,
        anchors: Any,
        directions: Any,
        anchor_costs: Any,
        bank: Any,
        z: Any,
        rest: Any,
    ) -> float:
        rho = project(table, e, cost, h, anchors, directions, anchor_costs, z, rest)
        gram, gram_low, targets, targets_low, factor, log_det, rows = bank
        add_row(r, gram, gram_low, targets, targets_low, factor, log_det, rows, z, rest)
        return rho

    def sparse(
        table: Any,
        e: Any,
        cost: Any,
        h: Any,
        r: Any,
        anchors: Any,
        directions: Any,
        anchor_costs: Any,
        bank: Any,
        z: Any,
        rest: Any,
    ) -> float:
        rho, b = cost_row(table, e, r, anchors[h], directions[h], bank.shape, z)
        for j in range(cost.shape[0]):
            rest[j] = cost[j] - rho * anchor_costs[h, j]
        add_block_row(r, b, bank, z, rest)
        return rho

    return sparse if isinstance(table, types.BaseTuple) else dense


@numba.njit(cache=True, inline="always")
def count_cost(
    table: Table,
    e: int,
    cost: FloatArray,
    h: int,
    # a CostState, one by one: compiled code counts references to what it takes out of a tuple, each time
    regression: IntArray,
    anchors: FloatArray,
    directions: FloatArray,
    anchor_costs: FloatArray,
    spread: FloatArray,
    bank: BankState | BlockState,
    z: FloatArray,
    rest: FloatArray,
) -> None:
    """Count the measured cost (m,) of row e of a table of features, seen at layer h (spec 3)."""
    r = regression[h]
    part = 1.0 + abs(_enter_cost(table, e, cost, h, r, anchors, directions, anchor_costs, bank, z, rest))
    spread[r] += part * part


def _enter_value(
    table: Table,
    row: int,
    successor: IntArray,
    begin: int,
    first: int,
    end: int,
    value: FloatArray,
    offset: int,
    r: int,
    bank: BankState | BlockState,
    phi_v: FloatArray,
    target: FloatArray,
) -> None:
    """φ_V of edges first … end-1, with its target (1,), enters regression r."""
    raise NotImplementedError


@overload(_enter_value, inline="always")
def _(
    table: Any,
    row: Any,
    successor: Any,
    begin: Any,
    first: Any,
    end: Any,
    value: Any,
    offset: Any,
    r: Any,
    bank: Any,
    phi_v: Any,
    target: Any,
) -> Any:
    def dense(
        table: Any,
        row: Any,
        successor: Any,
        begin: Any,
        first: Any,
        end: Any,
        value: Any,
        offset: Any,
        r: Any,
        bank: Any,
        phi_v: Any,
        target: Any,
    ) -> None:
        value_row(table, row, successor, begin, first, end, value, offset, phi_v)
        gram, gram_low, targets, targets_low, factor, log_det, rows = bank
        add_row(r, gram, gram_low, targets, targets_low, factor, log_det, rows, phi_v, target)

    def sparse(
        table: Any,
        row: Any,
        successor: Any,
        begin: Any,
        first: Any,
        end: Any,
        value: Any,
        offset: Any,
        r: Any,
        bank: Any,
        phi_v: Any,
        target: Any,
    ) -> None:
        b = block_value_row(table, row, successor, begin, first, end, value, offset, r, bank.shape, phi_v)
        add_block_row(r, b, bank, phi_v, target)

    return sparse if isinstance(table, types.BaseTuple) else dense


@numba.njit(cache=True, inline="always")
def count_value(
    table: Table,
    row: int,  # where the layer's rows begin in the table
    successor: IntArray,
    begin: int,  # where its successors begin
    first: int,
    end: int,
    edge: int,
    value: FloatArray,
    offset: int,  # where the next layer's values begin
    h: int,
    # a ValueState, one by one
    regression: IntArray,
    bank: BankState | BlockState,
    phi_v: FloatArray,
    target: FloatArray,
) -> None:
    """Count the transition along an edge, one of edges first … end-1 of its pair, at layer h (spec 6)."""
    target[0] = value[offset + successor[begin + edge]]
    _enter_value(table, row, successor, begin, first, end, value, offset, regression[h], bank, phi_v, target)


def _grown(bank: Any, planned: FloatArray, threshold: float) -> bool:
    raise NotImplementedError


@overload(_grown, inline="always")
def _(bank: Any, planned: Any, threshold: Any) -> Any:
    def dense(bank: Any, planned: Any, threshold: Any) -> bool:
        return has_grown(bank[5], planned, threshold)

    def sparse(bank: Any, planned: Any, threshold: Any) -> bool:
        return has_grown(bank.log_det, planned, threshold)

    return sparse if isinstance(bank, types.BaseNamedTuple) else dense


@numba.njit(cache=True, inline="always")
def bank_has_grown(bank: BankState | BlockState, planned: FloatArray, threshold: float) -> bool:
    """True when some log det of a bank's regressions has grown by more than the threshold since it was planned."""
    return _grown(bank, planned, threshold)
