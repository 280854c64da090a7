"""Truly safe states and pairs, against the definition followed step by step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from tests.made_worlds import BOUND, hand_world, random_world, with_truth

SAFE, UNSAFE = 0.25, 0.9
Sets = tuple[list[list[bool]], list[list[bool]]]


def by_definition(world: sf.World) -> Sets:
    """A_h and S_h as :mod:`surefoot.exact` defines them, one edge after the other."""

    longest = world.problem.graph.largest_cost_norm()

    def kept(cost: float, limit: sf.Limit) -> bool:
        return cost <= limit.bound + 1e-9 * (abs(limit.bound) + limit.norm * longest)  # spec 8

    def within(cost: Any) -> bool:
        return all(map(kept, cost, world.problem.limits))

    graph = world.problem.graph
    ends = range(graph.terminal.n_states)
    states = [[world.terminal_costs is None or within(world.terminal_costs[s]) for s in ends]]
    pairs: list[list[bool]] = []
    for layer, p, cost in reversed(list(zip(graph.layers, world.probabilities, world.costs, strict=True))):
        safe = [
            all(p[e] == 0 or (within(cost[e]) and states[0][layer.successor[e]]) for e in range(first, end))
            for first, end in itertools.pairwise(layer.pair_ptr)
        ]
        pairs.insert(0, safe)
        states.insert(0, [any(safe[first:end]) for first, end in itertools.pairwise(layer.state_ptr)])
    return states, pairs


def lists(sets: Any) -> Sets:
    states, pairs = sets
    return [row.tolist() for row in states], [row.tolist() for row in pairs]


def check(world: sf.World) -> Sets:
    """The sets must be those of the definition, which are returned."""
    expected = by_definition(world)
    assert lists(exact.safe_sets(world)) == expected
    return expected


def ledge(p: float = 0.5, layers: int = 5) -> sf.World:
    """Off the path "s" lies "ledge": all of its pairs may stay there (with ``p``), and its end is unsafe."""
    table: dict[tuple[int, str], Any] = {}
    for h in range(layers - 1):
        path = {"s": (1.0, SAFE)}
        table[h, "s"] = {"stay": (0.0, path), "leave": (0.5, {"s": (0.5, SAFE), "ledge": (0.5, SAFE)})}
        if h:
            both = {"ledge": (p, SAFE), "s": (1 - p, SAFE)}
            table[h, "ledge"] = {"one": (1.0, both), "two": (1.0, dict(reversed(both.items())))}
    return hand_world(table, {"s": (0.0, SAFE), "ledge": (1.0, UNSAFE)})


@pytest.mark.parametrize("limits", [1, 2, 3])
@pytest.mark.parametrize("unsafe", [0.0, 0.05, 0.3, 0.9])
def test_random_worlds(unsafe: float, limits: int, seed: int) -> None:
    for draw in range(10):
        rng = np.random.default_rng([seed, draw, limits, int(100 * unsafe)])
        sizes = {"horizon": 6, "states": 12, "actions": 4, "successors": 4, "limits": limits}
        world = random_world(rng, **sizes, unsafe=unsafe, terminal_costs=draw % 2 > 0)
        expected = check(world)
        solution = exact.solve(world)
        assert lists((solution.safe_states, solution.safe_actions)) == expected


def test_nothing_is_unsafe() -> None:
    world = random_world(np.random.default_rng(1), unsafe=0.0)
    states, pairs = check(world)
    assert all(map(all, states))
    assert all(map(all, pairs))


def test_every_step_is_unsafe(seed: int) -> None:
    world = random_world(np.random.default_rng(seed), unsafe=0.0)
    states, pairs = check(with_truth(world, costs=tuple(np.full_like(cost, UNSAFE) for cost in world.costs)))
    assert not any(map(any, states[:-1]))
    assert not any(map(any, pairs))
    assert all(states[-1])  # arriving there is what breaks the limit


def test_every_end_is_unsafe(seed: int) -> None:
    world = random_world(np.random.default_rng(seed), unsafe=0.0)
    states, pairs = check(with_truth(world, terminal_costs=np.full_like(world.terminal_costs, UNSAFE)))
    assert not any(map(any, states))
    assert not any(map(any, pairs))


def test_a_state_dies_when_all_its_pairs_do_and_so_on_back_to_the_start() -> None:
    states, pairs = check(ledge())
    assert states == [[True]] + 4 * [[True, False]]
    assert pairs == [[True, False]] + 3 * [[True, False, False, False]]


def test_what_has_no_probability_leads_nowhere() -> None:
    states, pairs = check(ledge(p=0.0))
    assert states == [[True]] + 3 * [[True, True]] + [[True, False]]
    assert pairs == [[True, True]] + 2 * [[True, True, True, True]] + [[True, False, True, True]]


def test_one_pair_that_keeps_away_saves_its_state() -> None:
    fire, end = {"fire": (1.0, SAFE)}, {"end": (1.0, SAFE)}
    world = hand_world(
        {(0, "s"): {"out": (0.0, end), "b": (0.0, fire), "c": (0.0, {**fire, "end": (0.0, UNSAFE)})}},
        {"fire": (1.0, UNSAFE), "end": (0.0, None)},
    )
    assert check(world)[1] == [[True, False, False]]


@pytest.mark.parametrize("cost", [BOUND, BOUND + 5e-10, BOUND + 2e-9])
def test_a_limit_is_broken_beyond_a_billionth(cost: float) -> None:
    table = {(0, "s"): {"stay": (0.0, {"end": (1.0, SAFE)}), "go": (1.0, {"end": (1.0, cost)})}}
    assert check(hand_world(table, {"end": (0.0, None)}))[1] == [[True, cost < BOUND + 1e-9]]
