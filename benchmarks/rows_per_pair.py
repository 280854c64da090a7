"""Costs that do not depend on the successor: a plan with a row per pair against the same one with a row per triplet."""

from __future__ import annotations

import numpy as np

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import best_of, show

ACTIONS, BRANCHING, DIM = 4, 8, 32
RIDGES = (0.1, 1.0, 10.0)  # by default they depend on the rows


def problem(states: int, *, by_pair: bool) -> sf.Problem:
    """Layers share their arrays; transitions have two features, so that costs are most of the work."""
    rng = np.random.default_rng(0)
    pairs, edges = states * ACTIONS, states * ACTIONS * BRANCHING
    x = rng.normal(size=(pairs, DIM))
    x /= np.linalg.norm(x, axis=1)[:, None]
    first = rng.integers(states, size=(pairs, 1))
    return sf.Problem.from_arrays(
        horizon=10,
        start=0,
        state_ptr=np.arange(0, pairs + 1, ACTIONS),
        pair_ptr=np.arange(0, edges + 1, BRANCHING),
        successors=((first + np.arange(BRANCHING)) % states).astype(np.int32).reshape(-1),
        reward=rng.random(pairs),
        cost_features=x if by_pair else np.repeat(x, BRANCHING, axis=0),
        transition_features=rng.random((edges, 2)),
        fallback=np.zeros(states, np.int64),
        limits=[sf.Limit("load", bound=0.3, noise=0.1, norm=0.5)],
    )


def rows_per_pair() -> list[Row]:
    agents = [sf.LsviNew(problem(10_000, by_pair=kind), ridges=RIDGES, exploration="ideas") for kind in (True, False)]
    for agent in agents:
        rng = np.random.default_rng(1)
        for h, layer in enumerate(agent.problem.graph.layers):
            for pair in rng.integers(layer.n_pairs, size=500):
                agent.costs.add(h, np.asarray(layer.cost_features[layer.row_ptr[pair]]), rng.normal(0.1, 0.1, 1))
        agent.replan()
    if not all(np.array_equal(*masks) for masks in zip(*(a.plan.certified_sets.pairs for a in agents), strict=True)):
        raise AssertionError("the two disagree: there is nothing to compare")
    ours, theirs = best_of(5, *(agent.replan for agent in agents))
    return [
        row(
            f"rows: a plan of 320,000 triplets per step, {BRANCHING} to a pair: row per triplet over per pair",
            theirs / ours,
            at_least=BRANCHING / 2,
            seconds=[ours, theirs],
        )
    ]


if __name__ == "__main__":
    show(rows_per_pair())
