"""The paper's constants together: by hand, every argument counts, and what has no value says why."""

import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from surefoot import theory
from surefoot.errors import InvalidInput
from surefoot.theory import regret_theorem
from tests.unit.test_theory import close

# ---------------------------------------------------------------- together


TOGETHER: dict[str, Any] = {
    "horizon": 3,
    "episodes": 10**9,
    "bounds": (1.0, 2.0),
    "cost_norms": (0.5, 1.0),
    "noises": (0.25, 0.125),
    "transition_norm": 0.75,
    "anchor_costs": ((0.25, 0.5), (0.125, 1.0), (0.375, 0.25)),
    "largest_distance": 0.25,
    "dimension": 2,
    "feature_bound": 3.0,
    "failure_probability": 0.1,
    "ridge": 2.0,
    "lambda_0": 1.0,
    "b_beta": 0.125,
    "delta_tilde": 0.5,
    "union": True,
}


def together(**changes: Any) -> theory.PaperConstants:
    chosen = {**TOGETHER, **changes}
    episodes = chosen.pop("episodes")
    return theory.paper_constants(theory.Setting(**chosen), episodes)


def test_paper_constants_by_hand() -> None:
    c = together()
    T = 3 * 10**9
    assert c.total_steps == T
    # σ = ¼, L = max(½, 1, ¾) = 1, p/(mH) = 0.1/6
    beta_1 = 0.25 * math.sqrt(2 * math.log((2 + 2 * T * 9 / 2) / (0.1 / 6))) + math.sqrt(2)
    assert close(c.beta_1, beta_1)
    assert close(c.beta, max(beta_1, 0.125 * 2 * 3 * math.sqrt(math.log(2 * T / 0.1))))
    assert c.initial_episodes == math.ceil(4 * c.beta * 3 * math.sqrt(T) * math.log(20))
    assert close(c.kappa, 4 * c.beta * 3 / (2 + c.initial_episodes))
    assert c.delta_phi == (0.125, 0.25)
    # limit 0: 1 − c⁰ − ⅛ = ⅝, ¾, ½;  limit 1: 2 − c⁰ − ¼ = 1¼, ¾, 1½
    assert c.gaps == (0.625, 0.75)
    assert c.future_gaps == (0.5, 0.5)  # limit 0, from the terminal anchor
    assert c.epsilon_1 == c.beta + 1
    scale = 4 * c.beta * 3 / 0.5
    assert all(map(close, c.epsilon_2, (scale / (g - c.kappa) for g in c.gaps)))
    assert all(map(close, c.epsilon_3, (scale / (g - c.kappa) for g in c.future_gaps)))
    assert len(c.epsilon_2) == len(c.epsilon_3) == 2
    assert close(c.epsilon_4, 4 * c.beta * 3 / 0.625)
    assert c.problems() == []


def test_paper_constants_without_a_terminal_anchor() -> None:
    c = together(anchor_costs=TOGETHER["anchor_costs"][:2])
    assert c.gaps == (0.625, 0.75)
    assert c.future_gaps == (0.625, 0.75)


def test_paper_constants_take_the_worst_limit_of_each_kind() -> None:
    assert together(transition_norm=5.0).beta_1 > together().beta_1
    assert together(transition_norm=0.1).beta_1 == together().beta_1
    assert together(noises=(0.25, 0.2)).beta_1 == together().beta_1


def test_paper_constants_use_the_uncapped_initial_phase_in_kappa() -> None:
    c = together(episodes=10)
    assert c.initial_episodes > 10 == c.capped_initial_episodes
    assert close(c.kappa, 4 * c.beta * 3 / (2 + c.initial_episodes))
    warning = c.cap_warning()
    assert warning is not None
    assert f"{c.initial_episodes:,} episodes" in warning
    assert "has 10" in warning
    assert together().cap_warning() is None
    equal = dataclasses.replace(c, episodes=c.initial_episodes)
    assert equal.cap_warning() is not None  # not one episode is left to learn in
    assert dataclasses.replace(c, episodes=c.initial_episodes + 1).cap_warning() is None
    assert together().capped_initial_episodes == together().initial_episodes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("horizon", 4),
        ("episodes", 10**8),
        ("bounds", (1.1, 2.0)),
        ("cost_norms", (0.6, 1.0)),
        ("noises", (0.3, 0.125)),
        ("transition_norm", 1.5),
        ("anchor_costs", ((0.3, 0.5), (0.125, 1.0), (0.375, 0.25))),
        ("largest_distance", 0.3),
        ("dimension", 3),
        ("feature_bound", 3.5),
        ("failure_probability", 0.2),
        ("ridge", 2.5),
        ("lambda_0", 1.5),
        ("b_beta", 1.0),
        ("delta_tilde", 0.6),
        ("union", False),
    ],
)
def test_every_argument_of_paper_constants_matters(name: str, value: Any) -> None:
    def numbers(c: theory.PaperConstants) -> tuple[Any, ...]:
        epsilons = (c.epsilon_1, c.epsilon_2, c.epsilon_3, c.epsilon_4)
        return (c.beta_1, c.beta, c.initial_episodes, c.kappa, c.gaps, c.future_gaps, *epsilons)

    changes = {name: value}
    if name == "horizon":
        changes["anchor_costs"] = (*TOGETHER["anchor_costs"], (0.375, 0.25))
    assert numbers(together(**changes)) != numbers(together())


