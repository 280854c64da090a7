"""What intervals are worth beside a norm: regret of the same world with either declaration, on seeds not tuned on."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf
from benchmarks.priors import with_intervals
from benchmarks.timing import show

WORLDS = {"thermal/testing": 3000, "thermal/small": 3000, "driving/testing": 3000, "power/testing": 3000}
AIM = 0.7
SEEDS = range(901, 905)


def run(worlds: dict[str, int] = WORLDS, seeds: range = SEEDS) -> list[dict[str, Any]]:
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
    show(run())
