"""Arrays in, arrays out: reductions over the segments of a CSR pointer. Segments are never empty."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.model.graph import BoolArray, FloatArray, IntArray

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
    """Repeat each segment's value for all its entries."""
    repeated: Any = np.repeat(values, np.diff(pointer))
    return repeated  # type: ignore[no-any-return]


def first_marked(marks: BoolArray, pointer: IntArray) -> IntArray:
    """The lowest marked index of each segment, -1 where none is marked."""
    n = len(marks)
    index = np.where(marks, np.arange(n), n)
    lowest = np.minimum.reduceat(index, pointer[:-1])
    return np.where(lowest == n, -1, lowest)
