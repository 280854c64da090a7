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
from typing import ClassVar

import numpy as np

from surefoot.agents.agent import check_problem
from surefoot.agents.baseline import BaselineOptions
from surefoot.agents.opt_cmdp import cost_width
from surefoot.agents.tabular import Tabular, budgets, by_triplet, fallback_chances, total_slack
from surefoot.checks import at_least, whole
from surefoot.estimate.counts import empirical
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.occupancy import best_occupancy
from surefoot.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class DopeOptions(BaselineOptions):
    episodes: int
    scale: float
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
        episodes: int = 1000,
        scale: float = 1.0,
        bonus: float = 1.0,
        initial_episodes: int | None = None,
        slack: float | Sequence[float] | None = None,
        replan_growth: float = 0.1,
    ) -> None:
        check_problem(problem)
        self._bonus = at_least("bonus", bonus, 0.0)
        self._largest = np.maximum(problem.largest_costs, 1e-300)
        self._slack = total_slack(problem, slack) / self._largest
        self._first = (
            first_episodes(problem, float(self._slack.min()))
            if initial_episodes is None
            else whole("initial_episodes", initial_episodes, 0)
        )
        super().__init__(problem, failure_probability, episodes=episodes, scale=scale, replan_growth=replan_growth)

    def _with_own(self, options: BaselineOptions) -> DopeOptions:
        return DopeOptions(
            **asdict(options),
            episodes=self._episodes,
            scale=self._scale,
            bonus=self._bonus,
            initial_episodes=self._first,
            slack=tuple(self._slack.tolist()),
        )

    def _due_at(self) -> int | None:
        due = super()._due_at()
        return due if due is None or self._planned_at >= self._first else min(due, self._first)

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        sure = fallback_chances(graph)
        if self.episodes < self._first:
            return self.drawn_plan(sure)
        layers, decisions = range(len(graph.layers)), len(graph.layers)
        inside = [empirical(self.counts, h, self.log_term, self._scale) for h in layers]
        doubt = [np.add.reduceat(inside[h].width, graph.layers[h].pair_ptr[:-1]) for h in layers]
        costs: list[FloatArray] = []
        for h in range(problem.horizon):
            seen = self.counts.measured[h][:, None] > 0
            cost = np.where(seen, self.counts.mean_costs(h) + self._scale * cost_width(self, h), self._largest)
            costs.append(cost + (self._largest * decisions * doubt[h][:, None] if h < decisions else 0.0))
        costs[-1] = np.where(graph.terminal.has_cost[:, None], costs[-1], 0.0)
        extra = self._bonus * 3.0 * decisions / float(self._slack.min())
        rewards = [*(layer.reward + extra * doubt[h] for h, layer in enumerate(graph.layers)), graph.terminal.reward]
        low, high = [each.low for each in inside], [each.high for each in inside]
        found = best_occupancy(graph, low, high, rewards, by_triplet(graph, costs), budgets(problem))
        return self.drawn_plan(sure if found is None else found.chances)


def first_episodes(problem: Problem, slack: float) -> int:
    """K₀ = S³H³/ξ², S the largest number of states of a step and H the number of decisions."""
    states = max(layer.n_states for layer in problem.graph.layers)
    return math.ceil((states * (problem.horizon - 1)) ** 3 / slack**2)
