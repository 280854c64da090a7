"""A continuous throttle against a grid of 64 fixed openings of the same machine: plan time, and what is earned.

``python -m benchmarks.bench_rays [--seeds 10 …] [--episodes 5000]``. Plans of both are made in turn, in one process,
from as much data; values are exact.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import surefoot as sf
from benchmarks.timing import best_of, show

LEVELS = 64


def run(seeds: tuple[int, ...] = (10, 11, 12, 13), episodes: int = 5000, size: str = "medium") -> list[dict[str, Any]]:
    return [plan_time(size), *earned(seeds, episodes)]


def plan_time(size: str, episodes: int = 300) -> dict[str, Any]:
    """The time of a plan with the ray over that with the grid, both after the same number of episodes."""
    agents = []
    for levels in (None, LEVELS):
        world = sf.worlds.make(f"throttle/{size}", levels=levels)
        agents.append(sf.LsviNew(world.problem))
        sf.run(agents[-1], world, episodes, 0)
    ray, grid = best_of(20, *(agent.replan for agent in agents))
    return {
        "name": f"a plan of throttle/{size} as a ray, over one with {LEVELS} fixed openings",
        "value": ray / grid,
        "target": 0.1,
        "better": "lower",
        "milliseconds": ray * 1e3,
        "milliseconds_grid": grid * 1e3,
    }


def earned(seeds: tuple[int, ...], episodes: int) -> list[dict[str, Any]]:
    """The exact value after so many episodes, ray minus grid, the worst seed; and the certificates of each."""
    rows, best = {}, {}
    for levels in (None, LEVELS):
        world = sf.worlds.make("throttle/small", levels=levels)
        runs = [sf.run(sf.LsviNew(world.problem), world, episodes, seed) for seed in seeds]
        rows[levels], best[levels] = runs, runs[0].best_value
    values, grid = (np.array([each.value[-1] for each in rows[levels]]) for levels in (None, LEVELS))
    pairs = [int(np.mean([each.certified[-1] for each in rows[levels]])) for levels in (None, LEVELS)]
    broken = sum(int(each.violations.sum()) for own in rows.values() for each in own)
    return [
        {
            "name": f"value after {episodes:,} episodes, ray minus {LEVELS} fixed openings, mean of {len(seeds)} seeds",
            "value": float((values - grid).mean()),
            "target": 0.0,
            "better": "higher",
            "ray": float(values.mean()),
            "grid": float(grid.mean()),
            "worst_seed": float((values - grid).min()),
            "best_ray": best[None],
            "best_grid": best[LEVELS],
            "certificates": pairs[0],
            "certificates_grid": pairs[1],
            "violations": broken,
        }
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13])
    parser.add_argument("--episodes", type=int, default=5000)
    chosen = parser.parse_args()
    show(run(tuple(chosen.seeds), chosen.episodes))
