"""Ridge statistics: what is kept of the data, and how one observation changes it.

A bank holds R regressions of dimension d with m targets each:

    G = Σ z zᵀ,   b_j = Σ z y_j,   and a Cholesky factor of  λI + G

G and b are sums with a running compensation, so that a million rows are as exact as one. The factor is updated by
rank one per row and is used only to notice that the data have grown (spec 6, lazy replanning); bounds are computed
from G anew at every plan, because an updated inverse drifts to the unsafe side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.rows import add_row, has_grown, log_det
from surefoot.model.layered import FloatArray

BankState = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, NDArray[np.int64]]
"""What :func:`surefoot.estimate.rows.add_row` changes: gram, its low part, targets, theirs, factor, rows."""


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
        self.refresh()

    @property
    def state(self) -> BankState:
        """The arrays that :func:`surefoot.estimate.rows.add_row` changes, in its order."""
        return (self.gram, self.gram_low, self.targets, self.targets_low, self.factor, self.rows)

    def add(self, r: int, z: FloatArray, y: FloatArray) -> None:
        """Count one row z (d,) with targets y (m,) in regression r."""
        add_row(r, *self.state, z.copy(), y)

    def log_det(self) -> FloatArray:
        """(R,) log det(λI + G), from the factor."""
        return np.array([log_det(self.factor, r) for r in range(len(self.factor))])

    def has_grown(self, planned: FloatArray, threshold: float) -> bool:
        """True when some log det has grown by more than the threshold since it was ``planned`` (R,)."""
        return bool(has_grown(self.factor, planned, threshold))

    def refresh(self) -> None:
        """Compute the factor anew from G: ends the drift of its updates."""
        dim = self.gram.shape[1]
        self.factor[:] = np.linalg.cholesky(self.gram + self.ridge * np.eye(dim))

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
        }


def turned(gram: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(e (d,), U (d, d), Uᵀb_j (m, d)) with G = U diag(e) Uᵀ, from G (d, d) and b (m, d)."""
    eigenvalues, basis = np.linalg.eigh(gram)
    return np.maximum(eigenvalues, 0.0), basis, targets @ basis
