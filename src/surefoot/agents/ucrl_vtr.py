"""UCRL-VTR (Jia et al. 2020; Ayoub et al. 2020): optimism by value-targeted regression, blind to limits.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   all actions

Changed to fit: the radius is that of spec 6, the expected next value is clipped to the known support, and planning is
lazy. Costs are estimated for the record only. May violate: always; it does not look.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from surefoot.agents.confined import Confined
from surefoot.estimate.costs import CostBounds
from surefoot.plan.certify import Certified, certify


class UcrlVtr(Confined):
    """Learns fast, and breaks limits."""

    name: ClassVar[str] = "ucrl-vtr"

    def _allowed(self, bounds: CostBounds) -> Certified:
        graph = self.problem.graph
        return Certified(
            tuple(np.ones(layer.n_pairs, bool) for layer in graph.layers),
            tuple(np.ones(graph.n_states(h), bool) for h in range(graph.horizon)),
        )

    def _certified(self, allowed: Certified, bounds: CostBounds) -> Certified:
        return certify(self.problem.graph, bounds, self.problem.bounds)
