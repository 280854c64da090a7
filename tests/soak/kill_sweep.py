"""Sweeps of hundreds of runs on a Dask cluster, while workers are killed, the scheduler is lost, or the disk is full.

Nothing may be missing, nothing counted twice, and every byte must be that of the same sweep in one process.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from surefoot.clusters import of_cluster
from surefoot.errors import UnwritableFile
from surefoot.storage.disk import FileLayer
from surefoot.sweeps import sweep
from surefoot.sweeps.engines.on_dask import Dask
from tests.engines import Separate, cluster, killing, many
from tests.sweeps import contents, left_over, wait_until

PAUSE = 2.0  # seconds between two kills, at most
CRASHES = 5  # of the scheduler


def whole(folder: Path, tasks: int) -> Path:
    """The same sweep in one process."""
    sweep.sweep(many(tasks), folder / "whole", jobs=1)
    return folder / "whole"


def kill_workers(folder: Path, expected: Path, tasks: int, seed: int) -> tuple[int, int]:
    """→ (workers killed, runs that were given up, since chance killed theirs three times)."""
    root = folder / "killed"
    with cluster() as found, killing(found, seed, most=tasks, pause=PAUSE, root=root) as killed:
        outcome = sweep.sweep(many(tasks), root, on=Dask(of_cluster(found, 2)), checkpoint_seconds=1.0)
    given_up = len(outcome.lost)
    assert outcome.finished + given_up == tasks
    if given_up:
        sweep.resume_sweep(root, jobs=1)
    _compare(root, expected, tasks)
    return len(killed), given_up


def lose_scheduler(folder: Path, expected: Path, tasks: int, seed: int) -> int:
    """Scheduler and worker go down together, and come back; → how often."""
    root, separate, rng = folder / "lost", Separate(folder), np.random.default_rng(seed)
    separate.start()
    crashes, over = list[int](), threading.Event()

    def crash() -> None:
        marks = sorted(rng.choice(np.arange(1, tasks - 1), CRASHES, replace=False).tolist())
        for finished in marks:
            wait_until(lambda finished=finished: over.is_set() or _finished(root) >= finished, 3600)
            if over.is_set():
                return
            separate.kill()
            over.wait(float(rng.uniform(0.0, 2.0)))
            separate.start()
            crashes.append(finished)

    thread = threading.Thread(target=crash)
    thread.start()
    try:
        outcome = sweep.sweep(many(tasks), root, on=separate.address, checkpoint_seconds=1.0)
    finally:
        over.set()
        thread.join()
        separate.kill()
    assert (outcome.finished, outcome.lost) == (tasks, ())
    _compare(root, expected, tasks)
    return len(crashes)


def fill_disk(folder: Path, expected: Path, tasks: int, seed: int) -> int:
    """The disk is full after some writes, and has room again when the sweep is resumed; → how often it was full."""
    root, rng, full = folder / "full", np.random.default_rng(seed), 0
    real, left = FileLayer.fsync, [0]

    def fsync(self: FileLayer, file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, file)

    with cluster() as found, mock.patch.object(FileLayer, "fsync", fsync):
        on: Any = Dask(of_cluster(found, 2))
        while True:
            left[0] = int(rng.integers(10, 4 * tasks))  # a run writes some ten files, so this comes several times
            try:
                if (root / "sweep.json").exists():
                    outcome = sweep.resume_sweep(root, on=on)
                else:
                    outcome = sweep.sweep(many(tasks), root, on=on, force=root.exists())
                break
            except UnwritableFile:
                full += 1
    assert full > 0
    assert (outcome.finished, outcome.lost) == (tasks, ())
    _compare(root, expected, tasks)
    return full


def _finished(root: Path) -> int:
    return len(list(root.glob("runs/*/seed-????")))


def _compare(root: Path, expected: Path, tasks: int) -> None:
    assert contents(root) == contents(expected)
    assert left_over(root) == []
    assert len(sweep.open_folder(root).times()) == tasks
