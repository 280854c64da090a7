"""OPSE-LCMDP (Kitamura et al. 2025): within the expected budget in every episode, by a softmax policy and a price.

With one feature per pair, β = 1/√(1 + n) and P̂V = Σ_{s'} n(s,a,s') V(s')/(1 + n); u_j = ½ − cost_j/(2C_j) in [0, 1]
is a utility, C_j = L_j·max‖x‖, and b_j what a policy has that spends n·c̄_j. Backward, for a price y,

    Q_r = r + [C_r β + P̂V_r] in [0, (steps left)(1 + κ log A)]          V_r = Σ π (Q_r − κ log π)
    Q_+ = B β + [C_+ β + P̂V_+] in [0, B·(steps left)]                   makes up for the pessimism below
    Q_j = u_j + [−C_u β + P̂V_j] in [0, steps left]
    π ∝ exp((Q_+ + Q_r + y Σ_j Q_j)/κ)

and the least y in [0, Y] for which V_j ≥ b_j for every j (20 bisections); the fallback, where even y = Y is too little.

Port of: the paper's learner with features of tables. Sources: read in the authors' code.
Changed to fit: utilities are known there and measured here: u_j is Σu/(1 + n) of the measurements, less σ_j/(2C_j)·β;
one price for all limits. Constants are those of the paper's experiments with random tables, C_r = C_u = C_+ = B = 1,
Y = 300, κ = 0.1; the theory's are larger by orders. ``scale`` multiplies C_r, C_u, C_+ and B.
Assumes: nothing about features here; a fallback strictly below the expected budget.
Guarantees: with the theory's constants, no episode whose *expected* cost exceeds the budget; nothing about steps.
May violate: single steps wherever the budget of the whole episode leaves room.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from surefoot.agents.agent import Chances
from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.tabular import Tabular, budgets, costed_steps, fallback_chances
from surefoot.checks import at_least
from surefoot.model.graph import FloatArray, IntArray
from surefoot.model.problem import Problem
from surefoot.plan.mirror import averaged, softmax
from surefoot.plan.plan import Plan

BISECTIONS = 20


@dataclass(frozen=True, kw_only=True)
class OpseLcmdpOptions(BaselineOptions):
    scale: float
    largest_price: float
    temperature: float


class Priced(NamedTuple):
    """The policy of one price."""

    chances: Chances
    utilities: FloatArray  # (m,)  V_j of the start, of several the mean


class OpseLcmdp(Tabular):
    """Within the expected budget, by its own lights, in every episode."""

    name: ClassVar[str] = "opse-lcmdp"

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        scale: float = 1.0,
        largest_price: float = 300.0,
        temperature: float = 0.1,
        replan_growth: float = 0.1,
    ) -> None:
        self._most = at_least("largest_price", largest_price, 0.0)
        self._kappa = at_least("temperature", temperature, 0.0, strictly=True)
        super().__init__(problem, failure_probability, scale=scale, replan_growth=replan_growth)

    def _with_own(self, options: BaselineOptions) -> OpseLcmdpOptions:
        return OpseLcmdpOptions(**asdict(options), scale=self._scale, largest_price=self._most, temperature=self._kappa)

    def _make_plan(self) -> Plan:
        problem = self.problem
        largest = np.maximum(problem.largest_costs, 1e-300)
        needed = 0.5 * costed_steps(problem) - budgets(problem) / (2.0 * largest)
        dear = self._priced(self._most)
        if not np.all(dear.utilities >= needed):
            return self._counted_plan(fallback_chances(problem.graph))
        found = self._priced(0.0)
        if not np.all(found.utilities >= needed):
            low, high, found = 0.0, self._most, dear
            for _ in range(BISECTIONS):
                middle = 0.5 * (low + high)
                tried = self._priced(middle)
                if np.all(tried.utilities >= needed):
                    high, found = middle, tried
                else:
                    low = middle
        return self._counted_plan(found.chances)

    def _priced(self, price: float) -> Priced:
        """The softmax policy of a price, built backward together with what it is worth."""
        graph, c = self.problem.graph, self._scale
        value_r, value_u = graph.terminal.reward, self._last_utilities()
        value_plus = np.zeros(graph.terminal.n_states)
        chances = list[FloatArray]()
        for h in reversed(range(len(graph.layers))):
            layer, visits = graph.layers[h], self.counts.visits[h]
            seen = 1.0 + self.counts.of_pairs(h)
            beta, left = 1.0 / np.sqrt(seen), float(graph.horizon - 1 - h)
            actions = spread_counts(layer.state_ptr)

            def ahead(value: FloatArray) -> FloatArray:
                """P̂V of every pair."""
                mean: FloatArray = np.add.reduceat(visits * value[layer.successor], layer.pair_ptr[:-1]) / seen  # noqa: B023
                return mean

            most = left * (1.0 + self._kappa * np.log(actions))
            q_r = layer.reward + np.clip(c * beta + ahead(value_r), 0.0, most)
            q_plus = c * beta + np.clip(c * beta + ahead(value_plus), 0.0, c * left)
            per_limit = np.array([ahead(each) for each in value_u.T]).T
            q_u = self._utilities(h, beta) + np.clip(per_limit - c * beta[:, None], 0.0, left)
            pi = softmax(layer, (q_plus + q_r + price * q_u.sum(axis=1)) / self._kappa)
            entropy = -self._kappa * np.log(np.maximum(pi, np.finfo(np.float64).tiny))
            value_r, value_plus = averaged(layer, pi, q_r + entropy), averaged(layer, pi, q_plus)
            value_u = np.array([averaged(layer, pi, each) for each in q_u.T]).T
            chances.insert(0, pi)
        return Priced(tuple(chances), value_u[graph.starts].mean(axis=0))

    def _utilities(self, h: int, beta: FloatArray) -> FloatArray:
        """(N, m) Σu_j/(1 + n) of a layer's pairs, less what the noise of so many measurements may hide."""
        largest = np.maximum(self.problem.largest_costs, 1e-300)
        noise = self.problem.noise_of(1)
        n = self.counts.measured[h][:, None]
        mean = (0.5 * n - self.counts.cost_sums[h] / (2.0 * largest)) / (1.0 + n)
        return np.clip(mean - self._scale * noise * beta[:, None] / (2.0 * largest), 0.0, 1.0)

    def _last_utilities(self) -> FloatArray:
        """(S, m) of the last states; those without a cost have the utility of a cost of 0, if any other has one."""
        last = self.problem.graph.terminal
        if not last.has_cost.any():
            return np.zeros((last.n_states, len(self.problem.limits)))
        found = self._utilities(self.problem.horizon - 1, 1.0 / np.sqrt(1.0 + self.counts.measured[-1]))
        return np.where(last.has_cost[:, None], found, 0.5)


def spread_counts(state_ptr: IntArray) -> FloatArray:
    """(N,) how many actions the state of each pair has."""
    sizes = np.diff(state_ptr)
    return np.repeat(sizes, sizes).astype(np.float64)
