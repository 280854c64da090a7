"""Each constant against a case worked out by hand; tests are named after the paper's labels."""

import itertools
import math
from typing import Any

import pytest

from surefoot import theory
from surefoot.errors import InvalidInput

E = math.e


def close(got: float, expected: float) -> bool:
    return math.isclose(got, expected, rel_tol=1e-12)


# ---------------------------------------------------------------- radii


RADIUS: dict[str, float] = {
    "log_det_ratio": 2.0,
    "noise": 3.0,
    "norm": 0.5,
    "ridge": 4.0,
    "log_inverse_probability": 1.0,
}


def radius(**changes: float) -> float:
    return theory.self_normalised_radius(**{**RADIUS, **changes})


def test_S3_radius_in_each_of_its_arguments() -> None:
    """σ√(ratio + 2 log(1/p)) + √λ·L, one argument at a time."""
    for x in (0.0, 0.01, 0.5, 7.0, 400.0):
        assert close(radius(noise=x), 2 * x + 1)
        assert close(radius(norm=x), 6 + 2 * x)
        assert close(radius(log_det_ratio=x), 3 * math.sqrt(x + 2) + 1)
        assert close(radius(log_inverse_probability=x), 3 * math.sqrt(2 + 2 * x) + 1)
        assert x == 0 or close(radius(ridge=x), 6 + 0.5 * math.sqrt(x))


def test_S3_rounding_below_zero_is_read_as_zero_and_more_is_refused() -> None:
    assert radius(log_det_ratio=-1e-13) == radius(log_det_ratio=0.0)
    with pytest.raises(InvalidInput, match=r"log_det_ratio .* at least 0: got -0\.5"):
        radius(log_det_ratio=-0.5)


