"""SLUCB-QVI (Amani, Thrampoulidis, Yang 2021): safe actions at each step, without looking ahead.

An action is allowed when all its successors keep every limit by their upper bounds now (eq:safetycondition1);

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹} + (2H/slack)·(half the width of the cost bound))

Changed to fit: made for linear MDPs whose states are all safe, it runs here on a linear mixture with the cost bounds of
spec 3 and the value regression of spec 6. Where no action is allowed, it plays the one with the least worst upper
bound. May violate: by entering states that have no safe action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from surefoot.agents.agent import check_problem
from surefoot.agents.baseline import Baseline, BaselineOptions
from surefoot.checks import at_least
from surefoot.estimate.costs import bound_costs
from surefoot.model.problem import Problem
from surefoot.plan.certify import certify_one_step, with_least_worst
from surefoot.plan.explore import pair_uncertainty, slacks
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come, optimistic_values


@dataclass(frozen=True, kw_only=True)
class SlucbQviOptions(BaselineOptions):
    bonus: float
    slack: tuple[tuple[float, ...], ...]  # (H, m)


class SlucbQvi(Baseline):
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
        self._bonus = at_least("bonus", bonus, 0.0)
        self._slack = slacks(check_problem(problem), slack)
        super().__init__(
            problem,
            failure_probability,
            ridges=ridges,
            value_ridge=value_ridge,
            optimism=optimism,
            replan_growth=replan_growth,
        )

    def _with_own(self, options: BaselineOptions) -> SlucbQviOptions:
        return SlucbQviOptions(**asdict(options), bonus=self._bonus, slack=tuple(map(tuple, self._slack.tolist())))

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds = bound_costs(problem, self.costs, self.cost_confidence)
        certified = certify_one_step(graph, bounds, problem.bounds)
        allowed = with_least_worst(graph, certified, bounds, problem.bounds)
        known = self.value_ellipsoids()
        # (2H/slack)·(upper − lower)/2 = H·ω, ω the relative width of spec 5.
        widths = pair_uncertainty(graph, bounds, self._slack)
        bonus = [self._bonus * graph.horizon * width for width in widths]
        values = optimistic_values(graph, allowed, bonus, known, most_to_come(graph))
        return Plan(problem, bounds, certified, values, known, self.replans)
