"""Compiled: one observation enters a regression. Shared by the step-by-step path and the compiled roll-out."""

from __future__ import annotations

import math

import numba
import numpy as np

from surefoot.model.layered import FloatArray


@numba.njit(cache=True, inline="never")
def add_row(
    gram: FloatArray,
    gram_low: FloatArray,
    targets: FloatArray,
    targets_low: FloatArray,
    factor: FloatArray,
    z: FloatArray,
    y: FloatArray,
) -> None:
    """gram += z zᵀ, targets += y zᵀ (compensated), factor·factorᵀ += z zᵀ (rank one); all in place.

    The compensation is Knuth's two-sum: ``low`` collects what rounding took from ``high``, and is added back each
    time, so that the pair stands for the exact sum to about two roundings whatever the number of rows.
    """
    d = z.shape[0]
    for i in range(d):
        for k in range(i + 1):
            term = z[i] * z[k] + gram_low[i, k]
            old = gram[i, k]
            new = old + term
            back = new - old
            low = (old - (new - back)) + (term - back)
            gram[i, k] = new
            gram_low[i, k] = low
            gram[k, i] = new
            gram_low[k, i] = low
    for j in range(y.shape[0]):
        for i in range(d):
            term = y[j] * z[i] + targets_low[j, i]
            old = targets[j, i]
            new = old + term
            back = new - old
            targets_low[j, i] = (old - (new - back)) + (term - back)
            targets[j, i] = new
    # Rank-one update of a Cholesky factor by plane rotations: O(d²), and positive definite by construction.
    rest = z.copy()
    for i in range(d):
        if rest[i] == 0.0:
            continue
        diagonal = factor[i, i]
        radius = math.sqrt(diagonal * diagonal + rest[i] * rest[i])
        cosine = radius / diagonal
        sine = rest[i] / diagonal
        factor[i, i] = radius
        for k in range(i + 1, d):
            factor[k, i] = (factor[k, i] + sine * rest[k]) / cosine
            rest[k] = cosine * rest[k] - sine * factor[k, i]


@numba.njit(cache=True)
def log_det(factor: FloatArray) -> float:
    """log det of factor·factorᵀ."""
    total = 0.0
    for i in range(factor.shape[0]):
        total += math.log(factor[i, i])
    return 2.0 * total


def project(x: FloatArray, anchor: FloatArray) -> tuple[float, FloatArray]:
    """ρ = ⟨x, x⁰⟩/‖x⁰‖² and z = x − ρ x⁰ (spec 3)."""
    rho = float(np.dot(x, anchor) / np.dot(anchor, anchor))
    return rho, x - rho * anchor
