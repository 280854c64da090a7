"""A worker process: takes tasks, plays them, tells how it goes.

Messages from the parent: a Task, ``STOP`` or None. Messages to it: tuples, their first entry one of the words below.
"""

from __future__ import annotations

import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numba

from surefoot import errors
from surefoot.errors import SurefootError
from surefoot.sweeps.folder import open_folder
from surefoot.sweeps.task import Task, play_task
from surefoot.threads import one_blas_thread

STOP = "stop"
ADVANCED, ENDED, FAILED = "advanced", "ended", "failed"


def play_tasks(connection: Connection, root: Path) -> None:
    """Make the world of the sweep in ``root`` and play what comes, until None comes."""
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


def packed(error: BaseException) -> tuple[Any, ...]:
    """An error in parts that travel: its type's name, rule, where, got, fix; and the traceback as text."""
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, SurefootError):
        return (FAILED, type(error).__name__, error.rule, error.where, error.got, error.fix, trace)
    return (FAILED, "", type(error).__name__, "", str(error), "", trace)


def unpacked(message: tuple[Any, ...]) -> Exception:
    """The error of a ``FAILED`` message, the worker's traceback as a note."""
    _, name, rule, where, got, fix, trace = message
    kind = getattr(errors, name, None) if name else None
    error: Exception = RuntimeError(f"{rule}: {got}")
    if kind is not None:
        error = kind(rule, where=where, got=got, fix=fix)
    error.add_note(f"In a worker process:\n{trace}")
    return error
