"""What holds for every problem: the graph is what was declared, however it is declared, numbered or pruned."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.labels import same_label
from surefoot.model.layer import NO_ACTION
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.rules import MAX_HORIZON
from tests.property.strategies import Declared, by_label, declarations
from tests.saved_problems import arrays_of


def listed(problem: Problem) -> set[tuple[int, Any]]:
    return {(h, s) for h in range(problem.horizon) for s in list(problem.states(h))}


@given(declarations())
def test_from_functions_finds_exactly_what_can_be_reached(declared: Declared) -> None:
    problem = declared.functions()
    assert listed(problem) == declared.reach()
    assert all(mask.all() for mask in problem.graph.reachable)


@given(declarations(), st.randoms(use_true_random=False))
def test_the_order_of_a_declaration_changes_numbers_only(declared: Declared, random: Any) -> None:
    other = declared.reordered(lambda row: random.sample(row, len(row))).functions()
    problem = declared.functions()
    assert listed(problem) == listed(other)
    assert by_label(problem) == by_label(other)


@given(declarations())
def test_actions_and_successors_keep_their_declared_order(declared: Declared) -> None:
    for problem in (declared.functions(), declared.arrays()):
        assert same_label(problem.starts, tuple(declared.starts))
        for h, s in listed(problem):
            if h == problem.horizon - 1:
                continue
            assert same_label(problem.actions(h, s), tuple(declared.actions[h, s]))
            for a in problem.actions(h, s):
                assert same_label(problem.successors(h, s, a), tuple(declared.successors[h, s, a]))


@given(declarations())
def test_the_fallback_is_laid_out_exactly_where_it_comes(declared: Declared) -> None:
    reach = declared.fallback_reach()
    for problem in (declared.functions(), declared.arrays()):
        for h, layer in enumerate(problem.graph.layers):
            for i, s in enumerate(list(problem.states(h))):
                if (h, s) in reach:
                    assert same_label(problem.fallback_action(h, s), declared.fallback[h, s])
                    assert layer.state_ptr[i] <= layer.fallback[i] < layer.state_ptr[i + 1]
                else:
                    assert layer.fallback[i] == NO_ACTION
        last = problem.horizon - 1
        ends = [(last, s) in reach for s in list(problem.states(last))]
        assert problem.graph.terminal.fallback_reached.tolist() == ends


def rebuilt(problem: Problem) -> Problem:
    """The same problem, declared by copies of its own arrays."""
    graph, last = problem.graph, problem.graph.terminal
    x = [layer.cost_features.copy() for layer in graph.layers]
    shared = graph.shared_features
    anchors = [
        None if a is None else list(zip(*(part.tolist() for part in a.parts), strict=True)) for a in graph.anchors
    ]
    return Problem.from_arrays(
        horizon=problem.horizon,
        start=graph.starts.tolist(),
        state_ptr=[layer.state_ptr.copy() for layer in graph.layers],
        pair_ptr=[layer.pair_ptr.copy() for layer in graph.layers],
        successors=[layer.successor.copy() for layer in graph.layers],
        reward=[layer.reward.copy() for layer in graph.layers],
        cost_features=x,
        transition_features=None if shared else [layer.transition_features.copy() for layer in graph.layers],
        fallback=[
            np.where(layer.fallback == NO_ACTION, NO_ACTION, layer.fallback - layer.state_ptr[:-1])
            for layer in graph.layers
        ],
        terminal_reward=last.reward.copy(),
        terminal_cost_features=None if last.cost_features is None else last.cost_features.copy(),
        terminal_has_cost=None if last.cost_features is None else last.has_cost.copy(),
        anchor=anchors.__getitem__,
        limits=problem.limits,
        transition_norm=problem.transition_norm,
        state_labels=[list(names) for names in problem.naming.states],
        action_labels=problem.naming.actions,
    )


@given(declarations())
def test_functions_to_arrays_and_back_is_the_same_problem(declared: Declared) -> None:
    problem = declared.functions()
    again = rebuilt(problem)
    left, right = arrays_of(problem), arrays_of(again)
    assert left.keys() == right.keys()
    for place, array in left.items():
        other = right[place]
        if array is None or other is None:
            assert array is other, place
        else:
            assert (array.dtype, array.shape) == (other.dtype, other.shape), place
            assert array.tobytes() == other.tobytes(), place
    assert same_label(problem.naming.actions, again.naming.actions)
    assert all(same_label(tuple(a), tuple(b)) for a, b in zip(problem.naming.states, again.naming.states, strict=True))
    assert problem.digest == again.digest


@given(declarations())
def test_pruned_keeps_what_can_be_reached_and_all_that_is_said_of_it(declared: Declared) -> None:
    full = declared.arrays()
    pruned = full.pruned()
    assert listed(full) == {(h, s) for h, row in enumerate(declared.states) for s in row}
    assert listed(pruned) == declared.reach()
    assert by_label(pruned) == by_label(declared.functions())
    said = by_label(full)
    assert all(said[key] == value for key, value in by_label(pruned).items())
    for layer in pruned.graph.layers:
        assert layer.successor.dtype == np.int32


@given(declarations())
def test_pruning_twice_is_pruning_once(declared: Declared) -> None:
    pruned = declared.arrays().pruned()
    assert pruned.pruned() is pruned
    functions = declared.functions()
    assert functions.pruned() is functions
    for h in range(pruned.horizon):
        kept = [s for s in declared.states[h] if (h, s) in declared.reach()]
        assert same_label(tuple(pruned.states(h)), tuple(kept))  # in the order they had


@given(declarations())
def test_every_index_leads_back_to_its_labels(declared: Declared) -> None:
    problem = declared.arrays()
    for h in range(problem.horizon - 1):
        layer, pairs, edges = problem.graph.layers[h], [], []
        for i, s in enumerate(list(problem.states(h))):
            assert problem.state_index(h, s) == i
            for a in problem.actions(h, s):
                pairs.append(problem.pair_index(h, s, a))
                edges += [problem.edge_index(h, s, a, s2) for s2 in problem.successors(h, s, a)]
        assert pairs == list(range(layer.n_pairs))
        assert edges == list(range(layer.n_edges))
        assert layer.pair_state().tolist() == np.repeat(range(layer.n_states), np.diff(layer.state_ptr)).tolist()
        assert layer.edge_ptr[-1] == layer.n_edges


# --- damage ---------------------------------------------------------------------------------------------

NUMBERS = st.integers(-4, 9) | st.integers(-(2**63), 2**63 - 1)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.sampled_from([np.int64(1), np.float64("nan"), np.array([1, 2]), np.array("x"), object()]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=1), inner, max_size=2)
    ),
    max_leaves=6,
)


def is_long(horizon: Any) -> bool:
    """A horizon that is allowed and takes too long here."""
    return isinstance(horizon, int) and 100 < horizon <= MAX_HORIZON


def line(n: int = 3) -> dict[str, Any]:
    """A template of n states with two actions each, for from_arrays."""
    return {
        "horizon": 3,
        "start": 1,
        "state_ptr": np.arange(0, 2 * n + 1, 2),
        "pair_ptr": np.arange(2 * n + 1),
        "successors": np.repeat(np.arange(n), 2),
        "reward": np.zeros(2 * n),
        "cost_features": np.ones((2 * n, 1)),
        "fallback": np.zeros(n, np.int64),
        "limits": Limit("level", bound=0.5, noise=0.1, norm=1.0),
    }


@given(st.sampled_from(["state_ptr", "pair_ptr", "successors", "fallback"]), st.data())
def test_damaged_arrays_are_refused_or_make_a_problem_that_can_be_read(name: str, data: st.DataObject) -> None:
    given = line()
    for _ in range(data.draw(st.integers(1, 3))):
        given[name][data.draw(st.integers(0, len(given[name]) - 1))] = data.draw(NUMBERS)
    if data.draw(st.booleans()):
        given |= {"horizon": 2}  # without a template, the last layer's size follows from the successors
    try:
        problem = Problem.from_arrays(**given)
    except InvalidInput as error:
        named = name in str(error) or error.where.startswith("step ")
    else:
        named = bool(by_label(problem.pruned()))
    assert named


@given(st.sampled_from(sorted(inspect.signature(Problem.from_arrays).parameters)), ANYTHING)
def test_from_arrays_meets_anything_with_a_refusal_of_its_own(name: str, value: Any) -> None:
    assume(name != "horizon" or not is_long(value))
    with contextlib.suppress(InvalidInput):
        Problem.from_arrays(**(line() | {name: value}))


@given(st.sampled_from(sorted(inspect.signature(Problem.from_functions).parameters)), ANYTHING, st.booleans())
def test_from_functions_meets_anything_with_a_refusal_of_its_own(name: str, value: Any, called: bool) -> None:
    """As the argument itself, or as what the function given returns."""
    given: dict[str, Any] = {
        "horizon": 3,
        "start": 0,
        "actions": lambda h, s: [0, 1],
        "successors": lambda h, s, a: [0, 1],
        "reward": lambda h, s, a: 0.5,
        "cost_features": lambda h, s, a, s2: [1.0],
        "terminal_cost_features": lambda s: [1.0],
        "fallback": lambda h, s: 0,
        "limits": Limit("level", bound=0.5, noise=0.1, norm=1.0),
    }
    assume(name != "horizon" or not is_long(value))
    given[name] = (lambda *_: value) if called and callable(given.get(name, len)) else value
    with contextlib.suppress(InvalidInput):
        by_label(Problem.from_functions(**given))


@given(ANYTHING)
def test_a_look_up_of_anything_is_refused_or_right(label: Any) -> None:
    for problem in (Problem.from_arrays(**line()), Problem.from_arrays(**line()).pruned()):
        for call in (
            lambda problem=problem: problem.states(1)[problem.state_index(1, label)],
            lambda problem=problem: problem.actions(1, 1)[problem.pair_index(1, 1, label) % 2],
        ):
            with contextlib.suppress(UnknownLabel):
                assert call() == label
