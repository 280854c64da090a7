"""Small files written whole or not at all, and what a failing disk is called."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from surefoot.errors import UnwritableFile

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
    beside = path.parent / f".{path.name}-{secrets.token_hex(4)}"
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def sync_tree(folder: Path) -> None:
    """Everything in a folder is on the platter when this returns."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """The folder's entries are; nothing is done where a system cannot open folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
