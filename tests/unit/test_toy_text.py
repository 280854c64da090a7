"""toy-text: Gymnasium's grids are what their page says of them."""

from typing import Any

import pytest
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput
from surefoot.worlds.adapters import OVER, WAIT
from surefoot.worlds.named.toy_text import TAXI_START, toy_text

LEFT, DOWN, RIGHT, UP = range(4)  # of the lake; the cliff has its own order


def cell(label: Any) -> int:
    return int(label[0]) if isinstance(label, tuple) else int(label)


def steps(world: sf.World, h: int) -> dict[tuple[Any, Any, Any], float]:
    """The true cost of every triplet of a layer, but those after the end."""
    problem = world.problem
    return {
        (s, a, s2): float(world.costs[h][problem.edge_index(h, s, a, s2), 0])
        for s in problem.states(h)
        for a in problem.actions(h, s)
        for s2 in problem.successors(h, s, a)
        if a != WAIT
    }


@pytest.mark.parametrize(
    ("name", "best", "fallback"),
    [
        ("frozen-lake-4x4", 1.0, 0.0),
        ("frozen-lake-8x8", 1.0, 0.0),
        ("cliff-walking", 4.0, 0.0),
        ("cliff-walking-slippery", 2.39582, 0.0),
        ("taxi", 1 + 3 / 21, 0.0),
    ],
)
def test_best_and_fallback(name: str, best: float, fallback: float) -> None:
    world = sf.worlds.make(f"toy-text/{name}")
    assert exact.solve(world).value == pytest.approx(best, abs=1e-5)
    assert exact.fallback_value(world) == fallback
    assert world.problem.graph.cost_dim == 3


# ---------------------------------------------------------------- the lake


@pytest.mark.parametrize("size", ["4x4", "8x8"])
def test_exactly_the_holes_break_the_ice(size: str) -> None:
    world = sf.worlds.make(f"toy-text/frozen-lake-{size}")
    letters = FrozenLakeEnv(map_name=size).desc.ravel()
    sags = {(letters[cell(s2)] == b"H", c) for (_, _, s2), c in steps(world, world.problem.horizon - 2).items()}
    assert min(c for hole, c in sags if hole) >= 0.86
    assert max(c for hole, c in sags if not hole) <= 0.57


def test_the_sag_on_paper() -> None:
    """Arriving at square 1 of the 4x4 lake: holes at squared distances 1, 5, 8 and 10."""
    world = sf.worlds.make("toy-text/frozen-lake-4x4")
    nearby = 1 / 2 + 1 / 6 + 1 / 9 + 1 / 11
    assert steps(world, 0)[0, RIGHT, 1] == pytest.approx(0.1 + 0.2 * nearby)
    anchor = world.problem.graph.anchors[0]
    assert anchor is not None
    assert anchor.cost[0, 0] == pytest.approx(steps(world, 0)[0, LEFT, 0])


def test_no_way_across_is_certified_at_first_and_the_goal_pays_once() -> None:
    world = sf.worlds.make("toy-text/frozen-lake-4x4")
    plan = sf.LsviNew(world.problem).plan
    certified = {0}
    for h in range(9):
        certified |= {
            s2
            for s in world.problem.states(h)
            if s in certified
            for a in world.problem.actions(h, s)
            if plan.certified(h, s, a)
            for s2 in world.problem.successors(h, s, a)
        }
    assert certified == {0, 1, 2, 3, 4}  # the shore
    problem = world.problem
    assert problem.successors(7, 15, WAIT) == (OVER,)


def test_the_slippery_lake_has_no_safe_way_across_and_doomed_squares() -> None:
    world = sf.worlds.make("toy-text/frozen-lake-4x4", slippery=True)
    solution = exact.solve(world)
    assert solution.value == 0.0
    safe = {s for s, ok in zip(world.problem.states(3), solution.safe_states[3], strict=True) if ok}
    assert safe - {5, 12, OVER} == {0, 1, 2, 3}  # the top row; in a hole, the damage is done already
    with pytest.raises(InvalidInput) as refused:
        sf.worlds.make("toy-text/frozen-lake-4x4", slippery=True, start=4)
    assert "no policy is safe from the start: state 4, limit 0.6: 0 can lead to 8, from which no policy" in str(
        refused.value
    )
    with pytest.raises(InvalidInput, match=r"state 6, limit 0.6: 0 can lead to 5 at cost 0\.90"):
        sf.worlds.make("toy-text/frozen-lake-4x4", slippery=True, start=6)


