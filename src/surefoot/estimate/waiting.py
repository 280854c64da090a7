"""Observations that wait and then enter both regressions in order, by one compiled call.

The result is that of :meth:`CostData.add` and :meth:`ValueData.add` one by one, bit for bit, in a fraction of the time:
calling compiled code takes longer than changing the few numbers of an observation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.costs import CostData
from surefoot.estimate.tables import COST_FEATURES, STATES, SUCCESSORS, TRANSITION_FEATURES, StepTables, step_tables
from surefoot.estimate.update import CostState, ValueState, count_cost, count_value
from surefoot.estimate.values import ValueData
from surefoot.jit import compiled
from surefoot.model.arrays import FloatArray
from surefoot.model.layer import NO_ROW
from surefoot.model.problem import Problem

ROOM = 256  #: observations that may wait
SHARE = 64  #: new observations are worth a look once they are a 64th of all
NOT_MEASURED = -1
# Columns of an observation: its step, its row of cost features, the edges of its pair and the one that was taken.
STEP, ROW, FIRST, END, EDGE = range(5)


@compiled
def enter(
    seen: NDArray[np.int64],  # (n, 5)
    costs: FloatArray,  # (n or more, m)
    tables: StepTables,
    value: FloatArray,  # of all states, step after step
    cost_state: CostState,
    value_state: ValueState,
) -> None:
    """Count n observations."""
    offsets, _, successor, _, cost_rows, transition_rows, last_rows = tables
    last = offsets.shape[0] - 1
    for i in range(seen.shape[0]):
        h, row = seen[i, STEP], seen[i, ROW]
        if row != NOT_MEASURED:
            if h == last:
                count_cost(last_rows, row, costs[i], h, cost_state)
            else:
                count_cost(cost_rows, offsets[h, COST_FEATURES] + row, costs[i], h, cost_state)
        if h < last:
            count_value(
                transition_rows,
                offsets[h, TRANSITION_FEATURES],
                successor,
                offsets[h, SUCCESSORS],
                seen[i, FIRST],
                seen[i, END],
                seen[i, EDGE],
                value,
                offsets[h + 1, STATES],
                h,
                value_state,
            )


class Waiting:
    """Up to ``ROOM`` observations that are not yet counted."""

    def __init__(self, problem: Problem, costs: CostData, transitions: ValueData) -> None:
        self._costs, self._transitions = costs, transitions
        self._tables = step_tables(problem.graph)
        self._seen: list[tuple[int, int, int, int, int]] = []
        self._measured = np.zeros((ROOM, len(problem.limits)))
        self._targets: Sequence[FloatArray] | None = None
        self._value = np.empty(0)
        self._new = self._looked_at = 0  # observations since the last :meth:`worth_a_look`, and before

    @property
    def n(self) -> int:
        """How many are waiting."""
        return len(self._seen)

    def worth_a_look(self) -> bool:
        """Are there enough observations, entered or not, since the last time that the answer was yes?"""
        many = SHARE * self._new >= min(self._looked_at, SHARE * ROOM)
        if many:
            self._new, self._looked_at = 0, self._looked_at + self._new
        return many

    @property
    def full(self) -> bool:
        return len(self._seen) == ROOM

    def add(self, step: int, row: int, first: int, end: int, edge: int, cost: FloatArray | None) -> None:
        """Add one: its row of cost features, the edges first … end-1 of its pair, the edge taken, its cost (m,)."""
        if cost is None or row == NO_ROW:
            row = NOT_MEASURED
        else:
            self._measured[len(self._seen)] = cost  # copied: the caller's array may change
        self._seen.append((step, row, first, end, edge))
        self._new += 1

    def enter(self, targets: Sequence[FloatArray]) -> None:
        """Count them; ``targets``: H of (S,), the values that transitions are learned from."""
        if targets is not self._targets:
            self._targets, self._value = targets, np.concatenate(targets)
        seen = np.array(self._seen, np.int64)
        self._seen.clear()
        states = self._costs.state, self._transitions.state
        enter(seen, self._measured, self._tables, self._value, *states)
