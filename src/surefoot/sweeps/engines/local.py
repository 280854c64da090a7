"""Runs on this machine. Processes are spawned, never forked, so they inherit neither threads nor locks.

The order in which runs end does not matter: each has its own seed, agent and files.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numba

from surefoot.clusters import MOST_DEATHS
from surefoot.runs.progress import Display, Interrupt
from surefoot.sweeps.engines import spawned
from surefoot.sweeps.engines.engine import Lost, Result, Results
from surefoot.sweeps.folder import Folder, open_folder
from surefoot.sweeps.task import ENDED, Task, packed, play_task, unpacked
from surefoot.threads import one_blas_thread
from surefoot.worlds.world import World

GRACE = 30.0  # seconds for a worker to end by itself
STOP = "stop"  # sent to a process, as are a Task and None
ADVANCED = "advanced"  # from it: how far its run is; the answer follows


@dataclass(frozen=True)
class Here:
    """One run after the other, in this process."""

    world: World

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        for task in tasks:
            if stop.requested:
                return
            yield task, play_task(task, self.world, partial(display.advance, task.place.key), lambda: stop.requested)


@dataclass(frozen=True)
class Local:
    """So many processes, which make the world themselves."""

    jobs: int

    def map(self, tasks: Sequence[Task], folder: Folder, display: Display, stop: Interrupt) -> Results:
        pool = _Pool(folder.root, deque(tasks))
        try:
            for _ in range(min(self.jobs, len(tasks))):
                pool.begin_worker()
            yield from pool.attend(display, stop)
            pool.join()
        finally:
            pool.kill()


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    task: Task | None = None

    def give(self, waiting: deque[Task]) -> None:
        """Send the next task, or the end."""
        self.task = waiting.popleft() if waiting else None
        self.send(self.task)

    def send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # a dead worker is noticed when its connection is read
            self.connection.send(message)

    def end(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()


class _Pool:
    """The processes, the tasks that wait for one, and how often each task's process died."""

    def __init__(self, root: Path, waiting: deque[Task]) -> None:
        self._root, self._waiting = root, waiting
        self._busy: dict[Any, _Worker] = {}
        self._idle: list[_Worker] = []
        self._deaths = Counter[str]()

    def begin_worker(self) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=spawned.work, args=(there, self._root), daemon=True)
        process.start()
        there.close()  # so that the process's end is noticed here
        begun = _Worker(process, here)
        self._busy[here] = begun
        begun.give(self._waiting)

    def attend(self, display: Display, stop: Interrupt) -> Results:
        """Yield results until no process has a task."""
        told = False
        while self._busy:
            if stop.requested and not told:
                told = True
                self._waiting.clear()
                for each in self._busy.values():
                    each.send(STOP)
            for connection in wait(list(self._busy), timeout=0.1):
                each = self._busy[connection]
                if (answer := self._answer(each, display)) is None or each.task is None:
                    continue
                task = each.task
                if isinstance(answer, Lost) and answer.deaths < MOST_DEATHS:
                    self._waiting.appendleft(task)
                else:
                    yield task, answer
                if stop.requested:
                    self._waiting.clear()
                self._next(each, answer)
            display.refresh()

    def _answer(self, each: _Worker, display: Display) -> Result | None:
        """The result of a process's task; None while it continues."""
        try:
            message = each.connection.recv()
        except (EOFError, OSError):
            each.process.join(GRACE)
            key = each.task.place.key if each.task is not None else ""
            self._deaths[key] += 1
            return Lost(self._deaths[key], f"exit code {each.process.exitcode}")
        if message[0] == ADVANCED and each.task is not None:
            display.advance(each.task.place.key, message[1], message[2])
            return None
        result: Result = message[1] if message[0] == ENDED else unpacked(message)
        return result

    def _next(self, each: _Worker, answer: Result) -> None:
        """Give a process that answered the next task; replace one that died while tasks wait."""
        dead = isinstance(answer, Lost)
        if not dead:
            each.give(self._waiting)
        if dead or each.task is None:
            del self._busy[each.connection]
            self._idle.append(each)
        if dead:
            each.end()
            if self._waiting:
                self.begin_worker()

    def join(self) -> None:
        for each in self._idle:
            each.process.join(GRACE)

    def kill(self) -> None:
        for each in (*self._busy.values(), *self._idle):
            each.end()


# --- in such a process ---------------------------------------------------------------------------------


def play_tasks(connection: Connection, root: Path) -> None:
    """Make the world of the sweep in ``root`` and play the tasks that arrive, until None does."""
    numba.set_num_threads(1)
    with one_blas_thread():  # for libraries that were loaded before the environment was set
        try:
            world = open_folder(root).world()
        except Exception as error:
            connection.send(packed(error))
            return
        while (task := connection.recv()) is not None:
            if isinstance(task, Task):
                connection.send(_answer(task, world, connection))


def _answer(task: Task, world: Any, connection: Connection) -> tuple[Any, ...]:
    def tell(done: int, headline: str) -> None:
        connection.send((ADVANCED, done, headline))

    def stop() -> bool:
        return connection.poll() and connection.recv() == STOP

    try:
        return (ENDED, play_task(task, world, tell, stop))
    except Exception as error:
        return packed(error)