def test_the_wiring_list_is_complete() -> None:
    assert set(TOGETHER) == set(inspect.signature(theory.Setting).parameters) | {"episodes"}


def test_no_constant_has_a_default() -> None:
    functions = [f for _, f in inspect.getmembers(theory, inspect.isfunction)]
    public = [f for f in functions if f.__name__[0] != "_"]
    callables: list[Callable[..., Any]] = [*public, theory.PaperConstants, theory.Setting]
    assert len(public) >= 19
    for function in callables:
        for parameter in inspect.signature(function).parameters.values():
            assert parameter.default is parameter.empty, (function, parameter)


def test_paper_constants_report_instead_of_raising() -> None:
    # limit 0 keeps 1 − c⁰ − ½·1.25 = 0.125, 0.25 and, at the end, 0: every gap⁺ is 0
    c = together(largest_distance=1.25, anchor_costs=((0.25, 0.5), (0.125, 0.5), (0.375, 0.25)))
    assert c.gaps == (0.125, 0.25)
    assert c.future_gaps == (0.0, 0.0)
    reasons = c.problems()
    assert len(reasons) == 4
    assert all("gap⁺ = 0" in reason and "more slack" in reason for reason in reasons)
    assert [f"step {h}" in r for h, r in zip((0, 0, 1, 1), reasons, strict=True)] == [True] * 4
    with pytest.raises(InvalidInput, match=r"epsilon_2 needs gap⁺.*step 0"):
        _ = c.epsilon_2
    with pytest.raises(InvalidInput, match=r"epsilon_3 needs gap⁺.*step 0"):
        _ = c.epsilon_3
    with pytest.raises(InvalidInput, match="gap_0"):
        c.lower_bound()
    assert close(c.epsilon_4, 4 * c.beta * 3 / 0.125)  # needs the first gap only


def test_paper_constants_report_the_first_gap_for_epsilon_4() -> None:
    c = together(anchor_costs=((1.0, 0.5), (0.125, 0.5)))
    assert c.gaps[0] == -0.125
    assert [r for r in c.problems() if r.startswith("epsilon_4 needs gap_0")]
    with pytest.raises(InvalidInput, match="epsilon_4"):
        _ = c.epsilon_4
    late = together(anchor_costs=((0.25, 0.5), (0.875, 0.5)))
    with pytest.raises(InvalidInput, match=r"epsilon_2 needs gap = .*step 1: gap = 0\. Give"):
        dataclasses.replace(late, future_gaps=(0.5, 0.5)).epsilon_2  # noqa: B018


def test_paper_constants_report_a_large_kappa() -> None:
    c = together(lambda_0=1e-9, episodes=100)
    reasons = c.problems()
    assert len(reasons) == 4
    assert all("more episodes" in r and "kappa = " in r for r in reasons)


