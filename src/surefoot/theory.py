"""Every constant of the paper and of the specification, as a pure function of numbers.

Symbols: d dimension, H horizon, K episodes, T = H·K total steps, m limits, p failure probability,
σ noise scale, L norm bound, λ ridge, D feature bound (‖φ_V‖ ≤ D), c̄ a limit's bound,
c⁰ an anchor's known cost. Layers are 0 … H−1 (the paper's 1 … H); decisions at 0 … H−2.

Labels such as `eq:epss` and `thm:regret` are those of the paper (lsvi-new.tex); `spec n` is a
section of the specification. Each formula has a test that is named after its label.
Nothing here has a default: a constant that is not given cannot be silently ignored.

Examples:
    >>> round(sf.theory.epsilon_1(beta=2.0), 3)
    3.0
"""

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from surefoot.errors import InvalidInput
from surefoot.tolerances import LOG_DET

MOST_EPISODES = 10**18
"""Where `smallest_usable_episodes` stops looking."""


# ---------------------------------------------------------------- confidence radii (spec 3 and 6)


def self_normalised_radius(
    log_det_ratio: float, *, noise: float, norm: float, ridge: float, log_inverse_probability: float
) -> float:
    """The radius of a self-normalised ellipsoid, (S3): what lemma:safetyparameteraccuracy has β₁ for.

    radius = σ·√(logdet(A) − d·log λ + 2·log(1/p')) + √λ·L,  log_det_ratio = logdet(A) − d·log λ.
    """
    if not -LOG_DET <= log_det_ratio < math.inf:
        raise InvalidInput(
            "log_det_ratio = logdet(A) − d·log(ridge) must be finite and at least 0",
            got=f"got {log_det_ratio!r}",
            fix="A must be ridge·I plus a sum of outer products.",
        )
    _at_least_zero(noise=noise, norm=norm, log_inverse_probability=log_inverse_probability)
    _positive(ridge=ridge)
    # G ≽ 0, so a negative ratio is rounding; 0 is the wider, hence the safe, reading of it.
    log_det_ratio = max(0.0, log_det_ratio)
    return noise * math.sqrt(log_det_ratio + 2 * log_inverse_probability) + math.sqrt(ridge) * norm


def cost_log_term(*, limits: int, horizon: int, n_ridges: int, failure_probability: float) -> float:
    """log(2·m·H·|Λ| / p): half of p, over all limits, layers and ridges, (S3)."""
    _count(limits=limits, horizon=horizon, n_ridges=n_ridges)
    _probability(failure_probability=failure_probability)
    return math.log(2 * limits * horizon * n_ridges / failure_probability)


def value_log_term(horizon: int, failure_probability: float) -> float:
    """log(2·H / p): the other half of p, over all layers, (S6)."""
    _count(horizon=horizon)
    _probability(failure_probability=failure_probability)
    return math.log(2 * horizon / failure_probability)


def value_radius(
    log_det_ratio: float,
    *,
    value_range: float,
    transition_norm: float,
    ridge: float,
    log_inverse_probability: float,
) -> float:
    """The radius of the value ellipsoid, (S6); value_range = H−1−h, half of it the noise scale.

    radius = range/2·√(logdet(A) − d·log λ₂ + 2·log(2H/p)) + √λ₂·L_μ
    """
    _at_least_zero(value_range=value_range, transition_norm=transition_norm)
    return self_normalised_radius(
        log_det_ratio,
        noise=value_range / 2,
        norm=transition_norm,
        ridge=ridge,
        log_inverse_probability=log_inverse_probability,
    )


# ---------------------------------------------------------------- the paper's radius (thm:regret)


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
    _at_least_zero(noise=noise, norm=norm)
    _count(dimension=dimension, total_steps=total_steps)
    _positive(ridge=ridge, feature_bound=feature_bound)
    _probability(failure_probability=failure_probability)
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
    _at_least_zero(beta_1=beta_1, b_beta=b_beta)
    _count(dimension=dimension, horizon=horizon, total_steps=total_steps)
    _probability(failure_probability=failure_probability)
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
    _positive(beta=beta, feature_bound=feature_bound)
    _count(total_steps=total_steps, dimension=dimension)
    _probability(failure_probability=failure_probability)
    log_term = math.log(dimension / failure_probability)
    return math.ceil(4 * beta * feature_bound * math.sqrt(total_steps) * log_term)


