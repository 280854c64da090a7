"""(S3) by hand: every term of the bounds, the projection, misspecification, and the guard against rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.estimate import kernels
from surefoot.estimate.costs import CostConfidence, bound_rows, cost_ellipsoids
from surefoot.estimate.update import GRAM, GRAM_LOW
from surefoot.model.graph import Anchor
from surefoot.tolerances import CONTRADICTION
from tests.banks import turned
from tests.differential.compare import problem_of
from tests.hand_made import corridor, tell
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed

P = 0.05
LIMIT = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)


def radius(
    ratio: float, ridge: float, *, noise: float = 0.1, norm: float = 1.0, union: float = 4.0, p: float = P
) -> float:
    """σ√(logdet A − d log λ + 2 log(union/p)) + √λ L; union = 2·m·H·|Λ|, which is 4 for one limit, ridge and H = 2."""
    return noise * math.sqrt(ratio + 2 * math.log(union / p)) + math.sqrt(ridge) * norm


def agent_for(problem: sf.Problem, ridges: tuple[float, ...] = (1.0,), p: float = P, **more: Any) -> sf.LsviNew:
    return sf.LsviNew(problem, p, ridges=ridges, replan_growth=0.0, **more)


def bounds(agent: sf.LsviNew, action: str, h: int = 0) -> tuple[Any, Any]:
    return agent.plan.upper(h, "s", action, "s"), agent.plan.lower(h, "s", action, "s")


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-14)


# ---------------------------------------------------------------- worked out on paper


def test_prior_bound_is_all_that_is_known_without_data() -> None:
    agent = agent_for(corridor({"fallback": [1.0], "far": [-3.0]}, LIMIT))
    assert bounds(agent, "fallback") == (close([1.0]), close([-1.0]))  # ±L‖z‖, tighter than radius·u > √λL·‖z‖/√λ
    assert bounds(agent, "far") == (close([3.0]), close([-3.0]))


def test_one_dimension_by_hand() -> None:
    agent = agent_for(corridor({"fallback": [1.0], "twice": [2.0]}, LIMIT))
    tell(agent, [("fallback", 0.2)], [("fallback", 0.3)], [("fallback", 0.1)])
    # G = 3, b = 0.6, A = 4, γ̂ = 0.15, and for z = 2: prediction 0.3, u = 2/√4 = 1, logdet A − log λ = log 4
    r = radius(math.log(4), 1.0)
    assert r == pytest.approx(1.3186, abs=1e-4)
    assert bounds(agent, "twice") == (close([0.3 + r]), close([0.3 - r]))  # the prior, ±2, is wider
    # for z = 1: prediction 0.15, u = 1/2; the prior ±1 is wider above and below
    assert bounds(agent, "fallback") == (close([0.15 + r / 2]), close([0.15 - r / 2]))


def test_prior_bound_cuts_one_side_only() -> None:
    agent = agent_for(corridor({"fallback": [1.0]}, LIMIT), ridges=(0.01,))
    tell(agent, [("fallback", 0.95)])
    # A = 1.01, γ̂ = 0.95/1.01, u = 1/√1.01: the prediction plus the radius passes L‖z‖ = 1, the lower stays inside
    r, mean, u = radius(math.log(101), 0.01), 0.95 / 1.01, 1 / math.sqrt(1.01)
    assert mean + r * u > 1.0 > -1.0 < mean - r * u
    assert bounds(agent, "fallback") == (close([1.0]), close([mean - r * u]))


def test_anchor_projection_by_hand() -> None:
    problem = corridor({"fallback": [2.0, 0.0], "other": [4.0, 3.0]}, LIMIT, anchor=([2.0, 0.0], [0.25]))
    agent = agent_for(problem)
    # other: ρ = 8/4 = 2, z = (0, 3), k = 0.5
    assert bounds(agent, "other") == (close([0.5 + 3.0]), close([0.5 - 3.0]))
    assert bounds(agent, "fallback") == (close([0.25]), close([0.25]))  # known exactly, before any data
    tell(agent, [("other", 0.8)], [("other", 0.2)], [("fallback", 0.9)])
    # Rows z = (0,3) twice with targets 0.3 and −0.3, and a zero row: G = diag(0, 18), b = 0, A = diag(1, 19),
    # u = 3/√19. The anchor's direction stays in the log-determinant's dimension but adds log 1 = 0.
    r, u = radius(math.log(19), 1.0), 3 / math.sqrt(19)
    assert bounds(agent, "other") == (close([0.5 + r * u]), close([0.5 - r * u]))
    assert bounds(agent, "fallback") == (close([0.25]), close([0.25]))


def test_two_dimensions_by_hand() -> None:
    features = {"fallback": [1.0, 0.0], "side": [0.0, 1.0], "both": [1.0, 1.0]}
    agent = agent_for(corridor(features, LIMIT))
    tell(agent, [("fallback", 0.3)], [("both", 0.9)])
    # G = [[2,1],[1,1]], A = [[3,1],[1,2]], det A = 5, A⁻¹ = [[2,−1],[−1,3]]/5, b = 0.3(1,0) + 0.9(1,1) = (1.2, 0.9)
    # γ̂ = (2·1.2 − 0.9, −1.2 + 3·0.9)/5 = (0.3, 0.3); u² = 2/5, 3/5 and (2 − 2 + 3)/5
    r = radius(math.log(5), 1.0)
    for action, mean, square in (("fallback", 0.3, 0.4), ("side", 0.3, 0.6), ("both", 0.6, 0.6)):
        upper = min(math.hypot(*features[action]), mean + r * math.sqrt(square))
        lower = max(-math.hypot(*features[action]), mean - r * math.sqrt(square))
        assert bounds(agent, action) == (close([upper]), close([lower]))


def test_costs_are_not_clipped() -> None:
    """A measured cost of −40 and bounds beyond [0, 1] are as good as any."""
    limit = sf.Limit("heat", bound=1.0, noise=0.1, norm=100.0)
    agent = agent_for(corridor({"fallback": [1.0]}, limit), ridges=(1e-4,))
    tell(agent, *[[("fallback", -40.0)]] * 20)
    assert bounds(agent, "fallback")[0] == pytest.approx([-40.0], abs=0.5)


def test_each_ridge_of_the_grid_wins_somewhere() -> None:
    """upper is the least of the grid's bounds: a small ridge where much was seen, a large one where little was."""
    ridges, rows, cost = (0.01, 1.0, 100.0), 10_000, 0.02
    tilts = (0.0, 0.01, 0.5)
    features = {f"tilt {t}": [1.0, t] for t in tilts}
    agent = sf.LsviNew(corridor(features, sf.Limit("heat", 1.0, 0.5, 1.0)), P, ridges=ridges, replan_growth=1e9)
    tell(agent, *[[("tilt 0.0", cost)]] * rows)
    agent.replan()
    won = []
    for t in tilts:
        each = [
            cost * rows / (rows + k)
            + radius(math.log1p(rows / k), k, noise=0.5, union=2 * 1 * 2 * 3) * math.sqrt(1 / (rows + k) + t * t / k)
            for k in ridges
        ]
        assert min(each) < math.hypot(1.0, t)  # the prior bound has no part in it
        assert bounds(agent, f"tilt {t}")[0] == pytest.approx([min(each)], rel=1e-8)
        won.append(int(np.argmin(each)))
    assert won == [0, 1, 2]


