"""Compiled: did the cost parameter change when a window began? (item 5 of :mod:`surefoot.monitor.monitor`)

The rows before the window (P) and those in it (N) get a parameter each, γ + θ_P and γ + θ_N. How much better does that
explain them than any single γ? With S = Σ z (y − ⟨γ,z⟩) and A = Σ z zᵀ + κI, for each of the two,

    F = min_γ ‖S_P(γ)‖²_{A_P⁻¹} + ‖S_N(γ)‖²_{A_N⁻¹}

is a least-squares problem in γ. It is solved around the common fit γ₀, where S is small, so that nothing cancels.
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.jit import compiled
from surefoot.model.arrays import FloatArray
from surefoot.monitor.window_kernels import EPSILON, DeclaredModel, Windows, rotate

_MULTIPLIER = 0.01  # of the smallest ridge: the weight of ‖γ‖ ≤ L


@compiled
def common_fit(windows: Windows, ridge: float, r: int) -> tuple[FloatArray, FloatArray]:
    """(G, γ₀) of all rows of regression r: Σ z zᵀ (d, d), and the fit of the smallest ridge (d, m)."""
    whole, centres = gram(windows.triangle[0, 0, r], windows.fitted[0, 0, r], ridge)
    for j in range(centres.shape[1]):
        back_substitute(windows.triangle[0, 0, r], windows.fitted[0, 0, r, :, j], centres[:, j])
    return whole, centres


@compiled
def log_shift(
    windows: Windows, declared: DeclaredModel, w: int, r: int, whole: FloatArray, centres: FloatArray
) -> FloatArray:
    """(m,) log E of a change in regression r when window w began, −∞ if nothing is known; O(d³). ``whole`` and
    ``centres`` are the :func:`common_fit`."""
    ridge, prior = declared.ridges[0], declared.prior
    norms, noises = declared.norms, declared.noises
    dim, m = centres.shape
    result = np.full(m, -np.inf)
    if windows.rows[w, r] == 0 or windows.rows[w, r] == windows.rows[0, r]:
        return result
    new, s_new = gram(windows.triangle[w, 0, r], windows.fitted[w, 0, r], ridge)
    old, s_old = whole - new, np.empty((dim, m))
    multiplier = _MULTIPLIER * ridge
    triangle, fitted = np.zeros((dim, dim)), np.zeros((dim, m))
    for j in range(m):
        for i in range(dim):
            for k in range(dim):
                s_new[i, j] -= new[i, k] * centres[k, j]
            s_old[i, j] = ridge * centres[i, j] - s_new[i, j]  # in all, the common fit leaves ridge·γ₀
            fitted[i, j] = -math.sqrt(multiplier) * centres[i, j]
    for i in range(dim):
        triangle[i, i] = math.sqrt(multiplier)
    rss = np.zeros(m)
    log_det = add_quadratic(old, s_old, prior, triangle, fitted, rss)
    log_det += add_quadratic(new, s_new, prior, triangle, fitted, rss)
    for j in range(m):
        if noises[j] > 0.0:
            # F is at least this for all ‖γ‖ ≤ L; then less what a model error and rounding can have added.
            least = max(0.0, rss[j] - multiplier * norms[j] * norms[j])
            size = windows.size[0, r]
            data = norms[j] * size + math.sqrt(size * windows.squares[0, r, j])
            rounding = EPSILON * (math.sqrt(windows.rows[0, r]) + dim) * data * math.sqrt(2.0 / prior)
            root = math.sqrt(least) - math.sqrt(windows.spread[0, r, j]) - rounding
            root = max(0.0, root) if math.isfinite(root) else 0.0
            result[j] = 0.5 * root * root / (noises[j] * noises[j]) - 0.5 * log_det
    return result


@compiled
def add_quadratic(
    g: FloatArray, s: FloatArray, prior: float, triangle: FloatArray, fitted: FloatArray, rss: FloatArray
) -> float:
    """Adds ‖s − gδ‖² in the norm of (g + κI)⁻¹ to a least-squares problem in δ; returns log det(I + g/κ). With
    g + κI = CCᵀ its rows are (C⁻¹g | C⁻¹s), which overwrite g and s."""
    dim, m = s.shape
    factor = g.copy()
    for i in range(dim):
        factor[i, i] += prior
    log_det = -dim * math.log(prior)
    row, rest = np.empty(dim), np.empty(m)
    for i in range(dim):  # Cholesky by rows, and C⁻¹ applied to g and s along the way
        for k in range(i + 1):
            total = factor[i, k]
            for q in range(k):
                total -= factor[i, q] * factor[k, q]
            factor[i, k] = total / factor[k, k] if k < i else math.sqrt(max(total, prior))  # ≥ κ but for rounding
        log_det += 2.0 * math.log(factor[i, i])
        for q in range(i):
            for k in range(dim):
                g[i, k] -= factor[i, q] * g[q, k]
            for j in range(m):
                s[i, j] -= factor[i, q] * s[q, j]
        for k in range(dim):
            g[i, k] /= factor[i, i]
        for j in range(m):
            s[i, j] /= factor[i, i]
    for i in range(dim):
        row[:] = g[i]
        rest[:] = s[i]
        rotate(triangle, fitted, row, rest)
        for j in range(m):
            rss[j] += rest[j] * rest[j]
    return float(log_det)


@compiled
def gram(triangle: FloatArray, fitted: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """(G, b): G = TᵀT − λI = Σ z zᵀ (d, d) and b = Tᵀ·fitted = Σ z y (d, m)."""
    dim, m = fitted.shape
    g, b = np.zeros((dim, dim)), np.zeros((dim, m))
    for q in range(dim):
        for i in range(q, dim):
            left = triangle[q, i]
            if left != 0.0:
                for k in range(q, i + 1):
                    g[i, k] += left * triangle[q, k]
                for j in range(m):
                    b[i, j] += left * fitted[q, j]
    for i in range(dim):
        g[i, i] -= ridge
        for k in range(i):
            g[k, i] = g[i, k]
    return g, b


@compiled
def back_substitute(triangle: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """Writes the solution of triangle·out = v."""
    for i in range(v.shape[0] - 1, -1, -1):
        total = v[i]
        for k in range(i + 1, v.shape[0]):
            total -= triangle[i, k] * out[k]
        out[i] = total / triangle[i, i]
