"""Reads a table of features: dense in float64 or float32, or sparse.

All arithmetic is in float64. A table in float32 is converted a piece at a time, since there may be no room for all of
it. Tables in float64 are read in the same pieces, so a table gives the same bits however it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.model.sparse_rows import SparseRows
from surefoot.storage.raw_arrays import expect

FeatureArray = NDArray[np.float32] | NDArray[np.float64]
Features = FeatureArray | SparseRows

_PIECE = 1 << 22  # numbers: large enough to be fast, small enough to be copied


def pieces(x: FeatureArray) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """The rows of a table (n, d) in float64, some at a time; copied only if they are stored in float32."""
    step = max(1, _PIECE // max(1, x.shape[1]))
    for first in range(0, len(x), step):
        rows = slice(first, first + step)
        expect(x, first + step, first + 2 * step)
        yield rows, np.asarray(x[rows], np.float64)


def parts_of(x: Features) -> Iterator[Features]:
    """The rows of a table, some at a time, as they are stored."""
    if isinstance(x, SparseRows) or not len(x):
        yield x
        return
    for rows, _ in pieces(x):
        yield x[rows]


def table_times(x: Features, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """x @ matrix, of a matrix (d, m) or a vector (d,), in float64."""
    if isinstance(x, SparseRows):
        return x @ matrix
    result = np.empty((len(x), *matrix.shape[1:]))
    for rows, piece in pieces(x):
        np.matmul(piece, matrix, out=result[rows])
    return result


def row_norms(x: Features) -> NDArray[np.float64]:
    """(rows,) the length of every row."""
    if isinstance(x, SparseRows):
        return x.norms()
    result = np.empty(len(x))
    for rows, piece in pieces(x):
        np.einsum("ij,ij->i", piece, piece, out=result[rows])  # unlike a norm it makes no copy
    return np.sqrt(result, out=result)


def largest_norm(x: Features) -> float:
    """The length of the longest row, without an array of all lengths."""
    if isinstance(x, SparseRows):
        return float(x.norms().max())
    return max(float(np.sqrt(np.einsum("ij,ij->i", piece, piece).max())) for _, piece in pieces(x))


def row_distances(x: Features, some: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """The length of x[some[i]] − x[others[i]] for every i."""
    if isinstance(x, SparseRows):
        return x.distances(some, others)
    result, step = np.empty(len(some)), max(1, _PIECE // max(1, x.shape[1]))
    for first in range(0, len(some), step):
        own = slice(first, first + step)
        result[own] = np.linalg.norm(np.subtract(x[some[own]], x[others[own]], dtype=np.float64), axis=1)
    return result


def rows_equal_to(x: Features, row: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(rows,) True where a row is this one (d,)."""
    if isinstance(x, SparseRows):  # its entries agree with the row's, and it has all that are not zero
        agree = np.bincount(x.row_of_entries(), x.values == row[x.columns], len(x)) == np.diff(x.indptr)
        held = np.bincount(x.row_of_entries(), row[x.columns] != 0.0, len(x)) == np.count_nonzero(row)
        return np.asarray(agree & held)
    return np.asarray((x == row).all(axis=1))