def test_default_grid_follows_the_noisiest_limit() -> None:
    limits = [sf.Limit("a", 1.0, 0.2, 2.0), sf.Limit("b", 1.0, 0.3, 1.0)]
    agent = sf.LsviNew(corridor({"fallback": [1.0]}, limits))
    assert agent.constants["ridges"] == close([4 * 0.09, 40 * 0.09, 400 * 0.09])  # q = (0.3/1)²
    quiet = sf.LsviNew(corridor({"fallback": [1.0]}, sf.Limit("a", 1.0, 0.0, 1.0)))
    assert quiet.constants["ridges"] == close([4e-6, 4e-5, 4e-4])  # q = 1e-6 at least


def test_each_limit_has_its_own_noise_norm_and_data() -> None:
    limits = [sf.Limit("a", 1.0, noise=0.1, norm=1.0), sf.Limit("b", 1.0, noise=0.3, norm=5.0)]
    agent = agent_for(corridor({"fallback": [1.0]}, limits))
    tell(agent, [("fallback", [0.2, 2.0])], [("fallback", [0.4, 1.0])], [("fallback", [0.0, 3.0])])
    # A = 4, u = 1/2, γ̂ = (0.15, 1.5); the union is over two limits
    r = [radius(math.log(4), 1.0, noise=n, norm=k, union=2 * 2 * 2) for n, k in ((0.1, 1.0), (0.3, 5.0))]
    upper, lower = bounds(agent, "fallback")
    assert upper == close([0.15 + r[0] / 2, 1.5 + r[1] / 2])
    assert lower == close([0.15 - r[0] / 2, 1.5 - r[1] / 2])


