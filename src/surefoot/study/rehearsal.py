"""Everything a study calls is compiled when it is opened, so that no tell waits for the compiler.

Numba compiles a function when it is first called with arguments of some types, and keeps the result on disk; the first
time on a machine that takes about a minute. Types do not depend on sizes, so some episodes on a tiny problem with
arrays of the same types compile all that a measurement needs. Opening a study makes a plan, which compiles the rest.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from surefoot.agents import registry
from surefoot.agents.blocks.look_ahead import LookAhead
from surefoot.agents.blocks.place import under_way
from surefoot.errors import SurefootError
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.monitor.monitor import Monitor
from surefoot.study.status import progress_of

EPISODES = 3


def rehearse(problem: Problem, agent: str) -> None:
    """Compile, or load from disk, what tells and plans of this study will need; once in a process for each kind."""
    layer = problem.graph.layers[0]
    kind = (str(layer.cost_features.dtype), str(layer.transition_features.dtype), str(layer.successor.dtype))
    _rehearsed(agent, kind, problem.stationary_costs, problem.stationary_transitions)


@cache
def _rehearsed(name: str, kind: tuple[str, str, str], costs: bool, transitions: bool) -> None:
    problem = _tiny(kind, costs, transitions)
    options: dict[str, Any] = {"episodes": 100} if name == "lsvi-new-paper" else {}
    with contextlib.suppress(SurefootError, ArithmeticError, ValueError), np.errstate(all="ignore"):
        _play(problem, name, options)


def _play(problem: Problem, name: str, options: dict[str, Any]) -> None:
    agent = registry.make(name, problem, failure_probability=0.1, **options)
    assert isinstance(agent, LookAhead)
    monitor, cost = Monitor(problem, 0.01), np.array([0.1])
    for _ in range(EPISODES):
        agent.begin_episode()
        for h, layer in enumerate(problem.graph.layers):
            pair = agent._choose(h, under_way(agent.place).state)
            edge = int(layer.pair_ptr[pair])
            agent._record(h, pair, edge, cost)
            monitor.observe(h, layer.cost_features[layer.row_of(edge)], cost)
        agent._record_terminal(cost)
        agent._finish()
        agent.replan()
        progress_of(agent.plan)
        monitor.restore(monitor.arrays())


def _tiny(kind: tuple[str, str, str], costs: bool, transitions: bool) -> Problem:
    """Two states, two actions, three steps, a cost at the end; arrays of the given types."""
    problem = Problem.from_functions(
        horizon=3,
        start=0,
        actions=lambda h, s: [0, 1],
        successors=lambda h, s, a: [0] if a == 0 else [0, 1],
        reward=lambda h, s, a: 0.5 * a,
        cost_features=lambda h, s, a, s2: [1.0, 0.1 * a],
        transition_features=lambda h, s, a, s2: [1.0, 0.0] if a == 0 else [0.5, 0.5 * s2],
        terminal_cost_features=lambda s: [1.0, 0.0],
        fallback=lambda h, s: 0,
        limits=[Limit("x", bound=0.6, noise=0.05, norm=1.0)],
        stationary_costs=costs,
        stationary_transitions=transitions,
    )
    layers = tuple(
        replace(
            layer,
            cost_features=_as(layer.cost_features, kind[0]),
            transition_features=_as(layer.transition_features, kind[1]),
            successor=_as(layer.successor, kind[2]),
        )
        for layer in problem.graph.layers
    )
    return replace(problem, graph=replace(problem.graph, layers=layers))


def _as(array: Any, dtype: str) -> Any:
    found = array.astype(dtype, copy=False)
    found.setflags(write=False)
    return found
