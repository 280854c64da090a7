"""SLUCB-QVI (Amani, Thrampoulidis, Yang 2021): safe actions at each step, without looking ahead.

An action is allowed when all its successors keep every limit by their upper bounds now (eq:safetycondition1);

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹} + (2H/slack)·(half the width of the cost bound))

Port of: the paper's algorithm for star-convex actions. Sources: remembered; no code is public.
Changed to fit: made for linear MDPs whose states are all safe, it runs here on a linear mixture with the cost bounds of
spec 3 and the value regression of spec 6. Where no action is allowed, it plays the one with the least worst upper
bound.
Assumes: a safe action in every state.
Guarantees: every step safe with probability 1 − p while it meets no state without an action that passes; else nothing.
May violate: by entering states that have no safe action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import Baseline, BaselineOptions, certified_now
from surefoot.checks import at_least
from surefoot.estimate.costs import CostBounds
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.explore import pair_uncertainty, slacks


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
        bonus: float = 1.0,
        slack: float | Sequence[float] | None = None,
        **shared: Any,
    ) -> None:
        self._bonus = at_least("bonus", bonus, 0.0)
        self._slack = slacks(check_problem(problem), slack)
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> SlucbQviOptions:
        return SlucbQviOptions(**asdict(options), bonus=self._bonus, slack=tuple(map(tuple, self._slack.tolist())))

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        return certified_now(self.problem, bounds)

    def _bonuses(self, bounds: CostBounds) -> Sequence[FloatArray]:
        """(2H/slack)·(upper − lower)/2 = H·ω, ω the relative width of spec 5."""
        graph = self.problem.graph
        return [self._bonus * graph.horizon * width for width in pair_uncertainty(graph, bounds, self._slack)]
