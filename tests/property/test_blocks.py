"""Blocks are the finest sets of columns that no row leaves, and bounds do not care for the order of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import surefoot as sf
from surefoot.estimate.blocks import cost_blocks, value_blocks
from surefoot.model.sparse_rows import Taker

ENTRIES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -0.5, 0.25])


def tables(most: int = 7) -> st.SearchStrategy[Any]:
    shape = st.tuples(st.just(6), st.integers(1, most))
    return shape.flatmap(lambda size: arrays.arrays(np.float64, size, elements=ENTRIES))


def problem(x: Any, phi: Any, **declared: Any) -> sf.Problem:
    """One state with three actions of two successors each: six rows."""
    return sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=np.array([0, 3]),
        pair_ptr=np.array([0, 2, 4, 6]),
        successors=np.array([0, 1] * 3),
        reward=np.array([0.1, 0.5, 0.9]),
        cost_features=x,
        transition_features=phi,
        fallback=np.array([0]),
        limits=sf.Limit("load", bound=0.5, noise=0.1, norm=1.0),
        **declared,
    )


def joined(dim: int, groups: Any) -> set[frozenset[int]]:
    """Merge sets of columns that meet until none do: slow, and obvious."""
    sets = [{column} for column in range(dim)]
    for group in groups:
        touched = [own for own in sets if own & set(group)]
        sets = [own for own in sets if not own & set(group)] + ([set().union(*touched)] if touched else [])
    return set(map(frozenset, sets))


def blocks_of(blocks: Any) -> set[frozenset[int]]:
    """Of the first regression."""
    shape = blocks.shape
    return {
        frozenset(shape.column[shape.slot[b] : shape.slot[b + 1]].tolist())
        for b in range(int(blocks.first[0]), int(blocks.first[1]))
    }


@given(tables(), st.sets(st.integers(0, 6), min_size=1))
def test_blocks_are_what_rows_and_the_anchor_connect(x: Any, anchored: set[int]) -> None:
    dim = x.shape[1]
    anchor = np.zeros(dim)
    anchor[[column % dim for column in anchored]] = 0.5
    found = cost_blocks(problem(scipy.sparse.csr_array(x), np.ones((6, 1)), anchor=lambda h: (anchor, 0.1)))
    assert blocks_of(found) == joined(dim, [*map(np.flatnonzero, x), np.flatnonzero(anchor)])


@given(tables())
def test_blocks_are_what_successors_of_a_pair_connect(phi: Any) -> None:
    found = value_blocks(problem(np.ones((6, 1)), scipy.sparse.csr_array(phi)))
    assert blocks_of(found) == joined(phi.shape[1], [np.flatnonzero(phi[i : i + 2].any(axis=0)) for i in (0, 2, 4)])


@given(tables(), st.lists(st.integers(0, 5), max_size=4), st.slices(6))
def test_a_table_of_rows_is_read_like_an_array(x: Any, rows: list[int], part: slice) -> None:
    table = Taker().table("x", scipy.sparse.csr_array(x))
    assert np.array_equal(table.dense(), x)
    for chosen in (np.array(rows, int), part, x[:, 0] != 0.0):
        assert np.array_equal(table[chosen].dense(), x[chosen])
    assert np.array_equal(table @ np.arange(1.0, x.shape[1] + 1), x @ np.arange(1.0, x.shape[1] + 1))


@settings(max_examples=40)
@given(tables(), st.permutations(range(7)), st.lists(st.tuples(st.integers(0, 5), st.floats(-1, 1)), max_size=12))
def test_the_order_of_columns_is_of_no_account(x: Any, order: list[int], seen: list[tuple[int, float]]) -> None:
    turned = np.ascontiguousarray(x[:, [column for column in order if column < x.shape[1]]])
    plans = []
    for features in (x, turned):
        agent = sf.LsviNew(problem(scipy.sparse.csr_array(features), np.ones((6, 1))), replan_growth=0.0)
        for edge, cost in seen:
            agent.begin_episode(0)
            agent.observe(0, 0, edge // 2, edge % 2, cost)
            agent.end_episode()
        plans.append(agent.plan.bounds)
    assert np.allclose(plans[0].upper[0], plans[1].upper[0], rtol=0, atol=1e-9, equal_nan=True)
    assert np.allclose(plans[0].lower[0], plans[1].lower[0], rtol=0, atol=1e-9, equal_nan=True)
