"""Arrays in, arrays out: reductions over the segments of a CSR pointer. Segments are never empty."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.model.arrays import BoolArray, FloatArray, IntArray

Values = TypeVar("Values", bound=NDArray[Any])


def segment_max(values: FloatArray, pointer: IntArray) -> FloatArray:
    result: FloatArray = np.maximum.reduceat(values, pointer[:-1])
    return result


def segment_all(marks: BoolArray, pointer: IntArray) -> BoolArray:
    result: BoolArray = np.logical_and.reduceat(marks, pointer[:-1])
    return result


def segment_any(marks: BoolArray, pointer: IntArray) -> BoolArray:
    result: BoolArray = np.logical_or.reduceat(marks, pointer[:-1])
    return result


def spread(values: Values, pointer: IntArray) -> Values:
    """Repeat each segment's value for each of its entries."""
    repeated: Any = np.repeat(values, np.diff(pointer))
    return repeated  # type: ignore[no-any-return]


def likeliest_pair(chances: FloatArray, state_ptr: IntArray) -> IntArray:
    """(S,) the pair of each state with the largest chance, the first of equal ones; -1 where all are 0."""
    top = spread(segment_max(chances, state_ptr), state_ptr)
    return first_marked((chances == top) & (chances > 0), state_ptr)


def first_largest(values: FloatArray, pointer: IntArray) -> IntArray:
    """The lowest index of the largest value of each segment."""
    return first_marked(values == spread(segment_max(values, pointer), pointer), pointer)


def first_marked(marks: BoolArray, pointer: IntArray) -> IntArray:
    """The lowest marked index of each segment, -1 where none is marked."""
    n = len(marks)
    index = np.where(marks, np.arange(n), n)
    lowest = np.minimum.reduceat(index, pointer[:-1])
    return np.where(lowest == n, -1, lowest)
