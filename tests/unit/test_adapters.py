"""from_gymnasium: a table becomes a world that is that table, and what cannot become one is refused by name."""

import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput
from surefoot.worlds import from_gymnasium
from surefoot.worlds.adapters import OVER, WAIT

LIMIT = sf.Limit("cost", bound=0.5, noise=0.1, norm=2.0)
ENVIRONMENTS: dict[str, Callable[[], Any]] = {
    "lake": lambda: FrozenLakeEnv(is_slippery=False),
    "slippery lake": lambda: FrozenLakeEnv(is_slippery=True),
    "lake that slips a little": lambda: FrozenLakeEnv(is_slippery=True, success_rate=0.8),
    "cliff": CliffWalkingEnv,
    "slippery cliff": lambda: CliffWalkingEnv(is_slippery=True),
    "taxi": TaxiEnv,
    "taxi in the rain": lambda: TaxiEnv(is_rainy=True),
}


def plain(table: Any, start: Any = None) -> Any:
    return SimpleNamespace(P=table, initial_state_distrib=start)


def free(*row: object) -> float:
    return 0.0


def world_of(table: Any, horizon: int = 4, start: Any = 0, **keywords: Any) -> sf.World:
    return from_gymnasium(plain(table), horizon, start=start, **{"cost": free, "limit": LIMIT} | keywords)


# A corridor 0 – 1 – 2: right goes on with probability 0.7, the end of it pays 2 and is the end. "Back" costs 1.
CORRIDOR: dict[int, dict[str, list[tuple[float, int, float, bool]]]] = {
    0: {"right": [(0.7, 1, 0.0, False), (0.3, 0, 0.0, False)], "wait": [(1.0, 0, 0.0, False)]},
    1: {"right": [(0.7, 2, 2.0, True), (0.3, 1, 0.0, False)], "back": [(1.0, 0, -1.0, False)]},
}


# ---------------------------------------------------------------- the world is the table


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_probabilities_are_the_tables(kind: str) -> None:
    """Every pair of every layer, and the value of a policy by an induction of the test's own on the table."""
    env = ENVIRONMENTS[kind]()
    start = int(np.flatnonzero(env.initial_state_distrib)[0])
    world = from_gymnasium(env, 7, cost=free, limit=LIMIT, start=start, reward_range=(-100, 100))
    problem = world.problem
    for h, (layer, chances) in enumerate(zip(problem.graph.layers, world.probabilities, strict=True)):
        for label in problem.states(h):
            if label == OVER or problem.actions(h, label) == (WAIT,):
                continue
            state = label[0] if isinstance(label, tuple) else label
            for action in problem.actions(h, label):
                pair = problem.pair_index(h, label, action)
                edges = range(layer.pair_ptr[pair], layer.pair_ptr[pair + 1])
                found: dict[int, float] = {}
                for edge in edges:
                    after = problem.states(h + 1)[int(layer.successor[edge])]
                    after = after[0] if isinstance(after, tuple) else after
                    found[after] = found.get(after, 0.0) + chances[edge]
                expected: dict[int, float] = {}
                for p, after, *_ in env.P[state][action]:
                    expected[int(after)] = expected.get(int(after), 0.0) + p
                assert found == pytest.approx(expected)
    assert exact.fallback_value(world) == pytest.approx(value_of_first_actions(env, world, 7))


def value_of_first_actions(env: Any, world: sf.World, horizon: int) -> float:
    """The fallback's value by the table: rewards of arrivals, (r + 100)/200; 0.5 a layer when it is over."""
    problem = world.problem

    def value(h: int, label: Any, state: int, ended: bool) -> float:
        if h == horizon - 1:
            return 0.0
        if ended:
            return 0.5 + value(h + 1, OVER, state, True)
        total = 0.0
        for p, after, reward, done in env.P[state][problem.fallback_action(h, label)]:
            after, reward = int(after), float(reward)
            names = [n for n in problem.states(h + 1) if n == after or n == (after, reward)]
            total += p * ((reward + 100) / 200 + value(h + 1, names[-1], after, done))
        return total

    start = problem.starts[0]
    return value(0, start, start, False)


def test_an_irregular_table_is_mixed_with_the_uniform_one() -> None:
    table = {
        0: {"a": [(0.5, 0, 0.0, False), (0.5, 1, 0.0, False)], "b": [(0.9, 1, 0.0, False), (0.1, 0, 0.0, False)]},
        1: {"a": [(1.0, 1, 0.0, False)], "b": [(1.0, 0, 1.0, True)]},
    }
    world = world_of(table)
    assert world.transition[0].tolist() == [1.0, 0.0]
    edge = world.problem.edge_index(0, 0, "b", 1)
    assert world.problem.graph.layers[0].transition_features[edge].tolist() == [0.9, 0.5]
    assert world.probabilities[0][edge] == 0.9


