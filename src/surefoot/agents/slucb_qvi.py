"""SLUCB-QVI (Amani, Thrampoulidis, Yang 2021): safe actions at each step, without looking ahead.

An action is allowed when all its successors keep every limit by their upper bounds now (eq:safetycondition1);

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹} + (2H/slack)·(half the width of the cost bound))

Changed to fit: made for linear MDPs whose states are all safe, it runs here on a linear mixture with the cost bounds of
spec 3 and the value regression of spec 6. Where no action is allowed, it plays the one with the least worst upper
bound. May violate: by entering states that have no safe action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from surefoot.agents.agent import check_problem
from surefoot.agents.learner import Learner
from surefoot.checks import at_least, probability
from surefoot.estimate.costs import bound_costs
from surefoot.model.problem import Problem
from surefoot.plan.certify import certify_one_step, with_least_worst
from surefoot.plan.confidence import cost_confidence, value_confidence
from surefoot.plan.explore import pair_uncertainty, slacks
from surefoot.plan.plan import Plan
from surefoot.plan.values import optimistic_values


class SlucbQvi(Learner):
    """Safe now, perhaps not later. ``bonus`` scales the cost-width bonus; 1 is the published 2H/slack."""

    name: ClassVar[str] = "slucb-qvi"

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        ridges: Sequence[float] | None = None,
        value_ridge: float = 1.0,
        optimism: float = 1.0,
        bonus: float = 1.0,
        slack: float | Sequence[float] | None = None,
        replan_growth: float = 0.1,
    ) -> None:
        check_problem(problem)
        self.failure_probability = probability("failure_probability", failure_probability)
        self.bonus = at_least("bonus", bonus, 0.0)
        self._slack = slacks(problem, slack)
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
            "bonus": self.bonus,
            "slack": self._slack.tolist(),
            "replan_growth": self.replan_growth,
        }

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds = bound_costs(problem, self.costs, self.cost_confidence)
        certified = certify_one_step(graph, bounds, problem.limits)
        allowed = with_least_worst(graph, certified, bounds, problem.limits)
        known = self.value_ellipsoids()
        # (2H/slack)·(upper − lower)/2 = H·ω, ω the relative width of spec 5.
        widths = pair_uncertainty(graph, bounds, self._slack)
        bonus = [self.bonus * graph.horizon * width for width in widths]
        caps = [float(graph.horizon - h) for h in range(graph.horizon - 1)]
        values = optimistic_values(graph, allowed, bonus, known, caps)
        return Plan(problem, bounds, certified, values, known, self.replans)
