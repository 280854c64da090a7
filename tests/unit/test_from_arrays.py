"""Declaring a problem by arrays: taken as they are, refused by name and layer, the same graph as by functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem

N = 4  # states on a line; action 0 stays, action 1 may also step to the right
LIMIT = Limit("level", bound=0.5, noise=0.1, norm=1.0)


def line() -> dict[str, Any]:
    """One template for all layers; fresh arrays, because a problem freezes them."""
    support = [[i] if a == 0 or i == N - 1 else [i, i + 1] for i in range(N) for a in (0, 1)]
    edges = sum(map(len, support))
    return {
        "horizon": 4,
        "start": 1,
        "state_ptr": np.arange(0, 2 * N + 1, 2),
        "pair_ptr": np.cumsum([0, *map(len, support)]),
        "successors": np.concatenate(support).astype(np.int32),
        "reward": np.linspace(0, 1, 2 * N),
        "cost_features": np.linspace(-1, 1, 2 * edges).reshape(edges, 2),
        "fallback": np.zeros(N, np.int64),
        "limits": LIMIT,
    }


def build(**changes: Any) -> Problem:
    return Problem.from_arrays(**(line() | changes))


def refused(*words: str, **changes: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        build(**changes)
    for word in words:
        assert word in str(error.value)
    return error.value


def with_entry(name: str, index: Any, value: Any) -> dict[str, Any]:
    array = line()[name]
    array[index] = value
    return {name: array}


def layers_with(name: str, h: int, array: Any) -> dict[str, Any]:
    """The template in a list, with another array in one layer."""
    own = line()[name]
    return {name: [array if layer == h else own for layer in range(3)]}


# --- of the right kind ----------------------------------------------------------------------------------


def spaced(name: str) -> dict[str, Any]:
    return {name: np.repeat(line()[name], 2, axis=0)[::2]}


def of_dtype(name: str, dtype: Any) -> dict[str, Any]:
    return {name: line()[name].astype(dtype)}


EDGES = len(line()["successors"])
POINTER = "must run from 0 to the number of "
# Each rule, and each array at least once; by name and, where it is not in all layers, by step.
REFUSED: list[tuple[str, dict[str, Any]]] = [
    # --- of the right kind
    ("state_ptr has the wrong dtype: step 0: int32 where int64 is expected", of_dtype("state_ptr", np.int32)),
    (
        "pair_ptr has the wrong dtype: step 2: uint64 where int64 is expected",
        layers_with("pair_ptr", 2, line()["pair_ptr"].astype(np.uint64)),
    ),
    ("successors has the wrong dtype: step 0: int16 where int32 or int64", of_dtype("successors", np.int16)),
    ("reward has the wrong dtype: step 0: float32 where float64", of_dtype("reward", np.float32)),
    ("reward has the wrong dtype: step 0: >f8 where float64", of_dtype("reward", ">f8")),
    ("cost_features has the wrong dtype: step 0: float16 where float32 or", of_dtype("cost_features", np.float16)),
    ("cost_features has the wrong dtype: step 0: object where", of_dtype("cost_features", object)),
    ("fallback has the wrong dtype: step 0: int32 where int64", of_dtype("fallback", np.int32)),
    (
        "transition_features has the wrong dtype: step 0: float16",
        {"transition_features": np.ones((EDGES, 1), np.float16)},
    ),
    ("terminal_reward has the wrong dtype: float32 where float64", {"terminal_reward": np.ones(N, np.float32)}),
    ("terminal_cost_features has the wrong dtype: int64", {"terminal_cost_features": np.ones((N, 2), int)}),
    (
        "terminal_has_cost has the wrong dtype: int64 where bool",
        {"terminal_cost_features": np.ones((N, 2)), "terminal_has_cost": np.ones(N, int)},
    ),
    ("reward has the wrong shape: step 0: (8, 1), 2 axes where 1 are expected", {"reward": line()["reward"][:, None]}),
    (
        f"cost_features has the wrong shape: step 0: ({EDGES},), 1 axes where 2 are expected",
        {"cost_features": line()["cost_features"][:, 0].copy()},
    ),
    ("successors is not C-contiguous: step 0. Pass np.ascontiguousarray", spaced("successors")),
    ("fallback is not C-contiguous: step 0", spaced("fallback")),
    (
        "cost_features is not C-contiguous: step 0",
        {"cost_features": np.asfortranarray(line()["cost_features"])},
    ),
    (
        "terminal_cost_features is not C-contiguous. Pass",
        {"terminal_cost_features": np.asfortranarray(np.ones((N, 2)))},
    ),
    ("pair_ptr must be a numpy array: step 0: a list", {"pair_ptr": [line()["pair_ptr"].tolist()] * 3}),
    ("reward must be a numpy array: step 0: a MaskedArray", {"reward": np.ma.masked_array(line()["reward"])}),
    ("fallback must be a numpy array or a list of them: a ", {"fallback": None}),
    ("state_ptr must be a numpy array or a list of them: a ", {"state_ptr": {0: line()["state_ptr"]}}),
    ("terminal_reward must be a numpy array: a list", {"terminal_reward": [0.0] * N}),
    # --- one for every decision
    ("reward has the wrong number of steps: 2 arrays where horizon - 1 = 3", {"reward": [line()["reward"]] * 2}),
    (
        "transition_features has the wrong number of steps: 4 arrays where",
        {"transition_features": [line()["cost_features"]] * 4},
    ),
    ("fallback has the wrong number of steps: 0 arrays where", {"fallback": []}),
    # --- structure
    (f"state_ptr {POINTER}pairs (len(pair_ptr) - 1): step 0: 1 … 8 where 0 … 8 is", with_entry("state_ptr", 0, 1)),
    (f"pair_ptr {POINTER}", with_entry("pair_ptr", 0, -1)),
    ("step 0: 0 … 7 where 0 … 8 is expected", with_entry("state_ptr", -1, 7)),
    (
        f"step 1: 0 … {EDGES + 1} where 0 … {EDGES} is expected",
        layers_with("pair_ptr", 1, with_entry("pair_ptr", -1, EDGES + 1)["pair_ptr"]),
    ),
    ("state_ptr decreases: step 0, entry 2: 0 after ", with_entry("state_ptr", 2, 0)),
    ("pair_ptr decreases: step 0, entry 3: ", with_entry("pair_ptr", 2, 2**63 - 1)),  # no difference overflows
    ("an empty array where 0 …", {"state_ptr": np.empty(0, np.int64)}),
    ("0 … 0 where 0 …", {"pair_ptr": np.zeros(1, np.int64)}),
    ("state without actions: step 0, state 2", with_entry("state_ptr", 3, 4)),
    ("empty support: step 0, state 0, action 1: no successors", with_entry("pair_ptr", 2, 1)),
    (
        "empty support: step 2, state 0, action 1",
        layers_with("pair_ptr", 2, with_entry("pair_ptr", 2, 1)["pair_ptr"]),
    ),
    ("reward has the wrong shape: step 0: (7,) where one row per pair (8)", {"reward": np.zeros(7)}),
    (
        f"transition_features has the wrong shape: step 0: ({EDGES + 1}, 2) where one row per triplet ({EDGES})",
        {"transition_features": np.zeros((EDGES + 1, 2))},
    ),
    (
        "cost_features has the wrong length: step 2: 1 columns where 2 are expected",
        {"cost_features": [np.zeros((EDGES, 2)), np.zeros((EDGES, 2)), np.zeros((EDGES, 1))]},
    ),
    (
        "cost_features has the wrong length: step 0: 0 columns where one or more are expected",
        {"cost_features": np.zeros((EDGES, 0))},
    ),
    *(
        (
            f"successor does not exist: step 0, state 0, action 1: index {wrong}, but step 1 has {N} states",
            with_entry("successors", 2, wrong),
        )
        for wrong in (N, -1, 2**31 - 1, -(2**31))
    ),
    (
        f"successor does not exist: step 2, state 0, action 1: index {N}, but step 3 has {N} states",
        layers_with("successors", 2, with_entry("successors", 2, N)["successors"]) | {"terminal_reward": np.zeros(N)},
    ),
    ("duplicate successors: step 0, state 0, action 1: 0 is listed twice", with_entry("successors", 2, 0)),
]


@pytest.mark.parametrize(("words", "changes"), REFUSED, ids=[words[:50] for words, _ in REFUSED])
def test_what_is_refused(words: str, changes: dict[str, Any]) -> None:
    refused(words, **changes)


def test_all_layers_store_features_alike() -> None:
    narrow = layers_with("cost_features", 2, line()["cost_features"].astype(np.float32))
    error = refused("cost_features has different dtypes: steps 0 and 2: float64 and float32", **narrow)
    assert "one dtype" in error.fix
    wide = layers_with("cost_features", 1, line()["cost_features"])["cost_features"]
    mixed = [np.ones((len(wide[0]), 1), np.float32), np.ones((len(wide[0]), 1)), np.ones((len(wide[0]), 1))]
    refused("transition_features has different dtypes: steps 0 and 1: float32 and float64", transition_features=mixed)


def test_successors_of_both_widths_give_the_same_problem() -> None:
    wide = build(successors=line()["successors"].astype(np.int64))
    assert wide.graph.layers[0].successor.dtype == np.int64
    assert [wide.successors(1, 2, a) for a in (0, 1)] == [build().successors(1, 2, a) for a in (0, 1)]


# --- structure ------------------------------------------------------------------------------------------


def one_decision(successors: Any, **changes: Any) -> Problem:
    """One state, one action."""
    n = len(successors)
    given: dict[str, Any] = {
        "horizon": 2,
        "start": 0,
        "state_ptr": np.array([0, 1]),
        "pair_ptr": np.array([0, n]),
        "successors": np.array(successors),
        "reward": np.zeros(1),
        "cost_features": np.ones((n, 1)),
        "fallback": np.zeros(1, np.int64),
        "limits": LIMIT,
    }
    return Problem.from_arrays(**(given | changes))


@pytest.mark.parametrize("wrong", [2, 2**40, 2**63 - 1])
def test_a_wild_successor_does_not_size_the_last_layer(wrong: int) -> None:
    with pytest.raises(InvalidInput) as error:
        one_decision([0, wrong])
    assert str(error.value) == (
        f"the number of last states is not clear: step 0: 2 successors, and one of them is state {wrong}. "
        "Correct successors, or give terminal_reward, one for each last state."
    )
    for negative in (-1, -(2**63)):
        with pytest.raises(InvalidInput, match=f"successor does not exist: step 0, .*: index {negative}, but step 1"):
            one_decision([negative])


def test_duplicate_successors_are_found_in_graphs_of_any_size() -> None:
    # Pairs × states exceeds 2³¹ (and 2³²): the search must not be done in the successors' own int32.
    n = 70_000
    successors = np.arange(n, dtype=np.int32)
    given: dict[str, Any] = {
        "horizon": 2,
        "start": 0,
        "state_ptr": np.arange(n),
        "pair_ptr": np.append(np.arange(n - 1), n),
        "reward": np.zeros(n - 1),
        "cost_features": np.ones((n, 1)),
        "fallback": np.zeros(n - 1, np.int64),
        "limits": LIMIT,
    }
    assert Problem.from_arrays(**given, successors=successors).graph.layers[0].n_edges == n
    twice = successors.copy()
    twice[-1] = n - 2
    with pytest.raises(InvalidInput) as error:
        Problem.from_arrays(**given, successors=twice, terminal_reward=np.zeros(n))
    words = f"duplicate successors: step 0, state {n - 2}, action 0: {n - 2} is listed twice"
    assert words in str(error.value)


# --- content --------------------------------------------------------------------------------------------


def test_numbers_are_checked_by_place() -> None:
    for bad in (1.5, -0.1, math.nan, math.inf):
        refused(f"reward is outside [0, 1]: step 0, state 2, action 1: {bad!r}", **with_entry("reward", 5, bad))
        late = layers_with("reward", 2, with_entry("reward", 5, bad)["reward"])
        refused(f"reward is outside [0, 1]: step 2, state 2, action 1: {bad!r}", **late)
        refused(f"reward is outside [0, 1]: step 3, state 1: {bad!r}", terminal_reward=np.array([0, bad, 0, 0]))
    for bad in (math.nan, -math.inf):
        refused(
            "cost feature is not finite: step 0, state 0, action 1, successor 1: [",
            repr(bad),
            **with_entry("cost_features", (2, 1), bad),
        )
        x = with_entry("cost_features", (2, 1), bad)["cost_features"]
        refused("transition feature is not finite: step 0, state 0, action 1, successor 1", transition_features=x)
        rows = np.ones((N, 2))
        rows[3, 0] = bad
        refused("terminal cost feature is not finite: step 3, state 3: [", terminal_cost_features=rows)


def test_a_large_table_is_searched_to_its_end() -> None:
    n = 5 * 10**6  # more than one slice
    x = np.zeros((n, 1))
    x[-1] = math.nan
    with pytest.raises(InvalidInput, match=rf"cost feature is not finite: .*, successor {n - 1}: \[nan\]"):
        one_decision(np.arange(n), cost_features=x)


def test_last_costs_fit() -> None:
    refused("terminal_cost_features has the wrong shape: (4, 3) where (4, 2)", terminal_cost_features=np.ones((N, 3)))
    refused("terminal_cost_features has the wrong shape: (3, 2) where (4, 2)", terminal_cost_features=np.ones((3, 2)))
    refused("terminal_has_cost has the wrong shape: (4,) where one entry per row", terminal_has_cost=np.ones(N, bool))
    refused(
        "terminal_has_cost has the wrong shape: (3,) where one entry per row of terminal_cost_features (4)",
        terminal_cost_features=np.ones((N, 2)),
        terminal_has_cost=np.ones(3, bool),
    )
    for filled in (np.ones((N, 2)), np.full((N, 2), math.nan)):
        refused(
            "a terminal state without a cost has cost features: last step, state number 2",
            terminal_cost_features=filled,
            terminal_has_cost=np.array([True, True, False, True]),
        )


def test_start_numbers_exist() -> None:
    for wrong in (N, -1, 2**62, np.int64(-5), [0, N]):
        refused("start state does not exist: start: ", f"step 0 has {N} states", start=wrong)
    for nonsense in (None, "a", 1.0, True, [], [True], [1.5], [[1]], [[1], [2, 3]], {1}, 2**70, (0, None), 1j):
        refused(f"start must be a state number or a list of them: {nonsense!r}", start=nonsense)
    refused("a start state is listed twice: start: [1, 2, 1]", start=[1, 2, 1])
    for same in ([2, 0], (2, 0), np.array([2, 0]), np.array([2, 0], np.uint8), [np.int64(2), np.int32(0)]):
        assert build(start=same).starts == (2, 0)
    for one in (1, np.int64(1), np.array(1), [1], range(1, 2)):
        assert build(start=one).starts == (1,)


def test_the_fallback_fits_and_is_closed() -> None:
    refused("fallback has the wrong shape: step 0: (3,) where one entry per state (4)", fallback=np.zeros(3, np.int64))
    refused("fallback has the wrong shape: step 2: (5,)", **layers_with("fallback", 2, np.zeros(5, np.int64)))
    for wrong in (2, -2, 2**40):  # state 0 is off the fallback's way; a wrong number is wrong there, too
        for state in (0, 1):
            refused(
                f"fallback's action does not exist: step 0, state {state}: number {wrong}, the state has 2 actions",
                **with_entry("fallback", state, wrong),
            )
    refused(
        "fallback is missing: step 0, state 1: the fallback has no action in this start state",
        **with_entry("fallback", 1, -1),
    )
    error = refused(fallback=[np.ones(N, np.int64), np.array([-1, 0, -1, -1]), np.zeros(N, np.int64)])
    assert str(error) == (
        "fallback is not closed: step 0, state 1: action 1 can reach 2, for which the fallback has no action. "
        "Give fallback an action there, or remove it from successors."
    )
    fallback = build(fallback=np.array([-1, 0, -1, 1])).graph.layers[2].fallback
    assert fallback.tolist() == [-1, 2, -1, -1]  # pairs, and only where the fallback comes


# --- names ----------------------------------------------------------------------------------------------


def test_labels_fit() -> None:
    names = [list("abcd")] * 4
    pairs = [["stay", "go"] * N] * 3
    refused("state_labels has the wrong number of steps: 3 lists where 4 are expected", state_labels=names[:3])
    refused("action_labels has the wrong number of steps: 4 lists where 3", action_labels=pairs + pairs[:1])
    refused(
        "state_labels has the wrong shape: step 2: 3 labels where 4", state_labels=[*names[:2], ["a", "b", "c"], None]
    )
    refused("action_labels has the wrong shape: step 0: 4 labels where 8", action_labels=[list("abcd")] * 3)
    refused("two states of a step share a label: step 1: 'b'", state_labels=[None, list("abcb"), None, None])
    refused(
        "duplicate actions: step 0, state 'c': ['x', 'x']", action_labels=[[*"pqpq", *"xxpq"]] * 3, state_labels=names
    )
    for nonsense in ("abcd", 4, {0: names[0]}, iter(names)):
        refused("state_labels must be a list with a list for each step: ", state_labels=nonsense)
    for nonsense in ("abcd", {"a", "b", "c", "d"}, np.arange(4), iter("abcd")):
        refused("state_labels must hold lists: step 1: ", state_labels=[None, nonsense, None, None])
    refused("label cannot be used: step 3, state: [0], a list", state_labels=[*names[:3], [[0], 1, 2, 3]])
    refused("label cannot be used: step 0, action: nan, which", action_labels=[[math.nan] * 8] * 3)
    refused("label cannot be used: step 0, state: np.int64(0), a numpy", state_labels=[list(np.arange(4))] * 4)


def test_labels_that_are_equal_but_differ_are_refused_across_layers_and_numbers() -> None:
    words = "state labels compare equal but differ: step 1, state: "
    refused(words + "1.0 and 1", state_labels=[[0, 1, 2, 3], [0, 1.0, 2, 3], None, None])
    refused(f"{words}True and 1", state_labels=[None, ["x", True, "y", "z"], None, None])
    refused(
        "action labels compare equal but differ: step 0, action: True and 1",
        action_labels=[["x", True] * 4, None, None],
    )
    assert build(state_labels=[None, ["x", 4.0, 1, 0], None, None]).state_index(1, 4) == 1


def test_numbers_are_labels() -> None:
    problem = build()
    assert list(problem.states(2)) == [0, 1, 2, 3]
    assert problem.pair_index(0, np.int64(2), np.int64(1)) == 5
    for unknown in (N, -1, "1", np.array([1])):  # more of them: test_labels
        with pytest.raises(UnknownLabel, match="no such state: step 1: "):
            problem.state_index(1, unknown)
    for unknown in (2, -1, "1", np.array([1])):
        with pytest.raises(UnknownLabel, match="no such action: step 1, state 2: "):
            problem.pair_index(1, 2, unknown)


# --- the rest -------------------------------------------------------------------------------------------


def test_pruning_keeps_layers_that_lose_nothing() -> None:
    whole = build(start=list(range(N)))
    assert whole.pruned() is whole
    partly = build(start=list(range(N)), terminal_reward=np.zeros(N + 1))
    layers = partly.pruned().graph.layers
    assert layers[0] is partly.graph.layers[0]
    assert layers[2] is not partly.graph.layers[2]
    assert len(partly.pruned().states(3)) == N
