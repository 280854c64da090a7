"""Compiled: one observation enters a regression. Shared by the step-by-step path and the compiled roll-out."""

from __future__ import annotations

import math

import numba
import numpy as np

from surefoot.model.layered import FloatArray, IntArray


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
def log_dets(factors: FloatArray) -> FloatArray:
    """(R,) log det of each factor·factorᵀ."""
    result = np.empty(factors.shape[0])
    for r in range(factors.shape[0]):
        total = 0.0
        for i in range(factors.shape[1]):
            total += math.log(factors[r, i, i])
        result[r] = 2.0 * total
    return result


@numba.njit(cache=True)
def has_grown(factors: FloatArray, planned: FloatArray, threshold: float) -> bool:
    """True when some log det exceeds its value at the last plan by more than the threshold (spec 6)."""
    now = log_dets(factors)
    return bool(np.any(now - planned > threshold))


@numba.njit(cache=True)
def project(
    x: FloatArray,
    cost: FloatArray,
    anchor: FloatArray,
    direction: FloatArray,
    anchor_cost: FloatArray,
    z: FloatArray,
    rest: FloatArray,
) -> float:
    """ρ = ⟨x, x⁰⟩/‖x⁰‖²; writes z = x − ρ x⁰ and rest = cost − ρ c⁰ (spec 3). All zero without an anchor."""
    rho = 0.0
    for i in range(x.shape[0]):
        rho += x[i] * direction[i]
    for i in range(x.shape[0]):
        z[i] = x[i] - rho * anchor[i]
    for j in range(cost.shape[0]):
        rest[j] = cost[j] - rho * anchor_cost[j]
    return rho


@numba.njit(cache=True)
def value_row(
    features: FloatArray, successor: IntArray, first: int, end: int, value: FloatArray, phi_v: FloatArray
) -> None:
    """Writes φ_V = Σ_{s'} φ(s,a,s') V(s') over the edges first … end-1 of a pair (spec 6)."""
    phi_v[:] = 0.0
    for edge in range(first, end):
        v = value[successor[edge]]
        for i in range(phi_v.shape[0]):
            phi_v[i] += v * features[edge, i]
