"""Where states stand in a picture: in columns by step, or, where they are places, on a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.model.labels import Label
from surefoot.model.problem import Problem
from surefoot.reports.wording import wording_of


@dataclass(frozen=True)
class Placing:
    """A place for every state of every step, all steps concatenated."""

    places: Sequence[tuple[float, float, int]]  # x, y downward, and which panel
    x_label: str
    y_label: str
    panels: tuple[str, ...] = ("",)
    is_map: bool = True  # one step at a time; else all steps side by side


def placing_of(problem: Problem, world: str | None) -> Placing:
    """By the world's name: a map where its states are places, columns by step elsewhere."""
    kind, wording = (world or "").partition("/")[0], wording_of(problem, world)
    flat = [names[i] for names in problem.naming.states for i in range(len(names))]
    if wording.place is not None:
        return Placing([(*wording.place(label), 0) for label in flat], *wording.axes)
    if kind == "driving":
        leads = sorted({lead for _, _, lead in flat})
        top = max(own for _, own, _ in flat)
        return Placing(
            [(gap // 10, (top - own) // 5, leads.index(lead)) for gap, own, lead in flat],
            "gap, from 0 m in steps of 10 m",
            "own speed, 0 m/s at the bottom, in steps of 5 m/s",
            tuple(f"car in front: {lead} m/s" for lead in leads),
        )
    rows = state_rows(problem)
    flip = kind == "thermal"  # hot on top
    high = max(max(column) for column in rows)
    places = [(float(h), high - row if flip else row, 0) for h, column in enumerate(rows) for row in column]
    return Placing(places, "step", "state", is_map=False)


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
