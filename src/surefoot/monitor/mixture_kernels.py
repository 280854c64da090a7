"""Compiled: the mixture of all evidence against the model (item 6 of :mod:`surefoot.monitor.monitor`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surefoot.jit import compiled
from surefoot.monitor.shift_kernels import common_fit, log_shift
from surefoot.monitor.window_kernels import UNUSED, DeclaredModel, Windows

ALL = -1  #: in place of a regression: all of them together
SHIFT = -1  #: in place of a share s: the evidence for a shift

_HUGE = 1e300  # in place of an infinite logarithm


class Verdict(NamedTuple):
    """The mixture's logarithm, and its largest part."""

    log_evidence: float
    limit: int
    window: int
    regression: int  # or ALL
    share: int  # which s, or SHIFT


NOTHING = Verdict(-math.inf, UNUSED, UNUSED, ALL, SHIFT)


class Sum(NamedTuple):
    """exp(top)·total, and what its largest term is."""

    top: float
    total: float
    limit: int
    window: int
    regression: int
    share: int


@compiled
def _with(mix: Sum, value: float, limit: int, window: int, regression: int, share: int) -> Sum:
    """The sum with exp(value) added; a NaN counts against the model as much as anything can."""
    if not value < _HUGE:
        value = _HUGE
    if value > mix.top:
        total = mix.total * math.exp(mix.top - value) + 1.0
        return Sum(value, total, limit, window, regression, share)
    total = mix.total + math.exp(value - mix.top)
    return Sum(mix.top, total, mix.limit, mix.window, mix.regression, mix.share)


@compiled
def weigh(windows: Windows, declared: DeclaredModel, shifted: int) -> Verdict:
    """The mixture of scatter, over all limits with noise, windows, shares and regressions, with ½, and of shifts in
    regression ``shifted``, over limits and windows, with ½; without shifts if that is UNUSED."""
    mix = Sum(-np.inf, 0.0, UNUSED, UNUSED, ALL, SHIFT)
    noises, shares, regressions = declared.noises, declared.shares, windows.rows.shape[1]
    noisy = 0
    for j in range(noises.shape[0]):
        noisy += noises[j] > 0.0
    whole, centres = np.zeros((0, 0)), np.zeros((0, 0))
    if shifted != UNUSED:
        whole, centres = common_fit(windows, declared.ridges[0], shifted)
    for w in range(windows.start.shape[0]):
        if windows.start[w] == UNUSED or noisy == 0:
            continue
        weight = windows.log_weight[w] - math.log(2.0 * noisy * shares.shape[0])
        for j in range(noises.shape[0]):
            if noises[j] > 0.0:
                for k in range(shares.shape[0]):
                    mix = _scatter(mix, windows, w, j, k, shares[k], noises[j], weight)
        if w > 0 and shifted != UNUSED:
            found = log_shift(windows, declared, w, shifted, whole, centres)
            weight = windows.log_weight[w] - math.log(1.0 * noisy * regressions)
            for j in range(noises.shape[0]):
                if noises[j] > 0.0:
                    mix = _with(mix, weight + found[j], j, w, shifted, SHIFT)
    log_evidence = mix.top + math.log(mix.total) if mix.total > 0.0 else -np.inf
    return Verdict(log_evidence, mix.limit, mix.window, mix.regression, mix.share)


@compiled
def _scatter(mix: Sum, windows: Windows, w: int, j: int, k: int, s: float, noise: float, weight: float) -> Sum:
    """The sum with E of all regressions together and of each alone, half and half (item 4)."""
    regressions = windows.rows.shape[1]
    together = 0.0
    for r in range(regressions):
        allowed = windows.spread[w, r, j] / (1.0 - s)
        alone = 0.5 * windows.rows[w, r] * math.log1p(-s)
        alone += 0.5 * s * (windows.excess[w, r, j] - allowed) / (noise * noise)
        together += alone
        if regressions > 1:
            mix = _with(mix, weight - math.log(2.0 * regressions) + alone, j, w, r, k)
    return _with(mix, weight + together - (math.log(2.0) if regressions > 1 else 0.0), j, w, ALL, k)
