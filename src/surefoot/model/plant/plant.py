"""A plant: continuous states, known models, limits that are measured; and the Problem that stands for it (spec 9)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.checks import whole
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, IntArray, freeze
from surefoot.model.limit import Limit
from surefoot.model.plant import words
from surefoot.model.plant.build import Step, build_step, centres
from surefoot.model.plant.calls import Call, said
from surefoot.model.plant.cells import Endless, Range, make_cells, make_inputs
from surefoot.model.plant.cellwise import growing_problem
from surefoot.model.plant.choices import Choices, Chooser
from surefoot.model.plant.given import (
    OFF_GRID,
    Function,
    feature_names,
    make_box,
    make_fallback,
    make_function,
    make_last,
    make_reach,
    make_remainder,
    with_remainders,
)
from surefoot.model.plant.measures import Hat, Measure, make_measures
from surefoot.model.plant.reach import cells_around, successors
from surefoot.model.problem import Problem
from surefoot.model.rules import check_flag, check_horizon, check_limits

if TYPE_CHECKING:
    from surefoot.model.plant.check import PlantCheck
    from surefoot.model.plant.simulation import Simulation


class PointAhead(NamedTuple):
    """What may follow an exact state under each of U inputs."""

    boxes: tuple[tuple[FloatArray, FloatArray], ...]  # per model (n, U) low and high ends
    ptr: IntArray  # (U+1,)
    cells: IntArray  # those that the boxes of input i meet are cells[ptr[i] : ptr[i+1]]
    around: tuple[tuple[IntArray, FloatArray], ...]  # per model (2ⁿ, U) the cells around its image, and their weights


class Plant(Chooser):
    """A continuous plant with hard limits; :attr:`problem` is the Problem that stands for it (spec 9).

    Examples:
        A tank that must not overflow; how fast it foams is learned.

        >>> plant = sf.Plant(
        ...     state={"level": (0.0, 1.0, 10)}, inputs={"flow": [0.05, 0.1, 0.2]}, horizon=5, start=[0.45],
        ...     models=[lambda h, x, u: 0.8 * x + u], disturbance=[0.01],
        ...     measures=lambda h, x, u: [1.0, x[0], u], reward=lambda h, x, u: 5 * u, fallback=0.1,
        ...     limits=[sf.Limit("foam", bound=0.9, noise=0.05, norm=2.0)])
        >>> plant.problem.graph.layers[0].n_states, plant.check().refuted
        (11, False)

    Every function takes ``(h, x, u)``: the step, the state (``level, heat = x`` unpacks it) and the input, a number, or
    a tuple where there are several inputs. It is called with many states at once, x of shape (n, P), if it can be.

    Args:
        state: ``{name: (low, high, number of cells)}``, or a list of the cells' edges in place of the tuple. A name
            may hold the unit, ``"level [m]"``: pictures and messages have it as it is. An end may be None:
            ``(0.0, None, 0.5)`` has cells of width 0.5 from 0 on, without an end.
        inputs: ``{name: levels}``; every combination may be chosen.
        horizon: H, the number of steps; inputs are chosen at steps 0 … H-2.
        start: the state at step 0: a number per coordinate, or a range ``(low, high)`` for some, in order or by name.
        models: functions that give the next state. The truth is one of them, or a random choice among them with unknown
            probabilities. Each must have its extremes over a cell at the cell's corners, as a function has that is
            affine or monotone in each coordinate. Otherwise give ``reach`` or ``slopes``.
        measures: the cost features. Each limit's cost is linear in them, with unknown coefficients. A function that
            returns a list, or a list of functions and hats (:func:`surefoot.hat`). They must be affine in each
            coordinate of x on every cell; otherwise give ``remainder``. A function of ``(h, x, u, x_next)`` also gets
            the next state, and must be affine in each of its coordinates on the box of what may follow. So a limit can
            apply to where the plant arrives, even at the last step.
        limits: one :class:`Limit` or several.
        reward: in [0, 1].
        fallback: ``fallback(h, x)``, the input of the known safe controller, or one input for all states. It is
            evaluated at the centre of each cell and plays that input in the whole cell.
        rays: True to allow every input between the fallback's in a cell and one of the grid (spec 9). Along such a ray
            the measures must be affine, and each model must have its extremes at the ends. ``remainder`` and ``slopes``
            must hold for all these inputs, and ``reach(h, low, high, u, to)`` for all inputs from u to ``to``.
        disturbance: by how much the next state may differ from the model's, per coordinate; 0 by default,
            and for coordinates that a dict leaves out: they move exactly as a model says.
        forbidden: known limits: ``{name: (low, high)}``, None for an open end, or a list of such boxes. States strictly
            inside are forbidden, and so is every cell that contains one. Leaving the box of states is forbidden too.
        terminal_reward: ``terminal_reward(x)`` in [0, 1] of the last state; 0 by default.
        reach: ``reach(h, low, high, u)`` gives the ends ``(low, high)`` of a box that holds the images, under all
            models, of the box [low, high]; without the disturbance.
        slopes: (n, n), or one such matrix for each model: ``|∂f_k/∂x_d| ≤ slopes[k][d]``.
        remainder: per limit, by how much its cost anywhere in a cell may exceed the largest cost at the cell's corners.
        same_at_every_step: True if no function depends on h; then they are called for step 0 only.
        stationary_costs, stationary_transitions: the hidden parameters are the same at every step.
        quadrature: points per coordinate for the chances of next cells. They affect values only, not safety.
        most_states: let the graph grow (spec 9) to at most this many cells over all steps, added once they can be used.
            By default all cells are built, or, if a range has no end, up to 100,000 as they can be used.
        longest_row: for a growing graph, a bound on the length of cost features in any cell; by default the longest of
            the first graph. If a longer one turns up, that is an error.
        features: names of the measures, for priors, limits and explanations.
    """

    def __init__(
        self,
        *,
        state: Mapping[str, Any],
        inputs: Mapping[str, Sequence[float]],
        horizon: int,
        start: Any,
        models: Sequence[Function] | Function,
        measures: Measure | Hat | Sequence[Measure | Hat],
        limits: Sequence[Limit] | Limit,
        reward: Function,
        fallback: Any,
        disturbance: Mapping[str, float] | Sequence[float] | float = 0.0,
        forbidden: Mapping[str, Range] | Sequence[Mapping[str, Range]] = (),
        terminal_reward: Function | None = None,
        reach: Function | None = None,
        slopes: Any = None,
        remainder: float | Sequence[float] = 0.0,
        rays: bool = False,
        same_at_every_step: bool = False,
        stationary_costs: bool = True,
        stationary_transitions: bool = True,
        quadrature: int = 3,
        most_states: int | None = None,
        longest_row: float | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        self.cells, self.inputs = make_cells(state), make_inputs(inputs)
        self.horizon = check_horizon(horizon)
        self.limits = check_limits(limits)
        self.start = make_box(self.cells, "start", start)
        boxes = tuple(forbidden) if isinstance(forbidden, (list, tuple)) else (forbidden,)
        self.forbidden = tuple(dict(box) for box in boxes if self.cells.open_box(box))  # refuses what is not a box
        self.rays = check_flag("rays", rays)  #: inputs have an intensity, counted from the fallback's
        self.reach = make_reach(self.cells, models, disturbance, reach, slopes, self.rays)
        self.measures = make_measures(measures, self.cells)
        self._names = features
        self._reward = Call("reward", make_function("reward", reward, "h, x, u"), 1)
        self._last = Call("terminal_reward", make_last(terminal_reward), 1)
        self._fallback = Call("fallback", make_fallback(fallback, self.inputs.index), len(self.inputs.names))
        self.remainder = make_remainder(remainder, len(self.limits))
        self.same_at_every_step = check_flag("same_at_every_step", same_at_every_step)
        self.quadrature = whole("quadrature", quadrature, 1)
        self._choices: dict[int | None, Choices] = {}
        self._centres: list[IntArray] = []  # per step (cells,) the fallback's input
        self.stationary: dict[str, Any] = {
            "stationary_costs": stationary_costs,
            "stationary_transitions": stationary_transitions,
        }
        grows = self.cells.endless or most_states is not None
        try:
            self.problem = growing_problem(self, most_states, longest_row) if grows else self._problem()
        except InvalidInput as error:
            raise self.told(error) from None

    def __repr__(self) -> str:
        parts = zip(self.cells.edges, self.cells.shape, strict=True)
        shape = " × ".join("endless" if isinstance(edge, Endless) else str(n) for edge, n in parts)
        names = ", ".join(self.cells.names)
        rays = " with rays" if self.rays else ""
        return f"Plant({names}: {shape} cells, {len(self.inputs)} inputs{rays}, horizon={self.horizon})"

    # --- reading it -------------------------------------------------------------------------------------

    def cell(self, x: Any) -> int:
        """The number of the cell of a state: the state of :attr:`problem` that stands for it."""
        return int(self.cells.of(self.cells.point("a state", x)[:, None])[0])

    def starting(self, x: Any = None) -> FloatArray:
        """(n,) a state in which an episode may begin, others are refused; None means the start, if that is a point."""
        low, high = self.start
        if x is None and np.array_equal(low, high):
            return low
        point = self.cells.point("start", x)
        guard = self.cells.slack(point)
        if (point < low - guard).any() or (point > high + guard).any():
            ends = low.tolist(), high.tolist()
            fix = f"It is {ends[0]}." if ends[0] == ends[1] else f"It lies between {ends[0]} and {ends[1]}."
            raise InvalidInput("not a declared start", got=repr(point.tolist()), fix=fix)
        return point

    def features(self, h: int, x: Any, u: Any, x_next: Any = None) -> FloatArray:
        """(dc,) the cost features at exactly this state and input, and next state where they depend on it."""
        after = None if x_next is None else self.cells.point("a next state", x_next)[:, None]
        return self._features(h, self.cells.point("a state", x)[:, None], u, after)[:, 0]

    def rows_at(self, h: int, x: FloatArray, u: Any) -> FloatArray:
        """(R, dc, P) for points (n, P): rows whose convex hull contains the cost features. One row, or, if features
        depend on the next state, those at the corners of its boxes.
        """
        if not self.measures.of_next:
            return self._features(h, x, u, None)[None]
        corners = product(self.reach.at_points(h, x, u), product((0, 1), repeat=self.cells.dim))
        ahead = [np.stack(box)[list(c), np.arange(self.cells.dim)] for box, c in corners]
        return np.stack([self._features(h, x, u, after) for after in ahead])

    def _features(self, h: int, x: FloatArray, u: Any, after: FloatArray | None) -> FloatArray:
        exact = self.measures.at(h, x, u, after)
        none = np.zeros((len(self.remainder), x.shape[1]))  # a cell adds its remainder to the corners; a point has none
        return np.concatenate([exact, none])

    def boxes(self, h: int, x: Any, u: Any) -> list[tuple[FloatArray, FloatArray]]:
        """For each model, the box (n,) low and high that contains the next state after x and u."""
        point = self.cells.point("a state", x)[:, None]
        return [(low[:, 0], high[:, 0]) for low, high in self.reach.at_points(h, point, u)]

    def next_cells(self, h: int, x: Any, u: Any) -> IntArray:
        """The cells that may follow exactly this state and input; ``cells.outside`` is one if the plant may leave."""
        boxes = [(low[:, None], high[:, None]) for low, high in self.boxes(h, x, u)]
        return successors(self.cells, boxes)[1]

    def may_follow(self, h: int, x: Any, u: Any, x_next: Any) -> bool:
        """True when the models and the disturbance allow this next state."""
        after = self.cells.point("a next state", x_next)
        guard = self.cells.slack(after)
        return any(
            bool((low - guard <= after).all() and (after <= high + guard).all()) for low, high in self.boxes(h, x, u)
        )

    def ahead(self, h: int, x: Any, inputs: Sequence[Any]) -> PointAhead:
        """What may follow state x under each of these inputs."""
        point = self.cells.point("a state", x)[:, None]
        images = [np.concatenate([model.at(h, point, u) for u in inputs], axis=1) for model in self.reach.models]
        half = self.reach.disturbance[:, None]
        boxes = tuple((image - half, image + half) for image in images)
        return PointAhead(
            boxes, *successors(self.cells, boxes), tuple(cells_around(self.cells, image) for image in images)
        )

    def reward(self, h: int, x: Any, u: Any) -> float:
        return float(self._reward.one(h, self.cells.point("a state", x), u)[0])

    def rewards(self, h: int, x: FloatArray, u: Any) -> FloatArray:
        """(P,) of points (n, P)."""
        found: FloatArray = self._reward.at(h, x, u)[0]
        return found

    def last_reward(self, x: Any) -> float:
        return float(self._last.one(self.horizon - 1, self.cells.point("a state", x))[0])

    def fallback(self, h: int, x: Any) -> Any:
        """The fallback's input in the cell of a state; None if the fallback does not reach that cell."""
        cell = self.cell(x)
        known = self.problem.states(h).find(cell)
        number = None if known is None else self.problem.fallback_action(h, cell)
        return None if number is None else self.inputs.values[number]

    def fallback_numbers(self, h: int, x: FloatArray) -> IntArray:
        """(P,) the indices of the fallback's inputs at points (n, P)."""
        given, found = self._fallback.at(h, x), np.full(x.shape[1], -1, np.int64)
        for number, u in enumerate(self.inputs.values):
            found[(np.atleast_1d(u) == given.T).all(axis=1)] = number
        strange = np.flatnonzero(found < 0)
        if len(strange):
            at, fix = int(strange[0]), f"The inputs are {self.inputs.said()}."
            raise InvalidInput(OFF_GRID, where=said(h, x[:, at]), got=repr(given[:, at].tolist()), fix=fix)
        return found

    def fallback_in(self, h: int, cell: int) -> int:
        """The number of the fallback's input in a cell."""
        if self._centres:
            return int(self._centres[h][cell])
        low, high = self.cells.bounds(np.array([cell]))
        return int(self.fallback_numbers(h, 0.5 * (low + high))[0])

    def breaks(self, x: Any) -> str:
        """Why a state is forbidden, in words; empty when it is not."""
        point = self.cells.point("a state", x)
        if self.cells.of(point[:, None])[0] == self.cells.outside:
            return "outside the box of states"
        for box in self.forbidden:
            ends = self.cells.open_box(box)
            if all(low < value < high for value, (low, high) in zip(point.tolist(), ends, strict=True)):
                return f"in the forbidden range {dict(box)}"
        return ""

    def is_forbidden(self, cell: int) -> bool:
        """True for a cell that contains a forbidden state, and for the outside."""
        own = np.array([cell])
        return cell == self.cells.outside or any(bool(self.cells.meets(box, own)[0]) for box in self.forbidden)

    @cached_property
    def digest(self) -> str:
        """A sha256, in hex, of cells, inputs, start, disturbance, forbidden ranges and the problem's arrays."""
        head = json.dumps(self.document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256((head + self.problem.digest).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """What can be stored of the plant besides its problem, as plain JSON: everything except its functions."""
        return {
            "state": {
                name: edge.document() if isinstance(edge, Endless) else edge.tolist()
                for name, edge in zip(self.cells.names, self.cells.edges, strict=True)
            },
            "inputs": {
                "names": list(self.inputs.names),
                "values": [list(u) if isinstance(u, tuple) else u for u in self.inputs.values],
            },
            **({"rays": True} if self.rays else {}),
            "start": [end.tolist() for end in self.start],
            "disturbance": self.reach.disturbance.tolist(),
            "forbidden": [
                [[end if np.isfinite(end) else None for end in ends] for ends in self.cells.open_box(box)]
                for box in self.forbidden
            ],
        }

    def check(self, samples: int = 10_000, seed: int = 0) -> PlantCheck:
        """Try to refute the declaration by samples: the models and features over cells, and the fallback's cells."""
        from surefoot.model.plant.check import check_plant

        return check_plant(self, whole("samples", samples, 1), seed)

    def simulate(
        self, step: Function | Sequence[str], *, reset: Function | None = None, noise: bool = True
    ) -> Simulation:
        """A simulator as the truth, for ``sf.run``: see :class:`surefoot.model.plant.simulation.Simulation`."""
        from surefoot.model.plant.simulation import Simulation

        return Simulation(self, step, reset=reset, noise=noise)

    # --- making it --------------------------------------------------------------------------------------

    def _problem(self) -> Problem:
        cells, steps = self.cells, list[Step]()
        for h in range(self.horizon - 1):
            if h and self.same_at_every_step:
                steps.append(steps[0])
                continue
            step = build_step(self, h, cells, self.fallback_numbers(h, centres(cells)))
            steps.append(step if not steps else step.sharing(steps[-1]))
        self._centres = [step.fallback[:-1] for step in steps]
        pairs = cells.number * len(self.inputs)
        names = [name for name, value in vars(steps[0]).items() if value is not None]
        tables: dict[str, Any] = {name: [getattr(step, name) for step in steps] for name in names}
        every = np.arange(cells.number)
        forbidden = np.append(np.any([cells.meets(box, every) for box in self.forbidden] or [every < 0], axis=0), True)
        return Problem.from_arrays(
            horizon=self.horizon,
            start=self.start_cells(),
            state_ptr=np.append(np.arange(0, pairs + 1, len(self.inputs)), pairs + 1),
            **tables,
            terminal_reward=np.append(self._last.at(self.horizon - 1, centres(cells))[0], 0.0),
            forbidden=[freeze(forbidden)] * self.horizon,
            **self.declared(tables["cost_features"][0].shape[1]),
            **self.stationary,
        )

    def declared(self, dim: int) -> dict[str, Any]:
        """What the problem declares of its ``dim`` cost features."""
        names = feature_names(self._names, self.limits, len(self.remainder), dim)
        return {"features": names, "limits": with_remainders(self.limits, self.remainder, dim, names)}

    def start_cells(self) -> list[int]:
        """The cells in which an episode may begin."""
        low, high = (end[:, None] for end in self.start)
        if np.array_equal(low, high):
            return [int(self.cells.of(low)[0])]
        return [int(cell) for cell in successors(self.cells, [(low, high)])[1] if cell != self.cells.outside]

    def in_words(self, text: str) -> str:
        """A message about the plant's problem, with cells for the numbers of states and inputs by value."""
        return words.by_value(self, text)

    def told(self, error: InvalidInput) -> InvalidInput:
        """The same error, in words."""
        return words.told(self, error)
