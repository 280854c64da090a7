"""Values of stationary problems in which everything is safe, against QuantEcon's finite-horizon solver."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from surefoot import exact
from tests.made_worlds import stationary_world

markov = pytest.importorskip("quantecon.markov")


@pytest.mark.parametrize(("states", "actions", "successors"), [(4, 2, 2), (30, 4, 7), (400, 5, 3)])
def test_values_are_those_of_quantecon(states: int, actions: int, successors: int, seed: int) -> None:
    world = stationary_world(
        np.random.default_rng(seed), horizon=13, states=states, actions=actions, successors=successors
    )
    layer = world.problem.graph.layers[0]
    shape = (layer.n_pairs, layer.n_states)
    matrix = sp.csr_matrix((world.probabilities[0], layer.successor, layer.pair_ptr), shape=shape)
    number = np.arange(layer.n_pairs) % actions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta = 1 is what a finite horizon means
        ddp = markov.DiscreteDP(layer.reward, matrix, 1.0, layer.pair_state(), number)
    values, choices = markov.backward_induction(ddp, 12)
    solution = exact.solve(world)
    assert np.allclose(np.stack(solution.values), values, rtol=0, atol=1e-12)
    pairs = np.stack(solution.policy.pairs)
    assert np.array_equal(number[pairs], choices)  # rewards are continuous: no ties
    assert all(row.all() for row in (*solution.safe_states, *solution.safe_actions))
