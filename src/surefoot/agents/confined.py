"""UCRL-VTR inside a set of pairs that never changes: a shield that is built before the first episode and not learned.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   over the allowed pairs

Costs are estimated for the record only.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from surefoot.agents.baseline import Baseline
from surefoot.estimate.costs import CostBounds, bound_costs
from surefoot.plan.certify import Certified
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come, optimistic_values


class Confined(Baseline):
    """Optimism by value-targeted regression over the pairs that :meth:`_allowed` names."""

    @abstractmethod
    def _allowed(self, bounds: CostBounds) -> Certified:
        """The pairs that may be played; each leads only to states that have one."""

    def _make_plan(self) -> Plan:
        graph = self.problem.graph
        bounds = bound_costs(self.problem, self.costs, self.cost_confidence)
        allowed = self._allowed(bounds)
        known = self.value_ellipsoids()
        no_bonus = [np.zeros(layer.n_pairs) for layer in graph.layers]
        values = optimistic_values(graph, allowed, no_bonus, known, most_to_come(graph))
        return Plan(self.problem, bounds, self._certified(allowed, bounds), values, known, self.replans)

    def _certified(self, allowed: Certified, bounds: CostBounds) -> Certified:
        """What the plan says is certified."""
        return allowed
