"""What layers share is computed and stored once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

from surefoot.model.arrays import IntArray, freeze
from surefoot.model.sparse_rows import SparseRows, stacked

Made = TypeVar("Made")


def made_once(keys: Iterable[Hashable], make: Callable[[int], Made]) -> tuple[Made, ...]:
    """The result of ``make(h)`` for every step h; steps with the same key share one, made for the first of them."""
    known: dict[Hashable, Made] = {}
    result = []
    for h, key in enumerate(keys):
        if key not in known:
            known[key] = make(h)
        result.append(known[key])
    return tuple(result)


def pool(arrays: Iterable[Any]) -> tuple[Any, IntArray]:
    """The distinct arrays end to end, and where the array of each layer begins."""
    begins: dict[int, int] = {}
    distinct: list[Any] = []
    offsets: list[int] = []
    end = 0
    for array in arrays:
        if id(array) not in begins:
            begins[id(array)] = end
            distinct.append(array)
            end += len(array)
        offsets.append(begins[id(array)])
    if len(distinct) == 1:
        flat = distinct[0]
    else:
        flat = stacked(distinct) if isinstance(distinct[0], SparseRows) else np.concatenate(distinct)
    return freeze(flat), np.array(offsets, np.int64)
