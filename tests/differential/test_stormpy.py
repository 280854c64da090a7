"""Truly safe states and actions, against the model checker Storm: not one may differ."""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from tests.made_worlds import random_world

pytest.importorskip("stormpy")

from tests.differential import storm_model

# (layers, states per layer, actions, successors, limits, share of costs beyond their bound)
SIZES = [
    (2, 5, 3, 3, 1, 0.3),
    (3, 4, 2, 2, 2, 0.2),
    (5, 20, 4, 4, 1, 0.15),
    (10, 10, 3, 5, 3, 0.05),
    (20, 50, 3, 3, 1, 0.1),
    (10, 1000, 4, 4, 2, 0.05),
    (50, 100, 5, 3, 1, 0.12),
]


def compare(world: sf.World) -> tuple[int, int]:
    """Check both sets against both encodings; return how many states are safe, and how many are not."""
    graph, solution = world.problem.graph, exact.solve(world)
    states = np.concatenate(solution.safe_states)
    pairs = np.concatenate(solution.safe_actions)
    alone = exact.safe_sets(world)
    assert np.array_equal(np.concatenate(alone[0]), states)
    assert np.array_equal(np.concatenate(alone[1]), pairs)
    by_states = storm_model.avoiding(storm_model.states_model(world))
    by_pairs = storm_model.avoiding(storm_model.pairs_model(world))
    n = sum(graph.n_states(h) for h in range(graph.horizon))
    assert np.array_equal(by_states[1:], states)
    assert np.array_equal(by_pairs[1 : n + 1], states)
    assert np.array_equal(by_pairs[n + 1 :], pairs)
    return int(states.sum()), int((~states).sum())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_safe_sets_are_those_of_storm(size: tuple[int, int, int, int, int, float], seed: int) -> None:
    layers, states, actions, successors, limits, unsafe = size
    safe = not_safe = 0
    for draw in range(20 if layers * states < 1000 else 3):
        world = random_world(
            np.random.default_rng([seed, draw, layers, states]),
            horizon=layers,
            states=states,
            actions=actions,
            successors=successors,
            limits=limits,
            unsafe=unsafe,
            terminal_costs=draw % 3 != 2,
        )
        some, others = compare(world)
        safe, not_safe = safe + some, not_safe + others
    assert safe > 0  # a comparison of empty sets would prove nothing
    assert not_safe > 0
