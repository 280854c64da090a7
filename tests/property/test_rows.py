"""A problem whose costs do not depend on the successor is the same, to the last bit, with rows per pair or per triplet.

But for the default ridges: the mean ‖z‖² runs over the rows, so ridges are given here (spec 9).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from tests.drawn_worlds import world_of
from tests.reference.generate import random_tables, with_forbidden, with_pair_rows
from tests.reference.tables import Tables


def twins(number: int, seed: int) -> tuple[Tables, Tables]:
    """(rows per pair, rows per triplet) of one problem."""
    rng = np.random.default_rng([seed, number, 9])
    tables = random_tables(number + 100_000 * seed, shared_features=False)
    by_pair = with_forbidden(with_pair_rows(tables, rng, 1, 0.0), rng)
    return by_pair, replace(by_pair, x={key: by_pair.x[(*key[:3], 0)] for key in by_pair.triplets()}, pair_rows=None)


def run_of(tables: Tables, seed: int, **options: Any) -> sf.Run:
    world = world_of(tables)
    return sf.run(sf.LsviNew(world.problem, ridges=(0.1, 1.0, 10.0), **options), world, 80, seed)


@pytest.mark.parametrize("options", [{}, {"exploration": "ideas"}], ids=str)
def test_runs_are_the_same_to_the_last_bit(options: dict[str, Any], seed: int) -> None:
    fewer = 0
    for number in range(4):
        one, other = (run_of(tables, seed, **options) for tables in twins(number, seed))
        assert np.array_equal(one.regret, other.regret)
        assert np.array_equal(one.violations, other.violations)
        assert np.array_equal(one.episodes_table.margin, other.episodes_table.margin)
        assert one.plan is not None
        assert other.plan is not None
        for mine, theirs in zip(one.plan.certified_sets.pairs, other.plan.certified_sets.pairs, strict=True):
            assert np.array_equal(mine, theirs)
        for mine, theirs in zip(one.plan.values.value, other.plan.values.value, strict=True):
            assert np.array_equal(mine, theirs)
        fewer += sum(y.n_edges - y.n_rows for y in one.plan.problem.graph.layers)
    assert fewer > 50


def test_step_by_step_and_compiled_runs_are_the_same(seed: int) -> None:
    for number in range(3):
        world = world_of(twins(number, seed)[0])
        runs = [sf.run(sf.LsviNew(world.problem), world, 60, seed, compiled=compiled) for compiled in (False, True)]
        assert np.array_equal(runs[0].regret, runs[1].regret)
        assert np.array_equal(runs[0].violations, runs[1].violations)


def test_forbidden_states_are_never_entered_while_the_bounds_hold(seed: int) -> None:
    """Theorem 1 with forbidden states; the control has no look-ahead, and enters some."""
    entered = held = 0
    for number in range(8):
        rng = np.random.default_rng([seed, number, 10])
        world = world_of(with_forbidden(random_tables(number + 100_000 * seed), rng, 0.8))
        careful = sf.run(sf.LsviNew(world.problem), world, 100, seed)
        if careful.cost_event:
            held += 1
            assert careful.violations.sum() == 0
        careless = sf.LsviNew(world.problem, exploration="ideas", ideas=("II", "III", "IV"))
        entered += int(sf.run(careless, world, 100, seed).violations.sum())
    assert held >= 6
    assert entered > 0
