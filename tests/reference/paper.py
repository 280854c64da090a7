"""The constants of the `paper` profile, from the last part of spec 6, with the names the paper gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .scale import largest_cost_norm
from .tables import Tables, norm


@dataclass(frozen=True)
class PaperConstants:
    """beta, K' (uncapped), kappa, and the four exploration weights; lists run over the decision layers."""

    beta: float
    initial_episodes: int
    kappa: float
    epsilon_1: float
    epsilon_2: list[float]
    epsilon_3: list[float]
    epsilon_4: float


def joint_dimension(tables: Tables) -> int:
    """d = dc when the features are shared, else dc + dp."""
    dc, dp = len(next(iter(tables.x.values()))), len(next(iter(tables.phi.values())))
    return dc if tables.shared_features else dc + dp


def paper_constants(
    tables: Tables,
    p: float,
    *,
    ridge: float,
    episodes: float | None,
    feature_bound: float | None,
    coverage_rate: float,
    value_radius_scale: float,
    lipschitz: float,
    union: bool = True,
) -> PaperConstants:
    """All of them; a denominator that is not positive is an error that names it."""
    if episodes is None:
        raise ValueError("the paper profile needs episodes=K")
    H, d, T = tables.horizon, joint_dimension(tables), tables.horizon * episodes
    # With separate features D must also bound the cost features: beta_1 is used for safety.
    D = max(H * largest_support_norm(tables), largest_cost_norm(tables)) if feature_bound is None else feature_bound
    beta = _beta(tables, p, ridge, T, D, value_radius_scale, union)
    k_prime = math.ceil(4.0 * beta * D * math.sqrt(T) * math.log(d / p))
    kappa = 4.0 * beta * D / (ridge + coverage_rate * k_prime)  # the uncapped K'
    epsilon_2: list[float] = []
    epsilon_3: list[float] = []
    for h in range(H - 1):
        gap, gap_plus = _gap(tables, h, h), _gap(tables, h, H - 1)
        ratio = gap_plus / _positive(f"gap_{h} = bound - c0_{h} - Delta_phi", gap)
        below_2 = _positive(f"gap+_{h} - (gap+_{h}/gap_{h}) kappa", gap_plus - ratio * kappa)
        below_3 = _positive(f"gap+_{h} - kappa", gap_plus - kappa)
        # The paper prints the ratio in both places; it cancels (spec 7.1) but is kept.
        epsilon_2.append(4.0 * beta * H / lipschitz * ratio / below_2)
        epsilon_3.append(4.0 * beta * H / lipschitz / below_3)
    epsilon_4 = 4.0 * beta * H / _positive("bound - c0_0 - Delta_phi", _gap(tables, 0, 0))
    return PaperConstants(beta, k_prime, kappa, beta + 1.0, epsilon_2, epsilon_3, epsilon_4)


def _beta(tables: Tables, p: float, ridge: float, T: float, D: float, b_beta: float, union: bool) -> float:
    """One radius for everything, with the largest noise and the largest norm."""
    H, m, d = tables.horizon, len(tables.limits), joint_dimension(tables)
    sigma = max(limit.noise for limit in tables.limits)
    L = max(tables.transition_norm, *(limit.norm for limit in tables.limits))
    # spec 7.10: the union over limits and layers enters beta_1 through p / (m H); the paper prints p.
    share = p / (m * H) if union else p
    log_term = math.log((2.0 + 2.0 * T * D**2 / ridge) / share)
    beta_1 = sigma * math.sqrt(d * log_term) + math.sqrt(ridge) * L
    return max(beta_1, b_beta * d * H * math.sqrt(math.log(d * T / p)))


def largest_support_norm(tables: Tables) -> float:
    """max over pairs of the summed norms of the transition features over the support."""
    return max(sum(norm(tables.phi[h, s, a, s2]) for s2 in support) for (h, s, a), support in tables.successors.items())


def largest_feature_distance(tables: Tables) -> float:
    """max over pairs and over two of their cost rows of the distance between them."""
    widest = 0.0
    for pair in tables.pairs():
        for one in tables.rows(pair):
            for two in tables.rows(pair):
                u, v = tables.x[one], tables.x[two]
                widest = max(widest, norm([a1 - b1 for a1, b1 in zip(u, v, strict=True)]))
    return widest


def _gap(tables: Tables, first: int, last: int) -> float:
    """min over limits of bound - (largest anchor cost at layers first..last) - Delta_phi."""
    distance = largest_feature_distance(tables)
    gaps: list[float] = []
    for j, limit in enumerate(tables.limits):
        known = [c for h in range(first, last + 1) if (c := _anchor_cost(tables, h, j)) is not None]
        gaps.append(limit.bound - max(known) - limit.norm * distance)
    return min(gaps)


def _anchor_cost(tables: Tables, h: int, j: int) -> float | None:
    """The paper needs an anchor per layer; the terminal layer only when it has a cost."""
    if h == tables.horizon - 1 and tables.terminal_x is None:
        return None
    anchor = tables.anchor(h)
    if anchor is not None:
        return anchor[1][j]
    raise ValueError(f"the paper profile needs an anchor at every layer, but layer {h} has none")


def _positive(name: str, value: float) -> float:
    if not value > 0.0:
        raise ValueError(f"{name} must be positive, but got {value}")
    return value
