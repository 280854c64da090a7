"""Sweeps on clusters for tests: processes that can be killed, tasks that kill, and the state of both."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from distributed import WorkerPlugin

from surefoot import clusters, threads
from surefoot.sweeps.engines import spawned
from surefoot.sweeps.sweep import Contender, Spec
from tests.sweeps import WORLD

DEADLY = 3  # the seed whose run ends the process that plays it


def many(seeds: int = 5, episodes: int = 400) -> Spec:
    """Quick runs, one of them with the deadly seed."""
    return Spec(WORLD, [Contender("lsvi-new")], range(seeds), episodes, snapshot_seeds=1)


def end_with_the_deadly_seed() -> None:
    """In a worker: from now on, the run of one seed ends the process, as one that takes all memory would."""
    from surefoot.sweeps.engines import away, local

    for module in (away, local):
        real = module.play_task

        def play(task: Any, *words: Any, real: Any = real) -> Any:
            if task.place.seed == DEADLY:
                os._exit(7)
            return real(task, *words)

        module.play_task = play


class Deadly(WorkerPlugin):  # type: ignore[misc, unused-ignore]
    """On the workers of a cluster, also on those that come later, until it is taken back."""

    def setup(self, worker: Any) -> None:
        from surefoot.sweeps.engines import away

        self._real = away.play_task
        end_with_the_deadly_seed()

    def teardown(self, worker: Any) -> None:
        from surefoot.sweeps.engines import away

        away.play_task = self._real


class ShortStints(WorkerPlugin):  # type: ignore[misc, unused-ignore]
    """Every go of a run ends after some looks, until it is taken back."""

    def setup(self, worker: Any) -> None:
        from surefoot.sweeps.engines import away

        self._real = away.SHORTEST, away.SAVE_SHARE
        away.SHORTEST, away.SAVE_SHARE = 1e-3, 0

    def teardown(self, worker: Any) -> None:
        from surefoot.sweeps.engines import away

        away.SHORTEST, away.SAVE_SHARE = self._real


@contextlib.contextmanager
def with_plugin(address: str, plugin: Any) -> Iterator[None]:
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        client.register_plugin(plugin, name="of the test")
        yield
        client.unregister_worker_plugin("of the test")


def deadly_work(connection: Any, root: Path) -> None:
    """A process of the local pool."""
    threads.one_thread()
    end_with_the_deadly_seed()
    spawned.work(connection, root)


@contextlib.contextmanager
def cluster(workers: int = 2, **options: Any) -> Iterator[Any]:
    """On this machine, as ``--on dask`` starts it."""
    import distributed

    with (
        clusters.configured(),
        clusters.quiet(),
        distributed.LocalCluster(**{**clusters.small_cluster(workers), **options}) as found,
    ):
        yield found


def _running(nanny: Any) -> bool:
    """A worker is at work; Dask gives up one that dies while it starts."""
    return nanny.process is not None and nanny.process.status.name == "running" and nanny.pid is not None


@contextlib.contextmanager
def killing(found: Any, seed: int, most: int, pause: float, root: Path) -> Iterator[list[int]]:
    """Workers of a cluster are killed at random moments while the block runs; → those that were.

    Between two kills a run of the sweep in ``root`` is finished: or a slow machine would never begin one.
    """
    rng, killed, enough = np.random.default_rng(seed), list[int](), threading.Event()
    done = 0

    def kill() -> None:
        nonlocal done
        while len(killed) < most and not enough.wait(float(rng.uniform(0.0, 1.0)) * pause):
            if (now := len(list(root.glob("runs/*/seed-????")))) == done:
                continue
            done = now
            alive = [nanny.pid for nanny in found.workers.values() if _running(nanny)]
            if alive:
                pid = int(rng.choice(alive))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        enough.set()
        thread.join()


class Separate:
    """A scheduler and a worker in processes of their own, at an address that stays."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        port = self.address.rpartition(":")[2]
        scheduler = ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        worker = ["worker", self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(self._folder)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        for words in (scheduler, worker):
            log = (self._folder / f"{words[0]}.log").open("ab")
            begun = [sys.executable, "-m", "dask", *words]
            self._processes.append(subprocess.Popen(begun, stdout=log, stderr=log, env=environ, start_new_session=True))
            log.close()

    def kill(self) -> None:
        """All at once, as when the machine goes down."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()