def kappa(*, beta: float, feature_bound: float, ridge: float, lambda_0: float, initial_episodes: int) -> float:
    """κ = 4·β·D / (λ + λ₀·K′), thm:regret, as printed (spec 7.2: a square root is missing)."""
    _positive(beta=beta, feature_bound=feature_bound, ridge=ridge, lambda_0=lambda_0)
    _count(initial_episodes=initial_episodes)
    return 4 * beta * feature_bound / (ridge + lambda_0 * initial_episodes)


# ---------------------------------------------------------------- slack, and the bonuses' weights


def delta_phi(norm: float, largest_distance: float) -> float:
    """Δ_φ = L·max‖x(s,a,s′) − x(s,a,s″)‖, the spread of costs over one support (below eq:epss)."""
    _at_least_zero(norm=norm, largest_distance=largest_distance)
    return norm * largest_distance


def gap(*, bound: float, anchor_cost: float, delta_phi: float) -> float:
    """gap_h = c̄ − c⁰_h − Δ_φ of one limit (below eq:epss); may be negative (spec 7.5)."""
    _finite(bound=bound, anchor_cost=anchor_cost)
    _at_least_zero(delta_phi=delta_phi)
    return bound - anchor_cost - delta_phi


def future_gap(*, bound: float, anchor_costs_from_here: Sequence[float], delta_phi: float) -> float:
    """gap⁺_h = c̄ − max_{h′ ≥ h} c⁰_{h′} − Δ_φ of one limit (below eq:epss); may be negative."""
    for cost in anchor_costs_from_here:  # each one, because max() can hide a NaN
        _finite(anchor_cost=cost)
    if len(anchor_costs_from_here) == 0:
        raise InvalidInput("anchor_costs_from_here must hold the cost of step h", got="is empty")
    return gap(bound=bound, anchor_cost=max(anchor_costs_from_here), delta_phi=delta_phi)


def epsilon_1(beta: float) -> float:
    """ε₁ = β + 1, the weight of the Hoeffding bonus (below eq:estimateqvalue)."""
    _positive(beta=beta)
    return beta + 1


def epsilon_2(*, beta: float, horizon: int, delta_tilde: float, gap: float, future_gap: float, kappa: float) -> float:
    """ε₂ = (4βH/δ̃)·(gap⁺/gap) / (gap⁺ − (gap⁺/gap)·κ), Idea II, eq:epss, as printed.

    The ratio cancels: ε₂ = 4βH / (δ̃·(gap − κ)) (spec 7.1). δ̃ is the δ of ass:lipschitzreward.
    """
    _usable("epsilon_2", "gap", gap)
    _usable("epsilon_2", "gap⁺", future_gap)
    _at_least_zero(kappa=kappa)
    ratio = future_gap / gap
    denominator = future_gap - ratio * kappa
    _above_kappa("epsilon_2", "gap", gap, kappa, denominator)
    return _bonus_scale(beta, horizon, delta_tilde) * ratio / denominator


def epsilon_3(*, beta: float, horizon: int, delta_tilde: float, future_gap: float, kappa: float) -> float:
    """ε₃ = (4βH/δ̃) / (gap⁺ − κ), Idea III, eq:epsss."""
    _usable("epsilon_3", "gap⁺", future_gap)
    _at_least_zero(kappa=kappa)
    denominator = future_gap - kappa
    _above_kappa("epsilon_3", "gap⁺", future_gap, kappa, denominator)
    return _bonus_scale(beta, horizon, delta_tilde) / denominator


def epsilon_4(*, beta: float, horizon: int, gap_0: float) -> float:
    """ε₄ = 4βH / (c̄ − c⁰_1 − Δ_φ), Idea IV, eq:epssss; gap_0 is the gap of layer 0."""
    _usable("epsilon_4", "gap_0", gap_0)
    return _bonus_scale(beta, horizon, 1.0) / gap_0


