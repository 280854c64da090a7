"""What the two learners of the paper's Algorithm 1 share: look-ahead, first episodes of the fallback, the promise.

:mod:`surefoot.agents.lsvi_new` has proved radii and scaled bonuses, and moves; :mod:`surefoot.agents.lsvi_new_paper`
has the constants of the regret theorem. Both keep every limit with probability at least 1 − p.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from surefoot.agents.agent import Policy
from surefoot.agents.learner import Learner, LearnerOptions
from surefoot.checks import some_of
from surefoot.estimate.costs import CostBounds
from surefoot.model.graph import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify, certify_one_step, with_least_worst

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
        """Step 2: what is certified, and what may be played; they differ only without Idea I, and its guarantee."""
        graph, limits = problem.graph, problem.bounds
        if "I" in self.options.ideas:
            certified = certify(graph, bounds, limits)
            return certified, certified
        certified = certify_one_step(graph, bounds, limits)
        return certified, with_least_worst(graph, certified, bounds, limits)

    def episodes_before_change(self) -> int | None:
        return self.options.initial_episodes - self.episodes if self.playing_fallback else None

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
