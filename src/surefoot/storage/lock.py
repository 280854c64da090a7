"""Locks for one process at a time. The system releases a lock when its holder dies, however it dies."""

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
        os.lseek(file, 1 << 20, os.SEEK_SET)  # far behind the text, so that it can still be read
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
    """A lock, held from :meth:`take` to :meth:`release`, or within ``with``. Its file names the holder.

    Args:
        busy, fix: the error if another process holds it.
        shared: several may share it; then the file names nobody.
        patience: how many seconds to wait for it.
    """

    def __init__(self, path: Path, *, busy: str, fix: str, shared: bool = False, patience: float = 0.0) -> None:
        self._path, self._busy, self._fix = path, busy, fix
        self._shared, self._patience = shared, patience
        self._file: int | None = None
        self._process = os.getpid()

    def take(self) -> str:
        """Take the lock; if another process holds it, the error says which. Returns a remark if a dead process left it,
        otherwise ''."""
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
        """For a study that nobody refers to any more, as when a notebook cell is run again."""
        self.release()


def _read_owner(file: int) -> dict[str, Any] | None:
    """None if the file is empty; without entries if it cannot be read."""
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
    with contextlib.suppress(OSError):  # on a full disk the lock still holds, without a name
        os.write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())


def _who(owner: dict[str, Any] | None) -> str:
    if not owner or "pid" not in owner:
        return "a process that did not say which"
    host = owner.get("host", "this machine")
    this = owner["pid"] == os.getpid() and host == socket.gethostname()
    return f"{'this ' if this else ''}process {owner['pid']} on {host}"
