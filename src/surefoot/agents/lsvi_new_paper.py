"""LSVI-NEW with the constants of the paper's regret theorem, to the letter (thm:regret; spec 6).

The steps are those of :mod:`surefoot.agents.lsvi_new`. One radius β serves costs and values, the bonuses are multiples
of ‖z‖_{A⁻¹} with ε₂, ε₃, ε₄ of eq:epss, eq:epsss, eq:epssss, and the first K′ episodes play the fallback. At realistic
numbers of episodes it hardly ever leaves the fallback.

The learner deviates from the letter of the paper where that would cost safety, or time for nothing. Each deviation has
a name in :data:`DEVIATIONS` and can be left out: ``deviations=()`` is the paper verbatim.

Port of: the paper's Algorithm 1 with the constants of its Theorem 2. Sources: read.
Changed to fit: what ``DEVIATIONS`` names.
Assumes: what the Problem declares, with an anchor at every step.
Guarantees: every step safe with probability 1 − p; the regret theorem's constants.
May violate: with probability p at most.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from surefoot import theory
from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.look_ahead import IDEAS, LookAhead, LookAheadOptions, check_ideas
from surefoot.checks import at_least, list_of, probability, some_of, whole
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence, RadiusRule
from surefoot.estimate.families import Family, of_norms
from surefoot.estimate.values import ValueConfidence
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify
from surefoot.plan.confidence import checked_ridge
from surefoot.plan.paper import (
    PaperWeights,
    paper_uncertainty,
    paper_values,
    setting_for,
    with_fallback,
    without_fallback,
)
from surefoot.plan.plan import Plan

DEVIATIONS = ("clip", "lazy", "fallback", "features", "radius", "guard")
"""Where the learner deviates from the letter of the paper:

