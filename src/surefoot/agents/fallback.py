"""The known safe policy itself: the agent that all others must beat, and never breaks a limit.

Port of: nothing; it is what the problem declares.
Changed to fit: nothing.
Assumes: that the fallback is as safe as declared.
Guarantees: every step safe, by that assumption.
May violate: never, if the fallback is as safe as declared.
"""

from __future__ import annotations

from typing import Any, ClassVar

from surefoot.agents.agent import Agent, Policy
from surefoot.errors import AssumptionBroken
from surefoot.model.graph import NO_ACTION


class Fallback(Agent):
    """Plays the fallback, learns nothing."""

    name: ClassVar[str] = "fallback"
    grows: ClassVar[bool] = True
    knows_rays: ClassVar[bool] = True  # and plays none

    @property
    def guaranteed(self) -> bool:
        return True

    @property
    def promise(self) -> str:
        return "safe by assumption: the fallback"

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
