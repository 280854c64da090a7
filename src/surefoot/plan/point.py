"""Certified at the exact state (spec 9): what coarse cells lose, found again where the plant really is.

At state x the features are known, or, if they depend on the next state, rows around them, and so is the box of next
states; both lie inside those of the cell. An input is
certified at the point when

    upper_j(features at x) ≤ c̄_j for all j,   and every cell that the box of next states meets is in S_{h+1}

with the ellipsoids of the plan in force, or when the plan certifies it for the whole cell. From there on the cells' own
certificates hold, so Theorem 1 does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.errors import AssumptionBroken
from surefoot.model.graph import NO_ACTION, OUTSIDE, BoolArray, FloatArray, IntArray
from surefoot.model.plant.cellwise import states_of
from surefoot.model.plant.plant import Ahead, Plant
from surefoot.plan.centres import between, optimistic
from surefoot.plan.certify import within_limits
from surefoot.plan.plan import Plan


@dataclass(frozen=True, eq=False)
class Point:
    """What a plan says of a plant's inputs at an exact state. Entries are in the order of the plant's inputs."""

    plant: Plant
    plan: Plan
    step: int
    x: FloatArray  # (n,)
    cell: int
    state: int  # of the plan's problem, which stands for the cell
    values: tuple[FloatArray, ...]  # H of (S,): what steers

    @property
    def pairs(self) -> slice:
        """The pairs of the cell."""
        first, end = self.plan.problem.graph.layers[self.step].state_ptr[self.state : self.state + 2]
        return slice(int(first), int(end))

    @cached_property
    def features(self) -> FloatArray:
        """(U, R, dc) rows in whose convex hull the features of the costs at x lie."""
        x = self.x[:, None]
        return np.stack([self.plant.rows_at(self.step, x, u)[:, :, 0] for u in self.plant.inputs.values])

    @cached_property
    def upper(self) -> FloatArray:
        """(U, m) no cost at x is larger, with the promised probability."""
        flat = self.features.reshape(-1, self.features.shape[2])
        upper = self.plan.bounds.at(self.step, flat)[0].reshape(*self.features.shape[:2], -1)
        return np.asarray(upper.max(axis=1))

    @cached_property
    def ahead(self) -> Ahead:
        """What may follow each input."""
        return self.plant.ahead(self.step, self.x)

    def next_cells(self, number: int) -> IntArray:
        """The cells that may follow an input, by its number."""
        return self.ahead.cells[self.ahead.ptr[number] : self.ahead.ptr[number + 1]]

    @cached_property
    def states_ahead(self) -> IntArray:
        """The states of the plan's problem that stand for the cells that may follow, input after input."""
        return states_of(self.plan.problem, self.step + 1, self.ahead.cells)

    @cached_property
    def proved(self) -> BoolArray:
        """(U,) inputs that keep every limit at x and can only lead to certified cells."""
        if not self.plan.consistent:
            return np.zeros(len(self.plant.inputs), bool)
        following = self.plan.certified_sets.states[self.step + 1][self.states_ahead]
        leads = np.logical_and.reduceat(following, self.ahead.ptr[:-1])
        return np.asarray(leads & self.expanded & within_limits(self.upper, self.plan.problem.bounds[self.step]))

    @property
    def expanded(self) -> BoolArray:
        """(U,) inputs whose successors are in the graph: only such are played (spec 9)."""
        graph, ones = self.plan.problem.graph, np.ones(len(self.plant.inputs), bool)
        layer = graph.layers[self.step]
        return ones if graph.beyond is None else layer.successor[layer.pair_ptr[self.pairs]] != OUTSIDE

    @cached_property
    def whole_cell(self) -> BoolArray:
        """(U,) inputs that the plan certifies for the whole cell, the fallback's own among them."""
        return self.plan.certified_sets.pairs[self.step][self.pairs]

    @cached_property
    def certified(self) -> BoolArray:
        """(U,) inputs that may be chosen: never fewer than for the cell."""
        return self.proved | self.whole_cell

    def why(self, number: int) -> str:
        """In words, why an input, by its number, is or is not certified here."""
        h, names = self.step, [limit.name for limit in self.plant.limits]
        costs = list(zip(names, self.upper[number].tolist(), self.plan.problem.bounds[h].tolist(), strict=True))
        place = f"step {h}, state {self.x.tolist()}, input {self.plant.inputs.values[number]!r}"
        if self.proved[number]:
            kept = "; ".join(
                f"{name} is at most {most:.4g}, and the limit is {bound:.4g}" for name, most, bound in costs
            )
            return f"{place} is proved safe: {kept}; every cell that may follow is certified"
        if self.whole_cell[number]:
            return f"{place} is certified for its whole cell ({self.plant.cells.said(self.cell)}), or is the fallback's"
        if not self.plan.consistent:
            return f"{place} is not certified: the bounds contradict each other, so only the fallback is played"
        over = [
            f"{name} may be {most:.4g}, and the limit is {bound:.4g}" for name, most, bound in costs if most > bound
        ]
        if not over and not self.expanded[number]:
            return f"{place} is not certified: the graph has not grown there yet"
        mine = slice(*self.ahead.ptr[number : number + 2])
        lost = self.ahead.cells[mine][~self.plan.certified_sets.states[h + 1][self.states_ahead[mine]]].tolist()
        leads = [f"it may lead to {self.plant.cells.said(cell)}, which is not certified" for cell in lost[:1]]
        return f"{place} is not certified: {'; '.join(over + leads)}"

    @cached_property
    def q(self) -> FloatArray:
        """(U,) r at x + optimistic next value + what exploration adds to the cell's pair; NaN where not certified.

        Values are those at the centres (:mod:`surefoot.plan.centres`), interpolated.
        """
        plan, plant, h = self.plan, self.plant, self.step
        found, bonus = np.full(len(plant.inputs), np.nan), plan.values.bonus[h][self.pairs]
        value, ptr = self.values[h + 1], self.ahead.ptr
        around = tuple((states_of(plan.problem, h + 1, cells), weights) for cells, weights in self.ahead.around)
        following = between(value, plan.certified_sets.states[h + 1], around)
        met = value[self.states_ahead]
        low, high = np.minimum.reduceat(met, ptr[:-1]), np.maximum.reduceat(met, ptr[:-1])
        phi = np.where(np.isnan(following), low[:, None], following)
        ahead = optimistic(phi, np.minimum(low, phi.min(axis=1)), np.maximum(high, phi.max(axis=1)), plan.ellipsoids[h])
        for i in np.flatnonzero(self.certified).tolist():
            found[i] = plant.reward(h, self.x, plant.inputs.values[i]) + ahead[i] + bonus[i]
        return found

    def best(self) -> int:
        """The number of the certified input with the largest Q, the first of equals; without one, an error.

        Where a Q is no number, because data have overflowed, the fallback's input, or else the first certified one.
        """
        chosen = np.flatnonzero(self.certified)
        if len(chosen) == 0:
            raise AssumptionBroken(
                "no certified input",
                where=f"step {self.step}, state {self.x.tolist()}, cell {self.plant.cells.said(self.cell)}",
                fix="This state cannot be reached by certified inputs and the declared models.",
            )
        if np.isfinite(self.q[chosen]).all():
            return int(chosen[self.q[chosen].argmax()])
        fallback = int(self.plan.problem.graph.layers[self.step].fallback[self.state])
        return int(chosen[0]) if fallback == NO_ACTION else fallback - self.pairs.start


def at_point(plant: Plant, plan: Plan, values: tuple[FloatArray, ...], h: int, x: Any) -> Point:
    """What the plan says at state x of step h."""
    point = plant.cells.point("a state", x)
    cell = plant.cell(point)
    if cell == plant.cells.outside:
        raise AssumptionBroken("the state is outside the box of states", where=f"step {h}", got=repr(point.tolist()))
    state = plan.problem.states(h).find(cell)
    if state is None:
        rule, fix = "the graph has not grown to this state", "Nothing is certified there yet."
        raise AssumptionBroken(rule, where=f"step {h}", got=repr(point.tolist()), fix=fix)
    return Point(plant, plan, h, point, cell, state, values)
