"""Compiled: how tables of features are read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.jit import leaf
from surefoot.model.features import Features
from surefoot.model.graph import FloatArray
from surefoot.model.sparse_rows import SparseRows


class Rows(NamedTuple):
    """A table of features as compiled code reads it; without pointers it is dense. There is one type for all tables, so
    that readers are compiled once."""

    values: FloatArray  # (n, d), or (entries, 1) of a sparse table; empty where it is narrow
    narrow: NDArray[np.float32]  # (n, d) of a dense table in float32, or empty
    indptr: NDArray[np.int64]  # (n+1,), or empty
    columns: NDArray[np.int32]  # (entries,), or empty


def rows_of(table: Features) -> Rows:
    """The same table, nothing copied."""
    if isinstance(table, SparseRows):
        return Rows(sealed(table.values[:, None]), _NARROW, sealed(table.indptr), sealed(table.columns))
    if table.dtype == np.float32:
        return Rows(_WIDE, sealed(table), *_DENSE)
    return Rows(sealed(table), _NARROW, *_DENSE)


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: numba compiles again for every combination of flags."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


_DENSE = sealed(np.empty(0, np.int64)), sealed(np.empty(0, np.int32))
_WIDE, _NARROW = sealed(np.empty((0, 0))), sealed(np.empty((0, 0), np.float32))


@leaf
def number(x: Rows, e: int, i: int) -> float:
    """An entry of a dense table."""
    return np.float64(x.narrow[e, i]) if x.narrow.size else x.values[e, i]