def test_layers_are_separate_unless_costs_are_stationary() -> None:
    for stationary in (False, True):
        agent = agent_for(corridor({"fallback": [1.0]}, LIMIT, horizon=4, stationary_costs=stationary, terminal=[2.0]))
        tell(agent, [("fallback", 0.1), ("fallback", 0.2), ("fallback", 0.3)], terminal=0.8)
        # together: G = 1 + 1 + 1 + 4 = 7, b = 0.1 + 0.2 + 0.3 + 2·0.8 = 2.2; apart: G = 1, b = the layer's own cost
        for h, cost in enumerate((0.1, 0.2, 0.3)):
            gram, target = (7.0, 2.2) if stationary else (1.0, cost)
            r = radius(math.log(1 + gram), 1.0, union=2 * 1 * 4)  # the union keeps its H
            upper = target / (1 + gram) + r / math.sqrt(1 + gram)
            assert bounds(agent, "fallback", h)[0] == close([min(1.0, upper)])
        gram, target = (7.0, 2.2) if stationary else (4.0, 1.6)
        last = 2 * target / (1 + gram) + 2 * radius(math.log(1 + gram), 1.0, union=8) / math.sqrt(1 + gram)
        assert agent.plan.terminal_upper("s") == close([min(2.0, last)])


# ---------------------------------------------------------------- misspecification


def test_misspecification_widens_by_the_formula() -> None:
    zeta = 0.01
    limit = sf.Limit("heat", 1.0, 0.1, 1.0, misspecification=zeta)
    problem = corridor({"fallback": [2.0, 0.0], "other": [-4.0, 3.0]}, limit, anchor=([2.0, 0.0], [0.25]))
    agent = agent_for(problem)
    # before data: prior bound, then ζ(1+|ρ|) with ρ = −2
    assert bounds(agent, "other") == (close([-0.5 + 3 + 3 * zeta]), close([-0.5 - 3 - 3 * zeta]))
    assert bounds(agent, "fallback") == (close([0.25 + 2 * zeta]), close([0.25 - 2 * zeta]))
    tell(agent, *[[("other", -0.5)]] * 2, [("fallback", 0.9)])
    # Σ(1+|ρ_i|)² = 9 + 9 + 4 (the zero row counts), A = diag(1, 19), γ̂ = 0
    wide = radius(math.log(19), 1.0) + zeta * math.sqrt(22)
    u = 3 / math.sqrt(19)
    assert bounds(agent, "other") == (close([-0.5 + wide * u + 3 * zeta]), close([-0.5 - wide * u - 3 * zeta]))


def test_misspecification_without_an_anchor() -> None:
    zeta = 0.02
    agent = agent_for(corridor({"fallback": [1.0]}, sf.Limit("heat", 1.0, 0.1, 1.0, misspecification=zeta)))
    tell(agent, *[[("fallback", 0.2)]] * 3)
    wide = (radius(math.log(4), 1.0) + zeta * math.sqrt(3)) / 2  # ρ = 0: each row counts 1
    assert bounds(agent, "fallback") == (close([0.15 + wide + zeta]), close([0.15 - wide - zeta]))


