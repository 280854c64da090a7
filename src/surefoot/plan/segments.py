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


def first_marked(marks: BoolArray, pointer: IntArray) -> IntArray:
    """The lowest marked index of each segment, -1 where none is marked."""
    n = len(marks)
    index = np.where(marks, np.arange(n), n)
    lowest = np.minimum.reduceat(index, pointer[:-1])
    return np.where(lowest == n, -1, lowest)
