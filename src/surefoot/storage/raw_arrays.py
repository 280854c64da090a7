"""A folder of plain arrays with a JSON header. Each file holds the numbers of one array, little-endian and in C order,
so it can be mapped: parts are read from disk when they are used, and dropped when memory is short.

The header gives dtype, shape and CRC-32 of every array. The folder appears as a whole, by one rename.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.storage import disk, documents
from surefoot.storage.disk import writing

HEADER = "header.json"
KINDS = {"<f8", "<f4", "<i8", "<i4", "|b1"}

_PIECE = 1 << 24  # bytes that are written or checked at a time
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}\Z")
_CRC = re.compile(r"[0-9a-f]{8}\Z")


def file_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"


def save_folder(
    folder: Path,
    arrays: Mapping[str, NDArray[Any]],
    header: Callable[[dict[str, Any]], bytes],
    layer: disk.FileLayer | None = None,
) -> None:
    """Write a folder that does not exist yet; ``header`` makes its header from the description of the arrays."""
    files = layer or disk.DISK
    if folder.exists() or folder.is_symlink():
        fix = "Choose another name, or remove it first."
        raise InvalidInput("the folder already exists", where=str(folder), fix=fix)
    beside = folder.with_name(f"{disk.BESIDE}{secrets.token_hex(8)}")
    with writing(folder):
        files.mkdir(beside, new=True)
        try:
            said = {name: _write(files, file_of(beside, name), array) for name, array in arrays.items()}
            files.replace(beside / HEADER, header(said))
            files.move(beside, folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise


def _write(files: disk.FileLayer, path: Path, array: NDArray[Any]) -> dict[str, Any]:
    little, crc = array.dtype.newbyteorder("<"), 0
    flat = np.ascontiguousarray(array).reshape(-1)

    def write(stream: BinaryIO) -> None:
        nonlocal crc
        for piece in _pieces(flat):
            data = piece.astype(little, copy=False).view(np.uint8).data
            stream.write(data)
            crc = zlib.crc32(data, crc)

    files.replace(path, write)
    return {"dtype": little.str, "shape": list(array.shape), "crc32": f"{crc:08x}"}


def _pieces(flat: NDArray[Any]) -> Iterator[NDArray[Any]]:
    step = max(1, _PIECE // flat.itemsize)
    for first in range(0, flat.size, step):
        expect(flat, first + step, first + 2 * step)
        yield flat[first : first + step]


def expect(array: Any, first: int, end: int) -> None:
    """Announce that rows first … end-1 of a mapped array come next, so that the system reads them ahead if it can."""
    mapped: Any = getattr(array, "_mmap", None)
    rows = array[first:end] if mapped is not None and first < end else None
    if rows is None or not rows.nbytes or not hasattr(mapped, "madvise"):
        return
    begin = rows.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    page = begin - begin % mmap.PAGESIZE
    with contextlib.suppress(OSError):
        mapped.madvise(mmap.MADV_WILLNEED, page, rows.nbytes + begin - page)


def read_header(folder: Path) -> Any:
    """The JSON of the header, for the caller to check."""
    if not (folder / HEADER).is_file():
        raise UnreadableFile("not a saved folder of arrays", where=str(folder), got=f"it has no {HEADER}")
    return documents.read_json(folder / HEADER)[0]


def open_arrays(folder: Path, said: object, mapped: bool) -> dict[str, NDArray[Any]]:
    """The arrays that the header describes, every byte checked; ``mapped``: left on disk."""
    if not isinstance(said, dict):
        raise UnreadableFile("the header does not describe the arrays", where="$.arrays")
    there = {path.name for path in folder.iterdir()} - {HEADER}
    odd = there.symmetric_difference(f"{name}.bin" for name in said)
    if odd:
        raise UnreadableFile("a file is missing, or not one of the arrays", got=repr(min(odd)))
    return {name: _opened(folder, name, entry, mapped) for name, entry in said.items()}


def _opened(folder: Path, name: str, entry: Any, mapped: bool) -> NDArray[Any]:
    at = f"$.arrays.{name}"
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        kind, shape, crc = entry["dtype"], entry["shape"], entry["crc32"]
        sizes = all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
        if _NAME.match(name) and kind in KINDS and 1 <= len(shape) <= 2 and sizes and _CRC.match(crc):
            return _checked(file_of(folder, name), np.dtype(kind), tuple(shape), int(crc, 16), at, mapped)
    raise UnreadableFile("the header does not describe an array", where=at, got=repr(entry)[:100])


def _checked(path: Path, kind: np.dtype[Any], shape: tuple[int, ...], crc: int, at: str, mapped: bool) -> NDArray[Any]:
    expected, size = math.prod(shape) * kind.itemsize, os.stat(path).st_size
    if size != expected or not path.is_file():
        raise UnreadableFile("an array has the wrong size", where=at, got=f"{size} bytes where {expected} are expected")
    left = mapped and size > 0  # an empty file cannot be mapped
    array = np.memmap(path, kind, "r", shape=shape) if left else np.fromfile(path, kind).reshape(shape)
    found = 0
    for piece in _pieces(array.reshape(-1)):
        found = zlib.crc32(piece.view(np.uint8).data, found)
    if found != crc:
        got = f"crc32 {found:08x} where {crc:08x} is expected"
        raise UnreadableFile("an array was damaged or altered", where=at, got=got)
    return array
