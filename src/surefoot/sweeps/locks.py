"""One process at a time in a sweep's directory. The system lets go of a lock when its holder dies, however it dies.

The process that runs the sweep holds ``.lock`` alone. Its workers share ``.workers``: when the first was killed, they
may live on for a moment, and whoever comes next waits for them to be gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.errors import OutOfOrder

LOCK, WORKERS = ".lock", ".workers"
PATIENCE = 30.0  # seconds for the workers of a killed process to end

if sys.platform == "win32":
    import msvcrt

    def _take(file: int, shared: bool) -> bool:
        if shared:  # Windows has no shared locks; workers notice by themselves that their parent is gone
            return True
        os.lseek(file, 1 << 20, os.SEEK_SET)  # far behind the text, which stays readable
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(file: int, shared: bool) -> bool:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Work in the folder alone, or refuse and say who is there."""
    with _opened(folder / LOCK) as file:
        if not _take(file, shared=False):
            raise OutOfOrder(
                "another process works in this directory",
                where=str(folder),
                got=_who(file),
                fix="Wait for it to end, or choose another directory.",
            )
        os.ftruncate(file, 0)
        with contextlib.suppress(OSError):  # a full disk: the lock holds, it only does not say whose it is
            os.write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        _wait_for_workers(folder)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(file, 0)


@contextlib.contextmanager
def working(folder: Path) -> Iterator[None]:
    """Held by a worker process as long as it lives."""
    with _opened(folder / WORKERS) as file:
        _take(file, shared=True)
        yield


def _wait_for_workers(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    with _opened(folder / WORKERS) as file:
        while not _take(file, shared=False):
            if time.monotonic() > deadline:
                raise OutOfOrder(
                    "workers of a process that was killed are still running",
                    where=str(folder),
                    fix="End them, or wait for them.",
                )
            time.sleep(0.05)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _who(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    owner: Any = None
    with contextlib.suppress(ValueError):
        owner = json.loads(os.read(file, 4096))
    if not isinstance(owner, dict) or "pid" not in owner:
        return "a process that did not say which"
    return f"process {owner['pid']} on {owner.get('host', 'this machine')}"