def test_paper_constants_regret_and_lower_bound() -> None:
    c = together()
    expected = theory.regret_bound(
        10**9,
        horizon=3,
        dimension=2,
        feature_bound=3.0,
        failure_probability=0.1,
        lambda_0=1.0,
        initial_episodes=c.initial_episodes,
        epsilon_1=c.epsilon_1,
        epsilon_2=c.epsilon_2,
        epsilon_3=c.epsilon_3,
        epsilon_4=c.epsilon_4,
    )
    assert c.regret_bound() == expected
    # c̄⁰_1 is the largest anchor cost of all layers: gap⁺ of layer 0, not its gap
    c = together(anchor_costs=((0.25, 0.5), (0.125, 0.5), (0.125, 1.5)), episodes=1)
    assert c.gaps[0] == 0.625
    assert c.future_gaps[0] == 0.25
    assert c.lower_bound() == theory.lower_bound(1, dimension=2, horizon=3, gap_0=0.25)
    assert c.lower_bound().value == c.lower_bound().safety_term
    first = together(anchor_costs=((0.5, 0.5), (0.25, 0.5)), episodes=1)
    assert first.future_gaps == (0.375, 0.625)
    assert first.lower_bound() == theory.lower_bound(1, dimension=2, horizon=3, gap_0=0.375)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"horizon": 1}, "horizon must be a whole number, at least 2"),
        ({"episodes": 0}, "episodes must be a whole number"),
        ({"episodes": 2.5}, r"episodes must be .*2\.5"),
        ({"bounds": ()}, "limits must be"),
        ({"bounds": (1.0, math.nan)}, "bound must be finite"),
        ({"cost_norms": (1.0,)}, r"cost_norms must have one entry per limit \(2\): has 1"),
        ({"cost_norms": (1.0, math.nan)}, "cost_norm must be at least 0"),
        ({"noises": (0.1, -0.1)}, "noise must be at least 0"),
        ({"transition_norm": math.nan}, "transition_norm"),
        ({"anchor_costs": ((0.1, 0.1), (0.1,))}, r"anchor_costs\[1\] must have"),
        ({"anchor_costs": ((0.1, 0.1),)}, "1 rows for horizon 3"),
        ({"anchor_costs": ((0.1, math.nan), (0.1, 0.1))}, "anchor_cost must be finite"),
        ({"largest_distance": -1.0}, "largest_distance"),
        ({"dimension": 0}, "dimension must be"),
        ({"feature_bound": 0.0}, "feature_bound must be above 0"),
        ({"failure_probability": 0.0}, r"failure_probability must be above 0: 0\.0"),
        # 5/(mH) = 0.83 would pass for a probability inside β₁
        ({"failure_probability": 5.0}, r"failure_probability must be below 1: 5\.0"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"lambda_0": 0.0}, "lambda_0 must be above 0"),
        ({"b_beta": math.nan}, "b_beta must be"),
        ({"delta_tilde": 0.0}, "delta_tilde must be above 0"),
    ],
)
def test_paper_constants_refuse_with_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        together(**changes)


# ---------------------------------------------------------------- how many episodes


def setting(**changes: Any) -> theory.Setting:
    chosen = {"horizon": 3, "feature_bound": 0.05, "failure_probability": 0.1, **changes}
    return theory.Setting(
        bounds=(1.0,),
        cost_norms=(1.0,),
        noises=(0.1,),
        transition_norm=0.5,
        anchor_costs=((0.1,),) * (chosen["horizon"] - 1),
        largest_distance=0.0,
        dimension=2,
        ridge=2.0,
        lambda_0=1.0,
        b_beta=0.1,
        delta_tilde=1.0,
        union=True,
        **chosen,
    )


def usable_from(**changes: Any) -> int | None:
    return theory.smallest_usable_episodes(setting(**changes))


def initial_phase(episodes: int, feature_bound: float, horizon: int) -> int:
    return theory.paper_constants(setting(feature_bound=feature_bound, horizon=horizon), episodes).initial_episodes


@pytest.mark.parametrize(("feature_bound", "horizon"), [(1e-6, 2), (0.01, 3), (0.05, 6), (0.2, 3), (0.7, 2)])
def test_thm_regret_smallest_usable_episodes_against_a_scan(feature_bound: float, horizon: int) -> None:
    found = usable_from(feature_bound=feature_bound, horizon=horizon)
    scan = (K for K in itertools.count(1) if initial_phase(K, feature_bound, horizon) <= K)
    assert found == next(scan)


def test_thm_regret_smallest_usable_episodes_is_a_boundary_far_out() -> None:
    found = usable_from(feature_bound=50.0)
    assert found is not None
    assert found > 10**6
    assert initial_phase(found, 50.0, 3) <= found
    assert initial_phase(found - 1, 50.0, 3) > found - 1


def test_thm_regret_smallest_usable_episodes_may_not_exist() -> None:
    assert usable_from(feature_bound=1e9) is None


def test_thm_regret_smallest_usable_episodes_stops_where_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert theory.MOST_EPISODES == 10**18
    found = usable_from()
    assert found is not None
    monkeypatch.setattr(regret_theorem, "MOST_EPISODES", found)
    assert usable_from() == found
    monkeypatch.setattr(regret_theorem, "MOST_EPISODES", found - 1)
    assert usable_from() is None
