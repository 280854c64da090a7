"""OPDOP (Ding, Wei, Yang, Wang, Jovanović 2021): optimistic policy optimisation with a price on each budget.

The only learner for constrained problems that was made for linear mixtures. Per episode, with Q_r, Q_j and V_j of the
episode before, V_j = V_j of the start, and prices Y_j,

    π(a|s) ∝ ((1−θ) π(a|s) + θ/|A|) · exp(α (Q_r − Σ Y_j Q_j)),   Y_j = [Y_j + η (V_j − n·c̄_j)] in [0, χ_j]
    Q_r = r + ⟨θ̂_r, φ_f⟩ + β‖φ_f‖,      f = V_r(s')                  at most R_h, as optimistic as may be
    Q_j = ⟨θ̂_j, φ_f⟩ − C_j·β‖φ_f‖,      f = lower_j + V_j(s')        V under π, each f with its own regression

    α = √log|A|/(n²√K),  η = 1/√K,  θ = 1/K,  χ_j = 2n/ξ_j,  λ = 1,  β = scale·√(d·R²·log(dnK/p)),  n steps

Port of: the paper's algorithm, for costs in place of utilities. Sources: remembered with some confidence; no code is
public.
Changed to fit: a cost belongs to a triplet here and is estimated by the lower bound of spec 3; expectations are
clipped to the known support; C_j = L_j·max‖x‖ is the scale of a cost, and ξ_j the fallback's slack, spec 5's summed
over the steps. A plan is made every ``stride`` episodes, and then takes that many steps at once; 1 is the paper.
Assumes: transitions that are a linear mixture, a policy strictly below the expected budget.
Guarantees: regret and total excess over the budget that grow like √K; nothing about steps.
May violate: single steps wherever the budget of the whole episode leaves room; and the budget, while it learns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.mirrored import Mirrored
from surefoot.agents.blocks.tabular import budgets, total_slack
from surefoot.checks import at_least, whole
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.model import expected
from surefoot.estimate.weighted import WeightedData, by_edge
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.certify import certify
from surefoot.plan.mirror import averaged, dual_step, most_actions
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come


@dataclass(frozen=True, kw_only=True)
class OpdopOptions(BaselineOptions):
    episodes: int
    scale: float
    stride: int
    slack: tuple[float, ...]  # (m,) ξ


class Evaluated(NamedTuple):
    """A policy as the regressions see it."""

    gains: tuple[FloatArray, ...]  # H-1 of (N,)  Q_r − Σ Y_j Q_j
    worth: tuple[tuple[FloatArray, ...], ...]  # 1+m functions, each H-1 of (E,): what their regressions are told
    cost: FloatArray  # (m,)  V_j of the start, of several the mean
    q: tuple[FloatArray, ...]
    value: tuple[FloatArray, ...]


class Opdop(Mirrored):
    """Raises the price of what is overspent."""

    name: ClassVar[str] = "opdop"
    traced: ClassVar[bool] = True
    options: OpdopOptions
    _seen: Evaluated | None

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        episodes: int = 1000,
        scale: float = 1.0,
        stride: int = 10,
        slack: float | Sequence[float] | None = None,
        ridges: Sequence[float] | None = None,
        replan_growth: float = 0.1,
    ) -> None:
        self._episodes, self._scale = whole("episodes", episodes, 1), at_least("scale", scale, 0.0)
        self._slack = total_slack(check_problem(problem), slack)
        # of rewards, then of each limit's costs
        self.functions = tuple(WeightedData(problem, 1.0) for _ in range(1 + len(problem.limits)))
        super().__init__(problem, failure_probability, stride=stride, ridges=ridges, replan_growth=replan_growth)

    def _with_own(self, options: BaselineOptions) -> OpdopOptions:
        slack = tuple(self._slack.tolist())
        own = asdict(options)
        return OpdopOptions(**own, episodes=self._episodes, scale=self._scale, stride=self._stride, slack=slack)

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        assert self._seen is not None
        layer = self.problem.graph.layers[h]
        for data, worth in zip(self.functions, self._seen.worth, strict=True):
            data.count(data.row(h, layer, edge, worth[h]))

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        if self._seen is not None and self._steps_due > 0:
            self._step(self._seen, self._steps_due)
        for data in self.functions:
            data.bank.refresh()
        bounds = self._bounds()
        seen = self._seen = self._evaluate(bounds)
        certified = certify(graph, bounds, problem.bounds)
        return self._drawn_plan(bounds, certified, self._policy_now(), seen.q, seen.value)

    def _step(self, seen: Evaluated, times: int) -> None:
        """So many steps of mirror ascent and of the prices, with what the policy in force was seen to be worth."""
        graph, k, n = self.problem.graph, self.options.episodes, self.problem.horizon - 1
        rates = [times * math.sqrt(math.log(most_actions(layer))) / (n * n * math.sqrt(k)) for layer in graph.layers]
        gains = [rate * gain for rate, gain in zip(rates, seen.gains, strict=True)]
        self._climb(gains, explore=1.0 - (1.0 - 1.0 / k) ** times)
        most = 2.0 * n / np.array(self.options.slack)
        self.prices[:] = dual_step(self.prices, seen.cost, budgets(self.problem), times / math.sqrt(k), most)

    def _evaluate(self, bounds: CostBounds) -> Evaluated:
        """Optimistic values of rewards and of every limit's costs under the policy, backward."""
        problem, graph = self.problem, self.problem.graph
        m, most = len(problem.limits), most_to_come(graph)
        last = np.zeros((graph.terminal.n_states, m))
        if bounds.terminal_lower is not None:
            last = np.where(graph.terminal.has_cost[:, None], bounds.terminal_lower, 0.0)
        ahead = [graph.terminal.reward, *last.T]
        values, q, gains = [ahead[0]], list[FloatArray](), list[FloatArray]()
        worth: list[list[FloatArray]] = [[] for _ in range(1 + m)]
        steps = range(problem.horizon - 1)
        signs = (1.0, *(-problem.largest_costs))
        known = [
            data.ellipsoids([sign * self._beta(h) for h in steps], 1.0)
            for data, sign in zip(self.functions, signs, strict=True)
        ]
        for h in reversed(steps):
            layer = graph.layers[h]
            now = [np.zeros(layer.n_edges), *layer.worst_of_edges(bounds.lower[h]).T]
            told = [cost + by_edge(layer, v) for cost, v in zip(now, ahead, strict=True)]
            found = [expected(layer, f, each[h]) for f, each in zip(told, known, strict=True)]
            found[0] = np.clip(layer.reward + found[0], 0.0, most[h])
            gains.insert(0, found[0] - sum((y * each for y, each in zip(self.prices, found[1:], strict=True)), 0.0))
            ahead = [averaged(layer, self.mirror[h], each) for each in found]
            for row, f in zip(worth, told, strict=True):
                row.insert(0, f)
            q.insert(0, found[0])
            values.insert(0, ahead[0])
        cost = np.array([each[graph.starts].mean() for each in ahead[1:]])
        return Evaluated(tuple(gains), tuple(map(tuple, worth)), cost, tuple(q), tuple(values))

    def _beta(self, h: int) -> float:
        d, n, options = self.problem.graph.transition_dim, self.problem.horizon - 1, self.options
        log = math.log(max(d, 2) * n * options.episodes / options.failure_probability)
        return options.scale * (n - h) * math.sqrt(d * log)

    def _data(self) -> dict[str, NDArray[Any]]:
        found = super()._data()
        for i, data in enumerate(self.functions):
            found.update(data.arrays(f"function{i}"))
        return found
