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

from surefoot.agents.blocks.baseline import Baseline
from surefoot.estimate.costs import CostBounds
from surefoot.plan.certify import Certified, certify, not_refuted, with_least_worst


class LsviAe(Baseline):
    """Learns what is unsafe by trying it."""

    name: ClassVar[str] = "lsvi-ae"

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        graph, limits = self.problem.graph, self.problem.bounds
        lowered = replace(bounds, upper=bounds.lower, terminal_upper=bounds.terminal_lower)
        hopeful = with_least_worst(graph, not_refuted(graph, bounds, limits), lowered, limits)
        return certify(graph, bounds, limits), hopeful
