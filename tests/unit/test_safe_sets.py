"""Truly safe states and pairs, against the definition followed step by step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from tests.made_worlds import hand_world, random_world

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


@pytest.mark.parametrize(("unsafe", "limits"), [(0.0, 1), (0.05, 2), (0.3, 3), (0.9, 1)])
def test_random_worlds(unsafe: float, limits: int, seed: int) -> None:
    for draw in range(10):
        rng = np.random.default_rng([seed, draw, limits, int(100 * unsafe)])
        sizes = {"horizon": 6, "states": 12, "actions": 4, "successors": 4, "limits": limits}
        world = random_world(rng, **sizes, unsafe=unsafe, terminal_costs=draw % 2 > 0)
        expected = check(world)
        solution = exact.solve(world)
        assert lists((solution.safe_states, solution.safe_actions)) == expected


def test_what_has_no_probability_leads_nowhere() -> None:
    states, pairs = check(ledge(p=0.0))
    assert states == [[True]] + 3 * [[True, True]] + [[True, False]]
    assert pairs == [[True, True]] + 2 * [[True, True, True, True]] + [[True, False, True, True]]
