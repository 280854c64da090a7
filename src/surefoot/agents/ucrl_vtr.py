"""UCRL-VTR (Jia et al. 2020; Ayoub et al. 2020): optimism by value-targeted regression, blind to limits.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   all actions

Port of: the algorithm as its author's code has it. Sources: read in that code.
Changed to fit: the radius is that of spec 6, the expected next value is clipped to the known support, and planning is
lazy. Costs are estimated for the record only.
Assumes: transitions that are a linear mixture, and nothing about costs.
Guarantees: nothing about limits; regret of the unconstrained problem.
May violate: always; it does not look.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from surefoot.agents.baseline import Baseline
from surefoot.estimate.costs import bound_costs
from surefoot.plan.certify import certify, everything
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come, optimistic_values


class UcrlVtr(Baseline):
    """Learns fast, and breaks limits."""

    name: ClassVar[str] = "ucrl-vtr"

    def _make_plan(self) -> Plan:
        graph = self.problem.graph
        bounds = bound_costs(self.problem, self.costs, self.cost_confidence)
        known = self.value_ellipsoids()
        no_bonus = [np.zeros(layer.n_pairs) for layer in graph.layers]
        values = optimistic_values(graph, everything(graph), no_bonus, known, most_to_come(graph))
        certified = certify(graph, bounds, self.problem.bounds)
        return Plan(self.problem, bounds, certified, values, known, self.replans)
