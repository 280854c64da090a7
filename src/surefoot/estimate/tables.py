"""How compiled code reads tables of features, and the steps of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.jit import leaf
from surefoot.model.arrays import FloatArray, IntArray, pointer_of
from surefoot.model.features import Features
from surefoot.model.graph import LayeredGraph
from surefoot.model.sharing import pool
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


# Columns of the offsets of StepTables.
STATES, POINTERS, SUCCESSORS, REWARDS, COST_FEATURES, TRANSITION_FEATURES, BY_PAIR = range(7)


class StepTables(NamedTuple):
    """All steps end to end, arrays that steps share only once; row h of the offsets says where step h begins in
    each."""

    offsets: IntArray  # (H, 7)  the last column: 1 where cost rows belong to pairs, one each
    pair_ptr: IntArray
    successor: IntArray
    reward: FloatArray
    cost_features: Rows
    transition_features: Rows
    terminal_features: Rows


def step_tables(graph: LayeredGraph) -> StepTables:
    names = ("pair_ptr", "successor", "reward", "cost_features", "transition_features")
    pools = [pool(getattr(layer, name) for layer in graph.layers) for name in names]
    offsets = np.zeros((graph.horizon, 7), np.int64)
    offsets[:, STATES] = pointer_of(np.array([graph.n_states(h) for h in range(graph.horizon)]))[:-1]
    for column, (_, begins) in enumerate(pools, start=POINTERS):
        offsets[:-1, column] = begins
    offsets[:-1, BY_PAIR] = [not layer.per_triplet for layer in graph.layers]
    pair_ptr, successor, reward, x, phi = (flat for flat, _ in pools)
    last = graph.terminal.cost_features
    ends = graph.layers[0].cost_features[:1] if last is None else last
    return StepTables(offsets, pair_ptr, successor, reward, rows_of(x), rows_of(phi), rows_of(ends))


@leaf
def number(x: Rows, e: int, i: int) -> float:
    """An entry of a dense table."""
    return np.float64(x.narrow[e, i]) if x.narrow.size else x.values[e, i]
