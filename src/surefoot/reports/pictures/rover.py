"""rover: the map, with what is certified on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.reports.classes import Class, View
from surefoot.reports.pictures.marks import box, draw_path, legend, path_handle, title_of
from surefoot.reports.pictures.style import Paper
from surefoot.worlds.named.rover import craters, relief


def rover_figure(plt: Any, view: View, paper: Paper) -> Any:
    """Cells at the first sol at which they can be reached, when most lies ahead, over the elevation."""
    from matplotlib.colors import LightSource
    from matplotlib.lines import Line2D

    ground, kinds = relief(), view.at_first_sight()
    (top, bottom), (left, right) = ((min(c), max(c)) for c in zip(*kinds, strict=True))
    heights = ground.elevation[top : bottom + 1, left : right + 1]
    tall = (bottom - top + 1) * ground.spacing[0] / ((right - left + 1) * ground.spacing[1])
    width = min(7.0, 6.6 / tall)  # of the map; the rest is text
    result, axes = plt.subplots(figsize=(max(5.4, width + 1.0), width * tall + 2.9), layout="constrained")
    extent = (left - 0.5, right + 0.5, bottom + 0.5, top - 0.5)
    smooth = _refined(heights)
    shade = LightSource(azdeg=315, altdeg=45).hillshade(smooth, vert_exag=0.12)
    axes.imshow(shade, cmap="gray", extent=extent, vmin=-0.6, vmax=1.1, interpolation="bilinear")
    rows, columns = (
        np.linspace(a, b, n) for a, b, n in ((top, bottom, smooth.shape[0]), (left, right, smooth.shape[1]))
    )
    lines = axes.contour(columns, rows, smooth, levels=8, colors=paper.ink, linewidths=0.7, alpha=0.7)
    axes.clabel(lines, lines.levels[::2], fmt="%d m", fontsize=7.5)
    doomed = craters(float(view.world.problem.bounds[0, 0]))
    for (row, column), kind in kinds.items():
        box(axes, column, row, 0.92, 0.92, kind, wash=0.55 if kind == Class.CERTIFIED else 0.2)
        if doomed[row, column]:
            axes.plot(
                column, row, marker="v", color=paper.ink, markersize=9, markerfacecolor=paper.background, zorder=4
            )
    way = [view.world.problem.naming.states[h][i] for h, i in view.path]
    draw_path(axes, [float(c) for _, c in way], [float(r) for r, _ in way], paper)
    axes.plot(
        way[0][1], way[0][0], marker="s", markersize=11, color=paper.background, markeredgecolor=paper.ink, zorder=6
    )
    axes.plot(way[-1][1], way[-1][0], marker="*", markersize=16, color="#F0E442", markeredgecolor=paper.ink, zorder=7)
    axes.set_xlabel(f"column, {ground.spacing[1]:.0f} m each, eastward")
    axes.set_ylabel(f"row, {ground.spacing[0]:.0f} m each, southward")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_xlim(extent[:2])
    axes.set_ylim(extent[2:])
    axes.set_aspect(ground.spacing[0] / ground.spacing[1])
    axes.grid(False)
    axes.set_title(title_of(view, "the map"))
    plain: dict[str, Any] = {"linestyle": "none", "markeredgecolor": paper.ink}
    more = [
        Line2D([], [], marker="v", color=paper.background, markersize=9, label="crater: no safe action", **plain),
        path_handle(view.path_name),
        Line2D([], [], marker="s", color=paper.background, markersize=9, label="start", **plain),
        Line2D([], [], marker="*", color="#F0E442", markersize=13, label="where it ends", **plain),
    ]
    legend(result, view, more, columns=2, shown=kinds.values())
    return result


def _refined(heights: Any) -> Any:
    """The map on a grid eight times as fine, by straight lines, so that shade and contours are smooth."""
    for axis in (0, 1):
        old = np.arange(heights.shape[axis])
        new = np.linspace(0, old[-1], (len(old) - 1) * 8 + 1)
        heights = np.apply_along_axis(lambda row: np.interp(new, old, row), axis, heights)  # noqa: B023
    return heights
