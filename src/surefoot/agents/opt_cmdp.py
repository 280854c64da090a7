"""OptCMDP (Efroni, Mannor, Pirotta 2020): the best policy of the best model that the counts allow, within a budget.

Before a plan, over all models with P̂ − b ≤ P ≤ P̂ + b on the declared support, b the Bernstein width of
surefoot.estimate.counts, the linear program of surefoot.plan.occupancy with rewards r, costs and budgets

    c~ = max( ĉ − σ√(l/n), min(0, ĉ) ),    E Σ c~_j ≤ n·c̄_j,        l = log(6·pairs·K/p)

Port of: the extended linear program. Sources: read in the code of DOPE's authors, who compare with it; the optimistic
costs remembered.
Changed to fit: costs are measured with noise σ, and a pair's optimistic cost is not below 0 unless its mean is;
widths are known to be 0 where an action has one declared successor. ``scale`` multiplies all widths; 1 is published.
Assumes: nothing about features; limits on the expected cost of an episode.
Guarantees: regret and the total excess over the budget that grow like √K; nothing about steps.
May violate: single steps wherever the budget of the whole episode leaves room; and the budget, while it learns.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from surefoot.agents.baseline import BaselineOptions
from surefoot.agents.tabular import Tabular, budgets, by_triplet, fallback_chances
from surefoot.estimate.counts import bernstein
from surefoot.model.graph import FloatArray
from surefoot.plan.occupancy import best_occupancy
from surefoot.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class OptCmdpOptions(BaselineOptions):
    episodes: int
    scale: float


class OptCmdp(Tabular):
    """Spends the whole episode's budget where it pays most."""

    name: ClassVar[str] = "opt-cmdp"

    def _with_own(self, options: BaselineOptions) -> BaselineOptions:
        return OptCmdpOptions(**asdict(options), episodes=self._episodes, scale=self._scale)

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        steps = range(len(graph.layers))
        inside = [bernstein(self.counts, h, self.log_term, self._scale) for h in steps]
        costs = [self._hoped(h) for h in range(problem.horizon)]
        rewards = [*(layer.reward for layer in graph.layers), graph.terminal.reward]
        low, high = [each.low for each in inside], [each.high for each in inside]
        found = best_occupancy(graph, low, high, rewards, by_triplet(graph, costs), budgets(problem))
        return self.drawn_plan(fallback_chances(graph) if found is None else found.chances)

    def _hoped(self, h: int) -> FloatArray:
        """(N, m) c~ of a layer."""
        mean = self.counts.mean_costs(h)
        return np.maximum(mean - self._scale * cost_width(self, h), np.minimum(mean, 0.0))


def cost_width(agent: Tabular, h: int) -> FloatArray:
    """(N, m) σ_j√(l/n), n at least 1, of a layer's pairs; of the last layer's states likewise."""
    noise = agent.problem.noise_of(1)
    n = np.maximum(agent.counts.measured[h], 1)[:, None]
    width: FloatArray = noise * math.sqrt(agent.log_term) / np.sqrt(n)
    return width
