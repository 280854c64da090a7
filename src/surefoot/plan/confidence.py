"""The proved confidence sets of spec 3 and 6, from an agent's options. Shared by all learners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot import theory
from surefoot.checks import at_least, list_of
from surefoot.errors import InvalidInput
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.families import of_norms, ridge_scale
from surefoot.estimate.values import ValueConfidence
from surefoot.model.problem import Problem
from surefoot.tolerances import MOST_RIDGE, USABLE_RIDGE

LEAST_MULTIPLIER, MOST_MULTIPLIER = 1e-6, 1e6


def default_ridge(problem: Problem) -> float:
    """s, the mean ‖z‖² of all cost rows, at least 10⁻⁶ of the largest ‖x‖² (spec 3).

    Of rows as they are declared; a family whose rows are scaled multiplies it by its ratio of mean squares.
    """
    return ridge_scale(problem, of_norms(problem)[0])


def default_shaped(problem: Problem) -> float:
    """The ridge in the shape of the features, in units of s: the largest 100 (dc + 10) σ²/room² of any limit, between
    1/1000 and 10 (spec 3). The room of a limit is its bound less the anchor's cost, in steps that have a cost."""
    steps = problem.horizon - (problem.graph.terminal.cost_features is None)
    anchors = problem.graph.anchors[:steps]
    known = np.array([np.zeros(len(problem.limits)) if x is None else x.cost[0] for x in anchors])
    room = np.abs(problem.bounds[:steps] - known).min(axis=0)
    tells = np.divide(problem.noises, room, out=np.full(len(room), np.inf), where=room > 0.0)
    return float(np.clip(100.0 * (problem.graph.cost_dim + 10) * (tells * tells).max(), 1e-3, 10.0))


def checked_ridge(value: float) -> float:
    return at_least("ridges", value, 0.0, strictly=True)


def refuse_unusable(name: str, ridges: Sequence[float], longest: float) -> None:
    """Refuse ridges beside which a row leaves no digit, or which no number of rows can outweigh."""
    least, most = USABLE_RIDGE * longest**2, MOST_RIDGE * longest**2
    fits = f", where rows are up to {longest:g} long"
    if min(ridges) < least:
        fix = f"Use at least {least!r}, or leave it out."
        raise InvalidInput(f"{name} too small to compute with", got=f"{min(ridges)!r}{fits}", fix=fix)
    if max(ridges) > most > 0.0:
        fix = f"Use at most {most!r}, or leave it out."
        raise InvalidInput(f"{name} too large to learn anything", got=f"{max(ridges)!r}{fits}", fix=fix)


def checked_multipliers(values: Sequence[float]) -> tuple[float, ...]:
    """Any c ≥ 0 is sound, since (S3) holds for all of them at once; outside this range there is only rounding."""
    found = tuple(at_least("multipliers", value, LEAST_MULTIPLIER) for value in list_of("multipliers", values))
    if not found or max(found) > MOST_MULTIPLIER:
        rule = f"multipliers are one number or more between {LEAST_MULTIPLIER:g} and {MOST_MULTIPLIER:g}"
        raise InvalidInput(rule, got=repr(values), fix="Leave it out for (0.01, 0.1, 1, 10), which is near the best.")
    return found


def cost_confidence(
    problem: Problem,
    *,
    failure_probability: float,
    multipliers: Sequence[float],
    scale: float,
    ridges: Sequence[float] | None,
    shaped: float | None,
) -> CostConfidence:
    """(S3): an ellipsoid for every ridge and multiplier of the norm's ball, and the prior bound. The default ridge has
    the shape of the features; given ones are even, unless ``shaped`` scales them in that shape."""
    grid = (default_ridge(problem),) if ridges is None else tuple(map(checked_ridge, list_of("ridges", ridges)))
    if not grid:
        raise InvalidInput("ridges must not be empty", got=repr(ridges))
    if shaped is None:
        shaped = default_shaped(problem) if ridges is None else 0.0
    shaped = at_least("shaped", shaped, 0.0)
    if shaped > 0.0 and len(grid) > 1:
        fix = "Give one, or leave out shaped."
        raise InvalidInput("one ridge may have the shape of the features", got=repr(ridges), fix=fix)
    longest = problem.graph.largest_cost_norm()
    refuse_unusable("ridges", grid, longest)
    if shaped > 0.0:
        refuse_unusable("ridges times shaped", [grid[0] * shaped], longest)
    log_term = theory.cost_log_term(
        limits=len(problem.limits),
        regressions=1 if problem.stationary_costs else problem.horizon,
        n_ridges=len(grid),
        failure_probability=failure_probability,
    )

    def radius(log_det_ratio: float, lam: float, noise: float, norm: float) -> float:
        return theory.noise_radius(log_det_ratio, noise=noise, log_inverse_probability=log_term)

    scale = at_least("safety_radius_scale", scale, 0.0)
    return CostConfidence(
        ridges=grid,
        shaped=shaped,
        multipliers=checked_multipliers(multipliers),
        radius=radius,
        dual=True,
        prior=True,
        scale=scale,
        guard=True,
    )


def value_confidence(
    problem: Problem, *, failure_probability: float, value_ridge: float, optimism: float
) -> ValueConfidence:
    """(S6): an ellipsoid around θ̂, whose radius is multiplied by ``optimism``."""
    lam = at_least("value_ridge", value_ridge, 0.0, strictly=True)
    refuse_unusable("value_ridge", [lam], problem.horizon * problem.graph.largest_feature_sum())
    log_term = theory.value_log_term(problem.horizon, failure_probability)

    def radius(h: int, log_det_ratio: float) -> float:
        last = problem.horizon - 1
        return theory.value_radius(
            log_det_ratio,
            value_range=last if problem.stationary_transitions else last - h,
            transition_norm=problem.transition_norm,
            ridge=lam,
            log_inverse_probability=log_term,
        )

    return ValueConfidence(lam, radius, at_least("optimism", optimism, 0.0))
