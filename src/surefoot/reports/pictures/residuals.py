"""The residuals of a calibration: against the fit, by episode, and against the quantiles of Gaussian noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from surefoot.diagnosis.calibration.result import Calibration, Residuals
from surefoot.reports.pictures.style import LIGHT, LOOKS, OTHERS, Paper, literal, pyplot, save_figure

_MOST_POINTS = 5_000
_DOTS, _LINE, _BAND = LOOKS["lsvi-new"][0], LOOKS["ucrl-vtr"][0], OTHERS[2]


def draw_residuals(found: Calibration, path: str | Path, paper: Paper = LIGHT) -> Path:
    """Draw it to a ``.png`` or ``.svg``; one row of three panels per limit. → the path."""
    plt, context = pyplot(paper)
    with context:
        shown = [each for each in found.residuals if len(each.residual)]
        figure, axes = plt.subplots(
            max(1, len(shown)), 3, figsize=(12, 3.4 * max(1, len(shown))), squeeze=False, layout="constrained"
        )
        for row, each in zip(axes, shown, strict=False):
            _against_fit(row[0], each, paper)
            _by_episode(row[1], each, paper, found.episodes > 0)
            _quantiles(row[2], each, paper)
        return save_figure(plt, figure, Path(path))


def _some(n: int) -> Any:
    return np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.int64)


def _against_fit(axes: Any, each: Residuals, paper: Paper) -> None:
    """A bend here is a cost that is not linear; a straight upper edge is a clipped sensor."""
    own = _some(len(each.residual))
    axes.axhspan(-2 * each.noise, 2 * each.noise, color=_BAND, alpha=0.18, linewidth=0, zorder=0)
    axes.axhline(0.0, color=paper.ink, linewidth=0.8)
    axes.plot(each.fitted[own], each.residual[own], ".", color=_DOTS, markersize=4, alpha=0.55)
    edges = np.unique(np.quantile(each.fitted, np.linspace(0, 1, 11)))
    if len(edges) > 2:
        bins = np.clip(np.searchsorted(edges, each.fitted, side="right") - 1, 0, len(edges) - 2)
        counts = np.maximum(np.bincount(bins, minlength=len(edges) - 1), 1)
        middle = np.bincount(bins, each.fitted, len(edges) - 1) / counts
        axes.plot(middle, np.bincount(bins, each.residual, len(edges) - 1) / counts, "-", color=_LINE, linewidth=1.8)
    axes.set_title(literal(each.limit))
    axes.set_xlabel("fitted cost\n(shaded: ±2 declared noise scales, line: mean)")
    axes.set_ylabel("residual")


def _by_episode(axes: Any, each: Residuals, paper: Paper, known: bool) -> None:
    """Means beyond the shaded band are an offset that the rows of an episode share; a slope is a drift."""
    code = np.unique(each.episode, return_inverse=True)[1].reshape(-1)
    if not known:
        code = code * min(200, len(code)) // max(1, len(code))  # rows in order, some at a time
    counts = np.bincount(code)
    means = np.bincount(code, each.residual) / counts
    band = 2 * each.noise / np.sqrt(counts)
    at = np.arange(1, len(means) + 1)
    axes.fill_between(at, -band, band, color=_BAND, alpha=0.18, linewidth=0, step="mid")
    axes.axhline(0.0, color=paper.ink, linewidth=0.8)
    own = _some(len(means))
    axes.plot(at[own], means[own], ".", color=_DOTS, markersize=4, alpha=0.7)
    axes.set_title("mean of each episode" if known else "means in the order of the log")
    axes.set_xlabel(f"{'episode' if known else 'part of the log'}\n(shaded: 95 % if nothing is shared)")


def _quantiles(axes: Any, each: Residuals, paper: Paper) -> None:
    """Gaussian noise of the declared scale lies on the line, less noise below it, heavy tails above it at the end."""
    from scipy.special import ndtri

    ordered, n = np.sort(each.residual), len(each.residual)
    expected = ndtri((np.arange(n) + 0.5) / n)
    own = _some(n)
    axes.plot(expected[own], ordered[own], ".", color=_DOTS, markersize=4)
    reach = np.array([expected[0], expected[-1]])
    axes.plot(reach, each.noise * reach, "--", color=paper.ink, linewidth=1.2)
    axes.set_title("quantiles")
    axes.set_xlabel("Gaussian\n(dashed: the declared noise scale)")
