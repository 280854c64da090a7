"""LSVI-NEW: least-squares value iteration by looking ahead and peeking backward (Algorithm 1 of the paper).

Between episodes, from the last step to the first:

    Step 1  bound the cost of every triplet                    surefoot.estimate.costs    (spec 3)
    Step 2  certify actions whose every future is safe         surefoot.plan.certify      (spec 4, Idea I)
    Step 3  estimate what follows a state and an action        surefoot.estimate.values   (spec 6)
    Step 4  optimistic values, with bonuses for uncertain
            transitions, futures and pasts                     surefoot.plan.explore      (spec 5, Ideas II-IV)
    Step 5  in the episode, play the best certified action     surefoot.plan.values       (spec 6)

Every step taken keeps every limit with probability at least 1 − p, given what the Problem declares. May violate: with
probability p at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import check_problem
from surefoot.agents.look_ahead import IDEAS, LookAhead, LookAheadOptions, check_ideas
from surefoot.checks import at_least, probability, whole
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import bound_costs
from surefoot.model.problem import Problem
from surefoot.plan.confidence import cost_confidence, value_confidence
from surefoot.plan.explore import bonuses, future_uncertainty, pair_uncertainty, slacks, terminal_uncertainty
from surefoot.plan.plan import Plan
from surefoot.plan.scope import Scope
from surefoot.plan.values import most_to_come, optimistic_values


@dataclass(frozen=True, kw_only=True)
class LsviNewOptions(LookAheadOptions):
    optimism: float
    explore: tuple[float, float, float]  # 0 for an idea that is switched off
    slack: tuple[tuple[float, ...], ...]  # (H, m)
    literal_future: bool
    skip_hopeless: bool


class LsviNew(LookAhead):
    """The paper's algorithm with proved radii for safety and scaled weights for exploration.

    Args:
        problem: what is known.
        failure_probability: p; all steps of all episodes are safe with probability at least 1 − p.
        explore: (w₂, w₃, w₄), the weights of Ideas II, III and IV (spec 5).
        ridges: the grid Λ of cost ridges (spec 3); by default q·{4, 40, 400}.
        value_ridge: λ₂ of the value regression (spec 6).
        optimism: w₁, the share of the value radius that is used (spec 6).
        slack: what uncertainty is measured against (spec 5); by default bound − anchor cost.
        replan_growth: plan anew when some log-determinant has grown by log(1 + this); 0 = before every episode.
        initial_episodes: K′, episodes that play the fallback first.
        ideas: which of the paper's four ideas to use. Without ``"I"`` there is no safety guarantee.
        safety_radius_scale: multiplies the safety radius; below 1 there is no safety guarantee.
        literal_future: let Idea III look over uncertified actions too, as the paper prints it.
        skip_hopeless: leave out pairs that are proved unsafe and what only they lead to; nothing else changes.

    Examples:
        >>> agent = sf.LsviNew(sf.worlds.make("thermal/testing").problem, failure_probability=0.01)
        >>> agent.promise
        'every step safe with probability ≥ 0.99'
    """

    name: ClassVar[str] = "lsvi-new"
    options: LsviNewOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        explore: Sequence[float] = (0.1, 0.02, 0.02),
        ridges: Sequence[float] | None = None,
        value_ridge: float = 1.0,
        optimism: float = 1.0,
        slack: float | Sequence[float] | None = None,
        replan_growth: float = 0.1,
        initial_episodes: int = 0,
        ideas: Iterable[str] = IDEAS,
        safety_radius_scale: float = 1.0,
        literal_future: bool = False,
        skip_hopeless: bool = False,
    ) -> None:
        check_problem(problem)
        p, chosen = probability("failure_probability", failure_probability), check_ideas(ideas)
        if skip_hopeless and (literal_future or "I" not in chosen):
            raise InvalidInput(
                "skip_hopeless needs Idea I and an Idea III that looks along certified pairs",
                fix="Leave it out with literal_future, or without idea I.",
            )
        costs = cost_confidence(problem, failure_probability=p, ridges=ridges, scale=safety_radius_scale)
        values = value_confidence(problem, failure_probability=p, value_ridge=value_ridge, optimism=optimism)
        self._slack = slacks(problem, slack)  # (H, m)
        self._scope = Scope(problem.graph) if skip_hopeless else None
        options = LsviNewOptions(
            failure_probability=p,
            ridges=costs.ridges,
            value_ridge=values.ridge,
            replan_growth=at_least("replan_growth", replan_growth, 0.0),
            ideas=chosen,
            initial_episodes=whole("initial_episodes", initial_episodes, 0),
            safety_radius_scale=costs.scale,
            optimism=values.optimism,
            explore=_weights(explore, chosen),
            slack=tuple(map(tuple, self._slack.tolist())),
            literal_future=bool(literal_future),
            skip_hopeless=bool(skip_hopeless),
        )
        super().__init__(problem, options, costs, values)

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        wanted = None if self._scope is None else self._scope.edges()
        bounds = bound_costs(problem, self.costs, self.cost_confidence, wanted)  # Step 1
        certified, allowed = self._certify(bounds)  # Step 2
        known = self.value_ellipsoids()  # Step 3
        omega = pair_uncertainty(graph, bounds, self._slack)  # Step 4
        last = terminal_uncertainty(graph, bounds, self._slack)
        along = [np.ones_like(mask) for mask in allowed.pairs] if self.options.literal_future else allowed.pairs
        bonus = bonuses(graph, omega, future_uncertainty(graph, omega, last, along), self.options.explore)
        values = optimistic_values(graph, allowed, bonus, known, most_to_come(graph))
        if self._scope is not None:
            self._scope.narrow(bounds, problem.violation_thresholds)
        return Plan(problem, bounds, certified, values, known, self.replans)

    def planned(self) -> dict[str, Any]:
        return {**super().planned(), "scope": None if self._scope is None else self._scope.planned}

    def put_back(self, planned: Mapping[str, Any]) -> None:
        super().put_back(planned)
        if self._scope is not None:
            self._scope.planned = planned["scope"]

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        masks = [] if self._scope is None else self._scope.planned
        return {**super().checkpoint(), **{f"scope/{h}": mask.copy() for h, mask in enumerate(masks)}}

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        super()._load(saved, moment)
        if self._scope is not None and moment == "then":  # the plan is made again, and narrows it again
            self._scope.hopeful = [saved[f"scope/{h}"].copy() for h in range(self.problem.horizon - 1)]


def _weights(explore: Sequence[float], ideas: tuple[str, ...]) -> tuple[float, float, float]:
    if len(tuple(explore)) != 3:
        raise InvalidInput("explore must be three weights, for ideas II, III and IV", got=repr(explore))
    w2, w3, w4 = (
        at_least("explore", w, 0.0) if idea in ideas else 0.0 for w, idea in zip(explore, IDEAS[1:], strict=True)
    )
    return w2, w3, w4
