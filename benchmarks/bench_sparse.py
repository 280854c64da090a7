"""Tabular problems: sparse features against the same ones dense, and against a dense problem of the same size."""

from __future__ import annotations

import numpy as np
import scipy.sparse

import surefoot as sf
from benchmarks.problems import learned, random_problem
from benchmarks.rows import Row, row
from benchmarks.timing import best_of, show

ACTIONS, BRANCHING = 4, 5


def tabular(states: int, horizon: int, *, sparse: bool) -> sf.Problem:
    """A cost per pair and a probability per triplet, each in a column of its own; layers share their arrays."""
    rng = np.random.default_rng(0)
    pairs, edges = states * ACTIONS, states * ACTIONS * BRANCHING
    rows, ones = np.arange(edges), np.ones(edges)
    costs = scipy.sparse.csr_array((0.2 * ones, (rows, rows // BRANCHING)), shape=(edges, pairs))
    triplets = scipy.sparse.csr_array((ones, (rows, rows)), shape=(edges, edges))
    first = rng.integers(states, size=(pairs, 1))
    return sf.Problem.from_arrays(
        horizon=horizon,
        start=0,
        state_ptr=np.arange(0, pairs + 1, ACTIONS),
        pair_ptr=np.arange(0, edges + 1, BRANCHING),
        successors=((first + np.arange(BRANCHING)) % states).astype(np.int32).reshape(-1),
        reward=rng.random(pairs),
        cost_features=costs if sparse else costs.toarray(),
        transition_features=triplets if sparse else triplets.toarray(),
        fallback=np.zeros(states, np.int64),
        limits=[sf.Limit("load", bound=0.3, noise=0.05, norm=2.0)],
        transition_norm=float(np.sqrt(pairs)),
    )


def visited(problem: sf.Problem, rows: int = 2000) -> sf.LsviNew:
    """An agent that has seen ``rows`` random triplets of every layer."""
    rng, agent = np.random.default_rng(0), sf.LsviNew(problem)
    for h, layer in enumerate(problem.graph.layers):
        for edge in rng.integers(layer.n_edges, size=rows):
            row = layer.cost_features[slice(edge, edge + 1)]
            agent.costs.add(h, row if not isinstance(row, np.ndarray) else row[0], rng.normal(0.2, 0.05, 1))
            pair = int(edge) // BRANCHING
            agent.transitions.add(h, layer, pair, int(edge), agent.plan.values.value[h + 1])
    agent.replan()
    return agent


def run() -> list[Row]:
    small = [visited(tabular(50, 10, sparse=kind)) for kind in (True, False)]
    same = all(np.array_equal(*masks) for masks in zip(*(a.plan.certified_sets.pairs for a in small), strict=True))
    if not same:
        raise AssertionError("the two disagree: there is nothing to compare")
    ours, dense = best_of(3, *(agent.replan for agent in small))
    large, usual = visited(tabular(50_000, 10, sparse=True)), learned(random_problem(1_000_000, 16))
    table, plain = best_of(3, large.replan, usual.replan)
    layer = large.problem.graph.layers[0]
    held = layer.cost_features.nbytes + layer.transition_features.nbytes
    full = 8 * layer.n_edges * (layer.cost_features.shape[1] + layer.transition_features.shape[1])
    return [
        row(
            "sparse: a tabular plan, 1,000 triplets per step with a column each: dense over sparse",
            dense / ours,
            seconds=[ours, dense],
        ),
        row(
            "sparse: a tabular plan of 1e6 triplets per step over a dense one with 16 features",
            table / plain,
            seconds=[table, plain],
        ),
        row("sparse: bytes of that tabular problem's features, if dense, over sparse", full / held, bytes=[held, full]),
    ]


if __name__ == "__main__":
    show(run())
