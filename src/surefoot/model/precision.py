"""Feature tables lie in memory in float64 or float32, and are computed with in float64.

A float32 number is a float64 number too, so nothing is lost by reading it as one. But a whole table must not be
converted at once: it was stored in float32 because there is no room for more. So tables are read in pieces, the same
pieces for both kinds: a table gives the same bits however it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FeatureArray = NDArray[np.float32] | NDArray[np.float64]

_PIECE = 1 << 22  # numbers: large enough to be fast, small enough to be copied


def pieces(x: FeatureArray) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Rows of a table (n, d) in float64, some at a time and without a copy where they are in float64 already."""
    step = max(1, _PIECE // max(1, x.shape[1]))
    for first in range(0, len(x), step):
        rows = slice(first, first + step)
        yield rows, np.asarray(x[rows], np.float64)


def dense_norms(x: FeatureArray) -> NDArray[np.float64]:
    """(n,) the length of every row."""
    result = np.empty(len(x))
    for rows, piece in pieces(x):
        np.einsum("ij,ij->i", piece, piece, out=result[rows])  # unlike a norm it makes no copy
    return np.sqrt(result, out=result)


def dense_product(x: FeatureArray, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """x @ matrix, of a matrix (d, m) or a vector (d,)."""
    result = np.empty((len(x), *matrix.shape[1:]))
    for rows, piece in pieces(x):
        np.matmul(piece, matrix, out=result[rows])
    return result
