"""The heights worlds: a climb is what the map says, and thresholds vary as declared."""

from __future__ import annotations

import math

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.worlds.named.heights import BOUND, _grid, _rest


def test_climbs_cancel_along_every_way_back(seed: int) -> None:
    """A cost is a difference of heights: there and back is 0, staying is 0, exactly, the model's error included."""
    world = sf.worlds.make("heights/testing", seed=seed)
    layer, cost = world.problem.graph.layers[0], world.costs[0][:, 0]
    cell = layer.pair_state()
    climb = {(int(a), int(b)): float(c) for a, b, c in zip(cell, layer.successor, cost, strict=True)}
    assert all(abs(climb[a, a]) < 1e-12 for a, b in climb)
    assert max(abs(climb[a, b] + climb[b, a]) for a, b in climb) < 1e-9
    assert not world.misspecified_beyond_declaration
    assert np.abs(world.deviation[0]).max() > 0


def test_the_kernel_is_that_of_the_paper() -> None:
    """exp(−d²/8) at half a unit a cell: neighbours 0.25 apart in units of the length scale 2."""
    root = _grid(7).root
    kernel = root @ root.T
    assert kernel[0, 0] == pytest.approx(1.0)
    assert kernel[0, 1] == pytest.approx(math.exp(-(0.5**2) / 8))
    assert kernel[0, 8] == pytest.approx(math.exp(-2 * 0.5**2 / 8))
    assert _rest(_grid(7), 24) == pytest.approx(4 * math.sqrt(1 - (root[:, :24] ** 2).sum(axis=1).min()), rel=1e-3)


def test_a_varying_threshold_is_a_bound_per_step(seed: int) -> None:
    """At step h of 10 a climb of 0.25·(1 + 0.6·sin(4πh/10)) is allowed; the rest of the world is the same."""
    steady, varying = (
        sf.worlds.make("heights/testing", seed=seed, thresholds=kind) for kind in ("constant", "varying")
    )
    for h in range(10):
        allowed = BOUND * (1 + 0.6 * math.sin(4 * math.pi * h / 10))
        assert varying.problem.bounds[h, 0] == pytest.approx(allowed)
        assert steady.problem.bounds[h, 0] == BOUND
        np.testing.assert_array_equal(varying.costs[h], steady.costs[h])
        np.testing.assert_array_equal(varying.problem.graph.layers[h].reward, steady.problem.graph.layers[h].reward)
    assert sf.exact.solve(varying).value > sf.exact.fallback_value(varying)


def test_learners_of_both_lines_are_safe_there_and_earn(seed: int) -> None:
    world = sf.worlds.make("heights/testing", seed=seed)
    for name in ("lsvi-new", "sno-mdp"):
        run = sf.run(sf.agents.make(name, world.problem), world, 100, seed)
        assert run.violations.sum() == 0
        assert run.last_value > run.fallback_value


def test_unknown_thresholds_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"no such thresholds.*'rising'.*constant, varying"):
        sf.worlds.make("heights/testing", thresholds="rising")
