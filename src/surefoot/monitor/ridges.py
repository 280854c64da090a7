"""The ridges of the model test: item 3 of :mod:`surefoot.monitor.monitor`."""

from __future__ import annotations

import math

import numpy as np

from surefoot.model.graph import FloatArray

_RIDGES = (1.0, 100.0)  # times (σ/L)², where the prior and one measurement weigh alike
_LEAST_RIDGE = 1e-18  # times max ‖x‖²
_LARGEST_RIDGE = 1e18


def ridge_grid(noises: FloatArray, norms: FloatArray, longest: float) -> FloatArray:
    """The ridges of item 3, any of which is valid: (σ_j/L_j)²·{1, 100} of every limit, thinned to one per decade.

    Without noise, or with none to speak of, a ridge that no measurement can feel; for L = 0 one that allows no fit.
    The smallest is at most ‖x‖² of the longest feature: the search for shifts takes it off again.
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
