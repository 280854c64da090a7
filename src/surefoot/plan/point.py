"""Certified at the exact state (spec 9), which recovers what coarse cells lose.

At state x the features are known (if they depend on the next state, rows whose hull contains them), and so is the box
of next states; both lie inside those of the cell. An input is certified at the point if

    upper_j(features at x) ≤ c̄_j for all j,   and every cell that the box of next states meets is in S_{h+1}

with the ellipsoids of the plan in force, or if the plan certifies it for the whole cell. From the next step on the
cells' own certificates hold, and with them Theorem 1.

Along a ray (spec 9) an input is tested in the same way, with its own features and boxes. Any intensities may be tried:
some evenly spaced, the largest that the costs allow, in closed form, and, if what may follow forbids that one, one
found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.errors import AssumptionBroken, UnknownLabel
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.graph import OUTSIDE
from surefoot.model.layer import NO_ACTION
from surefoot.model.plant.cellwise import states_of
from surefoot.model.plant.choices import Choices, chosen_along
from surefoot.model.plant.plant import Plant, PointAhead
from surefoot.model.rays import FULL
from surefoot.plan.centres import expected_at_centres, share_of_bonus
from surefoot.plan.certify import within_limits
from surefoot.plan.plan import Plan
from surefoot.plan.rays import open_rows

_HALVINGS = 5  # of an eighth of a ray
_SHORT = 1e-9  # of a ray: rounding in the closed form takes less


@dataclass(frozen=True, eq=False)
class Point:
    """What a plan says about a plant's inputs at an exact state, in the order of :attr:`choices`: the inputs of the
    grid and then, with rays, some inputs along them."""

    plant: Plant
    plan: Plan
    step: int
    x: FloatArray  # (n,)
    cell: int
    state: int  # of the plan's problem, which stands for the cell
    values: tuple[FloatArray, ...]  # H of (S,): what steers
    choices: Choices

    @property
    def pairs(self) -> slice:
        """The pairs of the cell."""
        first, end = self.plan.problem.graph.layers[self.step].state_ptr[self.state : self.state + 2]
        return slice(int(first), int(end))

    @cached_property
    def features(self) -> FloatArray:
        """(U, R, dc) rows whose convex hull contains the cost features at x."""
        x = self.x[:, None]
        return np.stack([self.plant.rows_at(self.step, x, u)[:, :, 0] for u in self.choices.inputs])

    @cached_property
    def upper(self) -> FloatArray:
        """(U, m) upper bounds on the costs at x."""
        return self.plan.bounds.worst(self.step, self.features)

    @cached_property
    def ahead(self) -> PointAhead:
        """What may follow each input."""
        return self.plant.ahead(self.step, self.x, self.choices.inputs)

    def next_cells(self, choice: int) -> IntArray:
        """The cells that may follow a choice."""
        return self.ahead.cells[self.ahead.ptr[choice] : self.ahead.ptr[choice + 1]]

    @cached_property
    def states_ahead(self) -> IntArray:
        """The states of the cells that may follow, input after input."""
        return states_of(self.plan.problem, self.step + 1, self.ahead.cells)

    @cached_property
    def proved(self) -> BoolArray:
        """(U,) inputs that keep every limit at x and can only lead to certified cells."""
        if not self.plan.consistent:
            return np.zeros(len(self.choices), bool)
        following = self.plan.certified_sets.states[self.step + 1][self.states_ahead]
        leads = np.logical_and.reduceat(following, self.ahead.ptr[:-1])
        return np.asarray(leads & self.expanded & within_limits(self.upper, self.plan.problem.bounds[self.step]))

    @property
    def expanded(self) -> BoolArray:
        """(U,) inputs whose successors are all in the graph; no others are played (spec 9)."""
        graph = self.plan.problem.graph
        layer, pairs = graph.layers[self.step], self.pairs.start + self.choices.number
        return np.asarray(pairs >= 0 if graph.beyond is None else layer.successor[layer.pair_ptr[pairs]] != OUTSIDE)

    @cached_property
    def whole_cell(self) -> BoolArray:
        """(U,) inputs that the plan certifies for the whole cell, the fallback's own among them."""
        own = self.plan.certified_sets.pairs[self.step][self.pairs][self.choices.number]
        return np.asarray(own & (self.choices.intensity == self._planned()))

    def _planned(self) -> FloatArray:
        """(U,) the intensity that the plan gives the pair of each choice."""
        planned = self.plan.intensities
        return np.ones(len(self.choices)) if planned is None else planned[self.step][self.pairs][self.choices.number]

    def pair(self, choice: int) -> int:
        """The pair of a choice."""
        return int(self.pairs.start + self.choices.number[choice])

    def at_intensity(self, number: int, intensity: float) -> int:
        """The choice of an input of the grid at an intensity; at 0 it is the centre."""
        if intensity == 0.0:
            centre = self.plant.centre(self.step, self.cell)
            number, intensity = number if centre is None else centre, FULL
        return int(np.flatnonzero((self.choices.number == number) & (self.choices.intensity == intensity))[0])

    def of_pair(self, pair: int) -> int:
        """The choice that stands for a pair at its planned intensity."""
        planned = self.plan.intensities
        return self.at_intensity(pair - self.pairs.start, FULL if planned is None else float(planned[self.step][pair]))

    @cached_property
    def certified(self) -> BoolArray:
        """(U,) inputs that may be chosen: at least those certified for the cell."""
        return self.proved | self.whole_cell

    def why(self, choice: int) -> str:
        """In words, why a choice is or is not certified here."""
        h, names = self.step, [limit.name for limit in self.plant.limits]
        costs = list(zip(names, self.upper[choice].tolist(), self.plan.problem.bounds[h].tolist(), strict=True))
        place = f"step {h}, state {self.x.tolist()}, input {self.choices.inputs[choice]!r}"
        if self.proved[choice]:
            kept = "; ".join(
                f"{name} is at most {most:.4g}, and the limit is {bound:.4g}" for name, most, bound in costs
            )
            return f"{place} is proved safe: {kept}; every cell that may follow is certified"
        if self.whole_cell[choice]:
            return f"{place} is certified for its whole cell ({self.plant.cells.said(self.cell)}), or is the fallback's"
        if not self.plan.consistent:
            return f"{place} is not certified: the bounds contradict each other, so only the fallback is played"
        over = [
            f"{name} may be {most:.4g}, and the limit is {bound:.4g}" for name, most, bound in costs if most > bound
        ]
        if not over and not self.expanded[choice]:
            return f"{place} is not certified: the graph has not grown there yet"
        mine = slice(*self.ahead.ptr[choice : choice + 2])
        lost = self.ahead.cells[mine][~self.plan.certified_sets.states[h + 1][self.states_ahead[mine]]].tolist()
        leads = [f"it may lead to {self.plant.cells.said(cell)}, which is not certified" for cell in lost[:1]]
        return f"{place} is not certified: {'; '.join(over + leads)}"

    def why_input(self, u: Any) -> str:
        """The same for any input; on a ray, also how far along it inputs are proved safe."""
        number, intensity = self.plant.placed(self.step, self.x, u)
        centre = self.plant.centre(self.step, self.cell)
        if centre is None or number == centre:
            return self.why(number)
        point = replace(self, choices=Choices(np.array([number]), np.array([intensity]), (u,)))
        proved = self.choices.intensity[(self.choices.number == number) & self.proved].max(initial=0.0)
        last, end = (self.plant.inputs.between(centre, number, at) for at in (proved, FULL))
        return f"{point.why(0)}; towards {_shown(end)} proved up to {_shown(last)}"

    @cached_property
    def q(self) -> FloatArray:
        """(U,) r at x + optimistic next value + what exploration adds to the cell's pair; NaN where not certified.

        Values are those at the centres (:mod:`surefoot.plan.centres`), interpolated.
        """
        plan, plant, h = self.plan, self.plant, self.step
        found, bonus = np.full(len(self.choices), np.nan), plan.values.bonus[h][self.pairs][self.choices.number]
        bonus = bonus * share_of_bonus(self.choices.intensity, self._planned())
        around = tuple((states_of(plan.problem, h + 1, cells), weights) for cells, weights in self.ahead.around)
        next_states = around, self.states_ahead, self.ahead.ptr
        certified = plan.certified_sets.states[h + 1]
        ahead = expected_at_centres(self.values[h + 1], certified, *next_states, plan.ellipsoids[h])
        for i in np.flatnonzero(self.certified).tolist():
            found[i] = plant.reward(h, self.x, self.choices.inputs[i]) + ahead[i] + bonus[i]
        return found

    def best(self) -> int:
        """The certified choice with the largest Q, the first of equals; without one, an error.

        If data have overflowed and a Q is NaN: the fallback's input, or else the first certified one.
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
        return int(chosen[0]) if fallback == NO_ACTION else self.of_pair(fallback)


def _shown(u: Any) -> str:
    return ", ".join(f"{value:.4g}" for value in np.atleast_1d(u).tolist())


def at_point(plant: Plant, plan: Plan, values: tuple[FloatArray, ...], h: int, x: Any) -> Point:
    """What the plan says about state x at step h."""
    if not 0 <= h < plant.horizon - 1:
        raise UnknownLabel("no input is chosen at this step", got=f"{h!r}, they are at steps 0 … {plant.horizon - 2}")
    point = plant.cells.point("a state", x)
    cell = plant.cell(point)
    if cell == plant.cells.outside:
        got = plant.cells.beyond(point)
        raise AssumptionBroken("the state is outside the box of states", where=f"step {h}", got=got)
    state = plan.problem.states(h).find(cell)
    if state is None:
        rule, fix = "the graph has not grown to this state", "Nothing is certified there yet."
        raise AssumptionBroken(rule, where=f"step {h}", got=repr(point.tolist()), fix=fix)
    centre = plant.centre(h, cell)
    found = Point(plant, plan, h, point, cell, state, values, plant.choices(centre))
    return found if centre is None or not plan.consistent else with_furthest(found, centre)


def with_furthest(point: Point, centre: int) -> Point:
    """The point with more choices along each ray: the plan's intensity, the largest that the costs allow and, if what
    may follow forbids that one, one between the last that is proved and the first that is not."""
    plant, plan, h = point.plant, point.plan, point.step
    rays = np.array([number for number in range(len(plant.inputs)) if number != centre])
    assert plan.intensities is not None
    most = _by_costs(point, centre, rays)
    wanted = np.concatenate([plan.intensities[h][point.pairs][rays], most])
    found = _with(point, centre, np.tile(rays, 2), wanted)
    low, high = np.zeros(len(rays)), np.ones(len(rays))
    for i, ray in enumerate(rays.tolist()):
        at, proved = (values[found.choices.number == ray] for values in (found.choices.intensity, found.proved))
        low[i] = at[proved].max(initial=0.0)
        high[i] = at[~proved & (at > low[i])].min(initial=FULL)
    stopped = low < most  # by what may follow
    if not stopped.any():
        return found
    rays, low, high = rays[stopped], low[stopped], high[stopped]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        more = replace(point, choices=chosen_along(plant.inputs, centre, rays, middle))
        low, high = np.where(more.proved, middle, low), np.where(more.proved, high, middle)
    return _with(found, centre, rays, low)


def _by_costs(point: Point, centre: int, rays: IntArray) -> FloatArray:
    """(rays,) the largest intensity at which the costs at x keep every limit, up to rounding; 0 without one."""
    if point.plant.measures.of_next:  # its rows are not affine along the ray: the boxes of what follows move
        return np.full(len(rays), FULL)
    bounds, h = point.plan.bounds, point.step
    known = bounds.known[h]
    assert known is not None
    features = np.stack([point.plant.features(h, point.x, u) for u in point.plant.inputs.values])
    one = features[rays]
    zero = np.repeat(features[centre : centre + 1], len(one), axis=0)
    furthest, _ = open_rows(zero, one, bounds.anchors[h], known, point.plan.problem.bounds[h])
    return np.where(furthest < FULL, np.maximum(furthest - _SHORT, 0.0), furthest)


def _with(point: Point, centre: int, rays: IntArray, intensity: FloatArray) -> Point:
    """The point with further choices, unless it has them; one at intensity 0 is the centre."""
    known = set(zip(point.choices.number.tolist(), point.choices.intensity.tolist(), strict=True))
    each = enumerate(zip(rays.tolist(), intensity.tolist(), strict=True))
    new = [i for i, (ray, at) in each if at > 0.0 and (ray, at) not in known]
    more = chosen_along(point.plant.inputs, centre, rays[new], intensity[new])
    return replace(point, choices=point.choices + more) if new else point
