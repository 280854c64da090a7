"""What each of two test processes compiles first: on a fresh clone they would compile the same code at the same time.

Nothing here is checked. Compiled code is kept on disk, where the other process finds it; the next run has it all.
"""

from __future__ import annotations

import numpy as np

import surefoot as sf
from surefoot.monitor.monitor import Monitor
from tests.monitored import told


def _plans() -> None:
    sf.LsviNew(sf.worlds.make("thermal/testing").problem)


def _runs_and_monitors() -> None:
    """Those of a learner use what is compiled for the fallback."""
    world = sf.worlds.make("thermal/testing")
    sf.run(sf.agents.make("fallback", world.problem), world, episodes=3, seed=0)
    monitor, steps = Monitor(world.problem, 0.01), world.problem.horizon - 1
    for _ in range(40):  # a second window begins
        for h in range(steps):
            told(monitor, h, 0, *np.zeros(len(world.problem.limits)))
    monitor.restore(monitor.arrays())


def compile_first(worker: int) -> None:
    """The share of a worker: half of it each."""
    (_plans, _runs_and_monitors)[worker]()
