"""One process at a time. The system releases a lock when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, Self

from surefoot.errors import OutOfOrder, UnreadableFile
from surefoot.storage.documents import parse_json

if sys.platform == "win32":
    import msvcrt

    def _take(file: int, shared: bool) -> bool:
        if shared:  # Windows has no shared locks
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


class Lock:
    """Held from :meth:`take` to :meth:`release`, or within ``with``. The file says who holds it, or held it and died.

    Args:
        busy, fix: the error if another process holds it.
        shared: may be held together with others who share it; no holder is named.
        patience: how many seconds to wait for it.
    """

    def __init__(self, path: Path, *, busy: str, fix: str, shared: bool = False, patience: float = 0.0) -> None:
        self._path, self._busy, self._fix = path, busy, fix
        self._shared, self._patience = shared, patience
        self._file: int | None = None
        self._process = os.getpid()

    def take(self) -> str:
        """Take the lock, or refuse and say who holds it. → a remark if a dead process left it, otherwise ''."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            self._wait(file)
            left = None if self._shared else _read_owner(file)
            if not self._shared:
                _write_owner(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return "" if left is None else f"the lock was left by {_who(left)}, which is gone; it was taken over"

    def _wait(self, file: int) -> None:
        deadline = time.monotonic() + self._patience
        while not _take(file, self._shared):
            if time.monotonic() >= deadline:
                where = str(self._path.parent)
                raise OutOfOrder(self._busy, where=where, got=_who(_read_owner(file)), fix=self._fix)
            time.sleep(0.05)

    def release(self) -> None:
        if self._file is not None:
            if os.getpid() == self._process and not self._shared:  # a forked copy only closes its own end
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        """A study that nobody refers to any more, as when a notebook cell is run again, releases its lock."""
        self.release()


def _read_owner(file: int) -> dict[str, Any] | None:
    """None: nobody. Without entries: somebody who did not leave a name."""
    os.lseek(file, 0, os.SEEK_SET)
    data = os.read(file, 4096)
    if not data:
        return None
    try:
        found = parse_json(data)
    except UnreadableFile:
        found = {}
    return found if isinstance(found, dict) else {}


def _write_owner(file: int) -> None:
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    with contextlib.suppress(OSError):  # a full disk: the lock holds, it only does not say whose it is
        os.write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())


def _who(owner: dict[str, Any] | None) -> str:
    if not owner or "pid" not in owner:
        return "a process that did not say which"
    return f"process {owner['pid']} on {owner.get('host', 'this machine')}"
