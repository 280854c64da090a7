"""Worlds from the reference's random tables: the same truth, handed to surefoot."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf
from tests.differential.compare import problem_of
from tests.reference.generate import random_paper_settings, random_paper_tables, random_tables
from tests.reference.tables import Tables


def world_of(tables: Tables, noise: str | None = None) -> sf.World:
    """The world of some tables, with their deviations from linearity."""
    problem = problem_of(tables)
    m, graph = len(tables.limits), problem.graph
    deviation: list[Any] | None = None
    if tables.deviation:
        deviation = [np.zeros((layer.n_edges, m)) for layer in graph.layers]
        for (h, s, a, s2), off in tables.deviation.items():
            deviation[h][problem.edge_index(h, s, a, s2)] = off
        if tables.terminal_x is not None:
            last = np.zeros((graph.terminal.n_states, m))
            for s, off in tables.terminal_deviation.items():
                last[problem.state_index(tables.horizon - 1, s)] = off
            deviation.append(last)
    return sf.World(problem, transition=tables.mu, cost=tables.gamma, noise=noise, deviation=deviation)


def certified_world(number: int, noise: str | None = None, **options: Any) -> sf.World:
    """A random world for LsviNew; options as :func:`random_tables`."""
    return world_of(random_tables(number, **options), noise)


def paper_world(number: int, noise: str | None = None, starts: int | None = None) -> tuple[sf.World, dict[str, Any]]:
    """A random world in which the paper's constants exist, and keywords for them; K′ is left to the caller."""
    while True:
        tables = random_paper_tables(number)
        if starts is None or len(tables.starts) == starts:
            settings = random_paper_settings(number)
            return world_of(tables, noise), {**settings, "episodes": int(settings["episodes"])}
        number += 1_000_000
