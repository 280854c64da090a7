"""LSVI-NEW: least-squares value iteration by looking ahead and peeking backward (Algorithm 1 of the paper).

Between episodes, from the last layer to the first:

    Step 1  bound the cost of every triplet                    surefoot.estimate.costs    (spec 3)
    Step 2  certify actions whose every future is safe         surefoot.plan.certify      (spec 4, Idea I)
    Step 3  estimate what follows a state and an action        surefoot.estimate.values   (spec 6)
    Step 4  optimistic values, with bonuses for uncertain
            transitions, futures and pasts                     surefoot.plan.explore      (spec 5, Ideas II-IV)
    Step 5  in the episode, play the best certified action     surefoot.plan.values     (spec 6)

Every step taken keeps every limit with probability at least 1 − p, given what the Problem declares. May violate: with
probability p at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from surefoot.agents.agent import Policy, check_problem
from surefoot.agents.learner import Learner
from surefoot.agents.profiles import (
    DEFAULT_EXPLORE,
    IDEAS,
    Profile,
    certified_profile,
    check_ideas,
    paper_profile,
)
from surefoot.checks import probability, promised
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.estimate.costs import bound_costs
from surefoot.model.graph import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import certify, certify_one_step, with_least_worst
from surefoot.plan.plan import Plan
from surefoot.plan.scope import Scope


class LsviNew(Learner):
    """The paper's learner.

    Args:
        problem: what is known.
        failure_probability: p; all steps of all episodes are safe with probability at least 1 − p.
        profile: ``"certified"``, which moves, or ``"paper"``, the constants of the regret theorem.
        ridges: the grid Λ of cost ridges (spec 3); by default q·{4, 40, 400}. In the paper profile, one number.
        value_ridge: λ₂ of the value regression; by default 1, in the paper profile d.
        replan_growth: plan anew when some log-determinant has grown by log(1 + this); 0 = before every episode.
        initial_episodes: K′, episodes that play the fallback; by default 0, in the paper profile its formula.
        ideas: which of the paper's four ideas to use. Without ``"I"`` there is no safety guarantee.
        safety_radius_scale: multiplies the safety radius; below 1 there is no safety guarantee.
        optimism, explore, slack, literal_future: certified profile; w₁, (w₂, w₃, w₄), what uncertainty is measured
            against, and whether Idea III looks over uncertified actions too (spec 5).
        episodes, feature_bound, coverage_rate, value_radius_scale, lipschitz: paper profile; K, D, λ₀, b_β, δ̃.
        skip_hopeless: leave out pairs that are proved unsafe and what only they lead to; nothing else changes.

    Examples:
        >>> agent = sf.LsviNew(sf.worlds.make("thermal/testing").problem, failure_probability=0.01)
        >>> agent.guarantee
        'every step safe with probability ≥ 0.99'
    """

    name: ClassVar[str] = "lsvi-new"

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        profile: str = "certified",
        ridges: Sequence[float] | None = None,
        value_ridge: float | None = None,
        replan_growth: float = 0.1,
        initial_episodes: int | None = None,
        ideas: Iterable[str] = IDEAS,
        safety_radius_scale: float = 1.0,
        optimism: float | None = None,
        explore: Sequence[float] | None = None,
        slack: float | Sequence[float] | None = None,
        literal_future: bool = False,
        episodes: int | None = None,
        feature_bound: float | None = None,
        coverage_rate: float | None = None,
        value_radius_scale: float | None = None,
        lipschitz: float | None = None,
        skip_hopeless: bool = False,
    ) -> None:
        check_problem(problem)
        p = probability("failure_probability", failure_probability)
        chosen = check_ideas(ideas)
        self._profile: Profile
        if profile == "certified":
            paper_only = (episodes, feature_bound, coverage_rate, value_radius_scale, lipschitz)
            _refuse_others("certified", PAPER_KEYWORDS, paper_only)
            self._profile = certified_profile(
                problem,
                failure_probability=p,
                ideas=chosen,
                ridges=ridges,
                value_ridge=value_ridge,
                optimism=1.0 if optimism is None else optimism,
                explore=DEFAULT_EXPLORE if explore is None else explore,
                slack=slack,
                initial_episodes=initial_episodes,
                safety_radius_scale=safety_radius_scale,
                literal_future=literal_future,
            )
        elif profile == "paper":
            certified_only = (optimism, explore, slack, literal_future or None)
            _refuse_others("paper", CERTIFIED_KEYWORDS, certified_only)
            self._profile = paper_profile(
                problem,
                failure_probability=p,
                ideas=chosen,
                ridges=ridges,
                value_ridge=value_ridge,
                episodes=episodes,
                feature_bound=feature_bound,
                coverage_rate=1.0 if coverage_rate is None else coverage_rate,
                value_radius_scale=1.0 if value_radius_scale is None else value_radius_scale,
                lipschitz=1.0 if lipschitz is None else lipschitz,
                initial_episodes=initial_episodes,
                safety_radius_scale=safety_radius_scale,
            )
        else:
            raise InvalidInput("no such profile", got=repr(profile), fix="Use 'certified' or 'paper'.")
        self.failure_probability = p
        self.ideas = chosen
        if skip_hopeless and (profile == "paper" or literal_future or "I" not in chosen):
            raise InvalidInput(
                "skip_hopeless needs Idea I and an Idea III that looks along certified pairs",
                fix="Leave it out with profile='paper', literal_future, or without idea I.",
            )
        self._scope = Scope(problem.graph) if skip_hopeless else None
        super().__init__(
            problem,
            cost_confidence=self._profile.costs,
            value_confidence=self._profile.values,
            replan_growth=replan_growth,
        )

    @property
    def guaranteed(self) -> bool:
        return "I" in self.ideas and self._profile.costs.scale >= 1.0

    @property
    def guarantee(self) -> str:
        if not self.guaranteed:
            return "no safety guarantee"
        return f"every step safe with probability {promised(self.failure_probability)}"

    @property
    def constants(self) -> dict[str, Any]:
        switches = {"replan_growth": self.replan_growth, "skip_hopeless": self._scope is not None}
        return {**self._profile.describe(), **switches}

    def _make_plan(self) -> Plan:
        """Steps 1 to 4; one plan per start state where the paper's Idea IV asks for it."""
        problem = self.problem
        wanted = None if self._scope is None else self._scope.edges()
        bounds = bound_costs(problem, self.costs, self.cost_confidence, wanted)  # Step 1
        if "I" in self.ideas:  # Step 2
            certified = allowed = certify(problem.graph, bounds, problem.limits)
        else:
            certified = certify_one_step(problem.graph, bounds, problem.limits)
            allowed = with_least_worst(problem.graph, certified, bounds, problem.limits)
        known = self.value_ellipsoids()  # Step 3
        values = self._profile.optimise(problem, self.costs, bounds, allowed, known)  # Step 4
        if self._scope is not None:
            self._scope.narrow(bounds, problem.violation_thresholds)
        self._plans = {
            start: Plan(problem, bounds, certified, each, known, self.replans) for start, each in values.items()
        }
        return self._plans[self._start]

    def planned(self) -> dict[str, Any]:
        scope = None if self._scope is None else self._scope.planned
        return {**super().planned(), "plans": self._plans, "scope": scope}

    def put_back(self, planned: Mapping[str, Any]) -> None:
        super().put_back(planned)
        self._plans = planned["plans"]
        if self._scope is not None:
            self._scope.planned = planned["scope"]

    def begin(self, state: int) -> None:
        if self.episodes_left() == 0:
            most = self._profile.most_episodes
            raise OutOfOrder("the paper's constants were computed for fewer episodes", got=f"episodes={most}")
        super().begin(state)
        self.foresee(state)

    @property
    def plans_by_start(self) -> bool:
        return len({id(plan.values) for plan in self._plans.values()}) > 1

    def foresee(self, start: int) -> None:
        self._plan = self._plans[start]

    def episodes_before_change(self) -> int | None:
        return self._profile.initial_episodes - self.episodes if self._playing_fallback else None

    def episodes_left(self) -> int | None:
        most = self._profile.most_episodes
        return None if most is None else max(0, most - self.episodes)

    def choose(self, h: int, state: int) -> int:
        """Step 5: the best certified pair; in the first K′ episodes, the fallback's."""
        if self._playing_fallback:
            pair = int(self.problem.graph.layers[h].fallback[state])
            if pair != NO_ACTION:
                return pair
        return super().choose(h, state)

    def policy(self) -> Policy:
        return self.problem.graph.fallback if self._playing_fallback else super().policy()

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        masks = [] if self._scope is None else self._scope.planned
        return {**super().checkpoint(), **{f"scope/{h}": mask.copy() for h, mask in enumerate(masks)}}

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        super()._load(saved, moment)
        if self._scope is not None and moment == "then":  # the plan is made again, and narrows it again
            self._scope.hopeful = [saved[f"scope/{h}"].copy() for h in range(self.problem.horizon - 1)]

    @property
    def _playing_fallback(self) -> bool:
        return self.episodes < self._profile.initial_episodes


PAPER_KEYWORDS = ("episodes", "feature_bound", "coverage_rate", "value_radius_scale", "lipschitz")
CERTIFIED_KEYWORDS = ("optimism", "explore", "slack", "literal_future")


def _refuse_others(profile: str, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
    for name, value in zip(names, values, strict=True):
        if value is not None:
            raise InvalidInput(f"{name} has no effect in the {profile} profile", got=repr(value))
