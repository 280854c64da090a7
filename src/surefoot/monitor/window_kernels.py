"""Compiled: what the measurements of some windows of time say against the declared model.

The mathematics is in :mod:`surefoot.monitor.monitor`; here are its arrays, and one pass over them per measurement.
Letters in the shapes: W windows, n ridges, R regressions (one per step, or one for all), d cost features, m limits.

A window keeps, for every ridge λ and regression, the triangle of an orthogonal decomposition of its rows, with √λ·I as
the first ones. A new row (z | y) is rotated into the triangle; the square of what is left of y is exactly what the row
adds to the least ridge objective:

    RSS_λ = min_γ Σ (y − ⟨γ,z⟩)² + λ‖γ‖²  =  Σ (left over y)²  =  Σ (y − ⟨γ̂_before,z⟩)² / (1 + zᵀA_before⁻¹z)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surefoot.jit import compiled
from surefoot.model.arrays import FloatArray, IntArray

FIRST_LEVEL = 5  #: windows start at multiples of 2^FIRST_LEVEL
UNUSED = -1  #: the start of a window that has not begun
EPSILON = 16.0 * float(np.finfo(np.float64).eps)  #: more than one rotation can lose, relative to its row

_RIDGES = (1.0, 100.0)  # times (σ/L)², where the prior and one measurement weigh alike
_LEAST_RIDGE = 1e-18  # times max ‖x‖²
_LARGEST_RIDGE = 1e18


class DeclaredModel(NamedTuple):
    """What the problem declares, and what it is tested with."""

    noises: FloatArray  # (m,)   σ
    norms: FloatArray  # (m,)   L
    ridges: FloatArray  # (n,)   λ, rising
    shares: FloatArray  # s
    prior: float  # κ


class Windows(NamedTuple):
    """Everything that is kept of the past; its size depends only on the number of windows."""

    start: IntArray  # (W,)   measurements before the window's first, UNUSED before it begins
    log_weight: FloatArray  # (W,)   of the window in the mixture
    triangle: FloatArray  # (W, n, R, d, d)   upper
    fitted: FloatArray  # (W, n, R, d, m)   the part of the targets that a fit explains
    rss: FloatArray  # (W, n, R, m)
    rows: IntArray  # (W, R)
    size: FloatArray  # (W, R)   Σ ‖x‖²
    spread: FloatArray  # (W, R, m)   Σ b², b = ζ(1 + Σ|ρ|) + Σ|ρ|t
    squares: FloatArray  # (W, R, m)   Σ (|cost| + |⟨m, x⟩|)²
    excess: FloatArray  # (W, R, m)   D = max(0, max_λ RSS_λ − λL²), less what rounding may have added


def ridge_grid(noises: FloatArray, norms: FloatArray, longest: float) -> FloatArray:
    """The ridges of item 3, any of which is valid: (σ_j/L_j)²·{1, 100} of every limit, thinned to one per decade.

    Almost without noise, a ridge too small to matter; for L = 0 one that allows no fit. The smallest is at most ‖x‖² of
    the longest feature, since the search for shifts subtracts it again.
    """
    square = longest * longest
    wanted = [square]
    for noise, norm in zip(noises.tolist(), norms.tolist(), strict=True):
        ratio = math.inf if norm == 0.0 else noise / norm
        wanted += [c * min(max(ratio * ratio, _LEAST_RIDGE * square), _LARGEST_RIDGE * square) for c in _RIDGES]
    kept: list[float] = []
    for ridge in sorted(wanted):
        if not kept or ridge > 10.0 * kept[-1]:
            kept.append(ridge)
    return np.array(kept)


def no_windows(n: int, n_ridges: int, regressions: int, dim: int, limits: int) -> Windows:
    """Room for n windows, none of which has begun."""
    return Windows(
        start=np.full(n, UNUSED, np.int64),
        log_weight=np.full(n, -np.inf),
        triangle=np.zeros((n, n_ridges, regressions, dim, dim)),
        fitted=np.zeros((n, n_ridges, regressions, dim, limits)),
        rss=np.zeros((n, n_ridges, regressions, limits)),
        rows=np.zeros((n, regressions), np.int64),
        size=np.zeros((n, regressions)),
        spread=np.zeros((n, regressions, limits)),
        squares=np.zeros((n, regressions, limits)),
        excess=np.zeros((n, regressions, limits)),
    )


@compiled
def window_of(t: int) -> tuple[int, float]:
    """(number, weight) of the window that starts after t = (2i+1)·2^v measurements, v ≥ FIRST_LEVEL (item 6)."""
    level, i = 0, t >> FIRST_LEVEL
    while i & 1 == 0:
        level, i = level + 1, i >> 1
    i >>= 1
    return level + 1, 0.5 / ((level + 1.0) * (level + 2.0)) / ((i + 1.0) * (i + 2.0))


@compiled
def begin_window(windows: Windows, w: int, start: int, weight: float, ridges: FloatArray) -> None:
    """Clear window w; it begins after ``start`` measurements."""
    windows.start[w] = start
    windows.log_weight[w] = math.log(weight)
    windows.triangle[w] = 0.0
    for n in range(ridges.shape[0]):
        for i in range(windows.triangle.shape[3]):
            windows.triangle[w, n, :, i, i] = math.sqrt(ridges[n])
    windows.fitted[w] = 0.0
    windows.rss[w] = 0.0
    windows.rows[w] = 0
    windows.size[w] = 0.0
    windows.spread[w] = 0.0
    windows.squares[w] = 0.0
    windows.excess[w] = 0.0


@compiled
def begin_due(windows: Windows, t: int, ridges: FloatArray) -> None:
    """Begin the window, if any, that starts after t measurements; there must be room for it."""
    if t == 0:
        begin_window(windows, 0, 0, 0.5, ridges)
    elif t % (1 << FIRST_LEVEL) == 0:
        w, weight = window_of(t)
        begin_window(windows, w, t, weight, ridges)


@compiled
def add_measurement(
    windows: Windows,
    declared: DeclaredModel,
    r: int,
    x: FloatArray,
    z: FloatArray,
    y: FloatArray,
    sizes: FloatArray,  # (m,)  what y is a difference of
    errors: FloatArray,  # (m,)  b
) -> None:
    """One measurement enters regression r of every window that has begun: O(d² + dm) for each ridge."""
    dim, m = z.shape[0], y.shape[0]
    row, rest = np.empty(dim), np.empty(m)
    length = 0.0
    for i in range(dim):
        length += x[i] * x[i]
    for w in range(windows.start.shape[0]):
        if windows.start[w] == UNUSED:
            continue
        windows.rows[w, r] += 1
        windows.size[w, r] += length
        for j in range(m):
            windows.spread[w, r, j] += errors[j] * errors[j]
            windows.squares[w, r, j] += sizes[j] * sizes[j]
            windows.excess[w, r, j] = 0.0
        for n in range(declared.ridges.shape[0]):
            row[:] = z
            rest[:] = y
            rotate(windows.triangle[w, n, r], windows.fitted[w, n, r], row, rest)
            for j in range(m):
                windows.rss[w, n, r, j] += rest[j] * rest[j]
                excess = _excess(windows, w, n, r, j, declared.ridges[n], declared.norms[j])
                windows.excess[w, r, j] = max(windows.excess[w, r, j], excess)


@compiled
def _excess(windows: Windows, w: int, n: int, r: int, j: int, ridge: float, norm: float) -> float:
    """RSS_λ − λL², less what rounding may have added to √RSS_λ (steps 3 and 8)."""
    dim = windows.triangle.shape[3]
    data = norm * math.sqrt(windows.size[w, r] + dim * ridge) + math.sqrt(windows.squares[w, r, j])
    root = math.sqrt(windows.rss[w, n, r, j]) - EPSILON * (windows.rows[w, r] + dim) * data
    if root < 0.0:  # not max(0, root), which would be 0 for a NaN
        root = 0.0
    excess = root * root - ridge * norm * norm
    if math.isfinite(data) and math.isfinite(excess):
        return float(excess)
    return np.inf  # too large to be weighed: against the model, never for it


@compiled
def rotate(triangle: FloatArray, fitted: FloatArray, row: FloatArray, rest: FloatArray) -> None:
    """Rotate (row | rest) into (triangle | fitted), in place; ``rest`` keeps what no fit can explain."""
    dim = row.shape[0]
    for i in range(dim):
        if row[i] == 0.0:
            continue
        radius = math.hypot(triangle[i, i], row[i])
        cosine, sine = triangle[i, i] / radius, row[i] / radius
        triangle[i, i] = radius
        for k in range(i + 1, dim):
            old = triangle[i, k]
            triangle[i, k] = cosine * old + sine * row[k]
            row[k] = cosine * row[k] - sine * old
        for j in range(rest.shape[0]):
            old = fitted[i, j]
            fitted[i, j] = cosine * old + sine * rest[j]
            rest[j] = cosine * rest[j] - sine * old


@compiled
def contradiction(windows: Windows, declared: DeclaredModel) -> tuple[int, int, int]:
    """(limit, window, regression) where noiseless measurements contradict the model, UNUSED three times if none."""
    for j in range(declared.noises.shape[0]):
        if declared.noises[j] > 0.0:
            continue
        for w in range(windows.start.shape[0]):
            if windows.start[w] == UNUSED:
                continue
            for r in range(windows.rows.shape[1]):
                allowed = windows.spread[w, r, j]
                if not windows.excess[w, r, j] <= allowed * (1.0 + 1e-9):  # also where either is a NaN
                    return j, w, r
    return UNUSED, UNUSED, UNUSED
