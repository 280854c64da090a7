"""What intervals are worth beside a norm: regret of the same world with either declaration, on seeds not tuned on.

The norms of the named worlds are within some per cent of the truth, which nobody knows of a plant; so the norm that the
same intervals imply is declared, too.

Part of bench_runs; alone: ``python -m benchmarks.priors``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

import surefoot as sf
from benchmarks.playing import by_seed, played
from benchmarks.rows import Row, row
from benchmarks.timing import show

SHARE = 0.5  #: an interval is as wide as ±50 % of the true coefficient
WORLDS = {"thermal/testing": 3000, "thermal/small": 3000, "driving/testing": 3000, "power/testing": 3000}
AIM = 0.7
SEEDS = range(901, 911)


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
    return declared_as(world, limits)


def with_their_norm(world: sf.World) -> sf.World:
    """A world with intervals, declared by the longest γ that they allow: the same knowledge, as a norm."""
    norms = [float(np.linalg.norm(np.abs(np.array(limit.prior)).max(axis=1))) for limit in world.problem.limits]
    limits = zip(world.problem.limits, norms, strict=True)
    return declared_as(world, [replace(limit, prior=None, norm=norm) for limit, norm in limits])


def declared_as(world: sf.World, limits: Sequence[sf.Limit]) -> sf.World:
    """The same truth under other limits."""
    declared = replace(world.problem, limits=tuple(limits))
    return sf.World(
        declared, transition=world.transition, cost=world.cost_parameters, noise=world.noise, deviation=world.deviation
    )


def three_ways(name: str, episodes: int, seed: int) -> dict[str, tuple[float, int]]:
    """Regret and violations of one seed, by what is declared."""
    world = sf.worlds.make(name)
    intervals = with_intervals(world, seed)
    ways = {"norm": world, "their_norm": with_their_norm(intervals), "prior": intervals}
    runs = {kind: played(sf.LsviNew(each.problem), each, episodes, seed) for kind, each in ways.items()}
    return {kind: (float(run.regret.sum()), int(run.violations.sum())) for kind, run in runs.items()}


def worth_of_intervals(worlds: dict[str, int] = WORLDS, seeds: range = SEEDS) -> list[Row]:
    found = []
    for name, episodes in worlds.items():
        runs = by_seed(partial(three_ways, name, episodes), seeds)
        regret = {kind: [each[kind][0] for each in runs] for kind in ("norm", "their_norm", "prior")}
        violations = sum(broken for each in runs for _, broken in each.values())
        found.append(
            row(
                f"{name}: regret at {episodes:,} episodes with intervals of ±50 % over that with the norm",
                float(np.mean(regret["prior"]) / np.mean(regret["norm"])),
                at_most=AIM,
                violations=violations,
            )
            | regret
        )
        found.append(
            row(
                f"{name}: regret at {episodes:,} episodes with intervals over that with the norm they imply",
                float(np.mean(regret["prior"]) / np.mean(regret["their_norm"])),
            )
        )
    return found


if __name__ == "__main__":
    show(worth_of_intervals())
