"""A learner on a plant: it gets exact states, learns from exact features, and certifies at the exact state (spec 9).

A thin layer over :class:`LsviNew` on the plant's problem: plans are made for the cells, and at every step the inputs
are certified again at the plant's exact state (:mod:`surefoot.plan.point`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.agents.blocks.place import under_way
from surefoot.agents.lsvi_new import LsviNew
from surefoot.checks import of_kind
from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder
from surefoot.model.arrays import FloatArray
from surefoot.model.measured import Cost
from surefoot.model.plant.plant import Plant
from surefoot.model.rays import FULL
from surefoot.model.rules import check_flag
from surefoot.plan.centres import CentreValues
from surefoot.plan.plan import Plan
from surefoot.plan.point import Point, at_point


class PlantAgent:
    """LSVI-NEW on a plant. Every step keeps every limit with probability at least 1 − p, given what is declared.

    Args:
        plant: what is known.
        failure_probability: p, of all steps of all episodes together.
        exact: certify at the exact state; False: for whole cells only, to see what that costs.
        options: of :class:`surefoot.LsviNew`.

    Examples:
        >>> plant = sf.worlds.tank().plant
        >>> agent = sf.PlantAgent(plant)
        >>> agent.begin_episode([0.45])
        >>> u = agent.act(0, [0.45])
        >>> agent.observe(0, [0.45], u, [0.75 * 0.45 + u], cost=0.3)
        >>> u, agent.promise
        (0.1, 'every step safe with probability ≥ 0.95')
    """

    def __init__(self, plant: Plant, failure_probability: float = 0.05, *, exact: bool = True, **options: Any) -> None:
        of_kind(plant, Plant, "a PlantAgent needs a Plant", "Of a simulation: truth.plant.")
        self.plant, self.exact = plant, check_flag("exact", exact)
        self.learner = LsviNew(plant.problem, failure_probability, **options)
        self._centres = CentreValues(plant)
        self._x: FloatArray | None = None  # the last state that was told
        self.by_point = False  #: is the last chosen input certified at the exact state only?

    def __repr__(self) -> str:
        return f"PlantAgent(episodes={self.episodes}, replans={self.learner.replans})"

    @property
    def plan(self) -> Plan:
        """The plan in force, of the cells."""
        return self.learner.plan

    @property
    def episodes(self) -> int:
        return self.learner.episodes

    @property
    def promise(self) -> str:
        return self.learner.promise

    @property
    def guaranteed(self) -> bool:
        return self.learner.guaranteed

    @property
    def constants(self) -> dict[str, Any]:
        return {**self.learner.constants, "exact": self.exact}

    def begin_episode(self, x: Any) -> None:
        """Start an episode in state x."""
        point = self.plant.starting(x)
        self.learner.begin_episode(self.plant.cell(point))
        self._go_to(point)

    def act(self, h: int, x: Any) -> Any:
        """The input to apply now, certified at exactly this state."""
        point = self.look(h, x)
        choice = point.of_pair(self.learner._choose(h, point.state)) if self._by_cell(point) else point.best()
        self.by_point = not point.whole_cell[choice]
        return point.choices.inputs[choice]

    def look(self, h: int, x: Any) -> Point:
        """What the plan in force certifies at state x of step h."""
        place, state = under_way(self.learner.place), self._where(h, x)
        place.expect_at("act", h, self.plant.cell(state))
        return at_point(self.plant, self.plan, self._centres.of(self.plan), h, state)

    def why(self, h: int, x: Any, u: Any) -> str:
        """In words, why an input is or is not certified at state x of step h, by the plan in force.

        Examples:
            >>> agent = sf.PlantAgent(sf.worlds.tank().plant)
            >>> agent.why(0, [0.45], 0.2).split("; ")[1]
            'it may lead to level 0.5 … 0.6, which is not certified'
        """
        return at_point(self.plant, self.plan, self._centres.of(self.plan), h, x).why_input(u)

    def _by_cell(self, point: Point) -> bool:
        """Do whole cells decide? In the fallback's first episodes, and if exact states are not wanted."""
        return not self.exact or not self.plan.consistent or self.learner.playing_fallback

    def observe(self, h: int, x: Any, u: Any, x_next: Any, cost: Cost) -> None:
        """Tell what the input did: the exact next state and the measured cost."""
        state, after = self._where(h, x), self.plant.cells.point("a next state", x_next)
        number, intensity = self.plant.placed(h, state, u)
        value = self.plant.inputs.values[number] if intensity == FULL else u
        if not self.plant.may_follow(h, state, value, after):
            boxes = self.plant.boxes(h, state, value)
            raise AssumptionBroken(
                "the next state is outside what the models and the disturbance allow",
                where=f"step {h}, state {state.tolist()}, input {value!r}",
                got="; or ".join(self.plant.cells.beyond(after, low, high) for low, high in boxes),
                fix="Declare a larger disturbance, or mend the models.",
            )
        features = self.plant.features(h, state, value, after)
        played = intensity if self.plant.rays else None
        places = self.plant.cell(state), number, self.plant.cell(after)
        self.learner.observe(h, *places, cost, features=features, intensity=played)
        self._go_to(after)

    def end_episode(self) -> None:
        """Finish the episode; between episodes a new plan is made if the data have grown enough."""
        try:
            self.learner.end_episode()
        except InvalidInput as error:  # about a cell that the graph has reached
            raise self.plant.told(error) from None

    def abort_episode(self) -> None:
        self.learner.abort_episode()

    def _go_to(self, x: FloatArray) -> None:
        self._x = x
        if self.learner.place is not None:
            self.learner.place.exact = x.tolist()

    def _where(self, h: int, x: Any) -> FloatArray:
        """The state, if it is the one that was told last; another one is refused."""
        point = self.plant.cells.point("a state", x)
        if self._x is None or not np.array_equal(point, self._x):
            last = None if self._x is None else self._x.tolist()
            got = f"{point.tolist()}, told last was {last}"
            fix = "Give the state that was told, not another reading of it."
            raise OutOfOrder("the plant is elsewhere", where=f"step {h}", got=got, fix=fix)
        return point
