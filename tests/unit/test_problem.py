"""Declaring a problem by functions: every refusal names rule, place and value; what is accepted is what was said."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.labels import shown
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from tests.saved_problems import arrays_of

HEAT = Limit("heat", bound=0.6, noise=0.05, norm=1.0)
WEAR = Limit("wear", bound=0.5, noise=0.0, norm=2.0)


def declare(**changes: Any) -> Problem:
    """A furnace: 'idle' stays or cools, 'heat' stays or warms. Four layers, one start, one limit."""
    scale = ["cold", "warm", "hot"]

    def successors(h: int, s: str, a: str) -> list[str]:
        i = scale.index(s)
        return [s, scale[min(i + 1, 2)]][: 1 + (i < 2)] if a == "heat" else [s, "cold"][: 1 + (i > 0)]

    declared: dict[str, Any] = {
        "horizon": 4,
        "start": "cold",
        "actions": lambda h, s: ["idle", "heat"],
        "successors": successors,
        "reward": lambda h, s, a: 0.5 if a == "heat" else 0.0,
        "cost_features": lambda h, s, a, s2: [1.0, scale.index(s2) / 2],
        "fallback": lambda h, s: "idle",
        "limits": HEAT,
    }
    return Problem.from_functions(**(declared | changes))


def refused(*words: str, **changes: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        declare(**changes)
    for word in words:
        assert word in str(error.value)
    return error.value


def at(place: tuple[Any, ...], value: Any, otherwise: Any) -> Callable[..., Any]:
    """A function of (h, s, …) with another value at one place."""
    return lambda *asked: value if asked == place else otherwise


def only(**table: Any) -> Callable[..., Any]:
    return lambda s: table.get(s)


# --- the fallback -------------------------------------------------------------------------------------------


def test_a_fallback_that_leaks_is_refused_in_the_words_of_the_style_guide() -> None:
    error = refused(
        horizon=6,
        start="hot",
        successors=lambda h, s, a: ["hot", "melting"] if (h, a) == (3, "idle") else ["hot"],
        cost_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: None if s == "melting" else "idle",
    )
    assert str(error) == (
        "fallback is not closed: step 3, state 'hot': action 'idle' can reach 'melting', for which the fallback has no "
        "action. Give fallback an action there, or remove it from successors."
    )


@pytest.mark.parametrize("failure", [KeyError, IndexError, LookupError])
def test_a_fallback_table_without_an_entry_leaks_too(failure: type[Exception]) -> None:
    def fallback(h: int, s: str) -> str:
        if s == "warm":
            raise failure(s)
        return "heat"

    refused(
        "fallback is not closed: step 0, state 'cold': action 'heat' can reach 'warm', "
        "for which the fallback has no action",
        fallback=fallback,
    )


def test_a_fallback_without_a_first_action_is_missing() -> None:
    error = refused(fallback=lambda h, s: {}[h, s], start=["cold", "warm"])
    assert str(error).startswith(
        "fallback is missing: step 0, state 'cold': the fallback has no action in this start state"
    )
    refused("fallback is missing: step 0, state 'warm'", fallback=lambda h, s: only(cold="idle")(s), start=["warm"])


@pytest.mark.parametrize("action", ["melt", ["idle"], np.str_("idle"), np.array([1, 2])], ids=repr)
def test_a_fallback_with_an_action_that_does_not_exist_is_refused(action: Any) -> None:
    refused(
        "fallback's action does not exist: step 1, state 'cold'",
        f"fallback returns {action!r}. Actions there: 'idle', 'heat'.",
        fallback=at((1, "cold"), action, "idle"),
    )


def test_none_can_be_the_name_of_the_fallbacks_action() -> None:
    problem = declare(actions=lambda h, s: [None, "heat"], successors=lambda h, s, a: [s], fallback=lambda h, s: None)
    assert problem.graph.layers[0].fallback.tolist() == [0]


def test_what_is_empty_or_said_twice_is_refused() -> None:
    for nothing in ([], iter(())):
        refused(
            "empty support: step 1, state 'warm', action 'heat': no successors. Declare every state",
            successors=at((1, "warm", "heat"), nothing, ["warm"]),
        )
    refused("state without actions: step 2, state 'warm'. Every state", actions=at((2, "warm"), [], ["idle", "heat"]))
    refused("state without actions: step 2, state 'cold'", actions=lambda h, s: ["idle"] if h < 2 else [])
    refused(
        "duplicate successors: step 1, state 'cold', action 'heat': 'warm' is listed twice. List each",
        successors=at((1, "cold", "heat"), ["warm", "cold", "warm"], ["cold"]),
    )
    refused(
        "duplicate actions: step 0, state 'cold': ['idle', 'heat', 'idle']",
        actions=lambda h, s: ["idle", "heat", "idle"],
    )
    refused("a start state is listed twice: start: ['cold', 'warm', 'cold']", start=["cold", "warm", "cold"])
    refused("a problem needs a start state: start is an empty list", start=[])


# --- states, actions, successors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("ab", "'ab'. Put a single label into a list"),
        (b"ab", "b'ab'. Put a single label into a list"),
        (None, "None. Put a single label into a list"),
        (3, "3. Put a single label into a list"),
        (np.array("ab"), "array('ab', dtype='<U2'). Put a single label into a list"),
        ({"idle"}, "{'idle'}. A set has no order, and the order breaks ties: sort it into a list."),
        (frozenset({"idle"}), "frozenset({'idle'}). A set has no order"),
        ({"idle": 0.5}, "{'idle': 0.5}. Its values would be ignored: give a list of its keys."),
    ],
    ids=repr,
)
def test_what_is_not_a_list_is_refused(given: Any, words: str) -> None:
    refused(f"actions must return a list: step 0, state 'cold': {words}", actions=lambda h, s: given)
    refused(
        f"successors must return a list: step 1, state 'cold', action 'heat': {words}",
        successors=at((1, "cold", "heat"), given, ["cold"]),
    )


@pytest.mark.parametrize("kind", [tuple, iter, dict.fromkeys, lambda row: (a for a in row)])
def test_anything_in_order_is_a_list(kind: Callable[[list[str]], Any]) -> None:
    def ordered(row: list[str]) -> Any:
        given = kind(row)
        return given.keys() if isinstance(given, dict) else given

    problem = declare(
        actions=lambda h, s: ordered(["heat", "idle"]), successors=lambda h, s, a: ordered(["hot", "cold"])
    )
    assert problem.actions(0, "cold") == ("heat", "idle")
    assert problem.successors(0, "cold", "idle") == ("hot", "cold")


BAD_LABELS = [["x"], np.int64(1), math.nan]  # more of them: test_labels


@pytest.mark.parametrize("label", BAD_LABELS, ids=lambda label: type(label).__name__)
def test_labels_that_cannot_be_used_are_refused_by_place(label: Any) -> None:
    for bad in (label, ("deep", (label,))):
        refused("label cannot be used: start: ", "Use str, int, finite float", start=[bad, "cold"])
        refused("label cannot be used: step 0, state 'cold', action: ", actions=lambda h, s, bad=bad: ["idle", bad])
        refused(
            "label cannot be used: step 1, state 'cold', action 'heat', successor: ",
            successors=at((1, "cold", "heat"), [bad], ["cold"]),
        )


@pytest.mark.parametrize(("a", "b"), [(1, True), ((0.0,), (-0.0,))])
def test_labels_that_are_equal_but_differ_are_refused_by_place(a: Any, b: Any) -> None:
    def state(h: int) -> Any:
        return a if h < 2 else b

    plain: dict[str, Any] = {"start": [a], "cost_features": lambda *_: [1.0]}
    refused(
        f"state labels compare equal but differ: step 1, state {a!r}, action 'heat', successor: {b!r} and {a!r}. Use",
        **plain,
        successors=lambda h, s, act: [state(h + 1)] if act == "heat" else [a],
    )
    refused(f"state labels compare equal but differ: start: {b!r} and {a!r}", start=[a, b])
    refused(
        f"action labels compare equal but differ: step 2, state 'cold', action: {b!r} and {a!r}",
        actions=lambda h, s: [state(h)],
        successors=lambda h, s, _: [s],
    )
    # A state and an action are different things.
    declare(**plain, actions=lambda h, s: [b], successors=lambda h, s, _: [s], fallback=lambda h, s: b)


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
        "anchor must be (features, cost), (features, cost, tolerance), a list of such, or None",
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


# --- the user's functions -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["actions", "successors", "reward", "cost_features", "fallback"])
def test_what_is_needed_is_a_function(name: str) -> None:
    for nonsense in (None, ["idle"], {}):
        refused(f"{name} must be a function: {nonsense!r}", **{name: nonsense})


@pytest.mark.parametrize("name", ["transition_features", "terminal_reward", "terminal_cost_features", "anchor"])
def test_what_can_be_left_out_is_a_function_or_none(name: str) -> None:
    refused(f"{name} must be a function: [1.0]", **{name: [1.0]})
    assert declare(**{name: None}).horizon == 4


CALLS = {
    "actions": "actions(0, 'cold')",
    "successors": "successors(0, 'cold', 'idle')",
    "reward": "reward(0, 'cold', 'idle')",
    "cost_features": "cost_features(0, 'cold', 'idle', 'cold')",
    "transition_features": "transition_features(0, 'cold', 'idle', 'cold')",
    "terminal_reward": "terminal_reward('cold')",
    "terminal_cost_features": "terminal_cost_features('cold')",
    "fallback": "fallback(0, 'cold')",
    "anchor": "anchor(0)",
}


@pytest.mark.parametrize("failure", [ZeroDivisionError, StopIteration, UnknownLabel])
@pytest.mark.parametrize("name", CALLS)
def test_an_error_in_a_users_function_says_which_call_it_was(name: str, failure: type[Exception]) -> None:
    def fails(*_: Any) -> Any:
        raise failure("own words")

    if (name, failure) == ("fallback", UnknownLabel):
        return refused("fallback is missing", fallback=fails) and None  # a failed look-up: no action there
    with pytest.raises(failure, match="own words") as error:
        declare(**{name: fails})
    assert error.value.__notes__ == [f"surefoot was calling {CALLS[name]}"]
    return None


@pytest.mark.parametrize("name", ["actions", "successors"])
def test_a_generator_that_fails_says_so_too(name: str) -> None:
    def fails(*_: Any) -> Iterator[str]:
        yield "idle"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        declare(**{name: fails})
    assert error.value.__notes__ == [f"surefoot was calling {CALLS[name]}"]


def test_functions_are_called_for_each_thing_that_exists_and_for_nothing_else() -> None:
    asked: dict[str, list[Any]] = {}

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*key: Any) -> Any:
            asked.setdefault(name, []).append(key)
            return function(*key)

        return call

    problem = declare(
        actions=recorded("actions", lambda h, s: ["idle", "heat"] if s == "cold" else ["idle"]),
        successors=recorded("successors", lambda h, s, a: ["warm"] if a == "heat" else [s]),
        reward=recorded("reward", lambda h, s, a: 0.0),
        cost_features=recorded("cost_features", lambda *_: [1.0]),
        terminal_reward=recorded("terminal_reward", lambda s: 0.0),
        fallback=recorded("fallback", lambda h, s: "idle"),
        anchor=recorded("anchor", lambda h: None),
    )
    states = [(h, s) for h in range(4) for s in list(problem.states(h))]
    assert states == [(0, "cold")] + [(h, s) for h in (1, 2, 3) for s in ("cold", "warm")]
    assert asked["actions"] == states[:-2]
    pairs = [(h, s, a) for h, s in states[:-2] for a in problem.actions(h, s)]
    assert asked["successors"] == asked["reward"] == pairs * 2  # some, here all, once more: answers must not change
    assert [key[:3] for key in asked["cost_features"]] == pairs
    assert asked["terminal_reward"] == [("cold",), ("warm",)]
    assert asked["fallback"] == [(0, "cold"), (1, "cold"), (2, "cold")]  # only where it comes
    assert asked["anchor"] == [(0,), (1,), (2,)]  # the last layer has no cost to anchor


# --- reading it -----------------------------------------------------------------------------------------


def test_accessors_speak_in_labels() -> None:
    problem = declare()
    assert [list(problem.states(h)) for h in range(4)] == [["cold"], ["cold", "warm"]] + [["cold", "warm", "hot"]] * 2
    assert problem.successors(np.int64(1), "warm", "idle") == ("warm", "cold")  # type: ignore[arg-type]
    assert problem.fallback_action(2, "cold") == "idle"
    assert problem.fallback_action(1, "warm") is None
    assert problem.edge_index(1, "warm", "idle", "cold") == 4
    assert repr(problem) == "Problem(horizon=4, triplets=20, cost_dim=2, transition_dim=2, limits=[heat])"


def test_unknown_labels_are_refused_by_place() -> None:
    problem = declare()
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: problem.actions(1, "hot"), "no such state: step 1: 'hot'"),
        (lambda: problem.state_index(0, ["cold"]), "no such state: step 0: ['cold']"),
        (lambda: problem.state_index(0, np.array([1, 2])), "no such state: step 0: array([1, 2])"),
        (lambda: problem.pair_index(1, "cold", "melt"), "no such action: step 1, state 'cold': 'melt'"),
        (
            lambda: problem.pair_index(1, "cold", np.array([1, 2])),
            "no such action: step 1, state 'cold': array([1, 2])",
        ),
        (lambda: problem.successors(1, "warm", None), "no such action: step 1, state 'warm': None"),
        (lambda: problem.fallback_action(1, "hot"), "no such state: step 1: 'hot'"),
        (lambda: problem.edge_index(1, "warm", "idle", "nowhere"), "no such state: step 2: 'nowhere'"),
        (
            lambda: problem.edge_index(1, "warm", "idle", "hot"),
            "successor is outside the declared support: step 1, state 'warm', action 'idle': 'hot'",
        ),
        (lambda: problem.states(4), "no such step: 4, steps are 0 … 3"),
        (lambda: problem.states(-1), "no such step: -1, steps are 0 … 3"),
        (lambda: problem.states(True), "no such step: True, steps are 0 … 3"),
        (lambda: problem.states(1.0), "no such step: 1.0, steps are 0 … 3"),  # type: ignore[arg-type]
        (lambda: problem.actions(3, "cold"), "no such decision step: 3, steps are 0 … 2"),
        (lambda: problem.fallback_action(3, "cold"), "no such decision step: 3, steps are 0 … 2"),
        (lambda: problem.edge_index(3, "cold", "idle", "cold"), "no such decision step: 3, steps are 0 … 2"),
        (lambda: problem.successors(10**5000, "cold", "idle"), "no such decision step: <int that cannot be shown>"),
    ]
    for call, words in cases:
        with pytest.raises(UnknownLabel) as error:
            call()
        assert str(error.value).startswith(words)
        assert isinstance(error.value, LookupError)


def test_a_problem_cannot_be_changed() -> None:
    problem = declare(terminal_cost_features=lambda s: [1.0, 0.0], anchor=lambda h: ([1.0, 0.0], 0.1))
    graph = problem.graph
    parts: list[Any] = [problem, graph, graph.layers[0], graph.terminal, graph.anchors[0], problem.naming]
    for part in parts:
        for field in dataclasses.fields(part):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(part, field.name, None)
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
            part.something_new = 1
    with pytest.raises(AttributeError):
        problem.horizon = 3  # type: ignore[misc]
    for place, array in arrays_of(problem).items():
        assert array is not None
        assert array.base is None, place  # nothing writeable below it
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for mask in graph.reachable:
        with pytest.raises(ValueError, match="read-only"):
            mask[...] = False


def test_transition_features_are_the_cost_features_unless_given() -> None:
    graph = declare().graph
    assert graph.shared_features
    assert all(layer.transition_features is layer.cost_features for layer in graph.layers)
    own = declare(transition_features=lambda *_: [1.0, 2.0, 3.0]).graph
    assert not own.shared_features
    assert (own.cost_dim, own.transition_dim) == (2, 3)


def test_last_states_have_a_cost_where_it_is_declared() -> None:
    last = declare(terminal_cost_features=only(warm=[0.5, 0.25]), terminal_reward=lambda s: s == "hot").graph.terminal
    assert last.cost_features is not None
    assert last.cost_features.tolist() == [[0.0, 0.0], [0.5, 0.25], [0.0, 0.0]]
    assert last.has_cost.tolist() == [False, True, False]
    assert last.reward.tolist() == [0.0, 0.0, 1.0]
    assert declare(terminal_cost_features=lambda s: None).graph.terminal.cost_features is None
    assert declare().graph.terminal.reward.tolist() == [0.0, 0.0, 0.0]


def test_sizes_of_features_for_the_papers_constants() -> None:
    graph = declare(terminal_cost_features=only(hot=[3.0, 4.0])).graph
    assert graph.largest_cost_norm() == 5.0
    assert graph.largest_feature_distance() == 1.0
    assert graph.largest_feature_sum() == pytest.approx(math.sqrt(1.25) + math.sqrt(2.0))


def test_the_digest_does_not_depend_on_the_process() -> None:
    """Nor on how this process hashes its strings."""
    program = "from tests.unit.test_problem import declare; print(declare(start=['warm', 'cold']).digest)"
    other = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert other.strip() == declare(start=["warm", "cold"]).digest
