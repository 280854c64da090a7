"""Protects a problem's arrays from changes: small ones are copied, large ones sealed.

Making an array read-only does not protect it from older views, or from a second mapping of its file. If features
changed after they were checked, no bound would mean anything. So the smallest arrays, ``COPIED`` bytes in total, are
copied when a problem is declared. The checksums of the others (CRC-32, about 4 GB a second) are compared before every
plan and every digest; with 10⁶ triplets this takes a twentieth of the time of a plan.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import AssumptionBroken
from surefoot.model.sparse_rows import SparseRows, arrays_of

COPIED = 16 << 20  #: bytes, all arrays of a problem together


@dataclass(frozen=True, eq=False)
class Seal:
    """What an array held when it was declared."""

    name: str  # of the argument
    array: NDArray[Any]
    checksum: int

    def broken(self) -> bool:
        return _checksum(self.array) != self.checksum


@dataclass(frozen=True, eq=False)
class FileSeal(Seal):
    """Of an array that is mapped from a file, whose size and time are compared instead: a checksum would take longer
    than a plan. A program that writes into the file and resets its time is not noticed."""

    path: Path
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, name: str, array: NDArray[Any], path: Path) -> FileSeal:
        return cls(name, array, 0, path, _stamp(path))

    def broken(self) -> bool:
        try:
            return _stamp(self.path) != self.stamp
        except OSError:
            return True


def _stamp(path: Path) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def taken_over(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Seal, ...]]:
    """The arguments with copies of the smallest arrays, and seals of the others.

    An argument is an array, a :class:`SparseRows`, or a list with one for each layer. Shared objects stay shared;
    anything but an array of numbers in C order is left to later checks.
    """
    found = {
        id(array): (name, array)
        for name, value in arguments.items()
        for item in (value if isinstance(value, (list, tuple)) else [value])
        for array in arrays_of(item)
        if type(array) in (np.ndarray, np.memmap) and array.flags.c_contiguous and array.dtype.kind in "fiub"
    }
    copies: dict[int, NDArray[Any]] = {}
    seals, room = [], COPIED
    for key, (name, array) in sorted(found.items(), key=lambda entry: entry[1][1].nbytes):
        room -= array.nbytes
        if room >= 0:
            copies[key] = np.array(array)
        else:
            seals.append(Seal(name, array, _checksum(array)))
    tables: dict[int, SparseRows] = {}

    def replaced(item: Any) -> Any:
        if isinstance(item, SparseRows):
            if id(item) not in tables:
                indptr, columns, values = (copies.get(id(part), part) for part in item.parts)
                tables[id(item)] = SparseRows(indptr, columns, values, item.dim)
            return tables[id(item)]
        return copies.get(id(item), item)

    own = {
        name: [replaced(item) for item in value] if isinstance(value, (list, tuple)) else replaced(value)
        for name, value in arguments.items()
    }
    return own, tuple(seals)


def check_seals(seals: Iterable[Seal]) -> None:
    """Raise if a sealed array is no longer what was declared."""
    for seal in seals:
        if seal.broken():
            raise AssumptionBroken(
                "an array of the problem was changed after it was declared",
                where=seal.name,
                got=f"{seal.array.nbytes} bytes with another checksum",
                fix="Declare the problem again, from arrays that nobody writes to, and make a new agent.",
            )


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(np.asarray(array).reshape(-1).view(np.uint8).data)
