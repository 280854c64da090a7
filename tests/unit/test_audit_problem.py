"""What the audit's own reader refuses: a declaration on which bounds would rest that nobody can have declared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import surefoot as sf
from surefoot.audits.declaration import read_problem
from surefoot.audits.problem import Names, Unreadable
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


def table(**changed: Any) -> Edit:
    return lambda document: document["layers"][0]["cost_features"]["sparse"].update(changed)


MADE: dict[str, Callable[[], sf.Problem]] = {
    "plain": lambda: kettle().problem,
    "rays": declared,
    "sparse": sparse,
    "anchored": anchored,
    "growing": walk,
}
REFUSED: list[tuple[str, Edit]] = [
    ("plain", lambda d: d.update(version=4)),
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
    ("rays", lambda d: d.update(version=3)),
    ("rays", lambda d: d["rays"].pop()),
    ("rays", rays(0, center=[-1])),
    ("rays", rays(0, center=[-2, 0])),
    ("rays", rays(0, center=[-1, 2])),
    ("rays", rays(0, center=[-1, 1])),  # itself, which has an intensity
    ("rays", rays(0, center=[1, -1])),  # the fallback's action
    ("rays", rays(0, cost_features=[[1.0, 0.0]])),
    ("rays", rays(0, cost_features=[[1.0, 0.1], [1.0, 0.0]])),  # of an action that has none
    ("rays", rays(0, center=[-1, 0], cost_features=[[1.0, 0.0], [1.0, float("inf")]])),
    ("sparse", table(indptr=[0, 2, 5])),
    ("sparse", table(indptr=[0, 3, 2])),
    ("sparse", table(indptr=[-1, 2, 4])),
    ("sparse", table(columns=[1, 2, 0, 3])),
    ("sparse", table(columns=[1, 2, -1, 1])),
    ("sparse", table(columns=[1, 1, 0, 1])),
    ("sparse", table(columns=[2, 1, 0, 1])),
    ("sparse", table(values=[3.0, 4.0, 1.0])),
    ("sparse", table(dim=0)),
    ("sparse", table(dim=True)),
    ("sparse", table(dim=1 << 40)),
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
    path = MADE[name]().save(tmp_path / "problem.json")
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