@pytest.mark.parametrize("name", RADIUS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_S3_radius_fails_closed(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=name):
        radius(**{name: value})


def test_S3_spends_all_of_p_on_safety_and_S6_has_one_of_its_own() -> None:
    p, m, H, ridges = 0.1, 3, 7, 3
    cost = theory.cost_log_term(limits=m, regressions=H, n_ridges=ridges, failure_probability=p)
    assert close(m * H * ridges * math.exp(-cost), p)
    assert close(H * math.exp(-theory.value_log_term(H, p)), p)


def test_S6_radius_by_hand() -> None:
    got = theory.value_radius(5.0, value_range=6.0, transition_norm=2.0, ridge=0.25, log_inverse_probability=2.0)
    assert got == 3 * 3 + 0.5 * 2  # 6/2·√(5 + 2·2) + √¼·2


# ---------------------------------------------------------------- thm:regret, its parameters


@pytest.mark.parametrize(("beta_1", "expected"), [(5.0, 6.0), (7.0, 7.0)])
def test_thm_regret_beta_is_the_larger_of_two(beta_1: float, expected: float) -> None:
    got = theory.beta(  # ½·2·3·√log(e⁴) = 6
        beta_1=beta_1,
        b_beta=0.5,
        dimension=2,
        horizon=3,
        total_steps=10,
        failure_probability=20 / E**4,
    )
    assert close(got, expected)


# ---------------------------------------------------------------- slack and weights


def test_delta_phi_gap_and_future_gap() -> None:
    assert theory.delta_phi(2.0, 0.25) == 0.5
    assert theory.gap(bound=1.0, anchor_cost=0.25, delta_phi=0.5) == 0.25
    costs = (0.25, 0.375, 0.125)
    assert theory.future_gap(bound=1.0, anchor_costs_from_here=costs, delta_phi=0.5) == 0.125
    assert theory.future_gap(bound=1.0, anchor_costs_from_here=costs[2:], delta_phi=0.5) == 0.375
    assert theory.gap(bound=0.5, anchor_cost=0.25, delta_phi=1.0) == -0.75  # it may be negative


@pytest.mark.parametrize("costs", [(math.nan, 0.0), (0.0, math.nan), ()])
def test_future_gap_does_not_lose_a_nan(costs: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="anchor_cost"):
        theory.future_gap(bound=1.0, anchor_costs_from_here=costs, delta_phi=0.0)


EPSILON_2: dict[str, Any] = {
    "beta": 1.0,
    "horizon": 2,
    "delta_tilde": 0.5,
    "gap": 0.5,
    "future_gap": 0.25,
    "kappa": 0.25,
}
EPSILON_3: dict[str, Any] = {
    "beta": 1.0,
    "horizon": 2,
    "delta_tilde": 0.5,
    "future_gap": 0.25,
    "kappa": 0.125,
}


def test_eq_epss_ratio_cancels() -> None:
    """Spec 7.1: ε₂ = 4βH/(δ̃(gap − κ)), whatever gap⁺ is."""
    gaps, futures, kappas = (0.3, 0.7, 2.0), (0.01, 0.3, 0.65), (0.0, 0.1, 0.29)
    for gap, future_gap, kappa in itertools.product(gaps, futures, kappas):
        got = theory.epsilon_2(beta=1.7, horizon=5, delta_tilde=0.8, gap=gap, future_gap=future_gap, kappa=kappa)
        assert math.isclose(got, 4 * 1.7 * 5 / (0.8 * (gap - kappa)), rel_tol=1e-9)


def test_eq_epssss() -> None:
    assert theory.epsilon_4(beta=1.0, horizon=2, gap_0=0.25) == 32.0
    with pytest.raises(InvalidInput, match=r"epsilon_4 needs gap_0 = .*gap_0 = -1\. Give more"):
        theory.epsilon_4(beta=1.0, horizon=2, gap_0=-1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gap": -0.25}, r"epsilon_2 needs gap = .*gap = -0\.25\. Give more slack .* spread"),
        ({"future_gap": -0.5}, r"epsilon_2 needs gap⁺ = .*gap⁺ = -0\.5\. Give more slack"),
        # both negative: the denominator alone would be positive and the weight negative
        ({"future_gap": -0.5, "kappa": 0.75}, r"epsilon_2 needs gap⁺ = "),
        ({"kappa": 0.5}, r"gap > kappa.*gap = 0\.5, kappa = 0\.5, denominator = 0\..*episodes"),
        ({"kappa": math.nan}, "kappa must be at least 0"),
        ({"gap": math.nan}, "gap = nan"),
        ({"delta_tilde": 0.0}, "delta_tilde must be above 0"),
    ],
)
def test_eq_epss_refuses_with_words(changes: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        theory.epsilon_2(**{**EPSILON_2, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"future_gap": -0.5}, r"epsilon_3 needs gap⁺ = .*gap⁺ = -0\.5\. Give more slack"),
        ({"kappa": 0.25}, r"gap⁺ > kappa.*denominator = 0\. Run more episodes .* lambda_0"),
    ],
)
def test_eq_epsss_refuses_with_words(changes: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        theory.epsilon_3(**{**EPSILON_3, **changes})


# ---------------------------------------------------------------- regret


REGRET: dict[str, Any] = {
    "episodes": 4,
    "horizon": 2,
    "dimension": 3,
    "feature_bound": 3.0,
    "failure_probability": 0.75,
    "lambda_0": 0.5,
    "initial_episodes": 8,
    "epsilon_1": 1.0,
    "epsilon_2": (1.0, 4.0),
    "epsilon_3": (5.0, 1.0),
    "epsilon_4": 2.0,
}


def test_eq_regret() -> None:
    # T = 8, weights 1 + 2 + max(1 + 5, 4 + 1) = 9; √(2·3·2·8·log 9) = 8√(3·log 3);
    # 2·2·√(8·log(48/¾)) = 16√(3·log 2); H·K′ = 16; (3/½)(4/8 − 1) = −3.
    expected = 72 * math.sqrt(3 * math.log(3)) + 16 * math.sqrt(3 * math.log(2)) + 16 - 3
    assert close(theory.regret_bound(**REGRET), expected)


def test_eq_regret_adds_before_it_takes_the_maximum_over_layers() -> None:
    def at(epsilon_2: float) -> float:
        return theory.regret_bound(**{**REGRET, "epsilon_2": (1.0, epsilon_2)})

    assert at(4.0) == at(4.9)  # layer 0 still has the larger sum
    assert close(at(6.0) - at(4.0), 8 * math.sqrt(3 * math.log(3)))


@pytest.mark.parametrize("weights", [(), (1.0,), (1.0, math.nan), (1.0, -1.0)])
def test_eq_regret_refuses_bad_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        theory.regret_bound(**{**REGRET, "epsilon_2": weights})
    with pytest.raises(InvalidInput, match="one entry per decision step: 0 and 0"):
        theory.regret_bound(**{**REGRET, "epsilon_2": (), "epsilon_3": ()})


def test_eq_lowerbound() -> None:
    got = theory.lower_bound(8, dimension=1, horizon=2, gap_0=0.5)
    assert close(got.learning_term, 0.25)  # 2·√8/(16√2)
    assert close(got.safety_term, 1 / 3)  # (2/24)/¼
    assert got.value == got.safety_term
    assert not got.valid  # 8 < 32/3
    assert got.label == "claimed"
    with pytest.raises(InvalidInput, match=r"lower_bound needs gap_0"):
        theory.lower_bound(8, dimension=1, horizon=2, gap_0=0.0)


@pytest.mark.parametrize(("episodes", "valid"), [(7, False), (8, True), (9, True)])
def test_eq_lowerbound_holds_from_32_times_itself_on(episodes: int, valid: bool) -> None:
    got = theory.lower_bound(episodes, dimension=1, horizon=2, gap_0=1.0)
    assert got.value == got.learning_term
    assert got.valid is valid
