"""Everything is written through here, so that tests can replace the disk by one that fails.

A study has its own disk; everything else (problems, runs, policies, pages) is written to :data:`DISK`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from surefoot.errors import UnwritableFile

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined, unused-ignore]
except ImportError:  # only where fsync does not reach the platter
    F_FULLFSYNC = None

BESIDE = ".surefoot-"  #: begins the name of an incomplete file, which a killed process may leave behind


class FileLayer:
    """The real disk. Offsets and sizes are in bytes; errors are the system's own OSError."""

    # --- the journal: appended to and synced through one descriptor --------------------------------------

    def open(self, path: Path) -> int:
        """A descriptor for appending; creates the file if it is missing."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        return os.open(path, flags, 0o644)

    def append(self, file: int, data: bytes | memoryview) -> int:
        """Append; returns the number of bytes written, perhaps not all."""
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        """Return once everything in the file is on disk."""
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

    def mkdir(self, path: Path, *, new: bool = False) -> None:
        """Make a folder and its parents so that they survive a power cut. ``new``: it must not exist yet.

        Each level is synced before the next. The first that exists is synced too: a process may have made it and died
        before syncing it.
        """
        levels = [path, *path.parents]
        first = next((i for i, folder in enumerate(levels) if folder.exists()), len(levels) - 1)
        for folder in reversed(levels[: first + 1]):
            if not folder.is_dir() or (new and folder == path):
                folder.mkdir(exist_ok=not new)
            self.fsync_dir(folder.parent)

    def replace(self, path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
        """Write bytes, or what a function writes, to a file, whole or not at all; until then the old file stays.

        The content is written next to the target, synced and moved into place, and the move is synced too. A link stays
        a link.
        """
        target = _behind(path)
        beside = target.parent / f"{BESIDE}{secrets.token_hex(8)}.tmp"
        try:
            with beside.open("x+b") as stream:
                if callable(content):
                    content(stream)
                else:
                    stream.write(content)
                stream.flush()
                self.fsync(stream.fileno())
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        self.fsync_dir(target.parent)

    def move(self, source: Path, target: Path) -> None:
        """Rename a folder whose files are synced, within its parent."""
        os.rename(source, target)
        self.fsync_dir(target.parent)

    def fsync_dir(self, path: Path) -> None:
        """Make the folder's entries durable, on systems that can sync folders."""
        try:
            folder = os.open(path, os.O_RDONLY)
        except PermissionError:
            return  # Windows
        try:
            os.fsync(folder)
        except OSError as error:
            if error.errno != errno.EINVAL:  # this file system cannot
                raise
        finally:
            os.close(folder)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


def _behind(path: Path) -> Path:
    """What a link points to, otherwise the path."""
    found = Path(os.path.realpath(path)) if path.is_symlink() else path
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


DISK = FileLayer()


# --- small files, and errors of the disk ------------------------------------------------------------------------

_NAMES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "no permission to write here",
    errno.EPERM: "no permission to write here",
    errno.ENOTDIR: "a file is in the way of a directory",
    errno.EEXIST: "a file is in the way of a directory",
}


@contextlib.contextmanager
def writing(place: Path, fix: str = "") -> Iterator[None]:
    """Turn the system's errors into one that names the place."""
    try:
        yield
    except UnwritableFile:
        raise
    except OSError as error:
        where = str(error.filename or place)
        where = str(place) if BESIDE in where else where  # not the name of an incomplete file
        rule = _NAMES.get(error.errno or 0, "the disk cannot be written")
        raise UnwritableFile(rule, where=where, got=error.strerror or str(error), fix=fix) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file; the old one stays until the new one is complete on disk."""
    DISK.replace(path, text.encode("utf-8"))
