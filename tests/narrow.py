"""Problems with features in float32, and the same numbers in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.model.arrays import freeze
from surefoot.model.sparse_rows import SparseRows


def upcast(problem: sf.Problem) -> sf.Problem:
    """The same numbers in float64, shared where they were shared; all else as it is."""
    graph, known = problem.graph, dict[int, Any]()

    def wide(x: Any) -> Any:
        if x is None or isinstance(x, SparseRows):
            return x
        return known.setdefault(id(x), freeze(x.astype(np.float64)))

    layers = tuple(
        replace(y, cost_features=wide(y.cost_features), transition_features=wide(y.transition_features))
        for y in graph.layers
    )
    last = replace(graph.terminal, cost_features=wide(graph.terminal.cost_features))
    return replace(problem, graph=replace(graph, layers=layers, terminal=last))


def upcast_world(world: sf.World) -> sf.World:
    """The same truth behind the upcast problem."""
    twin = world.named(world.name or "")
    object.__setattr__(twin, "problem", upcast(world.problem))
    return twin


def tables_of(problem: sf.Problem) -> list[Any]:
    """Every dense feature table of a problem, cost and transition features in turn, then the last layer's."""
    found = [x for layer in problem.graph.layers for x in (layer.cost_features, layer.transition_features)]
    return [x for x in (*found, problem.graph.terminal.cost_features) if isinstance(x, np.ndarray)]


def star(rng: np.random.Generator, *, edges: int = 60, dim: int = 3, anchored: bool = False) -> sf.World:
    """One decision, after which anything may follow; costs of triplets and of last states are ⟨γ, x⟩, γ of length 1."""
    gamma = rng.normal(size=(2, 1, dim))
    gamma /= np.linalg.norm(gamma, axis=2, keepdims=True)
    chances = rng.random((edges, 1)) + 0.1
    known = rng.uniform(0.5, 1.0, dim)
    problem = sf.Problem.from_arrays(
        horizon=2,
        start=0,
        state_ptr=np.array([0, 1]),
        pair_ptr=np.array([0, edges]),
        successors=np.arange(edges),
        reward=np.ones(1),
        cost_features=rng.uniform(-1, 1, (edges, dim)),
        transition_features=chances / chances.sum(),
        terminal_reward=np.zeros(edges),
        terminal_cost_features=rng.uniform(-1, 1, (edges, dim)),
        fallback=np.zeros(1, np.int64),
        limits=sf.Limit("load", bound=10.0, noise=0.01, norm=1.0),
        anchor=(lambda h: (known, float(known @ gamma[h, 0]))) if anchored else None,
    )
    return sf.World(problem, transition=[1.0], cost=gamma)
