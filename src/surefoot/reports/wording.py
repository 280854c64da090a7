"""Names and places for the states and actions of named worlds whose labels are numbers.

A label is what ``plan.why``, an environment and a study take; the words are for people. Pages show both:
``1 (power 0.5)``. The labels of a problem of your own are your own words already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from surefoot.model.labels import Label
from surefoot.model.plant.cells import make_cells
from surefoot.model.problem import Problem

_LAKE = ("left", "down", "right", "up")
_CLIFF = ("up", "right", "down", "left")
_TAXI = ("south", "north", "east", "west", "pick up", "drop off")
_STOPS = ("R", "G", "Y", "B", "in the taxi")
_GRIDS: dict[str, tuple[int, tuple[str, ...]]] = {  # columns, and Gymnasium's actions
    "toy-text/frozen-lake-4x4": (4, _LAKE),
    "toy-text/frozen-lake-8x8": (8, _LAKE),
    "toy-text/cliff-walking": (12, _CLIFF),
    "toy-text/cliff-walking-slippery": (12, _CLIFF),
}


def _nothing(*label: Any) -> str:
    return ""


@dataclass(frozen=True)
class Wording:
    """Words for labels; "" if a label says enough."""

    state: Callable[[Label], str] = _nothing
    action: Callable[[int, Label, Label], str] = _nothing  # of step, state and action
    place: Callable[[Label], tuple[float, float]] | None = None  # (to the right, downward); None: no map
    axes: tuple[str, str] = ("column", "row")  # of the map
    #: state and action of an offer, as whoever applies it reads them
    offered: Callable[[Label, Label], tuple[str, str]] = lambda state, action: (label_text(state), label_text(action))


def wording_of(problem: Problem, world: str | None) -> Wording:
    """By the name of the world; without one, labels have no other words."""
    name = world or ""
    if name in _GRIDS:
        return _grid(*_GRIDS[name])
    made = _FAMILIES.get(name.partition("/")[0] if name != "toy-text/taxi" else name)
    return Wording() if made is None else made(problem)


def plant_wording(plant: Mapping[str, Any]) -> Wording:
    """For a plant, whose states are numbers of cells and whose actions are numbers of inputs; from its document."""
    cells, names, values = make_cells(plant["state"]), plant["inputs"]["names"], plant["inputs"]["values"]

    def place(cell: Label) -> str:
        return cells.said(cell) if isinstance(cell, int) else ""  # a name: all that is not expanded

    def named(what: Sequence[str], value: Any, digits: str = "") -> str:
        parts = value if isinstance(value, (list, tuple)) else [value]
        return ", ".join(f"{name} {part:{digits}}" for name, part in zip(what, parts, strict=True))

    return Wording(
        state=place,
        action=lambda h, s, number: named(names, values[number], ".6g"),
        offered=lambda x, u: (named(cells.names, x), named(names, u)),
    )


def label_text(label: Label) -> str:
    """A label as a page shows it."""
    return "(" + ", ".join(map(label_text, label)) + ")" if isinstance(label, (tuple, list)) else str(label)


def with_words(label: Label, words: str) -> str:
    """``1 (power 0.5)``."""
    return f"{label_text(label)} ({words})" if words else label_text(label)


def _thermal(problem: Problem) -> Wording:
    strongest = len(problem.actions(0, problem.starts[0])) - 1
    hottest = strongest * 7 // 2
    return Wording(
        state=lambda heat: f"heat {heat / hottest:.2g}",
        action=lambda h, heat, power: f"power {power / strongest:.2g}",
    )


def _power(problem: Problem) -> Wording:
    storage = {-1: "charge", 0: "storage at rest", 1: "discharge"}
    return Wording(
        state=lambda state: f"demand {state[0]}, charge {state[1]}",
        action=lambda h, state, action: f"local generation {action[0]}, {storage[action[1]]}",
    )


def _walk(problem: Problem) -> Wording:
    def place(state: Label) -> tuple[float, float]:
        return (-1.0, 1.0) if isinstance(state, str) else (state[0], -state[1])  # a name: all that is not expanded

    return Wording(place=place, axes=("place", "speed, highest on top"))


def _grid(columns: int, actions: tuple[str, ...]) -> Wording:
    """A square, or (square, reward of the way there): those after a fall are drawn a row below."""

    def place(label: Label) -> tuple[float, float]:
        if isinstance(label, str):  # over
            return columns, 0.0
        square, reward = label if isinstance(label, tuple) else (label, 0.0)
        row, column = divmod(square, columns)
        return column, row + (1 if reward < -1 else 0)

    def state(label: Label) -> str:
        if isinstance(label, str):
            return ""
        square, reward = label if isinstance(label, tuple) else (label, 0.0)
        row, column = divmod(square, columns)
        return f"row {row}, column {column}{', after a fall' if reward < -1 else ''}"

    return Wording(state, lambda h, s, a: actions[a] if isinstance(a, int) else "", place)


def _taxi(problem: Problem) -> Wording:
    def state(label: Label) -> str:
        if isinstance(label, str):
            return ""
        number, reward = label if isinstance(label, tuple) else (label, 0.0)
        (row, column), (rider, to) = divmod(number // 20, 5), divmod(number % 20, 4)
        complaint = ", after a wrong stop" if reward < -1 else ""
        return f"row {row}, column {column}, passenger {_STOPS[rider]}, to {_STOPS[to]}{complaint}"

    return Wording(state, lambda h, s, a: _TAXI[a] if isinstance(a, int) else "")


def _heights(problem: Problem) -> Wording:
    side = isqrt(problem.graph.n_states(0))
    moves = {0: "stay", -side: "up", side: "down", -1: "left", 1: "right"}
    return Wording(
        state=lambda cell: "row {}, column {}".format(*divmod(cell, side)),
        action=lambda h, cell, n: moves[problem.successors(h, cell, n)[0] - cell],
        place=lambda cell: (cell % side, cell // side),
    )


_FAMILIES: Mapping[str, Callable[[Problem], Wording]] = {
    "thermal": _thermal,
    "power": _power,
    "rover": lambda problem: Wording(
        place=lambda cell: (cell[1], cell[0]), axes=("column, eastward", "row, southward")
    ),
    "walk": _walk,
    "toy-text/taxi": _taxi,
    "heights": _heights,
    "ladder": lambda problem: Wording(action=lambda h, place, rung: f"rung {rung}"),
    "lower-bound": lambda problem: Wording(action=lambda h, s, number: f"a({number})" if type(number) is int else ""),
}


# --- where states are in a picture: in columns by step, or, if they are places, on a map


@dataclass(frozen=True)
class Placing:
    """A place for every state of every step, all steps concatenated."""

    places: Sequence[tuple[float, float, int]]  # x, y downward, and which panel
    x_label: str
    y_label: str
    panels: tuple[str, ...] = ("",)
    is_map: bool = True  # one step at a time; else all steps side by side


def placing_of(problem: Problem, world: str | None) -> Placing:
    """By the world's name: a map if its states are places, otherwise columns by step."""
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
    """For each step the row of every state, 0 on top. Numbers and tuples of numbers are in the same row at every step,
    by size; a column with any other label is in its own order, in the middle."""
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
