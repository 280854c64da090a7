"""Problems small enough to work out on paper, and ways to tell an agent what happened on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.estimate.costs import CostBounds

Vector = Sequence[float]


def corridor(
    features: Mapping[str, Vector],
    limits: sf.Limit | list[sf.Limit],
    *,
    horizon: int = 2,
    anchor: Any = None,
    stationary_costs: bool = False,
    terminal: Vector | None = None,
) -> sf.Problem:
    """One state ``"s"`` per layer; every action stays on the way and has one feature. The first is the fallback."""
    return sf.Problem.from_functions(
        horizon=horizon,
        start="s",
        actions=lambda h, s: list(features),
        successors=lambda h, s, a: ["s"],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, s2: list(features[a]),
        transition_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: next(iter(features)),
        limits=limits,
        anchor=None if anchor is None else (lambda h: anchor),
        terminal_cost_features=None if terminal is None else (lambda s: list(terminal)),
        stationary_costs=stationary_costs,
    )


def tell(agent: Any, *episodes: Sequence[tuple[str, Any]], terminal: Any = None) -> None:
    """Episodes in a corridor, each a list of (action, measured cost), one per layer."""
    for steps in episodes:
        agent.begin_episode("s")
        for h, (action, cost) in enumerate(steps):
            agent.observe(h, "s", action, "s", cost)
        if terminal is not None:
            agent.observe_terminal("s", terminal)
        agent.end_episode()


Graph = Mapping[tuple[int, str], Mapping[str, Sequence[str]]]


def maze(
    graph: Graph,
    fallback: Mapping[tuple[int, str], str],
    *,
    start: str | list[str] = "s",
    limits: int | list[sf.Limit] = 1,
    reward: Mapping[tuple[int, str, str], float] | None = None,
    terminal_reward: Mapping[str, float] | None = None,
    terminal_costs: Sequence[str] | None = None,
    **declared: Any,
) -> sf.Problem:
    """(layer, state) → action → successors. Bounds are all 1; features are of no interest: bounds are made by hand."""
    horizon = max(h for h, _ in graph) + 2
    reward, terminal_reward = reward or {}, terminal_reward or {}
    chosen: dict[str, Any] = {
        "horizon": horizon,
        "start": start,
        "actions": lambda h, s: list(graph[h, s]),
        "successors": lambda h, s, a: list(graph[h, s][a]),
        "reward": lambda h, s, a: reward.get((h, s, a), 0.0),
        "cost_features": lambda h, s, a, s2: [1.0],
        "terminal_reward": lambda s: terminal_reward.get(s, 0.0),
        "fallback": lambda h, s: fallback[h, s],
        "limits": [sf.Limit(f"limit {j}", bound=1.0, noise=0.1, norm=1.0) for j in range(limits)]
        if type(limits) is int
        else limits,
    }
    if terminal_costs is not None:
        chosen["terminal_cost_features"] = lambda s: [1.0] if s in terminal_costs else None
    return sf.Problem.from_functions(**{**chosen, **declared})


Numbers = Mapping[tuple[int, str, str, str], float | Sequence[float]]


def bounds_of(
    problem: sf.Problem,
    upper: Numbers,
    lower: Numbers | None = None,
    *,
    terminal_upper: Mapping[str, float | Sequence[float]] | None = None,
    terminal_lower: Mapping[str, float | Sequence[float]] | None = None,
    consistent: bool = True,
) -> CostBounds:
    """Bounds by label: uppers not named are 0.5, lowers 0; last states without a cost carry −∞, as in the engine."""
    m, graph = len(problem.limits), problem.graph

    def table(named: Numbers, default: float) -> list[np.ndarray]:
        tables = [np.full((layer.n_edges, m), default) for layer in graph.layers]
        for (h, s, a, s2), value in named.items():
            tables[h][problem.edge_index(h, s, a, s2)] = value
        return tables

    def last(named: Mapping[str, float | Sequence[float]] | None, default: float) -> np.ndarray | None:
        if graph.terminal.cost_features is None:
            return None
        values = np.where(graph.terminal.has_cost[:, None], np.full((graph.terminal.n_states, m), default), -np.inf)
        for s, value in (named or {}).items():
            values[problem.state_index(problem.horizon - 1, s)] = value
        return values

    return CostBounds(
        upper=tuple(table(upper, 0.5)),
        lower=tuple(table(lower or {}, 0.0)),
        terminal_upper=last(terminal_upper, 0.5),
        terminal_lower=last(terminal_lower, 0.0),
        consistent=consistent,
    )
