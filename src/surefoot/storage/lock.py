"""One writer at a time. The system lets go of the lock when its process dies, however it dies."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from surefoot.errors import OutOfOrder

if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> bool:
        os.lseek(file, 1 << 20, os.SEEK_SET)  # far behind the text, which stays readable
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Lock:
    """Held from :meth:`take` to :meth:`release`. The file says who holds it, or held it and died."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._process = os.getpid()

    def take(self) -> str:
        """Take the lock, or refuse and say who has it. → a remark when a dead process left it, else ''."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            if not _take(file):
                raise OutOfOrder(
                    "the study is open elsewhere",
                    where=str(self._path.parent),
                    got=_who(_read(file)),
                    fix="Close it there, or open it here with read_only=True.",
                )
            left = _read(file)
            _write(file, {"pid": os.getpid(), "host": socket.gethostname()})
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return f"the lock was left by {_who(left)}, which is gone; it was taken over" if left else ""

    def release(self) -> None:
        if self._file is not None:
            if os.getpid() == self._process:  # a forked copy only closes its own end
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        """A study that nobody holds any more, as when a notebook's cell is run again, lets go of its lock."""
        self.release()


def _read(file: int) -> dict[str, Any] | None:
    os.lseek(file, 0, os.SEEK_SET)
    data = os.read(file, 4096)
    if not data:
        return None
    try:
        found = json.loads(data)
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _write(file: int, owner: dict[str, Any]) -> None:
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    with contextlib.suppress(OSError):  # a full disk: the lock holds, it only does not say whose it is
        os.write(file, json.dumps(owner).encode())


def _who(owner: dict[str, Any] | None) -> str:
    if not owner or "pid" not in owner:
        return "a process that did not say which"
    return f"process {owner['pid']} on {owner.get('host', 'this machine')}"
