"""Ridge statistics: what is kept of the data, and what plans are computed from.

A bank holds R regressions of dimension d with m targets each:

    G = Σ z zᵀ,   b_j = Σ z y_j,   a triangular factor of  λI + G,   and its log det

block by block (surefoot.estimate.blocks); dense features are one block. G and b are compensated sums, so a million rows
are as exact as one. The factor and its log det get a rank-one update per row and only serve to notice that the data
have grown (spec 6, lazy replanning); bounds are computed from G again for every plan, because an updated inverse drifts
to the unsafe side. Factors, and bounds beside an even ridge, come from the eigenvalues of G, which works however large
they are beside λ, unlike a Cholesky factor of λI + G. Of G and the factor, the lower triangles are kept.

A block without data is never looked at: its eigenvalues are zero and its factor √λ I.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.basis import NO_DATA, Basis, Turned, Whitened
from surefoot.estimate.blocks import Blocks, SameSize
from surefoot.estimate.update import FACTOR, GRAM, BankState, add_row, has_grown
from surefoot.model.arrays import FloatArray, IntArray

LEAST_SHAPE = 0.01  #: of an even ridge: the least that one in the shape of the features has in any direction (spec 3)


class Bank:
    """R ridge regressions with one kind of features."""

    def __init__(self, blocks: Blocks, n_targets: int, ridge: float | Sequence[float]) -> None:
        """``ridge``: of the factors, one number or one for each regression."""
        shape, n = blocks.shape, len(blocks.runs)
        self.blocks, self.ridges = blocks, np.broadcast_to(np.asarray(ridge, np.float64), n)
        self.state = BankState(
            squares=np.zeros((3, int(shape.entry[-1]))),
            targets=np.zeros((2, n_targets, len(shape.column))),
            log_det=np.zeros(n),
            rows=np.zeros(n, np.int64),
            counts=np.zeros(len(shape.size), np.int64),
        )
        for r, runs in enumerate(blocks.runs):
            for run in runs:
                self._stack(FACTOR, run)[:] = np.sqrt(self.ridges[r]) * np.eye(run.size)

    @property
    def rows(self) -> NDArray[np.int64]:
        """(R,) observations of each regression."""
        return self.state.rows

    def add(self, r: int, b: int, z: FloatArray, y: FloatArray) -> None:
        """Count one row with targets y (m,) in regression r; z is its part in block b, and is destroyed."""
        add_row(r, b, self.state, self.blocks.shape, z, y)

    def log_det(self) -> FloatArray:
        """(R,) log det(λI + G), up to its value without data."""
        return self.state.log_det.copy()

    def has_grown(self, planned: FloatArray, threshold: float) -> bool:
        """Has some log det grown by more than the threshold since it was ``planned`` (R,)?"""
        return bool(has_grown(self.state.log_det, planned, threshold))

    def refresh(self) -> None:
        """Compute factors and log dets from G again, which ends the drift of their updates."""
        for r, runs in enumerate(self.blocks.runs):
            self.state.log_det[r] = 0.0
            for run in runs:
                has = self._with_data(run)
                if len(has):
                    factors, growth = factored(self._stack(GRAM, run)[has], float(self.ridges[r]))
                    self._stack(FACTOR, run)[has] = factors
                    self.state.log_det[r] += float(growth.sum())

    def turned(self, r: int) -> Turned:
        """Regression r in the eigenbasis of its data."""

        def eigen(run: SameSize, has: IntArray) -> _Directions:
            values, basis = _eigen(self._stack(GRAM, run)[has])
            return _Directions(values, basis, (self._targets(run, has)[..., None, :] @ basis)[..., 0, :])

        values, basis, targets = self._by_direction(r, eigen)
        return Turned(np.maximum(values, 0.0), basis, targets)

    def whitened(self, r: int, shapes: FloatArray, unit: float, times: float) -> Whitened:
        """Regression r, of ``times`` its data, beside unit·N; N is laid out as G is (``shapes``)."""
        roots, sides, growth, size = list[FloatArray](), list[FloatArray](), 0.0, 0.0

        def pencil(run: SameSize, has: IntArray) -> _Directions:
            nonlocal growth, size
            grams = _whole(self._stack(GRAM, run)[has]) * (times / unit)
            beside = _stacked(shapes, self.blocks, run)[has]
            root, lost = _cholesky(grams + beside)
            side, values, basis = _singular(np.asarray(np.linalg.solve(root, grams)))
            growth += _log_det(root) - _log_det(np.asarray(np.linalg.cholesky(beside)))
            size += math.inf if lost else float(np.trace(grams + beside, axis1=1, axis2=2).sum())
            roots.append(root)
            sides.append(side)
            told = np.linalg.solve(root, np.moveaxis(self._targets(run, has), 0, -1) * (times / unit))
            return _Directions(values, basis, np.moveaxis(np.swapaxes(side, 1, 2) @ told, -1, 0))

        values, basis, told = self._by_direction(r, pencil)

        def pulled(rows: FloatArray, block: IntArray) -> FloatArray:
            def through(n: int, own: FloatArray, at: IntArray) -> FloatArray:
                found = np.linalg.solve(roots[n][at], own[..., None])
                return np.asarray((np.swapaxes(sides[n][at], 1, 2) @ found)[..., 0]) / unit

            return basis.each(rows, block, through)

        return Whitened(
            values=values,
            basis=basis,
            told=told,
            lengths=times * np.linalg.norm(self._all_targets(r), axis=1),
            unit=unit,
            least=LEAST_SHAPE,
            growth=max(0.0, growth),
            size=unit * size,
            lost=math.sqrt(size / LEAST_SHAPE) if size > 0.0 else 1.0,
            pulled=pulled,
        )

    def _by_direction(
        self, r: int, made: Callable[[SameSize, IntArray], _Directions]
    ) -> tuple[FloatArray, Basis, FloatArray]:
        """From what is ``made`` of the blocks with data: a number per direction, the basis, numbers per target."""
        first, end = (int(b) for b in self.blocks.first[r : r + 2])
        spot, entry = np.full(end - first, NO_DATA), np.full(end - first, NO_DATA)
        numbers, bases, targets = [], [], []
        spots = entries = 0
        for run in self.blocks.runs[r]:
            has, size = self._with_data(run), run.size
            if len(has) == 0:
                continue
            found = made(run, has)
            numbers.append(found.values.reshape(-1))
            bases.append(found.basis.reshape(-1))
            targets.append(found.targets.reshape(len(found.targets), -1))
            spot[run.first - first + has] = spots + np.arange(len(has)) * size
            entry[run.first - first + has] = entries + np.arange(len(has)) * size * size
            spots, entries = spots + len(has) * size, entries + len(has) * size * size
        if not self.blocks.whole:
            numbers.append(np.zeros(1))
            targets.append(np.zeros((self.state.targets.shape[1], 1)))
        basis = Basis(self.blocks, r, spot, entry, np.concatenate([np.empty(0), *bases]))
        return np.concatenate(numbers), basis, np.concatenate(targets, axis=1)

    def arrays(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """For a checkpoint."""
        return self.state._asdict()

    def _with_data(self, run: SameSize) -> IntArray:
        """Which blocks of a run, counted from its first, have seen a row; all where there is one per regression."""
        if self.blocks.whole:
            return np.arange(run.n)
        return np.flatnonzero(self.state.counts[run.first : run.first + run.n])

    def _targets(self, run: SameSize, has: IntArray) -> FloatArray:
        """(m, n, size) b_j of some blocks of a run."""
        begin = int(self.blocks.shape.slot[run.first])
        return self.state.targets[0, :, begin : begin + run.n * run.size].reshape(-1, run.n, run.size)[:, has]

    def _all_targets(self, r: int) -> FloatArray:
        """(m, d) b_j by slot."""
        return self.state.targets[0, :, r * self.blocks.dim : (r + 1) * self.blocks.dim]

    def _stack(self, kind: int, run: SameSize) -> FloatArray:
        """(n, size, size) the matrices of a run, in place."""
        return _stacked(self.state.squares[kind], self.blocks, run)


class _Directions(NamedTuple):
    """Of n blocks of one size."""

    values: FloatArray  # (n, size)
    basis: FloatArray  # (n, size, size)  a direction per column
    targets: FloatArray  # (m, n, size)


def factored(grams: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Of each G (n, d, d): a lower factor of λI + G with a positive diagonal, and (n,) log det(λI + G) − d log λ.

    With G = U diag(e) Uᵀ the square of √(e+λ) Uᵀ is λI + G, and so is that of the triangle of its QR decomposition.
    """
    eigenvalues, basis = _eigen(grams)
    if not np.isfinite(eigenvalues).all():  # growth of a NaN would never be noticed
        raise np.linalg.LinAlgError("the eigenvalues of the data are not finite")
    eigenvalues = np.maximum(eigenvalues, 0.0)
    growth = np.log1p(eigenvalues / ridge).sum(axis=-1)
    roots = np.sqrt(eigenvalues + ridge)
    if grams.shape[-1] == 1:
        return roots[..., None], growth
    upper = np.linalg.qr(roots[..., None] * np.swapaxes(basis, -1, -2), mode="r")
    signs = np.where(np.diagonal(upper, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)
    lower = np.swapaxes(upper * signs[..., None], -1, -2)
    return lower, growth


def _stacked(flat: FloatArray, blocks: Blocks, run: SameSize) -> FloatArray:
    """(n, size, size) the matrices of a run, in what holds those of all blocks."""
    begin, end = blocks.shape.entry[[run.first, run.first + run.n]]
    return flat[begin:end].reshape(run.n, run.size, run.size)


def _whole(lower: FloatArray) -> FloatArray:
    """Symmetric matrices (n, d, d) from their lower triangles."""
    found = np.tril(lower)
    return found + np.swapaxes(np.tril(lower, -1), 1, 2)


def _singular(matrices: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(V, s, U) of V diag(s) Uᵀ = each matrix (n, d, d)."""
    if matrices.shape[-1] == 1:  # nothing to turn
        return np.ones_like(matrices), matrices[..., 0], np.ones_like(matrices)
    side, values, turned = np.linalg.svd(matrices)
    return side, values, np.ascontiguousarray(np.swapaxes(turned, 1, 2))


def _cholesky(matrices: FloatArray) -> tuple[FloatArray, bool]:
    """Lower factors of matrices (n, d, d) that contain N. True if rounding left none: there are then so many data that
    a bound on their noise says nothing (surefoot.estimate.ellipsoids), and any factor will do."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), np.float64), False
    except np.linalg.LinAlgError:
        size = np.trace(matrices, axis1=1, axis2=2)
        if not np.isfinite(size).all():
            raise
        return np.asarray(np.sqrt(size)[:, None, None] * np.eye(matrices.shape[-1])), True


def _log_det(roots: FloatArray) -> float:
    """Σ log det of CCᵀ, of triangles C (n, d, d)."""
    return 2.0 * float(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum())


def _eigen(grams: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(eigenvalues (n, d), eigenvectors (n, d, d)) from the lower triangles of G (n, d, d)."""
    if grams.shape[-1] == 1:  # nothing to turn
        return grams[..., 0], np.ones_like(grams)
    return np.linalg.eigh(grams, UPLO="L")
