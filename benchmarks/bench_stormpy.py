"""Truly safe sets: `exact.safe_sets` against Storm's graph-based `Pmin [F bad] = 0`, both from a world to its sets.

Most of Storm's time goes into building its model, through Python; the same row says what its answer alone takes, by
`compute_prob01_states`, which finds the states of probability 1 as well.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import stormpy
from stormpy.analysis import compute_prob01_states

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import best_of, show
from surefoot import exact
from tests.differential import storm_model
from tests.made_worlds import random_world

# (layers, most states per layer, share of costs beyond their bound, repeats)
SIZES = [(10, 200, 0.05, 30), (20, 5_000, 0.05, 5), (20, 5_000, 0.3, 5)]
TARGET = 5.0


def run() -> list[Row]:
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        return [_against_storm(*size) for size in SIZES]
    finally:
        numba.set_num_threads(threads)


def _against_storm(layers: int, states: int, unsafe: float, repeats: int) -> Row:
    world = random_world(
        np.random.default_rng(0), horizon=layers, states=states, actions=5, successors=5, unsafe=unsafe
    )
    model = storm_model.states_model(world)
    question = stormpy.parse_property(storm_model.PROPERTY)
    safe = _the_same_safe_states(model, world)

    def build_and_answer() -> None:
        compute_prob01_states(storm_model.states_model(world), question)

    ours, theirs, answer = best_of(
        repeats, lambda: exact.safe_sets(world), build_and_answer, lambda: compute_prob01_states(model, question)
    )
    size = f"{layers} steps of up to {states} states" + (", many unsafe" if unsafe > 0.1 else "")
    return row(
        f"(d) truly safe sets: Storm (build + answer) over ours, {size}",
        theirs / ours,
        at_least=TARGET,
        ours_seconds=ours,
        theirs_seconds=theirs,
        their_answer_alone_seconds=answer,
        edges=sum(layer.n_edges for layer in world.problem.graph.layers),
        unsafe_share_of_states=float(1 - safe.mean()),
    )


def _the_same_safe_states(model: Any, world: sf.World) -> Any:
    """Per state: is it truly safe? Where Storm's and ours differ, there is nothing to compare."""
    theirs = storm_model.avoiding(model)[1:]
    if not np.array_equal(np.concatenate(exact.safe_sets(world)[0]), theirs):
        raise AssertionError("ours and Storm's safe states differ: there is nothing to compare")
    return theirs


if __name__ == "__main__":
    show(run())
