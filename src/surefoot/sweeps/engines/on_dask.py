"""Runs on ``dask.distributed``: a cluster on this machine, one that exists, or one that is started for the sweep.

Tasks are sent with what is kept of their run and return it (:mod:`surefoot.sweeps.engines.away`), so workers need
neither our folder nor a common disk. Dask plays a task again when its worker dies; when the scheduler is gone, its
tasks are given anew to the one that comes back at the same address. Every answer is taken once, here, whoever else may
still be playing the same run.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.clusters import Cluster, distributed
from surefoot.errors import SurefootError
from surefoot.runs.progress import Display, Interrupt
from surefoot.sweeps.engines.away import RemoteRun, world_file
from surefoot.sweeps.engines.engine import Lost, Results
from surefoot.sweeps.folder import Folder
from surefoot.sweeps.task import Task

PATIENCE = 60.0  # seconds for a first worker, and for a scheduler to come back
GRACE = 60.0  # seconds for the runs under way to be returned after a stop
COUNT_SECONDS = 1.0  # between two looks at how many workers there are
EMPTY_SECONDS = 20.0  # without any worker until the cluster is considered lost
TRIES = 20  # to register a sweep with its workers
AHEAD = 4  # tasks per thread that Dask has at a time, at least LEAST
LEAST = 256


@dataclass(frozen=True)
class Dask:
    """The engine."""

    cluster: Cluster

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        submitted = _Submitted(folder, display, stop, deque(map(RemoteRun.of, tasks)), self.cluster)
        with contextlib.ExitStack() as stack:
            client = self._opened(stack, None)
            while True:
                yield from submitted.play_all(client)
                if submitted.done:
                    break
                display.refresh()
                stack.pop_all().close()
                client = self._opened(stack, stop)
        yield from submitted.left()

    def _opened(self, stack: contextlib.ExitStack, stop: Interrupt | None) -> Any:
        """A client; after a loss, when ``stop`` is given, try for some time."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                client = stack.enter_context(self.cluster.connect())
                if not self.cluster.patient:
                    client.wait_for_workers(1, timeout=PATIENCE)
                return client
            except (OSError, TimeoutError) as error:
                if stop is None or stop.requested or time.monotonic() > deadline:
                    fix = "What is done is kept. Start scheduler and workers, and continue with: surefoot resume DIR."
                    raise SurefootError(
                        "the cluster does not answer", where=self.cluster.name, got=str(error), fix=fix
                    ) from error
                time.sleep(0.5)


