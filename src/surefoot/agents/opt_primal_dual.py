"""OptPrimalDual-CMDP (Efroni, Mannor, Pirotta 2020): optimistic counts, mirror ascent, and a price on each budget.

Per episode, with Q and V of the policy in force, as optimistic about rewards and costs as the counts allow, and C_j =
L_j·max‖x‖ the unit of a cost,

    Q_r = [r + n·Σ_{s'} b(s,a,s') + P̂V_r] in [0, R_h],      Q_j = [c~_j/C_j − n·Σ_{s'} b(s,a,s') + P̂V_j] in [l_j, n−h]
    π ∝ π·exp(t·(Q_r − Σ Y_j Q_j)),       Y_j = [Y_j + (V_j − n·c̄_j/C_j)/u]₊

    t = √(2 log A / (n²(1+ρ)²K)),  u = √(n²K/ρ²),  ρ = n/ξ,   ξ the fallback's slack below the budget in units of C,
    b and c~ as in OptCMDP; l_j = (n−h)·min(0, the least ĉ_j/C_j)

Port of: the paper's optimistic primal-dual algorithm. Sources: remembered, step sizes only weakly; no code was found.
Changed to fit: costs are measured with noise; values of costs may be negative where costs are. ``scale`` multiplies all
widths, ``step`` the step size t; 1 is published. A plan every ``stride`` episodes takes that many steps at once.
Assumes: nothing about features; a fallback strictly below the expected budget.
Guarantees: regret and the total excess over the budget that grow like √K; nothing about steps.
May violate: single steps wherever the budget of the whole episode leaves room; and the budget, while it learns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.mirrored import Mirrored
from surefoot.agents.blocks.tabular import Tabular, TabularOptions, budgets, on_model, total_slack
from surefoot.checks import at_least
from surefoot.estimate.counts import bernstein
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.mirror import dual_step, most_actions
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come


@dataclass(frozen=True, kw_only=True)
class OptPrimalDualOptions(TabularOptions):
    stride: int
    step: float
    slack: tuple[float, ...]  # (m,) ξ, in units of the largest cost


class Hoped(NamedTuple):
    """A policy as optimism sees it."""

    gains: tuple[FloatArray, ...]  # H-1 of (N,)  Q_r − Σ Y_j Q_j
    spent: FloatArray  # (m,)  V_j of the start, of several the mean


class OptPrimalDual(Mirrored, Tabular):
    """Counts, climbs, and pays for what it overspends."""

    name: ClassVar[str] = "opt-primal-dual"
    options: OptPrimalDualOptions
    _seen: Hoped | None

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        step: float = 1.0,
        slack: float | Sequence[float] | None = None,
        **shared: Any,
    ) -> None:
        self._step = at_least("step", step, 0.0)
        self._largest = np.maximum(check_problem(problem).largest_costs, 1e-300)
        self._slack = total_slack(problem, slack) / self._largest
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> OptPrimalDualOptions:
        own, slack = asdict(super()._with_own(options)), tuple(self._slack.tolist())
        return OptPrimalDualOptions(**own, stride=self._stride, step=self._step, slack=slack)

    def _make_plan(self) -> Plan:
        if self._seen is not None and self._steps_due > 0:
            self._ascend(self._seen, self._steps_due)
        self._seen = self._hope()
        return self._counted_plan(self._policy_now())

    def _ascend(self, seen: Hoped, times: int) -> None:
        n, k = self.problem.horizon - 1, self._episodes
        rho = n / float(self._slack.min())
        size = times * self._step / (n * (1.0 + rho)) * math.sqrt(2.0 / k)
        layers = self.problem.graph.layers
        rates = [size * math.sqrt(math.log(most_actions(layer))) for layer in layers]
        self._climb([rate * gain for rate, gain in zip(rates, seen.gains, strict=True)])
        pace = times * rho / (n * math.sqrt(k))
        budget, unlimited = budgets(self.problem) / self._largest, np.full(len(self.prices), np.inf)
        self.prices[:] = dual_step(self.prices, seen.spent, budget, pace, unlimited)

    def _hope(self) -> Hoped:
        graph, n = self.problem.graph, self.problem.horizon - 1
        model, most = self._model(), most_to_come(graph)
        inside = [bernstein(self.counts, h, self.log_term, self._scale) for h in range(n)]
        doubt = [n * np.add.reduceat(inside[h].width, z.pair_ptr[:-1]) for h, z in enumerate(graph.layers)]
        rewards = [*(layer.reward + doubt[h] for h, layer in enumerate(graph.layers)), graph.terminal.reward]
        gains, _ = on_model(graph, model, self.mirror, rewards, [(0.0, cap) for cap in most])
        hoped = [self._hoped_costs(h) / self._largest for h in range(n + 1)]
        least = np.minimum(0.0, [self.counts.mean_costs(h).min(axis=0) / self._largest for h in range(n + 1)]).min(
            axis=0
        )
        spent = np.zeros(len(self.prices))
        for j, price in enumerate(self.prices):
            costs = [*(hoped[h][:, j] - doubt[h] for h in range(n)), hoped[-1][:, j]]
            within = [(float((n - h) * least[j]), float(n - h)) for h in range(n)]
            q, value = on_model(graph, model, self.mirror, costs, within)
            gains = tuple(gain - price * own for gain, own in zip(gains, q, strict=True))
            spent[j] = value[0][graph.starts].mean()
        return Hoped(gains, spent)