def test_radius_scale_leaves_misspecification_and_prior_alone() -> None:
    zeta = 0.02
    problem = corridor({"fallback": [1.0]}, sf.Limit("heat", 1.0, 0.1, 1.0, misspecification=zeta))
    agent = agent_for(problem, safety_radius_scale=0.5)
    assert bounds(agent, "fallback")[0] == close([min(1.0, radius(0.0, 1.0) / 2) + zeta])
    tell(agent, *[[("fallback", 0.2)]] * 3)
    wide = (radius(math.log(4), 1.0) / 2 + zeta * math.sqrt(3)) / 2
    assert bounds(agent, "fallback")[0] == close([0.15 + wide + zeta])


# ---------------------------------------------------------------- one test per term of the radius


ROWS = [[("fallback", 0.2)], [("fallback", 0.3)], [("fallback", 0.1)]]
U = 0.5  # of z = 1 after these three rows under ridge 1


def fallback_upper(limit: sf.Limit = LIMIT, *, p: float = P, ridges: tuple[float, ...] = (1.0,)) -> float:
    agent = agent_for(corridor({"fallback": [1.0]}, limit), ridges, p)
    tell(agent, *ROWS)
    return float(bounds(agent, "fallback")[0][0])


def test_term_noise() -> None:
    change = fallback_upper(sf.Limit("heat", 1.0, noise=0.17, norm=1.0)) - fallback_upper()
    assert change == pytest.approx(0.07 * math.sqrt(math.log(4) + 2 * math.log(4 / P)) * U, rel=1e-9)


def test_term_norm() -> None:
    change = fallback_upper(sf.Limit("heat", 1.0, noise=0.1, norm=1.1), ridges=(0.25,)) - fallback_upper(ridges=(0.25,))
    assert change == pytest.approx(math.sqrt(0.25) * 0.1 / math.sqrt(3.25), rel=1e-9)  # √λ·ΔL·u


def test_term_ridge() -> None:
    """λ alone: estimate, u, log-determinant and √λL all move, as predicted."""
    for ridge in (0.04, 0.25, 1.0):
        u = 1 / math.sqrt(3 + ridge)
        predicted = 0.6 / (3 + ridge) + radius(math.log(3 + ridge) - math.log(ridge), ridge) * u
        assert fallback_upper(ridges=(ridge,)) == pytest.approx(predicted, rel=1e-12)


def test_term_log_det() -> None:
    """Rows across z change nothing for z but the log-determinant."""
    problem = corridor({"fallback": [1.0, 0.0], "side": [0.0, 1.0]}, LIMIT)
    one, two = agent_for(problem), agent_for(problem)
    tell(one, *ROWS)
    tell(two, *ROWS, *[[("side", 0.3)]] * 5)
    change = float(bounds(two, "fallback")[0][0] - bounds(one, "fallback")[0][0])
    log, union = math.log(4), 2 * math.log(4 / P)
    assert change == pytest.approx(0.1 * (math.sqrt(log + math.log(6) + union) - math.sqrt(log + union)) * U, rel=1e-9)


def union_upper(union: float, p: float = P) -> float:
    return 0.15 + radius(math.log(4), 1.0, union=union, p=p) * U


def test_term_failure_probability() -> None:
    for p in (0.5, 0.05, 1e-6):
        assert fallback_upper(p=p) == pytest.approx(union_upper(4.0, p), rel=1e-12)


def test_term_number_of_limits() -> None:
    agent = agent_for(corridor({"fallback": [1.0]}, [sf.Limit(name, 1.0, 0.1, 1.0) for name in "abc"]))
    tell(agent, *[[(a, [c] * 3) for a, c in steps] for steps in ROWS])
    assert bounds(agent, "fallback")[0] == pytest.approx([union_upper(2 * 3 * 2 * 1)] * 3, rel=1e-12)


def test_term_horizon() -> None:
    agent = agent_for(corridor({"fallback": [1.0]}, LIMIT, horizon=5))
    tell(agent, *[steps * 4 for steps in ROWS])
    assert bounds(agent, "fallback", 3)[0] == pytest.approx([union_upper(2 * 1 * 5 * 1)], rel=1e-12)


def test_term_number_of_ridges() -> None:
    assert fallback_upper(ridges=(1.0, 1.0, 1.0)) == pytest.approx(union_upper(2 * 1 * 2 * 3), rel=1e-12)


