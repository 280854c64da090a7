"""Archives of arrays: a zip of plain ``.npy`` members and a JSON header, which :func:`numpy.load` can read too.

Members are never compressed, so no file can expand into more than its own size, and a large array is read straight into
its place.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import UnreadableFile
from surefoot.storage import disk, documents

HEADER = "header.json"
MAX_BYTES = 16 << 30  # of a whole file
MAX_MEMBERS = 1 << 17
MEMBER_BYTES = 512  # at most, what a member takes in addition to its content

_DIRECTORY_BYTES = 16 << 20  # room for MAX_MEMBERS entries of at most 128 bytes
_FOREIGN_BYTES = 64 << 20
_CHUNK = 1 << 20
_MEMBER = re.compile(r"([A-Za-z0-9_]{1,64})\.npy\Z")
# Only what write_archive() writes: plain dtypes, C order, one or two axes.
_NPY = re.compile(
    rb"\{'descr': '(<f8|<f4|<i8|<i4|\|b1)', 'fortran_order': False, "
    rb"'shape': \((\d{1,18}),(?: (\d{1,18}))?\), \} *\n\Z"
)
_NPY_START = b"\x93NUMPY\x01\x00"  # format 1.0; a little-endian uint16, the header's length, follows


Arrays = Mapping[str, NDArray[Any]]
Groups = Mapping[str, Arrays]


def save_archive(path: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write an archive as a file, whole or not at all."""
    disk.DISK.replace(path, partial(write_archive, header=json.dumps(header).encode(), arrays=arrays))


def write_archive(stream: BinaryIO, header: bytes, arrays: Arrays) -> None:
    """Write an archive; the same content gives the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(HEADER), header)
        for name, array in arrays.items():
            large = array.nbytes > (1 << 31) - _CHUNK
            with archive.open(_entry(f"{name}.npy"), "w", force_zip64=large) as member:
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                np.lib.format.write_array(member, little, version=(1, 0), allow_pickle=False)


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def shapes_of(groups: Groups) -> dict[str, dict[str, list[int]]]:
    """The header entry from which :meth:`Members.groups` restores groups of arrays of any shape."""
    return {group: {name: list(array.shape) for name, array in arrays.items()} for group, arrays in groups.items()}


def flattened(groups: Groups) -> dict[str, NDArray[Any]]:
    """The arrays of all groups as members of one archive."""
    return {
        _member(group, i): np.ascontiguousarray(array).reshape(-1)
        for group, arrays in groups.items()
        for i, array in enumerate(arrays.values())
    }


def _member(group: str, i: int) -> str:
    return f"{group}_{i}"


@contextmanager
def opened(path: Path) -> Iterator[tuple[Any, Callable[[], Members]]]:
    """The header, and a function that opens the arrays, so that the header's version can be checked first."""
    with _Guarded(io.FileIO(path)) as file:
        if file.size > MAX_BYTES:
            got = f"{file.size} bytes, {MAX_BYTES} are read at most"
            raise UnreadableFile("the file is too large", got=got)
        with _translated("the archive"):
            archive = zipfile.ZipFile(file)
        header = next((info for info in archive.infolist() if info.filename == HEADER), None)
        if header is None:
            raise UnreadableFile("a member is missing", got=f"no {HEADER!r}")
        _refuse_compressed(header)
        if header.file_size > documents.MAX_BYTES:
            got = f"{header.file_size} bytes, {documents.MAX_BYTES} are read at most"
            raise UnreadableFile("the header is too large", where=HEADER, got=got)
        with _translated(HEADER), archive.open(header) as member:
            text = b"".join(_chunks(member, header.file_size))
        yield documents.parse_json(text, HEADER), partial(Members, archive, file.size)


def _refuse_compressed(info: zipfile.ZipInfo) -> None:
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise UnreadableFile(
            "a member is compressed",
            where=info.filename,
            got=f"{info.compress_size} bytes that claim to be {info.file_size}",
            fix="surefoot stores members uncompressed; save the problem again.",
        )


