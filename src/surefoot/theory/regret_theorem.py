"""All constants of the regret theorem together (thm:regret; spec 6). Symbols as in :mod:`surefoot.theory`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.checks import at_least_zero, count, decisions, positive, probabilities
from surefoot.errors import InvalidInput
from surefoot.theory import paper
from surefoot.theory.paper import LowerBound

MOST_EPISODES = 10**18
"""Where `smallest_usable_episodes` stops looking."""


@dataclass(frozen=True)
class Setting:
    """What the theorem knows about a problem: everything but K. m limits, an anchor per step."""

    horizon: int
    bounds: Sequence[float]
    """Per limit, as the next two."""
    cost_norms: Sequence[float]
    noises: Sequence[float]
    transition_norm: float
    anchor_costs: Sequence[Sequence[float]]
    """H−1 rows of m, or H with a terminal cost."""
    largest_distance: float
    dimension: int
    feature_bound: float
    failure_probability: float
    ridge: float
    lambda_0: float
    b_beta: float
    delta_tilde: float
    union: bool
    """p/(mH) in β₁, which the proof needs (spec 7.10); False: p, as printed."""

    def __post_init__(self) -> None:
        m = len(self.bounds)
        decisions(self.horizon)
        count(limits=m)
        positive(lambda_0=self.lambda_0, delta_tilde=self.delta_tilde)
        at_least_zero(transition_norm=self.transition_norm)
        probabilities(failure_probability=self.failure_probability)
        widths = {"cost_norms": len(self.cost_norms), "noises": len(self.noises)}
        widths |= {f"anchor_costs[{h}]": len(row) for h, row in enumerate(self.anchor_costs)}
        for name, width in widths.items():
            if width != m:
                raise InvalidInput(f"{name} must have one entry per limit ({m})", got=f"has {width}")
        if len(self.anchor_costs) not in (self.horizon - 1, self.horizon):
            raise InvalidInput(
                "anchor_costs must have a row per decision step, and one more for a terminal cost",
                got=f"{len(self.anchor_costs)} rows for horizon {self.horizon}",
            )
        for sigma, L_j in zip(self.noises, self.cost_norms, strict=True):  # a max() could hide a NaN
            at_least_zero(noise=sigma, cost_norm=L_j)

    def radius(self, episodes: int) -> tuple[float, float, int]:
        """(β₁, β, K′) at T = H·K, σ = max_j σ_j, L = max(max_j L_j, L_μ); p/(mH) in β₁ with ``union``, p elsewhere."""
        count(episodes=episodes)
        T, p = self.horizon * episodes, self.failure_probability
        b_1 = paper.beta_1(
            noise=max(self.noises),
            norm=max(*self.cost_norms, self.transition_norm),
            dimension=self.dimension,
            ridge=self.ridge,
            total_steps=T,
            feature_bound=self.feature_bound,
            failure_probability=p / (len(self.bounds) * self.horizon if self.union else 1),
        )
        b = paper.beta(
            beta_1=b_1,
            b_beta=self.b_beta,
            dimension=self.dimension,
            horizon=self.horizon,
            total_steps=T,
            failure_probability=p,
        )
        k_prime = paper.initial_episodes(
            beta=b,
            feature_bound=self.feature_bound,
            total_steps=T,
            dimension=self.dimension,
            failure_probability=p,
        )
        return b_1, b, k_prime


@dataclass(frozen=True)
class PaperConstants:
    """The constants of the regret theorem (spec 6). Fields always exist; ε₂, ε₃, ε₄ raise if unusable.

    Tuples over limits have m entries, tuples over layers one per decision layer 0 … H−2.
    """

    setting: Setting
    episodes: int
    beta_1: float
    """With p/(mH) in its log, or p as printed (:attr:`Setting.union`)."""
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
    def total_steps(self) -> int:
        """T = H·K."""
        return self.setting.horizon * self.episodes

    @property
    def capped_initial_episodes(self) -> int:
        """min(K′, K), the episodes that play the fallback."""
        return min(self.initial_episodes, self.episodes)

    @property
    def epsilon_1(self) -> float:
        """ε₁, see `epsilon_1`."""
        return paper.epsilon_1(self.beta)

    @property
    def epsilon_2(self) -> tuple[float, ...]:
        """ε₂ per decision step (eq:epss); raises InvalidInput naming the first unusable step."""
        return tuple(self._weight(2, h) for h in range(len(self.gaps)))

    @property
    def epsilon_3(self) -> tuple[float, ...]:
        """ε₃ per decision step (eq:epsss); raises InvalidInput naming the first unusable step."""
        return tuple(self._weight(3, h) for h in range(len(self.gaps)))

    @property
    def epsilon_4(self) -> float:
        """ε₄ (eq:epssss); raises InvalidInput if the gap of step 0 is not positive."""
        return self._weight(4, 0)

    def problems(self) -> list[str]:
        """Why ε₂, ε₃ or ε₄ cannot be used, one reason per weight and step; empty if all can."""
        reasons: list[str] = []
        for h, which in [*((h, which) for h in range(len(self.gaps)) for which in (2, 3)), (0, 4)]:
            try:
                self._weight(which, h)
            except InvalidInput as error:
                reasons.append(str(error))
        return reasons

    def cap_warning(self) -> str | None:
        """A sentence with K′ and K if K′ ≥ K, so that only the fallback is ever played; otherwise None."""
        if self.initial_episodes < self.episodes:
            return None
        return (
            f"the paper's initial phase asks for {self.initial_episodes:,} episodes of the fallback and "
            f"the run has {self.episodes:,}: nothing but the fallback will be played."
        )

    def regret_bound(self) -> float:
        """eq:regret at this K; raises if an ε does."""
        return paper.regret_bound(
            self.episodes,
            horizon=self.setting.horizon,
            dimension=self.setting.dimension,
            feature_bound=self.setting.feature_bound,
            failure_probability=self.setting.failure_probability,
            lambda_0=self.setting.lambda_0,
            initial_episodes=self.initial_episodes,
            epsilon_1=self.epsilon_1,
            epsilon_2=self.epsilon_2,
            epsilon_3=self.epsilon_3,
            epsilon_4=self.epsilon_4,
        )

    def lower_bound(self) -> LowerBound:
        """eq:lowerbound at this K, claimed only; raises if gap⁺ of layer 0 is not positive."""
        return paper.lower_bound(
            self.episodes, dimension=self.setting.dimension, horizon=self.setting.horizon, gap_0=self.future_gaps[0]
        )

    def _weight(self, which: int, h: int) -> float:
        """ε₂, ε₃ or ε₄ of a step; an error names the step."""
        scale: dict[str, Any] = {"beta": self.beta, "horizon": self.setting.horizon}
        narrowed: dict[str, Any] = {
            "delta_tilde": self.setting.delta_tilde,
            "future_gap": self.future_gaps[h],
            "kappa": self.kappa,
        }
        try:
            if which == 2:
                return paper.epsilon_2(**scale, **narrowed, gap=self.gaps[h])
            return paper.epsilon_3(**scale, **narrowed) if which == 3 else paper.epsilon_4(**scale, gap_0=self.gaps[h])
        except InvalidInput as error:
            raise InvalidInput(error.rule, where=f"step {h}", got=error.got, fix=error.fix) from None


def paper_constants(setting: Setting, episodes: int) -> PaperConstants:
    """All constants of the regret theorem at K = episodes (spec 6, thm:regret); never raises for lack of slack.

    Δ_φ,j = L_j·largest_distance,
    gap_h = min_j(c̄_j − c⁰_{h,j} − Δ_φ,j), gap⁺_h = min_j(c̄_j − max_{h′≥h} c⁰_{h′,j} − Δ_φ,j).
    """
    b_1, b, k_prime = setting.radius(episodes)
    spreads = tuple(paper.delta_phi(L_j, setting.largest_distance) for L_j in setting.cost_norms)
    layers, limits = range(setting.horizon - 1), range(len(setting.bounds))

    def slack(h: int, j: int) -> float:
        return paper.gap(bound=setting.bounds[j], anchor_cost=setting.anchor_costs[h][j], delta_phi=spreads[j])

    def future_slack(h: int, j: int) -> float:
        costs = [row[j] for row in setting.anchor_costs[h:]]
        return paper.future_gap(bound=setting.bounds[j], anchor_costs_from_here=costs, delta_phi=spreads[j])

    return PaperConstants(
        setting=setting,
        episodes=episodes,
        beta_1=b_1,
        beta=b,
        initial_episodes=k_prime,
        kappa=paper.kappa(
            beta=b,
            feature_bound=setting.feature_bound,
            ridge=setting.ridge,
            lambda_0=setting.lambda_0,
            initial_episodes=k_prime,
        ),
        delta_phi=spreads,
        gaps=tuple(min(slack(h, j) for j in limits) for h in layers),
        future_gaps=tuple(min(future_slack(h, j) for j in limits) for h in layers),
    )


def smallest_usable_episodes(setting: Setting) -> int | None:
    """The smallest K with K′(K) ≤ K, thm:regret (spec 7.4); None if above MOST_EPISODES.

    K′/K falls in K (β grows like √log K only; H ≥ 2 makes that exact), so doubling and bisection find it.
    """

    def usable(K: int) -> bool:
        return setting.radius(K)[2] <= K

    too_few, enough = 0, 1
    while not usable(enough):
        if enough == MOST_EPISODES:
            return None
        too_few, enough = enough, min(2 * enough, MOST_EPISODES)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if usable(middle) else (middle, enough)
    return enough
