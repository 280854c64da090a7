"""Mapped arrays are read from the disk before they are wanted, so that disk and processor work at the same time.

A thread reads the files, into a buffer that nobody looks at: then the system has these pages in memory when the mapping
is used. It does so by ordinary reading, in large pieces, which beats asking for pages of the mapping: the system keeps
such pages together in large ones, and compiled code need not let other threads of Python run in between. And a file
that was cut meanwhile is an error here; by its mapping it would end the process.
"""

from __future__ import annotations

import math
import mmap
import os
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import UnreadableFile

PIECE = 1 << 24  #: bytes of the largest array that are read at a time
AHEAD = 3  #: pieces that are read beyond what is wanted now

_BUFFER = 1 << 18  # small enough to stay in the cache


class _Mapped(NamedTuple):
    """Where an array lies in its file."""

    file: int
    name: str
    first: int
    size: int


class ReadAhead:
    """Reads some arrays from their first byte to their last while somebody walks over them; a context, at the end of
    which the thread is gone and the files are closed. Arrays in memory are left alone."""

    def __init__(self, arrays: Iterable[NDArray[Any]], only: Iterable[tuple[float, float]] = ((0.0, 1.0),)) -> None:
        """``only``: the shares of every array that will be wanted, from … to, rising."""
        self._arrays = {id(x): x for x in arrays if getattr(x, "_mmap", None) is not None and x.nbytes}.values()
        self._mapped: list[_Mapped] = []
        self._only, self._pieces = only, list[tuple[float, float]]()
        self._asked = self._there = 0
        self._under_way = deque[Future[None]]()
        self._thread = ThreadPoolExecutor(1, "read-ahead")

    def __enter__(self) -> ReadAhead:
        if hasattr(os, "preadv"):  # without it the system reads when a page is wanted
            try:
                for x in self._arrays:
                    self._mapped.append(_opened(x))
            except OSError:
                self.__exit__()  # those before it
                raise
            most = max((each.size for each in self._mapped), default=0)
            for first, end in self._only:
                n = math.ceil((end - first) * most / PIECE)
                cuts = [*(first + (end - first) * i / n for i in range(n)), end]
                self._pieces += pairwise(cuts)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        for each in self._mapped:
            os.close(each.file)

    def come_to(self, share: float) -> None:
        """The work needs this share of every array now, and the next soon."""
        now = bisect_left(self._pieces, share, key=itemgetter(0))
        while self._asked < min(len(self._pieces), now + AHEAD):
            self._under_way.append(self._thread.submit(self._read, *self._pieces[self._asked]))
            self._asked += 1
        while self._there < now:
            self._under_way.popleft().result()
            self._there += 1

    def _read(self, begin: float, stop: float) -> None:
        buffer = memoryview(bytearray(_BUFFER))
        for file, name, first, size in self._mapped:
            at, end = (first + int(size * share) for share in (begin, stop))
            while at < end:
                whole, rest = divmod(end - at, _BUFFER)
                found = os.preadv(file, [*[buffer] * whole, buffer[:rest]], at)
                if not found:
                    raise UnreadableFile("the file is shorter than it was when it was mapped", where=name)
                at += found


def _opened(array: Any) -> _Mapped:
    begin = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # of the mapping, of which the array may be a part
    first = begin + array.ctypes.data - np.frombuffer(array._mmap, np.uint8).ctypes.data
    return _Mapped(os.open(array.filename, os.O_RDONLY), str(array.filename), first, array.nbytes)
