"""The figures of a comparison: what was earned against what was broken, and performance profiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.reports.field import LEVELS, Field
from surefoot.reports.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "osD^v<>pP*Xhd"
HUES = ("#0072B2", "#8a8a8a", "#CC79A7", "#D55E00", "#009E73", "#E69F00", "#56B4E9")


def save_figures(field: Field, folder: Path) -> list[Path]:
    """``plane.png`` and ``profiles.png``, and both as SVG."""
    import matplotlib

    look: Any = style.parameters(style.LIGHT)
    with matplotlib.rc_context(look):
        found = []
        for name, draw in (("plane", _plane), ("profiles", _profiles)):
            figure = draw(field)
            for kind in ("png", "svg"):
                path = folder / f"{name}.{kind}"
                figure.savefig(path, dpi=130, metadata={"Date": None} if kind == "svg" else None)
                found.append(path)
    return found


def _look(i: int) -> tuple[str, str]:
    """Colour and marker of the i-th agent: no two alike below 91."""
    return HUES[i % len(HUES)], MARKS[i % len(MARKS)]


def _figure(width: float, height: float, panels: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels, sharey=True, squeeze=False)[0]


def _plane(field: Field) -> Any:
    figure, (axes,) = _figure(9.5, 5.6, 1)
    for i, row in enumerate(field.overall()):
        colour, mark = _look(i)
        low, high = row.earned_between
        left, right = row.per_episode_between
        axes.errorbar(
            row.per_episode,
            row.earned,
            xerr=_reach(row.per_episode, left, right),
            yerr=_reach(row.earned, low, high),
            fmt=mark,
            color=colour,
            markersize=9 if row.unsafe_runs == 0 else 7,
            markeredgecolor="black" if row.unsafe_runs == 0 else colour,
            capsize=2,
            label=row.label,
        )
    axes.set_xscale("symlog", linthresh=1e-3)
    axes.set_xlim(left=-2e-4)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("violating steps per episode, mean over worlds (0 at the left edge)")
    axes.set_ylabel("earned: share of what is safely to be gained")
    axes.set_title("Earned and broken: upper left is where to be")
    figure.legend(loc="outside right center", fontsize=9)
    return figure


def _reach(at: float, low: float, high: float) -> list[list[float]]:
    """How far an interval reaches to both sides; the mean of equal numbers may lie outside it by a rounding."""
    return [[max(0.0, at - low)], [max(0.0, high - at)]]


def _profiles(field: Field) -> Any:
    figure, both = _figure(11.5, 4.8, 2)
    titles = "Runs that broke no limit", "All runs, whatever they broke"
    for axes, title, safe_only in zip(both, titles, (True, False), strict=True):
        _profile(axes, field, safe_only)
        axes.set_title(title)
        axes.set_xlabel("earned, at least")
    both[0].set_ylabel("share of runs, worlds weighted alike")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=9)
    return figure


def _profile(axes: Axes, field: Field, safe_only: bool) -> None:
    for i, label in enumerate(field.labels):
        colour, mark = _look(i)
        shares = field.profile(label, safe_only)
        every = np.arange(3 * (i % 5), len(LEVELS), 15)
        axes.plot(
            LEVELS,
            shares,
            color=colour,
            marker=mark,
            markevery=every.tolist(),
            markersize=5,
            linewidth=1.4,
            label=label,
        )
    axes.set_ylim(-0.02, 1.02)
