"""UCRL-VTR (Jia et al. 2020; Ayoub et al. 2020): optimism by value-targeted regression, blind to limits.

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   all actions

Port of: the algorithm as its author's code has it. Sources: read in that code, which gives
the same Q with its radius and its clip (benchmarks/published_code.py).
Changed to fit: the radius is that of spec 6, the expected next value is clipped to the known support, and planning is
lazy. Costs are estimated for the record only.
Assumes: transitions that are a linear mixture, and nothing about costs.
Guarantees: nothing about limits; regret of the unconstrained problem.
May violate: always; it does not look.
"""

from __future__ import annotations

from typing import ClassVar

from surefoot.agents.blocks.baseline import Baseline


class UcrlVtr(Baseline):
    """Learns fast, and breaks limits: a baseline that allows everything."""

    name: ClassVar[str] = "ucrl-vtr"
