"""A continuous throttle against a grid of 64 fixed openings of the same machine: plan time, and what is earned; and a
charger of any rate against grids of 5 and 17 rates.

``python -m benchmarks.bench_rays [--seeds 10 …] [--episodes 5000]``. Plans of both are made in turn, in one process and
by one thread, from as much data, and their processor time is compared; the throttle's values are exact.
"""

from __future__ import annotations

import argparse
import time

import numba
import numpy as np

import surefoot as sf
from benchmarks.bench_plants import charger_example
from benchmarks.rows import Row, row
from benchmarks.timing import best_of, show

LEVELS = 64


SIZES = ("small", "medium", "large")


def run(seeds: tuple[int, ...] = (10, 11, 12, 13), episodes: int = 5000, sizes: tuple[str, ...] = SIZES) -> list[Row]:
    both = [row for size in sizes for row in (plan_time(size), earned(size, seeds, episodes))]
    return [*both, *charged(seeds, episodes // 10)]


def plan_time(size: str, episodes: int = 100) -> Row:
    """The time of a plan with the ray over that with the grid, both after the same number of episodes. At the
    smaller sizes most of a ray's plan is work by step, whatever the size of the graph."""
    agents, threads = [], numba.get_num_threads()
    for levels in (None, LEVELS):
        world = sf.worlds.make(f"throttle/{size}", levels=levels)
        agents.append(sf.LsviNew(world.problem))
        sf.run(agents[-1], world, episodes, 0)
    numba.set_num_threads(1)  # a thread that waits for work takes processor time, too
    try:
        ray, grid = best_of(20, *(agent.replan for agent in agents), clock=time.process_time)
    finally:
        numba.set_num_threads(threads)
    return row(
        f"a plan of throttle/{size} as a ray, over one with {LEVELS} fixed openings",
        ray / grid,
        at_most=0.1,
        milliseconds=ray * 1e3,
        milliseconds_grid=grid * 1e3,
    )


def earned(size: str, seeds: tuple[int, ...], episodes: int) -> Row:
    """The exact value after so many episodes, ray minus grid, the mean over seeds; and the certificates of each."""
    rows, best = {}, {}
    for levels in (None, LEVELS):
        world = sf.worlds.make(f"throttle/{size}", levels=levels)
        runs = [sf.run(sf.LsviNew(world.problem), world, episodes, seed) for seed in seeds]
        rows[levels], best[levels] = runs, runs[0].best_value
    values, grid = (np.array([each.value[-1] for each in rows[levels]]) for levels in (None, LEVELS))
    pairs = [int(np.mean([each.certified[-1] for each in rows[levels]])) for levels in (None, LEVELS)]
    of = f"throttle/{size} after {episodes:,} episodes"
    return row(
        f"{of}: value as a ray, minus that with {LEVELS} fixed openings, mean of {len(seeds)} seeds",
        float((values - grid).mean()),
        at_least=0.0,
        ray=float(values.mean()),
        grid=float(grid.mean()),
        worst_seed=float((values - grid).min()),
        best_ray=best[None],
        best_grid=best[LEVELS],
        certificates=pairs[0],
        certificates_grid=pairs[1],
        violations=sum(int(each.violations.sum()) for own in rows.values() for each in own),
    )


def charged(seeds: tuple[int, ...], episodes: int) -> list[Row]:
    """The charger of the examples with any rate, against grids of 5 and 17: reward at the end, certificates, plan time,
    true violations; and those of a control, whose declared norm is a third of the truth's."""
    example, fine = charger_example(), np.linspace(0.0, 2.0, 17)
    rates = {"any rate": ([0.0, 0.5, 2.0], True), "5 rates": (fine[::4], False), "17 rates": (fine, False)}
    ended, pairs, agents, broken = {}, {}, {}, dict.fromkeys(rates, 0)
    for name, (levels, rays) in rates.items():
        plant = example.charger(rates=levels, rays=rays)
        runs = []
        for seed in seeds:
            agents[name] = sf.PlantAgent(plant)
            runs.append(sf.run(agents[name], plant.simulate(example.truth), episodes, seed))
        ended[name] = float(np.mean([run.last_reward() for run in runs]))
        pairs[name] = int(np.mean([run.certified[-1] for run in runs]))
        broken[name] = sum(int(run.violations.sum()) for run in runs)
    plans = best_of(20, *(agent.learner.replan for agent in agents.values()), clock=time.process_time)
    return [
        row(
            f"charger after {episodes:,} episodes: reward with any rate, over that with 17 rates",
            ended["any rate"] / ended["17 rates"],
            at_least=1.0,
            rewards=ended,
            certificates=pairs,
            plan_milliseconds=dict(zip(agents, (1e3 * t for t in plans), strict=True)),
            violations=broken,
            violations_of_the_control=careless(seeds, episodes),
        )
    ]


def careless(seeds: tuple[int, ...], episodes: int) -> int:
    """True violations with any rate when the declaration is wrong: a count of 0 above would say little otherwise."""
    example = charger_example()
    plant = example.charger(rates=[0.0, 0.5, 2.0], rays=True, norm=np.linalg.norm(example.STRESS) / 3)
    runs = [sf.run(sf.PlantAgent(plant), plant.simulate(example.truth), episodes // 5, seed) for seed in seeds]
    return sum(int(run.violations.sum()) for run in runs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13])
    parser.add_argument("--episodes", type=int, default=5000)
    chosen = parser.parse_args()
    show(run(tuple(chosen.seeds), chosen.episodes))
