"""Every touch of the disk by a study goes through here, so that tests can put a disk that fails in its place."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import BinaryIO

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined, unused-ignore]
except ImportError:  # only where fsync does not reach the platter
    F_FULLFSYNC = None


class FileLayer:
    """The real disk. Offsets and sizes are in bytes; errors are OSError, as the system gives them."""

    # --- the journal: appended to and synced through one descriptor --------------------------------------

    def open(self, path: Path) -> int:
        """A descriptor for appending; the file is made when it is missing."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        return os.open(path, flags, 0o644)

    def append(self, file: int, data: bytes | memoryview) -> int:
        """How many of the bytes were taken, maybe not all."""
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        """Return when everything in the file is on the platter."""
        if F_FULLFSYNC is not None:
            fcntl(file, F_FULLFSYNC)
        else:
            os.fsync(file)

    def size(self, file: int) -> int:
        return os.fstat(file).st_size

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def close(self, file: int) -> None:
        os.close(file)

    # --- whole files and folders ------------------------------------------------------------------------

    def read(self, path: Path) -> BinaryIO:
        return path.open("rb")

    def mkdir(self, path: Path) -> None:
        """Make a folder that survives a loss of power, with all that leads to it.

        One level at a time, each synced before the next; and the first that exists is synced too, since a process may
        have made it and died before it came to that.
        """
        levels = [path, *path.parents]
        first = next((i for i, folder in enumerate(levels) if folder.exists()), len(levels) - 1)
        for folder in reversed(levels[: first + 1]):
            folder.mkdir(exist_ok=True)
            self.fsync_dir(folder.parent)

    def replace(self, path: Path, data: bytes) -> None:
        """Write a file beside the target, sync it, and move it into its place, synced too."""
        beside = path.parent / f".{path.name}-{secrets.token_hex(4)}.tmp"
        try:
            with beside.open("xb") as stream:
                stream.write(data)
            self.fsync_path(beside)
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        self.fsync_dir(path.parent)

    def fsync_path(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            self.fsync(file)
        finally:
            os.close(file)

    def fsync_dir(self, path: Path) -> None:
        """Make the folder's entries survive; nothing is done where a system cannot open or sync folders."""
        try:
            folder = os.open(path, os.O_RDONLY)
        except PermissionError:
            return  # Windows
        try:
            os.fsync(folder)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that has no such thing
                raise
        finally:
            os.close(folder)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
