"""LSVI-AE (Wei, Liu, Ying 2023, arXiv 2312.14470): optimism about rewards and about safety, without a safe start.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹})   over pairs that no lower bound proves unsafe (spec 5, hopeful)

Port of: the rule argmax_a Q − Z·[lower − c̄]₊ in the limit Z → ∞. Sources: remembered; how the paper lets Z grow was
not read, and no code of it is public.
Changed to fit: a pair is refused when it, or all that may follow it, is proved unsafe; where all are, the action
whose lower bound exceeds its limit least is played. The fallback counts as hopeful.
Assumes: costs that are linear in the features; no fallback is needed.
Guarantees: no step that is known to be unsafe; violations that grow slower than the number of episodes.
May violate: whatever it does not know yet; that is how it learns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from surefoot.agents.baseline import Baseline
from surefoot.agents.safe_sets import no_bonus
from surefoot.estimate.costs import bound_costs
from surefoot.plan.certify import certify, not_refuted, with_least_worst
from surefoot.plan.plan import Plan
from surefoot.plan.values import most_to_come, optimistic_values


class LsviAe(Baseline):
    """Learns what is unsafe by trying it."""

    name: ClassVar[str] = "lsvi-ae"

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds = bound_costs(problem, self.costs, self.cost_confidence)
        known = self.value_ellipsoids()
        hopeful = not_refuted(graph, bounds, problem.bounds)
        lowered = replace(bounds, upper=bounds.lower, terminal_upper=bounds.terminal_lower)
        allowed = with_least_worst(graph, hopeful, lowered, problem.bounds)
        values = optimistic_values(graph, allowed, no_bonus(problem), known, most_to_come(graph))
        certified = certify(graph, bounds, problem.bounds)
        return Plan(problem, bounds, certified, values, known, self.replans)
