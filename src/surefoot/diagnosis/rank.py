"""Length and rank of the features: how many directions there are to learn.

A long table X is compressed by QR, a slice at a time, to R with RᵀR = XᵀX. R has the singular values of X, whose ratios
XᵀX would square.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import scipy.linalg

from surefoot.diagnosis.diagnosis import Features, Regression
from surefoot.estimate.basis import NO_DATA, Basis
from surefoot.estimate.blocks import Blocks, SameSize, cost_blocks, value_blocks
from surefoot.estimate.costs import split
from surefoot.estimate.families import Family
from surefoot.estimate.update import Frames, laid_out
from surefoot.model import features as model
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import FeatureArray
from surefoot.model.graph import Anchors
from surefoot.model.problem import Problem
from surefoot.model.sharing import made_once
from surefoot.model.sparse_rows import SparseRows

NEGLIGIBLE = 1e-12  #: a direction this much smaller than the largest one is rounding


def describe_features(problem: Problem) -> Features:
    graph, last = problem.graph, problem.graph.terminal
    costs = [layer.cost_features for layer in graph.layers]
    if last.cost_features is not None and last.has_cost.any():
        costs.append(last.cost_features)  # rows of states without a cost are zero
    transitions = [layer.transition_features for layer in graph.layers]
    return Features(
        cost_dim=graph.cost_dim,
        transition_dim=graph.transition_dim,
        shared=graph.shared_features,
        names=problem.features,
        costs=_regressions(cost_blocks(problem), costs, problem.stationary_costs),
        transitions=_regressions(value_blocks(problem), transitions, problem.stationary_transitions),
        column_scales=tuple(column_scales(problem).tolist()),
    )


def _regressions(blocks: Blocks, tables: Sequence[model.Features], pooled: bool) -> tuple[Regression, ...]:
    """Rank and redundant columns of every regression; ``tables`` are those of the steps, in order."""
    groups = [tables] if pooled else [[x] for x in tables]
    keys = [tuple({id(x): x for x in group}) for group in groups]
    ranks = made_once(keys, lambda r: _rank(blocks, r, {id(x): x for x in groups[r]}.values()))
    steps = [tuple(range(len(tables)))] if pooled else [(h,) for h in range(len(tables))]
    return tuple(Regression(own, *rank) for own, rank in zip(steps, ranks, strict=True))


def _rank(blocks: Blocks, regression: int, tables: Iterable[model.Features]) -> tuple[int, tuple[int, ...]]:
    triangles = Triangles(blocks, regression)
    for x in tables:
        triangles.add(x)
    values = triangles.singular_values()
    least = NEGLIGIBLE * max(float(each.max()) for each in values)
    shape, rank, redundant = blocks.shape, 0, list[IntArray]()
    for run, stack, each in zip(triangles.runs, triangles.stacks, values, strict=True):
        ranks = (each > least).sum(axis=1)
        rank += int(ranks.sum())
        slots = shape.slot[run.first + np.arange(run.n)]
        missing = np.flatnonzero(ranks < run.size)
        empty = missing[ranks[missing] == 0]
        redundant.append(shape.column[(slots[empty][:, None] + np.arange(run.size)).reshape(-1)])
        for i in missing[ranks[missing] > 0]:
            # Pivoting puts independent columns first; the others are combinations of them.
            _, order = scipy.linalg.qr(stack[i], mode="r", pivoting=True)[-2:]
            redundant.append(shape.column[slots[i] + np.asarray(order[ranks[i] :])])
    return rank, tuple(sorted(np.concatenate(redundant).tolist()))


def slices(x: FeatureArray) -> Iterator[slice]:
    """Pieces of a table, large enough to be fast and small enough to be copied."""
    step = max(4 * x.shape[1], (1 << 20) // x.shape[1])
    for first in range(0, len(x), step):
        yield slice(first, first + step)


def column_scales(problem: Problem) -> FloatArray:
    """(dc,) the largest absolute entry of every column of the cost features."""
    scales = np.zeros(problem.graph.cost_dim)
    for x in problem.graph.cost_tables():
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


# --- block by block; dense features are one block -------------------------------------------------------------

_AT_ONCE = 1 << 22  # numbers that are processed at a time


class Triangles:
    """R with RᵀR = Σ z zᵀ of every block of one regression, many small blocks at a time."""

    def __init__(self, blocks: Blocks, regression: int) -> None:
        self.blocks, self.regression = blocks, regression
        self._first = int(blocks.first[regression])
        self.stacks = [np.zeros((run.n, run.size, run.size)) for run in blocks.runs[regression]]

    @property
    def runs(self) -> tuple[SameSize, ...]:
        return self.blocks.runs[self.regression]

    def add(self, x: model.Features, family: Family | None = None, anchors: Anchors | None = None) -> None:
        """Add all rows of a table; for a family, scaled and projected as in its regression."""
        known = None if family is None else family.known(anchors)
        if not isinstance(x, SparseRows):
            for rows in slices(x):
                z = np.asarray(x[rows], np.float64) if family is None else split(x[rows], family, known)[1]
                whole = self.stacks[0]
                whole[0] = np.linalg.qr(np.concatenate([whole[0], z]), mode="r")
            return
        nothing, width = np.zeros((1, x.dim)), np.ones(x.dim) if family is None else family.width
        both = (nothing, nothing) if known is None else (known.anchors, known.directions)
        frames = Frames(both[0][None], both[1][None], width[None].copy())
        step = max(1, _AT_ONCE // self.blocks.largest)
        for first in range(0, len(x), step):
            block, begin, flat = laid_out(x[first : first + step], self.blocks, self.regression, frames)
            for run, stack in zip(self.runs, self.stacks, strict=True):
                own = np.flatnonzero((block >= run.first) & (block < run.first + run.n))
                if len(own):
                    z = flat[begin[own][:, None] + np.arange(run.size)]
                    _compress(stack, block[own] - run.first, z)

    def singular_values(self) -> list[FloatArray]:
        """Per run (n, size), the largest first."""
        return [_svd(stack)[0] for stack in self.stacks]

    def spanned(self, least: float) -> tuple[Basis, FloatArray]:
        """An orthonormal basis of every block, and 1 for each direction in which rows are longer than ``least``."""
        n = int(self.blocks.first[self.regression + 1]) - self._first
        spot, entry = np.full(n, NO_DATA), np.full(n, NO_DATA)
        kept, bases = [], []
        spots = entries = 0
        for run, stack in zip(self.runs, self.stacks, strict=True):
            values, directions = _svd(stack)
            own = run.first - self._first + np.arange(run.n)
            spot[own] = spots + np.arange(run.n) * run.size
            entry[own] = entries + np.arange(run.n) * run.size**2
            spots, entries = spots + run.n * run.size, entries + stack.size
            kept.append((values > least).reshape(-1))
            bases.append(directions.transpose(0, 2, 1).reshape(-1))
        rest = [] if self.blocks.whole else [[False]]  # of all blocks without rows
        weights = np.concatenate([*kept, *rest]).astype(np.float64)
        return Basis(self.blocks, self.regression, spot, entry, np.concatenate(bases)), weights


def no_directions(blocks: Blocks, regression: int) -> Basis:
    """The basis of a regression without data: blocks stay as they are."""
    nothing = np.full(int(blocks.first[regression + 1] - blocks.first[regression]), NO_DATA)
    return Basis(blocks, regression, nothing, nothing, np.empty(0))


def _svd(stack: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(singular values (n, size), right singular vectors (n, size, size)), some matrices at a time."""
    if stack.shape[1] == 1:
        return np.abs(stack[..., 0]), np.ones_like(stack)
    step = max(1, _AT_ONCE // stack[0].size)
    parts = [np.linalg.svd(stack[i : i + step])[1:] for i in range(0, len(stack), step)]
    return np.concatenate([s for s, _ in parts]), np.concatenate([v for _, v in parts])


def _compress(stack: FloatArray, of: IntArray, z: FloatArray) -> None:
    """Add rows z (rows, size) to the triangles of their blocks, stack[of], in place."""
    size = stack.shape[1]
    if size == 1:
        stack[:, 0, 0] = np.sqrt(stack[:, 0, 0] ** 2 + np.bincount(of, z[:, 0] ** 2, len(stack)))
        return
    order = np.argsort(of, kind="stable")
    of, z = of[order], z[order]
    counts = np.bincount(of, minlength=len(stack))
    turn = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]  # a row's number within its block
    height = 4 * size  # rows of a block that are taken together
    width = max(1, _AT_ONCE // ((size + height) * size))
    for first in range(0, int(turn.max()) + 1, height):
        due = np.flatnonzero((turn >= first) & (turn < first + height))
        blocks, which = np.unique(of[due], return_inverse=True)
        for begin in range(0, len(blocks), width):
            some = blocks[begin : begin + width]
            tall = np.zeros((len(some), size + height, size))
            tall[:, :size] = stack[some]
            here = (which >= begin) & (which < begin + width)
            tall[which[here] - begin, size + turn[due[here]] - first] = z[due[here]]
            stack[some] = np.linalg.qr(tall, mode="r")