def test_a_row_of_probability_zero_is_declared() -> None:
    table = {0: {"a": [(1.0, 0, 0.0, False), (0.0, 1, 0.0, False)]}, 1: {"a": [(1.0, 1, 0.0, False)]}}
    assert world_of(table).problem.successors(0, 0, "a") == (0, 1)


# ---------------------------------------------------------------- states, rewards, the end


def test_after_the_end_nothing_happens_and_nothing_is_measured() -> None:
    world = world_of(CORRIDOR, horizon=5, cost=lambda *row: 0.3, fallback=lambda h, s: "right")
    problem = world.problem
    for label in (2, OVER):
        assert problem.actions(3, label) == (WAIT,)
        assert problem.successors(3, label, WAIT) == (OVER,)
        assert world.costs[3][problem.edge_index(3, label, WAIT, OVER)] == 0.0
        assert problem.fallback_action(3, label) == WAIT
    assert world.costs[0].ravel().tolist() == pytest.approx([0.3] * 3)


def test_a_start_that_is_also_an_end() -> None:
    table = {0: {"go": [(1.0, 1, 0.0, False)]}, 1: {"back": [(1.0, 0, 1.0, True)]}}
    problem = world_of(table, horizon=4).problem
    assert [list(problem.states(h)) for h in range(4)] == [[0], [1], [(0, 1.0)], [OVER]]


def test_an_arrival_that_may_be_the_end_or_not() -> None:
    table = {0: {"go": [(0.5, 0, 1.0, True), (0.5, 0, 1.0, False)]}}
    assert set(world_of(table).problem.states(1)) == {(0, 1.0, True), (0, 1.0, False)}


def test_rewards_beyond_the_limit_do_not_stretch_the_scale() -> None:
    """Rewards are -1 and, over, 0; a fall's -100 counts only where falls are within the limit."""
    strict = from_gymnasium(CliffWalkingEnv(), 4, cost=lambda s, a, s2, reward: float(reward == -100), limit=LIMIT)
    assert strict.problem.successors(0, 36, 1) == ((36, -100.0),)
    assert set(strict.problem.graph.layers[2].reward.tolist()) == {0.0}
    lax = from_gymnasium(CliffWalkingEnv(), 4, cost=free, limit=LIMIT)
    assert {round(r, 9) for r in lax.problem.graph.layers[2].reward.tolist()} == {0.0, 0.99}


def test_tables_may_be_lists_and_hold_numpy_numbers() -> None:
    table = [[[(np.float64(1.0), np.int64(1), np.int64(0), np.bool_(False))]], [[(1.0, 0, 0, False)]]]
    problem = world_of(table).problem
    assert [list(problem.states(h)) for h in range(4)] == [[0], [1], [0], [1]]
    assert problem.actions(0, 0) == (0,)


def test_starts_are_the_environments_own_or_given() -> None:
    table = {s: {0: [(1.0, s, 0.0, False)]} for s in range(4)}
    world = from_gymnasium(plain(table, [0.5, 0.0, 0.5, 0.0]), 3, cost=free, limit=LIMIT)
    assert world.problem.starts == (0, 2)
    assert world_of(table, start=[3, 1]).problem.starts == (3, 1)
    assert len(from_gymnasium(TaxiEnv(), 2, cost=free, limit=LIMIT).problem.starts) == 300


# ---------------------------------------------------------------- costs


def test_the_default_features_leave_offset_and_scale_open() -> None:
    world = world_of(CORRIDOR, cost=lambda s, a, s2, r: 0.1 * s2)
    edge = world.problem.edge_index(0, 0, "right", 1)
    assert world.problem.graph.layers[0].cost_features[edge].tolist() == [1.0, 0.1]
    assert world.cost_parameters[0].ravel().tolist() == pytest.approx([0.0, 1.0])


