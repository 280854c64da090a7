"""Declaring a problem by functions: every refusal names rule, place and value; what is accepted is what was said."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput, UnknownLabel
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
