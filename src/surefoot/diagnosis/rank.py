"""Length and rank of the features: how many directions there are to learn.

Rows are compressed in slices by QR: of a table X with many rows only R with RᵀR = XᵀX is kept, which has the same
singular values and, unlike XᵀX itself, does not square their ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import scipy.linalg

from surefoot.diagnosis.diagnosis import Features, Regression
from surefoot.diagnosis.triangles import NEGLIGIBLE, describe_blocks
from surefoot.estimate.blocks import Blocks, cost_blocks, value_blocks
from surefoot.model import features as model
from surefoot.model.features import FeatureArray
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows


def describe_features(problem: Problem) -> Features:
    graph = problem.graph
    costs = [layer.cost_features for layer in graph.layers]
    last = graph.terminal
    if last.cost_features is not None and last.has_cost.any():
        costs.append(last.cost_features)  # rows without a cost are zero and add nothing
    transitions = [layer.transition_features for layer in graph.layers]
    done: dict[int, FloatArray] = {}  # steps may share a table; it is compressed once

    def compressed(x: FeatureArray) -> FloatArray:
        if id(x) not in done:
            done[id(x)] = triangle([x])
        return done[id(x)]

    def regressions(
        tables: list[model.Features], pooled: bool, blocks: Callable[[Problem], Blocks]
    ) -> tuple[Regression, ...]:
        sparse = [x for x in tables if isinstance(x, SparseRows)]
        if sparse:
            return describe_blocks(blocks(problem), sparse, pooled)
        return _regressions([x for x in tables if not isinstance(x, SparseRows)], pooled, compressed)

    return Features(
        cost_dim=graph.cost_dim,
        transition_dim=graph.transition_dim,
        shared=graph.shared_features,
        names=problem.features,
        costs=regressions(costs, problem.stationary_costs, cost_blocks),
        transitions=regressions(transitions, problem.stationary_transitions, value_blocks),
        column_scales=tuple(column_scales(problem).tolist()),
    )


def _regressions(
    tables: Sequence[FeatureArray], pooled: bool, compressed: Callable[[FeatureArray], FloatArray]
) -> tuple[Regression, ...]:
    if pooled:
        unique = {id(x): x for x in tables}.values()
        together = triangle(compressed(x) for x in unique)
        return (_regression(tuple(range(len(tables))), together),)
    return tuple(_regression((h,), compressed(x)) for h, x in enumerate(tables))


def _regression(layers: tuple[int, ...], r: FloatArray) -> Regression:
    # Pivoting puts a largest set of independent columns first; the others are combinations of them.
    _, order = scipy.linalg.qr(r, mode="r", pivoting=True)[-2:]
    singular = np.linalg.svd(r, compute_uv=False)
    rank = int((singular > NEGLIGIBLE * singular[0]).sum())
    return Regression(layers, rank, tuple(sorted(int(column) for column in order[rank:])))


def triangle(tables: Iterable[FeatureArray]) -> FloatArray:
    """R (at most d rows, d) with RᵀR = Σ x xᵀ over all rows of all tables."""
    r: FloatArray | None = None
    for x in tables:
        for rows in slices(x):
            piece = np.asarray(x[rows], np.float64)
            stacked = piece if r is None else np.vstack([r, piece])
            r = np.asarray(np.linalg.qr(stacked, mode="r"))
    if r is None:
        raise ValueError("triangle() needs at least one row")
    return r


def span(r: FloatArray, scale: float) -> FloatArray:
    """(d, rank) an orthonormal basis of the rows behind R; directions below NEGLIGIBLE·scale do not count."""
    _, singular, directions = np.linalg.svd(r, full_matrices=False)
    basis: FloatArray = directions[singular > NEGLIGIBLE * scale].T
    return basis


def slices(x: FeatureArray) -> Iterator[slice]:
    """Pieces of a table that are large enough to be fast and small enough to be copied."""
    step = max(4 * x.shape[1], (1 << 20) // x.shape[1])
    for first in range(0, len(x), step):
        yield slice(first, first + step)


def column_scales(problem: Problem) -> FloatArray:
    """(dc,) the largest entry, without its sign, of every column of the cost features."""
    graph = problem.graph
    tables = {id(layer.cost_features): layer.cost_features for layer in graph.layers}
    if graph.terminal.cost_features is not None:
        tables[id(graph.terminal.cost_features)] = graph.terminal.cost_features
    scales = np.zeros(graph.cost_dim)
    for x in tables.values():
        np.maximum(scales, _largest_entries(x), out=scales)
    return scales


def _largest_entries(x: model.Features) -> FloatArray:
    if isinstance(x, SparseRows):
        scales = np.zeros(x.dim)
        np.maximum.at(scales, x.columns, np.abs(x.values))
        return scales
    if len(x) == 0:
        return np.zeros(x.shape[1])
    return np.maximum(np.asarray(x.max(axis=0), np.float64), -np.asarray(x.min(axis=0), np.float64))
