"""power: the grid at its tightest hour, the day's loadings against their limits, and the storage's charge."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.model.arrays import FloatArray
from surefoot.reports.classes import View
from surefoot.reports.pictures.marks import PATH, box, draw_path, legend, path_handle, plate, title_of
from surefoot.reports.pictures.style import OTHERS, Paper
from surefoot.worlds.named.power import Picture, picture

DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def power_figure(plt: Any, view: View, paper: Paper) -> Any:
    known = picture(view.world)
    loads = _loadings(view, known)
    result = plt.figure(figsize=(11.4, 6.6), layout="constrained")
    left, right = result.subfigures(1, 2, width_ratios=(0.85, 1))
    over, below = right.subplots(2, 1, sharex=True)
    monitored = list(known.monitored)
    tight = int(np.abs(loads[:, monitored]).max(axis=1).argmax())
    _grid(left.subplots(), known, loads[tight], tight, paper)
    _day(over, known, loads, paper)
    _charge(below, view, known, paper)
    result.suptitle(
        title_of(view, f"{known.grid.case}, line loadings"), x=0.01, ha="left", fontsize=12, fontweight="bold"
    )
    legend(result, view, [path_handle(view.path_name)], columns=4, shown=view.kinds_of_states())
    return result


def _loadings(view: View, known: Picture) -> FloatArray:
    """(periods, L) along the most likely path."""
    problem, rows = view.world.problem, []
    for at, (h, state) in enumerate(view.path[:-1]):
        names, pair = problem.naming.states, int(view.action[h][state])
        action = problem.naming.action(problem.graph.layers[h], h, pair)
        rows.append(known.loading(h, names[h][state], action, names[h + 1][view.path[at + 1][1]]))
    return np.array(rows)


def _hours(known: Picture, period: int) -> str:
    length = 24 // len(known.layout.profile)
    return f"{period * length}–{(period + 1) * length} h"


def _grid(axes: Any, known: Picture, loads: FloatArray, period: int, paper: Paper) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    grid, colours = known.grid, ScalarMappable(Normalize(0, 1), cmap="cividis")
    for line, ends in enumerate(grid.ends.tolist()):
        at, watched = grid.coordinates[ends], line in known.monitored
        outer, inner = (8.5, 7.0) if watched else (3.2, 2.2)
        colour = colours.to_rgba(np.abs(loads[line : line + 1]))[0]
        axes.plot(*at.T, color=paper.ink, linewidth=outer, zorder=1, solid_capstyle="butt")
        axes.plot(*at.T, color=colour, linewidth=inner, zorder=1.5)
        if watched:
            look = {"ha": "center", "va": "center", "fontsize": 9.5, "fontweight": "bold", "bbox": plate(paper)}
            axes.text(*at.mean(axis=0), f"{abs(float(loads[line])):.0%}", zorder=5, **look)
    for i in range(len(grid.coordinates)):
        _bus(axes, grid, i, paper)
    axes.margins(0.14)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(
        f"The tightest time of the path, {_hours(known, period)}:\nthick lines have a limit, 100% of their rating",
        fontsize=10.5,
    )
    bar = axes.figure.colorbar(colours, ax=axes, shrink=0.6, location="bottom", pad=0.01)
    bar.set_label("loading in parts of the rating", fontsize=9.5)
    bar.outline.set_visible(False)


def _bus(axes: Any, grid: Any, i: int, paper: Paper) -> None:
    """A bus with its name; of the special ones also what they are, on the side away from their lines."""
    shapes = {
        grid.reference: ("s", "cheap, far away"),
        grid.local: ("^", "dear, local"),
        grid.storage: ("D", "dear, local; storage" if grid.local == grid.storage else "storage"),
    }
    marker, what = shapes.get(i, ("o", ""))
    at, text = grid.coordinates[i], {"textcoords": "offset points", "va": "center", "fontsize": 9}
    edge = {"color": paper.background, "markeredgecolor": paper.ink, "markeredgewidth": 1.5}
    axes.plot(*at, marker=marker, markersize=22 if what else 14, zorder=3, **edge)
    axes.annotate(grid.buses[i], at, (0, -3.5 if marker == "^" else 0), ha="center", zorder=4, **text)
    if what:
        neighbours = [b if a == i else a for a, b in grid.ends.tolist() if i in (a, b)]
        right, up = at - grid.coordinates[neighbours].mean(axis=0)
        free, align = (0, 21 if up > 0 else -21), "center"
        if abs(right) > abs(up):
            free, align = (17 if right > 0 else -17, 0), "left" if right > 0 else "right"
        axes.annotate(what.replace(", ", ",\n"), at, free, ha=align, zorder=6, bbox=plate(paper), **text)


def _day(axes: Any, known: Picture, loads: FloatArray, paper: Paper) -> None:
    names = [known.grid.lines[line] for line in known.monitored]
    colours = (PATH, "#CC79A7", *OTHERS[1:])
    for n, line in enumerate(known.monitored):
        axes.plot(
            range(len(loads)), loads[:, line], color=colours[n % len(colours)], linestyle=DASHES[n % len(DASHES)],
            marker="osD^v"[n % 5], markersize=5, linewidth=2, label=f"line {names[n]}",
        )  # fmt: skip
    bound = float(known.world.problem.bounds[0, 0])
    low = float(loads[:, list(known.monitored)].min())
    for level in (bound, -bound) if low < -0.5 * bound else (bound,):
        axes.axhline(level, color=paper.ink, linewidth=1.6)
    axes.text(len(loads) - 0.6, bound, "limit", ha="right", va="bottom", fontsize=9)
    axes.set_ylim(top=bound * 1.16, bottom=min(0.0, low * 1.1))
    axes.set_ylabel("loading")
    axes.set_title("Lines with a limit, along the path", fontsize=10.5)
    axes.legend(fontsize=9, ncols=3, loc="lower right", frameon=True, facecolor=paper.background, edgecolor="none")


def _charge(axes: Any, view: View, known: Picture, paper: Paper) -> None:
    """Steps over charge; within a square from left to right the levels of demand, low to high."""
    problem, levels = view.world.problem, known.layout.levels
    for h in range(problem.horizon):
        for i, kind in enumerate(view.states[h].tolist()):
            demand, charge = problem.naming.states[h][i]
            box(axes, h + 0.9 * ((demand + 0.5) / levels - 0.5), charge, 0.84 / levels, 0.84, kind)
    way = [(h, problem.naming.states[h][i]) for h, i in view.path]
    draw_path(
        axes, [h + 0.9 * ((s[0] + 0.5) / levels - 0.5) for h, s in way], [float(s[1]) for _, s in way], paper
    )  # fmt: skip
    periods = problem.horizon - 1
    every = max(1, -(-periods // 9))
    at = range(0, periods, every)
    axes.set_xticks([*at, periods], [*(_hours(known, h) for h in at), "end"], fontsize=8.5)
    axes.set_yticks(range(known.layout.capacity + 1))
    axes.set_ylabel("charge")
    axes.grid(False)
    axes.set_title("Demand (bars: low to high) and charge over the day", fontsize=10.5)
