"""The figures of a comparison: what was earned against what was broken, and performance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.reports.field import LEVELS, Field, Overall
from surefoot.reports.pictures.style import LIGHT, pyplot, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAFE, UNSAFE = "#0072B2", "#D55E00"
LINE, LETTER = 11.0, 5.4  # points: how high a line of text is, and about how wide a letter


def save_figures(field: Field, folder: Path) -> list[Path]:
    """``plane.png`` and ``profiles.png``, and both as SVG."""
    plt, context = pyplot(LIGHT)
    with context:
        return [
            save_figure(plt, draw(plt, field), folder / f"{name}.{kind}")
            for name, draw in (("plane", _plane), ("profiles", _profiles))
            for kind in ("png", "svg")
        ]


def _plane(plt: Any, field: Field) -> Any:
    figure, axes = plt.subplots(figsize=(9.5, 6.2), layout="constrained")
    rows = field.ranked()
    for row in rows:
        safe = row.unsafe_runs == 0
        axes.errorbar(
            row.per_episode,
            row.earned,
            xerr=_reach(row.per_episode, *row.per_episode_between),
            yerr=_reach(row.earned, *row.earned_between),
            fmt="o" if safe else "D",
            color=SAFE if safe else UNSAFE,
            markersize=7 if safe else 6,
            capsize=2,
        )
    axes.set_xscale("symlog", linthresh=1e-3)
    axes.set_xlim(-2e-4, 100.0 * max(1.0, *(row.per_episode for row in rows)))
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("violating steps per episode, mean over worlds (0 at the left edge)")
    axes.set_ylabel("earned: share of what is safely to be gained")
    axes.set_title("Earned and broken: upper left is where to be")
    figure.draw_without_rendering()  # where points are, in points of the paper
    _names(axes, _together(rows))
    return figure


def _together(rows: Sequence[Overall]) -> list[tuple[str, Overall]]:
    """Agents whose points cannot be told apart, under one name; from above."""
    found: list[tuple[str, Overall]] = []
    for row in sorted(rows, key=lambda row: -row.earned):
        for i, (names, other) in enumerate(found):
            if other.earned - row.earned < 0.005 and abs(other.per_episode - row.per_episode) <= 0.02 * row.per_episode:
                found[i] = (f"{names}, {row.label}", other)
                break
        else:
            found.append((row.label, row))
    return found


def _names(axes: Axes, points: Sequence[tuple[str, Overall]]) -> None:
    """A name next to every point, moved up or down if another name, a point or a line is in its way."""

    def on_paper(x: float, y: float) -> tuple[float, float]:
        at = 72.0 / axes.figure.dpi * axes.transData.transform((x, y))
        return float(at[0]), float(at[1])

    best = on_paper(0.0, 1.0)[1]
    taken = [(-np.inf, best - 1.0, np.inf, best + 1.0)]
    for _, row in points:
        low, high = (on_paper(*both) for both in zip(row.per_episode_between, row.earned_between, strict=True))
        taken.append((low[0] - 4.0, low[1] - 4.0, high[0] + 4.0, high[1] + 4.0))
    for name, row in points:
        (x, y), long = on_paper(row.per_episode, row.earned), LETTER * len(name)
        ends = [on_paper(end, row.earned)[0] - x for end in row.per_episode_between]
        sides = (max(ends[1], 0.0) + 9.0, min(ends[0], 0.0) - 9.0 - long)
        for shift, left in ((d, a) for d in (0, 1, -1, 2, -2, 3, -3) for a in sides):
            box = (x + left, y + LINE * (shift - 0.5), x + left + long, y + LINE * (shift + 0.5))
            if not any(box[0] < c and a < box[2] and box[1] < d and b < box[3] for a, b, c, d in taken):
                break
        taken.append(box)
        axes.annotate(
            name,
            (row.per_episode, row.earned),
            (left, LINE * shift),
            textcoords="offset points",
            fontsize=9,
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.5} if shift else None,
        )


def _reach(at: float, low: float, high: float) -> list[list[float]]:
    """How far an interval reaches to both sides; rounding may put the mean of equal numbers outside it."""
    return [[max(0.0, at - low)], [max(0.0, high - at)]]


def _profiles(plt: Any, field: Field) -> Any:
    """A row per agent; darker where more of its runs earned at least that much."""
    size = (10.5, max(2.8, 1.2 + 0.22 * len(field.labels)))  # the colour bar needs some room
    figure, both = plt.subplots(1, 2, sharey=True, figsize=size, layout="constrained")
    ranked = sorted(field.labels, key=lambda name: tuple(-field.profile(name, safe).mean() for safe in (True, False)))
    titles = "Runs that broke no limit", "All runs, whatever they broke"
    for axes, title, safe_only in zip(both, titles, (True, False), strict=True):
        shares = np.array([field.profile(label, safe_only) for label in ranked])
        shown = axes.imshow(
            shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", extent=(LEVELS[0], LEVELS[-1], len(ranked), 0)
        )
        axes.set_yticks(np.arange(len(ranked)) + 0.5, ranked, fontsize=9)
        axes.grid(False)
        axes.hlines(np.arange(1, len(ranked)), LEVELS[0], LEVELS[-1], color="white", linewidth=1.5)
        axes.set_title(title)
        axes.set_xlabel("earned, at least")
    figure.colorbar(shown, ax=both, label="share of runs,\nworlds weighted alike", shrink=0.7)
    return figure
