"""A truth that misses the line by ζ, where it hurts: declared, nothing is violated; undeclared, the limit is.

(power has the same in tests/statistical/test_power.py.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput
from surefoot.runs.run import Run
from surefoot.worlds.truth_tables import ranges

EPISODES = 2000
CASES: dict[str, dict[str, Any]] = {
    "thermal/testing": {"mismatch": 0.03, "bound": 0.65},  # a bound that leaves room to move, see its page
    "driving/testing": {"mismatch": 0.02},
    "rover/testing": {"mismatch": 0.02},
}
CLOSED = {"thermal/testing": 0.4, "driving/testing": 0.5, "rover/testing": 0.1}  # of the gap, at least


def runs(world: sf.World, seeds: range) -> list[Run]:
    return [sf.run(sf.LsviNew(world.problem), world, EPISODES, seed) for seed in seeds]


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_declared_nothing_is_violated(name: str, seeds: range) -> None:
    world = sf.worlds.make(name, **CASES[name])
    done = runs(world, seeds)
    assert all(run.guaranteed for run in done)
    assert all(run.violations.sum() == 0 for run in done)
    assert np.median([run.gap_closed for run in done]) > CLOSED[name]  # and it is no empty promise


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_undeclared_the_limit_is_broken(name: str, seeds: range) -> None:
    world = sf.worlds.make(name, **CASES[name], declared=False)
    done = runs(world, seeds)
    assert not any(run.guaranteed for run in done)
    assert all("no safety guarantee" in run.promise for run in done)
    assert sum(bool(run.violations.any()) for run in done) >= 0.75 * len(done)


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_mismatch_that_breaks_it(name: str, seeds: range) -> None:
    """The same world without a mismatch, played by the same learner."""
    options = {**CASES[name], "mismatch": 0.0}
    world = sf.worlds.make(name, **options)
    for run in runs(world, seeds[:3]):
        assert run.violations.sum() == 0


# ---------------------------------------------------------------- what the deviation is


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_it_deviates_by_no_more_and_where_it_hurts(name: str, declared: bool) -> None:
    size = CASES[name]["mismatch"]
    world = sf.worlds.make(name, **CASES[name], declared=declared)
    problem, bound = world.problem, world.problem.limits[0].bound
    assert problem.limits[0].misspecification == (size if declared else 0.0)
    assert world.misspecified_beyond_declaration == (not declared)
    tempting = 0
    assert world.deviation is not None
    for h, layer in enumerate(problem.graph.layers):
        linear, true = layer.cost_features @ world.cost_parameters[h, 0], world.costs[h][:, 0]
        off = world.deviation[h][:, 0]
        np.testing.assert_allclose(true - linear, off, rtol=0, atol=1e-12)
        seed = np.zeros(layer.n_edges, bool)
        seed[ranges(layer.pair_ptr, layer.fallback_pairs())] = True
        anchor = problem.graph.anchors[h]
        assert anchor is not None
        known = (layer.cost_features == anchor.features[0]).all(axis=1)
        assert (off[known] == 0.0).all()
        assert (np.abs(off[~known]) == size).all()
        assert (off[seed] <= 0.0).all()
        assert (true[~seed & ~known & (linear > bound - size)] > bound).all()
        assert (off[~known & (linear <= bound - size)] == -size).all()
        tempting += int(((linear <= bound) & (true > bound)).sum())
    assert tempting > 0  # triplets that the line calls safe, and that are not
    assert exact.violations(world, exact.fallback(problem)) == (0.0, 0.0)


def test_no_mismatch_is_no_deviation() -> None:
    for name in CASES:
        world = sf.worlds.make(name, declared=False)
        assert world.deviation is None
        assert not world.misspecified_beyond_declaration


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), True, "0.1"])
def test_a_mismatch_is_a_number(bad: object) -> None:
    for name in CASES:
        with pytest.raises(InvalidInput, match="mismatch must be a number, zero or more"):
            sf.worlds.make(name, mismatch=bad)
