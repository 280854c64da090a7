"""Kill workers of a Dask cluster at random while a sweep of hundreds of runs is played, and compare what is left.

Nothing may be missing, nothing counted twice, and every byte must be that of the same sweep in one process.
"""

from __future__ import annotations

from pathlib import Path

from surefoot.clusters import of_cluster
from surefoot.sweeps import sweep
from surefoot.sweeps.engines.on_dask import Dask
from tests.engines import cluster, killing, many
from tests.sweeps import contents, left_over

PAUSE = 2.0  # seconds between two kills, at most


def kill_workers(folder: Path, tasks: int, seed: int) -> tuple[int, int]:
    """→ (workers killed, runs that were given up, since chance killed theirs three times)."""
    spec = many(tasks)
    with cluster() as found, killing(found, seed, most=tasks, pause=PAUSE, root=folder / "killed") as killed:
        outcome = sweep.sweep(spec, folder / "killed", on=Dask(of_cluster(found, 2)), checkpoint_seconds=1.0)
    given_up = len(outcome.lost)
    assert outcome.finished + given_up == tasks
    if given_up:
        outcome = sweep.resume(folder / "killed", jobs=1)
    sweep.sweep(spec, folder / "whole", jobs=1)
    assert contents(folder / "killed") == contents(folder / "whole")
    assert left_over(folder / "killed") == []
    assert len(outcome.folder.times()) == tasks
    return len(killed), given_up
