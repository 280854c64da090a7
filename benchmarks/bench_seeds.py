"""A million episodes with each of ten seeds: how regret grows, and whether a limit was ever broken."""

from __future__ import annotations

import math
import tempfile

import numpy as np

from benchmarks.rows import Row, row
from benchmarks.timing import show
from surefoot.runs.ledger import Ledger
from surefoot.sweeps.sweep import Contender, Spec, sweep

WORLD, SEEDS, EPISODES = "thermal/small", 10, 1_000_000
DECADES = [10**power for power in range(3, 7)]


def run(seeds: int = SEEDS, episodes: int = EPISODES) -> list[Row]:
    spec = Spec(WORLD, [Contender("lsvi-new")], range(seeds), episodes, snapshot_seeds=0)
    violations, regret = 0, []
    with tempfile.TemporaryDirectory() as folder:
        outcome = sweep(spec, folder, progress=False)
        if outcome.interrupted:
            raise KeyboardInterrupt
        for place in outcome.folder.finished():
            ledger = Ledger.load(place.folder)
            violations += int(ledger.episodes["violations"].sum())
            regret.append(np.cumsum(ledger.regret))
    slopes = [slope(float(curve[episodes // 10 - 1]), float(curve[-1])) for curve in regret]
    marks = [mark for mark in DECADES if mark <= episodes]
    return [
        row(
            f"{WORLD}: violations in {episodes:,} episodes of each of {seeds} seeds, all together",
            float(violations),
            at_most=0.0,
        ),
        row(
            f"{WORLD}: log-log slope of regret in the last decade of episodes, worst of {seeds} seeds",
            max(slopes),
            at_most=0.75,
            slopes=slopes,
            flat=sum(each == 0 for each in slopes),
            regret_by_episodes={str(mark): [float(curve[mark - 1]) for curve in regret] for mark in marks},
        ),
    ]


def slope(before: float, after: float) -> float:
    """Of cumulative regret over a decade of episodes, log-log.

    Regret that does not grow has slope 0, even where there has been none, whose logarithm does not exist. Regret that
    starts to grow from nothing has no finite slope.
    """
    if after <= before:
        return 0.0
    return math.log10(after / before) if before > 0 else math.inf


if __name__ == "__main__":
    show(run())