# ---------------------------------------------------------------- the cliff


def test_falls_and_the_edge_break_the_limit() -> None:
    world = sf.worlds.make("toy-text/cliff-walking")
    for (_, _, s2), c in steps(world, 18).items():
        row, column = divmod(cell(s2), 12)
        if isinstance(s2, tuple) and s2[1] == -100.0:
            assert c > 0.89
        elif row == 2 and 0 < column < 11:
            assert c >= 0.476
        else:
            assert c <= 0.409


def test_the_safe_way_is_one_row_above_the_shortest() -> None:
    world = sf.worlds.make("toy-text/cliff-walking")
    problem, solution = world.problem, exact.solve(world)
    label, visited = problem.starts[0], []
    for h in range(problem.horizon - 1):
        pair = int(solution.policy.pairs[h][problem.state_index(h, label)])
        action = problem.naming.action(problem.graph.layers[h], h, pair)
        (label,) = problem.successors(h, label, action)
        if label != OVER:
            visited.append(cell(label))
    assert len(visited) == 15  # arrivals: two up, eleven right, two down; the edge would take 13
    assert all(12 <= s < 24 for s in visited[1:-2])
    assert visited[-1] == 47


def test_where_moves_slip_the_edge_has_no_safe_action() -> None:
    world = sf.worlds.make("toy-text/cliff-walking-slippery")
    assert world.transition[0].tolist() == pytest.approx([1 / 3] * 3)
    safe = exact.solve(world).safe_states[30]
    unsafe = {cell(s) for s, ok in zip(world.problem.states(30), safe, strict=True) if not ok}
    assert unsafe == {24 + column for column in range(1, 11)}


# ---------------------------------------------------------------- the taxi


def test_wrong_stops_and_only_these_break_the_limit() -> None:
    world, env = sf.worlds.make("toy-text/taxi"), TaxiEnv()
    assert env.encode(2, 2, 2, 0) == TAXI_START
    costs: dict[bool, set[float]] = {True: set(), False: set()}
    for (s, a, _), c in steps(world, 12).items():
        ((_, _, reward, _),) = env.P[cell(s)][a]
        costs[reward == -10].add(round(c, 9))
    assert costs == {True: {0.8}, False: {0.1, 0.2}}


# ---------------------------------------------------------------- all


def test_options() -> None:
    world = sf.worlds.make("toy-text/cliff-walking", horizon=5, noise_scale=0.2, noise="uniform", start=[36, 24])
    assert world.problem.horizon == 5
    assert world.problem.limits[0].noise == 0.2
    assert world.noise == "uniform"
    assert world.problem.starts == (36, 24)
    bent = sf.worlds.make("toy-text/cliff-walking", mismatch=0.01)
    assert bent.problem.limits[0].misspecification == 0.01
    assert not bent.misspecified_beyond_declaration
    assert sf.worlds.make("toy-text/cliff-walking", mismatch=0.01, declared=False).misspecified_beyond_declaration
    with pytest.raises(InvalidInput, match=r"no such environment: 'blackjack'\. Choose from frozen-lake-4x4, "):
        toy_text("blackjack")


def test_gymnasiums_tables_are_read_from_wrapped_environments_too() -> None:
    import gymnasium

    env = gymnasium.make("CliffWalking-v1")
    keywords: dict[str, Any] = {"cost": lambda *row: 0.0, "limit": sf.Limit("cost", bound=1.0, noise=0.1, norm=1.0)}
    wrapped = sf.worlds.from_gymnasium(env, 4, **keywords)
    assert wrapped.digest == sf.worlds.from_gymnasium(CliffWalkingEnv(), 4, **keywords).digest