def _bonus_scale(beta: float, horizon: int, delta_tilde: float) -> float:
    """4βH/δ̃, the numerator that ε₂, ε₃ and (with δ̃ = 1) ε₄ share."""
    _positive(beta=beta, delta_tilde=delta_tilde)
    _count(horizon=horizon)
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
            fix="Run more episodes or take a larger lambda_0 (each lowers kappa), or give more "
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
    As printed, so vacuous where K′ ≥ K. A curve to draw, never a test oracle (spec 7.16).
    """
    _count(episodes=episodes, horizon=horizon, dimension=dimension, initial_episodes=initial_episodes)
    _positive(feature_bound=feature_bound, lambda_0=lambda_0)
    _probability(failure_probability=failure_probability)
    if not len(epsilon_2) == len(epsilon_3) > 0:
        raise InvalidInput(
            "epsilon_2 and epsilon_3 must have one entry per decision step",
            got=f"{len(epsilon_2)} and {len(epsilon_3)} entries",
        )
    for weight in (epsilon_1, *epsilon_2, *epsilon_3, epsilon_4):
        _positive(epsilon=weight)
    T = horizon * episodes
    largest = max(e_2 + e_3 for e_2, e_3 in zip(epsilon_2, epsilon_3, strict=True))
    elliptical = math.sqrt(2 * dimension * horizon * T * math.log(1 + T))
    martingale = 2 * horizon * math.sqrt(T * math.log(2 * dimension * T / failure_probability))
    rest = feature_bound / lambda_0 * (episodes / initial_episodes - 1)
    weights = epsilon_1 + epsilon_4 + largest
    return weights * elliptical + martingale + horizon * initial_episodes + rest


class LowerBound(NamedTuple):
    """What eq:lowerbound claims. Its safety term lacks a valid proof (spec 7.17): show it so."""

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
        """The word that must stand beside the number wherever it is shown."""
        return "claimed"


def lower_bound(episodes: int, *, dimension: int, horizon: int, gap_0: float) -> LowerBound:
    """R̲ = max( dH√K/(16√2), (H/24)/gap_0² ), eq:lowerbound, claimed only (spec 7.17).

    Its gap is c̄ − c̄⁰_1 − Δ_φ with c̄⁰_1 the largest anchor cost: gap⁺ of layer 0, where ε₄ has gap.
    """
    _count(episodes=episodes, dimension=dimension, horizon=horizon)
    _usable("lower_bound", "gap_0", gap_0)
    learning = dimension * horizon * math.sqrt(episodes / 512)  # 16√2 = √512
    safety = horizon / 24 / gap_0 / gap_0
    value = max(learning, safety)
    return LowerBound(value, learning, safety, valid=episodes >= 32 * value)


# ---------------------------------------------------------------- all of them together


@dataclass(frozen=True)
class PaperConstants:
    """The `paper` profile's constants (spec 6). Fields always exist; ε₂, ε₃, ε₄ raise if unusable.

    Tuples over limits have m entries, tuples over layers one per decision layer 0 … H−2.
    """

    horizon: int
    episodes: int
    dimension: int
    ridge: float
    total_steps: int
    """T = H·K."""
    feature_bound: float
    failure_probability: float
    lambda_0: float
    delta_tilde: float
    beta_1: float
    """With p/(mH) in its log."""
    beta: float
    initial_episodes: int
    """K′, not capped at K."""
    kappa: float
    delta_phi: tuple[float, ...]
    """Per limit."""
    gaps: tuple[float, ...]
    """Per decision layer, the smallest over limits."""
    future_gaps: tuple[float, ...]
    """Per decision layer, the smallest over limits; a terminal anchor counts."""

    @property
    def capped_initial_episodes(self) -> int:
        """min(K′, K), the episodes that play the fallback."""
        return min(self.initial_episodes, self.episodes)

    @property
    def epsilon_1(self) -> float:
        """ε₁, see `epsilon_1`."""
        return epsilon_1(self.beta)

    @property
    def epsilon_2(self) -> tuple[float, ...]:
        """ε₂ per decision layer (eq:epss); raises InvalidInput naming the first unusable layer."""
        return tuple(self._epsilon_2_at(h) for h in range(len(self.gaps)))

    @property
    def epsilon_3(self) -> tuple[float, ...]:
        """ε₃ per decision layer (eq:epsss); raises InvalidInput naming the first unusable layer."""
        return tuple(self._epsilon_3_at(h) for h in range(len(self.gaps)))

    @property
    def epsilon_4(self) -> float:
        """ε₄ (eq:epssss); raises InvalidInput if the gap of layer 0 is not positive."""
        return self._epsilon_4_at(0)

    def problems(self) -> list[str]:
        """Why ε₂, ε₃ or ε₄ cannot be used, one reason per weight and layer; empty if all can."""
        layers = range(len(self.gaps))
        weights = [(at, h) for h in layers for at in (self._epsilon_2_at, self._epsilon_3_at)]
        reasons: list[str] = []
        for weight_at, h in [*weights, (self._epsilon_4_at, 0)]:
            try:
                weight_at(h)
            except InvalidInput as error:
                reasons.append(str(error))
        return reasons

    def cap_warning(self) -> str | None:
        """Says K′ and K where K′ ≥ K, so that only the fallback is ever played; else None."""
        if self.initial_episodes < self.episodes:
            return None
        return (
            f"the paper's initial phase asks for {self.initial_episodes} episodes of the fallback and "
            f"the run has {self.episodes}: nothing but the fallback will be played."
        )

    def regret_bound(self) -> float:
        """eq:regret at this K; raises where an ε does."""
        return regret_bound(
            self.episodes,
            horizon=self.horizon,
            dimension=self.dimension,
            feature_bound=self.feature_bound,
            failure_probability=self.failure_probability,
            lambda_0=self.lambda_0,
            initial_episodes=self.initial_episodes,
            epsilon_1=self.epsilon_1,
            epsilon_2=self.epsilon_2,
            epsilon_3=self.epsilon_3,
            epsilon_4=self.epsilon_4,
        )

    def lower_bound(self) -> LowerBound:
        """eq:lowerbound at this K, claimed only; raises if gap⁺ of layer 0 is not positive."""
        return lower_bound(self.episodes, dimension=self.dimension, horizon=self.horizon, gap_0=self.future_gaps[0])

    def _epsilon_2_at(self, h: int) -> float:
        with _layer(h):
            return epsilon_2(
                beta=self.beta,
                horizon=self.horizon,
                delta_tilde=self.delta_tilde,
                gap=self.gaps[h],
                future_gap=self.future_gaps[h],
                kappa=self.kappa,
            )

    def _epsilon_3_at(self, h: int) -> float:
        with _layer(h):
            return epsilon_3(
                beta=self.beta,
                horizon=self.horizon,
                delta_tilde=self.delta_tilde,
                future_gap=self.future_gaps[h],
                kappa=self.kappa,
            )

    def _epsilon_4_at(self, h: int) -> float:
        with _layer(h):
            return epsilon_4(beta=self.beta, horizon=self.horizon, gap_0=self.gaps[h])


@contextmanager
def _layer(h: int) -> Iterator[None]:
    """Adds the layer to whatever is refused inside."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.rule, where=f"step {h}", got=error.got, fix=error.fix) from None


