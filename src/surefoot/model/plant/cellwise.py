"""A plant's cells one at a time, for a problem that grows (spec 9).

States are numbers of cells, and actions are numbers of inputs. A cell has the same successors, rows and chances as in a
plant that is built whole; they are computed when the cell is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.graph import OUTSIDE
from surefoot.model.plant.build import build_step, centres
from surefoot.model.plant.cells import Cells
from surefoot.model.problem import Problem

if TYPE_CHECKING:
    from surefoot.model.plant.plant import Plant

MOST_STATES = 100_000  #: unless given
_KEPT = 20_000  # cells; if functions are the same at every step, many steps ask for the same cell
_FEW = 32  # cells; fewer are looked up one by one


@dataclass(frozen=True, eq=False)
class CellTables:
    """What a cell has, for each input."""

    successors: list[list[int]]  # cells, the outside last
    rows: list[FloatArray]  # (R, dc)
    chances: list[dict[int, FloatArray]]  # by successor (models,)
    reward: list[float]
    zero: list[FloatArray]  # (R, dc) of rays at intensity 0, if these are not the rows of their centre


class Cellwise:
    """Computes the cells of a plant on demand."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._numbers = list(range(len(plant.inputs)))
        self._made = lru_cache(_KEPT)(self._make)
        self.cost_dim = self.at(0, plant.cell(plant.start[0])).rows[0].shape[1]

    def functions(self) -> dict[str, Any]:
        """What :meth:`surefoot.Problem.growing` takes."""
        outside, models = self._plant.cells.outside, len(self._plant.reach.models)
        none, certain = np.zeros(self.cost_dim), np.ones(models)

        def own(h: int, cell: int) -> int:
            return 0 if cell == outside else self._plant.fallback_in(h, cell)

        return {
            "actions": lambda h, cell: self._numbers[:1] if cell == outside else self._numbers,
            "successors": lambda h, cell, i: [outside] if cell == outside else self.at(h, cell).successors[i],
            "reward": lambda h, cell, i: 0.0 if cell == outside else self.at(h, cell).reward[i],
            "cost_features": lambda h, cell, i: none if cell == outside else self.at(h, cell).rows[i],
            "transition_features": lambda h, cell, i, after: (
                certain if cell == outside else self.at(h, cell).chances[i][after]
            ),
            "terminal_reward": self._last_reward,
            "forbidden": lambda h, cell: self._plant.is_forbidden(cell),
            "fallback": own,
            **({"center": own} if self._plant.rays else {}),
            **(
                {"center_cost_features": lambda h, cell, i: none if cell == outside else self.at(h, cell).zero[i]}
                if self._rows_at_zero
                else {}
            ),
        }

    def _last_reward(self, cell: int) -> float:
        cells = self._plant.cells
        return 0.0 if cell == cells.outside else self._plant.last_reward(centres(cells, np.array([cell])))

    @property
    def _rows_at_zero(self) -> bool:
        """At intensity 0, a ray has the rows of the whole ray's boxes, not of its centre alone."""
        return self._plant.rays and self._plant.measures.of_next

    def at(self, h: int, cell: int) -> CellTables:
        return self._made(0 if self._plant.same_at_every_step else h, cell)

    def _make(self, h: int, cell: int) -> CellTables:
        plant, centre = self._plant, self._plant.centre(h, cell)
        step = build_step(plant, h, plant.cells.only(cell), np.array([-1 if centre is None else centre]))
        following, landing = (
            np.split(x, step.pair_ptr[1:-1])[:-1] for x in (step.successors, step.transition_features)
        )
        at_one, at_zero = (
            [] if x is None else np.split(x, step.row_ptr[1:-1])[:-1]
            for x in (step.cost_features, step.center_cost_features)
        )
        together = at_one
        if at_zero:
            together = [np.hstack(ends) for ends in zip(at_one, at_zero, strict=True)]
        elif plant.rays:
            together = [np.hstack(at_one)] * len(at_one)  # a ray has a row for each of its centre's
        once = [np.sort(np.unique(each, axis=0, return_index=True)[1]) for each in together]
        return CellTables(
            successors=[cells.tolist() for cells in following],
            rows=[x[own] for x, own in zip(at_one, once, strict=True)],
            chances=[dict(zip(cells.tolist(), p, strict=True)) for cells, p in zip(following, landing, strict=True)],
            reward=step.reward[:-1].tolist(),
            zero=[x[own] for x, own in zip(at_zero, once, strict=False)],
        )


def growing_problem(plant: Plant, most_states: int | None, longest_row: float | None) -> Problem:
    """The problem of a plant whose cells are added once they can be used."""
    if len(plant.remainder) and longest_row is None:  # between the corners features may be longer
        raise InvalidInput("a growing plant with a remainder needs longest_row", got="None")
    made = Cellwise(plant)
    return Problem.growing(
        horizon=plant.horizon,
        start=plant.start_cells(),
        most_states=MOST_STATES if most_states is None else most_states,
        longest_row=longest_row,
        **plant.stationary,
        **plant.declared(made.cost_dim),
        **made.functions(),
    )


# --- where cells stand in a graph -------------------------------------------------------------------------------


def cells_in(problem: Problem, h: int, cells: Cells) -> tuple[IntArray, IntArray]:
    """The cells that a plant's problem holds at step h, without the outside, and the numbers of their states."""
    if problem.graph.beyond is None:
        return np.arange(cells.number), np.arange(cells.number)
    first = int(h > 0)  # after what is not expanded
    held = np.array((problem.naming.states[h].listed or ())[first:], np.int64)
    states = np.flatnonzero(held != cells.outside)
    return held[states], states + first


def states_of(problem: Problem, h: int, cells: IntArray) -> IntArray:
    """The state numbers of cells (an array of any shape) at a step after the first; OUTSIDE for cells that the problem
    does not hold."""
    if problem.graph.beyond is None:
        return cells
    names = problem.naming.states[h]
    if cells.size <= _FEW:
        found = [names.find(cell) for cell in cells.reshape(-1).tolist()]
        return np.array([OUTSIDE if i is None else i for i in found], np.int64).reshape(cells.shape)
    held = np.array((names.listed or ())[1:], np.int64)
    order = np.argsort(held)
    at = np.minimum(np.searchsorted(held, cells, sorter=order), len(held) - 1)
    return np.where(held[order[at]] == cells, order[at] + 1, OUTSIDE)
