"""Parts of mapped arrays are read from the disk before they are wanted: disk and processor work at the same time.

Threads read each part into memory that an earlier part no longer needs. What works on it meets no page that is still to
come, and a file that was cut meanwhile is an error here; by its mapping it would end the process. Arrays that together
are more than half of the memory, the machine's or the container's, are read past the system's cache of files, which
could not keep them until they are wanted again: to make room in it takes the processor longer than all that is done
with what is read.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import UnreadableFile
from surefoot.storage.memory import own_memory

KEPT = 0.5  #: of the memory for this process: arrays that together are larger are read past the cache
THREADS = 2  #: one reads what is small while the other one waits for the disk
AHEAD = 8  #: parts that are read beyond those that are worked on

_PIECE = 1 << 21  # bytes: a large page
_PAGE = 1 << 12  # what is read past the cache begins and ends with one, in the file and in memory
_PAST_THE_CACHE = getattr(os, "O_DIRECT", 0)

Cut = TypeVar("Cut")
Part = TypeVar("Part")
Array = NDArray[Any]
Read = Callable[[Array], Array]
"""An array, or some of one → the same numbers in memory."""


class _Mapped(NamedTuple):
    """Where an array lies, in memory and in its file."""

    address: int
    size: int
    file: int
    at: int
    name: str


class Room:
    """Memory for the arrays of a part, in large pages where there are such: a disk writes into few of these faster than
    into many small ones."""

    def __init__(self) -> None:
        self._pieces = list[mmap.mmap]()
        self._piece = self._used = 0

    def of(self, size: int) -> memoryview:
        """For one more array."""
        if self._used and self._used + size > len(self._pieces[self._piece]):
            self._piece, self._used = self._piece + 1, 0
        if self._piece == len(self._pieces):
            self._pieces.append(_memory(size))
        elif self._used + size > len(self._pieces[self._piece]):
            self._pieces[self._piece] = _memory(size)
        first, self._used = self._used, self._used + size
        return memoryview(self._pieces[self._piece])[first : self._used]

    def clear(self) -> None:
        self._piece = self._used = 0


def _memory(size: int) -> mmap.mmap:
    size = -(-size // _PIECE) * _PIECE
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


class Lent(Generic[Part]):
    """A part; a context, at the end of which its memory is used again."""

    def __init__(self, part: Part, room: Room, rooms: deque[Room]) -> None:
        self._part, self._room, self._rooms = part, room, rooms

    def __enter__(self) -> Part:
        return self._part

    def __exit__(self, *_: object) -> None:
        self._room.clear()
        self._rooms.append(self._room)


class ReadAhead:
    """Reads parts of some arrays; a context, at the end of which its threads are gone and the files are closed. Arrays
    in memory are left alone."""

    def __init__(self, arrays: Iterable[Array], rooms: deque[Room] | None = None) -> None:
        """``rooms``: memory that others have used before, and will."""
        self._arrays = {id(x): x for x in arrays if getattr(x, "_mmap", None) is not None and x.nbytes}.values()
        self._rooms = deque[Room]() if rooms is None else rooms
        self._mapped: list[_Mapped] = []
        self._threads = ThreadPoolExecutor(THREADS, "read-ahead")

    def __enter__(self) -> ReadAhead:
        if hasattr(os, "preadv"):  # without it the system reads when a page is wanted
            large = sum(x.nbytes for x in self._arrays) > KEPT * own_memory()
            try:
                for x in self._arrays:
                    self._mapped.append(_opened(x, large))
            except OSError:
                self.__exit__()  # those before it
                raise
            self._mapped.sort()
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for each in self._mapped:
            os.close(each.file)

    def parts(self, cuts: Iterable[Cut], part: Callable[[Cut, Read], Part]) -> Iterator[Lent[Part]]:
        """``part(cut, read)`` of every cut, in their order, made on threads that are some parts ahead."""
        under_way, waiting = deque[Future[Lent[Part]]](), iter(cuts)

        def lent(cut: Cut) -> Lent[Part]:
            try:
                room = self._rooms.pop()
            except IndexError:
                room = Room()
            found = part(cut, lambda x: self._read(x, room))
            return Lent(found, room, self._rooms)

        while True:
            under_way.extend(self._threads.submit(lent, cut) for cut in islice(waiting, 1 + AHEAD - len(under_way)))
            if not under_way:
                return
            yield under_way.popleft().result()

    def _read(self, x: Array, room: Room) -> Array:
        address = x.ctypes.data
        place = bisect_right(self._mapped, address, key=_address) - 1
        if place < 0 or not x.nbytes or address >= self._mapped[place].address + self._mapped[place].size:
            return x
        of = self._mapped[place]
        first = of.at + address - of.address
        begin, end = first - first % _PAGE, first + x.nbytes
        memory, at = room.of(-(-(end - begin) // _PAGE) * _PAGE), begin
        while at < end:
            found = os.preadv(of.file, [memory[at - begin :]], at)
            if not found or (found % _PAGE and at + found < end):  # no file ends there but one that was cut
                raise UnreadableFile("the file is shorter than it was when it was mapped", where=of.name)
            at += found
        numbers = np.frombuffer(memory, x.dtype, x.size, first - begin).reshape(x.shape)
        numbers.flags.writeable = False
        return numbers


def _address(of: _Mapped) -> int:
    return of.address


def _opened(array: Any, large: bool) -> _Mapped:
    begin = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # of the mapping, of which the array may be a part
    address = array.ctypes.data
    first = begin + address - np.frombuffer(array._mmap, np.uint8).ctypes.data
    try:
        file = os.open(array.filename, os.O_RDONLY | (_PAST_THE_CACHE if large else 0))
    except OSError:
        file = os.open(array.filename, os.O_RDONLY)  # not every file system can do so
    return _Mapped(address, array.nbytes, file, first, str(array.filename))
