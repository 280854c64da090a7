"""The same bits, whatever the number of threads and whichever way a run is played: how many arrays differ."""

from __future__ import annotations

import numba
import numpy as np

import surefoot as sf
from benchmarks.playing import played
from benchmarks.problems import learned, random_problem
from benchmarks.rows import Row, not_measured, row
from benchmarks.timing import show
from surefoot.runs.run import Run
from tests.alike import plan_arrays

Arrays = list[np.ndarray]


def run() -> list[Row]:
    return [threads(), ways_of_playing()]


def threads() -> Row:
    """A plan large enough that its kernels do use the threads they are given."""
    name = "the same plan made by 1 thread and by 2: arrays that differ"
    if numba.get_num_threads() < 2:
        return not_measured(name, "there is one core")
    agent = learned(random_problem(200_000, 16, horizon=4), rows=500)
    before, plans = numba.get_num_threads(), []
    try:
        for count in (1, 2):
            numba.set_num_threads(count)
            agent.replan()
            plans.append([array.copy() for array in plan_arrays(agent.plan)])
    finally:
        numba.set_num_threads(before)
    return _row(name, *plans)


def ways_of_playing(episodes: int = 2_000) -> Row:
    world = sf.worlds.make("thermal/small")
    runs = [played(sf.LsviNew(world.problem), world, episodes, compiled=compiled) for compiled in (True, False)]
    return _row("the same run compiled and step by step: arrays that differ", *map(_record, runs))


def _record(run: Run) -> Arrays:
    """All that a run wrote down, and its last plan."""
    plans = [np.asarray(column) for column in vars(run.plans_table).values()]
    return [*run.episodes_table.columns().values(), *plans, *plan_arrays(run.plan)]


def _row(name: str, one: Arrays, two: Arrays) -> Row:
    same = [
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True)
    ]
    return row(
        name, float(same.count(False)), at_most=0.0, arrays=len(same), numbers=int(sum(array.size for array in one))
    )


if __name__ == "__main__":
    show(run())
