"""The paper's constants by label, its regret bound and its lower bound. Symbols as in :mod:`surefoot.theory`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from surefoot.checks import all_finite, at_least_zero, count, positive, probabilities
from surefoot.errors import InvalidInput

# ---------------------------------------------------------------- the radius and the first phase (thm:regret)


def beta_1(
    *,
    noise: float,
    norm: float,
    dimension: int,
    ridge: float,
    total_steps: int,
    feature_bound: float,
    failure_probability: float,
) -> float:
    """β₁ = σ·√(d·log((2 + 2TD²/λ)/p)) + √λ·L, the first term of β in thm:regret.

    The radius of eq:safetyparameteraccuracy. Safety over all layers and limits needs p/(mH) here (spec 7.10); the
    caller passes it.
    """
    at_least_zero(noise=noise, norm=norm)
    count(dimension=dimension, total_steps=total_steps)
    positive(ridge=ridge, feature_bound=feature_bound)
    probabilities(failure_probability=failure_probability)
    inside = (2 + 2 * total_steps * feature_bound * feature_bound / ridge) / failure_probability
    return noise * math.sqrt(dimension * math.log(inside)) + math.sqrt(ridge) * norm


def beta(
    *,
    beta_1: float,
    b_beta: float,
    dimension: int,
    horizon: int,
    total_steps: int,
    failure_probability: float,
) -> float:
    """β = max(β₁, b_β·d·H·√log(dT/p)), thm:regret."""
    at_least_zero(beta_1=beta_1, b_beta=b_beta)
    count(dimension=dimension, horizon=horizon, total_steps=total_steps)
    probabilities(failure_probability=failure_probability)
    log_term = math.log(dimension * total_steps / failure_probability)
    return max(beta_1, b_beta * dimension * horizon * math.sqrt(log_term))


def initial_episodes(
    *,
    beta: float,
    feature_bound: float,
    total_steps: int,
    dimension: int,
    failure_probability: float,
) -> int:
    """K′ = ⌈4·β·D·√T·log(d/p)⌉, thm:regret; not capped at K."""
    positive(beta=beta, feature_bound=feature_bound)
    count(total_steps=total_steps, dimension=dimension)
    probabilities(failure_probability=failure_probability)
    log_term = math.log(dimension / failure_probability)
    return math.ceil(4 * beta * feature_bound * math.sqrt(total_steps) * log_term)


def kappa(*, beta: float, feature_bound: float, ridge: float, lambda_0: float, initial_episodes: int) -> float:
    """κ = 4·β·D / (λ + λ₀·K′), thm:regret, as printed (spec 7.2: a square root is missing)."""
    positive(beta=beta, feature_bound=feature_bound, ridge=ridge, lambda_0=lambda_0)
    count(initial_episodes=initial_episodes)
    return 4 * beta * feature_bound / (ridge + lambda_0 * initial_episodes)


# ---------------------------------------------------------------- slack, and the bonuses' weights


def delta_phi(norm: float, largest_distance: float) -> float:
    """Δ_φ = L·max‖x(s,a,s′) − x(s,a,s″)‖, the spread of costs over one support (below eq:epss)."""
    at_least_zero(norm=norm, largest_distance=largest_distance)
    return norm * largest_distance


def gap(*, bound: float, anchor_cost: float, delta_phi: float) -> float:
    """gap_h = c̄ − c⁰_h − Δ_φ of one limit (below eq:epss); may be negative (spec 7.5)."""
    all_finite(bound=bound, anchor_cost=anchor_cost)
    at_least_zero(delta_phi=delta_phi)
    return bound - anchor_cost - delta_phi


def future_gap(*, bound: float, anchor_costs_from_here: Sequence[float], delta_phi: float) -> float:
    """gap⁺_h = c̄ − max_{h′ ≥ h} c⁰_{h′} − Δ_φ of one limit (below eq:epss); may be negative."""
    for cost in anchor_costs_from_here:  # each one, because max() can hide a NaN
        all_finite(anchor_cost=cost)
    if len(anchor_costs_from_here) == 0:
        raise InvalidInput("anchor_costs_from_here must hold the cost of step h", got="is empty")
    return gap(bound=bound, anchor_cost=max(anchor_costs_from_here), delta_phi=delta_phi)


def epsilon_1(beta: float) -> float:
    """ε₁ = β + 1, the weight of the Hoeffding bonus (below eq:estimateqvalue)."""
    positive(beta=beta)
    return beta + 1


def epsilon_2(*, beta: float, horizon: int, delta_tilde: float, gap: float, future_gap: float, kappa: float) -> float:
    """ε₂ = (4βH/δ̃)·(gap⁺/gap) / (gap⁺ − (gap⁺/gap)·κ), Idea II, eq:epss, as printed.

    The ratio cancels: ε₂ = 4βH / (δ̃·(gap − κ)) (spec 7.1). δ̃ is the δ of ass:lipschitzreward.
    """
    _usable("epsilon_2", "gap", gap)
    _usable("epsilon_2", "gap⁺", future_gap)
    at_least_zero(kappa=kappa)
    ratio = future_gap / gap
    denominator = future_gap - ratio * kappa
    _above_kappa("epsilon_2", "gap", gap, kappa, denominator)
    return _bonus_scale(beta, horizon, delta_tilde) * ratio / denominator


def epsilon_3(*, beta: float, horizon: int, delta_tilde: float, future_gap: float, kappa: float) -> float:
    """ε₃ = (4βH/δ̃) / (gap⁺ − κ), Idea III, eq:epsss."""
    _usable("epsilon_3", "gap⁺", future_gap)
    at_least_zero(kappa=kappa)
    denominator = future_gap - kappa
    _above_kappa("epsilon_3", "gap⁺", future_gap, kappa, denominator)
    return _bonus_scale(beta, horizon, delta_tilde) / denominator


def epsilon_4(*, beta: float, horizon: int, gap_0: float) -> float:
    """ε₄ = 4βH / (c̄ − c⁰_1 − Δ_φ), Idea IV, eq:epssss; gap_0 is the gap of layer 0."""
    _usable("epsilon_4", "gap_0", gap_0)
    return _bonus_scale(beta, horizon, 1.0) / gap_0


def _bonus_scale(beta: float, horizon: int, delta_tilde: float) -> float:
    """4βH/δ̃, the numerator that ε₂, ε₃ and (with δ̃ = 1) ε₄ share."""
    positive(beta=beta, delta_tilde=delta_tilde)
    count(horizon=horizon)
    return 4 * beta * horizon / delta_tilde


def _usable(user: str, name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidInput(
            f"{user} needs {name} = bound − anchor cost − delta_phi > 0",
            got=f"{name} = {value:.6g}",
            fix="Give more slack (a larger bound, an anchor of lower cost) or a smaller spread "
            "(a smaller cost norm, closer features within one support).",
        )


def _above_kappa(user: str, name: str, value: float, kappa: float, denominator: float) -> None:
    if not denominator > 0:
        raise InvalidInput(
            f"{user} needs {name} > kappa, a positive denominator",
            got=f"{name} = {value:.6g}, kappa = {kappa:.6g}, denominator = {denominator:.6g}",
            fix="Run more episodes or use a larger lambda_0 (each lowers kappa), or give more "
            "slack or a smaller spread.",
        )


# ---------------------------------------------------------------- regret


def regret_bound(
    episodes: int,
    *,
    horizon: int,
    dimension: int,
    feature_bound: float,
    failure_probability: float,
    lambda_0: float,
    initial_episodes: int,
    epsilon_1: float,
    epsilon_2: Sequence[float],
    epsilon_3: Sequence[float],
    epsilon_4: float,
) -> float:
    """The right-hand side of eq:regret at K = episodes; ε₂, ε₃ have one entry per decision layer.

    [ε₁ + ε₄ + max_h(ε₂ + ε₃)]·√(2dHT·log(1+T)) + 2H·√(T·log(2dT/p)) + H·K′ + (D/λ₀)·(K/K′ − 1)
    As printed, so vacuous if K′ ≥ K. A curve to draw, never a test oracle (spec 7.16).
    """
    count(episodes=episodes, horizon=horizon, dimension=dimension, initial_episodes=initial_episodes)
    positive(feature_bound=feature_bound, lambda_0=lambda_0)
    probabilities(failure_probability=failure_probability)
    if not len(epsilon_2) == len(epsilon_3) > 0:
        raise InvalidInput(
            "epsilon_2 and epsilon_3 must have one entry per decision step",
            got=f"{len(epsilon_2)} and {len(epsilon_3)} entries",
        )
    for weight in (epsilon_1, *epsilon_2, *epsilon_3, epsilon_4):
        positive(epsilon=weight)
    T = horizon * episodes
    largest = max(e_2 + e_3 for e_2, e_3 in zip(epsilon_2, epsilon_3, strict=True))
    elliptical = math.sqrt(2 * dimension * horizon * T * math.log(1 + T))
    martingale = 2 * horizon * math.sqrt(T * math.log(2 * dimension * T / failure_probability))
    rest = feature_bound / lambda_0 * (episodes / initial_episodes - 1)
    weights = epsilon_1 + epsilon_4 + largest
    return weights * elliptical + martingale + horizon * initial_episodes + rest


class LowerBound(NamedTuple):
    """What eq:lowerbound claims. Its safety term lacks a valid proof (spec 7.17), so show it as a claim."""

    value: float
    """R̲ = max(learning_term, safety_term)."""
    learning_term: float
    """dH√K / (16√2)."""
    safety_term: float
    """(H/24) / gap²; the part that is only claimed."""
    valid: bool
    """Whether K ≥ 32·R̲, which thm:lowerbound assumes."""

    @property
    def label(self) -> str:
        """The word that must accompany the number wherever it is shown."""
        return "claimed"


def lower_bound(episodes: int, *, dimension: int, horizon: int, gap_0: float) -> LowerBound:
    """R̲ = max( dH√K/(16√2), (H/24)/gap_0² ), eq:lowerbound, claimed only (spec 7.17).

    Its gap is c̄ − c̄⁰_1 − Δ_φ with c̄⁰_1 the largest anchor cost: gap⁺ of layer 0, where ε₄ has gap.
    """
    count(episodes=episodes, dimension=dimension, horizon=horizon)
    _usable("lower_bound", "gap_0", gap_0)
    learning = dimension * horizon * math.sqrt(episodes / 512)  # 16√2 = √512
    safety = horizon / 24 / gap_0 / gap_0
    value = max(learning, safety)
    return LowerBound(value, learning, safety, valid=episodes >= 32 * value)
