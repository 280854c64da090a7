"""Numbers of a declaration by functions: rewards, features, anchors, limits; what is refused, by rule and place."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput
from surefoot.model.labels import shown
from surefoot.model.limit import Limit
from tests.unit.test_problem import HEAT, WEAR, at, declare, only, refused

# --- numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [1.5, -0.25, math.nan, math.inf, np.float64(1.0000001), 2], ids=repr)
def test_rewards_lie_between_zero_and_one(reward: Any) -> None:
    value = repr(float(reward))
    error = refused(
        f"reward is outside [0, 1]: step 2, state 'warm', action 'heat': {value}. Rescale",
        reward=at((2, "warm", "heat"), reward, 0.5),
    )
    assert error.got == value
    refused(
        f"reward is outside [0, 1]: step 3, state 'warm': {value}", terminal_reward=lambda s: only(warm=reward)(s) or 0
    )


NOT_NUMBERS = ["0.5", None, 1j, np.array([0.5]), {0.5}, 10**5000, np.datetime64("NaT")]


@pytest.mark.parametrize("reward", NOT_NUMBERS, ids=shown)
def test_rewards_are_numbers(reward: Any) -> None:
    refused(
        "reward must be a number: step 2, state 'warm', action 'heat': ",
        reward=at((2, "warm", "heat"), reward, 0.5),
    )
    refused("terminal reward must be a number: step 3, state 'cold': ", terminal_reward=lambda s: reward)


@pytest.mark.parametrize(
    "one", [1, 1.0, True, np.float64(1), np.float32(1), np.bool_(1), np.array(1), Fraction(1), Decimal(1)]
)
def test_numbers_of_every_make_are_rewards_and_features(one: Any) -> None:
    problem = declare(reward=lambda *_: one, terminal_reward=lambda s: one, cost_features=lambda *_: [one, 0.5])
    layer = problem.graph.layers[1]
    assert layer.reward.tolist() == [1.0] * 4
    assert layer.cost_features[0].tolist() == [1.0, 0.5]
    assert problem.graph.terminal.reward.tolist() == [1.0] * 3
    assert layer.reward.dtype == layer.cost_features.dtype == np.float64


PLACE = (1, "warm", "heat", "hot")
WHERE = "step 1, state 'warm', action 'heat', successor 'hot'"
FEATURES: list[tuple[Any, str]] = [
    ([1.0], "has the wrong length: {}: 1 numbers where 2 are expected: [1.0]"),
    ([1.0, 2.0, 3.0], "has the wrong length: {}: 3 numbers where 2 are expected: [1.0, 2.0, 3.0]"),
    ([1.0, math.nan], "is not finite: {}: [1.0, nan]"),
    ([-math.inf, 0.0], "is not finite: {}: [-inf, 0.0]"),
    ([], "must be a list of numbers: {}: []"),
    (["1", "2"], "must be a list of numbers: {}: ['1', '2']"),
    ([Fraction(1), "2"], "must be a list of numbers: {}: [Fraction(1, 1), '2']"),
    ([1.0, None], "must be a list of numbers: {}: [1.0, None]"),
    (np.array([1, 1j]), "must be a list of numbers: {}: array([1.+0.j, 0.+1.j])"),
    ([[1.0], [2.0, 3.0]], "must be a list of numbers: {}: [[1.0], [2.0, 3.0]]"),
    ({1.0, 2.0}, "must be a list of numbers: {}: {{1.0, 2.0}}"),
    ({0: 1.0}, "must be a list of numbers: {}: {{0: 1.0}}"),
    ([1.0, 10**5000], "must be a list of numbers: {}: <list that cannot be shown>"),
]


@pytest.mark.parametrize(
    ("horizon", "words"),
    [
        (1, "horizon is below 2: 1. The last step takes no action"),
        (np.int64(-3), "horizon is below 2: "),
        (3.0, "horizon must be a whole number: 3.0"),
        (True, "horizon must be a whole number: True"),
        ("3", "horizon must be a whole number: '3'"),
        (1_000_001, "horizon is above 1000000: 1000001"),
        (10**5000, "horizon is above 1000000: <int that cannot be shown>"),
    ],
    ids=shown,
)
def test_a_horizon_is_a_whole_number_of_two_or_more(horizon: Any, words: str) -> None:
    refused(words, horizon=horizon)


@pytest.mark.parametrize(("features", "words"), FEATURES, ids=[str(i) for i in range(len(FEATURES))])
def test_features_are_finite_and_all_of_one_length(features: Any, words: str) -> None:
    refused("cost feature " + words.format(WHERE), cost_features=at(PLACE, features, [1.0, 0.0]))
    refused(
        "transition feature " + words.format(WHERE),
        transition_features=at(PLACE, features, [1.0, 0.0]),
        cost_features=lambda *_: [1.0, 0.0, 0.0],
    )
    refused(
        "terminal cost feature " + words.format("step 3, state 'warm'"),
        terminal_cost_features=lambda s: features if s == "warm" else [1.0, 0.0],
    )


def test_a_vector_that_the_user_fills_again_and_again_is_copied_each_time() -> None:
    buffer = np.zeros(2)

    def fill(*key: Any) -> np.ndarray[Any, Any]:
        buffer[:] = len(str(key)), 1.0
        return buffer

    problem = declare(
        cost_features=fill,
        transition_features=fill,
        terminal_cost_features=fill,
        anchor=lambda h: (fill(h), buffer[1:] * 0.1 * (h + 1)),
    )
    fresh = declare(
        cost_features=lambda *key: [len(str(key)), 1.0],
        transition_features=lambda *key: [len(str(key)), 1.0],
        terminal_cost_features=lambda *key: [len(str(key)), 1.0],
        anchor=lambda h: ([len(str((h,))), 1.0], 0.1 * (h + 1)),
    )
    assert problem.digest == fresh.digest


# --- anchors --------------------------------------------------------------------------------------------


def anchored(*words: str, features: Any = (1.0, 0.0), cost: Any = 0.25, **changes: Any) -> None:
    refused(*words, anchor=lambda h: (features, cost) if h == 1 else None, **changes)


def test_an_anchors_feature_is_a_vector_to_divide_by() -> None:
    anchored("anchor feature is zero: anchor of step 1: [0.0, 0.0]", features=[0.0, 0.0], cost=0.0)
    anchored("anchor feature is too small: anchor of step 1: [1e-170, 0.0]", features=[1e-170, 0.0], cost=0.0)
    anchored("anchor feature is too large: anchor of step 1: [1e+200, 0.0]", features=[1e200, 0.0])
    anchored("anchor feature has the wrong length: anchor of step 1: 1 numbers where 2 are expected", features=[1.0])
    anchored("anchor feature is not finite: anchor of step 1: [1.0, nan]", features=[1.0, math.nan])
    for nonsense in ("ab", 1.0, None, [["x"]]):
        anchored(f"anchor feature must be a list of numbers: anchor of step 1: {nonsense!r}", features=nonsense)


def test_an_anchors_cost_is_below_the_bound_and_possible() -> None:
    words = "anchor cost is not below the bound: anchor of step 1, limit 'heat': cost {}, bound 0.6"
    anchored(words.format(0.6), cost=0.6)
    anchored(words.format(0.75), cost=[0.75])
    anchored(
        "anchor cost is impossible under the norm bound: anchor of step 1, limit 'heat'",
        "|-1.5| > norm 1.0 × ‖feature‖ 1.0. Raise the limit's norm, or correct the anchor.",
        cost=-1.5,
    )
    anchored(
        "anchor cost is not below the bound: anchor of step 1, limit 'wear': cost 0.5, bound 0.5",
        cost=[0.25, 0.5],
        limits=[HEAT, WEAR],
    )
    loose = dataclasses.replace(HEAT, misspecification=0.5)
    assert declare(limits=loose, anchor=lambda h: ([1.0, 0.0], -1.5)).graph.anchors[0] is not None


def test_a_tiny_anchor_gets_no_room_to_lie() -> None:
    # Its cost is divided by its length: an absolute tolerance here would shift every known cost.
    anchored("anchor cost is impossible", features=[1e-13, 0.0], cost=-9e-13)
    assert declare(anchor=lambda h: ([1e-13, 0.0], -1e-13)).graph.anchors[0] is not None


def test_an_anchor_costs_a_number_per_limit() -> None:
    anchored("anchor cost has the wrong length: anchor of step 1: 2 numbers where 1 are expected", cost=[0.1, 0.1])
    anchored("anchor cost has the wrong length: anchor of step 1: 1 numbers where 2", cost=0.1, limits=[HEAT, WEAR])
    anchored("anchor cost is not finite: anchor of step 1: [nan]", cost=math.nan)
    for nonsense in ("0.1", None, [[0.1]], [], 1j):
        anchored(f"anchor cost must be a list of numbers: anchor of step 1: {nonsense!r}", cost=nonsense)
    for same in (0.25, [0.25], np.array(0.25), np.array([0.25]), np.float32(0.25), (Fraction(1, 4),)):
        anchor = declare(anchor=lambda h, same=same: ([1.0, 0.0], same)).graph.anchors[2]
        assert anchor is not None
        assert anchor.cost.tolist() == [[0.25]]


@pytest.mark.parametrize("given", [1.0, "abc", ([1.0, 0.0],), ([1.0, 0.0], 0.1, 0.2, 0.3)], ids=repr)
def test_an_anchor_is_a_pair(given: Any) -> None:
    refused(
        "anchor must be (features, cost), (features, cost, tolerance), a list of these, or None",
        f"anchor of step 2: {given!r}",
        anchor=lambda h: [None, None, given][h],
    )


def test_stationary_costs_have_one_anchor() -> None:
    words = "anchors differ although costs are stationary: steps 0 and 2: "
    same = ([1.0, 0.0], 0.25)
    for other, told in ((([1.0, 0.0], 0.125), "([1.0, 0.0], [0.125])"), (([1.0, 0.5], 0.25), "([1.0, 0.5], [0.25])")):
        refused(
            words + "([1.0, 0.0], [0.25]) and " + told,
            "Stationary costs share one regression",
            anchor=lambda h, other=other: other if h == 2 else same,
            stationary_costs=True,
        )
    refused(words + "([1.0, 0.0], [0.25]) and none", anchor=lambda h: same if h != 2 else None, stationary_costs=True)
    refused(words + "none and ([1.0, 0.0], [0.25])", anchor=lambda h: same if h == 2 else None, stationary_costs=True)
    # The last layer counts when it has a cost, and only then.
    late: dict[str, Any] = {"anchor": lambda h: same if h < 3 else None, "stationary_costs": True}
    assert declare(**late).graph.anchors[3] is None
    refused("steps 0 and 3", **late, terminal_cost_features=lambda s: [1.0, 0.0])
    assert declare(**late | {"stationary_costs": False}, terminal_cost_features=lambda s: [1.0, 0.0]).horizon == 4


# --- limits and constants -------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["bound", "noise", "norm", "misspecification"])
def test_a_limits_numbers_are_numbers(field: str) -> None:
    def limit(value: Any) -> Limit:
        return Limit(**({"name": "heat", "bound": 0.6, "noise": 0.1, "norm": 1.0} | {field: value}))

    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(InvalidInput, match=f"{field} is not finite: limit 'heat': {value}"):
            limit(value)
    also = {"bound": [0.5], "norm": None}  # a bound by step, and nothing known of the size, have rules of their own
    for value in ("0.5", b"1", None, True, np.bool_(False), [0.5], 1j, 10**5000):
        if field in also and value == also[field]:
            continue
        with pytest.raises(InvalidInput, match=f"{field} must be a number: limit 'heat': "):
            limit(value)
    if field == "bound":
        assert limit(-1).bound == -1.0
    else:
        with pytest.raises(InvalidInput, match=f"{field} is negative: limit 'heat': -0.5"):
            limit(-0.5)
        assert getattr(limit(0), field) == 0.0
    assert type(getattr(limit(np.float32(0.5)), field)) is float


@pytest.mark.parametrize("name", ["", None, 3, np.str_("x"), b"x"], ids=repr)
def test_a_limit_needs_a_name(name: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        Limit(name, bound=0.6, noise=0.1, norm=1.0)
    assert str(error.value) == f"a limit needs a name: {name!r}. Give it a word."


def test_a_limit_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        HEAT.bound = 1.0  # type: ignore[misc]


def test_a_problem_needs_limits_with_names_of_their_own() -> None:
    refused("two limits share a name: 'heat'", limits=[HEAT, WEAR, dataclasses.replace(HEAT, bound=1.0)])
    for empty in ([], ()):
        refused("a problem needs a limit: limits is empty. Give at least one Limit.", limits=empty)
    refused("limits must be Limit objects: 0.6", limits=[HEAT, 0.6])
    refused("limits must be Limit objects: ('heat', 0.6)", limits=[("heat", 0.6)])
    for other in (None, 0.6, "heat", {"heat": HEAT}, {HEAT}, iter([HEAT])):
        refused("limits must be a Limit or a list of them: ", limits=other)


def test_one_limit_or_a_list_of_one_is_the_same() -> None:
    assert declare(limits=HEAT).limits == declare(limits=[HEAT]).limits == declare(limits=(HEAT,)).limits == (HEAT,)


def test_a_horizon_of_two_has_one_decision() -> None:
    problem = declare(horizon=np.int64(2))
    assert type(problem.horizon) is int
    assert (problem.horizon, len(problem.graph.layers), list(problem.states(1))) == (2, 1, ["cold", "warm"])


def test_the_transition_norm_is_positive() -> None:
    for value in (0, 0.0, -1.0):
        refused(f"transition_norm must be positive: {float(value)!r}", transition_norm=value)
    for value in (math.nan, math.inf):
        refused(f"transition_norm is not finite: {value!r}", transition_norm=value)
    for nonsense in ("1", None, True, [1.0]):
        refused(f"transition_norm must be a number: {nonsense!r}", transition_norm=nonsense)


@pytest.mark.parametrize("name", ["stationary_costs", "stationary_transitions"])
def test_flags_are_true_or_false(name: str) -> None:
    for nonsense in ("no", None, 0, [1]):
        refused(f"{name} must be True or False: {nonsense!r}", **{name: nonsense})
    assert getattr(declare(**{name: np.bool_(True)}), name) is True
