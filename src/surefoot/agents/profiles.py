"""The two sets of constants of LSVI-NEW: ``certified`` (the default) and ``paper`` (spec, first table).

Both prove every step safe. They differ in how wide the confidence sets are and how exploration is weighed: the paper's
constants make its regret theorem true and hardly ever leave the fallback; the certified ones move.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot import theory
from surefoot.checks import at_least, whole
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds, CostConfidence, CostData, RadiusRule
from surefoot.estimate.values import ValueConfidence, ValueEllipsoid
from surefoot.model.graph import FloatArray
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.confidence import cost_confidence, ridge, value_confidence
from surefoot.plan.explore import bonuses, future_uncertainty, pair_uncertainty, slacks, terminal_uncertainty
from surefoot.plan.paper import PaperWeights, paper_uncertainty, paper_values
from surefoot.plan.paper_constants import paper_constants
from surefoot.plan.values import Values, optimistic_values

IDEAS = ("I", "II", "III", "IV")
DEFAULT_EXPLORE = (0.1, 0.02, 0.02)


def check_ideas(ideas: Iterable[str]) -> tuple[str, ...]:
    chosen = tuple(ideas.replace(",", " ").split() if isinstance(ideas, str) else ideas)
    for idea in chosen:
        if idea not in IDEAS:
            raise InvalidInput("no such idea", got=repr(idea), fix=f"The ideas are {', '.join(IDEAS)}.")
    return tuple(idea for idea in IDEAS if idea in chosen)


@dataclass(frozen=True)
class CertifiedProfile:
    """Proved radii for safety, scaled weights for exploration."""

    costs: CostConfidence
    values: ValueConfidence
    initial_episodes: int
    slack: FloatArray  # (H, m)
    weights: tuple[float, float, float]
    literal_future: bool
    constants: dict[str, Any]
    most_episodes: int | None = None

    def optimise(
        self,
        problem: Problem,
        data: CostData,
        bounds: CostBounds,
        allowed: Certified,
        known: Sequence[ValueEllipsoid],
    ) -> dict[int, Values]:
        graph = problem.graph
        omega = pair_uncertainty(graph, bounds, self.slack)
        last = terminal_uncertainty(graph, bounds, self.slack)
        along = [np.ones_like(mask) for mask in allowed.pairs] if self.literal_future else allowed.pairs
        future = future_uncertainty(graph, omega, last, along)
        bonus = bonuses(graph, omega, future, self.weights)
        caps = [float(problem.horizon - h) for h in range(problem.horizon - 1)]
        values = optimistic_values(graph, allowed, bonus, known, caps)
        return {int(start): values for start in graph.starts}

    def describe(self) -> dict[str, Any]:
        return self.constants


def certified_profile(
    problem: Problem,
    *,
    failure_probability: float,
    ideas: tuple[str, ...],
    ridges: Sequence[float] | None,
    value_ridge: float | None,
    optimism: float,
    explore: Sequence[float],
    slack: float | Sequence[float] | None,
    initial_episodes: int | None,
    safety_radius_scale: float,
    literal_future: bool,
) -> CertifiedProfile:
    costs = cost_confidence(problem, failure_probability=failure_probability, ridges=ridges, scale=safety_radius_scale)
    values = value_confidence(
        problem,
        failure_probability=failure_probability,
        value_ridge=1.0 if value_ridge is None else value_ridge,
        optimism=optimism,
    )
    if len(tuple(explore)) != 3:
        raise InvalidInput("explore must be three weights, for ideas II, III and IV", got=repr(explore))
    w2, w3, w4 = (
        at_least("explore", w, 0.0) if idea in ideas else 0.0 for w, idea in zip(explore, IDEAS[1:], strict=True)
    )
    table = slacks(problem, slack)
    first = whole("initial_episodes", initial_episodes or 0, 0)
    return CertifiedProfile(
        costs=costs,
        values=values,
        initial_episodes=first,
        slack=table,
        weights=(w2, w3, w4),
        literal_future=bool(literal_future),
        constants={
            "profile": "certified",
            "failure_probability": failure_probability,
            "ideas": list(ideas),
            "ridges": list(costs.ridges),
            "value_ridge": values.ridge,
            "optimism": values.optimism,
            "explore": [w2, w3, w4],
            "slack": table.tolist(),
            "initial_episodes": first,
            "safety_radius_scale": costs.scale,
            "literal_future": bool(literal_future),
        },
    )


@dataclass(frozen=True)
class PaperProfile:
    """The constants of the regret theorem."""

    costs: CostConfidence
    values: ValueConfidence
    initial_episodes: int
    most_episodes: int | None
    weights: PaperWeights
    constants: dict[str, Any]

    def optimise(
        self,
        problem: Problem,
        data: CostData,
        bounds: CostBounds,
        allowed: Certified,
        known: Sequence[ValueEllipsoid],
    ) -> dict[int, Values]:
        uncertainty, last = paper_uncertainty(problem, data, self.costs)
        return {
            int(start): paper_values(problem.graph, int(start), allowed, uncertainty, last, known, self.weights)
            for start in problem.graph.starts
        }

    def describe(self) -> dict[str, Any]:
        return self.constants


def paper_profile(
    problem: Problem,
    *,
    failure_probability: float,
    ideas: tuple[str, ...],
    ridges: Sequence[float] | None,
    value_ridge: float | None,
    episodes: int | None,
    feature_bound: float | None,
    coverage_rate: float,
    value_radius_scale: float,
    lipschitz: float,
    initial_episodes: int | None,
    safety_radius_scale: float,
) -> PaperProfile:
    numbers = paper_constants(
        problem,
        failure_probability=failure_probability,
        episodes=episodes,
        feature_bound=feature_bound,
        coverage_rate=coverage_rate,
        value_radius_scale=value_radius_scale,
        lipschitz=lipschitz,
        ridge=None if ridges is None else _only(ridges),
    )
    if initial_episodes is None:
        first = numbers.capped_initial_episodes
        if warning := numbers.cap_warning():
            warnings.warn(warning, stacklevel=4)
    else:
        first = whole("initial_episodes", initial_episodes, 0)
    none = (0.0,) * (problem.horizon - 1)
    weights = PaperWeights(
        numbers.epsilon_2 if "II" in ideas else none,
        numbers.epsilon_3 if "III" in ideas else none,
        numbers.epsilon_4 if "IV" in ideas else 0.0,
    )
    scale = at_least("safety_radius_scale", safety_radius_scale, 0.0)
    ridge_2 = numbers.ridge if value_ridge is None else at_least("value_ridge", value_ridge, 0.0, strictly=True)
    return PaperProfile(
        costs=CostConfidence((numbers.ridge,), _beyond(numbers.beta, problem, failure_probability), False, scale),
        values=ValueConfidence(ridge_2, lambda h, ratio: numbers.epsilon_1, 1.0),
        initial_episodes=first,
        most_episodes=numbers.episodes,
        weights=weights,
        constants={
            "profile": "paper",
            "failure_probability": failure_probability,
            "ideas": list(ideas),
            "episodes": numbers.episodes,
            "ridges": [numbers.ridge],
            "value_ridge": ridge_2,
            "feature_bound": numbers.feature_bound,
            "coverage_rate": coverage_rate,
            "value_radius_scale": value_radius_scale,
            "lipschitz": lipschitz,
            "initial_episodes": first,
            "safety_radius_scale": scale,
            "beta": numbers.beta,
            "kappa": numbers.kappa,
            "epsilon_1": numbers.epsilon_1,
            "epsilon_2": list(weights.epsilon_2),
            "epsilon_3": list(weights.epsilon_3),
            "epsilon_4": weights.epsilon_4,
        },
    )


def _beyond(beta: float, problem: Problem, failure_probability: float) -> RadiusRule:
    """β, which covers the H·K rows of K episodes; where imported rows outgrow it, the radius of (S3) with p/(mH)."""
    log_term = math.log(len(problem.limits) * problem.horizon / failure_probability)

    def radius(log_det_ratio: float, lam: float, limit: Limit) -> float:
        proved = theory.self_normalised_radius(
            log_det_ratio, noise=limit.noise, norm=limit.norm, ridge=lam, log_inverse_probability=log_term
        )
        return max(beta, proved)

    return radius


def _only(ridges: Sequence[float]) -> float:
    grid = tuple(ridges)
    if len(grid) != 1:
        raise InvalidInput("the paper profile has one ridge", got=repr(ridges))
    return ridge(grid[0])


Profile = CertifiedProfile | PaperProfile
