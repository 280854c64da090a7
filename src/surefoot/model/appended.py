"""Arrays that are appended to without copying what is there.

An array keeps room behind it, into which longer ones are written that share its memory; what was there never changes.
When the room is taken, by a longer array than this one or by another that grew out of the same, there is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.model.graph import freeze


@dataclass
class Room:
    """Memory that arrays share, each from the beginning on."""

    memory: NDArray[Any]
    used: int  # by the longest of them


@dataclass(frozen=True, eq=False)
class Appended:
    """A read-only array, and the room that it has."""

    array: NDArray[Any]
    _room: Room

    @classmethod
    def of(cls, array: NDArray[Any]) -> Appended:
        return cls(freeze(array), Room(array, len(array)))

    @property
    def held(self) -> int:
        """Bytes, with the room."""
        return self._room.memory.nbytes

    def plus(self, more: ArrayLike) -> Appended:
        """This array with some rows more, each entry moved at most twice on the average."""
        n, room = len(self.array), self._room
        rows = np.asarray(more, self.array.dtype).reshape(-1, *self.array.shape[1:])
        end = n + len(rows)
        if end == n:
            return self
        if room.used != n or end > len(room.memory):
            room = Room(np.empty((2 * end, *self.array.shape[1:]), self.array.dtype), n)
            room.memory[:n] = self.array
        room.memory[n:end], room.used = rows, end
        return Appended(freeze(room.memory[:end]), room)
