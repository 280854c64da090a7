"""`exact.solve` against QuantEcon's `backward_induction` on the same stationary problem, one thread each.

Ours finds the truly safe states and actions besides values and policy. ``value`` is theirs / ours.
"""

from __future__ import annotations

import warnings

import numba
import numpy as np
import scipy.sparse as sp
from quantecon.markov import DiscreteDP, backward_induction

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import best_of, show
from surefoot import exact
from tests.made_worlds import stationary_world

PERIODS = 10
# (states, actions per state, successors per action, repeats)
SIZES = [(500, 5, 4, 200), (1000, 100, 10, 9), (20_000, 10, 5, 9), (50_000, 5, 4, 9)]


def as_ddp(world: sf.World) -> DiscreteDP:
    """The layer that all layers of a stationary world share, in QuantEcon's pair formulation."""
    layer = world.problem.graph.layers[0]
    actions = np.diff(layer.state_ptr)
    matrix = sp.csr_matrix(
        (world.probabilities[0], layer.successor, layer.pair_ptr), shape=(layer.n_pairs, layer.n_states)
    )
    number = np.arange(layer.n_pairs) - np.repeat(layer.state_ptr[:-1], actions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta = 1 is what a finite horizon means
        return DiscreteDP(layer.reward, matrix, 1.0, layer.pair_state(), number)


def run() -> list[Row]:
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        rows = [_against_quantecon(*size, target=1.0, threads="one thread") for size in SIZES]
    finally:
        numba.set_num_threads(threads)
    # QuantEcon's induction runs on one thread whatever is available
    large = [size for size in SIZES if size[0] * size[1] * size[2] >= 1_000_000]
    return rows + [_against_quantecon(*size, target=1.5, threads=f"{threads} threads") for size in large]


def _against_quantecon(states: int, actions: int, successors: int, repeats: int, *, target: float, threads: str) -> Row:
    world = stationary_world(
        np.random.default_rng(0),
        horizon=PERIODS + 1,
        states=states,
        actions=actions,
        successors=successors,
    )
    ddp = as_ddp(world)
    values, _ = backward_induction(ddp, PERIODS)
    if not np.allclose(values[0], exact.solve(world).values[0], rtol=0, atol=1e-10):
        raise AssertionError("the two disagree: there is nothing to compare")
    ours, theirs = best_of(repeats, lambda: exact.solve(world), lambda: backward_induction(ddp, PERIODS))
    return row(
        f"(e) backward induction: QuantEcon over ours, {states} × {actions} × {successors}, {threads}",
        theirs / ours,
        at_least=target,
        edges=states * actions * successors,
        ours_seconds=ours,
        theirs_seconds=theirs,
    )


if __name__ == "__main__":
    show(run())
