"""Whose a declaration's arrays are: small ones are copied, large ones sealed, and none is changed."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput
from surefoot.model import seals
from surefoot.model.problem import Problem
from tests.saved_problems import arrays_of
from tests.unit.test_from_arrays import LIMIT, N, build, line

COLUMNS = {
    "state_ptr": "state_ptr",
    "pair_ptr": "pair_ptr",
    "successors": "successor",
    "reward": "reward",
    "cost_features": "cost_features",
}

# --- small ones are copied ------------------------------------------------------------------------------


def test_a_view_taken_before_cannot_change_what_was_validated() -> None:
    """A read-only flag does not reach a view that exists already."""
    last = {"terminal_reward": np.full(N, 0.5), "terminal_cost_features": np.eye(N, 2)}
    given = line() | last | {"transition_features": np.ones((len(line()["successors"]), 3))}
    names = [*COLUMNS, *last, "transition_features"]
    views = [given[name][:] for name in names]
    problem, wanted = Problem.from_arrays(**given), Problem.from_arrays(**copy.deepcopy(given)).digest
    for view in views:
        view[...] = 0
    assert problem.digest == wanted
    assert problem.seals == ()
    sf.LsviNew(problem)


def test_nor_can_the_arrays_of_a_sparse_matrix() -> None:
    matrix = scipy.sparse.csr_array(line()["cost_features"])
    problem = build(cost_features=matrix)
    before = problem.graph.layers[0].cost_features.dense()
    matrix.data[:], matrix.indices[:] = 7.0, 0
    assert np.array_equal(problem.graph.layers[0].cost_features.dense(), before)


# --- large ones are sealed ------------------------------------------------------------------------------


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "COPIED", 0)


@pytest.mark.parametrize("name", [*COLUMNS, "transition_features", "terminal_reward", "terminal_cost_features"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.usefixtures("all_are_large")
def test_no_plan_is_made_from_arrays_that_have_changed(name: str, sparse: bool) -> None:
    last = {"terminal_reward": np.full(N, 0.5), "terminal_cost_features": np.eye(N, 2)}
    given = line() | last | {"transition_features": np.eye(len(line()["successors"]), 3) + 1.0}
    view = given[name][:]
    if sparse:
        for table in ("cost_features", "transition_features", "terminal_cost_features"):
            given[table] = scipy.sparse.csr_array(given[table])
        if "features" in name:
            view = given[name].data[:]
    agent = sf.LsviNew(Problem.from_arrays(**given))
    plan, kept = agent.plan, view.copy()
    view[...] = view[::-1].copy()  # the same numbers in another order
    if np.array_equal(view, kept):
        view.reshape(-1)[-1] += 1
    for attempt in (agent.replan, lambda: agent.problem.digest):
        with pytest.raises(AssumptionBroken, match=f"changed after it was declared: {name}.*Declare the problem again"):
            attempt()
    assert agent.plan is plan
    view[...] = kept
    agent.replan()


def test_the_smallest_are_copied_up_to_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    given = line()
    sizes = sorted(array.nbytes for name, array in given.items() if name in COLUMNS)
    monkeypatch.setattr(seals, "COPIED", sum(sizes[:-1]))
    problem = Problem.from_arrays(**given)
    assert [seal.array is given[seal.name] for seal in problem.seals] == [True]
    assert problem.seals[0].array.nbytes == sizes[-1]
    monkeypatch.setattr(seals, "COPIED", sum(sizes))
    assert Problem.from_arrays(**line()).seals == ()


@pytest.mark.usefixtures("all_are_large")
def test_seals_go_where_the_arrays_go(tmp_path: Path) -> None:
    """Into problems made from this one, as far as those use the arrays; not into what was read from a file."""
    problem = Problem.from_arrays(**line())
    narrow = problem.stored_in_float32()
    assert {seal.name for seal in narrow.seals} == {seal.name for seal in problem.seals} - {"cost_features"}
    assert Problem.load(problem.save(tmp_path / "p.npz")).seals == ()


# --- and otherwise taken as they are --------------------------------------------------------------------


@pytest.mark.usefixtures("all_are_large")
def test_a_template_is_shared_by_all_layers_without_a_copy() -> None:
    given = line()
    layers = Problem.from_arrays(**given).graph.layers
    for name, field in COLUMNS.items():
        for layer in layers:
            assert getattr(layer, field) is given[name]
            assert np.shares_memory(getattr(layer, field), given[name])
        with pytest.raises(ValueError, match="read-only"):
            given[name][0] = 0
    assert layers[0].successor is layers[1].successor
    assert all(layer.transition_features is given["cost_features"] for layer in layers)


@pytest.mark.usefixtures("all_are_large")
def test_lists_of_arrays_are_taken_one_by_one() -> None:
    given = {name: [array.copy() for _ in range(3)] for name, array in line().items() if name in COLUMNS}
    phi = [np.full((len(given["successors"][0]), 3), h + 1.0) for h in range(3)]
    graph = build(**given, transition_features=phi).graph
    for h, layer in enumerate(graph.layers):
        assert layer.transition_features is phi[h]
        assert all(getattr(layer, field) is given[name][h] for name, field in COLUMNS.items())
        with pytest.raises(ValueError, match="read-only"):
            phi[h][0] = 0
    assert (graph.cost_dim, graph.transition_dim, graph.shared_features) == (2, 3, False)


@pytest.mark.usefixtures("all_are_large")
def test_last_layers_arrays_are_taken_too() -> None:
    rewards, x, has = np.full(N, 0.5), np.eye(N, 2), np.eye(N, 2).any(axis=1)
    last = build(terminal_reward=rewards, terminal_cost_features=x, terminal_has_cost=has).graph.terminal
    assert (last.reward is rewards, last.cost_features is x, last.has_cost is has) == (True, True, True)
    for array in (rewards, x, has):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.usefixtures("all_are_large")
def test_what_arrays_are_views_of_is_frozen_with_them() -> None:
    buffer = np.zeros(2 * len(line()["successors"]) + 5)
    problem = build(cost_features=buffer[5:].reshape(-1, 2))
    with pytest.raises(ValueError, match="read-only"):
        buffer[7] = math.nan
    assert np.shares_memory(problem.graph.layers[0].cost_features, buffer)


def test_every_array_of_a_problem_is_read_only() -> None:
    problem = build(terminal_cost_features=np.ones((N, 2)), anchor=lambda h: ([1.0, 0.0], 0.25))
    for problem_ in (problem, problem.pruned()):
        for array in arrays_of(problem_).values():
            assert array is not None
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_a_refused_declaration_leaves_the_users_arrays_writeable() -> None:
    given = line()
    given["reward"][3] = 1.5
    with pytest.raises(InvalidInput, match=r"reward is outside \[0, 1\]"):
        Problem.from_arrays(**given)
    given["reward"][3] = 0.5
    given["cost_features"][0] = 0.0
    assert Problem.from_arrays(**given).horizon == 4


def test_the_users_start_and_fallback_stay_the_users_own() -> None:
    start, fallback = np.array([2, 0]), np.zeros(N, np.int64)
    problem = build(start=start, fallback=fallback)
    start[0] = fallback[0] = 1
    assert problem.starts == (2, 0)
    assert problem.fallback_action(0, 0) == 0


@pytest.mark.usefixtures("all_are_large")
def test_arrays_in_a_file_are_arrays(tmp_path: Path) -> None:
    x = line()["cost_features"]
    stored = np.memmap(tmp_path / "x", np.float64, "w+", shape=x.shape)
    stored[:] = x
    problem = build(cost_features=stored)
    assert problem.graph.layers[0].cost_features is stored
    assert problem.digest == build().digest


@pytest.mark.usefixtures("all_are_large")
def test_features_are_taken_in_float32_as_they_are() -> None:
    given, phi, last = line(), np.ones((len(line()["successors"]), 1), np.float32), np.ones((N, 2), np.float32)
    x = given["cost_features"] = given["cost_features"].astype(np.float32)
    problem = Problem.from_arrays(**given, transition_features=phi, terminal_cost_features=last)
    for layer in problem.graph.layers:
        assert layer.cost_features is x
        assert layer.transition_features is phi
    assert problem.graph.terminal.cost_features is last
    assert problem.limits == (LIMIT,)  # these very numbers are declared, so nothing is added
    assert problem.stored_in_float32() is problem
