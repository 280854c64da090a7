"""What the two learners of the paper's Algorithm 1 share: look-ahead, the fallback's first episodes, the promise.

:mod:`surefoot.agents.lsvi_new` has proved radii and scaled bonuses, and leaves the fallback soon;
:mod:`surefoot.agents.lsvi_new_paper` has the constants of the regret theorem. Both keep every limit with probability at
least 1 − p.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from surefoot.agents.agent import Policy
from surefoot.agents.learner import Learner, LearnerOptions, earliest
from surefoot.checks import some_of
from surefoot.estimate.costs import CostBounds
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certified_now, certify

IDEAS = ("I", "II", "III", "IV")


def check_ideas(ideas: Iterable[str]) -> tuple[str, ...]:
    """Some of the paper's four ideas, in order."""
    return some_of("idea", IDEAS, ideas)


@dataclass(frozen=True, kw_only=True)
class LookAheadOptions(LearnerOptions):
    ridges: tuple[float, ...]
    value_ridge: float
    ideas: tuple[str, ...]
    initial_episodes: int
    safety_radius_scale: float


class LookAhead(Learner):
    """Plays certified actions only, after K′ episodes of the fallback."""

    options: LookAheadOptions

    @property
    def guaranteed(self) -> bool:
        return "I" in self.options.ideas and self.options.safety_radius_scale >= 1.0

    def _certify(self, problem: Problem, bounds: CostBounds) -> tuple[Certified, Certified]:
        """Step 2: what is certified, and what may be played. They differ only without Idea I and its guarantee."""
        if "I" not in self.options.ideas:
            return certified_now(problem.graph, bounds, problem.bounds)
        certified = certify(problem.graph, bounds, problem.bounds)
        return certified, certified

    def episodes_before_change(self) -> int | None:
        left = self.options.initial_episodes - self.episodes if self.playing_fallback else None
        return earliest(super().episodes_before_change(), left)

    def _choose(self, h: int, state: int) -> int:
        """Step 5: the best certified pair; in the first K′ episodes, the fallback's."""
        if self.playing_fallback:
            pair = int(self.problem.graph.layers[h].fallback[state])
            if pair != NO_ACTION:
                return pair
        return super()._choose(h, state)

    def policy(self) -> Policy:
        return self.problem.graph.fallback if self.playing_fallback else super().policy()

    @property
    def playing_fallback(self) -> bool:
        """True in the first K′ episodes."""
        return self.episodes < self.options.initial_episodes