clip      the expected next value is clipped to the range of V on the support
lazy      a plan is made when the data have grown by ``replan_growth``, not before every episode
fallback  the fallback's pairs are certified by assumption, not by their bounds
features  costs and transitions may have features of their own; d is then the sum of both dimensions
radius    β₁ has p/(mH) in place of p, and imported rows that outgrow β widen the radius
guard     bounds are wider by what rounding may take from them
"""


@dataclass(frozen=True, kw_only=True)
class LsviNewPaperOptions(LookAheadOptions, PaperWeights):
    episodes: int
    feature_bound: float
    coverage_rate: float
    value_radius_scale: float
    lipschitz: float
    deviations: tuple[str, ...]
    beta: float
    kappa: float
    epsilon_1: float


class LsviNewPaper(LookAhead):
    """The paper's algorithm with the paper's constants.

    Args:
        problem: what is known.
        failure_probability: p; all steps of all episodes are safe with probability at least 1 − p.
        episodes: K, for which the constants are computed; no more episodes can be played.
        ridges: λ, a list of one number; by default d.
        value_ridge: λ of the value regression; by default d.
        replan_growth: plan anew when some log-determinant has grown by log(1 + this); 0 = before every episode. By
            default 0.1, and 0 without the deviation ``"lazy"``.
        initial_episodes: K′, episodes that play the fallback; by default its formula.
        ideas: which of the paper's four ideas to use. Without ``"I"`` there is no safety guarantee.
        safety_radius_scale: multiplies the safety radius; below 1 there is no safety guarantee.
        feature_bound, coverage_rate, value_radius_scale, lipschitz: D, λ₀, b_β and δ̃ of the theorem.
        deviations: which deviations from the letter of the paper to keep, of ``DEVIATIONS``; ``()`` is the paper
            verbatim. Without ``"guard"``, or ``"radius"`` where the printed β is too small, there is no guarantee.

    Examples:
        >>> agent = sf.LsviNewPaper(sf.worlds.make("thermal/testing").problem, episodes=1000, initial_episodes=10)
        >>> round(agent.options.epsilon_1, 2)
        179.15
        >>> letter = sf.LsviNewPaper(agent.problem, episodes=1000, initial_episodes=10, deviations=["features"])
        >>> letter.promise
        'no safety guarantee'
    """

    name: ClassVar[str] = "lsvi-new-paper"
    options: LsviNewPaperOptions
    _set_by_plans = (*LookAhead._set_by_plans, "_plans")

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        episodes: int,
        ridges: Sequence[float] | None = None,
        value_ridge: float | None = None,
        replan_growth: float | None = None,
        initial_episodes: int | None = None,
        ideas: Iterable[str] = IDEAS,
        safety_radius_scale: float = 1.0,
        feature_bound: float | None = None,
        coverage_rate: float = 1.0,
        value_radius_scale: float = 1.0,
        lipschitz: float = 1.0,
        deviations: Iterable[str] = DEVIATIONS,
    ) -> None:
        check_problem(problem)
        p, chosen = probability("failure_probability", failure_probability), check_ideas(ideas)
        kept = some_of("deviation", DEVIATIONS, deviations)
        _check_deviations(problem, kept, chosen)
        setting = setting_for(
            problem,
            failure_probability=p,
            feature_bound=feature_bound,
            coverage_rate=coverage_rate,
            value_radius_scale=value_radius_scale,
            lipschitz=lipschitz,
            ridge=None if ridges is None else _only(ridges),
            union="radius" in kept,
        )
        numbers = theory.paper_constants(setting, whole("episodes", episodes, 1))
        scale = at_least("safety_radius_scale", safety_radius_scale, 0.0)
        ridge_2 = setting.ridge if value_ridge is None else at_least("value_ridge", value_ridge, 0.0, strictly=True)
        none = (0.0,) * (problem.horizon - 1)
        options = LsviNewPaperOptions(
            failure_probability=p,
            ridges=(setting.ridge,),
            value_ridge=ridge_2,
            replan_growth=_growth(replan_growth, "lazy" in kept),
            ideas=chosen,
            initial_episodes=_first_phase(numbers, initial_episodes),
            safety_radius_scale=scale,
            episodes=numbers.episodes,
            feature_bound=setting.feature_bound,
            coverage_rate=coverage_rate,
            value_radius_scale=value_radius_scale,
            lipschitz=lipschitz,
            deviations=kept,
            beta=numbers.beta,
            kappa=numbers.kappa,
            epsilon_1=numbers.epsilon_1,
            epsilon_2=numbers.epsilon_2 if "II" in chosen else none,
            epsilon_3=numbers.epsilon_3 if "III" in chosen else none,
            epsilon_4=numbers.epsilon_4 if "IV" in chosen else 0.0,
        )
        rule = _beyond(numbers.beta, problem, p) if "radius" in kept else _printed(numbers.beta)
        costs = CostConfidence(
            (setting.ridge,), (), rule, shaped=0.0, dual=False, prior=False, scale=scale, guard="guard" in kept
        )
        values = ValueConfidence(ridge_2, lambda h, ratio: numbers.epsilon_1, 1.0, clip="clip" in kept)
        self._proved = (
            numbers.beta >= replace(setting, union=True).radius(numbers.episodes)[0]
        )  # is β at least the proved β₁?
        self._plans: dict[int, Plan] = {}  # by start state
        super().__init__(problem, options, costs, values)

    def _make_plan(self) -> Plan:
        problem, options = self.problem, self.options
        bounds = bound_costs(problem, self.costs, self.cost_confidence)  # Step 1
        certified, allowed = self._certify(self.problem, bounds)  # Step 2
        known = self.value_ellipsoids()  # Step 3
        uncertainty, last = paper_uncertainty(problem, self.costs, self.cost_confidence)  # Step 4
        self._plans = {}
        for start in map(int, problem.graph.starts):  # Idea IV peeks at the episode's own first action
            values = paper_values(problem.graph, start, allowed, uncertainty, last, known, options)
            values = with_fallback(problem.graph, values)  # where the bounds certify nothing, not even the fallback
            self._plans[start] = Plan(problem, bounds, certified, values, known, self.replans)
        return self._plans[self._start]

    def _families(self) -> tuple[Family, ...]:
        """The paper has norms only; a prior stands for the norm √Σ max(lo², hi²) of the longest γ in it."""
        return of_norms(self.problem)

    @property
    def guaranteed(self) -> bool:
        return super().guaranteed and self._proved and "guard" in self.options.deviations

    def _certify(self, problem: Problem, bounds: CostBounds) -> tuple[Certified, Certified]:
        if "fallback" in self.options.deviations:
            return super()._certify(problem, bounds)
        certified = certify(without_fallback(problem.graph), bounds, problem.bounds)
        return certified, certified

    def _begin(self, state: int) -> None:
        super()._begin(state)
        self.foresee(state)

    @property
    def plans_by_start(self) -> bool:
        return len(self._plans) > 1

    def foresee(self, start: int) -> None:
        self._plan = self._plans[start]

    def episodes_left(self) -> int | None:
        return max(0, self.options.episodes - self.episodes)


def _first_phase(numbers: theory.PaperConstants, given: int | None) -> int:
    if given is not None:
        return whole("initial_episodes", given, 0)
    if warning := numbers.cap_warning():
        warnings.warn(warning, stacklevel=3)
    return numbers.capped_initial_episodes


def _check_deviations(problem: Problem, kept: tuple[str, ...], ideas: tuple[str, ...]) -> None:
    if "features" not in kept and not problem.graph.shared_features:
        raise InvalidInput(
            "the paper has one feature map for costs and transitions",
            got="features of their own for both",
            fix="Declare the joined features (φ, x) for both, or keep the deviation 'features'.",
        )
    if "fallback" not in kept and "I" not in ideas:
        fix = "Keep the deviation 'fallback' when idea I is left out."
        raise InvalidInput("without idea I the fallback is certified by assumption", fix=fix)


def _growth(given: float | None, lazy: bool) -> float:
    growth = (0.1 if lazy else 0.0) if given is None else at_least("replan_growth", given, 0.0)
    if growth > 0 and not lazy:
        fix = "Leave replan_growth out, or keep the deviation 'lazy'."
        raise InvalidInput("the paper plans before every episode", got=f"replan_growth={given!r}", fix=fix)
    return growth


def _printed(beta: float) -> RadiusRule:
    return lambda log_det_ratio, lam, noise, norm: beta


def _beyond(beta: float, problem: Problem, failure_probability: float) -> RadiusRule:
    """β, which covers the H·K rows of K episodes, or the proved radius with p/(mH) once imported rows outgrow it."""
    log_term = math.log(len(problem.limits) * problem.horizon / failure_probability)

    def radius(log_det_ratio: float, lam: float, noise: float, norm: float) -> float:
        proved = theory.self_normalised_radius(
            log_det_ratio, noise=noise, norm=norm, ridge=lam, log_inverse_probability=log_term
        )
        return max(beta, proved)

    return radius


def _only(ridges: Sequence[float]) -> float:
    grid = list_of("ridges", ridges)
    if len(grid) != 1:
        raise InvalidInput("the paper has one ridge", got=repr(ridges))
    return checked_ridge(grid[0])
