"""thermal: heat over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.reports.classes import Class, View
from surefoot.reports.pictures.marks import box, draw_path, ink_on, legend, path_handle, title_of
from surefoot.reports.pictures.style import Paper


def thermal_figure(plt: Any, view: View, paper: Paper) -> Any:
    """A square per step and heat; the number is the largest certified power, as a share of full power."""
    problem = view.world.problem
    horizon, strongest = problem.horizon, len(problem.actions(0, problem.starts[0])) - 1
    hottest = strongest * 7 // 2
    result, axes = plt.subplots(figsize=(max(6.4, 0.75 * horizon + 1.6), 5.2), layout="constrained")
    for h in range(horizon):
        for i, kind in enumerate(view.states[h].tolist()):
            heat = problem.naming.states[h][i]
            box(axes, h, heat / hottest, 0.9, 0.9 / hottest, kind)
            if hottest <= 8 and h < horizon - 1:
                power = _largest_power(view, h, i)
                if power is not None:
                    look = {"fontsize": 8, "color": ink_on(kind, paper), "ha": "right", "va": "center", "zorder": 6}
                    axes.text(h + 0.4, (heat + 0.25) / hottest, f"{power / strongest:g}", **look)
    xs = [float(h) for h, _ in view.path]
    ys = [problem.naming.states[h][i] / hottest for h, i in view.path]
    draw_path(axes, xs, ys, paper)
    axes.set_xticks(range(horizon), [str(h) for h in range(horizon)])
    axes.set_xlabel("step")
    axes.set_ylabel("heat, 0 ambient to 1")
    axes.set_ylim(-0.6 / hottest, 1 + 0.6 / hottest)
    axes.set_xlim(-0.6, horizon - 0.4)
    axes.grid(False)
    axes.set_title(title_of(view, "heat over time"))
    words = "number: the largest certified power; " if hottest <= 8 else ""
    words += "the last step ends the episode: no limit is left to keep there"
    axes.text(0, -0.13, words, transform=axes.transAxes, fontsize=8, va="top")
    legend(result, view, [path_handle(view.path_name)], columns=2, shown=view.kinds_of_states())
    return result


def _largest_power(view: View, h: int, state: int) -> int | None:
    layer = view.world.problem.graph.layers[h]
    pairs = np.array(layer.pairs_of(state))
    kept = pairs[np.isin(view.pairs[h][pairs], [Class.CERTIFIED, Class.WRONG])]
    return int(view.world.problem.naming.action(layer, h, int(kept[-1]))) if len(kept) else None
