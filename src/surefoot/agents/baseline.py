"""What the learners that LSVI-NEW is compared with share: the same proved confidence sets, and no promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.agents.agent import check_problem
from surefoot.agents.learner import NO_PROMISE, Learner, LearnerOptions
from surefoot.checks import at_least, probability
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.model.problem import Problem
from surefoot.plan.confidence import cost_confidence, value_confidence


@dataclass(frozen=True, kw_only=True)
class BaselineOptions(LearnerOptions):
    optimism: float


class Baseline(Learner):
    """A learner with the proved confidence sets of spec 3 and 6."""

    options: BaselineOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        ridges: Sequence[float] | None = None,
        value_ridge: float = 1.0,
        optimism: float = 1.0,
        replan_growth: float = 0.1,
    ) -> None:
        check_problem(problem)
        p = probability("failure_probability", failure_probability)
        costs = self._confidence_in_costs(problem, p, ridges)
        values = value_confidence(problem, failure_probability=p, value_ridge=value_ridge, optimism=optimism)
        options = BaselineOptions(
            failure_probability=p,
            ridges=costs.ridges,
            value_ridge=values.ridge,
            replan_growth=at_least("replan_growth", replan_growth, 0.0),
            optimism=values.optimism,
        )
        super().__init__(problem, self._with_own(options), costs, values)

    def _confidence_in_costs(self, problem: Problem, p: float, ridges: Sequence[float] | None) -> CostConfidence:
        """What the cost bounds rest on: the proved ones, but for who has others."""
        return cost_confidence(problem, failure_probability=p, ridges=ridges, scale=1.0)

    def _with_own(self, options: BaselineOptions) -> BaselineOptions:
        """The options with those that only this baseline has."""
        return options

    @property
    def guaranteed(self) -> bool:
        return False

    @property
    def promise(self) -> str:
        return NO_PROMISE
