"""Random worlds whose actions are rays: the reference's random tables, with a cost row per pair (spec 9)."""

from __future__ import annotations

import numpy as np

import surefoot as sf
from tests.reference.generate import random_tables, with_forbidden, with_pair_rows
from tests.reference.tables import Action, State, Tables


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
