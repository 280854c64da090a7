"""An agent that plays what it is told, safe or not, and learns nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

import surefoot as sf
from surefoot.agents.agent import Agent, Policy
from surefoot.errors import AssumptionBroken


class Fixed(Agent):
    """Plays ``actions[h, s]``; in states without an entry it is lost."""

    name: ClassVar[str] = "fixed"

    def __init__(self, problem: sf.Problem, actions: Mapping[tuple[int, Any], Any]) -> None:
        super().__init__(problem)
        self._policy = tuple(np.full(layer.n_states, -1) for layer in problem.graph.layers)
        for (h, s), a in actions.items():
            self._policy[h][problem.state_index(h, s)] = problem.pair_index(h, s, a)

    @property
    def guaranteed(self) -> bool:
        return False

    @property
    def promise(self) -> str:
        return "none"

    @property
    def constants(self) -> dict[str, Any]:
        return {"policy": [row.tolist() for row in self._policy]}

    def _choose(self, h: int, state: int) -> int:
        if self._policy[h][state] < 0:
            raise AssumptionBroken("lost", where=self.problem.naming.at_state(h, state))
        return int(self._policy[h][state])

    def policy(self) -> Policy:
        return self._policy
