"""A ridge in the shape of the features: N by hand, and its bounds against 50 digits (spec 3)."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import surefoot as sf
from surefoot.estimate.basis import Whitened
from surefoot.estimate.costs import bound_rows
from surefoot.estimate.ellipsoids import CostConfidence, cost_ellipsoids
from surefoot.estimate.families import LOST
from surefoot.estimate.update import GRAM
from tests.banks import dense_bank, family_of, spread_of
from tests.hand_made import corridor, tell

P, LOG_TERM = 0.05, 5.0
MANY = tuple(10.0 ** (k / 8) for k in range(-32, 33))  # multipliers, so that but for rounding nothing is given away
mp = mpmath.mp


def confidence(ridge: float, *, guard: bool) -> CostConfidence:
    def rule(ratio: float, ridge: float, noise: float, norm: float) -> float:
        return noise * math.sqrt(ratio + 2 * LOG_TERM)

    return CostConfidence((ridge,), MANY, rule, shaped=10.0, dual=True, prior=True, scale=1.0, guard=guard)


def whitened(gram: np.ndarray, target: np.ndarray, unit: float, shape: np.ndarray) -> Whitened:
    bank = dense_bank(1, len(gram), 1, 1.0)
    bank.state.squares[GRAM] = np.tril(gram).reshape(-1)
    bank.state.targets[0] = target
    return bank.whitened(0, shape.reshape(-1), unit, 1.0)


def matrix(array: np.ndarray) -> Any:
    return mpmath.matrix(array.tolist())


def most_of_the_intersection(
    gram: Any, target: Any, beside: Any, x: Any, noise: float, norm: float, floor: float, log_term: Any = LOG_TERM
) -> tuple[Any, Any]:
    """The largest ⟨γ, x⟩ over noise ellipsoid and ball, A = gram + beside, in 50 digits: the least bound over all c;
    and the least over those that are tried."""
    root = mpmath.cholesky(gram + beside)
    ratio = 2 * sum(mpmath.log(root[i, i]) for i in range(gram.rows)) - mpmath.log(mpmath.det(beside))
    side, s, turn = mpmath.svd_r(mpmath.lu_solve(root, gram) if gram.rows == 1 else root**-1 * gram)
    y, w, L = side.T * (root**-1 * target), turn * x, mpmath.mpf(norm)
    R = max(noise * mpmath.sqrt(ratio + 2 * log_term), mpmath.mpf("1e-6") * L * mpmath.sqrt(mpmath.mpf(floor)))

    def bound(log_c: Any) -> Any:
        c = mpmath.exp(log_c) * (R / L) ** 2
        square = R**2 + c * (L**2 - sum(y[i] ** 2 / (s[i] ** 2 + c) for i in range(len(s))))
        if square < 0:
            return -mpmath.inf  # no γ explains such data
        width = mpmath.sqrt(square * sum(w[i] ** 2 / (s[i] ** 2 + c) for i in range(len(s))))
        return sum(s[i] * y[i] * w[i] / (s[i] ** 2 + c) for i in range(len(s))) + width

    low, high, share = mpmath.mpf(-60), mpmath.mpf(60), (mpmath.sqrt(5) - 1) / 2
    for _ in range(60):
        one, two = high - share * (high - low), low + share * (high - low)
        low, high = (low, two) if bound(one) <= bound(two) else (one, high)
    ball = L * mpmath.sqrt((w.T * w)[0])
    return min(bound((low + high) / 2), ball), min(*(bound(mpmath.log(mpmath.mpf(each))) for each in MANY), ball)


def extreme(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float, sf.Limit]:
    """Data up to 1e10 times the ridge, of features whose directions are up to 1e12 apart: G, b, N, a row, λ/10, how
    many times, a limit."""
    d, ridge, ratio = int(rng.integers(1, 7)), 10.0 ** rng.uniform(-6, 1), 10.0 ** rng.uniform(0, 10)
    features = (
        rng.standard_normal((50, d)) * 10.0 ** rng.uniform(-6, 0, d) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    )
    features *= math.sqrt(ridge / (features**2).sum(axis=1).mean())
    shape = d * (features.T @ features) / 50 / ridge + np.eye(d) / 100
    seen = features[rng.random(50) < rng.uniform(0.02, 1)] if rng.random() < 0.7 else rng.standard_normal((d, d))
    seen = seen if len(seen) else features[:1]
    gram = seen.T @ seen
    gram *= 10 * ridge * ratio / max(np.trace(gram), 1e-300)
    gram = (gram + gram.T) / 2
    gamma, noise = rng.standard_normal(d), 10.0 ** rng.uniform(-5, 0)
    limit = sf.Limit("heat", bound=1.0, noise=noise, norm=float(np.linalg.norm(gamma)) * 10.0 ** rng.uniform(0, 1))
    values, basis = np.linalg.eigh(gram)
    target = gram @ gamma + 0.5 * noise * (basis * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal(d)
    x = [rng.standard_normal(d), basis[:, 0].copy(), basis[:, -1] + basis[:, 0] * 10.0 ** rng.uniform(-6, 0)]
    return gram, target, shape, x[rng.integers(3)], ridge, ratio, limit


def _direction(rng: np.random.Generator, d: int) -> np.ndarray:
    v = rng.standard_normal(d)
    return np.asarray(v / np.linalg.norm(v))


def margins(rng: np.random.Generator, times: float = 0.5) -> tuple[float, float, float]:
    """Of an extreme case, whose sums are off by so many times what the guard allows them to be: how much larger than
    the exact bound the computed one is, with the guard and without, as shares of norm times length; and log10 of how
    many times the ridge the data are."""
    gram, target, shape, x, ridge, ratio, limit = extreme(rng)
    length, unit, lost = float(np.linalg.norm(x)), 10.0 * ridge, LOST * math.sqrt(len(x))
    family = family_of((limit,), len(x), length)
    upper, bare = (
        mpmath.mpf(float(bound_rows(x[None], None, known)[0][0, 0]))
        for known in (
            cost_ellipsoids(whitened(gram, target, unit, shape), spread_of(1.0), family, confidence(ridge, guard=guard))
            for guard in (True, False)
        )
    )
    off = rng.standard_normal(gram.shape)
    off *= times * lost * np.trace(gram) / np.linalg.norm(off + off.T, 2)
    less = times * lost * np.linalg.norm(target) * _direction(rng, len(x))
    exact, _ = most_of_the_intersection(
        matrix(gram) + matrix(off + off.T),
        matrix(target) + matrix(less),
        matrix(shape) * unit,
        matrix(x),
        limit.noise,
        limit.norm,
        unit,
    )
    size = limit.norm * length
    assert upper <= size * (1 + 1e-11)  # the ball stays
    return float((upper - exact) / size), float((bare - exact) / size), math.log10(ratio)


def test_rounding_never_lowers_an_upper_bound(seed: int) -> None:
    """No γ that the exact data allow costs more than the computed bound, though their sums are off by half of what the
    guard allows."""
    rng = np.random.default_rng(seed)
    with mpmath.workdps(50):
        found = [margins(rng) for _ in range(30)]
    assert min(above for above, _, _ in found) >= 0.0, found
    assert max(above - bare for above, bare, ratio in found if ratio <= 6.0) <= 1e-4  # and no wider than it must be


def test_sums_that_are_off_by_more_would_be_seen(seed: int) -> None:
    """Negative control: without the guard."""
    rng = np.random.default_rng(seed)
    with mpmath.workdps(50):
        assert any(margins(rng, 1000.0)[1] < 0.0 for _ in range(100))


@pytest.mark.parametrize(("near", "noise"), [(1e-1, 0.05), (1e-3, 1e-6), (1e-5, 1e-6), (1e-5, 0.05)])
def test_rounding_of_the_whole_way_from_rows_to_bounds(near: float, noise: float, seed: int) -> None:
    """Projection, the shape, sums and singular values together, against 50 digits from the raw rows; rows that hardly
    differ, of noise that is hardly any."""
    rng = np.random.default_rng([seed, int(1 / near)])
    d, kappa = int(rng.integers(2, 5)), float(10.0 ** rng.uniform(-3, 1))
    limit = sf.Limit("heat", bound=99.0, noise=noise, norm=3.0)
    anchor, base, gamma = rng.standard_normal(d), rng.standard_normal(d), _direction(rng, d)
    rows = [base * rng.uniform(0.5, 2) + near * rng.standard_normal(d) for _ in range(150)]
    features = {"fallback": base, "new": rng.standard_normal(d), "near": base + near, "anchor": anchor}
    table = {**features, **{f"row {i}": row for i, row in enumerate(rows)}}
    problem = corridor(table, limit, anchor=(anchor, [float(anchor @ gamma)]))
    agent = sf.LsviNew(problem, P, replan_growth=1e9, multipliers=MANY, shaped=kappa)
    seen = [int(i) for i in rng.integers(0, 150, 600)]
    costs = [float(rows[i] @ gamma + noise * rng.standard_normal()) for i in seen]
    tell(agent, *[[(f"row {i}", cost)] for i, cost in zip(seen, costs, strict=True)])
    agent.replan()
    upper = {name: float(agent.plan.upper(0, "s", name, "s")[0]) for name in features}
    with mpmath.workdps(50):
        known = mpmath.mpf(float(anchor @ gamma))
        exact = _exact(table, features, [f"row {i}" for i in seen], costs, anchor, known, limit, kappa)
    for name, (most, tried) in exact.items():
        where, size = (name, near, noise), 3.0 * float(np.linalg.norm(features[name]))
        assert upper[name] >= most, where
        assert abs(upper[name] - tried) <= 1e-6 * size, where


def _exact(
    table: dict[str, Any],
    asked: dict[str, Any],
    seen: list[str],
    costs: list[float],
    anchor: Any,
    known: Any,
    limit: Any,
    kappa: float,
) -> dict[str, Any]:
    """The largest cost that anything asked about may have, from raw rows."""
    x0 = matrix(anchor)

    def split(x: np.ndarray) -> tuple[Any, Any]:
        rho = (x0.T * matrix(x))[0] / (x0.T * x0)[0]
        return rho, matrix(x) - rho * x0

    parts, d = {name: split(np.asarray(x)) for name, x in table.items()}, len(anchor)
    s = sum((z.T * z)[0] for _, z in parts.values()) / len(parts)
    shape = mpmath.eye(d) / 100
    for _, z in parts.values():
        shape += z * z.T * (d / s / len(parts))
    gram, target = mpmath.zeros(d), mpmath.zeros(d, 1)
    for name, cost in zip(seen, costs, strict=True):
        rho, z = parts[name]
        gram, target = gram + z * z.T, target + z * (mpmath.mpf(cost) - rho * known)
    log_term, beside = mpmath.log(2 / mpmath.mpf(P)), shape * (kappa * s)

    def most(name: str) -> tuple[Any, Any]:
        rho, z = parts[name]
        told = most_of_the_intersection(gram, target, beside, z, limit.noise, limit.norm, kappa * s, log_term)
        return rho * known + told[0], rho * known + told[1]

    return {name: most(name) for name in asked}


@pytest.mark.parametrize("ratio", [1e15, 1e17, 1e20, 1e40])
def test_so_many_data_that_no_digit_of_the_ridge_is_left_leave_the_ball(ratio: float, seed: int) -> None:
    """Rounding may then leave no positive definite matrix; what was known before any data is known still."""
    rng = np.random.default_rng(seed)
    for d in (1, 2, 5, 30):
        rows, gamma = rng.standard_normal((max(1, d // 2), d)), _direction(rng, d)
        gram, x = rows.T @ rows * ratio, rng.standard_normal(d)
        limit = sf.Limit("heat", bound=1.0, noise=0.1, norm=2.0)
        data = whitened((gram + gram.T) / 2, gram @ gamma, 1.0, np.eye(d) / 100)
        known = cost_ellipsoids(data, spread_of(1.0), family_of((limit,), d, 1.0), confidence(0.1, guard=True))
        upper, lower = (float(each[0, 0]) for each in bound_rows(x[None], None, known))
        assert upper == pytest.approx(2.0 * np.linalg.norm(x), rel=1e-9)
        assert lower == -upper


def test_where_no_factor_can_be_computed_the_ball_is_left_however_few_the_data(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Of large matrices rounding may spoil the factor before the guard says so."""
    rng, found = np.random.default_rng(seed), np.linalg.cholesky
    rows, gamma, x = rng.standard_normal((9, 3)), _direction(rng, 3), rng.standard_normal(3)
    gram, limit, shape = rows.T @ rows, sf.Limit("heat", bound=1.0, noise=0.1, norm=2.0), np.eye(3) / 100

    def spoilt(matrices: np.ndarray) -> np.ndarray:
        if np.trace(matrices[0]) > 1.0:
            raise np.linalg.LinAlgError("not positive definite")
        return found(matrices)

    def upper() -> float:
        data = whitened(gram, gram @ gamma, 1.0, shape)
        known = cost_ellipsoids(data, spread_of(1.0), family_of((limit,), 3, 1.0), confidence(0.1, guard=True))
        return float(bound_rows(x[None], None, known)[0][0, 0])

    ball = 2.0 * float(np.linalg.norm(x))
    assert upper() < 0.9 * ball
    monkeypatch.setattr(np.linalg, "cholesky", spoilt)
    assert upper() == pytest.approx(ball, rel=1e-9)
