"""Safe-LUCB (Amani, Alizadeh, Thrampoulidis 2019): a linear bandit that plays what is surely safe now.

    phase 1   the known safe policy, for K' = ⌈K^(2/3)⌉ episodes
    phase 2   in every state the action that pays most now, of those whose upper bounds keep every limit now

Port of: the algorithm without a known safety gap, every state and action an arm. Sources: remembered; the length of
the first phase only weakly.
Changed to fit: its constraint shares the reward's unknown parameter; here costs have their own and are measured,
rewards are known, so what is left is the first condition alone, with the bounds of spec 3. The first phase plays the
fallback instead of uniform actions of a safe ball. Where no action passes, the least worst upper bound. Exact where
the horizon is 2.
Assumes: that every state has a safe action, and that this step is all there is.
Guarantees: nothing.
May violate: by entering states that have no safe action; it does not look ahead at all.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from surefoot.agents.blocks.baseline import BaselineOptions, Paced, certified_now, no_bonus
from surefoot.checks import whole
from surefoot.model.graph import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan
from surefoot.plan.values import Values, greedy


@dataclass(frozen=True, kw_only=True)
class SafeLucbOptions(BaselineOptions):
    episodes: int
    initial_episodes: int


class SafeLucb(Paced):
    """Greedy for this step's reward within this step's limits. ``episodes`` is K."""

    name: ClassVar[str] = "safe-lucb"
    options: SafeLucbOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        episodes: int = 1000,
        initial_episodes: int | None = None,
        **shared: Any,
    ) -> None:
        self._episodes = whole("episodes", episodes, 1)
        first = math.ceil(self._episodes ** (2.0 / 3.0) - 1e-9) if initial_episodes is None else initial_episodes
        self._first = whole("initial_episodes", first, 0)
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> SafeLucbOptions:
        return SafeLucbOptions(**asdict(options), episodes=self._episodes, initial_episodes=self._first)

    def _make_plan(self) -> Plan:
        graph, bounds = self.problem.graph, self._bounds()
        certified, allowed = certified_now(self.problem, bounds)
        now = [greedy(layer, layer.reward, allowed.pairs[h], 1.0) for h, layer in enumerate(graph.layers)]
        action = [chosen for _, chosen in now]
        if self.playing_fallback:
            action = [np.where(own == NO_ACTION, other, own) for own, other in zip(graph.fallback, action, strict=True)]
        values = Values(
            q=tuple(layer.reward for layer in graph.layers),
            bonus=no_bonus(graph),
            value=(*(worth for worth, _ in now), graph.terminal.reward),
            action=tuple(action),
        )
        return Plan(self.problem, bounds, certified, values, self._known(), self.replans)
