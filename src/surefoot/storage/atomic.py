"""Small files written whole or not at all, and what a failing disk is called."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from surefoot.errors import UnwritableFile
from surefoot.storage import disk

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
    """What the system refuses becomes one clear error that names the place."""
    try:
        yield
    except UnwritableFile:
        raise
    except OSError as error:
        where = str(error.filename or place)
        rule = _NAMES.get(error.errno or 0, "the disk cannot be written")
        raise UnwritableFile(rule, where=where, got=error.strerror or str(error), fix=fix) from error


def write_text(path: Path, text: str) -> None:
    """The old file stays until the new one is complete on disk."""
    disk.DISK.replace(path, text.encode("utf-8"))
