"""DOPE (Bura et al. 2022): optimistic about models and rewards, pessimistic about costs; the fallback first.

    first K₀ = S³H³/ξ² episodes: the fallback; ξ its slack below the budget, in units of the largest cost
    then the program of OptCMDP (surefoot.agents.opt_cmdp) with the narrower widths b of the published code and
        costs    ĉ + σ√(l/n) + C·H·Σ_{s'} b(s,a,s')          C_j = L_j·max‖x‖, no cost is larger; ĉ = C unseen
        rewards  r + (3H/ξ)·Σ_{s'} b(s,a,s')
    where no policy keeps the budget so: the fallback again

Port of: the paper's learner. Sources: widths, costs, K₀ and the way out read in the authors' code; the reward's bonus
remembered, and the code for two of their problems leaves it out.
Changed to fit: costs are measured with noise σ; ``scale`` multiplies all widths, ``bonus`` the reward's bonus and
``initial_episodes`` replaces K₀; by default all are as published, and only the fallback is played for very long.
Assumes: nothing about features; a fallback strictly below the expected budget.
Guarantees: with probability 1 − p no episode whose *expected* cost exceeds the budget; nothing about steps.
May violate: single steps wherever the budget of the whole episode leaves room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.tabular import Tabular, TabularOptions, fallback_chances, total_slack
from surefoot.checks import at_least, whole
from surefoot.estimate.counts import empirical
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class DopeOptions(TabularOptions):
    bonus: float
    initial_episodes: int
    slack: tuple[float, ...]  # (m,) ξ, in units of the largest cost


class Dope(Tabular):
    """Within the expected budget all the time."""

    name: ClassVar[str] = "dope"
    options: DopeOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        bonus: float = 1.0,
        initial_episodes: int | None = None,
        slack: float | Sequence[float] | None = None,
        **shared: Any,
    ) -> None:
        self._bonus = at_least("bonus", bonus, 0.0)
        self._largest = np.maximum(check_problem(problem).largest_costs, 1e-300)
        self._slack = total_slack(problem, slack) / self._largest
        first = first_episodes(problem, float(self._slack.min())) if initial_episodes is None else initial_episodes
        self._first = whole("initial_episodes", first, 0)
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> DopeOptions:
        own = asdict(super()._with_own(options))
        slack = tuple(self._slack.tolist())
        return DopeOptions(**own, bonus=self._bonus, initial_episodes=self._first, slack=slack)

    def _make_plan(self) -> Plan:
        graph, steps = self.problem.graph, self.problem.horizon - 1
        if self.playing_fallback:
            return self._counted_plan(fallback_chances(graph))
        inside = [empirical(self.counts, h, self.log_term, self._scale) for h in range(steps)]
        doubt = [np.add.reduceat(inside[h].width, layer.pair_ptr[:-1]) for h, layer in enumerate(graph.layers)]
        costs = [self._feared(h) for h in range(steps + 1)]
        for h in range(steps):
            costs[h] = costs[h] + self._largest * steps * doubt[h][:, None]
        costs[-1] = np.where(graph.terminal.has_cost[:, None], costs[-1], 0.0)
        extra = self._bonus * 3.0 * steps / float(self._slack.min())
        rewards = [layer.reward + extra * doubt[h] for h, layer in enumerate(graph.layers)]
        return self._within_budget(inside, rewards, costs)

    def _feared(self, h: int) -> FloatArray:
        """(N, m) ĉ + σ√(l/n) of a layer, C where nothing was seen."""
        seen = self.counts.measured[h][:, None] > 0
        return np.where(seen, self.counts.mean_costs(h) + self._cost_width(h), self._largest)


def first_episodes(problem: Problem, slack: float) -> int:
    """K₀ = S³H³/ξ², S the largest number of states of a step and H the number of decisions."""
    states = max(layer.n_states for layer in problem.graph.layers)
    return math.ceil((states * (problem.horizon - 1)) ** 3 / slack**2)
