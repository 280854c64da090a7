"""Dask clusters, for sweeps and for plans. A cluster is given by a word, an address or a file:

================  ======================================================================================
``dask``          a cluster of ``dask.distributed`` on this machine
``tcp://…``       the Dask scheduler at this address (also ``tls://``, ``ucx://``, ``ws://``, ``wss://``)
``FILE.toml``     a cluster that a batch system starts, through dask-jobqueue
================  ======================================================================================

Such a file::

    cluster = "slurm"         # or pbs, sge, lsf, oar, moab, htcondor
    workers = 64              # processes, each for one run or one block at a time

    [options]                 # as dask_jobqueue.SLURMCluster takes them
    queue = "short"
    cores = 16                # of a job; as many processes of one thread, unless "processes" says otherwise
    memory = "32GB"
    walltime = "02:00:00"
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from surefoot.checks import nearest, needed, whole
from surefoot.errors import InvalidInput
from surefoot.storage.documents import read_toml
from surefoot.threads import ONE_THREAD

ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
CONNECT = 10.0  # seconds for a scheduler to answer
MOST_DEATHS = 3  #: of workers with the same task: then it is given up, and the others go on
CONFIG = {
    "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
    "distributed.scheduler.worker-saturation": 1.0,  # a worker has what it plays and no more: it answers for that alone
    "distributed.worker.daemon": True,
}
KINDS = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
    "htcondor": "HTCondorCluster",
}
KEYS = ("cluster", "workers", "options")


@dataclass(frozen=True)
class Cluster:
    """Where to find workers. ``connect`` opens a client, also again after a scheduler was lost.

    ``workers``: how many a cluster that we start should have; it is kept at this number, since Dask gives up a worker
    that dies while it starts. ``patient``: they may take long to come.
    """

    connect: Callable[[], AbstractContextManager[Any]]
    name: str
    workers: int = 0
    patient: bool = False


def distributed() -> Any:
    """The package, or how to get it."""
    return needed("distributed", "a cluster", "'surefoot[dask]'")


def is_cluster(on: str) -> bool:
    """Is it one of the above?"""
    return on == "dask" or on.startswith(ADDRESSES) or on.endswith(".toml")


def cluster_of(on: str, jobs: int | None) -> Cluster:
    """The cluster of a word, an address or a file; ``jobs``: processes on this machine, by default one per core."""
    if on == "dask":
        return on_this_machine(jobs_of(jobs))
    if jobs is not None:
        raise InvalidInput("the number of processes is decided by the cluster", where=on, got=f"jobs={jobs}")
    return at_address(on) if on.startswith(ADDRESSES) else from_file(on)


def jobs_of(jobs: int | None) -> int:
    """The number given, or one per core that this process may use."""
    if jobs is not None:
        return whole("jobs", jobs, 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _client(package: Any, of: Any, **options: Any) -> Iterator[Any]:
    """A client of a cluster object or an address; what Dask logs meanwhile is left out."""
    with quiet(), package.Client(of, set_as_default=False, **options) as client:
        yield client


def on_this_machine(workers: int) -> Cluster:
    """A cluster of this many single-threaded processes, which lasts as long as the client."""
    package = distributed()

    @contextlib.contextmanager
    def connect() -> Iterator[Any]:
        local = package.LocalCluster
        with configured(), quiet(), local(**small_cluster(workers)) as cluster, _client(package, cluster) as client:
            yield client

    return Cluster(connect, "dask on this machine", workers)


def of_cluster(cluster: Any, workers: int) -> Cluster:
    """A given Dask cluster, which is kept at this many workers and stays open afterwards."""
    return Cluster(partial(_client, distributed(), cluster), str(cluster.scheduler_address), workers)


def at_address(address: str) -> Cluster:
    """The cluster of a running scheduler."""
    return Cluster(partial(_client, distributed(), address, timeout=CONNECT), address)


def from_file(path: str) -> Cluster:
    """The cluster that a file describes; its jobs are submitted when a client is opened."""
    kind, workers, options = read_file(Path(path))
    package = distributed()
    dask_jobqueue = needed("dask_jobqueue", "a batch system", "dask-jobqueue")

    @contextlib.contextmanager
    def connect() -> Iterator[Any]:
        with configured(), quiet(), getattr(dask_jobqueue, KINDS[kind])(**options) as cluster:
            cluster.scale(workers)
            with _client(package, cluster) as client:
                yield client

    return Cluster(connect, f"{kind}, described in {path}", workers, patient=True)


def read_file(path: Path) -> tuple[str, int, dict[str, Any]]:
    """(kind of cluster, workers, its options): one thread in every process and library."""
    document, _ = read_toml(path)
    for key in document:
        if key not in KEYS:
            raise InvalidInput("unknown key", where=str(path), got=repr(key), fix=nearest(key, KEYS, "Known keys are"))
    kind, options = document.get("cluster"), document.get("options", {})
    if kind not in KINDS:
        fix = nearest(str(kind), KINDS, "Kinds are")
        raise InvalidInput("cluster names no batch system", where=str(path), got=repr(kind), fix=fix)
    if not isinstance(options, dict):
        raise InvalidInput("options must be a table", where=str(path), got=repr(options))
    options = dict(options)
    options.setdefault("processes", options.get("cores", 1))
    lines = options.get("job_script_prologue", [])
    options["job_script_prologue"] = [*(f"export {name}=1" for name in ONE_THREAD), *lines]
    return kind, whole("workers", document.get("workers", 0), 1), options


def small_cluster(workers: int) -> dict[str, Any]:
    """Options of a ``LocalCluster``. Its workers ignore Ctrl-C, which reaches them too."""
    return {
        "n_workers": workers,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": "127.0.0.1:0",
        "preload": [IGNORE_SIGNALS, NO_LOGS, "from surefoot.threads import one_thread; one_thread()"],
    }


LOGS = "distributed", "tornado.application"  # they write a page for every worker that dies
IGNORE_SIGNALS = "import signal; [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]"
NO_LOGS = f"import logging; [logging.getLogger(name).setLevel(logging.CRITICAL) for name in {LOGS}]"


@contextlib.contextmanager
def configured() -> Iterator[None]:
    """Sets our options for clusters that we start."""
    import dask

    with dask.config.set(CONFIG):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences Dask's logs in this process; workers that we start have NO_LOGS."""
    logs = [logging.getLogger(name) for name in LOGS]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
