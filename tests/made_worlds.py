"""Worlds for tests: written out by hand, or drawn at random and valid by construction.

Both keep the numbers as they are: the transition feature of a triplet is its probability, the cost
feature its costs, and the hidden parameters are 1 and the identity.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import surefoot as sf

BOUND = 0.5

Action = tuple[float, Mapping[Any, tuple[float, Any]]]
"""A reward, and for each successor its probability and its cost (one number, or one per limit)."""


def hand_world(
    table: Mapping[tuple[int, Any], Mapping[Any, Action]],
    terminal: Mapping[Any, tuple[float, Any]],
    *,
    start: Any = "s",
    bounds: Sequence[float] = (BOUND,),
    fallback: Mapping[tuple[int, Any], Any] | None = None,
) -> sf.World:
    """The world of a table ``{(h, s): {a: (reward, {s2: (P, cost)})}}``; costs of the last layer may be None.

    The fallback plays the first action of each state unless given.
    """
    m = len(bounds)

    def vector(cost: Any) -> Any:
        return None if cost is None else np.broadcast_to(np.asarray(cost, float), (m,)).copy()

    costs = {s: vector(cost) for s, (_, cost) in terminal.items()}
    problem = sf.Problem.from_functions(
        horizon=1 + max(h for h, _ in table) + 1,
        start=start,
        actions=lambda h, s: list(table[h, s]),
        successors=lambda h, s, a: list(table[h, s][a][1]),
        reward=lambda h, s, a: table[h, s][a][0],
        cost_features=lambda h, s, a, s2: vector(table[h, s][a][1][s2][1]),
        transition_features=lambda h, s, a, s2: [table[h, s][a][1][s2][0]],
        terminal_reward=lambda s: terminal[s][0],
        terminal_cost_features=lambda s: costs[s],
        fallback=lambda h, s: next(iter(table[h, s])) if fallback is None else fallback[h, s],
        limits=[sf.Limit(f"limit {j}", bound=bound, noise=0.1, norm=1.0) for j, bound in enumerate(bounds)],
    )
    return sf.World(problem, transition=[1.0], cost=np.eye(m))


def random_world(
    rng: np.random.Generator,
    *,
    horizon: int = 4,
    states: int = 5,
    actions: int = 3,
    successors: int = 3,
    limits: int = 1,
    unsafe: float = 0.15,
    impossible: float = 0.2,
    terminal_costs: bool = True,
) -> sf.World:
    """At most so many states per layer, actions per state and successors per action.

    A share of about ``unsafe`` of all costs is beyond its bound, a share ``impossible`` of all declared
    successors has P = 0. Some costs miss the bound by less than the tolerance, some by just more. The
    fallback lives in the first states of each layer, where its action is safe; elsewhere anything goes,
    states that nothing reaches included.
    """
    sizes = rng.integers(1, states + 1, horizon)
    sizes[rng.integers(horizon)] = states
    zone = int(min(2, sizes.min()))
    columns: dict[str, list[Any]] = {
        name: [] for name in ("state_ptr", "pair_ptr", "successors", "reward", "cost_features", "transition_features")
    }
    for n, n_next in itertools.pairwise(sizes.tolist()):
        state_ptr = _pointer(rng.integers(1, actions + 1, n))
        n_pairs, width = int(state_ptr[-1]), int(min(successors, n_next))
        lengths = rng.integers(1, width + 1, n_pairs)
        step = n_next // width  # one successor from each of `width` stretches, then turned: all distinct
        picked = np.arange(width) * step + rng.integers(0, step, (n_pairs, width))
        picked = (picked + rng.integers(0, n_next, (n_pairs, 1))) % n_next
        fallback_pairs = state_ptr[:zone]
        picked[fallback_pairs] = np.arange(width)
        lengths[fallback_pairs] = min(zone, width)
        used = np.arange(width) < lengths[:, None]
        p = rng.integers(1, 9, (n_pairs, width)) * (rng.random((n_pairs, width)) >= impossible) * used
        p[:, 0] += p.sum(axis=1) == 0
        p = p / p.sum(axis=1, keepdims=True)
        cost = _costs(rng, (n_pairs, width, limits), unsafe)
        cost[fallback_pairs] = np.minimum(cost[fallback_pairs], BOUND)
        columns["state_ptr"].append(state_ptr)
        columns["pair_ptr"].append(_pointer(lengths))
        columns["successors"].append(picked[used].astype(np.int64))
        columns["reward"].append(rng.integers(0, 9, n_pairs) / 8)
        columns["cost_features"].append(np.ascontiguousarray(cost[used]))
        columns["transition_features"].append(np.ascontiguousarray(p[used][:, None]))
    last = None
    if terminal_costs:
        last = _costs(rng, (int(sizes[-1]), limits), unsafe)
        last[:zone] = np.minimum(last[:zone], BOUND)
    problem = sf.Problem.from_arrays(
        horizon=horizon,
        start=list(range(zone)),
        **columns,
        fallback=[np.where(np.arange(n) < zone, 0, -1) for n in sizes[:-1]],
        terminal_reward=rng.integers(0, 9, sizes[-1]) / 8,
        terminal_cost_features=last,
        limits=[sf.Limit(f"limit {j}", bound=BOUND, noise=0.1, norm=1.0) for j in range(limits)],
    )
    return sf.World(problem, transition=[1.0], cost=np.eye(limits))


def stationary_world(rng: np.random.Generator, *, horizon: int, states: int, actions: int, successors: int) -> sf.World:
    """The same layer over and over, everything safe and possible: what plain dynamic programming solves."""
    n_pairs = states * actions
    step = states // successors
    picked = np.arange(successors) * step + rng.integers(0, step, (n_pairs, successors))
    picked = np.sort((picked + rng.integers(0, states, (n_pairs, 1))) % states, axis=1)
    p = 0.05 + rng.random((n_pairs, successors))
    p /= p.sum(axis=1, keepdims=True)
    problem = sf.Problem.from_arrays(
        horizon=horizon,
        start=0,
        state_ptr=np.arange(states + 1) * actions,
        pair_ptr=np.arange(n_pairs + 1) * successors,
        successors=picked.astype(np.int32).ravel(),
        reward=rng.random(n_pairs),
        cost_features=rng.uniform(0.0, BOUND, (n_pairs * successors, 1)),
        transition_features=np.ascontiguousarray(p.reshape(-1, 1)),
        fallback=np.zeros(states, np.int64),
        limits=sf.Limit("limit", bound=BOUND, noise=0.1, norm=1.0),
        stationary_costs=True,
        stationary_transitions=True,
    )
    return sf.World(problem, transition=[1.0], cost=[1.0])


def with_truth(world: sf.World, **arrays: Any) -> sf.World:
    """The same world with other true arrays, put in behind its back: a World refuses an unsafe fallback."""
    other = copy.copy(world)
    for name, value in arrays.items():
        object.__setattr__(other, name, value)
    return other


def _costs(rng: np.random.Generator, shape: tuple[int, ...], unsafe: float) -> Any:
    """Below the bound, on it, within the tolerance of 1e-9 above it, or (the last two) beyond it."""
    kinds = np.array([-0.25, 0.25, BOUND, BOUND + 5e-10, BOUND + 2e-9, 0.9])
    safe, beyond = rng.integers(0, 4, shape), rng.integers(4, 6, shape)
    return kinds[np.where(rng.random(shape) < unsafe, beyond, safe)]


def _pointer(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def visits_of(world: sf.World, chances: Sequence[NDArray[np.float64]], start: int) -> list[NDArray[np.float64]]:
    """How likely each pair is played, H-1 arrays (N,), then the last states (S,): d'(s') = Σ d(s) π(a|s) P(s'|s,a)."""
    graph = world.problem.graph
    here = np.eye(1, graph.n_states(0), start)[0]
    visits = []
    for h, layer in enumerate(graph.layers):
        visits.append(here[layer.pair_state()] * chances[h])
        here = np.bincount(
            layer.successor, visits[-1][layer.edge_pair()] * world.probabilities[h], graph.n_states(h + 1)
        )
    return [*visits, here]


def first_unsafe_entry(
    world: sf.World, safe: Sequence[np.ndarray], agent: str, *, seed: int, episodes: int
) -> int | None:
    """The first episode in which the agent comes to a state outside ``safe`` (masks per layer); None if never."""
    learner, sampler, graph = sf.agents.make(agent, world.problem), world.sampler(seed), world.problem.graph
    for episode in range(episodes):
        state = int(graph.starts[0])
        learner._begin(state)
        for h, layer in enumerate(graph.layers):
            pair = learner._choose(h, state)
            edge = sampler.step(h, pair)
            learner._record(h, pair, edge, sampler.measure(h, edge))
            state = int(layer.successor[edge])
            if not safe[h + 1][state]:
                return episode
        if world.terminal_costs is not None and graph.terminal.has_cost[state]:
            learner._record_terminal(sampler.measure_terminal(state))
        learner._finish()
    return None
