"""A table of features, one row per triplet: dense in float64 or float32, or sparse. What readers of any kind need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.model import precision
from surefoot.model.precision import FeatureArray
from surefoot.model.sparse_rows import SparseRows

Features = FeatureArray | SparseRows


def product(x: Features, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """x @ matrix, of a matrix (d, m) or a vector (d,), in float64."""
    return x @ matrix if isinstance(x, SparseRows) else precision.dense_product(x, matrix)


def row_norms(x: Features) -> NDArray[np.float64]:
    """(rows,) the length of every row."""
    return x.norms() if isinstance(x, SparseRows) else precision.dense_norms(x)


def row_distances(x: Features, some: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """The length of x[some[i]] − x[others[i]] for every i."""
    if isinstance(x, SparseRows):
        return x.distances(some, others)
    return np.asarray(np.linalg.norm(np.subtract(x[some], x[others], dtype=np.float64), axis=1))


def rows_equal_to(x: Features, row: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(rows,) True where a row is this one (d,)."""
    if isinstance(x, SparseRows):  # a difference of exactly zero: the row's entries agree, and it has all of them
        agree = np.bincount(x.row_of_entries(), x.values == row[x.columns], len(x)) == np.diff(x.indptr)
        held = np.bincount(x.row_of_entries(), row[x.columns] != 0.0, len(x)) == np.count_nonzero(row)
        return np.asarray(agree & held)
    return np.asarray((x == row).all(axis=1))