class Members(Mapping[str, NDArray[Any]]):
    """The arrays of an open archive by name; it must declare no more than its ``size`` in bytes."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive, self.size = archive, size
        self._entries: dict[str, zipfile.ZipInfo] = {}
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS + 1:
            raise UnreadableFile("too many members", got=f"{len(infos)}, {MAX_MEMBERS} are read at most")
        for info in infos:
            if info.filename in self._entries:
                raise UnreadableFile("a member occurs twice", where=info.filename)
            if info.filename != HEADER and not _MEMBER.match(info.filename):
                raise UnreadableFile("unknown member", got=repr(info.filename[:80]))
            _refuse_compressed(info)
            self._entries[info.filename] = info
        if sum(info.file_size for info in infos) > size:
            raise UnreadableFile("the members are larger than the file", got=f"the file has {size} bytes")
        del self._entries[HEADER]
        self._entries = {name.removesuffix(".npy"): info for name, info in self._entries.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> NDArray[Any]:
        info = self._entries[name]
        with _translated(info.filename), self._archive.open(info) as member:
            return _read_array(member, info)

    def groups(self, shapes: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The arrays that :func:`flattened` put in, in the shapes that :func:`shapes_of` recorded."""
        return {
            group: {
                name: self[_member(group, i)].reshape(shape) for i, (name, shape) in enumerate(shapes[group].items())
            }
            for group in names
        }


def _read_array(member: IO[bytes], info: zipfile.ZipInfo) -> NDArray[Any]:
    start = member.read(len(_NPY_START) + 2)
    header = member.read(int.from_bytes(start[-2:], "little"))
    match = _NPY.match(header)
    if not start.startswith(_NPY_START) or match is None:
        got = repr(header[:80].decode("latin-1"))
        raise UnreadableFile("not an array that surefoot writes", where=info.filename, got=got)
    dtype = np.dtype(match[1].decode())
    shape = tuple(int(n) for n in match.groups()[1:] if n is not None)
    held = info.file_size - len(start) - len(header)
    if math.prod(shape) * dtype.itemsize != held:  # checked before any memory is allocated
        got = f"shape {shape} of {dtype} declared, {held} bytes there"
        raise UnreadableFile("an array and its size disagree", where=info.filename, got=got)
    array = np.empty(shape, dtype)
    view = array.reshape(-1).view(np.uint8).data
    done = 0
    for chunk in _chunks(member, held):
        view[done : done + len(chunk)] = chunk
        done += len(chunk)
    if dtype.kind == "b" and held and int(np.frombuffer(view, np.uint8).max()) > 1:
        raise UnreadableFile("a flag is neither true nor false", where=info.filename)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _chunks(member: IO[bytes], size: int) -> Iterator[bytes]:
    """The next ``size`` bytes, which must be the last: zipfile compares a member's checksum at its end."""
    while size > 0:
        chunk = member.read(min(size, _CHUNK))
        if not chunk:
            raise EOFError("the member ends early")
        size -= len(chunk)
        yield chunk
    if member.read(1):
        raise EOFError("the member does not end")


class _Guarded(io.BufferedReader):
    """Limits what zipfile reads at once: it would read a directory of any length that the file declares."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__(file)
        self.size = os.fstat(file.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self.size - self.tell() if size is None or size < 0 else size
        if wanted > _DIRECTORY_BYTES:
            raise UnreadableFile("the archive's directory is too large", got=f"{wanted} bytes")
        return super().read(size)


@contextmanager
def _translated(place: str) -> Iterator[None]:
    try:
        yield
    except (UnreadableFile, MemoryError):
        raise
    except Exception as error:  # zipfile raises a dozen types, from EOFError to struct.error
        raise UnreadableFile("the archive is damaged", where=place, got=str(error)) from error


def read_foreign(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays of an ``.npz`` that another package ships, compressed or not; nothing in it is run."""
    with _translated(str(path)):
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())  # zipfile unfolds no more than is declared
        if size > _FOREIGN_BYTES:
            got = f"{size:,} bytes where {_FOREIGN_BYTES:,} are allowed"
            raise UnreadableFile("the archive expands to too much", where=str(path), got=got)
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
