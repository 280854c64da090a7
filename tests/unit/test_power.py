"""The power world: its flows against pandapower's own, its fallback, and every number that its page tells."""

from __future__ import annotations

import copy
import functools
import sys
from typing import Any

import numpy as np
import pandapower
import pandapower.networks
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput, SurefootError
from surefoot.worlds.named import power_grid
from surefoot.worlds.named.power import LAYOUTS, SIZES, grid, power
from surefoot.worlds.named.power_grid import read_grid

Point = tuple[float, float, float]
CASES = list(LAYOUTS)


@functools.cache
def as_read(case: str) -> Any:
    return getattr(pandapower.networks, case)()


def network_at(size: str, point: Point) -> Any:
    """The case as pandapower reads it, at an operating point; nothing here comes from surefoot's reading of it."""
    layout = LAYOUTS[size]
    net = copy.deepcopy(as_read(layout.case))
    net.load.p_mw *= point[0]
    net.load.q_mvar *= point[0]
    for name, output in ((layout.local, point[1]), (layout.storage, point[2])):
        bus = int(net.bus.index[[str(each) == name for each in net.bus.name]][0])
        pandapower.create_sgen(net, bus, p_mw=output)
    return net


def some(points: list[Point], number: int, seed: int) -> list[Point]:
    chosen = np.random.default_rng(seed).choice(len(points), size=number, replace=False)
    return [points[int(i)] for i in chosen]


