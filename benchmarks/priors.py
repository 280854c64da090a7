"""What intervals are worth beside a norm: regret of the same world with either declaration, on seeds not tuned on.

Part of bench_runs; alone: ``python -m benchmarks.priors``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import surefoot as sf
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
    declared = replace(problem, limits=tuple(limits))
    return sf.World(
        declared, transition=world.transition, cost=world.cost_parameters, noise=world.noise, deviation=world.deviation
    )


def worth_of_intervals(worlds: dict[str, int] = WORLDS, seeds: range = SEEDS) -> list[dict[str, Any]]:
    found = []
    for name, episodes in worlds.items():
        regret: dict[str, list[float]] = {"norm": [], "prior": []}
        violations = 0
        for seed in seeds:
            world = sf.worlds.make(name)
            for kind, each in (("norm", world), ("prior", with_intervals(world, seed))):
                played = sf.run(sf.LsviNew(each.problem), each, episodes, seed, progress=False)
                regret[kind].append(float(played.regret.sum()))
                violations += int(played.violations.sum())
        found.append(
            {
                "name": f"{name}: regret at {episodes:,} episodes with intervals of ±50 % over that with the norm",
                "value": float(np.mean(regret["prior"]) / np.mean(regret["norm"])),
                "target": AIM,
                "better": "lower",
                **regret,
                "violations": violations,
            }
        )
    return found


if __name__ == "__main__":
    show(worth_of_intervals())
