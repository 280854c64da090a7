"""A cluster that a batch system starts for the sweep, through dask-jobqueue, described in a TOML file::

cluster = "slurm"         # or pbs, sge, lsf, oar, moab, htcondor
workers = 64              # processes, each for one run at a time

[options]                 # as dask_jobqueue.SLURMCluster takes them
queue = "short"
cores = 16                # of a job; as many processes of one thread, unless "processes" says otherwise
memory = "32GB"
walltime = "02:00:00"
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.checks import nearest, whole
from surefoot.errors import InvalidInput
from surefoot.storage.toml import read_toml
from surefoot.sweeps import on_dask
from surefoot.sweeps.engines import refuse_jobs
from surefoot.sweeps.spawned import ONE_THREAD

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


def from_file(path: str, jobs: int | None) -> on_dask.Dask:
    """The engine that the file describes; the file is read now, the batch system asked when the sweep begins."""
    refuse_jobs(jobs, path)
    kind, workers, options = read(Path(path))
    package = on_dask.distributed()
    try:
        import dask_jobqueue
    except ImportError as error:
        fix = "Install it with: pip install dask-jobqueue."
        raise InvalidInput("a batch system needs dask-jobqueue, which is not installed", where=path, fix=fix) from error

    @contextlib.contextmanager
    def connect() -> Iterator[Any]:
        with on_dask.configured(), on_dask.quiet(), getattr(dask_jobqueue, KINDS[kind])(**options) as cluster:
            cluster.scale(workers)
            with package.Client(cluster, set_as_default=False) as client:
                yield client

    return on_dask.Dask(connect, f"{kind}, described in {path}", workers, patient=True)


def read(path: Path) -> tuple[str, int, dict[str, Any]]:
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
