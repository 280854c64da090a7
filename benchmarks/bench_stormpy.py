"""Truly safe sets: `exact.SafeSets` against Storm's graph-based `Pmin [F bad] = 0`.

Both are laid out beforehand; building Storm's model is counted apart. Its time is that of `compute_prob01_states`,
which finds the states of probability 1 as well.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np
import stormpy
from stormpy.analysis import compute_prob01_states

from benchmarks.timing import best_of, show
from surefoot import exact
from tests.differential import storm_model
from tests.made_worlds import random_world

# (layers, most states per layer, repeats)
SIZES = [(10, 200, 30), (20, 5_000, 5)]


def run() -> list[dict[str, Any]]:
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        return [_against_storm(*size) for size in SIZES]
    finally:
        numba.set_num_threads(threads)


def _against_storm(layers: int, states: int, repeats: int) -> dict[str, Any]:
    world = random_world(np.random.default_rng(0), horizon=layers, states=states, actions=5, successors=5, unsafe=0.05)
    begin = time.perf_counter()
    model = storm_model.states_model(world)
    build = time.perf_counter() - begin
    sets = exact.SafeSets(world)
    question = stormpy.parse_property(storm_model.PROPERTY)
    safe = np.concatenate(sets.sets()[0])
    if not np.array_equal(storm_model.avoiding(model)[1:], safe):
        raise AssertionError("the two disagree: there is nothing to compare")
    ours, theirs = best_of(repeats, sets.sets, lambda: compute_prob01_states(model, question))
    return {
        "name": f"(d) truly safe sets: Storm over ours, {layers} layers of up to {states} states",
        "edges": sum(layer.n_edges for layer in world.problem.graph.layers),
        "ours_seconds": ours,
        "theirs_seconds": theirs,
        "value": theirs / ours,
        "target": 5.0,
        "better": "higher",
        "their_build_seconds": build,
    }


if __name__ == "__main__":
    show(run())
