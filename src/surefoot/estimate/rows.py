"""Compiled: one observation enters a regression. The step-by-step path and the compiled roll-out both call this."""

from __future__ import annotations

import math

import numba

from surefoot.model.features import FeatureArray
from surefoot.model.graph import FloatArray, IntArray

FAR = 1e100  #: a product of so much growth is taken to its logarithm before it overflows


@numba.njit(cache=True)
def add_row(
    r: int,
    gram: FloatArray,  # (R, d, d)
    gram_low: FloatArray,
    targets: FloatArray,  # (R, m, d)
    targets_low: FloatArray,
    factor: FloatArray,  # (R, d, d)
    log_det: FloatArray,  # (R,)
    rows: IntArray,  # (R,)
    z: FloatArray,  # (d,)  destroyed
    y: FloatArray,  # (m,)
) -> None:
    """Regression r: gram += z zᵀ, targets += y zᵀ (compensated), factor·factorᵀ += z zᵀ with its log det; in place.

    The compensation is Knuth's two-sum: ``low`` collects what rounding took from the sum and is added back each
    time, so that the two stand for the exact sum to about two roundings, whatever the number of rows.
    """
    d = z.shape[0]
    rows[r] += 1
    for i in range(d):
        for k in range(i + 1):
            term = z[i] * z[k] + gram_low[r, i, k]
            old = gram[r, i, k]
            new = old + term
            back = new - old
            low = (old - (new - back)) + (term - back)
            gram[r, i, k] = new
            gram_low[r, i, k] = low
            gram[r, k, i] = new
            gram_low[r, k, i] = low
    for j in range(y.shape[0]):
        for i in range(d):
            term = y[j] * z[i] + targets_low[r, j, i]
            old = targets[r, j, i]
            new = old + term
            back = new - old
            targets_low[r, j, i] = (old - (new - back)) + (term - back)
            targets[r, j, i] = new
    # Rank-one update of a triangular factor by plane rotations: O(d²), and positive definite by construction.
    growth = 1.0  # of the determinant
    for i in range(d):
        if z[i] == 0.0:
            continue
        old = factor[r, i, i]
        new = math.sqrt(old * old + z[i] * z[i])
        cosine, sine = old / new, z[i] / new
        factor[r, i, i] = new
        growth *= (new / old) * (new / old)
        if growth > FAR:
            log_det[r] += math.log(growth)
            growth = 1.0
        for k in range(i + 1, d):
            below = factor[r, k, i]
            factor[r, k, i] = cosine * below + sine * z[k]
            z[k] = cosine * z[k] - sine * below
    log_det[r] += math.log(growth)


@numba.njit(cache=True)
def has_grown(log_det: FloatArray, planned: FloatArray, threshold: float) -> bool:
    """True when some log det exceeds its value at the last plan by more than the threshold (spec 6)."""
    for r in range(log_det.shape[0]):  # noqa: SIM110  (a generator would not compile)
        if log_det[r] - planned[r] > threshold:
            return True
    return False


@numba.njit(cache=True)
def project(
    x: FeatureArray,  # (n, dc), row e is meant
    e: int,
    cost: FloatArray,  # (m,)
    h: int,
    anchors: FloatArray,  # (H, dc)  x⁰, zero where there is no anchor
    directions: FloatArray,  # (H, dc)  x⁰/‖x⁰‖²
    anchor_costs: FloatArray,  # (H, m)  c⁰
    z: FloatArray,
    rest: FloatArray,
) -> float:
    """ρ = ⟨x, x⁰⟩/‖x⁰‖² at layer h; writes z = x − ρ x⁰ and rest = cost − ρ c⁰ (spec 3)."""
    rho = 0.0
    for i in range(z.shape[0]):
        rho += x[e, i] * directions[h, i]
    for i in range(z.shape[0]):
        z[i] = x[e, i] - rho * anchors[h, i]
    for j in range(rest.shape[0]):
        rest[j] = cost[j] - rho * anchor_costs[h, j]
    return rho


@numba.njit(cache=True)
def value_row(
    features: FeatureArray,  # (…, dp), the layer's from ``row`` on
    row: int,
    successor: IntArray,  # the layer's from ``begin`` on
    begin: int,
    first: int,
    end: int,
    value: FloatArray,  # the next layer's from ``offset`` on
    offset: int,
    phi_v: FloatArray,
) -> None:
    """Writes φ_V = Σ_{s'} φ(s,a,s') V(s') over the layer's edges first … end-1 (spec 6)."""
    phi_v[:] = 0.0
    for edge in range(first, end):
        v = value[offset + successor[begin + edge]]
        for i in range(phi_v.shape[0]):
            phi_v[i] += v * features[row + edge, i]