def test_parameters_are_found_from_the_features() -> None:
    world = world_of(
        CORRIDOR,
        cost=lambda s, a, s2, r: 0.2 + 0.1 * s2,
        cost_features=lambda s, a, s2, r: (2.0, s2),
        anchor=((2.0, 0.0), 0.2),
    )
    assert world.cost_parameters[0].ravel().tolist() == pytest.approx([0.1, 0.1])
    assert world.problem.graph.anchors[0] is not None


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"cost": lambda s, a, s2, r: 0.1 * s2, "cost_features": lambda s, a, s2, r: (1.0,)},
            "cost is not linear in cost_features: state 1, action 'right', next state 2: cost 0.2, the nearest",
        ),
        ({"cost": lambda *row: float("nan")}, "cost is not finite: state 0, action 'right', next state 1: nan"),
        ({"cost": lambda *row: "much"}, "cost must be a number: state 0, action 'right', next state 1: 'much'"),
        ({"cost_features": lambda *row: ()}, "cost feature must be a list of numbers: state 0"),
        ({"limit": 0.5}, "limit must be a Limit: 0.5"),
        ({"horizon": 1}, "horizon is below 2: 1"),
        ({"start": 5}, "the table has no such state: 5"),
        ({"start": []}, "a world needs a start state"),
        ({"start": None}, "the environment does not say where it starts"),
        ({"reward_range": (1.0, 0.0)}, "reward_range must be (low, high): (1.0, 0.0)"),
        ({"anchor": ((1.0, 0.0), 0.2)}, "anchor is not true: anchor of step 0"),
        ({"noise": "loud"}, "no such noise: 'loud'"),
        ({"fallback": lambda h, s: "sleep"}, "fallback's action does not exist: step 0, state 0: fallback returns"),
    ],
)
def test_what_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        world_of(CORRIDOR, **keywords)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0.5, 0, 0.0, False)], "probabilities of the table do not sum to one: state 0, action 'go': sum 0.5"),
        ([], "probabilities of the table do not sum to one: state 0, action 'go': sum 0"),
        ([(1.0, 0, 0.0)], "a row of the table must be (probability, next state, reward, terminated): state 0"),
        ([("x", 0, 0.0, False)], "a row of the table must be (probability, next state, reward, terminated): state 0"),
        ([(-1.0, 0, 0.0, False), (2.0, 0, 0.0, False)], "a row of the table is impossible: state 0, action 'go'"),
        ([(float("nan"), 0, 0.0, False)], "a row of the table is impossible"),
        ([(1.0, 0, float("inf"), False)], "a row of the table is impossible"),
        ([(1.0, 7, 0.0, False)], "the table has no such state: 7"),
        ([(1.0, [7], 0.0, False)], "label cannot be used: state 0, action 'go'"),
    ],
)
def test_a_broken_table_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        world_of({0: {"go": rows}})
    assert message in str(refused.value)


def test_an_environment_without_a_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the environment has no transition table: object\.P is None"):
        from_gymnasium(object(), 3, cost=free, limit=LIMIT)


# ---------------------------------------------------------------- the fallback


def test_the_fallback_found_is_the_most_cautious() -> None:
    table = {
        s: {a: [(1.0, min(max(s + a, 0), 4), float(s), False)] for a in (1, 0, -1)} for s in range(5)
    }  # deeper to the right; the start is in the middle
    problem = world_of(table, start=2, horizon=5, cost=lambda s, a, s2, r: 0.1 * s2).problem
    state, path = 2, []
    for h in range(4):
        action = problem.fallback_action(h, (state, float(path[-1])) if path else state)
        path.append(state)
        state = min(max(state + action, 0), 4)
    assert path == [2, 1, 0, 0]


def test_it_looks_ahead() -> None:
    """The cheapest first step leads where the next one breaks the limit, and is not taken."""
    table = {
        0: {"cheap": [(1.0, 1, 0.0, False)], "dear": [(1.0, 2, 0.0, False)]},
        1: {"on": [(1.0, 3, 0.0, False)]},
        2: {"on": [(1.0, 2, 0.0, False)]},
        3: {"on": [(1.0, 3, 0.0, False)]},
    }
    cost = {1: 0.1, 2: 0.4, 3: 0.9}
    keywords = {"cost": lambda s, a, s2, r: cost[s2]}
    assert world_of(table, horizon=3, **keywords).problem.fallback_action(0, 0) == "dear"
    assert world_of(table, horizon=2, **keywords).problem.fallback_action(0, 0) == "cheap"  # nothing follows


def test_where_no_policy_is_safe_the_state_and_the_reason_are_told() -> None:
    table = {
        0: {"cheap": [(0.5, 0, 0.0, False), (0.5, 1, 0.0, False)], "bad": [(1.0, 3, 0.0, False)]},
        1: {"on": [(1.0, 3, 0.0, False)]},
        3: {"on": [(1.0, 3, 0.0, False)]},
    }
    with pytest.raises(InvalidInput) as refused:
        world_of(table, cost=lambda s, a, s2, r: 0.3 * s2)
    assert str(refused.value) == (
        "no policy is safe from the start: state 0, limit 0.5: 'cheap' can lead to 1, from which no policy is safe; "
        "'bad' can lead to 3 at cost 0.9. There is no fallback to start from: choose another start, a shorter horizon "
        "or another limit."
    )


def test_a_fallback_that_is_given_is_checked_against_the_truth() -> None:
    with pytest.raises(InvalidInput, match="fallback is not safe: step 1, state 1"):
        world_of(CORRIDOR, cost=lambda s, a, s2, r: 0.3 * s2, fallback=lambda h, s: "right")


# ---------------------------------------------------------------- the example

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_gridworld.py"


def test_own_gridworld_in_under_40_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 40
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    first, peat, deep = capsys.readouterr().out.splitlines()
    assert first == "every step safe with probability ≥ 0.95"
    assert peat == "peat per day: 0.00 at first, 8.75 now, 8.75 at best"
    assert deep == "steps too deep: 0"
