"""CRPO (Xu, Liang, Lan 2021): one objective at a time, the reward while the budgets are kept, else what is overspent.

With Q_r, Q_j and the expected costs V_j of the start, of the policy in force and by the counts, an episode's step is

    π ∝ π·exp(α Q_r)      while  V_j ≤ n·c̄_j + τ_j  for all j
    π ∝ π·exp(−α Q_j/C_j) else, for the j that is overspent most in units of C_j = L_j·max‖x‖

    α = scale / √(n³·S·A·K),      τ_j = tolerance·C_j,  by default √(n³·S·A/K)·C_j,      n steps

Port of: Algorithm 1 with a table for a policy. Sources: the rule read in a detailed text and, for its deep version, in
the code of a library; its constants are orders, taken with the factor 1.
Changed to fit: 1/(1 − γ) becomes n; Q is that of the model that was counted, where the paper samples it anew for every
step; all iterates are played, where the paper returns one that passed the test; a plan every ``stride`` episodes.
Assumes: nothing about features; limits on the expected cost of an episode; and no need to explore.
Guarantees: nothing about steps; an excess over the budget of the order τ.
May violate: single steps wherever the budget of the whole episode leaves room; and the budget, by its tolerance.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.mirrored import Mirrored
from surefoot.agents.blocks.tabular import Tabular, TabularOptions, budgets, on_model
from surefoot.checks import at_least
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class CrpoOptions(TabularOptions):
    stride: int
    tolerance: float


class Evaluation(NamedTuple):
    """A policy as the counts see it: rewards, and costs in units of C."""

    rewards: tuple[FloatArray, ...]  # H-1 of (N,)  Q_r
    costs: tuple[tuple[FloatArray, ...], ...]  # m of H-1 of (N,)  Q_j/C_j
    spent: FloatArray  # (m,)  V_j/C_j of the start, of several the mean


class Crpo(Mirrored, Tabular):
    """Earns until it overspends, then saves."""

    name: ClassVar[str] = "crpo"
    options: CrpoOptions
    _seen: Evaluation | None

    def __init__(
        self, problem: Problem, failure_probability: float = 0.05, *, tolerance: float | None = None, **shared: Any
    ) -> None:
        self._given = None if tolerance is None else at_least("tolerance", tolerance, 0.0)
        self._largest = np.maximum(check_problem(problem).largest_costs, 1e-300)
        # n³·S·A, of the step with the most states and actions
        self._size = (problem.horizon - 1) ** 3 * max(layer.n_pairs for layer in problem.graph.layers)
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> CrpoOptions:
        tolerance = math.sqrt(self._size / self._episodes) if self._given is None else self._given
        return CrpoOptions(**asdict(super()._with_own(options)), stride=self._stride, tolerance=tolerance)

    def _make_plan(self) -> Plan:
        if self._seen is not None and self._steps_due > 0:
            self._climb(self._direction(self._seen, self._steps_due))
        self._seen = self._evaluate()
        return self._counted_plan(self._policy_now())

    def _direction(self, seen: Evaluation, times: int) -> list[FloatArray]:
        """Per decision layer (N,): what so many steps add to the logarithms of the policy."""
        alpha = times * self._scale / math.sqrt(self._size * self._episodes)
        excess = seen.spent - budgets(self.problem) / self._largest
        worst = int(np.argmax(excess))
        if excess[worst] <= self.options.tolerance:
            return [alpha * q for q in seen.rewards]
        return [-alpha * q for q in seen.costs[worst]]

    def _evaluate(self) -> Evaluation:
        graph, model, m = self.problem.graph, self._model(), len(self._largest)
        rewards, _ = on_model(graph, model, self.mirror)
        mean = [self.counts.mean_costs(h) / self._largest for h in range(graph.horizon)]
        found = [on_model(graph, model, self.mirror, [each[:, j] for each in mean]) for j in range(m)]
        spent = np.array([value[0][graph.starts].mean() for _, value in found])
        return Evaluation(rewards, tuple(q for q, _ in found), spent)
