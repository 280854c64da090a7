"""What is said of a plant's problem, in the plant's words: cells for the numbers of states, and inputs by value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.model.plant.plant import Plant

_ROOM = "Choose another fallback, or give it room: a wider range, a smaller disturbance, finer cells."


def by_value(plant: Plant, text: str) -> str:
    """A message about the plant's problem, with cells for the numbers of states and inputs by value."""

    def cell(match: re.Match[str]) -> str:
        return f"{match[0]} ({plant.cells.said(int(match[1]))})"

    def chosen(match: re.Match[str]) -> str:
        return f"input {plant.inputs.values[int(match[1])]!r}"

    return re.sub(r"action (\d+)", chosen, re.sub(r"(?:state|successor|reach) (\d+)", cell, text))


def told(plant: Plant, error: InvalidInput) -> InvalidInput:
    """The same error, in words. Of a forbidden cell it says where it leaves the box, or which range it meets."""
    where, got, fix = by_value(plant, error.where), by_value(plant, error.got), error.fix
    if "forbidden" not in error.rule:
        return InvalidInput(error.rule, where=where, got=got, fix=fix)
    met = re.search(r"step (\d+), state (\d+)(?:.*action (\d+) can reach (\d+))?", f"{error.where} {error.got}")
    h, cell, number, reached = (int(each or -1) for each in met.groups()) if met else (-1,) * 4
    if "fallback" in error.rule:
        fix = _ROOM
        if reached == plant.cells.outside:
            got = f"{got}: {_leaves(plant, h, cell, number)}"
    if ends := ", ".join(_ends_inside(plant, cell if reached < 0 else reached)):
        inside = "A forbidden range ends inside this cell, and all of the cell is forbidden"
        fix = f"{inside}: give it an edge at {ends}. {fix}"
    return InvalidInput(error.rule, where=where, got=got, fix=fix)


def _leaves(plant: Plant, h: int, cell: int, number: int) -> str:
    """In which coordinates an input may lead from a cell out of the box of states, in words."""
    u, of = plant.inputs.values[number], plant.cells.bounds(np.array([cell]))
    ends = (end[:, 0] for box in plant.reach.over(h, *of, u) for end in box)
    return "; ".join(dict.fromkeys(off for end in ends if (off := plant.cells.beyond(end))))


def _ends_inside(plant: Plant, cell: int) -> Iterator[str]:
    """The ends of forbidden ranges that lie inside a forbidden cell."""
    if not 0 <= cell < plant.cells.outside:
        return
    for box in plant.forbidden:
        if plant.cells.meets(box, np.array([cell]))[0]:
            inside = zip(plant.cells.names, plant.cells.ranges(cell), plant.cells.open_box(box), strict=True)
            yield from (f"{name} {end:g}" for name, (low, high), ends in inside for end in ends if low < end < high)
