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

from typing import ClassVar

from surefoot.agents.blocks.tabular import Tabular
from surefoot.estimate.counts import bernstein
from surefoot.plan.plan import Plan


class OptCmdp(Tabular):
    """Spends the whole episode's budget where it pays most."""

    name: ClassVar[str] = "opt-cmdp"

    def _make_plan(self) -> Plan:
        layers = self.problem.graph.layers
        inside = [bernstein(self.counts, h, self.log_term, self._scale) for h in range(len(layers))]
        costs = [self._hoped_costs(h) for h in range(self.problem.horizon)]
        return self._within_budget(inside, [layer.reward for layer in layers], costs)
