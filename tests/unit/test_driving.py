"""The driving world is what its page says; the inevitable-collision region, found by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput
from surefoot.worlds.named.driving import (
    ACTIONS,
    BOUND,
    CRASH,
    DRIVERS,
    ROADS,
    Road,
    State,
    collision_is_inevitable,
    driving,
)


@pytest.fixture(scope="module")
def world() -> sf.World:
    return sf.worlds.make("driving/testing")


@pytest.fixture(scope="module")
def solution(world: sf.World) -> exact.Solution:
    return exact.solve(world)


def all_states(road: Road) -> list[State]:
    """Every state on the grid, reachable or not."""
    speeds = range(0, road.top_speed + 1, 5)
    return [CRASH, *itertools.product(range(10, road.reach + 1, 10), speeds, speeds)]


def required(after: State) -> float:
    """The headway of the page, in m."""
    _, own, lead = after
    return 4.0 + 1.0 * own + 0.5 * max(0, own - lead)


def triplets(problem: sf.Problem, h: int) -> list[tuple[State, str, State]]:
    states = problem.states(h)
    return [
        (s, a, after)
        for s in (states[i] for i in range(len(states)))
        for a in problem.actions(h, s)
        for after in problem.successors(h, s, a)
    ]


@pytest.mark.parametrize(
    ("size", "total", "best", "fallback_value"),
    [("testing", 2373, 3.6003, 1.8485), ("small", 8825, 4.2602, 2.0842)],
)
def test_numbers(size: str, total: int, best: float, fallback_value: float) -> None:
    world = sf.worlds.make(f"driving/{size}")
    assert sum(layer.n_edges for layer in world.problem.graph.layers) == total
    assert exact.solve(world).value == pytest.approx(best, abs=1e-4)
    assert exact.fallback_value(world) == pytest.approx(fallback_value, abs=1e-4)


def test_speeds_change_first_and_then_both_drive_on(world: sf.World) -> None:
    road = ROADS["testing"]
    for s, a, after in triplets(world.problem, 5):
        if s == CRASH:
            assert (a, after) == ("hold", CRASH)
            continue
        own = s[1] + ACTIONS[a]
        leads = {min(max(s[2] + change, 0), road.top_speed) for change in (-10, -5, 0, 5)}
        gaps = {lead: min(s[0] + 2 * (lead - own), road.reach) for lead in leads}
        assert after in {(gap, own, lead) if gap > 0 else CRASH for lead, gap in gaps.items()}


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_each_type_of_driver_is_a_distribution(road: Road) -> None:
    for s in all_states(road):
        for a in road.actions(s):
            chances = np.array(list(road.drivers(s, a).values()))
            assert (chances >= 0).all()
            np.testing.assert_allclose(chances.sum(axis=0), np.ones(len(DRIVERS)))


@pytest.mark.parametrize("size", ["testing", "small"])
def test_the_limit_is_a_headway_and_nothing_hangs_on_a_hair(size: str) -> None:
    road = ROADS[size]
    for after in all_states(road):
        risk = float(np.dot(road.risk_parameters(), road.risk_features(after)))
        room = after[0] - required(after)
        assert risk == pytest.approx(BOUND - room / road.range)
        assert abs(room) >= 1.0
    assert np.linalg.norm(road.risk_parameters()) < sf.worlds.make(f"driving/{size}").problem.limits[0].norm


def test_true_costs_and_the_anchor(world: sf.World) -> None:
    problem = world.problem
    for s, a, after in triplets(problem, 3):
        cost = float(world.costs[3][problem.edge_index(3, s, a, after), 0])
        assert cost == pytest.approx(0.95 + (required(after) - after[0]) / 80)
    anchor = problem.graph.anchors[0]
    assert anchor is not None
    assert anchor.cost[0] == pytest.approx(0.95 + (9 - 50) / 80)
    assert problem.stationary_costs
    assert problem.stationary_transitions


def test_the_fallback_keeps_far_away(world: sf.World) -> None:
    road = ROADS["testing"]
    assert [road.fallback(s) for s in ((50, 5, 10), (50, 10, 10), (30, 5, 5), (30, 0, 5), (50, 0, 0), (40, 0, 0))] == [
        *("hold", "brake", "brake", "hold", "speed up", "hold")
    ]
    assert exact.violations(world, exact.fallback(world.problem)) == (0.0, 0.0)


# ---------------------------------------------------------------- inevitable collisions


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_inevitable_collisions_by_brute_force(road: Road) -> None:
    """The smallest set with: a crash is in it; a state is, when every action may lead into it."""
    states, lost = all_states(road), {CRASH}
    while True:
        more = {s for s in states if all(lost & set(road.drivers(s, a)) for a in road.actions(s))}
        if more == lost:
            break
        lost = more
    assert {s for s in states if collision_is_inevitable(s)} == lost
    assert len(lost) > 1


def test_the_story_of_the_page() -> None:
    road = ROADS["testing"]
    first, second = (10, 10, 5), CRASH
    assert required((20, 15, 15)) == 19.0  # at 20 m the limit is kept …
    assert road.after((20, 15, 15), "brake", 5) == first
    assert road.after(first, "brake", 0) == second
    assert collision_is_inevitable((20, 15, 15))  # … and nothing helps any more
    assert not collision_is_inevitable((30, 15, 15))


def test_what_must_end_in_a_crash_is_unsafe_as_long_as_there_is_time(world: sf.World, solution: exact.Solution) -> None:
    problem, road = world.problem, ROADS["testing"]
    to_standstill = road.top_speed // 5
    masks = [np.array([collision_is_inevitable(s) for s in problem.states(h)]) for h in range(problem.horizon)]
    for h in range(problem.horizon - to_standstill):
        assert not solution.safe_states[h][masks[h]].any()
    assert masks[3].sum() < (~solution.safe_states[3]).sum()  # the limit asks for more than not to crash


# ---------------------------------------------------------------- options


def test_options() -> None:
    limit = sf.worlds.make("driving/testing", bound=0.9, noise_scale=0.1, noise="uniform").problem.limits[0]
    assert (limit.bound, limit.noise) == (0.9, 0.1)
    with pytest.raises(InvalidInput, match="probabilities do not sum to one"):
        sf.worlds.make("driving/testing", drivers=(0.5, 0.3, 0.1))
    with pytest.raises(InvalidInput, match="no such size: 'huge'"):
        driving("huge")
