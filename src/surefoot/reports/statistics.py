"""The one statistic of tables and charts: the mean over runs, with a bootstrap interval.

    mean = (1/n) Σ xᵢ,      interval = the 2.5 % and 97.5 % quantiles of the mean over ``RESAMPLES`` draws of n runs out
                            of the n, with replacement

This is the percentile bootstrap over runs that Agarwal et al. (2021), *Deep Reinforcement Learning at the Edge of the
Statistical Precipice* (rliable), use; runs are independent, since each has its own seed. The draws are fixed, so that
the same runs give the same interval. Of one run there is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.reports.chart import Curve
from surefoot.streams import stream

RESAMPLES = 2000
COVERED = 0.95
SAID = "mean over runs; bands and brackets: 95% bootstrap interval of the mean"


@dataclass(frozen=True)
class Interval:
    """A mean over runs."""

    mean: float
    low: float  # of one run: the mean itself
    high: float
    runs: int

    def text(self, digits: int = 3, percent: bool = False) -> str:
        """0.95 [0.93, 0.97]; of one run, or of runs that agree, the number alone."""

        def one(value: float) -> str:
            shown = f"{value:.0%}" if percent else f"{value:,.{digits}f}"
            return (shown[1:] if shown.strip("-0.,%") == "" and shown.startswith("-") else shown).replace("-", "−")

        middle, low, high = one(self.mean), one(self.low), one(self.high)
        return middle if low == high == middle else f"{middle} [{low}, {high}]"


def interval(values: Sequence[float]) -> Interval:
    """Of a number per run."""
    low, mean, high = bands(np.asarray(values, np.float64)[:, None])
    return Interval(float(mean[0]), float(low[0]), float(high[0]), len(values))


def bands(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(low, mean, high), each (T,), of a table (n, T) with a row per run."""
    mean = table.mean(axis=0)
    if len(table) == 1:
        return mean, mean, mean
    tail = 50 * (1 - COVERED)
    low, high = np.percentile(_weights(len(table)) @ table, [tail, 100 - tail], axis=0)
    # A mean of equal numbers may differ from them in its last digit.
    return np.minimum(low, mean), mean, np.maximum(high, mean)


@cache
def _weights(n: int) -> NDArray[np.float64]:
    """(RESAMPLES, n) how often each run is drawn, as shares."""
    return stream(0, "bootstrap").multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


def band(label: str, agent: str, at: NDArray[np.int64], rows: Sequence[NDArray[Any]]) -> Curve:
    """The curve of the mean, point by point."""
    low, mean, high = bands(np.stack(rows).astype(np.float64))
    points = [tuple(part.tolist()) for part in (low, mean, high)]
    return Curve(label, agent, tuple(at.tolist()), points[0], points[1], points[2], len(rows))


def least(label: str, agent: str, at: NDArray[np.int64], rows: Sequence[NDArray[Any]]) -> Curve:
    """The curve of the least over runs: of margins, where a mean would hide the one run that breaks a limit."""
    worst = tuple(np.stack(rows).astype(np.float64).min(axis=0).tolist())
    return Curve(label, agent, tuple(at.tolist()), worst, worst, worst, len(rows))
