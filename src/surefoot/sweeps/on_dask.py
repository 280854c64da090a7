"""Runs on ``dask.distributed``: a cluster on this machine, one that exists, or one that is started for the sweep.

Tasks travel with what is kept of their run and come home with it (:mod:`surefoot.sweeps.away`), so workers need neither
our folder nor a common disk. Dask plays a task again when its worker dies; when the scheduler is gone, its tasks are
given anew to the one that comes back at the same address. Every answer is taken once, here, whoever else may still
be playing the same run.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from surefoot.errors import InvalidInput, SurefootError
from surefoot.runs.interrupt import Interrupt
from surefoot.sweeps.away import Journey, world_file
from surefoot.sweeps.display import Display
from surefoot.sweeps.engines import MOST_DEATHS, Lost, Results, refuse_jobs
from surefoot.sweeps.folder import Folder
from surefoot.sweeps.spawned import ONE_THREAD
from surefoot.sweeps.task import Task

CONNECT = 10.0  # seconds for a scheduler to answer
PATIENCE = 60.0  # seconds for a first worker, and for a scheduler to come back
GRACE = 60.0  # seconds for the runs under way to come home when all shall stop
COUNT_SECONDS = 1.0  # between two looks at how many workers there are
EMPTY_SECONDS = 20.0  # without any worker: then the cluster is taken for lost
TRIES = 20  # to introduce a sweep to its workers
AHEAD = 4  # tasks per thread that Dask has at a time, and never fewer than LEAST
LEAST = 256
CONFIG = {
    "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
    "distributed.scheduler.worker-saturation": 1.0,  # a worker has what it plays and no more: it answers for that alone
    "distributed.worker.daemon": True,
}


def distributed() -> Any:
    """The package, or how to get it."""
    try:
        import distributed as found
    except ImportError as error:
        fix = "Install it with: pip install 'surefoot[dask]'."
        raise InvalidInput("this engine needs dask.distributed, which is not installed", fix=fix) from error
    return found


@dataclass(frozen=True)
class Dask:
    """The engine. ``connect`` opens a client, again after a scheduler was lost.

    ``workers``: of a cluster that was started for the sweep, which is kept at this number: Dask gives up a worker that
    dies while it starts. ``patient``: they may come late.
    """

    connect: Callable[[], AbstractContextManager[Any]]
    name: str
    workers: int = 0
    patient: bool = False

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        flight = _Flight(folder, display, stop, deque(map(Journey.of, tasks)), self)
        with contextlib.ExitStack() as stack:
            client = self._opened(stack, None)
            while True:
                yield from flight.fly(client)
                if flight.landed:
                    break
                display.refresh()
                stack.pop_all().close()
                client = self._opened(stack, stop)
        yield from flight.left()

    def _opened(self, stack: contextlib.ExitStack, stop: Interrupt | None) -> Any:
        """A client; after a loss (``stop`` is given) it is tried for some time."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                client = stack.enter_context(self.connect())
                if not self.patient:
                    client.wait_for_workers(1, timeout=PATIENCE)
                return client
            except (OSError, TimeoutError) as error:
                if stop is None or stop.requested or time.monotonic() > deadline:
                    fix = "What is done is kept. Start scheduler and workers, and go on with: surefoot resume DIR."
                    raise SurefootError(
                        "the cluster does not answer", where=self.name, got=str(error), fix=fix
                    ) from error
                time.sleep(0.5)


