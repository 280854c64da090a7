"""What each of two test processes compiles first: on a fresh clone they would compile the same code at the same time.

Nothing here is checked. Compiled code is kept on disk, where the other process finds it; the next run has it all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import surefoot as sf


def _learner(*, in_float32: bool = False) -> None:
    """Plans and compiled runs, of features in either width."""
    world = sf.worlds.make("thermal/testing")
    if in_float32:
        world = world.stored_in_float32()
    sf.run(sf.LsviNew(world.problem), world, episodes=3, seed=0)


def _study() -> None:
    """Opening one compiles the monitor."""
    with tempfile.TemporaryDirectory() as folder:
        sf.Study.open(Path(folder) / "study", sf.worlds.make("thermal/testing").problem).close()


PARTS: tuple[Callable[[], None], ...] = (_learner, lambda: _learner(in_float32=True), _study)


def compile_first(worker: int) -> None:
    """The share of a worker: the first takes what almost every test needs, the second what many need later."""
    for part in PARTS[:1] if worker == 0 else PARTS[1:]:
        part()
