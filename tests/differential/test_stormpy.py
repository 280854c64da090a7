"""Truly safe states and actions, against the model checker Storm: not one may differ."""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from tests.made_worlds import random_world, with_truth

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
    """Check all our sets against both encodings; return how many states are safe, and how many are not."""
    graph = world.problem.graph
    n = sum(graph.n_states(h) for h in range(graph.horizon))
    by_pairs = storm_model.avoiding(storm_model.pairs_model(world))
    states, pairs = by_pairs[1 : n + 1], by_pairs[n + 1 :]
    assert np.array_equal(storm_model.avoiding(storm_model.states_model(world))[1:], states)
    ours = exact.safe_sets(world)
    assert np.array_equal(np.concatenate(ours[0]), states)
    assert np.array_equal(np.concatenate(ours[1]), pairs)
    if states[graph.starts].all():  # the solution exists
        solution = exact.solve(world)
        assert np.array_equal(np.concatenate(solution.safe_states), states)
        assert np.array_equal(np.concatenate(solution.safe_actions), pairs)
    return int(states.sum()), int((~states).sum())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_safe_sets_are_those_of_storm(size: tuple[int, int, int, int, int, float], seed: int) -> None:
    layers, states, actions, successors, limits, unsafe = size
    safe = not_safe = 0
    for draw in range(8 if layers * states < 1000 else 2):
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


def test_no_state_is_unsafe() -> None:
    assert compare(random_world(np.random.default_rng(0), horizon=5, states=20, unsafe=0.0))[1] == 0


def test_no_step_is_safe() -> None:
    world = random_world(np.random.default_rng(0), horizon=5, states=20, unsafe=0.0)
    n_ends = world.problem.graph.terminal.n_states
    assert compare(with_truth(world, costs=tuple(np.ones_like(cost) for cost in world.costs)))[0] == n_ends
    assert compare(with_truth(world, terminal_costs=np.ones_like(world.terminal_costs)))[0] == 0
