"""(S3) by hand where a sheet of paper is enough, and the guard against rounding; every term: tests/differential."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, SurefootError
from surefoot.estimate.costs import bound_rows
from surefoot.estimate.ellipsoids import CostConfidence, cost_ellipsoids
from surefoot.estimate.row_bounds import possible
from surefoot.estimate.update import GRAM, GRAM_LOW
from surefoot.tolerances import CONTRADICTION
from tests.banks import family_of, spread_of, turned
from tests.differential.compare import problem_of
from tests.hand_made import corridor, tell
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed

P = 0.05
LIMIT = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)


def noise_radius(ratio: float, *, noise: float = 0.1, union: float = 2.0, p: float = P) -> float:
    """R = σ√(logdet A − d log λ + 2 log(union/p)); union = m·n·|Λ|, which is 2 for one limit, one ridge and 2 steps."""
    return noise * math.sqrt(ratio + 2 * math.log(union / p))


def along(
    e: float,
    b: float,
    z: float,
    R: float,
    ridge: float = 1.0,
    norm: float = 1.0,
    multipliers: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0),
) -> tuple[float, float]:
    """(upper, lower) of z along an eigenvector of G with eigenvalue e: the ball, or the best of the ellipsoids."""
    upper, lower = norm * abs(z), -norm * abs(z)
    for multiplier in multipliers:
        c = multiplier * (R / norm) ** 2
        D = e * e + c * (e + ridge)
        width = math.sqrt((R * R + c * (norm * norm - b * b / D)) * (e + ridge) / D) * abs(z)
        upper, lower = min(upper, e * b / D * z + width), max(lower, e * b / D * z - width)
    return upper, lower


def agent_for(problem: sf.Problem, ridges: tuple[float, ...] = (1.0,), p: float = P, **more: Any) -> sf.LsviNew:
    return sf.LsviNew(problem, p, ridges=ridges, replan_growth=0.0, **more)


def bounds(agent: sf.LsviNew, action: str, h: int = 0) -> tuple[Any, Any]:
    return agent.plan.upper(h, "s", action, "s"), agent.plan.lower(h, "s", action, "s")


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12, abs=5e-14)  # the guard: 4ε times what the widest ellipsoid reaches


# ---------------------------------------------------------------- worked out on paper


def test_prior_bound_is_all_that_is_known_without_data() -> None:
    agent = agent_for(corridor({"fallback": [1.0], "far": [-3.0]}, LIMIT))
    assert bounds(agent, "fallback") == (close([1.0]), close([-1.0]))  # ±L‖z‖, tighter than radius·u > √λL·‖z‖/√λ
    assert bounds(agent, "far") == (close([3.0]), close([-3.0]))


def test_one_dimension_by_hand() -> None:
    agent = agent_for(corridor({"fallback": [1.0], "twice": [2.0]}, LIMIT))
    tell(agent, [("fallback", 0.2)], [("fallback", 0.3)], [("fallback", 0.1)])
    # G = 3, b = 0.6, λ = 1: R = 0.1 √(log 4 + 2 log 40) = 0.296, and with c = R² = 0.0876, D = 9 + 4c = 9.35:
    # centre 0.6·3/D = 0.1925, weight 4/D = 0.4278, radius² = R² + c(1 − 0.36/D) = 0.1719. Of z = 2: 0.385 ± 0.542
    R = noise_radius(math.log(4))
    assert pytest.approx(0.29605, abs=1e-4) == R
    upper, lower = bounds(agent, "twice")
    assert upper[0] <= 0.385 + 0.5425
    assert lower[0] >= 0.385 - 0.5425
    assert (upper, lower) == tuple(close([x]) for x in along(3, 0.6, 2.0, R))
    assert bounds(agent, "fallback") == tuple(close([x]) for x in along(3, 0.6, 1.0, R))


def test_anchor_projection_by_hand() -> None:
    problem = corridor({"fallback": [2.0, 0.0], "other": [4.0, 3.0]}, LIMIT, anchor=([2.0, 0.0], [0.25]))
    agent = agent_for(problem)
    # other: ρ = 8/4 = 2, z = (0, 3), k = 0.5
    assert bounds(agent, "other") == (close([0.5 + 3.0]), close([0.5 - 3.0]))
    assert bounds(agent, "fallback") == (close([0.25]), close([0.25]))  # known exactly, before any data
    tell(agent, [("other", 0.8)], [("other", 0.2)], [("fallback", 0.9)])
    # Rows z = (0,3) twice with targets 0.3 and −0.3, and a zero row: G = diag(0, 18), b = 0, A = diag(1, 19),
    # The anchor's direction stays in the log-determinant's dimension but adds log 1 = 0.
    upper, lower = along(18, 0.0, 3.0, noise_radius(math.log(19)))
    assert bounds(agent, "other") == (close([0.5 + upper]), close([0.5 + lower]))
    assert bounds(agent, "fallback") == (close([0.25]), close([0.25]))


def test_multipliers_are_an_option_and_more_of_them_only_narrow() -> None:
    def told(**options: Any) -> tuple[Any, Any]:
        agent = agent_for(corridor({"fallback": [1.0]}, LIMIT), **options)
        tell(agent, *[[("fallback", 0.2)]] * 3)
        return bounds(agent, "fallback")

    R = noise_radius(math.log(4))
    assert told(multipliers=(3.0,)) == tuple(close([x]) for x in along(3, 0.6, 1.0, R, multipliers=(3.0,)))
    (few, below), (many, above) = told(), told(multipliers=(0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10))
    assert below <= above <= many <= few
    assert many < few
    for wrong in ((), (0.0,), (-1.0,), (1e9,), (math.nan,)):
        with pytest.raises(InvalidInput, match="multipliers"):
            told(multipliers=wrong)


# ---------------------------------------------------------------- what data say


ROWS = [[("fallback", 0.2)], [("fallback", 0.3)], [("fallback", 0.1)]]


def test_what_the_data_use_of_the_ball_is_not_left_for_other_directions() -> None:
    """A cost near L along one direction leaves little of ‖γ‖ ≤ L for the others: no noise ellipsoid says that."""
    problem = corridor({"fallback": [1.0, 0.0], "side": [0.0, 1.0]}, sf.Limit("heat", bound=1.0, noise=0.01, norm=1.0))
    agent = agent_for(problem)
    tell(agent, *[[("fallback", 0.98)]] * 400)
    assert bounds(agent, "side")[0][0] < 0.5  # √(1 − 0.98²) = 0.2 is what is left, and the noise


def test_term_failure_probability() -> None:
    for p in (0.5, 0.05, 1e-6):
        agent = agent_for(corridor({"fallback": [1.0]}, LIMIT), p=p)
        tell(agent, *ROWS)
        assert bounds(agent, "fallback")[0] == close([along(3, 0.6, 1.0, noise_radius(math.log(4), p=p))[0]])


# ---------------------------------------------------------------- rounding never certifies


def exact_upper(G: Any, b: Any, z: Any, ridges: Sequence[tuple[float, Any]], limit: sf.Limit, log_term: Any) -> Any:
    """(S3) in 50 digits: matrices, and no decomposition. Of ridges (λ, N)."""
    d, L = G.rows, mpmath.mpf(limit.norm)
    each = [L * mpmath.sqrt((z.T * z)[0])]
    for number, shape in ridges:
        ridge = mpmath.mpf(number)
        A = G + ridge * shape
        ratio = mpmath.log(mpmath.det(A)) - mpmath.log(mpmath.det(ridge * shape))
        R = max(limit.noise * mpmath.sqrt(ratio + 2 * log_term), mpmath.mpf("1e-6") * L * mpmath.sqrt(ridge))
        inverse = A**-1
        for multiple in ("0.01", "0.1", "1", "10"):
            c = mpmath.mpf(multiple) * (R / L) ** 2
            M, q = G * inverse * G + c * mpmath.eye(d), G * inverse * b
            centre = mpmath.lu_solve(M, q)
            square = R**2 + c * L**2 + (q.T * centre)[0] - (b.T * inverse * b)[0]
            each.append((centre.T * z)[0] + mpmath.sqrt(square * (z.T * mpmath.lu_solve(M, z))[0]))
    return min(each)


def hand_confidence(ridges: tuple[float, ...], log_term: float, *, guard: bool = True) -> CostConfidence:
    def rule(ratio: float, ridge: float, noise: float, norm: float) -> float:
        return noise * math.sqrt(ratio + 2 * log_term)

    return CostConfidence(
        ridges, (0.01, 0.1, 1.0, 10.0), rule, shaped=0.0, dual=True, prior=True, scale=1.0, guard=guard
    )


def extreme(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float, sf.Limit]:
    """A Gram matrix with λmax/λ up to 1e10, targets, and a direction where it hurts; the ridge, that ratio, a limit."""
    d, ridge, ratio = int(rng.integers(1, 7)), 10.0 ** rng.uniform(-6, 1), 10.0 ** rng.uniform(0, 10)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    eigenvalues = ridge * ratio * 10.0 ** rng.uniform(-12, 0, d) * (rng.random(d) < 0.7)
    eigenvalues[0] = ridge * ratio
    gram = (basis * eigenvalues) @ basis.T
    gram = (gram + gram.T) / 2
    gamma, noise = rng.standard_normal(d), 10.0 ** rng.uniform(-3, 0)
    limit = sf.Limit("heat", bound=1.0, noise=noise, norm=float(np.linalg.norm(gamma)) * 10.0 ** rng.uniform(0, 1))
    target = gram @ gamma + 0.5 * noise * (basis * np.sqrt(eigenvalues)) @ rng.standard_normal(d)
    least = basis[:, int(np.argmin(eigenvalues))]
    x = [rng.standard_normal(d), least.copy(), basis[:, 0] + least * 10.0 ** rng.uniform(-6, 0)][rng.integers(3)]
    return gram, target, x, ridge, ratio, limit


def matrix(array: np.ndarray) -> Any:
    return mpmath.matrix(array.tolist())


def most_of_the_intersection(gram: Any, target: Any, x: Any, ridge: float, limit: sf.Limit, log_term: float) -> Any:
    """The largest ⟨γ, x⟩ over noise ellipsoid and ball, in 50 digits: the least bound over all c, by golden section."""
    values, basis = mpmath.eigsy(gram)
    e, b, w = [max(v, mpmath.mpf(0)) for v in values], basis.T * target, basis.T * x
    d, L, lam = len(e), mpmath.mpf(limit.norm), mpmath.mpf(ridge)
    ratio = sum(mpmath.log1p(v / lam) for v in e)
    R = max(limit.noise * mpmath.sqrt(ratio + 2 * mpmath.mpf(log_term)), mpmath.mpf("1e-6") * L * mpmath.sqrt(lam))

    def bound(log_c: Any) -> Any:
        c = mpmath.exp(log_c) * (R / L) ** 2
        D = [v * v + c * (v + lam) for v in e]
        square = R**2 + c * (L**2 - sum(b[i] ** 2 / D[i] for i in range(d)))
        width = mpmath.sqrt(square * sum((e[i] + lam) * w[i] ** 2 / D[i] for i in range(d)))
        return sum(e[i] * b[i] * w[i] / D[i] for i in range(d)) + width

    low, high, share = mpmath.mpf(-60), mpmath.mpf(60), (mpmath.sqrt(5) - 1) / 2
    for _ in range(60):
        one, two = high - share * (high - low), low + share * (high - low)
        low, high = (low, two) if bound(one) <= bound(two) else (one, high)
    return min(bound((low + high) / 2), L * mpmath.sqrt((w.T * w)[0]))


def test_rounding_never_lowers_an_upper_bound(seed: int) -> None:
    """No γ that the exact data allow costs more than the computed bound; without the guard some would."""
    rng = np.random.default_rng(seed)
    needed = 0
    with mpmath.workdps(50):
        for _ in range(100):
            gram, target, x, ridge, ratio, limit = extreme(rng)
            exact = most_of_the_intersection(matrix(gram), matrix(target), matrix(x), ridge, limit, 5.0)
            data, length = turned(gram, target[None]), float(np.linalg.norm(x))
            family = family_of((limit,), len(x), length)
            upper, bare = (
                float(bound_rows(x[None], None, known)[0][0, 0])
                for known in (
                    cost_ellipsoids(data, spread_of(1.0), family, hand_confidence((ridge,), 5.0, guard=guard))
                    for guard in (True, False)
                )
            )
            assert mpmath.mpf(upper) >= exact, (ratio, float(exact), upper)
            assert upper <= limit.norm * length * (1 + 1e-12)  # the ball stays
            if ratio <= 1e7:
                even = [(ridge, mpmath.eye(len(target)))]
                near = exact_upper(matrix(gram), matrix(target), matrix(x), even, limit, mpmath.mpf(5))
                assert abs(upper - near) <= 1e-6 * limit.norm * length  # and no wider than rounding asks
            needed += not mpmath.mpf(bare) >= exact
    assert needed > 0


def test_rounding_of_the_whole_way_from_rows_to_bounds(seed: int) -> None:
    """Projection, sums, eigenbasis and grid together, against 50 digits from the raw rows."""
    rng = np.random.default_rng(seed)
    for number in range(6):
        d, limit = int(rng.integers(2, 5)), sf.Limit("heat", bound=1.0, noise=0.05, norm=3.0)
        anchor, base = rng.standard_normal(d), rng.standard_normal(d)
        rows = [base * rng.uniform(0.5, 2) + 1e-3 * rng.standard_normal(d) for _ in range(150)]
        costs = rng.uniform(0, 1, 150)
        features = {"fallback": base, "new": rng.standard_normal(d), "near": base + 1e-3, "anchor": anchor}
        played = {f"row {i}": row for i, row in enumerate(rows)}
        problem = corridor({**features, **played}, limit, anchor=(anchor, [0.1]))
        ridges = [0.1, 1.0, 10.0] if number % 2 else None
        agent = sf.LsviNew(problem, P, ridges=ridges, replan_growth=1e9)
        tell(agent, *[[pair] for pair in zip(played, costs, strict=True)])
        agent.replan()
        with mpmath.workdps(50):
            for action, x in features.items():
                kinds = _shaped([*features.values(), *rows], anchor) if ridges is None else _even(ridges, d)
                exact = _exact_from_rows(rows, costs, x, anchor, kinds, limit)
                upper = mpmath.mpf(float(bounds(agent, action)[0][0]))
                assert upper >= exact - mpmath.mpf(1e-12)
                assert upper <= exact + mpmath.mpf(1e-6)


def _even(ridges: list[float], d: int) -> list[tuple[float, Any]]:
    return [(ridge, mpmath.eye(d)) for ridge in ridges]


def _shaped(rows: list[np.ndarray], anchor: np.ndarray) -> list[tuple[float, Any]]:
    """λ = κ s and N = d·mean(zzᵀ)/s + I/100, with noise of 0.05 and a room of 0.9."""
    x = np.array(rows)
    z = x - np.outer(x @ anchor / (anchor @ anchor), anchor)
    s = float((z * z).sum(axis=1).mean())
    kappa = min(10.0, 100.0 * (len(anchor) + 10) * (0.05 / 0.9) ** 2)
    return [(kappa * s, matrix(len(anchor) * (z.T @ z / len(z)) / s + np.eye(len(anchor)) / 100.0))]


def _exact_from_rows(
    rows: list[np.ndarray],
    costs: np.ndarray,
    x: np.ndarray,
    anchor: np.ndarray,
    ridges: list[tuple[float, Any]],
    limit: sf.Limit,
) -> Any:
    x0 = mpmath.matrix(anchor.tolist())
    size = (x0.T * x0)[0]

    def split(v: np.ndarray) -> tuple[Any, Any]:
        vector = mpmath.matrix(v.tolist())
        rho = (vector.T * x0)[0] / size
        return rho, vector - rho * x0

    d = len(x)
    G, b = mpmath.zeros(d), mpmath.zeros(d, 1)
    for row, c in zip(rows, costs, strict=True):
        rho, z = split(row)
        G, b = G + z * z.T, b + z * (mpmath.mpf(float(c)) - rho * mpmath.mpf(0.1))
    rho, z = split(x)
    log_term = mpmath.log(1 * 2 * len(ridges) / mpmath.mpf(P))
    return rho * mpmath.mpf(0.1) + exact_upper(G, b, z, ridges, limit, log_term)


# ---------------------------------------------------------------- NaN and ∞ never certify


# Every array, and every number that is none; ∞ in "spread" says that anything may be off: the prior bound stays valid.
POISONS = [
    ("gram", math.nan),
    ("gram", -math.inf),
    ("gram_low", math.inf),
    ("targets", math.inf),
    ("targets", math.nan),
    ("targets_low", -math.inf),
    ("spread", math.nan),
    ("spread", -math.inf),
]


@pytest.mark.parametrize(("array", "bad"), POISONS)
def test_poisoned_data_certify_nothing_but_the_seed(array: str, bad: float, seed: int) -> None:
    """A plan from such data fails, which leaves the old plan and says so, or certifies the fallback alone."""
    tables = random_tables(seed, anchors=True, stationary_costs=False)
    problem = problem_of(tables)
    agent = sf.LsviNew(problem, replan_growth=0.0)
    history = list(random_history(tables, np.random.default_rng(seed), 12, np.random.default_rng(seed)))
    for episode in history[:-1]:
        feed(agent, episode)
    for h in range(problem.horizon - 1):
        saved = agent.checkpoint()
        before = agent.plan
        state, dim = agent.costs.bank.state, problem.graph.cost_dim
        held, first = {
            "gram": (state.squares[GRAM], h * dim * dim),
            "gram_low": (state.squares[GRAM_LOW], h * dim * dim),
            "targets": (state.targets[0, 0], h * dim),
            "targets_low": (state.targets[1, 0], h * dim),
            "spread": (agent.costs.spread, (h, 0)),
        }[array]
        held[first] = bad
        # The low parts reach the sums with the next row, so an episode follows.
        with np.errstate(all="ignore"):
            feed(agent, history[-1])
        if agent.plan_failure:
            assert agent.plan is before
            assert agent.replans == int(saved["replans"])
            assert agent.failed_replans == int(saved["failed"]) + 1
        else:
            _only_the_seed(agent)
        agent.restore(saved)


def test_a_nan_is_passed_on_to_every_bound_it_touches() -> None:
    """The prior bound would still be finite; a NaN must not hide behind it."""
    for gram, target in ((np.eye(2), np.array([[np.nan, 0.0]])), (np.eye(2), np.array([[0.0, -np.inf]]))):
        for dual in (False, True):
            confidence = replace(hand_confidence((1.0, 10.0), 5.0), dual=dual, prior=dual)
            with np.errstate(all="ignore"):
                known = cost_ellipsoids(turned(gram, target), spread_of(0.0), family_of((LIMIT,), 2, 1.0), confidence)
                upper, lower = bound_rows(np.array([[1.0, 1.0], [0.5, 2.0]]), None, known)
            assert np.isnan(upper).all()
            assert np.isnan(lower).all()


def _only_the_seed(agent: sf.LsviNew) -> None:
    for layer, mask in zip(agent.problem.graph.layers, agent.plan.certified_sets.pairs, strict=True):
        assert set(np.flatnonzero(mask)) == set(layer.fallback_pairs().tolist())
    assert not agent.plan.consistent


def test_a_finite_cost_that_overflows_certifies_nothing_but_the_seed() -> None:
    agent = agent_for(corridor({"fallback": [1.0], "other": [2.0]}, LIMIT))
    with np.errstate(all="ignore"):
        tell(agent, [("other", -1e308)], [("other", -1e308)])
    _only_the_seed(agent)
    seed = agent.problem.graph.layers[0].fallback_pairs()
    assert agent.plan.values.action[0].tolist() == seed.tolist()  # it goes on, with the seed
    assert all(np.isfinite(value).all() for value in agent.plan.values.value)  # and what it learns stays numbers


def test_nan_features_and_costs_never_get_in() -> None:
    with pytest.raises(SurefootError, match="not finite"):
        corridor({"fallback": [math.nan]}, LIMIT)
    agent = agent_for(corridor({"fallback": [1.0]}, LIMIT))
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(SurefootError, match="not finite"):
            tell(agent, [("fallback", bad)])
        agent.abort_episode()
    assert agent.costs.bank.rows.sum() == 0


@pytest.mark.parametrize(("apart", "fine"), [(0.0, True), (1e-12, True), (1e-7, False), (1e-4, False)])
def test_a_lower_bound_above_its_upper_is_a_contradiction_to_its_last_digits(apart: float, fine: bool) -> None:
    upper = np.array([[0.5, 0.5]])
    assert possible(upper, upper + np.array([[0.0, apart]]), np.full(2, CONTRADICTION)) == fine
