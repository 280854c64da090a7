"""Runs in several processes. Spawned, never forked: neither threads nor locks of the parent come along.

The order in which runs end has no influence on any of them: each has its own seed, agent and files.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from surefoot.errors import SurefootError
from surefoot.runs.interrupt import Interrupt
from surefoot.sweeps import spawned, worker
from surefoot.sweeps.display import Display
from surefoot.sweeps.task import Played, Task

GRACE = 30.0  # seconds for a worker to end by itself

Entered = Callable[[Task, Played], None]  # called with every run that ends or stops


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    task: Task | None = None

    def give(self, waiting: deque[Task]) -> None:
        """The next task, or the end."""
        self.task = waiting.popleft() if waiting else None
        self.send(self.task)

    def send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # a dead worker shows when its connection is read
            self.connection.send(message)


def play_all(tasks: Sequence[Task], jobs: int, root: Path, entered: Entered, display: Display, stop: Interrupt) -> None:
    """Play the tasks in ``jobs`` processes, which make the world themselves; returns when all have ended or stopped."""
    waiting = deque(tasks)
    workers: list[_Worker] = []
    try:
        for _ in range(min(jobs, len(tasks))):
            workers.append(_start(root))
        for each in workers:
            each.give(waiting)
        _attend(workers, waiting, entered, display, stop)
        for each in workers:
            each.process.join(GRACE)
    finally:
        for each in workers:
            if each.process.is_alive():
                each.process.kill()
                each.process.join()
            each.connection.close()


def _start(root: Path) -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=spawned.work, args=(there, root), daemon=True)
    process.start()
    there.close()  # so that its end, however it comes, is seen here
    return _Worker(process, here)


def _attend(
    workers: Sequence[_Worker], waiting: deque[Task], entered: Entered, display: Display, stop: Interrupt
) -> None:
    told = False
    busy: dict[Any, _Worker] = {each.connection: each for each in workers}
    failure: Exception | None = None
    while busy:
        if (stop.requested or failure is not None) and not told:
            told = True
            waiting.clear()
            for each in busy.values():
                each.send(worker.STOP)
        for connection in wait(list(busy), timeout=0.1):
            each = busy[connection]
            message = _received(each)
            if message[0] == worker.ADVANCED and each.task is not None:
                display.advance(each.task.place.key, message[1], message[2])
                continue
            if message[0] == worker.ENDED and each.task is not None:
                played: Played = message[1]
                display.end(each.task.place.key, played.done)
                entered(each.task, played)
                if not played.finished:
                    stop.requested = True  # someone told that worker alone to stop
                each.give(waiting)
            else:
                failure = failure or worker.unpacked(message)
                each.give(deque())
            if each.task is None:
                del busy[each.connection]
        display.refresh()
    if failure is not None:
        raise failure


def _received(each: _Worker) -> tuple[Any, ...]:
    try:
        message: tuple[Any, ...] = each.connection.recv()
        return message
    except (EOFError, OSError):
        each.process.join(GRACE)
        error = SurefootError(
            "a worker process died",
            got=f"exit code {each.process.exitcode}",
            fix="What is done is kept. If memory ran out, go on with fewer jobs.",
        )
        return worker.packed(error)