def paper_constants(
    *,
    horizon: int,
    episodes: int,
    bounds: Sequence[float],
    cost_norms: Sequence[float],
    noises: Sequence[float],
    transition_norm: float,
    anchor_costs: Sequence[Sequence[float]],
    largest_distance: float,
    dimension: int,
    feature_bound: float,
    failure_probability: float,
    ridge: float | None,
    lambda_0: float,
    b_beta: float,
    delta_tilde: float,
) -> PaperConstants:
    """All constants of the `paper` profile (spec 6, thm:regret); never raises for lack of slack.

    σ = max_j σ_j, L = max(max_j L_j, L_μ), Δ_φ,j = L_j·largest_distance, ridge None = d,
    gap_h = min_j(c̄_j − c⁰_{h,j} − Δ_φ,j), gap⁺_h = min_j(c̄_j − max_{h′≥h} c⁰_{h′,j} − Δ_φ,j).
    bounds, cost_norms, noises: m entries. anchor_costs: H−1 rows of m, or H with a terminal cost.
    """
    _decision_layers(horizon)
    _positive(lambda_0=lambda_0, delta_tilde=delta_tilde)
    _at_least_zero(transition_norm=transition_norm)
    m = len(bounds)
    _count(limits=m)
    widths = {"cost_norms": len(cost_norms), "noises": len(noises)}
    widths |= {f"anchor_costs[{h}]": len(row) for h, row in enumerate(anchor_costs)}
    for name, width in widths.items():
        if width != m:
            raise InvalidInput(f"{name} must have one entry per limit ({m})", got=f"has {width}")
    if len(anchor_costs) not in (horizon - 1, horizon):
        raise InvalidInput(
            "anchor_costs must have a row per decision step, and one more for a terminal cost",
            got=f"{len(anchor_costs)} rows for horizon {horizon}",
        )
    for sigma, L_j in zip(noises, cost_norms, strict=True):  # max() below could hide a NaN
        _at_least_zero(noise=sigma, cost_norm=L_j)
    lam = float(dimension if ridge is None else ridge)
    b_1, b, k_prime = _radius_and_initial_episodes(
        horizon=horizon,
        episodes=episodes,
        limits=m,
        noise=max(noises),
        norm=max(*cost_norms, transition_norm),
        dimension=dimension,
        ridge=lam,
        feature_bound=feature_bound,
        failure_probability=failure_probability,
        b_beta=b_beta,
    )
    spreads = tuple(delta_phi(L_j, largest_distance) for L_j in cost_norms)
    layers = range(horizon - 1)

    def slack(h: int, j: int) -> float:
        return gap(bound=bounds[j], anchor_cost=anchor_costs[h][j], delta_phi=spreads[j])

    def future_slack(h: int, j: int) -> float:
        costs = [row[j] for row in anchor_costs[h:]]
        return future_gap(bound=bounds[j], anchor_costs_from_here=costs, delta_phi=spreads[j])

    return PaperConstants(
        horizon=horizon,
        episodes=episodes,
        dimension=dimension,
        ridge=lam,
        total_steps=horizon * episodes,
        feature_bound=feature_bound,
        failure_probability=failure_probability,
        lambda_0=lambda_0,
        delta_tilde=delta_tilde,
        beta_1=b_1,
        beta=b,
        initial_episodes=k_prime,
        kappa=kappa(
            beta=b,
            feature_bound=feature_bound,
            ridge=lam,
            lambda_0=lambda_0,
            initial_episodes=k_prime,
        ),
        delta_phi=spreads,
        gaps=tuple(min(slack(h, j) for j in range(m)) for h in layers),
        future_gaps=tuple(min(future_slack(h, j) for j in range(m)) for h in layers),
    )


