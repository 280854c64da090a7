"""The proved confidence radii, one function per statement (spec 3 and 6). Symbols as in :mod:`surefoot.theory`."""

from __future__ import annotations

import math

from surefoot.checks import at_least_zero, count, positive, probabilities
from surefoot.errors import InvalidInput
from surefoot.tolerances import LOG_DET


def self_normalised_radius(
    log_det_ratio: float, *, noise: float, norm: float, ridge: float, log_inverse_probability: float
) -> float:
    """The radius of an ellipsoid around γ̂ or θ̂, in the place of β₁ in lemma:safetyparameteraccuracy; (S6) has it.

    radius = σ·√(logdet(A) − d·log λ + 2·log(1/p')) + √λ·L,  log_det_ratio = logdet(A) − d·log λ.
    """
    if not -LOG_DET <= log_det_ratio < math.inf:
        raise InvalidInput(
            "log_det_ratio = logdet(A) − d·log(ridge) must be finite and at least 0",
            got=f"got {log_det_ratio!r}",
            fix="A must be ridge·I plus a sum of outer products.",
        )
    at_least_zero(noise=noise, norm=norm, log_inverse_probability=log_inverse_probability)
    positive(ridge=ridge)
    # G ≽ 0, so a negative ratio is rounding; 0 is the wider, hence the safe, reading of it.
    log_det_ratio = max(0.0, log_det_ratio)
    return noise * math.sqrt(log_det_ratio + 2 * log_inverse_probability) + math.sqrt(ridge) * norm


def noise_radius(log_det_ratio: float, *, noise: float, log_inverse_probability: float) -> float:
    """R of (S3), which bounds the noise of all data: ‖b − Gγ‖ in the norm of A⁻¹, A = G + λN, at all times at once.

    R = σ·√(logdet(A) − logdet(λN) + 2·log(1/p')),  log_det_ratio = logdet(A) − logdet(λN).
    """
    return self_normalised_radius(
        log_det_ratio, noise=noise, norm=0.0, ridge=1.0, log_inverse_probability=log_inverse_probability
    )


def cost_log_term(*, limits: int, regressions: int, n_ridges: int, failure_probability: float) -> float:
    """log(m·n·|Λ| / p): all of p, over all limits, cost regressions and ridges, (S3)."""
    count(limits=limits, regressions=regressions, n_ridges=n_ridges)
    probabilities(failure_probability=failure_probability)
    return math.log(limits * regressions * n_ridges / failure_probability)


def value_log_term(horizon: int, failure_probability: float) -> float:
    """log(H / p) over all steps, (S6): the value event has its own p, which safety never uses."""
    count(horizon=horizon)
    probabilities(failure_probability=failure_probability)
    return math.log(horizon / failure_probability)


def value_radius(
    log_det_ratio: float,
    *,
    value_range: float,
    transition_norm: float,
    ridge: float,
    log_inverse_probability: float,
) -> float:
    """The radius of the value ellipsoid, (S6); value_range = H−1−h, half of it the noise scale.

    radius = range/2·√(logdet(A) − d·log λ₂ + 2·log(H/p)) + √λ₂·L_μ
    """
    at_least_zero(value_range=value_range, transition_norm=transition_norm)
    return self_normalised_radius(
        log_det_ratio,
        noise=value_range / 2,
        norm=transition_norm,
        ridge=ridge,
        log_inverse_probability=log_inverse_probability,
    )
