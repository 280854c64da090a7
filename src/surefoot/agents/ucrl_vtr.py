"""UCRL-VTR (Jia et al. 2020; Ayoub et al. 2020): optimism by value-targeted regression, blind to limits.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   all actions

Changed to fit: the radius is that of spec 6, the expected next value is clipped to the known support, and planning is
lazy. Costs are estimated for the record only. May violate: always; it does not look.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from surefoot.agents.baseline import Baseline
from surefoot.estimate.costs import bound_costs
from surefoot.plan.certify import Certified, certify
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come, optimistic_values


class UcrlVtr(Baseline):
    """Learns fast, and breaks limits."""

    name: ClassVar[str] = "ucrl-vtr"

    def _make_plan(self) -> Plan:
        graph = self.problem.graph
        bounds = bound_costs(self.problem, self.costs, self.cost_confidence)
        known = self.value_ellipsoids()
        everything = Certified(
            tuple(np.ones(layer.n_pairs, bool) for layer in graph.layers),
            tuple(np.ones(graph.n_states(h), bool) for h in range(graph.horizon)),
        )
        no_bonus = [np.zeros(layer.n_pairs) for layer in graph.layers]
        values = optimistic_values(graph, everything, no_bonus, known, most_to_come(graph))
        certified = certify(graph, bounds, self.problem.bounds)
        return Plan(self.problem, bounds, certified, values, known, self.replans)
