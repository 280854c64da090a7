"""Where the runs of a sweep are played: one seam, ``map``, and what fills it.

================  ======================================================================================
``local``         processes of this machine (the default): :mod:`surefoot.sweeps.pool`
``dask``          a cluster of ``dask.distributed`` on this machine: :mod:`surefoot.sweeps.on_dask`
``tcp://…``       the Dask scheduler at this address (also ``tls://``, ``ucx://``, ``ws://``, ``wss://``)
``FILE.toml``     a cluster of dask-jobqueue, described in a file: :mod:`surefoot.sweeps.jobqueue`
``joblib``        joblib with its own processes; ``joblib:NAME`` with a backend that is registered there
================  ======================================================================================

Whatever the engine, a run is the same bytes: its own seed, one thread, and this package's version on every worker. The
process that runs the sweep is the only one that writes to its folder, so that a worker believed dead cannot disturb.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from surefoot.checks import nearest, whole
from surefoot.errors import InvalidInput
from surefoot.runs.interrupt import Interrupt
from surefoot.sweeps.display import Display
from surefoot.sweeps.folder import Folder
from surefoot.sweeps.task import Played, Task

MOST_DEATHS = 3  #: of workers with the same task: then it is given up, and the others go on

ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
_WORDS = ("local", "dask", "joblib")


@dataclass(frozen=True)
class Lost:
    """A run that was given up: whoever played it died."""

    deaths: int
    how: str  # what is known of the last death

    def __str__(self) -> str:
        return f"its worker died {self.deaths} times, the last time with {self.how}"


Result = Played | Lost | Exception  # an exception is one that the run itself raised
Results = Generator[tuple[Task, Result], None, None]


class Engine(Protocol):
    """Plays tasks somewhere."""

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        """Every task that ended or stopped with what became of it, in any order.

        Once ``stop.requested`` is set, no task is begun; those under way are kept where they are and come, too. What a
        run has done is in its folder before it is said here. A worker that dies is replaced and its task played again
        from what was kept; after ``MOST_DEATHS`` of them it is :class:`Lost`.
        """
        ...


def engine_of(on: str | Engine | None, jobs: int | None) -> Engine:
    """The engine of a word, an address or a file; ``jobs``: processes on this machine, by default one per core."""
    if on is not None and not isinstance(on, str):
        return on
    if on is None or on == "local":
        from surefoot.sweeps.pool import Local

        return Local(jobs_of(jobs))
    if on.startswith(ADDRESSES):
        from surefoot.sweeps import on_dask

        return on_dask.at_address(on, jobs)
    if on.endswith(".toml"):
        from surefoot.sweeps import jobqueue

        return jobqueue.from_file(on, jobs)
    if on == "dask":
        from surefoot.sweeps import on_dask

        return on_dask.on_this_machine(jobs_of(jobs))
    if on == "joblib" or on.startswith("joblib:"):
        from surefoot.sweeps import on_joblib

        return on_joblib.Joblib(jobs_of(jobs), on.partition(":")[2])
    said = (
        f"{nearest(on, _WORDS, 'Engines are')} Or give a scheduler's address such as tcp://host:8786, or a TOML file."
    )
    raise InvalidInput("no such engine", got=repr(on), fix=said)


def jobs_of(jobs: int | None) -> int:
    """So many, or one per core that this process may use."""
    if jobs is not None:
        return whole("jobs", jobs, 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def refuse_jobs(jobs: int | None, on: str) -> None:
    """Of an engine whose size is decided elsewhere."""
    if jobs is not None:
        raise InvalidInput("the number of processes is decided by the cluster", where=on, got=f"jobs={jobs}")