def test_term_radius_scale() -> None:
    agent = agent_for(corridor({"fallback": [1.0]}, LIMIT), safety_radius_scale=1.25)
    tell(agent, *ROWS)
    upper, lower = bounds(agent, "fallback")
    r = radius(math.log(4), 1.0)
    assert upper == close([0.15 + 1.25 * r / 2])
    assert lower == close([0.15 - 1.25 * r / 2])


# ---------------------------------------------------------------- rounding never certifies


def exact_upper(
    gram: np.ndarray, target: np.ndarray, x: np.ndarray, ridges: tuple[float, ...], limit: sf.Limit, log_term: float
) -> Any:
    """min over ridges of (S3) in 50 digits, from the very numbers that the engine was given."""
    d = len(gram)
    G, b, z = mpmath.matrix(gram.tolist()), mpmath.matrix(target.tolist()), mpmath.matrix(x.tolist())
    each = []
    for ridge in ridges:
        A = G + mpmath.mpf(ridge) * mpmath.eye(d)
        estimate, direction = mpmath.lu_solve(A, b), mpmath.lu_solve(A, z)
        ratio = mpmath.log(mpmath.det(A)) - d * mpmath.log(ridge)
        wide = limit.noise * mpmath.sqrt(ratio + 2 * mpmath.mpf(log_term)) + mpmath.sqrt(ridge) * limit.norm
        each.append((estimate.T * z)[0] + wide * mpmath.sqrt((z.T * direction)[0]))
    return min(each)


def hand_confidence(ridges: tuple[float, ...], log_term: float) -> CostConfidence:
    def rule(ratio: float, ridge: float, limit: sf.Limit) -> float:
        return limit.noise * math.sqrt(ratio + 2 * log_term) + math.sqrt(ridge) * limit.norm

    return CostConfidence(ridges, rule, prior=False, scale=1.0)


