"""The rover world is what its page says: map, soils, strain, and cells without a safe action."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput, SurefootError
from surefoot.worlds.named import rover as module
from surefoot.worlds.named.rover import DIRECTIONS, SITES, SOILS, STAY, STRAIN, Cell, Site, craters, relief

TAN_20, TAN_30 = math.tan(math.radians(20)), math.tan(math.radians(30))


@pytest.fixture(scope="module")
def world() -> sf.World:
    return sf.worlds.make("rover/testing")


def steps_to_the_bottom(cell: Cell) -> int | None:
    """Decisions after which a rover in this cell may have broken the limit whatever it did; None: it need not."""
    ground, steps = relief(), 1
    while True:
        below = ground.slide(cell)
        if any(0.1 + 0.8 * ground.roughness[c] / 20 > 0.6 for c in (cell, below)):
            return steps
        if below == cell:
            return None
        cell, steps = below, steps + 1


@pytest.mark.parametrize(
    ("size", "total", "best", "fallback_value"),
    [("testing", 2317, 3.4494, 1.0608), ("small", 9730, 6.1393, 1.6670)],
)
def test_numbers(size: str, total: int, best: float, fallback_value: float) -> None:
    world = sf.worlds.make(f"rover/{size}")
    assert sum(layer.n_edges for layer in world.problem.graph.layers) == total
    assert exact.solve(world).value == pytest.approx(best, abs=1e-4)
    assert exact.fallback_value(world) == pytest.approx(fallback_value, abs=1e-4)


# ---------------------------------------------------------------- the map


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    relief.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.cbook", None)
    with pytest.raises(SurefootError, match=r"needs the elevation map.*pip install 'surefoot\[plot\]'"):
        sf.worlds.make("rover/testing")
    monkeypatch.undo()
    assert sf.worlds.make("rover/testing").problem.horizon == 8


def test_the_map_as_the_page_gives_it() -> None:
    ground = relief()
    assert ground.elevation.shape == (344, 403)
    assert ground.spacing == pytest.approx((93, 74), abs=0.5)
    assert (ground.elevation.min(), ground.elevation.max()) == (236, 1076)
    i, j = 44, 318
    block = ground.elevation[i - 1 : i + 2, j - 1 : j + 2]
    assert ground.roughness[i, j] == pytest.approx(abs(block[1, 1] - (block.sum() - block[1, 1]) / 8))
    tangents = (
        (block[2, 1] - block[0, 1]) / (2 * ground.spacing[0]),
        (block[1, 2] - block[1, 0]) / (2 * ground.spacing[1]),
    )
    assert ground.slope[i, j] == pytest.approx(math.hypot(*tangents))
    assert ground.climb((i, j), (i + 1, j)) == pytest.approx((block[2, 1] - block[1, 1]) / ground.spacing[0])
    assert ground.climb((i, j), (i, j - 1)) == pytest.approx((block[1, 0] - block[1, 1]) / ground.spacing[1])


def test_slides_go_down_the_steepest_way_where_it_is_steeper_than_20_degrees() -> None:
    ground = relief()
    rows, columns = ground.elevation.shape
    rng = np.random.default_rng(0)
    slid = 0
    for i, j in [(0, 0), (rows - 1, columns - 1), *rng.integers((0, 0), (rows, columns), (2000, 2)).tolist()]:
        ways = [(i + di, j + dj) for di, dj in DIRECTIONS.values() if 0 <= i + di < rows and 0 <= j + dj < columns]
        falls = {to: -ground.climb((i, j), to) for to in ways}
        below = ground.slide((i, j))
        if max(falls.values()) <= TAN_20:
            assert below == (i, j)
        else:
            slid += 1
            assert falls[below] == max(falls.values())
    assert slid > 100


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_a_site_is_never_left(site: Site) -> None:
    assert site.start in site.cells
    assert relief().slide(site.start) == site.start  # the fallback stays where nothing slides
    for cell in site.cells:
        assert relief().slide(cell) in site.cells
        for action in site.actions(cell):
            assert set(site.outcomes(cell, action)) <= site.cells


# ---------------------------------------------------------------- soils, strain, reward


def test_each_soil_is_a_distribution_and_some_wheel_may_always_spin() -> None:
    site = SITES["testing"]
    for cell in site.cells:
        for action in site.actions(cell):
            outcomes = site.outcomes(cell, action)
            np.testing.assert_allclose(np.sum(list(outcomes.values()), axis=0), np.ones(len(SOILS)))
            if relief().slide(cell) == cell:
                expected = {cell} if action == STAY else {cell, site.target(cell, action[0])}
                assert set(outcomes) == expected
            else:
                assert relief().slide(cell) in outcomes


def test_strain_and_anchor(world: sf.World) -> None:
    problem, ground, h = world.problem, relief(), 3
    states = problem.states(h)
    for cell in (states[i] for i in range(len(states))):
        for direction, throttle in problem.actions(h, cell):
            di, dj = DIRECTIONS.get(direction, (0, 0))
            climb = max(0.0, ground.climb(cell, (cell[0] + di, cell[1] + dj))) / TAN_30 if throttle else 0.0
            for after in problem.successors(h, cell, (direction, throttle)):
                rough = ground.roughness[after] / 20
                expected = 0.1 + 0.6 * throttle * climb + 0.8 * rough + 0.2 * throttle * rough
                edge = problem.edge_index(h, cell, (direction, throttle), after)
                assert world.costs[h][edge, 0] == pytest.approx(expected)
    anchor = problem.graph.anchors[0]
    assert anchor is not None
    assert anchor.cost[0] == pytest.approx(0.1 + 0.8 * ground.roughness[44, 318] / 20)
    assert np.linalg.norm(STRAIN) < problem.limits[0].norm
    assert problem.stationary_costs
    assert problem.stationary_transitions


# ---------------------------------------------------------------- craters


def test_craters_by_following_every_slide() -> None:
    found = craters()
    for site in SITES.values():
        for cell in site.cells:
            assert found[cell] == (steps_to_the_bottom(cell) is not None)


def test_craters_are_the_cells_without_a_safe_action(world: sf.World) -> None:
    problem, safe = world.problem, exact.solve(world).safe_states
    for h in range(problem.horizon):
        left = problem.horizon - 1 - h
        for i in range(len(problem.states(h))):
            steps = steps_to_the_bottom(problem.states(h)[i])
            assert safe[h][i] == (steps is None or steps > left)


def test_options() -> None:
    limit = sf.worlds.make("rover/testing", bound=0.7, noise_scale=0.1, noise="uniform").problem.limits[0]
    assert (limit.bound, limit.noise) == (0.7, 0.1)
    with pytest.raises(InvalidInput, match="probabilities do not sum to one"):
        sf.worlds.make("rover/testing", soils=(0.5, 0.3, 0.1))
    with pytest.raises(InvalidInput, match="no such size: 'huge'"):
        module.rover("huge")
