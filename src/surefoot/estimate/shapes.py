"""The shape of the features: a ridge that weighs every direction as the rows themselves do (spec 3).

For every cost regression, with d features, s as for ridges, and the mean over its rows:

    N = d · mean zzᵀ / s + I/100

Such a ridge is the same share of the data in every direction, if they are distributed like the rows of the graph; an
even one, I, takes longest to outweigh in the directions in which rows differ least. N depends only on what is declared.
A graph that grows has the rows that it began with, and in a large table some rows stand for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.estimate.bank import LEAST_SHAPE
from surefoot.estimate.blocks import Blocks
from surefoot.estimate.families import Family, Known, costed_rows, first_graph, ridge_scale
from surefoot.model.arrays import FloatArray
from surefoot.model.features import Features, pieces
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.threads import one_blas_thread

MOST_ROWS = 100_000  #: of a dense table; a larger one is thinned out


def feature_shapes(problem: Problem, families: tuple[Family, ...], blocks: Blocks) -> FloatArray:
    """N of every regression, laid out as their Gram matrices are (surefoot.estimate.blocks)."""
    steps = len(blocks.runs) // len(families)
    result = np.zeros(int(blocks.shape.entry[-1]))
    with one_blas_thread():
        for f, family in enumerate(families):
            scale, sums = ridge_scale(problem, family), _sums(problem, family)
            for step in range(steps):
                own = [each for h, each in enumerate(sums) if each is not None and (steps == 1 or h == step)]
                rows = sum(n for n, _ in own)
                for _, square in own:
                    _add(result, blocks, f * steps + step, square * (blocks.dim / scale / rows))
    for run in (run for runs in blocks.runs for run in runs):
        begin, end = blocks.shape.entry[[run.first, run.first + run.n]]
        result[begin:end].reshape(run.n, -1)[:, :: run.size + 1] += LEAST_SHAPE
    return result


def _sums(problem: Problem, family: Family) -> list[tuple[int, Any] | None]:
    """By step: how many rows it has, and their Σ zzᵀ (d, d), sparse for a sparse table; None without a cost."""
    done = dict[tuple[int, int], tuple[int, Any]]()
    found: list[tuple[int, Any] | None] = []
    for x, anchors in costed_rows(first_graph(problem)):
        if x is None or not len(x):
            found.append(None)
            continue
        key = id(x), id(anchors)
        if key not in done:
            done[key] = len(x), _squares(x, family, family.known(anchors))
        found.append(done[key])
    return found


def _squares(x: Features, family: Family, known: Known | None) -> Any:
    if isinstance(x, SparseRows):
        return _sparse_squares(x, family, known)
    some = x[:: -(-len(x) // MOST_ROWS)]
    found = np.zeros((x.shape[1], x.shape[1]))
    for _, piece in pieces(some):
        z = piece * family.width
        if known is not None:
            z -= (piece @ known.directions.T) @ known.anchors
        found += z.T @ z
    return found * (len(x) / len(some))


def _sparse_squares(x: SparseRows, family: Family, known: Known | None) -> Any:
    from scipy.sparse import csr_array

    rows = csr_array((x.values, x.columns, x.indptr), shape=x.shape)
    z: Any = rows * family.width
    if known is not None:
        z = z - csr_array(rows @ csr_array(known.directions.T)) @ csr_array(known.anchors)
    return (z.T @ z).tocoo()


def _add(flat: FloatArray, blocks: Blocks, r: int, square: Any) -> None:
    """Add a matrix (d, d), which has no entry outside the blocks of a regression, to the matrices of these."""
    shape = blocks.shape
    if isinstance(square, np.ndarray):  # all columns are one block, in order
        begin, end = shape.entry[[blocks.first[r], blocks.first[r] + 1]]
        flat[begin:end] += square.reshape(-1)
        return
    row, column = square.coords
    block = shape.block[r, row]
    inside = block == shape.block[r, column]  # all others are zero but for rounding
    block, row, column = block[inside], shape.place[r, row[inside]], shape.place[r, column[inside]]
    np.add.at(flat, shape.entry[block] + row.astype(np.int64) * shape.size[block] + column, square.data[inside])
