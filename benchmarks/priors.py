"""Worlds that declare intervals of their coefficients in place of a norm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import surefoot as sf

SHARE = 0.5  #: an interval is as wide as ±50 % of the true coefficient


def with_intervals(world: sf.World, seed: int) -> sf.World:
    """The same world, each coefficient declared by an interval of the width |γ_i|, with the truth anywhere within.

    A coefficient that is zero gets the width of the smallest other one. Where γ differs by step, an interval holds all.
    """
    rng, problem = np.random.default_rng([seed, 14]), world.problem
    truth = np.array(world.cost_parameters)  # (H, m, dc)
    if problem.graph.terminal.cost_features is None:
        truth = truth[:-1]
    limits = []
    for j, limit in enumerate(problem.limits):
        low, high, size = truth[:, j].min(axis=0), truth[:, j].max(axis=0), np.abs(truth[:, j]).max(axis=0)
        width = 2.0 * SHARE * np.where(size > 0.0, size, size[size > 0.0].min())
        below = rng.uniform(0.0, 1.0, len(width)) * width
        prior = tuple(zip((low - below).tolist(), (high - below + width).tolist(), strict=True))
        limits.append(replace(limit, norm=None, prior=prior))
    declared = replace(problem, limits=tuple(limits))
    return sf.World(
        declared, transition=world.transition, cost=world.cost_parameters, noise=world.noise, deviation=world.deviation
    )
