"""A shield that is built from the declaration alone, as published ones are: UCRL-VTR over what needs no data.

A pair is allowed when the bounds that hold before anything is measured (the prior, the norm, the anchor; spec 3) prove
it safe with all that may follow (spec 4). That set never grows: what has to be measured stays forbidden.

Port of: shields on a known abstraction (Alshiekh et al. 2018), with bounds for costs. Sources: remembered.
Changed to fit: what is allowed follows from declared norms, priors and anchors; inside, UCRL-VTR.
Assumes: what the Problem declares.
Guarantees: every step safe.
May violate: never, if what the Problem declares is true.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from surefoot.agents.blocks.baseline import Baseline
from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.plan.certify import Certified, certify, fallback_only


class StaticShield(Baseline):
    """Learns transitions and rewards inside a fixed set.

    Examples:
        >>> problem = sf.worlds.make("thermal/testing").problem
        >>> static, learned = sf.agents.make("static-shield", problem), sf.LsviNew(problem)
        >>> static.plan.n_certified() == learned.plan.n_certified()  # before the first episode
        True
    """

    name: ClassVar[str] = "static-shield"

    @property
    def guaranteed(self) -> bool:
        return True

    @property
    def promise(self) -> str:
        return "every step safe, by the declaration alone"

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        """Data that contradict the declaration leave the fallback alone."""
        allowed = self._declared if bounds.consistent else fallback_only(self.problem.graph)
        return allowed, allowed

    @cached_property
    def _declared(self) -> Certified:
        nothing = CostData(self.problem, min(self.cost_confidence.ridges), self.costs.families)
        bounds = bound_costs(self.problem, nothing, self.cost_confidence)
        return certify(self.problem.graph, bounds, self.problem.bounds)