def smallest_usable_episodes(
    *,
    horizon: int,
    limits: int,
    noise: float,
    norm: float,
    dimension: int,
    ridge: float,
    feature_bound: float,
    failure_probability: float,
    b_beta: float,
) -> int | None:
    """The smallest K with K′(K) ≤ K, thm:regret (spec 7.4); None if above MOST_EPISODES.

    K′/K falls in K (β grows like √log K only; H ≥ 2 makes that exact), so doubling and bisection
    find it. p/(mH) in β₁, as in `paper_constants`.
    """
    _decision_layers(horizon)

    def usable(K: int) -> bool:
        _, _, k_prime = _radius_and_initial_episodes(
            horizon=horizon,
            episodes=K,
            limits=limits,
            noise=noise,
            norm=norm,
            dimension=dimension,
            ridge=ridge,
            feature_bound=feature_bound,
            failure_probability=failure_probability,
            b_beta=b_beta,
        )
        return k_prime <= K

    too_few, enough = 0, 1
    while not usable(enough):
        if enough == MOST_EPISODES:
            return None
        too_few, enough = enough, min(2 * enough, MOST_EPISODES)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if usable(middle) else (middle, enough)
    return enough


def _radius_and_initial_episodes(
    *,
    horizon: int,
    episodes: int,
    limits: int,
    noise: float,
    norm: float,
    dimension: int,
    ridge: float,
    feature_bound: float,
    failure_probability: float,
    b_beta: float,
) -> tuple[float, float, int]:
    """(β₁, β, K′) at T = H·K, with p/(mH) in β₁ and p elsewhere."""
    _count(horizon=horizon, episodes=episodes, limits=limits)
    _probability(failure_probability=failure_probability)
    T = horizon * episodes
    b_1 = beta_1(
        noise=noise,
        norm=norm,
        dimension=dimension,
        ridge=ridge,
        total_steps=T,
        feature_bound=feature_bound,
        failure_probability=failure_probability / (limits * horizon),
    )
    b = beta(
        beta_1=b_1,
        b_beta=b_beta,
        dimension=dimension,
        horizon=horizon,
        total_steps=T,
        failure_probability=failure_probability,
    )
    k_prime = initial_episodes(
        beta=b,
        feature_bound=feature_bound,
        total_steps=T,
        dimension=dimension,
        failure_probability=failure_probability,
    )
    return b_1, b, k_prime


# ---------------------------------------------------------------- what may be passed; NaN never


def _decision_layers(horizon: int) -> None:
    _count(horizon=horizon)
    if horizon < 2:
        raise InvalidInput("horizon must be at least 2, one decision", got=f"got {horizon}")


def _count(**values: int) -> None:
    for name, value in values.items():
        try:
            whole = not isinstance(value, bool) and operator.index(value) >= 1
        except TypeError:
            whole = False
        if not whole:
            raise InvalidInput(f"{name} must be a whole number from 1 on", got=f"got {value!r}")


def _probability(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < 1:
            raise InvalidInput(f"{name} must lie strictly within (0, 1)", got=f"got {value!r}")


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InvalidInput(f"{name} must be positive and finite", got=f"got {value!r}")


def _at_least_zero(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < math.inf:
            raise InvalidInput(f"{name} must be at least 0 and finite", got=f"got {value!r}")


def _finite(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise InvalidInput(f"{name} must be finite", got=f"got {value!r}")