class _Flight:
    """The tasks that Dask has, and those that it will be given."""

    def __init__(
        self, folder: Folder, display: Display, stop: Interrupt, waiting: deque[Journey], engine: Dask
    ) -> None:
        self._engine = engine
        self._folder, self._display, self._stop, self._waiting = folder, display, stop, waiting
        self._flying: dict[Any, Journey] = {}
        self._quit: list[Journey] = []  # begun in this session, and not gone on with
        self._told_at: float | None = None
        self._counted_at, self._seen_at, self._full_at = 0.0, 0.0, 0.0
        self.landed = False

    def fly(self, client: Any) -> Results:
        """Until all have come home or the client lost its scheduler; then those that flew wait again."""
        name = f"surefoot-{id(self):x}-{time.monotonic_ns():x}"
        news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._seen_at = self._full_at = time.monotonic()
        if not self._introduced(client, name, news):
            return
        try:
            while self._flying or self._waiting:
                if self._stop.requested and not self._tell(client, name):
                    break
                if not self._send(client, name, news):
                    return
                for future in self._arrived(news):
                    yield from self._receive(future)
                self._display.refresh()
            self.landed = True
        finally:
            self._waiting.extendleft(self._flying.values())
            self._flying.clear()  # Dask forgets what nobody waits for
            with contextlib.suppress(Exception):
                client.unregister_worker_plugin(name)

    def _introduced(self, client: Any, name: str, news: queue.SimpleQueue[Any]) -> bool:
        """Every worker, also one that comes later, knows the sweep. → False: the scheduler is gone."""
        from surefoot.sweeps import dask_worker

        for _ in range(TRIES):
            try:
                client.register_plugin(
                    dask_worker.Playing(name, self._folder.manifest, world_file(self._folder)), name=name
                )
                client.subscribe_topic(name, lambda event: news.put(event[1]))
                return True
            except OSError:  # a worker died at that very moment: the others know it, the next one will
                time.sleep(0.2)
        return False

    def left(self) -> Results:
        """Runs that were begun in this session and stopped before their end."""
        for journey in (*self._quit, *self._waiting):
            if journey.last is not None:
                yield journey.task, journey.last

    def _tell(self, client: Any, name: str) -> bool:
        """Ask all workers, once, to bring home what they have. → is it worth waiting for them?"""
        from surefoot.sweeps import dask_worker

        self._quit += self._waiting
        self._waiting.clear()
        if self._told_at is None:
            self._told_at = time.monotonic()
            with contextlib.suppress(Exception):  # one that cannot be asked ends its go by itself
                client.run(dask_worker.stop_playing, name, on_error="ignore")
        return bool(self._flying) and time.monotonic() < self._told_at + GRACE

    def _send(self, client: Any, name: str, news: queue.SimpleQueue[Any]) -> bool:
        """Give Dask what it has room for. → False: the scheduler is gone, and with it all that it had."""
        from surefoot.sweeps import dask_worker

        if client.status != "running" or any(future.status in ("cancelled", "lost") for future in self._flying):
            return False
        room = LEAST
        if time.monotonic() >= self._counted_at + COUNT_SECONDS:
            try:
                threads = sum(client.nthreads().values())
            except OSError:
                return False
            self._counted_at = time.monotonic()
            self._seen_at = self._counted_at if threads or self._engine.patient else self._seen_at
            if threads >= self._engine.workers:
                self._full_at = self._counted_at
            elif self._counted_at > self._full_at + EMPTY_SECONDS:  # sooner, Dask may still be replacing them itself
                self._full_at = self._counted_at
                client.cluster.scale(self._engine.workers)
            if not self._engine.workers and self._counted_at > self._seen_at + EMPTY_SECONDS:
                return False
            room = max(LEAST, AHEAD * threads)
        while self._waiting and len(self._flying) < room:
            journey = self._waiting.popleft()
            words = (name, journey.task, journey.files)
            key = f"surefoot-{journey.task.place.key}-{journey.goes}-{time.monotonic_ns():x}"
            future = client.submit(dask_worker.play, *words, key=key, pure=False, priority=journey.goes)
            self._flying[future] = journey
            future.add_done_callback(news.put)
        return True

    def _arrived(self, news: queue.SimpleQueue[Any]) -> Iterator[Any]:
        """Futures that are done; what is told on the way is shown."""
        with contextlib.suppress(queue.Empty):
            item = news.get(timeout=0.1)
            while True:
                if isinstance(item, dict):
                    self._display.advance(item["run"], item["done"], item["headline"])
                elif item in self._flying and item.status in ("finished", "error"):
                    yield item
                item = news.get_nowait()

    def _receive(self, future: Any) -> Results:
        journey = self._flying.pop(future)
        if future.status == "error":
            error = future.exception()
            killed = isinstance(error, distributed().scheduler.KilledWorker)
            died = Lost(error.allowed_failures + 1, f"worker {error.last_worker.address}") if killed else error
            yield journey.task, died
            return
        try:
            answer = future.result(timeout=GRACE)
        except Exception:  # the answer was lost with its worker, or with the scheduler: the go is played again
            self._waiting.appendleft(journey)
            return
        finally:
            future.release()
        if answer is None:  # it was told to stop before it began
            self._quit.append(journey)
            return
        found = journey.came_home(answer)
        if isinstance(found, Exception) or found.finished:
            yield journey.task, found
        elif self._stop.requested:
            self._quit.append(journey)
        else:
            self._display.advance(journey.task.place.key, found.done, "")
            self._waiting.appendleft(journey)


# --- clusters -------------------------------------------------------------------------------------------


def on_this_machine(jobs: int) -> Dask:
    """So many worker processes of one thread, for as long as the sweep takes."""
    package = distributed()

    @contextlib.contextmanager
    def connect() -> Iterator[Any]:
        with contextlib.ExitStack() as stack:
            for part in (configured(), quiet()):
                stack.enter_context(part)
            cluster = stack.enter_context(package.LocalCluster(**small_cluster(jobs)))
            yield stack.enter_context(package.Client(cluster, set_as_default=False))

    return Dask(connect, "dask on this machine", jobs)


def of_cluster(cluster: Any, workers: int) -> Dask:
    """A cluster object of Dask's, which is kept at so many workers and stays open afterwards."""
    package = distributed()

    @contextlib.contextmanager
    def connect() -> Iterator[Any]:
        with quiet(), package.Client(cluster, set_as_default=False) as client:
            yield client

    return Dask(connect, str(cluster.scheduler_address), workers)


def small_cluster(jobs: int) -> dict[str, Any]:
    """Options of a ``LocalCluster``: Ctrl-C goes to its workers, too, which leave it to us."""
    return {
        "n_workers": jobs,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": "127.0.0.1:0",
        "preload": [IGNORE_SIGNALS],
    }


IGNORE_SIGNALS = "import signal; [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]"


def at_address(address: str, jobs: int | None) -> Dask:
    """The cluster of a scheduler that runs already."""
    package = distributed()
    refuse_jobs(jobs, address)

    @contextlib.contextmanager
    def connect() -> Iterator[Any]:
        with quiet(), package.Client(address, timeout=CONNECT, set_as_default=False) as client:
            yield client

    return Dask(connect, address)


@contextlib.contextmanager
def configured() -> Iterator[None]:
    """Of clusters that we start: one thread for every library, and three deaths at most."""
    import dask

    # Not pre-spawn-environ: Dask sets that in our own process, where numba would see another number of threads.
    environ = {**dask.config.get("distributed.nanny.environ", {}), **dict.fromkeys(ONE_THREAD, 1)}
    with dask.config.set({**CONFIG, "distributed.nanny.environ": environ}):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Dask logs a page for every worker that dies or ends; we say what matters."""
    import logging

    logs = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
