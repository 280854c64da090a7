"""Random problems of any size for the planning benchmarks: built from arrays, with data already in the regressions."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf


def random_problem(
    edges: int,
    dim: int,
    horizon: int = 10,
    branching: int = 5,
    actions: int = 4,
    *,
    shared: bool = True,
    stationary: bool = False,
    seed: int = 0,
) -> sf.Problem:
    """About ``edges`` triplets per step, ``dim`` features for costs and transitions alike, random successors.

    ``shared``: one template for all layers. The limit cuts through the middle of what is possible, so that after some
    data a good share of the pairs is certified.
    """
    rng = np.random.default_rng(seed)
    states = max(1, edges // (branching * actions))
    pairs, n = states * actions, states * actions * branching

    def features() -> np.ndarray:
        x = rng.normal(size=(n, dim))
        x /= np.linalg.norm(x, axis=1)[:, None]
        x[::branching, 0] += 0.2
        return x

    def successors() -> np.ndarray:
        first = rng.integers(states, size=(pairs, 1))
        return ((first + np.arange(branching)) % states).astype(np.int32).reshape(-1)

    layers = horizon - 1
    x = features() if shared else [features() for _ in range(layers)]
    following = successors() if shared else [successors() for _ in range(layers)]
    return sf.Problem.from_arrays(
        horizon=horizon,
        start=0,
        state_ptr=np.arange(0, pairs + 1, actions),
        pair_ptr=np.arange(0, n + 1, branching),
        successors=following,
        reward=rng.random(pairs),
        cost_features=x,
        fallback=np.zeros(states, np.int64),
        limits=[sf.Limit("load", bound=0.3, noise=0.1, norm=0.5)],
        stationary_costs=stationary,
        stationary_transitions=stationary,
    )


def learned(
    problem: sf.Problem, rows: int = 2000, seed: int = 0, exploration: str = "ideas", **options: Any
) -> sf.LsviNew:
    """An agent whose regressions hold ``rows`` observations of random triplets per step."""
    rng = np.random.default_rng(seed)
    agent = sf.LsviNew(problem, exploration=exploration, **options)
    truth = rng.normal(size=problem.graph.cost_dim)
    truth *= 0.4 / np.linalg.norm(truth)
    for h, layer in enumerate(problem.graph.layers):
        for edge in rng.integers(layer.n_edges, size=rows):
            x = layer.cost_features[edge]
            agent.costs.add(h, x, np.array([x @ truth + 0.1 * rng.normal()]))
        pairs = rng.integers(layer.n_pairs, size=rows)
        for pair in pairs:
            agent.transitions.add(h, layer, int(pair), int(layer.pair_ptr[pair]), agent.plan.values.value[h + 1])
    return agent
