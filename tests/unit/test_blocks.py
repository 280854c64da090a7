"""Blocks of sparse features: which columns belong together, and what the data say block by block, by hand."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.estimate import blocks as blocks_module
from surefoot.estimate.bank import Bank
from surefoot.estimate.blocks import Blocks, cost_blocks, value_blocks
from surefoot.estimate.costs import bound_rows
from surefoot.estimate.ellipsoids import cost_ellipsoids
from surefoot.estimate.update import GRAM, GRAM_LOW
from surefoot.model.sparse_rows import Taker
from tests import banks
from tests.banks import family_of, spread_of
from tests.unit.test_cost_bounds import extreme, hand_confidence, matrix, most_of_the_intersection

P = 0.05
LIMIT = sf.Limit("load", bound=0.5, noise=0.1, norm=2.0)


def corridor(x: Any, phi: Any = None, *, horizon: int = 2, **declared: Any) -> sf.Problem:
    """One state; an action per row of x, the first is the fallback."""
    n = x[0].shape[0] if isinstance(x, list) else x.shape[0]
    return sf.Problem.from_arrays(
        horizon=horizon,
        start=0,
        state_ptr=np.array([0, n]),
        pair_ptr=np.arange(n + 1),
        successors=np.zeros(n, np.int64),
        reward=np.linspace(0.0, 1.0, n),
        cost_features=x,
        transition_features=np.ones((n, 1)) if phi is None else phi,
        fallback=np.array([0]),
        limits=LIMIT,
        **declared,
    )


def sets(blocks: Blocks, r: int) -> set[frozenset[int]]:
    """The columns of each block of a regression."""
    shape = blocks.shape
    found = {
        frozenset(shape.column[shape.slot[b] : shape.slot[b + 1]].tolist())
        for b in range(int(blocks.first[r]), int(blocks.first[r + 1]))
    }
    for own in found:
        assert len({int(shape.block[r, column]) for column in own}) == 1
        assert sorted(int(shape.place[r, column]) for column in own) == list(range(len(own)))
    return found


def csr(rows: Any) -> Any:
    return scipy.sparse.csr_array(np.array(rows, float))


# --- which columns belong together ----------------------------------------------------------------------


def test_columns_of_one_row_belong_together() -> None:
    x = csr([[1, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 1, 0], [0, 0, 0, 0, 0, 0]])
    blocks = cost_blocks(corridor(x))
    assert sets(blocks, 0) == {frozenset({0, 2, 4}), frozenset({1}), frozenset({3}), frozenset({5})}
    assert sets(blocks, 1) == {frozenset({i}) for i in range(6)}  # the last layer has no costs
    assert blocks.shape.size.tolist() == [1, 1, 1, 3] + [1] * 6  # sorted by size, so that sizes are stacks
    assert blocks.largest == 3


def test_an_anchor_ties_its_columns() -> None:
    x = csr(np.eye(4))
    anchored = corridor(x, anchor=lambda h: ([1.0, 0.0, 0.0, 1.0], 0.1))
    assert sets(cost_blocks(anchored), 0) == {frozenset({0, 3}), frozenset({1}), frozenset({2})}


def test_layers_are_apart_unless_costs_are_stationary() -> None:
    x = [csr([[1, 1, 0], [0, 0, 1]]), csr([[0, 1, 1], [1, 0, 0]])]
    apart = cost_blocks(corridor(x, horizon=3))
    assert sets(apart, 0) == {frozenset({0, 1}), frozenset({2})}
    assert sets(apart, 1) == {frozenset({1, 2}), frozenset({0})}
    assert sets(cost_blocks(corridor(x, horizon=3, stationary_costs=True)), 0) == {frozenset({0, 1, 2})}


def test_successors_of_one_pair_belong_together() -> None:
    """φ_V adds them up."""
    problem = sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=np.array([0, 3]),
        pair_ptr=np.array([0, 2, 3, 5]),
        successors=np.array([0, 1, 0, 0, 1]),
        reward=np.zeros(3),
        cost_features=np.ones((5, 1)),
        transition_features=scipy.sparse.eye_array(5).tocsr(),
        fallback=np.array([0]),
        limits=LIMIT,
    )
    assert sets(value_blocks(problem), 0) == {frozenset({0, 1}), frozenset({2}), frozenset({3, 4})}


def test_columns_that_all_meet_are_refused_before_memory_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "MOST_ENTRIES", 30)
    problem = corridor(csr(np.ones((2, 6))))
    with pytest.raises(InvalidInput, match=r"cost_features tie too many columns together.*6 of 6 columns in one block"):
        cost_blocks(problem)

    monkeypatch.setattr(blocks_module, "MOST_ENTRIES", 11)  # two regressions of six columns
    with pytest.raises(InvalidInput, match=r"cost_features have too many columns.*6 columns in 2 regressions"):
        cost_blocks(problem)


# --- what is kept ---------------------------------------------------------------------------------------


def test_a_bank_of_blocks_keeps_what_a_dense_one_keeps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 9)) * (rng.random((40, 9)) < 0.25)
    blocks = cost_blocks(corridor(csr(x)))
    ours, dense = Bank(blocks, 2, 0.3), banks.dense_bank(2, 9, 2, 0.3)
    shape = blocks.shape
    for e in rng.integers(40, size=300):
        y = rng.normal(size=2)
        dense.add(0, 0, x[e].copy(), y)
        used = np.flatnonzero(x[e])
        b = -1 if len(used) == 0 else int(shape.block[0, used[0]])
        z = np.zeros(blocks.largest)
        z[shape.place[0, used]] = x[e, used]
        ours.add(0, b, z, y)
    full, low = np.zeros((9, 9)), np.zeros((9, 9))
    for b in range(int(blocks.first[1])):
        own = shape.column[shape.slot[b] : shape.slot[b + 1]]
        entries = slice(shape.entry[b], shape.entry[b + 1])
        full[np.ix_(own, own)] = ours.state.squares[GRAM, entries].reshape(len(own), -1)
        low[np.ix_(own, own)] = ours.state.squares[GRAM_LOW, entries].reshape(len(own), -1)
    assert np.array_equal(full, np.tril(banks.gram(dense)[0]))
    assert np.array_equal(low, np.tril(banks.gram_low(dense)[0]))
    assert np.array_equal(ours.state.targets[0, :, :9], banks.targets(dense)[0][:, shape.column[:9]])
    assert np.allclose(ours.log_det(), dense.log_det(), rtol=0, atol=1e-11)
    running = ours.log_det()
    ours.refresh()
    assert np.allclose(ours.log_det(), running, rtol=0, atol=1e-11)
    assert ours.rows.tolist() == [300, 0]
    assert ours.has_grown(running - 0.2, 0.1)
    assert not ours.has_grown(running, 0.1)


def test_a_row_of_zeros_is_counted_and_says_nothing() -> None:
    agent = sf.LsviNew(corridor(csr([[0, 0], [0, 1]])))
    agent.begin_episode(0)
    agent.observe(0, 0, 0, 0, 0.7)
    agent.end_episode()
    bank = agent.costs.bank
    assert bank.rows.tolist() == [1, 0]
    assert not any(array.any() for array in (bank.state.squares[GRAM], bank.state.targets, bank.state.counts))
    assert agent.plan.upper(0, 0, 0, 0) == 0.0


# --- counts → bounds ------------------------------------------------------------------------------------


def test_one_hot_bounds_are_counts_and_means() -> None:
    """Five costs of 0.4 in column 0, two of −0.1 in column 1, none in column 2, of d = 3; one ridge λ = 0.5.

    G = diag(5, 2, 0), b = (2, −0.2, 0), log det(G + λI) − 3 log λ = log(11·5·1), R = σ√(log 55 + 2 log(H/p)), L = 2.
    """
    agent = sf.LsviNew(corridor(csr(np.eye(3))), P, ridges=[0.5], replan_growth=0.0)
    for action, cost in [(0, 0.4)] * 5 + [(1, -0.1)] * 2:
        agent.begin_episode(0)
        agent.observe(0, 0, action, 0, cost)
        agent.end_episode()
    R, e, b = 0.1 * math.sqrt(math.log(55.0) + 2.0 * math.log(2 / P)), (5.0, 2.0, 0.0), (2.0, -0.2, 0.0)
    for action in range(3):
        upper, lower = 2.0, -2.0
        for multiple in (0.01, 0.1, 1.0, 10.0):
            c = multiple * (R / 2.0) ** 2
            D = [x * x + c * (x + 0.5) for x in e]
            square = R * R + c * (4.0 - sum(y * y / d for y, d in zip(b, D, strict=True)))
            half = math.sqrt(square * (e[action] + 0.5) / D[action])
            centre = e[action] * b[action] / D[action]
            upper, lower = min(upper, centre + half), max(lower, centre - half)
        assert agent.plan.upper(0, 0, action, 0)[0] == pytest.approx(upper, rel=0, abs=1e-12)
        assert agent.plan.lower(0, 0, action, 0)[0] == pytest.approx(lower, rel=0, abs=1e-12)
    assert agent.plan.upper(0, 0, 2, 0)[0] == pytest.approx(2.0, abs=1e-12)  # nothing was seen of it: L‖x‖ alone


def test_a_nan_certifies_nothing() -> None:
    agent = sf.LsviNew(corridor(csr(np.eye(3))), P, replan_growth=0.0)
    for _ in range(200):
        agent.begin_episode(0)
        agent.observe(0, 0, 1, 0, 0.1)
        agent.end_episode()
    assert agent.plan.certified(0, 0, 1)
    agent.costs.bank.state.targets[0] = np.nan
    agent.replan()
    assert not agent.plan.consistent
    assert not agent.plan.certified(0, 0, 1)


# --- rounding never certifies ---------------------------------------------------------------------------


def test_rounding_never_lowers_an_upper_bound(seed: int) -> None:
    """Two blocks of extreme matrices, against 50 digits of the whole block-diagonal one."""
    rng = np.random.default_rng([seed, 31])
    widened = 0
    with mpmath.workdps(50):
        for _ in range(60):
            (gram, target, x, ridge, ratio, limit), (other, other_target, *_, wide) = extreme(rng), extreme(rng)
            d, dim = len(gram), len(gram) + len(other)
            rows = np.zeros((2, dim))
            rows[0, :d], rows[1, d:] = x, 1.0
            rows[0, :d][rows[0, :d] == 0.0] = 1e-300  # every column of a block has an entry
            blocks = cost_blocks(corridor(csr(rows)))
            bank = Bank(blocks, 1, ridge)
            whole, targets = np.zeros((dim, dim)), np.concatenate([target, other_target])
            whole[:d, :d], whole[d:, d:] = gram, other
            for b in (int(blocks.shape.block[0, 0]), int(blocks.shape.block[0, d])):
                own = blocks.shape.column[blocks.shape.slot[b] : blocks.shape.slot[b + 1]]
                entries = slice(blocks.shape.entry[b], blocks.shape.entry[b + 1])
                bank.state.squares[GRAM, entries] = whole[np.ix_(own, own)].reshape(-1)
                bank.state.targets[0, 0, blocks.shape.slot[b] : blocks.shape.slot[b + 1]] = targets[own]
                bank.state.counts[b] = 1
            limit = sf.Limit(
                "heat", bound=1.0, noise=max(limit.noise, wide.noise), norm=math.hypot(limit.norm, wide.norm)
            )
            table, exact = (
                Taker().table("x", scipy.sparse.csr_array(rows[:1])),
                most_of_the_intersection(matrix(whole), matrix(targets), matrix(rows[0]), ridge, limit, 5.0),
            )
            upper, bare = (
                float(bound_rows(table, None, known)[0][0, 0])
                for known in (
                    cost_ellipsoids(
                        bank.turned(0),
                        spread_of(1.0),
                        family_of((limit,), len(targets), float(np.linalg.norm(x))),
                        hand_confidence((ridge,), 5.0, guard=guard),
                    )
                    for guard in (True, False)
                )
            )
            assert mpmath.mpf(upper) >= exact, (ratio, float(exact), upper)
            widened += upper > bare
    assert widened > 30  # the guard is there; that it must be: test_cost_bounds
