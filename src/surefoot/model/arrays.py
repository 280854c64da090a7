"""Arrays as a graph holds them: read-only, and in CSR form, with a pointer that says where each part begins."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.model.sparse_rows import SparseRows, arrays_of

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

AnyArray = TypeVar("AnyArray", bound=NDArray[Any] | SparseRows)


def freeze(array: AnyArray) -> AnyArray:
    """Make an array read-only, so that it can be shared without copies."""
    for own in arrays_of(array):
        own.flags.writeable = False
    return array


def owner(pointer: IntArray, index: int) -> int:
    """What an index belongs to: with ``state_ptr`` the state of a pair, with ``pair_ptr`` the pair of an edge, …"""
    return int(np.searchsorted(pointer, index, side="right")) - 1


def rows_of_pairs(row_ptr: IntArray, pair_ptr: IntArray) -> IntArray:
    """``row_ptr`` of rows that belong to pairs; if every pair has one row and one edge, ``pair_ptr`` itself."""
    n = len(pair_ptr) - 1
    return pair_ptr if int(pair_ptr[-1]) == int(row_ptr[-1]) == n else row_ptr


def pointer_of(lengths: IntArray) -> NDArray[np.int64]:
    """(n+1,) where each of n parts with these lengths begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def segments(pointer: IntArray, wanted: IntArray) -> tuple[IntArray, IntArray]:
    """(the entries of some segments one after the other, where each begins among them)."""
    begin, end = np.asarray(pointer[wanted]), np.asarray(pointer[wanted + 1])
    ptr = pointer_of(end - begin)
    return np.repeat(begin - ptr[:-1], end - begin) + np.arange(ptr[-1]), ptr
