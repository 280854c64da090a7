"""Arrays in, arrays out: reductions over the segments of a CSR pointer. Segments are never empty."""

from __future__ import annotations

import numpy as np

from surefoot.model.graph import BoolArray, FloatArray, IntArray


def segment_max(values: FloatArray, pointer: IntArray) -> FloatArray:
    result: FloatArray = np.maximum.reduceat(values, pointer[:-1])
    return result


def segment_all(marks: BoolArray, pointer: IntArray) -> BoolArray:
    result: BoolArray = np.logical_and.reduceat(marks, pointer[:-1])
    return result


def segment_any(marks: BoolArray, pointer: IntArray) -> BoolArray:
    result: BoolArray = np.logical_or.reduceat(marks, pointer[:-1])
    return result


def spread(values: FloatArray, pointer: IntArray) -> FloatArray:
    """Repeat each segment's value for all its entries."""
    return np.repeat(values, np.diff(pointer))


def likeliest_pair(chances: FloatArray, state_ptr: IntArray) -> IntArray:
    """(S,) the pair of each state with the largest chance, the first of equal ones; -1 where all are 0."""
    top = spread(segment_max(chances, state_ptr), state_ptr)
    return first_marked((chances == top) & (chances > 0), state_ptr)


def first_marked(marks: BoolArray, pointer: IntArray) -> IntArray:
    """The lowest marked index of each segment, -1 where none is marked."""
    n = len(marks)
    index = np.where(marks, np.arange(n), n)
    lowest = np.minimum.reduceat(index, pointer[:-1])
    return np.where(lowest == n, -1, lowest)
