"""Bounds of the same costs in other ways: sparse or dense, some rows or all, by families; and priors by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import uncertainty_rows
from surefoot.estimate.families import families, of_norms, with_ratios
from surefoot.model.priors import largest_costs, longest_scaled, resolved

ROWS = np.array([[1.0, 2.0, 0.0, 0.0], [0.5, -1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 1.5]])
TRUE = np.array([0.2, 0.1, 0.15, -0.3])
BOX = [(0.0, 0.4), (-0.2, 0.3), (0.1, 0.5), (-0.5, 0.5)]
LIMITS: dict[str, list[sf.Limit]] = {
    "norm": [sf.Limit("a", bound=1.0, noise=0.1, norm=1.0)],
    "prior": [sf.Limit("a", bound=1.0, noise=0.1, prior=BOX)],
    "families": [
        sf.Limit("a", bound=1.0, noise=0.1, norm=0.9, prior=BOX, misspecification=0.01),
        sf.Limit("b", bound=1.0, noise=0.2, norm=1.0, features=[0, 2, 3]),
        sf.Limit("c", bound=1.0, noise=0.1, prior=[(low - 0.1, high + 0.1) for low, high in BOX]),
        sf.Limit("d", bound=1.0, noise=0.2, norm=1.0),
        sf.Limit("e", bound=1.0, noise=0.3, prior=[(low - 0.02, high - 0.02) for low, high in BOX]),
    ],
}


def made(limits: list[sf.Limit], table: Any, *, anchored: bool, stationary: bool, last: bool = False) -> sf.Problem:
    """Four actions in one state, whatever follows; of the columns only 0 and 1 ever meet."""
    features = table(ROWS)
    return sf.Problem.from_arrays(
        horizon=3,
        start=0,
        state_ptr=[np.array([0, 4])] * 2,
        pair_ptr=[np.arange(5)] * 2,
        successors=[np.zeros(4, np.int64)] * 2,
        reward=[np.zeros(4)] * 2,
        cost_features=[features, features],
        fallback=[np.zeros(1, np.int64)] * 2,
        limits=limits,
        anchor=(lambda h: (ROWS[0], (ROWS[0] @ TRUE * np.ones(len(limits))).tolist(), 0.01)) if anchored else None,
        stationary_costs=stationary,
        terminal_cost_features=table(ROWS[:1]) if last else None,
    )


def learnt(problem: sf.Problem) -> sf.LsviNew:
    """Of three actions, so that one block has no data; of step 1 fewer."""
    agent, rng = sf.LsviNew(problem, 0.1), np.random.default_rng(4)
    for k in range(24):
        for h in range(2 if k % 3 else 1):
            row = (0, 1, 2, 1)[k % 4]
            cost = TRUE @ ROWS[row] + 0.05 * rng.standard_normal(len(problem.limits))
            agent.costs.add(h, problem.graph.layers[h].cost_features[row : row + 1], cost)
    agent.replan()
    return agent


@pytest.mark.parametrize(
    ("name", "anchored", "stationary"),
    [("prior", True, False), ("families", True, True), ("families", False, False)],
)
def test_blocks_give_the_bounds_of_one_matrix(name: str, anchored: bool, stationary: bool) -> None:
    limits = LIMITS[name]
    problems = [made(limits, table, anchored=anchored, stationary=stationary) for table in (np.asarray, csr_array)]
    dense, sparse = (learnt(problem) for problem in problems)
    for h in (0, 1):
        for side in ("upper", "lower"):
            one, other = (getattr(agent.plan.bounds, side)[h] for agent in (dense, sparse))
            assert other == pytest.approx(one, rel=1e-9, abs=1e-9)
        for f in range(len(dense.costs.families)):
            lengths = [
                uncertainty_rows(
                    problem.graph.layers[h].cost_features,
                    problem.graph.anchors[h],
                    agent.costs.ellipsoids(h, agent.cost_confidence, f),
                )
                for problem, agent in zip(problems, (dense, sparse), strict=True)
            ]
            assert lengths[1] == pytest.approx(lengths[0], rel=1e-9, abs=1e-12)
    assert sparse.costs.bank.log_det() == pytest.approx(dense.costs.bank.log_det())


def test_directions_are_turned_and_turned_back() -> None:
    """Uᵀ keeps lengths, those of blocks without data as one; U takes back what it has turned."""
    agent = learnt(made(LIMITS["norm"], csr_array, anchored=False, stationary=True))
    basis = agent.costs.bank.turned(0).basis
    assert basis.directions == 4 == len(basis.turn(TRUE))
    assert np.linalg.norm(basis.turn(TRUE)) == pytest.approx(np.linalg.norm(TRUE))
    assert abs(basis.turn(TRUE)[-1]) == pytest.approx(0.3)
    weights = np.array([[2.0, 3.0, 5.0, 7.0]])
    turns = np.array([basis.turn(each) for each in np.eye(4)])  # (columns, directions), up to the order of blocks
    assert sorted(basis.back(weights, squared=True)[0]) == pytest.approx(sorted((turns**2 @ weights[0]).tolist()))
    assert sorted(basis.back(weights)[0][:-1]) == pytest.approx(sorted((turns @ weights[0])[:-1].tolist()))


def test_ridges_are_multiplied_as_given() -> None:
    problem = made(LIMITS["families"], np.asarray, anchored=False, stationary=True)
    own = families(problem)
    assert [family.members for family in own] == [(0, 4), (1,), (2,), (3,)]
    assert with_ratios(problem, None)[0].ratio == own[0].ratio
    given = with_ratios(problem, [2.0, 3.0, 4.0, 5.0, 2.0])
    assert [family.ratio for family in given] == [2.0, 3.0, 4.0, 5.0]
    for wrong, words in (
        ([2.0, 3.0, 4.0, 5.0, 2.5], "limits with the same intervals.*a, e"),
        ([2.0, 3.0, 4.0, 5.0], "one number per limit"),
        ([2.0, 3.0, 4.0, 5.0, 2.0, 1.0], "one number per limit"),
        ([2.0, 0.0, 4.0, 5.0, 2.0], "above 0"),
    ):
        with pytest.raises(InvalidInput, match=words):
            with_ratios(problem, wrong)
    (together,) = of_norms(problem)
    assert together.members == (0, 1, 2, 3, 4)
    assert [prior.length for prior in together.priors] == pytest.approx([problem.priors[j].norm for j in range(5)])


def test_a_prior_by_hand() -> None:
    found = resolved(sf.Limit("a", bound=1.0, noise=0.1, prior=[(-1.0, 3.0), (2.0, 2.0), (0.0, 0.5)]), 3, None)
    assert found.centre.tolist() == [1.0, 2.0, 0.25]
    assert found.width == pytest.approx([2.0, 0.0, 0.25])
    assert found.length == pytest.approx(math.sqrt(2.0))
    assert found.norm == pytest.approx(math.hypot(3.0, 2.0, 0.5))
    assert (found.boxed, found.outer) == (True, math.inf)
    assert found.reach == pytest.approx(math.hypot(2.0, 0.25))
    plain = resolved(sf.Limit("a", bound=1.0, noise=0.1, norm=2.0, features=[1]), 3, None)
    assert (plain.width.tolist(), plain.reach, plain.plain, plain.boxed) == ([0.0, 1.0, 0.0], 2.0, False, False)
    for table in (np.asarray, csr_array):
        graph = made(LIMITS["norm"], table, anchored=False, stationary=True).graph
        prior = resolved(LIMITS["prior"][0], 4, None)
        by_hand = np.abs(ROWS @ prior.centre) + np.abs(ROWS) @ prior.width
        assert largest_costs(graph, [prior]) == pytest.approx([by_hand.max()])
        longest = math.sqrt(5.0), 3.0
        assert largest_costs(graph, [replace(prior, outer=0.1)]) == pytest.approx([0.1 * max(longest)])
        assert longest_scaled(graph, np.array([2.0, 2.0, 0.1, 0.0])) == pytest.approx(2.0 * longest[0])


@pytest.mark.parametrize(
    ("intervals", "norm", "possible"),
    [
        ([(3.0, 9.0), (4.0, 9.0)], 5.0, True),
        ([(3.0, 9.0), (4.0, 9.0)], 4.99, False),
        ([(-9.0, -3.0), (-9.0, -4.0)], 4.99, False),
        ([(-9.0, 1.0), (4.0, 4.0)], 4.0, True),
    ],
)
def test_a_prior_leaves_something_within_its_norm(intervals: Any, norm: float, possible: bool) -> None:
    def declare() -> sf.Problem:
        limit = sf.Limit("a", bound=9.0, noise=0.1, prior=[*intervals, 0.0, 0.0], norm=norm)
        return made([limit], np.asarray, anchored=False, stationary=True)

    if possible:
        assert declare().priors[0].outer == norm
    else:
        with pytest.raises(InvalidInput, match="impossible under the norm"):
            declare()
