"""What must hold of exact values on every world, small ones drawn by hypothesis."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import surefoot as sf
from surefoot import exact
from tests.made_worlds import BOUND, hand_world, random_world, visits_of

Table = dict[tuple[int, Any], dict[Any, tuple[float, dict[Any, tuple[float, float]]]]]
Terminal = dict[Any, tuple[float, float | None]]

REWARDS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
COSTS = st.sampled_from([0.0, 0.0, BOUND, BOUND + 5e-10, BOUND + 2e-9, 1.0])
HOME = 0  # the fallback's state in every layer; its action 0 is safe and stays at home


@st.composite
def tables(draw: st.DrawFn, max_actions: int = 3) -> tuple[Table, Terminal]:
    """A world's numbers: up to 4 layers of up to 3 states, all of them reached by declared successors."""
    horizon = draw(st.integers(2, 4))
    table: Table = {}
    here = [HOME]
    for h in range(horizon - 1):
        size = draw(st.integers(1, 3))
        found = {HOME}
        for s in here:
            table[h, s] = {}
            for a in range(draw(st.integers(1, max_actions))):
                home = s == HOME and a == 0
                after = {HOME} if home else draw(st.sets(st.integers(0, size - 1), min_size=1))
                shares = [draw(st.integers(0, 4)) for _ in after]
                shares[0] += sum(shares) == 0
                costs = [0.0 if home else draw(COSTS) for _ in after]
                parts = [share / sum(shares) for share in shares]
                edges = dict(zip(sorted(after), zip(parts, costs, strict=True), strict=True))
                table[h, s][a] = (draw(REWARDS), edges)
                found |= after
        here = sorted(found)
    terminal = {s: (draw(REWARDS), draw(st.none() | COSTS) if s != HOME else 0.0) for s in here}
    return table, terminal


worlds = st.builds(
    lambda seed, **sizes: random_world(np.random.default_rng(seed), **sizes),
    seed=st.integers(0, 2**32 - 1),
    horizon=st.integers(2, 6),
    states=st.integers(1, 8),
    actions=st.integers(1, 4),
    successors=st.integers(1, 4),
    limits=st.integers(1, 3),
    unsafe=st.sampled_from([0.0, 0.05, 0.3]),
    terminal_costs=st.booleans(),
)


def walk(table: Table, terminal: Terminal, policy: dict[Any, Any], h: int, s: Any) -> tuple[float, bool]:
    """Value and safety of a policy by following every branch with P > 0; nothing shared, nothing clever."""
    if (h, s) not in table:
        reward, cost = terminal[s]
        return reward, cost is None or cost <= BOUND + 1e-9
    value, edges = table[h, s][policy[h, s]]
    safe = True
    for s2, (p, cost) in edges.items():
        if p > 0:
            below, fine = walk(table, terminal, policy, h + 1, s2)
            value += p * below
            safe &= fine and cost <= BOUND + 1e-9
    return value, safe


@given(tables(max_actions=2))
def test_no_policy_of_all_that_exist_is_safe_and_better(drawn: tuple[Table, Terminal]) -> None:
    table, terminal = drawn  # at most 7 states of 2 actions: 128 policies
    world = hand_world(table, terminal, start=HOME)
    solution = exact.solve(world)
    best: dict[Any, float] = {}
    for choice in itertools.product(*(list(actions) for actions in table.values())):
        policy = dict(zip(table, choice, strict=True))
        for h, s in table:
            value, safe = walk(table, terminal, policy, h, s)
            if safe:
                best[h, s] = max(value, best.get((h, s), -1.0))
        value, safe = walk(table, terminal, policy, 0, HOME)
        assert np.isclose(exact.evaluate(world, policy), value, rtol=0, atol=1e-13)
        assert (exact.violations(world, policy).expected == 0) == safe
    for h, s in table:
        i = world.problem.state_index(h, s)
        assert solution.safe_states[h][i] == ((h, s) in best)
        if (h, s) in best:
            assert np.isclose(solution.values[h][i], best[h, s], rtol=0, atol=1e-13)


