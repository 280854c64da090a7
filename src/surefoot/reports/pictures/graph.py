"""Any world: the layered graph if it is readable, otherwise counts per step."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
from surefoot.reports.classes import Class, View
from surefoot.reports.pictures.marks import FILLS, HATCHES, PATH, box, ink_on, legend, looks, plate, title_of
from surefoot.reports.pictures.style import Paper
from surefoot.reports.wording import state_rows

READABLE = {"states": 8, "pairs": 140, "edges": 260, "layers": 12}


def graph_figure(plt: Any, view: View, paper: Paper) -> Any:
    graph = view.world.problem.graph
    size = {
        "states": max(graph.n_states(h) for h in range(graph.horizon)),
        "pairs": sum(layer.n_pairs for layer in graph.layers),
        "edges": sum(layer.n_edges for layer in graph.layers),
        "layers": graph.horizon,
    }
    if all(size[what] <= most for what, most in READABLE.items()):
        return _graph(plt, view, paper)
    return _counts(plt, view)


def _counts(plt: Any, view: View) -> Any:
    """Stacked bars: how many actions of each step are in each class."""
    layers = len(view.pairs)
    result, axes = plt.subplots(figsize=(min(11.0, max(6.4, 0.35 * layers + 3)), 4.6), layout="constrained")
    below = np.zeros(layers)
    for kind in Class:
        heights = np.array([(row == kind).sum() for row in view.pairs], float)
        if heights.any():
            axes.bar(np.arange(layers), heights, 0.8, below, **looks(kind))
            below += heights
    axes.set_axisbelow(True)
    axes.set_xlabel("step")
    axes.set_ylabel("actions, over all states of a step")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title(title_of(view, "actions by step"))
    legend(result, view, columns=2)
    return result


def _graph(plt: Any, view: View, paper: Paper) -> Any:
    """States are squares, in columns by step; actions are circles; lines lead to what may follow."""
    problem, graph = view.world.problem, view.world.problem.graph
    rows = _close_together(state_rows(problem))
    n_rows = 1 + max(max(column) for column in rows)
    crowded = [int(np.diff(layer.state_ptr).max()) for layer in graph.layers if layer.n_states > 1]
    gap = max([1.0, *(0.42 * most for most in crowded)])  # so that circles of two neighbours stay apart
    # Above the first row; the actions of a state that stands alone may reach further than its row.
    fan = 0.2 * max(int(np.diff(layer.state_ptr).max()) for layer in graph.layers) - gap * (n_rows - 1) / 2
    top, apart = max(gap * 0.5 + 0.1, fan + 0.2), 2.6
    wide, high = 1.05 * apart * (graph.horizon - 1) + 1.6, max(3.2, 0.95 * (gap * (n_rows - 1) + 2 * top) + 1.8)
    result, axes = plt.subplots(figsize=(min(max(wide, 6.2), 16), min(high, 14)), layout="constrained")

    def place(h: int, state: int) -> tuple[float, float]:
        return apart * h, -gap * (rows[h][state] if graph.n_states(h) > 1 else (n_rows - 1) / 2)

    played = {(h, int(view.action[h][i])) for h, i in view.path[:-1] if view.action[h][i] != NO_ACTION}
    for h, layer in enumerate(graph.layers):
        for state in range(layer.n_states):
            pairs, (x, y) = layer.pairs_of(state), place(h, state)
            for n, pair in enumerate(pairs):
                at = x + 0.40 * apart, y + 0.40 * ((len(pairs) - 1) / 2 - n)
                on_path = (h, pair) in played
                _action(axes, view, h, pair, (x, y), at, paper)
                for after in layer.successors_of(pair).tolist():
                    x2, y2 = place(h + 1, after)
                    bold = on_path and after == view.path[h + 1][1]
                    _arrow(axes, Class(int(view.pairs[h][pair])), at, (x2 - 0.3, y2), bold)
    for h in range(graph.horizon):
        for state in range(graph.n_states(h)):
            x, y = place(h, state)
            kind = Class(int(view.states[h][state]))
            axes.add_patch(plt.Rectangle((x - 0.3, y - 0.3), 0.6, 0.6, facecolor=paper.background))  # hides lines
            box(axes, x, y, 0.6, 0.6, kind)
            text = axes.text(x, y, _short(problem.naming.states[h][state]), ha="center", va="center", zorder=4)
            text.set(color=ink_on(kind, paper), fontsize=9)
            if kind != Class.CERTIFIED:
                text.set_bbox(plate(paper))
        axes.text(apart * h, top, f"step {h}", ha="center", va="bottom", fontsize=9.5)
    axes.set_xlim(-0.6, apart * (graph.horizon - 1) + 0.6)
    axes.set_ylim(-gap * (n_rows - 1) - top - 0.1, top + 0.4)
    axes.set_aspect("equal")
    axes.axis("off")
    title = title_of(view, "states (squares), actions (circles)")
    result.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    legend(result, view, [_path_handle(view)], columns=2 if wide < 11 else 4)
    return result


def _close_together(rows: list[list[float]]) -> list[list[float]]:
    """Leave out rows that only a state alone in its step would use; such states go to the middle."""
    used = sorted({row for column in rows if len(column) > 1 for row in column}) or [0.0]
    if any(row != int(row) for row in used):
        return rows
    rank = {row: float(n) for n, row in enumerate(used)}
    return [[rank.get(row, 0.0) for row in column] for column in rows]


def _action(axes: Any, view: View, h: int, pair: int, state: tuple[float, float], at: Any, paper: Paper) -> None:
    problem = view.world.problem
    kind = Class(int(view.pairs[h][pair]))
    axes.plot([state[0], at[0]], [state[1], at[1]], color=paper.ink, linewidth=0.7, alpha=0.6, zorder=0.5)
    sure = kind == Class.CERTIFIED
    axes.scatter(
        *at,
        s=150,
        facecolor=FILLS[kind] if sure else paper.background,
        edgecolor=FILLS[kind],
        linewidth=1.6,
        hatch=HATCHES[kind] if kind == Class.WRONG else None,
        zorder=3,
    )
    name = _short(problem.naming.action(problem.graph.layers[h], h, pair))
    colour = "#ffffff" if sure else paper.ink
    if kind in (Class.UNSAFE, Class.FORBIDDEN):  # crossed out
        axes.scatter(*at, s=150, marker="x", color=FILLS[kind], linewidth=1.3, zorder=3.5, alpha=0.8)
    if len(name) <= 2:
        behind = None if sure else {**plate(paper), "pad": 0.4, "alpha": 1.0}
        axes.text(*at, name, ha="center", va="center", fontsize=8, color=colour, zorder=4, bbox=behind)
    else:  # on its own line, where no arrow passes
        middle = state[0] + 0.3 + 0.48 * (at[0] - state[0] - 0.3), state[1] + 0.7 * (at[1] - state[1])
        axes.text(*middle, name, ha="center", va="center", fontsize=7.5, zorder=4, bbox={**plate(paper), "alpha": 1.0})


def _arrow(axes: Any, kind: Class, start: Any, end: Any, bold: bool) -> None:
    colour, width = (PATH, 2.4) if bold else (FILLS[kind], 0.9)
    dashes = "-" if kind in (Class.CERTIFIED, Class.WRONG) else (0, (4, 2))
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "linestyle": dashes, "alpha": 0.9}
    axes.annotate("", end, start, arrowprops={**look, "shrinkA": 7, "shrinkB": 1}, zorder=1)


def _path_handle(view: View) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=PATH, linewidth=2.4, label=view.path_name)


def _short(label: Label) -> str:
    text = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    return text if len(text) <= 9 else text[:8] + "…"