def fallback_points(size: str) -> list[Point]:
    """Operating points that the fallback can come to, following the layout alone."""
    layout = LAYOUTS[size]
    states, points = {(layout.levels // 2, layout.capacity // 2)}, set()
    for h in range(len(layout.profile)):
        steps = [(layout.fallback(h, s), s2) for s in states for s2 in layout.successors(s, layout.fallback(h, s))]
        points |= {layout.point(h, action, after) for action, after in steps}
        states = {after for _, after in steps}
    return sorted(points)


def monitored(size: str) -> list[int]:
    return [grid(size).lines.index(name) for name in LAYOUTS[size].monitored]


# ---------------------------------------------------------------- flows


@pytest.mark.parametrize("size", CASES)
def test_dc_flows_are_those_of_pandapower(size: str, seed: int) -> None:
    points = some(LAYOUTS[size].points(), 4, seed)
    flows = grid(size).dc_loading(np.array(points)) * grid(size).rating
    for point, flow in zip(points, flows, strict=True):
        net = network_at(size, point)
        pandapower.rundcpp(net)
        np.testing.assert_allclose(flow, net.res_line.p_from_mw, rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", CASES)
def test_ac_flows_are_those_of_pandapower(size: str, seed: int) -> None:
    points = some(LAYOUTS[size].points(), 2, seed)
    flows = grid(size).ac_loading(np.array(points)) * grid(size).rating
    for point, flow in zip(points, flows, strict=True):
        net = network_at(size, point)
        pandapower.runpp(net, numba=False, tolerance_mva=1e-9)
        np.testing.assert_allclose(flow, net.res_line.p_from_mw, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "ratings"),
    [
        ("testing", [40, 60, 40, 40, 60, 30, 90, 70, 80, 20, 40]),
        ("case9", [250, 250, 150, 300, 150, 250, 250, 250, 250]),
    ],
)
def test_ratings_are_those_of_the_textbooks(size: str, ratings: list[int]) -> None:
    np.testing.assert_allclose(grid(size).rating, ratings, rtol=1e-12)


# ---------------------------------------------------------------- the fallback


@pytest.mark.parametrize("size", CASES)
def test_the_fallback_keeps_every_rating_without_and_with_losses(size: str) -> None:
    points = np.array(fallback_points(size))
    assert np.abs(grid(size).dc_loading(points)).max() < 0.95
    assert np.abs(grid(size).ac_loading(points)).max() < 0.992


@pytest.mark.parametrize("size", CASES)
def test_the_fallback_runs_everything_and_comes_to_the_peak_charged(size: str) -> None:
    layout = LAYOUTS[size]
    top = layout.generation[-1]
    assert {point[1] for point in fallback_points(size)} == {top}
    worst = (layout.factor(layout.peak[0], layout.levels - 1), top, layout.discharge)
    assert worst in fallback_points(size)
    assert (*worst[:2], 0.0) not in fallback_points(size)


# ---------------------------------------------------------------- what the page tells


def test_numbers_of_the_testing_size() -> None:
    world = sf.worlds.make("power/testing")
    problem, solution = world.problem, exact.solve(world)
    assert sum(layer.n_edges for layer in problem.graph.layers) == 1408
    assert problem.horizon == 9
    assert [limit.name for limit in problem.limits][:2] == ["1-2 forward", "1-2 backward"]
    assert solution.value == pytest.approx(5.1859, abs=1e-4)
    assert exact.fallback_value(world) == pytest.approx(2.1786, abs=1e-4)
    unsafe = {h: {problem.states(h)[i] for i in np.flatnonzero(~ok)} for h, ok in enumerate(solution.safe_states)}
    empty = {(level, 0) for level in range(3)}
    assert unsafe == {h: set() for h in range(9)} | {3: empty, 5: empty, 4: empty - {(0, 0)}, 6: empty - {(0, 0)}}


def test_an_empty_storage_is_not_charged_again() -> None:
    """From 9 to 12 (layer 3) and from 15 (layer 5) on at any level, from 12 to 15 (layer 4) unless it is the lowest."""
    world = sf.worlds.make("power/testing")
    problem = world.problem

    def worst(h: int, level: int) -> float:
        steps = [
            problem.edge_index(h, (level, 0), (3, -1), after) for after in problem.successors(h, (level, 0), (3, -1))
        ]
        return float(world.costs[h][steps, 0].max())

    assert all(worst(h, level) > 1.0 for h in (3, 5, 6) for level in range(3))
    assert [worst(4, level) > 1.0 for level in range(3)] == [False, True, True]
    assert all(worst(2, level) < 1.0 for level in range(3))


@pytest.mark.parametrize("size", CASES)
def test_every_line_that_can_be_overloaded_is_monitored(size: str) -> None:
    loading = np.abs(grid(size).dc_loading(np.array(LAYOUTS[size].points())))
    others = np.delete(loading, monitored(size), axis=1)
    assert others.max() < 0.79
    assert (loading[:, monitored(size)] > 1.0).any()


@pytest.mark.parametrize("size", CASES)
def test_parameters_are_the_networks(size: str) -> None:
    world = power(size)
    network, lines = grid(size), monitored(size)
    points = LAYOUTS[size].points()
    x = np.array([LAYOUTS[size].features(network, point) for point in points])
    forward = x @ world.cost_parameters[0, ::2].T
    np.testing.assert_allclose(forward, network.dc_loading(np.array(points))[:, lines], rtol=0, atol=1e-12)
    assert np.array_equal(world.cost_parameters[:, 1::2], -world.cost_parameters[:, ::2])
    shares = np.abs(world.cost_parameters[0, ::2]) * network.rating[lines][:, None] / 100.0
    most = {"testing": [0.6] * 4, "case9": [1.1] * 4, "case30": [1 / 3, 1 / 3, 1.0, 1.0]}[size]
    assert (shares <= most).all()
    assert np.linalg.norm(most) <= LAYOUTS[size].share + 1e-12


def test_the_bill_by_hand() -> None:
    layout = LAYOUTS["testing"]
    assert layout.bill((3, 0)) == 60.0
    assert layout.bills == (-24.0, 88.0)
    assert layout.earnings((0, 0)) == pytest.approx(88 / 112)
    assert layout.earnings((3, -1)) == 0.0
    assert layout.earnings((0, 1)) == 1.0
    assert layout.worth(1) == pytest.approx(layout.earnings((2, 1)) - layout.earnings((2, 0)))
    assert layout.day_types(0, 0) == pytest.approx([0.9, 0.8, 0.5])
    assert layout.day_types(1, 2) == pytest.approx([0.1, 0.2, 0.5])
    assert layout.successors((2, 1), (0, 1)) == [(1, 0), (2, 0)]


# ---------------------------------------------------------------- AC flow


def test_ac_flow_is_declared_as_misspecification() -> None:
    size, error, from_dc = "testing", 0.0397, 0.275
    layout, network = LAYOUTS[size], grid(size)
    world = sf.worlds.make(f"power/{size}-ac")
    declared = [limit.misspecification for limit in world.problem.limits]
    assert max(declared) == pytest.approx(error, abs=1e-9)
    assert not world.misspecified_beyond_declaration
    assert world.deviation is not None
    measured = np.max([np.abs(rows).max(axis=0) for rows in world.deviation], axis=0)
    assert (measured <= declared).all()
    assert (measured >= np.array(declared) - 1e-4).all()  # not a digit too much
    points = np.array(layout.points())
    ac = network.ac_loading(points)
    off = np.abs(ac - network.dc_loading(points))[:, monitored(size)]
    assert off.max() == pytest.approx(from_dc, abs=5e-4)
    assert np.abs(np.delete(ac, monitored(size), axis=1)).max() < 0.79
    state, action = (layout.levels // 2, layout.capacity // 2), (1, 0)
    edge = world.problem.edge_index(0, state, action, state)
    truth = network.ac_loading(np.array([layout.point(0, action, state)]))[0, monitored(size)]
    np.testing.assert_allclose(world.costs[0][edge], np.stack([truth, -truth], axis=1).ravel(), atol=1e-12)


def test_ac_undeclared() -> None:
    world = sf.worlds.make("power/testing-ac", declared=False)
    assert world.misspecified_beyond_declaration
    assert {limit.misspecification for limit in world.problem.limits} == {0.0}


# ---------------------------------------------------------------- options and refusals


def test_options() -> None:
    world = power("testing", bound=1.1, noise_scale=0.02, noise="uniform", day=(0.2, 0.3, 0.5))
    assert {(limit.bound, limit.noise) for limit in world.problem.limits} == {(1.1, 0.02)}
    assert world.noise == "uniform"
    assert world.transition[0].tolist() == [0.2, 0.3, 0.5]
    off = sf.worlds.make("power/testing", mismatch=0.05)
    assert {limit.misspecification for limit in off.problem.limits} == {0.05}
    assert sf.worlds.make("power/testing", mismatch=0.05, declared=False).misspecified_beyond_declaration
    assert set(SIZES) == {name.partition("/")[2] for name in sf.worlds.names() if name.startswith("power/")}


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"no such size: 'case5'\. Choose from testing, case9, case30"):
        power("case5")
    with pytest.raises(InvalidInput, match=r"no such truth: 'hvdc'\. Choose from dc, ac"):
        power("testing", truth="hvdc")
    with pytest.raises(InvalidInput, match="mismatch must be a number, zero or more: -1"):
        sf.worlds.make("power/testing", mismatch=-1)
    with pytest.raises(InvalidInput, match=r"the truth of this world deviates by itself: mismatch 0\.1"):
        sf.worlds.make("power/testing-ac", mismatch=0.1)
    with pytest.raises(InvalidInput, match="fallback is not safe"):
        power("testing", bound=0.8)
    with pytest.raises(InvalidInput, match="must consist of lines"):
        read_grid("case57", local="1", storage="1")


def test_without_pandapower_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandapower", None)
    power_grid._case.cache_clear()
    with pytest.raises(SurefootError, match=r"needs pandapower\. Install it with: pip install 'surefoot\[power\]'"):
        read_grid("case9", local="5", storage="9")
