"""Worlds with sparse features, and the very same ones with the same features dense."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

import surefoot as sf
from tests.reference.tables import Tables

COSTS = ("triplet", "pair", "state", "general", "dense")
TRANSITIONS = ("triplet", "pair", "mixture", "kernels", "dense")


def csr(table: Any) -> Any:
    return scipy.sparse.csr_array(np.asarray(table, float))


def sparse_worlds(
    rng: np.random.Generator,
    *,
    costs: str = "state",
    transitions: str = "triplet",
    horizon: int = 4,
    states: int = 5,
    actions: int = 3,
    successors: int = 2,
    limits: int = 1,
    stationary: bool = False,
    template: bool = False,
    anchors: bool = False,
    terminal: bool = False,
) -> tuple[sf.World, sf.World]:
    """(sparse, dense). The fallback plays the first action everywhere, which is the cheapest of its state.

    costs         a column per triplet, pair or state, the last scaled by the action; a few columns of many; or dense
    transitions   a column per triplet (μ is P itself), per pair (φ is P), two per pair, three for all; or dense
    """
    pairs, edges, n = states * actions, states * actions * successors, horizon - 1
    tables = 1 if template else n
    x = [_cost_table(rng, costs, states, actions, successors) for _ in range(tables)]
    p = [rng.dirichlet(np.full(successors, 2.0), pairs).reshape(-1) for _ in range(tables)]
    phi, mu = zip(*(_kernels(rng, transitions, each, pairs, successors) for each in p), strict=True)
    mu = np.stack([mu[0]] * n) if template or stationary else np.stack(mu)
    if stationary and not template:  # one μ for all layers: one set of chances too
        phi, p = (phi[0],) * n, [p[0]] * n
    last = _last_table(rng, costs, states, x[0].shape[1])
    gamma = rng.uniform(0.1, 1.0, (1 if stationary else horizon, limits, x[0].shape[1]))
    gamma = np.broadcast_to(gamma, (horizon, limits, x[0].shape[1])).copy()
    fallback_edges = (np.arange(0, pairs, actions)[:, None] * successors + np.arange(successors)).reshape(-1)
    every = [x[h % tables] @ gamma[h].T for h in range(n)] + ([last @ gamma[-1].T] if terminal else [])
    fallbacks = [table[fallback_edges] for table in every[:n]] + ([last @ gamma[-1].T] if terminal else [])
    bound = np.maximum(np.concatenate(fallbacks).max(axis=0), np.quantile(np.concatenate(every), 0.6, axis=0)) + 0.037
    norms = 1.01 * np.linalg.norm(gamma, axis=2).max(axis=0)
    # the fallback's longest triplet of each layer; one for all where costs are stationary
    rows = [(x[0] if stationary else x[h % tables])[fallback_edges] for h in range(horizon)]
    known = [each[np.linalg.norm(each, axis=1).argmax()] for each in rows]

    def problem(kind: Any, other: Any) -> sf.Problem:
        cost_tables, transition_tables = [kind(each) for each in x], [other(each) for each in phi]
        return sf.Problem.from_arrays(
            horizon=horizon,
            start=0,
            state_ptr=np.arange(states + 1) * actions,
            pair_ptr=np.arange(pairs + 1) * successors,
            successors=successor,
            reward=rewards.copy(),
            cost_features=cost_tables[0] if template else cost_tables,
            transition_features=transition_tables[0] if template else transition_tables,
            terminal_cost_features=kind(last) if terminal else None,
            terminal_reward=np.linspace(0.0, 0.9, states),
            fallback=np.zeros(states, np.int64),
            anchor=(lambda h: (known[h], gamma[h] @ known[h])) if anchors else None,
            limits=[
                sf.Limit(f"limit {j}", bound=float(bound[j]), noise=0.001, norm=float(norms[j])) for j in range(limits)
            ],
            transition_norm=1.01 * float(np.linalg.norm(mu, axis=1).max()),
            stationary_costs=stationary,
            stationary_transitions=stationary,
        )

    first = rng.integers(states, size=(pairs, 1))
    successor = ((first + np.arange(successors)) % states).reshape(-1)
    rewards = rng.random(pairs)
    rewards[::actions] *= 0.3
    assert edges == len(successor)
    both = (problem(_kind(costs), _kind(transitions)), problem(np.array, np.array))
    return tuple(sf.World(each, transition=mu, cost=gamma) for each in both)  # type: ignore[return-value]


def _kind(name: str) -> Any:
    return np.array if name == "dense" else csr


def _cost_table(rng: np.random.Generator, kind: str, states: int, actions: int, successors: int) -> Any:
    pairs, edges = states * actions, states * actions * successors
    level = np.tile(np.linspace(0.2, 1.0, actions), states)  # of an action: the fallback's is the lowest
    pair = np.arange(edges) // successors
    if kind in ("general", "dense"):
        table = rng.uniform(0.2, 1.0, (edges, 9)) * (rng.random((edges, 9)) < 0.2)
        return level[pair, None] * table
    column = {"triplet": np.arange(edges), "pair": pair, "state": pair // actions}[kind]
    table = np.zeros((edges, {"triplet": edges, "pair": pairs, "state": states}[kind] + 1))  # one column for nobody
    table[np.arange(edges), column] = level[pair]
    return table


def _last_table(rng: np.random.Generator, kind: str, states: int, dim: int) -> Any:
    """Of the last states: a few columns, or two of their own, so that blocks of several sizes come about."""
    if kind in ("general", "dense"):
        return rng.uniform(0.2, 1.0, (states, dim)) * (rng.random((states, dim)) < 0.3)
    table = np.zeros((states, dim))
    for column in (np.arange(states) % dim, (3 * np.arange(states) + 1) % dim):
        table[np.arange(states), column] = rng.uniform(0.05, 0.5, states)
    return table


def _kernels(rng: np.random.Generator, kind: str, p: Any, pairs: int, successors: int) -> tuple[Any, Any]:
    """(φ, μ) with ⟨μ, φ⟩ = p, up to the kernels that p is mixed of."""
    edges = np.arange(pairs * successors)
    pair = edges // successors
    if kind == "triplet":
        return np.eye(len(edges)), p
    if kind == "pair":
        table = np.zeros((len(edges), pairs))
        table[edges, pair] = p
        return table, np.ones(pairs)
    other = rng.dirichlet(np.full(successors, 2.0), pairs).reshape(-1)
    if kind == "mixture":
        table = np.zeros((len(edges), 2 * pairs))
        table[edges, 2 * pair], table[edges, 2 * pair + 1] = p, other
        return table, np.tile([0.3, 0.7], pairs)
    third = np.full(len(edges), 1.0 / successors)
    return np.column_stack([p, other, third]), np.array([0.2, 0.5, 0.3])


# --- the reference's tables, spread over more columns ---------------------------------------------------


def lifted(tables: Tables, rng: np.random.Generator, groups: int) -> Tables:
    """The same truth in ``groups`` times as many columns: each triplet, last state and pair uses those of its group.

    ⟨γ, x⟩ and ⟨μ, φ⟩ stay as they are, because γ and μ are repeated in every group; norms grow by √groups.
    """

    def spread(vector: list[float], group: int) -> list[float]:
        return [0.0] * (group * len(vector)) + list(vector) + [0.0] * ((groups - 1 - group) * len(vector))

    x = {key: spread(row, int(rng.integers(groups))) for key, row in tables.x.items()}
    of_pair = {pair: int(rng.integers(groups)) for pair in tables.successors}
    phi = x if tables.shared_features else {key: spread(row, of_pair[key[:3]]) for key, row in tables.phi.items()}
    ends = tables.terminal_x
    scale = float(np.sqrt(groups))
    return replace(
        tables,
        x=x,
        phi=phi,
        terminal_x=None
        if ends is None
        else {s: None if row is None else spread(row, int(rng.integers(groups))) for s, row in ends.items()},
        anchors=None
        if tables.anchors is None
        else {h: None if each is None else (spread(each[0], 0), each[1]) for h, each in tables.anchors.items()},
        limits=[replace(limit, norm=limit.norm * scale) for limit in tables.limits],
        transition_norm=tables.transition_norm * scale,
        mu=[row * groups for row in tables.mu],
        gamma=[[row * groups for row in layer] for layer in tables.gamma],
    )


def sparse_twin(problem: sf.Problem) -> sf.Problem:
    """The same problem, its features sparse."""
    graph, names = problem.graph, problem.naming
    layers, last = graph.layers, graph.terminal
    x = [csr(layer.cost_features) for layer in layers]
    return sf.Problem.from_arrays(
        horizon=problem.horizon,
        start=graph.starts.tolist(),
        state_ptr=[layer.state_ptr.copy() for layer in layers],
        pair_ptr=[layer.pair_ptr.copy() for layer in layers],
        successors=[layer.successor.copy() for layer in layers],
        reward=[layer.reward.copy() for layer in layers],
        cost_features=x,
        transition_features=x if graph.shared_features else [csr(layer.transition_features) for layer in layers],
        fallback=[np.where(layer.fallback < 0, -1, layer.fallback - layer.state_ptr[:-1]) for layer in layers],
        limits=list(problem.limits),
        terminal_reward=last.reward.copy(),
        terminal_cost_features=None if last.cost_features is None else csr(last.cost_features),
        terminal_has_cost=None if last.cost_features is None else last.has_cost.copy(),
        anchor=lambda h: None if graph.anchors[h] is None else list(zip(*graph.anchors[h].parts, strict=True)),
        transition_norm=problem.transition_norm,
        stationary_costs=problem.stationary_costs,
        stationary_transitions=problem.stationary_transitions,
        state_labels=[[row[i] for i in range(len(row))] for row in names.states],
        action_labels=list(names.actions),
    )
