"""The monitor: when it raises an alarm, what that says, what it keeps and what it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.monitor.monitor import Monitor
from tests.monitored import ALPHA, chain, told

# --- the alarm ------------------------------------------------------------------------------------------


def drifting(seed: int) -> tuple[Problem, list[tuple[int, np.ndarray]]]:
    rng = np.random.default_rng(seed)
    features = rng.uniform(0, 1, (5, 2))
    problem = chain(features, Limit("c", bound=99.0, noise=0.1, norm=2.0), horizon=2)
    rows = []
    for t in range(400):
        e = int(rng.integers(5))
        rows.append((e, features[e] @ [0.5, 0.2 if t < 200 else 0.8] + 0.1 * rng.standard_normal(1)))
    return problem, rows


def test_alarm_is_raised_exactly_at_the_threshold(seed: int) -> None:
    """At the first time that the evidence reaches log(2/α), and not for an α a hair smaller."""
    problem, rows = drifting(seed)
    monitor, track = Monitor(problem, 1e-280), []
    for e, cost in rows:
        assert told(monitor, 0, e, *cost) is None
        track.append(monitor.log_evidence)
    records = [t for t in range(1, len(track)) if track[t] > max(track[:t]) and 3 < track[t] < 500]
    assert len(records) > 5
    for t in records[:: len(records) // 5]:
        for alpha, alarmed in ((2 * math.exp(-track[t] + 1e-9), True), (2 * math.exp(-track[t] - 1e-9), False)):
            again = Monitor(problem, alpha)
            raised = [told(again, 0, e, *cost) for e, cost in rows[: t + 1]]
            assert not any(raised[:-1])
            assert (raised[-1] is not None) == alarmed


@pytest.mark.parametrize("doubted", [1, 64])
def test_measurements_that_the_model_test_does_not_see_hold_nothing_up(doubted: int, seed: int) -> None:
    """After an override, where an episode shares an offset, also of the first measurement of all."""
    problem, rows = drifting(seed)
    monitor = Monitor(problem, ALPHA)
    for _, cost in rows[:doubted]:
        assert monitor.beyond(0, cost) is None
    assert any(told(monitor, 0, e, *cost) for e, cost in rows[doubted:])


def test_residual_alarm_says_what_where_and_since_when(seed: int) -> None:
    problem, rows = drifting(seed)
    monitor = Monitor(problem, ALPHA)
    alarm = next(found for e, cost in rows if (found := told(monitor, 0, e, *cost)))
    assert alarm.kind == "residual"
    assert "'c'" in alarm.message
    assert json.loads(json.dumps(alarm.details, allow_nan=False)) == alarm.details
    assert alarm.details["measurement"] == monitor.measurements > 200
    assert alarm.details["test"] in ("shift", "scatter")
    assert alarm.details["log_evidence"] >= alarm.details["log_threshold"] == math.log(2 / ALPHA)


def test_wild_noise_is_told_as_scatter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    monitor = Monitor(chain(np.ones((1, 1)), Limit("c", bound=99.0, noise=0.1, norm=1.0), horizon=2), ALPHA)
    alarm = None
    while alarm is None:
        alarm = told(monitor, 0, 0, 0.5 + 0.3 * rng.standard_normal())
    assert (alarm.kind, alarm.details["test"]) == ("residual", "scatter")
    assert alarm.details["scatter"] > 0.1
    assert alarm.details["since"] == 1
    assert alarm.details["rows"] == monitor.measurements
    assert "scatter by" in alarm.message
    assert "step" not in alarm.message


def test_a_layer_that_changed_alone_is_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = chain(np.ones((1, 1)), Limit("c", bound=99.0, noise=0.1, norm=1.0), horizon=5, stationary=False)
    monitor = Monitor(problem, ALPHA)
    for t in range(4000):
        noise = 0.3 if t >= 2000 and t % 4 == 2 else 0.1
        if alarm := told(monitor, t % 4, 0, 0.5 + noise * rng.standard_normal()):
            break
    assert alarm is not None
    assert 2000 < monitor.measurements < 2200
    assert alarm.details["step"] == 2
    assert "step 2" in alarm.message
    assert alarm.details["since"] > 1
    assert alarm.details["rows"] == sum(t % 4 == 2 for t in range(alarm.details["since"] - 1, monitor.measurements))
    assert alarm.details["test"] == "scatter"
    assert 0.1 < alarm.details["scatter"] < 0.5


def test_a_shift_is_told_as_one() -> None:
    """From 0.2 to 0.9 at measurement 65, where a window begins, without any scatter in either part."""
    monitor = Monitor(chain(np.ones((1, 1)), Limit("c", bound=99.0, noise=0.1, norm=1.0), horizon=2), 1e-9)
    raised = [told(monitor, 0, 0, 0.2 if t < 64 else 0.9) for t in range(128)]
    alarm = next(alarm for alarm in raised if alarm)
    assert (alarm.details["test"], alarm.details["since"], alarm.details["step"]) == ("shift", 65, None)
    assert "follow other costs than those before" in alarm.message
    assert "scatter" not in alarm.message
    assert "step" not in alarm.message  # all steps are one regression
    assert alarm.details["rows"] == alarm.details["measurement"] - 64


def test_a_parameter_longer_than_declared_is_noticed(seed: int) -> None:
    """γ = (1, 1, 1), of length 1.73, where 0.8 is declared: a fit exists, an admissible one does not."""
    rng = np.random.default_rng(seed)
    problem = chain(np.eye(3), Limit("c", bound=99.0, noise=0.1, norm=0.8), horizon=2)
    monitor = Monitor(problem, ALPHA)
    raised = [told(monitor, 0, t % 3, 1 + 0.1 * rng.standard_normal()) for t in range(60)]
    assert any(raised)


@pytest.mark.parametrize("noise", [0.1, 0.0])
def test_where_nothing_costs_anything_a_cost_is_noticed(noise: float) -> None:
    """All features are zero, so that no parameter explains anything."""
    monitor = Monitor(chain(np.zeros((1, 1)), Limit("c", bound=99.0, noise=noise, norm=1.0), horizon=2), ALPHA)
    assert not any(told(monitor, 0, 0, noise * (-1) ** t) for t in range(100))
    alarm = told(monitor, 0, 0, 1.0)
    assert alarm is not None
    assert alarm.kind == "residual"


@pytest.mark.parametrize("cost", [-1e200, -1e160, -1e308])
def test_what_overflows_counts_against_the_model(cost: float) -> None:
    for noise in (0.1, 0.0):
        monitor = Monitor(chain(np.ones((1, 1)), Limit("c", bound=99.0, noise=noise, norm=1.0), horizon=2), ALPHA)
        alarm = told(monitor, 0, 0, cost)
        assert alarm is not None
        assert alarm.kind == "residual"
        json.dumps(alarm.details, allow_nan=False)


# --- the limit ------------------------------------------------------------------------------------------


def test_limit_alarm_exactly_at_its_quantile() -> None:
    limits = [Limit("a", bound=0.5, noise=0.1, norm=50.0), Limit("b", bound=1.0, noise=0.2, norm=50.0)]
    problem = chain(np.ones((1, 1)), limits, horizon=2)
    for t in (1, 2, 7):
        for j, (a, b) in enumerate([(1.0, 0.0), (0.0, 1.0)]):
            q = math.sqrt(2 * math.log(math.pi**2 * t**2 * 2 / (6 * ALPHA / 2)))
            scale = limits[j].bound + limits[j].norm  # the one feature has length 1
            for beyond, alarmed in (((1e-9 - 1e-12) * scale, False), ((1e-9 + 1e-12) * scale, True)):
                monitor = Monitor(problem, ALPHA)
                for _ in range(t - 1):
                    assert told(monitor, 0, 0, 0.0, 0.0) is None
                level = limits[j].bound + limits[j].noise * q + beyond
                alarm = told(monitor, 0, 0, a * level, b * level)
                assert (alarm is not None and alarm.kind == "limit") == alarmed
                if alarm is not None and alarmed:
                    assert alarm.details["limit"] == limits[j].name
                    assert repr(limits[j].name) in alarm.message
                    json.dumps(alarm.details, allow_nan=False)


def test_beyond_is_the_limit_test_alone() -> None:
    """It counts, and never says a word of the model."""
    problem = chain(
        np.ones((1, 1)),
        [Limit("a", bound=0.5, noise=0.1, norm=1.0), Limit("b", bound=1.0, noise=0.2, norm=1.0)],
        horizon=2,
    )
    monitor = Monitor(problem, ALPHA)
    assert all(monitor.beyond(0, np.array([-50.0 * t, 0.9])) is None for t in range(6))
    assert (monitor.measurements, monitor.log_evidence) == (6, -math.inf)
    level = 1.0 + 0.2 * monitor.quantile(7)
    alarm = monitor.beyond(0, np.array([0.0, level + 0.01]))
    assert alarm is not None
    assert (alarm.kind, alarm.details["limit"], alarm.details["measurement"]) == ("limit", "b", 7)
    assert alarm.details["noise_needed"] == {"b": pytest.approx(0.2 + 0.01 / monitor.quantile(7), rel=1e-12)}
    again = monitor.beyond(0, np.array([50.0, 50.0]))
    assert again is not None
    assert again.details["limit"] == "a"
    assert list(again.details["noise_needed"]) == ["a", "b"]


@pytest.mark.parametrize(("shared", "beyond"), [(0.0, 2.0), (0.1, 2.0), (0.3, 3.0)])
def test_the_noise_that_would_explain_it_is_beside_what_an_episode_shares(shared: float, beyond: float) -> None:
    limit = Limit("a", bound=1.0, noise=0.1, norm=5.0, episode_noise=shared)
    monitor = Monitor(chain(np.ones((1, 1)), limit, horizon=2), ALPHA)
    alarm = monitor.beyond(0, np.array([1.0 + beyond]))
    assert alarm is not None
    needed = alarm.details["noise_needed"]["a"]
    assert math.hypot(needed, shared) * monitor.quantile(1) == pytest.approx(beyond)


def test_of_an_episode_with_an_offset_one_row_is_told_and_every_step_has_its_turn() -> None:
    limit = Limit("a", bound=1.0, noise=0.1, norm=5.0, episode_noise=0.1)
    for terminal, steps in ((None, 3), (np.ones((1, 1)), 4)):
        monitor = Monitor(chain(np.ones((1, 1)), limit, horizon=4, terminal=terminal), ALPHA)
        taken = [[h for h in range(steps) if monitor._in_model_test(h)] for _ in range(2 * steps)]
        assert [len(each) for each in taken] == [1] * 2 * steps
        assert sorted(each[0] for each in taken[:steps]) == list(range(steps))
        assert taken[:steps] == taken[steps:]


def test_quantiles_spend_half_the_level() -> None:
    """Σ_t m·exp(−q_t²/2) = α/2; the tail beyond T is below α/2·6/(π²T)."""
    problem = chain(np.ones((1, 1)), [Limit(name, bound=0.5, noise=0.1, norm=5.0) for name in "abc"], horizon=2)
    monitor, last = Monitor(problem, ALPHA), 20_000
    spent = math.fsum(3 * math.exp(-(monitor.quantile(t) ** 2) / 2) for t in range(1, last + 1))
    assert ALPHA / 2 * (1 - 6 / (math.pi**2 * last)) <= spent <= ALPHA / 2


def test_without_noise_the_limit_is_sharp() -> None:
    problem = chain(np.ones((1, 1)), Limit("c", bound=0.5, noise=0.0, norm=1.0), horizon=2)
    scale = 0.5 + 1.0  # bound, and norm × ‖x‖
    assert told(Monitor(problem, ALPHA), 0, 0, 0.5 + 0.9e-9 * scale) is None
    alarm = told(Monitor(problem, ALPHA), 0, 0, 0.5 + 1.1e-9 * scale)
    assert alarm is not None
    assert alarm.kind == "limit"


# --- no noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [1e-6, -1e-3, 0.5])
def test_an_inexact_measurement_without_noise_is_an_alarm_at_once(off: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (7, 3))
    monitor = Monitor(chain(features, Limit("c", bound=9.0, noise=0.0, norm=2.0), horizon=2), ALPHA)
    for t in range(700):
        assert told(monitor, 0, t % 7, float(features[t % 7] @ [0.1, 0.2, 0.3])) is None
    alarm = told(monitor, 0, 0, float(features[0] @ [0.1, 0.2, 0.3]) + off)
    assert alarm is not None
    assert (alarm.kind, alarm.details["test"]) == ("residual", "contradiction")
    json.dumps(alarm.details, allow_nan=False)


@pytest.mark.parametrize("noises", [(0.1, 0.0), (0.0, 0.1)])
def test_an_exact_limit_is_watched_beside_a_noisy_one(noises: tuple[float, float]) -> None:
    limits = [Limit(f"noise {noise}", bound=9.0, noise=noise, norm=2.0) for noise in noises]
    monitor = Monitor(chain(np.ones((1, 1)), limits, horizon=2), ALPHA)
    for _ in range(5):
        assert told(monitor, 0, 0, 0.3, 0.3) is None
    alarm = told(monitor, 0, 0, 0.301, 0.301)
    assert alarm is not None
    assert (alarm.details["limit"], alarm.details["test"]) == ("noise 0.0", "contradiction")


def test_without_noise_a_declared_model_error_is_allowed_and_a_larger_one_is_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size, alarmed in ((0.05, False), (0.2, True)):
        monitor = Monitor(
            chain(np.ones((1, 1)), Limit("c", bound=9.0, noise=0.0, norm=2.0, misspecification=0.05), horizon=2), ALPHA
        )
        raised = [told(monitor, 0, 0, 0.3 + size * rng.choice([-1.0, 1.0])) for _ in range(40)]
        assert any(raised) == alarmed


def test_without_noise_a_model_error_is_allowed_to_its_last_digits() -> None:
    """Two measurements ±δ about a mean: D = 2δ², and 2ζ² is allowed. A slack of 10⁻³ would let the last one pass."""
    for size, alarmed in ((1.0 - 1e-7, False), (1.0 + 1e-7, True), (1.0 + 5e-5, True)):
        monitor = Monitor(
            chain(np.ones((1, 1)), Limit("c", bound=9.0, noise=0.0, norm=2.0, misspecification=0.05), horizon=2), ALPHA
        )
        assert told(monitor, 0, 0, 0.3 + 0.05 * size) is None
        assert (told(monitor, 0, 0, 0.3 - 0.05 * size) is not None) == alarmed


@pytest.mark.parametrize("declared", [True, False])
def test_a_model_error_within_its_declaration_is_no_shift(seed: int, declared: bool) -> None:
    """The error changes its sign when the window begins: as far from each other as two fits may be, and no drift.

    Half of them change the other way; without its declaration every one is an alarm.
    """
    for k in range(10):
        rng = np.random.default_rng([seed, k])
        limit = Limit("c", bound=99.0, noise=0.05, norm=2.0, misspecification=0.05 if declared else 0.0)
        monitor = Monitor(chain(np.ones((1, 1)), limit, horizon=2), ALPHA)
        side = 1.0 if k % 2 else -1.0
        raised = [
            told(monitor, 0, 0, 0.3 + (side if t < 256 else -side) * 0.05 + 0.05 * rng.standard_normal())
            for t in range(512)
        ]
        found = [alarm.details["test"] for alarm in raised if alarm]
        assert found[:1] == ([] if declared else ["shift"])


# --- checkpoints and refusals ---------------------------------------------------------------------------


def test_restored_monitor_goes_on_bit_for_bit(seed: int) -> None:
    problem, rows = drifting(seed)
    whole = Monitor(problem, ALPHA)
    for cut in (0, 1, 31, 32, 33, 150):
        first, second = Monitor(problem, ALPHA), Monitor(problem, ALPHA)
        for e, cost in rows[:cut]:
            told(first, 0, e, *cost)
        saved = first.arrays()
        assert all(array.ndim in (1, 2) and array.dtype in (np.float64, np.int64) for array in saved.values())
        second.restore({name: array.copy() for name, array in saved.items()})
        for e, cost in rows[cut:]:
            assert told(first, 0, e, *cost) == told(second, 0, e, *cost)
        for name, array in first.arrays().items():
            assert array.tobytes() == second.arrays()[name].tobytes()
    for e, cost in rows:
        told(whole, 0, e, *cost)
    assert whole.log_evidence == second.log_evidence


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays.pop("rss"),
        lambda arrays: arrays.update(rss=arrays["rss"][:-1]),
        lambda arrays: arrays.update(rows=arrays["rows"].astype(float)),
        lambda arrays: arrays.update(measurements=np.array([1, 2])),
    ],
)
def test_state_that_does_not_fit_is_refused_and_changes_nothing(damage: Callable[[Any], Any], seed: int) -> None:
    problem, rows = drifting(seed)
    monitor = Monitor(problem, ALPHA)
    for e, cost in rows[:50]:
        told(monitor, 0, e, *cost)
    before, broken = monitor.arrays(), monitor.arrays()
    damage(broken)
    with pytest.raises(InvalidInput, match="does not fit"):
        monitor.restore(broken)
    assert all(array.tobytes() == before[name].tobytes() for name, array in monitor.arrays().items())


@pytest.mark.parametrize("noise", [0.1, 0.0])
@pytest.mark.parametrize("name", ["spread", "rss", "squares", "size", "fitted"])
def test_a_sum_that_is_no_number_counts_against_the_model(name: str, noise: float) -> None:
    """Whatever made it so: a NaN is neither larger nor smaller than a threshold, and must not pass for smaller."""
    problem = chain(np.ones((2, 1)), Limit("c", bound=9.0, noise=noise, norm=1.0), horizon=2)
    monitor = Monitor(problem, ALPHA)
    assert told(monitor, 0, 0, 0.5) is None
    monitor.restore({**monitor.arrays(), name: np.full_like(monitor.arrays()[name], np.nan)})
    alarm = told(monitor, 0, 1, 0.5)
    assert alarm is not None
    assert alarm.kind == "residual"
    assert json.loads(json.dumps(alarm.details, allow_nan=False)) == alarm.details


@pytest.mark.parametrize("cost", [[math.nan], [math.inf], [0.1, 0.2], []])
def test_a_cost_that_is_none_is_refused_and_changes_nothing(cost: list[float]) -> None:
    monitor = Monitor(chain(np.ones((1, 1)), Limit("c", bound=9.0, noise=0.1, norm=1.0), horizon=2), ALPHA)
    with pytest.raises(InvalidInput, match="finite"):
        told(monitor, 0, 0, *cost)
    assert monitor.measurements == 0


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, math.nan])
def test_level_must_be_a_probability(level: float) -> None:
    with pytest.raises(InvalidInput, match="false_alarm"):
        Monitor(chain(np.ones((1, 1)), Limit("c", bound=9.0, noise=0.1, norm=1.0), horizon=2), level)
