"""Worlds from the reference's random tables: the same truth, handed to surefoot; with rays, too (spec 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf
from tests.differential.compare import problem_of
from tests.reference.generate import (
    random_paper_settings,
    random_paper_tables,
    random_tables,
    with_forbidden,
    with_pair_rows,
)
from tests.reference.tables import Action, State, Tables


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


def ray_tables(number: int, seed: int) -> Tables:
    """A problem with one cost row per pair, some states forbidden."""
    rng = np.random.default_rng([seed, number, 16])
    tables = random_tables(number + 100_000 * seed, shared_features=False, misspecified=False)
    return with_forbidden(with_pair_rows(tables, rng, 1, 0.0), rng)


def center_of(tables: Tables, h: int, s: State) -> Action:
    """The fallback's action; off its way the state's first."""
    return tables.fallback.get((h, s), tables.actions[h, s][0])


def ray_problem(tables: Tables) -> sf.Problem:
    """Every action is a ray from the centre."""
    limits = [
        sf.Limit(f"limit {j}", bound=each.bound, noise=each.noise, norm=each.norm)
        for j, each in enumerate(tables.limits)
    ]
    return sf.Problem.from_functions(**tables.functions(), limits=limits, center=lambda h, s: center_of(tables, h, s))


def ray_world(number: int, seed: int) -> sf.World:
    tables = ray_tables(number, seed)
    return sf.World(ray_problem(tables), transition=tables.mu, cost=tables.gamma)
