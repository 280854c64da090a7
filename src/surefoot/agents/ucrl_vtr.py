"""UCRL-VTR (Jia et al. 2020; Ayoub et al. 2020): optimism by value-targeted regression, blind to limits.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   all actions

Changed to fit: the radius is that of spec 6, the expected next value is clipped to the known support, and planning is
lazy. Costs are estimated for the record only. May violate: always; it does not look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from surefoot.agents.agent import check_problem
from surefoot.agents.learner import Learner
from surefoot.checks import probability
from surefoot.estimate.costs import bound_costs
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify
from surefoot.plan.confidence import cost_confidence, value_confidence
from surefoot.plan.plan import Plan
from surefoot.plan.values import optimistic_values


class UcrlVtr(Learner):
    """Learns fast, and breaks limits."""

    name: ClassVar[str] = "ucrl-vtr"

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        ridges: Sequence[float] | None = None,
        value_ridge: float = 1.0,
        optimism: float = 1.0,
        replan_growth: float = 0.1,
    ) -> None:
        check_problem(problem)
        self.failure_probability = probability("failure_probability", failure_probability)
        super().__init__(
            problem,
            cost_confidence=cost_confidence(
                problem, failure_probability=self.failure_probability, ridges=ridges, scale=1.0
            ),
            value_confidence=value_confidence(
                problem,
                failure_probability=self.failure_probability,
                value_ridge=value_ridge,
                optimism=optimism,
            ),
            replan_growth=replan_growth,
        )

    @property
    def guaranteed(self) -> bool:
        return False

    @property
    def guarantee(self) -> str:
        return "no safety guarantee"

    @property
    def constants(self) -> dict[str, Any]:
        return {
            "failure_probability": self.failure_probability,
            "ridges": list(self.cost_confidence.ridges),
            "value_ridge": self.value_confidence.ridge,
            "optimism": self.value_confidence.optimism,
            "replan_growth": self.replan_growth,
        }

    def _make_plan(self) -> Plan:
        graph = self.problem.graph
        bounds = bound_costs(self.problem, self.costs, self.cost_confidence)
        known = self.value_ellipsoids()
        everything = Certified(
            tuple(np.ones(layer.n_pairs, bool) for layer in graph.layers),
            tuple(np.ones(graph.n_states(h), bool) for h in range(graph.horizon)),
        )
        no_bonus = [np.zeros(layer.n_pairs) for layer in graph.layers]
        caps = [float(graph.horizon - h) for h in range(graph.horizon - 1)]
        values = optimistic_values(graph, everything, no_bonus, known, caps)
        certified = certify(graph, bounds, self.problem.limits)
        return Plan(self.problem, bounds, certified, values, known, self.replans)
