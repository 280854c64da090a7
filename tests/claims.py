"""What worlds claim of learners, measured in runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import surefoot as sf


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