@given(tables(), st.randoms(use_true_random=False))
def test_order_and_names_change_nothing(drawn: tuple[Table, Terminal], random: Any) -> None:
    table, terminal = drawn

    def shuffled(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
        items = list(mapping.items())
        random.shuffle(items)
        return items

    other: Table = {
        (h, f"state {s}"): {
            ("action", a): (reward, {f"state {s2}": edge for s2, edge in shuffled(edges)})
            for a, (reward, edges) in shuffled(actions)
        }
        for (h, s), actions in table.items()
    }
    fallback = {(h, f"state {HOME}"): ("action", 0) for h, s in table if s == HOME}
    ends = {f"state {s}": row for s, row in terminal.items()}
    one = hand_world(table, terminal, start=HOME)
    two = hand_world(other, ends, start=f"state {HOME}", fallback=fallback)
    a, b = exact.solve(one), exact.solve(two)
    assert np.isclose(a.value, b.value, rtol=0, atol=1e-13)
    for h, s in table:
        i, j = one.problem.state_index(h, s), two.problem.state_index(h, f"state {s}")
        assert a.safe_states[h][i] == b.safe_states[h][j]
        assert np.isclose(a.values[h][i], b.values[h][j], rtol=0, atol=1e-13, equal_nan=True)
        for action in table[h, s]:
            p = one.problem.pair_index(h, s, action)
            q = two.problem.pair_index(h, f"state {s}", ("action", action))
            assert a.safe_actions[h][p] == b.safe_actions[h][q]


@given(worlds)
def test_pruning_changes_no_value(world: sf.World) -> None:
    pruned = sf.World(world.problem.pruned(), world.transition, world.cost_parameters)
    before, after = exact.solve(world), exact.solve(pruned)
    assert before.start_values.tolist() == after.start_values.tolist()
    assert exact.fallback_value(world) == exact.fallback_value(pruned)
    for h, kept in enumerate(world.problem.graph.reachable):
        assert before.safe_states[h][kept].tolist() == after.safe_states[h].tolist()
        assert np.array_equal(before.values[h][kept], after.values[h], equal_nan=True)


@given(worlds)
def test_the_sets_alone_are_those_of_the_solution(world: sf.World) -> None:
    solution = exact.solve(world)
    states, pairs = exact.safe_sets(world)
    assert all(map(np.array_equal, states, solution.safe_states))
    assert all(map(np.array_equal, pairs, solution.safe_actions))


@given(worlds)
def test_the_best_policy_is_worth_its_value_to_the_last_bit(world: sf.World) -> None:
    solution = exact.solve(world)
    for start, value in zip(world.problem.starts, solution.start_values.tolist(), strict=True):
        assert exact.evaluate(world, solution.policy, start) == value
        assert exact.violations(world, solution.policy, start) == (0.0, 0.0)
    again = exact.evaluate_all(world, solution.policy)
    for value, safe, best in zip(again, solution.safe_states, solution.values, strict=True):
        assert np.array_equal(value[safe], best[safe])


@given(worlds, st.integers(0, 2**32 - 1))
def test_a_safe_policy_is_never_worth_more_not_even_by_rounding(world: sf.World, seed: int) -> None:
    solution, rng = exact.solve(world), np.random.default_rng(seed)
    pairs = tuple(
        _random_pairs(rng, layer.state_ptr, safe)
        for layer, safe in zip(world.problem.graph.layers, solution.safe_actions, strict=True)
    )
    for start, best in zip(world.problem.starts, solution.start_values.tolist(), strict=True):
        assert exact.evaluate(world, pairs, start) <= best
    assert exact.fallback_value(world) <= solution.value


@given(worlds, st.integers(0, 2**32 - 1))
def test_visits_times_rewards_are_the_value(world: sf.World, seed: int) -> None:
    rng, graph = np.random.default_rng(seed), world.problem.graph
    chances = tuple(_random_chances(rng, layer.state_ptr) for layer in graph.layers)
    for number, start in zip(graph.starts.tolist(), world.problem.starts, strict=True):
        visits = visits_of(world, chances, number)
        assert np.allclose([row.sum() for row in visits], 1.0, rtol=0, atol=1e-12)
        rewards = [layer.reward for layer in graph.layers] + [graph.terminal.reward]
        value = sum(float(row @ reward) for row, reward in zip(visits, rewards, strict=True))
        assert np.isclose(value, exact.evaluate(world, chances, start), rtol=0, atol=1e-12)


@given(worlds, st.integers(0, 2**32 - 1))
def test_violations_are_visits_times_violating_edges(world: sf.World, seed: int) -> None:
    rng, graph = np.random.default_rng(seed), world.problem.graph
    chances = tuple(_random_chances(rng, layer.state_ptr) for layer in graph.layers)
    visits = visits_of(world, chances, int(graph.starts[0]))
    expected = 0.0
    for row, layer, p, cost in zip(visits, graph.layers, world.probabilities, world.costs, strict=False):
        expected += float(np.sum(row[layer.edge_pair()] * p * (cost > BOUND + 1e-9).any(axis=1)))
    if world.terminal_costs is not None:
        expected += float(visits[-1] @ (world.terminal_costs > BOUND + 1e-9).any(axis=1))
    found = exact.violations(world, chances)
    assert np.isclose(found.expected, expected, rtol=0, atol=1e-12)
    assert found.probability <= min(1.0, found.expected + 1e-12)
    assert (found.probability > 0) == (found.expected > 0)


def _random_pairs(rng: np.random.Generator, state_ptr: Any, safe: Any) -> Any:
    rows = [np.flatnonzero(safe[a:b]) + a for a, b in itertools.pairwise(state_ptr.tolist())]
    return np.array([rng.choice(row) if len(row) else -1 for row in rows])


def _random_chances(rng: np.random.Generator, state_ptr: Any) -> Any:
    raw = rng.integers(0, 4, state_ptr[-1]).astype(float)
    raw[state_ptr[:-1]] += 1
    return raw / np.repeat(np.add.reduceat(raw, state_ptr[:-1]), np.diff(state_ptr))