class _Submitted:
    """The tasks that Dask has, and those that wait."""

    def __init__(
        self, folder: Folder, display: Display, stop: Interrupt, waiting: deque[RemoteRun], cluster: Cluster
    ) -> None:
        self._cluster = cluster
        self._folder, self._display, self._stop, self._waiting = folder, display, stop, waiting
        self._sent: dict[Any, RemoteRun] = {}
        self._quit: list[RemoteRun] = []  # begun in this session, and not continued
        self._told_at: float | None = None
        self._counted_at, self._seen_at, self._full_at = 0.0, 0.0, 0.0
        self.done = False

    def play_all(self, client: Any) -> Results:
        """Yield results until all are back or the scheduler is lost; what was sent then waits again."""
        name = f"surefoot-{id(self):x}-{time.monotonic_ns():x}"
        news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._seen_at = self._full_at = time.monotonic()
        if not self._introduced(client, name, news):
            return
        try:
            while self._sent or self._waiting:
                if self._stop.requested and not self._tell(client, name):
                    break
                if not self._send(client, name, news):
                    return
                for future in self._arrived(news):
                    yield from self._receive(future)
                self._display.refresh()
            self.done = True
        finally:
            self._waiting.extendleft(self._sent.values())
            self._sent.clear()  # Dask forgets what nobody waits for
            with contextlib.suppress(Exception):
                client.unregister_worker_plugin(name)

    def _introduced(self, client: Any, name: str, news: queue.SimpleQueue[Any]) -> bool:
        """Register the sweep with every worker, also later ones. → False: the scheduler is gone"""
        from surefoot.sweeps.engines import dask_worker

        for _ in range(TRIES):
            try:
                client.register_plugin(
                    dask_worker.Playing(name, self._folder.manifest, world_file(self._folder)), name=name
                )
                client.subscribe_topic(name, lambda event: news.put(event[1]))
                return True
            except OSError:  # a worker died at this moment
                time.sleep(0.2)
        return False

    def left(self) -> Results:
        """Runs that were begun in this session and stopped before their end."""
        for run in (*self._quit, *self._waiting):
            if run.last is not None:
                yield run.task, run.last

    def _tell(self, client: Any, name: str) -> bool:
        """Ask all workers, once, to return what they have. → is it worth waiting for them?"""
        from surefoot.sweeps.engines import dask_worker

        self._quit += self._waiting
        self._waiting.clear()
        if self._told_at is None:
            self._told_at = time.monotonic()
            with contextlib.suppress(Exception):  # a worker that cannot be asked ends its stint by itself
                client.run(dask_worker.stop_playing, name, on_error="ignore")
        return bool(self._sent) and time.monotonic() < self._told_at + GRACE

    def _send(self, client: Any, name: str, news: queue.SimpleQueue[Any]) -> bool:
        """Give Dask what it has room for. → False: the scheduler is gone, and all that it had"""
        from surefoot.sweeps.engines import dask_worker

        if client.status != "running" or any(future.status in ("cancelled", "lost") for future in self._sent):
            return False
        room = LEAST
        if time.monotonic() >= self._counted_at + COUNT_SECONDS:
            try:
                threads = sum(client.nthreads().values())
            except OSError:
                return False
            self._counted_at = time.monotonic()
            self._seen_at = self._counted_at if threads or self._cluster.patient else self._seen_at
            if threads >= self._cluster.workers:
                self._full_at = self._counted_at
            elif self._counted_at > self._full_at + EMPTY_SECONDS:  # sooner, Dask may still be replacing them itself
                self._full_at = self._counted_at
                client.cluster.scale(self._cluster.workers)
            if not self._cluster.workers and self._counted_at > self._seen_at + EMPTY_SECONDS:
                return False
            room = max(LEAST, AHEAD * threads)
        while self._waiting and len(self._sent) < room:
            run = self._waiting.popleft()
            words = (name, run.task, run.files)
            key = f"surefoot-{run.task.place.key}-{run.stints}-{time.monotonic_ns():x}"
            future = client.submit(dask_worker.play, *words, key=key, pure=False, priority=run.stints)
            self._sent[future] = run
            future.add_done_callback(news.put)
        return True

    def _arrived(self, news: queue.SimpleQueue[Any]) -> Iterator[Any]:
        """Futures that are done; progress is shown meanwhile."""
        with contextlib.suppress(queue.Empty):
            item = news.get(timeout=0.1)
            while True:
                if isinstance(item, dict):
                    self._display.advance(item["run"], item["done"], item["headline"])
                elif item in self._sent and item.status in ("finished", "error"):
                    yield item
                item = news.get_nowait()

    def _receive(self, future: Any) -> Results:
        run = self._sent.pop(future)
        if future.status == "error":
            error = future.exception()
            killed = isinstance(error, distributed().scheduler.KilledWorker)
            died = Lost(error.allowed_failures + 1, f"worker {error.last_worker.address}") if killed else error
            yield run.task, died
            return
        try:
            answer = future.result(timeout=GRACE)
        except Exception:  # the answer was lost with its worker or the scheduler: play the stint again
            self._waiting.appendleft(run)
            return
        finally:
            future.release()
        if answer is None:  # it was told to stop before it began
            self._quit.append(run)
            return
        found = run.take_back(answer)
        if isinstance(found, Exception) or found.finished:
            yield run.task, found
        elif self._stop.requested:
            self._quit.append(run)
        else:
            self._display.advance(run.task.place.key, found.done, "")
            self._waiting.appendleft(run)