def extreme(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """A Gram matrix with λmax/λ up to 1e10, targets, and a direction where it hurts; the ridge and that ratio."""
    d, ridge, ratio = int(rng.integers(1, 7)), 10.0 ** rng.uniform(-6, 1), 10.0 ** rng.uniform(0, 10)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    eigenvalues = ridge * ratio * 10.0 ** rng.uniform(-12, 0, d) * (rng.random(d) < 0.7)
    eigenvalues[0] = ridge * ratio
    gram = (basis * eigenvalues) @ basis.T
    gram = (gram + gram.T) / 2
    gamma = rng.standard_normal(d)
    target = gram @ gamma + 0.05 * (basis * np.sqrt(eigenvalues)) @ rng.standard_normal(d)
    least = basis[:, int(np.argmin(eigenvalues))]
    x = [rng.standard_normal(d), least.copy(), basis[:, 0] + least * 10.0 ** rng.uniform(-6, 0)][rng.integers(3)]
    return gram, target, x, ridge, ratio


def test_rounding_never_lowers_an_upper_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    needed = 0
    with mpmath.workdps(50):
        for _ in range(300):
            gram, target, x, ridge, ratio = extreme(rng)
            limit = sf.Limit("heat", 1.0, 10.0 ** rng.uniform(-3, 0), 10.0 ** rng.uniform(-1, 1))
            known = cost_ellipsoids(turned(gram, target[None]), 0.0, (limit,), hand_confidence((ridge,), 5.0))
            upper = float(bound_rows(x[None], None, known)[0][0, 0])
            exact = exact_upper(gram, target, x, (ridge,), limit, 5.0)
            u = math.sqrt((known.basis.turn(x) ** 2) @ known.weights[0])
            guard, size = (
                known.guards[0, 0] * u,
                known.radii[0, 0] * u + abs(float(known.basis.turn(x) @ known.centres[0, 0])),
            )
            assert mpmath.mpf(upper) >= exact - 8 * np.spacing(size), (ratio, float(exact), upper)
            needed += mpmath.mpf(upper - guard) < exact
            # The guard is of the size that the spec names, and no wider: ε·λmax/λ of what it protects.
            assert guard <= 20 * np.finfo(float).eps * (ratio + 1) * size * (
                1 + math.sqrt(ridge) * 10 / known.radii[0, 0]
            )
            if ratio <= 1e7:
                assert guard <= 1e-6 * size
    assert needed >= 30  # without the guard, rounding would have certified


def test_rounding_of_the_whole_way_from_rows_to_bounds(seed: int) -> None:
    """Projection, sums, eigenbasis and grid together, against 50 digits from the raw rows."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        d, limit = int(rng.integers(2, 5)), sf.Limit("heat", 1.0, 0.05, 3.0)
        anchor, base = Anchor(rng.standard_normal(d), np.array([0.1])), rng.standard_normal(d)
        rows = [base * rng.uniform(0.5, 2) + 1e-3 * rng.standard_normal(d) for _ in range(150)]
        costs = rng.uniform(0, 1, 150)
        features = {"fallback": base, "new": rng.standard_normal(d), "near": base + 1e-3, "anchor": anchor.features}
        played = {f"row {i}": row for i, row in enumerate(rows)}
        problem = corridor({**features, **played}, limit, anchor=(anchor.features, [0.1]))
        agent = sf.LsviNew(problem, P, replan_growth=1e9)
        tell(agent, *[[pair] for pair in zip(played, costs, strict=True)])
        agent.replan()
        with mpmath.workdps(50):
            for action, x in features.items():
                exact = _exact_from_rows(rows, costs, x, anchor, agent.cost_confidence.ridges, limit)
                upper = mpmath.mpf(float(bounds(agent, action)[0][0]))
                assert upper >= exact - mpmath.mpf(1e-12)
                assert upper <= exact + mpmath.mpf(1e-6)


def _exact_from_rows(
    rows: list[np.ndarray], costs: np.ndarray, x: np.ndarray, anchor: Anchor, ridges: tuple[float, ...], limit: sf.Limit
) -> Any:
    x0 = mpmath.matrix(anchor.features.tolist())
    size = (x0.T * x0)[0]

    def split(v: np.ndarray) -> tuple[Any, Any]:
        vector = mpmath.matrix(v.tolist())
        rho = (vector.T * x0)[0] / size
        return rho, vector - rho * x0

    d = len(x)
    G, b = mpmath.zeros(d), mpmath.zeros(d, 1)
    for row, c in zip(rows, costs, strict=True):
        rho, z = split(row)
        G, b = G + z * z.T, b + z * (mpmath.mpf(float(c)) - rho * mpmath.mpf(float(anchor.cost[0])))
    rho, z = split(x)
    each = [limit.norm * mpmath.sqrt((z.T * z)[0])]
    for ridge in ridges:
        A = G + mpmath.mpf(ridge) * mpmath.eye(d)
        ratio = mpmath.log(mpmath.det(A)) - d * mpmath.log(ridge)
        log_term = mpmath.log(2 * 1 * 2 * len(ridges) / mpmath.mpf(P))
        wide = limit.noise * mpmath.sqrt(ratio + 2 * log_term) + mpmath.sqrt(ridge) * limit.norm
        each.append((mpmath.lu_solve(A, b).T * z)[0] + wide * mpmath.sqrt((z.T * mpmath.lu_solve(A, z))[0]))
    return rho * mpmath.mpf(float(anchor.cost[0])) + min(each)


# ---------------------------------------------------------------- NaN and ∞ never certify


POISONS = [
    (array, bad)
    for array in ("gram", "gram_low", "targets", "targets_low", "spread")
    for bad in (math.nan, math.inf, -math.inf)
    if (array, bad) != ("spread", math.inf)  # an honest "anything may be off": the prior bound stays valid
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
            "spread": (agent.costs.spread, h),
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
        for prior in (False, True):
            confidence = replace(hand_confidence((1.0, 10.0), 5.0), prior=prior)
            with np.errstate(all="ignore"):
                known = cost_ellipsoids(turned(gram, target), 0.0, (LIMIT,), confidence)
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


@pytest.mark.parametrize(("apart", "possible"), [(0.0, True), (1e-12, True), (1e-7, False), (1e-4, False)])
def test_a_lower_bound_above_its_upper_is_a_contradiction_to_its_last_digits(apart: float, possible: bool) -> None:
    upper = np.array([[0.5, 0.5]])
    assert kernels.possible(upper, upper + np.array([[0.0, apart]]), np.full(2, CONTRADICTION)) == possible
