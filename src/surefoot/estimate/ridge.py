"""Ridge statistics: what is kept of the data, and how one observation changes it.

A bank holds R regressions of dimension d with m targets each:

    G = Σ z zᵀ,   b_j = Σ z y_j,   a triangular factor of  λI + G,   and its log det

G and b are sums with a running compensation, so that a million rows are as exact as one. The factor and its
log det are updated by rank one per row and are used only to notice that the data have grown (spec 6, lazy
replanning); bounds are computed from G anew at every plan, because an updated inverse drifts to the unsafe side.
What is computed anew comes from the eigenvalues of G: they can be had however much larger than λ they are, where a
Cholesky factor of λI + G cannot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.rows import add_row, has_grown
from surefoot.model.graph import FloatArray

BankState = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, NDArray[np.int64]]
"""What :func:`surefoot.estimate.rows.add_row` changes: gram, its low part, targets, theirs, factor, log det, rows."""


class RidgeBank:
    """R ridge regressions with one kind of features."""

    def __init__(self, n: int, dim: int, n_targets: int, ridge: float) -> None:
        self.ridge = ridge  # of the factor
        self.gram = np.zeros((n, dim, dim))  # (R, d, d)  Σ z zᵀ, its rounding error in gram_low
        self.gram_low = np.zeros((n, dim, dim))
        self.targets = np.zeros((n, n_targets, dim))  # (R, m, d)  Σ z y_j, likewise
        self.targets_low = np.zeros((n, n_targets, dim))
        self.rows = np.zeros(n, np.int64)  # (R,)  observations
        self.factor = np.empty((n, dim, dim))  # (R, d, d)  lower, factor·factorᵀ = λI + G
        self.log_dets = np.empty(n)  # (R,)  log det(λI + G) − d log λ
        self.refresh()

    @property
    def state(self) -> BankState:
        """The arrays that :func:`surefoot.estimate.rows.add_row` changes, in its order."""
        return (self.gram, self.gram_low, self.targets, self.targets_low, self.factor, self.log_dets, self.rows)

    def add(self, r: int, z: FloatArray, y: FloatArray) -> None:
        """Count one row z (d,) with targets y (m,) in regression r."""
        add_row(r, *self.state, z.copy(), y)

    def log_det(self) -> FloatArray:
        """(R,) log det(λI + G), up to its value without data."""
        return self.log_dets.copy()

    def has_grown(self, planned: FloatArray, threshold: float) -> bool:
        """True when some log det has grown by more than the threshold since it was ``planned`` (R,)."""
        return bool(has_grown(self.log_dets, planned, threshold))

    def refresh(self) -> None:
        """Compute the factor and its log det anew from G: ends the drift of their updates."""
        self.factor[:], self.log_dets[:] = factored(self.gram, self.ridge)

    def turned(self, r: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(eigenvalues e (d,) of G, U (d, d), Uᵀb_j (m, d)) of regression r."""
        return turned(self.gram[r], self.targets[r])

    def arrays(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Everything that a checkpoint must keep."""
        return {
            "gram": self.gram,
            "gram_low": self.gram_low,
            "targets": self.targets,
            "targets_low": self.targets_low,
            "rows": self.rows,
            "factor": self.factor,
            "log_dets": self.log_dets,
        }


def factored(grams: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Of each G (n, d, d): a lower factor of λI + G with a positive diagonal, and (n,) log det(λI + G) − d log λ.

    With G = U diag(e) Uᵀ the square of √(e+λ) Uᵀ is λI + G, and so is that of the triangle of its QR decomposition.
    """
    eigenvalues, basis = np.linalg.eigh(grams)
    if not np.isfinite(eigenvalues).all():  # growth of a NaN would never be noticed
        raise np.linalg.LinAlgError("the eigenvalues of the data are not finite")
    eigenvalues = np.maximum(eigenvalues, 0.0)
    roots = np.sqrt(eigenvalues + ridge)
    upper = np.linalg.qr(roots[..., None] * np.swapaxes(basis, -1, -2), mode="r")
    signs = np.where(np.diagonal(upper, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)
    lower = np.swapaxes(upper * signs[..., None], -1, -2)
    return lower, np.log1p(eigenvalues / ridge).sum(axis=-1)


def turned(gram: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(e (d,), U (d, d), Uᵀb_j (m, d)) with G = U diag(e) Uᵀ, from G (d, d) and b (m, d)."""
    eigenvalues, basis = np.linalg.eigh(gram)
    return np.maximum(eigenvalues, 0.0), basis, targets @ basis
