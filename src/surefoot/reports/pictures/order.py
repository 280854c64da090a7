"""In which order states stand in a column."""

from __future__ import annotations

from surefoot.model.labels import Label
from surefoot.model.problem import Problem


def state_rows(problem: Problem) -> list[list[float]]:
    """Per step the row of every state, 0 on top. Numbers, and tuples of numbers, stand in the same row of every step,
    by size; a column with any other label stands in its own order, in the middle."""
    columns = [[names[i] for i in range(len(names))] for names in problem.naming.states]
    by_size = [all(_numbers(label) is not None for label in column) for column in columns]
    shared = {label for column, numeric in zip(columns, by_size, strict=True) if numeric for label in column}
    rank = {label: float(row) for row, label in enumerate(sorted(shared, key=lambda label: _numbers(label) or ()))}
    high = max([len(rank), *(len(c) for c, numeric in zip(columns, by_size, strict=True) if not numeric)])
    rows = []
    for column, numeric in zip(columns, by_size, strict=True):
        rows.append([rank[label] if numeric else (high - len(column)) / 2 + i for i, label in enumerate(column)])
    return rows


def _numbers(label: Label) -> tuple[float, ...] | None:
    parts = label if isinstance(label, tuple) else (label,)
    return tuple(map(float, parts)) if all(isinstance(part, (int, float)) for part in parts) else None
