"""What learners share whose policy takes small steps: mirror ascent, with prices for budgets (surefoot.plan.mirror).

A plan is made every ``stride`` episodes, and then takes that many steps at once; published are steps of one episode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import Paced, earliest
from surefoot.checks import whole
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.mirror import mirror_step, uniform


class Mirrored(Paced):
    """Keeps a randomised policy, from one plan to the next."""

    _seen: Any = None  # what the policy in force was found to be worth when it was planned: the next step is made of it

    def __init__(self, problem: Problem, failure_probability: float = 0.05, *, stride: int = 10, **shared: Any) -> None:
        self._stride = whole("stride", stride, 1)
        self.mirror = tuple(uniform(layer) for layer in check_problem(problem).graph.layers)
        self.prices = np.zeros(len(problem.limits))
        super().__init__(problem, failure_probability, **shared)

    def _due_at(self) -> int | None:
        stride = self._planned_at + self._stride if math.isfinite(self.replan_growth) else None
        return earliest(super()._due_at(), stride)

    @property
    def _steps_due(self) -> int:
        """How many steps the policy is behind: the episodes since the plan in force."""
        return self.episodes - self._planned_at

    def _climb(self, gains: Sequence[FloatArray], explore: float = 0.0) -> None:
        """One step of mirror ascent in every state; gains contain the step size."""
        for own, layer, gain in zip(self.mirror, self.problem.graph.layers, gains, strict=True):
            own[:] = mirror_step(layer, own, gain, explore)

    def _policy_now(self) -> tuple[FloatArray, ...]:
        return tuple(each.copy() for each in self.mirror)

    def planned(self) -> dict[str, Any]:
        return {**super().planned(), "mirror": self._policy_now(), "prices": self.prices.copy(), "seen": self._seen}

    def put_back(self, planned: Mapping[str, Any]) -> None:
        super().put_back(planned)
        self._seen, self.prices[:] = planned["seen"], planned["prices"]
        for own, before in zip(self.mirror, planned["mirror"], strict=True):
            own[:] = before

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), "prices": self.prices, **{f"mirror/{h}": pi for h, pi in enumerate(self.mirror)}}
