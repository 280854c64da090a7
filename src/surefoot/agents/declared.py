"""Agents that are safe by the declaration alone, whatever is measured: the fallback, and a shield that never grows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from surefoot.agents.agent import Agent, Policy
from surefoot.agents.blocks.baseline import Baseline
from surefoot.errors import AssumptionBroken
from surefoot.estimate.costs import CostBounds, CostData, bound_costs
from surefoot.model.layer import NO_ACTION
from surefoot.plan.certify import Certified, certify, fallback_only


class Fallback(Agent):
    """The known safe policy itself: the agent that all others must beat, and never breaks a limit.

    Port of: nothing; it is what the problem declares.
    Changed to fit: nothing.
    Assumes: that the fallback is as safe as declared.
    Guarantees: every step safe, by that assumption.
    May violate: never, if the fallback is as safe as declared.
    """

    name: ClassVar[str] = "fallback"
    grows: ClassVar[bool] = True
    knows_rays: ClassVar[bool] = True  # and plays none

    guaranteed = True
    promise = "safe by assumption: the fallback"

    @property
    def constants(self) -> dict[str, Any]:
        return {}

    def _choose(self, h: int, state: int) -> int:
        pair = int(self.problem.graph.layers[h].fallback[state])
        if pair == NO_ACTION:
            raise AssumptionBroken("the fallback has no action", where=self.problem.naming.at_state(h, state))
        return pair

    def policy(self) -> Policy:
        return self.problem.graph.fallback


class StaticShield(Baseline):
    """A shield that is built from the declaration alone, as published ones are: UCRL-VTR over what needs no data.

    A pair is allowed when the bounds that hold before anything is measured (the prior, the norm, the anchor; spec 3)
    prove it safe with all that may follow (spec 4). That set never grows: what has to be measured stays forbidden.

    Port of: shields on a known abstraction (Alshiekh et al. 2018), with bounds for costs. Sources: remembered.
    Changed to fit: what is allowed follows from declared norms, priors and anchors; inside, UCRL-VTR.
    Assumes: what the Problem declares.
    Guarantees: every step safe.
    May violate: never, if what the Problem declares is true.

    Examples:
        >>> problem = sf.worlds.make("thermal/testing").problem
        >>> static, learned = sf.agents.make("static-shield", problem), sf.LsviNew(problem)
        >>> static.plan.n_certified() == learned.plan.n_certified()  # before the first episode
        True
    """

    name: ClassVar[str] = "static-shield"

    guaranteed = True
    promise = "every step safe, by the declaration alone"

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        """If the data contradict the declaration, only the fallback is left."""
        allowed = self._declared if bounds.consistent else fallback_only(self.problem.graph)
        return allowed, allowed

    @cached_property
    def _declared(self) -> Certified:
        known = self.cost_confidence
        nothing = CostData(self.problem, min(known.ridges), self.costs.families, shaped=known.shaped)
        bounds = bound_costs(self.problem, nothing, self.cost_confidence)
        return certify(self.problem.graph, bounds, self.problem.bounds)
