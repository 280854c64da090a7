"""Where the runs of a sweep are played: the interface, ``map``, and what implements it.

================  ======================================================================================
``local``         processes of this machine (the default): :mod:`surefoot.sweeps.engines.local`
a cluster         ``dask``, an address or a file (:mod:`surefoot.clusters`): :mod:`surefoot.sweeps.engines.on_dask`
``joblib``        joblib with its own processes; ``joblib:NAME`` with a backend that is registered there
================  ======================================================================================

Whatever the engine, a run is the same bytes: it has its own seed and one thread, and every worker has this version of
the package. Workers elsewhere never write to the sweep's folder, so one that is wrongly believed dead cannot disturb.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from surefoot.checks import nearest
from surefoot.clusters import cluster_of, is_cluster, jobs_of
from surefoot.errors import InvalidInput
from surefoot.runs.progress import Display, Interrupt
from surefoot.sweeps.folder import Folder
from surefoot.sweeps.task import Played, Task


@dataclass(frozen=True)
class Lost:
    """A run that was given up because its workers died."""

    deaths: int
    how: str  # the last one died

    def __str__(self) -> str:
        return f"its worker died {self.deaths} times, the last time with {self.how}"


Result = Played | Lost | Exception  # an exception is one that the run itself raised
Results = Generator[tuple[Task, Result], None, None]


class Engine(Protocol):
    """Plays tasks somewhere."""

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        """Every task that ended or stopped, with its result, in any order.

        Once ``stop.requested`` is set, no task is begun; those under way are saved and yielded, too. What a run has
        done is in its folder before it is yielded. A worker that dies is replaced and its task resumed from what was
        saved; after ``clusters.MOST_DEATHS`` deaths the task is :class:`Lost`.
        """
        ...


def engine_of(on: str | Engine | None, jobs: int | None) -> Engine:
    """The engine for a word, an address or a file; ``jobs``: processes on this machine, by default one per core."""
    if on is not None and not isinstance(on, str):
        return on
    if on is None or on == "local":
        from surefoot.sweeps.engines.local import Local

        return Local(jobs_of(jobs))
    if is_cluster(on):
        from surefoot.sweeps.engines.on_dask import Dask

        return Dask(cluster_of(on, jobs))
    if on == "joblib" or on.startswith("joblib:"):
        from surefoot.sweeps.engines.on_joblib import Joblib

        return Joblib(jobs_of(jobs), on.partition(":")[2])
    known = nearest(on, ("local", "dask", "joblib"), "Engines are")
    fix = f"{known} Or give a scheduler's address such as tcp://host:8786, or a TOML file."
    raise InvalidInput("no such engine", got=repr(on), fix=fix)
