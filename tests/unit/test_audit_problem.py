"""What the audit's own reader refuses: a declaration on which bounds would rest that nobody can have declared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import surefoot as sf
from surefoot.audits.declaration import read_problem
from surefoot.audits.grown import other_growth
from surefoot.audits.points import Endless, Points
from surefoot.audits.problem import NONE, Names, Unreadable
from tests.hand_made import corridor
from tests.studies import kettle
from tests.unit.test_growing import walk
from tests.unit.test_rays import declared

LIMIT = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)
LIMIT_B = sf.Limit("b", bound=1.0, noise=0.1, norm=1.0)
Edit = Callable[[Any], Any]


def sparse() -> sf.Problem:
    return sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=[np.array([0, 1])],
        pair_ptr=[np.array([0, 2])],
        successors=[np.array([0, 1])],
        reward=[np.zeros(1)],
        cost_features=[csr_array(np.array([[0.0, 3.0, 4.0], [1.0, 2.0, 0.0]]))],
        fallback=[np.zeros(1, np.int64)],
        limits=LIMIT,
    )


def anchored() -> sf.Problem:
    return corridor({"stay": [1.0]}, LIMIT, anchor=([1.0], [0.25]), stationary_costs=True, horizon=3, terminal=[1.0])


def layer(number: int, **changed: Any) -> Edit:
    return lambda document: document["layers"][number].update(changed)


def rays(number: int, **changed: Any) -> Edit:
    return lambda document: document["rays"][number].update(changed)


MADE: dict[str, Callable[[], sf.Problem]] = {
    "plain": lambda: kettle().problem,
    "rays": declared,
    "anchored": anchored,
    "growing": walk,
}
REFUSED: list[tuple[str, Edit]] = [
    ("plain", lambda d: d.update(version=3)),
    ("plain", lambda d: d.update(format="other")),
    ("plain", lambda d: d["layers"][0].update(cost_features=[[0.1], [0.2], [0.25], [0.1]])),
    ("plain", layer(0, cost_features=[0.1, 0.2, 0.25, 0.1, 0.2])),
    ("plain", layer(1, forbidden=[True])),
    ("plain", layer(1, forbidden=[True, False])),  # where the fallback comes
    ("plain", layer(0, fallback=[-1, 0])),  # which begins there
    ("plain", layer(0, fallback=[0])),
    ("plain", lambda d: d["terminal"].update(forbidden=[True, False, False])),  # where the fallback ends
    ("plain", lambda d: d["terminal"].update(forbidden=[False, True])),
    ("rays", layer(0, row_ptr=[0, 1])),
    ("rays", layer(0, row_ptr=[1, 1, 2])),
    ("rays", layer(0, row_ptr=[0, 2, 2])),
    ("rays", layer(0, row_ptr=[0, 1, 3])),
    ("rays", layer(0, row_ptr=[0, 0, 2])),
    ("rays", lambda d: d["rays"].pop()),
    ("rays", rays(0, center=[-1])),
    ("rays", rays(0, center=[-2, 0])),
    ("rays", rays(0, center=[-1, 2])),
    ("rays", rays(0, center=[-1, 1])),  # itself, which has an intensity
    ("rays", rays(0, center=[1, -1])),  # the fallback's action
    ("rays", rays(0, cost_features=[[1.0, 0.0]])),
    ("rays", rays(0, cost_features=[[1.0, 0.1], [1.0, 0.0]])),  # of an action that has none
    ("rays", rays(0, center=[-1, 0], cost_features=[[1.0, 0.0], [1.0, float("inf")]])),
    ("sparse", lambda d: None),  # of which there is no study
    ("anchored", lambda d: d["anchors"][1].update(cost=[[0.26]])),
    ("anchored", lambda d: d["anchors"][2].update(tolerance=[[0.1]])),
    ("anchored", lambda d: d["anchors"].__setitem__(2, None)),
    ("anchored", lambda d: [each.update(tolerance=[[-0.1]]) for each in d["anchors"]]),
    ("anchored", lambda d: [each.update(cost=[[0.1, 0.2]]) for each in d["anchors"]]),
    ("anchored", lambda d: [each.update(tolerance=[[0.1, 0.2]]) for each in d["anchors"]]),
    ("anchored", lambda d: [each.update(features=[[1.0], [2.0]]) for each in d["anchors"]]),
    ("growing", layer(1, forbidden=[False, False])),
    ("growing", lambda d: d["terminal"].update(forbidden=[False] * len(d["terminal"]["reward"]))),
    ("growing", lambda d: d["beyond"].update(longest_row=1.22)),
    ("growing", lambda d: d["beyond"].update(longest_row="2")),
    ("growing", lambda d: d["beyond"].update(room=1)),
]


@pytest.mark.parametrize("name", MADE)
def test_what_was_declared_is_read(name: str, tmp_path: Path) -> None:
    problem = MADE[name]()
    assert read_problem(problem.save(tmp_path / "problem.json")).digest == problem.digest


@pytest.mark.parametrize(("name", "edit"), REFUSED)
def test_what_nobody_can_have_declared_is_not(name: str, edit: Edit, tmp_path: Path) -> None:
    path = (MADE | {"sparse": sparse})[name]().save(tmp_path / "problem.json")
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    with pytest.raises(Unreadable):
        read_problem(path)


def test_names_are_found_as_they_were_written() -> None:
    named, numbers = Names(2, ["a", ("b", 1)]), Names(3, None)
    assert [named.index(name) for name in ("a", ("b", 1), "c", 0)] == [0, 1, None, None]
    assert [numbers.index(name) for name in (0, 2, 1.0, 3, -1, 1.5, "1")] == [0, 2, 1, None, None, None, None]
    assert (named[1], numbers[1]) == (("b", 1), 1)


def test_what_a_problem_says_of_its_noise_and_scale(tmp_path: Path) -> None:
    """√(σ² + nτ²), n of an episode where all steps share one regression; |bound| + the largest cost (spec 8)."""
    limits = [
        sf.Limit("a", bound=[1.0, -3.0, 2.0], noise=0.3, norm=2.0, episode_noise=0.4),
        sf.Limit("b", bound=1.0, noise=0.3, prior=[(-0.5, 1.0), (2.0, 2.0)], norm=9.0),
    ]
    for stationary in (False, True):
        for terminal in (None, [0.0, 3.0]):
            made = corridor({"a": [3.0, 4.0]}, limits, horizon=3, stationary_costs=stationary, terminal=terminal)
            read = read_problem(made.save(tmp_path / "problem.json"))
            rows = 1 if not stationary else 2 if terminal is None else 3
            assert read.rows_of_an_episode == rows
            assert read.noise(0, rows) == pytest.approx((0.09 + rows * 0.16) ** 0.5)
            assert read.noise(1, rows) == 0.3
            assert read.shared
            assert read.longest == 5.0
            assert read.scales == pytest.approx([3.0 + 10.0, 1.0 + 3.0 + 8.0])
            assert made.cost_scales == pytest.approx(read.scales)


def test_when_a_cost_is_beyond_all_noise(tmp_path: Path) -> None:
    read = read_problem(corridor({"a": [1.0]}, [LIMIT, LIMIT_B]).save(tmp_path / "problem.json"))
    for t, alpha in ((1, 0.1), (7, 0.01)):
        reach = 0.1 * np.sqrt(2 * np.log(np.pi**2 * t**2 * 2 / (3 * alpha)))
        for j in (0, 1):
            cost = [0.0, 0.0]
            cost[j] = 1.0 + reach - 1e-6
            assert not read.beyond_noise(0, cost, t, alpha)
            cost[j] = 1.0 + reach + 1e-6
            assert read.beyond_noise(0, cost, t, alpha)


# --- growth ---------------------------------------------------------------------------------------------


def step(number: int, **changed: Any) -> Edit:
    """Of a problem that was read: other entries of a layer."""
    return lambda p: replace(
        p, layers=[replace(one, **changed) if h == number else one for h, one in enumerate(p.layers)]
    )


def other(values: list[Any], at: int, value: Any) -> list[Any]:
    return [value if i == at else each for i, each in enumerate(values)]


OTHER_GROWTH: dict[str, Edit] = {
    "no growth": lambda p: replace(p, longest_row=None),
    "longest row": lambda p: replace(p, longest_row=p.longest_row + 1.0),
    "horizon": lambda p: replace(p, horizon=p.horizon + 1),
    "stationary": lambda p: replace(p, stationary=not p.stationary),
    "starts": lambda p: replace(p, starts=[*p.starts, 1]),
    "names": lambda p: replace(p, names=["a", "b", "c"]),
    "limits": lambda p: replace(p, limits=[replace(p.limits[0], noise=0.2)]),
    "transition norm": lambda p: replace(p, transition_norm=2.0),
    "an anchor more": lambda p: replace(p, anchors=other(p.anchors, 1, ANCHOR)),
    "another anchor": lambda p: replace(p, anchors=other(p.anchors, 0, (ANCHOR[0], ANCHOR[1] + 0.1, ANCHOR[2]))),
    "states": lambda p: replace(p, states=other(p.states, 1, Names(2, ["x", 0]))),
    "actions of a state": lambda p: step(1, state_ptr=other(p.layers[1].state_ptr, 1, 2))(p),
    "edges of a pair": lambda p: step(1, pair_ptr=other(p.layers[1].pair_ptr, 1, 2))(p),
    "a successor": lambda p: step(1, successor=other(p.layers[1].successor, 1, 2))(p),
    "the fallback": lambda p: step(1, fallback=other(p.layers[1].fallback, 1, p.layers[1].fallback[1] + 1))(p),
    "a fallback of a new state": lambda p: step(1, fallback=[*p.layers[1].fallback, 2])(p),
    "rows": lambda p: step(1, by_edge=not p.layers[1].by_edge)(p),
    "rows of a pair": lambda p: step(1, row_ptr=other(p.layers[1].row_ptr, 1, 2))(p),
    "names of actions": lambda p: step(1, actions=other(p.layers[1].actions, 0, "x"))(p),
    "no names of actions": step(1, actions=None),
    "forbidden": step(1, forbidden={0, 1}),
    "nothing forbidden": step(1, forbidden=set()),
    "features": lambda p: step(1, x=p.layers[1].x * 1.01)(p),
    "a last cost": lambda p: replace(p, has_cost=other(p.has_cost, 0, not p.has_cost[0])),
    "an end of the fallback": lambda p: replace(p, fallback_ends=other(p.fallback_ends, 0, True)),
    "an end of the fallback in a new state": lambda p: replace(p, fallback_ends=[*p.fallback_ends, True]),
    "last forbidden": lambda p: replace(p, last_forbidden={0, 1}),
    "last states": lambda p: replace(p, states=other(p.states, -1 % len(p.states), Names(2, ["x", "y"]))),
    "last features": lambda p: replace(p, last_x=p.last_x * 1.01),
    "no last features": lambda p: replace(p, last_x=None),
}
ANCHOR = np.array([[1.0, 0.0, 0.0]]), np.array([[0.2]]), np.array([[0.0]])


@pytest.fixture
def growing(tmp_path: Path) -> Any:
    """With an anchor of the first step and costs of the last states, so that all of it can differ."""
    read = read_problem(walk().save(tmp_path / "problem.json"))
    anchors = other([None] * read.horizon, 0, ANCHOR)
    return replace(read, anchors=anchors, last_x=np.ones((len(read.has_cost), read.dim)))


@pytest.mark.parametrize("name", OTHER_GROWTH)
def test_what_is_not_the_graph_before_grown(name: str, growing: Any) -> None:
    assert other_growth(growing, growing) == ""
    assert other_growth(growing, OTHER_GROWTH[name](growing)) != ""


def test_what_may_grow(growing: Any) -> None:
    """States are appended, and what led outside leads elsewhere."""
    one = growing.layers[1]
    assert one.successor[2] == 0 != one.successor[1]
    assert other_growth(growing, step(1, successor=other(one.successor, 2, 2))(growing)) == ""
    assert other_growth(growing, step(1, fallback=[*one.fallback, NONE], forbidden={0, 2})(growing)) == ""
    assert other_growth(replace(growing, last_x=None), growing) != ""
    assert other_growth(replace(growing, anchors=[None] * growing.horizon), growing) != ""


# --- exact states ---------------------------------------------------------------------------------------


@pytest.fixture
def points(tmp_path: Path) -> Points:
    """Cells of 3 × 2 with edges 0, 1, 2, 4 and 0, 1, 3, guards of 0.01 and 0.02; the last number, 6, is outside."""
    read = read_problem(kettle().problem.save(tmp_path / "problem.json"))
    document = {
        "state": {"a": [0.0, 1.0, 2.0, 4.0], "b": [0.0, 1.0, 3.0]},
        "guard": [0.01, 0.02],
        "inputs": {"values": [0.0]},
        "start": [[0.5, 0.5], [0.6, 0.7]],
        "problem": read.digest,
    }
    return Points(read, document, lambda n, what: said.append(what))


said: list[str] = []


@pytest.mark.parametrize(
    ("x", "cell"),
    [
        ((0.5, 0.5), 0),
        ((0.5, 1.0), 1),
        ((1.0, 0.5), 2),
        ((3.9, 2.9), 5),
        ((4.0, 3.0), 5),
        ((4.01, 3.02), 5),
        ((4.011, 3.0), 6),
        ((4.0, 3.021), 6),
        ((-0.01, -0.02), 0),
        ((-0.011, 0.5), 6),
        ((0.5, -0.021), 6),
    ],
)
def test_the_cell_of_a_state(x: tuple[float, float], cell: int, points: Points) -> None:
    assert points._cell(np.array(x)) == cell


@pytest.mark.parametrize(
    ("boxes", "cells"),
    [
        ([[[0.2, 0.2], [0.8, 0.8]]], [0]),
        ([[[0.2, 0.2], [0.991, 0.8]]], [0, 2]),  # the guard reaches the next one
        ([[[1.009, 0.2], [1.5, 0.8]]], [0, 2]),
        ([[[1.011, 0.2], [1.5, 0.8]]], [2]),
        ([[[0.2, 0.2], [0.8, 0.985]]], [0, 1]),
        ([[[0.2, 0.2], [2.5, 2.5]]], [0, 1, 2, 3, 4, 5]),
        ([[[0.2, 0.2], [0.8, 0.8]], [[2.5, 1.5], [3.0, 2.0]]], [0, 5]),
        ([[[3.0, 0.2], [4.01, 0.8]]], [4]),  # the edge itself is no way out
        ([[[3.0, 0.2], [4.02, 0.8]]], [4, 6]),
        ([[[-0.02, 0.2], [0.5, 0.8]]], [0, 6]),
        ([[[5.0, 0.2], [6.0, 0.8]]], [6]),
        ([[[-3.0, 0.2], [-2.0, 0.8]]], [6]),
        ([[[0.2, 4.0], [0.8, 5.0]]], [6]),
    ],
)
def test_the_cells_that_boxes_meet(boxes: Any, cells: list[int], points: Points) -> None:
    assert points._met(boxes) == cells


def test_a_start_is_a_declared_one_and_in_its_cell(points: Points) -> None:
    assert said.pop() == "the plant's file is one of another problem"  # that has other cells
    for start, state, faults in (
        ([0.5, 0.5], 0, 0),
        ([0.6, 0.7], 0, 0),
        ([0.49, 0.72], 0, 0),
        ([0.485, 0.5], 0, 1),
        ([0.5, 0.73], 0, 1),
        ([0.5, 0.5], 1, 1),
        ([0.615, 0.6], 2, 2),
    ):
        said.clear()
        points.begin({"n": 1, "point": start, "start": state})
        assert len(said) == faults, said
    for wrong in ([0.5], [0.5, float("nan")], [[0.5, 0.5]]):
        with pytest.raises(ValueError, match="no state"):
            points.begin({"n": 1, "point": wrong, "start": 0})


def test_a_next_state_lies_in_its_boxes_or_none_is_known(points: Points) -> None:
    record: dict[str, Any] = {"n": 1, "step": 0, "next_state": 0, "intensity": None}
    for after, pair, edge, goes in (
        ([0.61, 0.62], 0, 0, True),  # the guard
        ([0.612, 0.6], 0, 0, False),
        ([0.6, 0.49], 0, 0, True),
        ([0.6, 0.47], 0, 0, False),
        ([0.6, 0.6], None, None, False),
        ([0.6, 0.6], 0, None, False),
    ):
        said.clear()
        point = {"state": after, "boxes": [[[9.0, 9.0], [9.0, 9.0]], [[0.5, 0.5], [0.6, 0.6]]], "features": [0.1]}
        found, x = points.tell({**record, "point": point}, pair, edge, None)
        assert (found, None if x is None else x.tolist()) == ((edge, [0.1]) if goes else (None, None))
        assert said == []
    points.tell({**record, "next_state": 1, "point": {**point, "state": [0.6, 0.6]}}, 0, 0, None)
    assert said[0] == "[0.6, 0.6] does not lie in cell 1"
    said.clear()
    points.tell({**record, "point": {**point, "state": [0.6, 0.6], "features": [0.1001]}}, 0, 0, None)
    assert "outside those of its cell's corners" in said[0]
    said.clear()
    points.tell({**record, "point": {**point, "state": [0.6, 0.6]}}, 0, 0, {"boxes": [], "features": [[0.1]]})
    assert said == ["its boxes are not those of what was offered"]


def test_cells_of_one_width_on_an_endless_coordinate() -> None:
    """The cell of a value is the one whose edges, as they are computed, hold it."""
    edges = Endless(width=0.1, origin=0.3, cells=10, zero=4)  # from −0.1 to 0.9
    assert (len(edges), edges[0], edges[4], edges[-1]) == (11, pytest.approx(-0.1), 0.3, pytest.approx(0.9))
    for i in range(10):
        assert edges.cell(edges[i]) == i == edges.cell((edges[i] + edges[i + 1]) / 2)
        assert edges.cell(np.nextafter(edges[i + 1], -9.0)) == i
    assert [edges.cell(value) for value in (-5.0, -0.2, 0.9, 7.0)] == [0, 0, 9, 9]
