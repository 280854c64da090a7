"""driving: the gap-speed plane, one for every speed of the car in front."""

from __future__ import annotations

from typing import Any

from surefoot.reports.classes import View
from surefoot.reports.pictures.marks import box, draw_path, legend, path_handle, title_of
from surefoot.reports.pictures.style import Paper
from surefoot.worlds.named.driving import CELL, CRASH, GRADE, collision_is_inevitable


def driving_figure(plt: Any, view: View, paper: Paper) -> Any:
    """A square per gap and own speed, at the first step at which it can occur, when most lies ahead."""
    from matplotlib.lines import Line2D

    problem, kinds = view.world.problem, view.at_first_sight()
    kinds.pop(CRASH, None)
    leads = sorted({lead for _, _, lead in kinds})
    columns = min(4, len(leads)) if len(leads) != 5 else 3
    rows = -(-len(leads) // columns)
    result, grid = plt.subplots(
        rows, columns, figsize=(3.1 * columns + 0.6, 2.9 * rows + 1.4), sharex=True, sharey=True, layout="constrained"
    )
    panels = dict(zip(leads, grid.ravel(), strict=False))
    for axes in grid.ravel()[len(leads) :]:
        axes.axis("off")
    for (gap, own, lead), kind in kinds.items():
        box(panels[lead], gap, own, 0.9 * CELL, 0.86 * GRADE, kind)
    for lead, axes in panels.items():
        _inevitable(axes, [s for s in kinds if s[2] == lead], paper)
    way = [problem.naming.states[h][i] for h, i in view.path]
    for lead, axes in panels.items():
        _path(axes, way, lead, paper)
        axes.set_title(f"car in front: {lead} m/s", fontsize=10.5)
        axes.grid(False)
        axes.set_xlim(0, max(gap for gap, _, _ in kinds) + 0.7 * CELL)
        axes.set_ylim(-0.7 * GRADE, max(own for _, own, _ in kinds) + 0.7 * GRADE)
        axes.set_yticks(sorted({own for _, own, _ in kinds}))
    for axes in list(panels.values())[-columns:]:
        axes.set_xlabel("gap, m")
        axes.tick_params(labelbottom=True)
    for lead in leads[::columns]:
        panels[lead].set_ylabel("own speed, m/s")
    result.suptitle(title_of(view, "gap and speed"), x=0.01, ha="left", fontsize=12, fontweight="bold")
    collision = Line2D([], [], color=paper.ink, linewidth=2.4, label="above and left: a collision may be inevitable")
    path = path_handle(f"{view.path_name} (number: step)")
    legend(result, view, [collision, path], columns=2 if columns < 4 else 3, shown=kinds.values())
    return result


def _inevitable(axes: Any, states: list[tuple[int, int, int]], paper: Paper) -> None:
    """The edge of the inevitable-collision region: to the right of the last such gap at every own speed."""
    speeds = sorted({own for _, own, _ in states})
    last = {
        own: max((g for g, v, _ in states if v == own and collision_is_inevitable((g, v, _))), default=0)
        for own in speeds
    }
    xs, ys = [0.0], [0.0]
    for own in speeds:
        if last[own]:
            ys[0] = ys[0] if len(xs) > 1 else own - GRADE / 2
            xs += [last[own] + CELL / 2] * 2
            ys += [own - GRADE / 2, own + GRADE / 2]
    if len(xs) > 1:
        axes.plot(xs, ys, color=paper.ink, linewidth=2.4, zorder=4, solid_joinstyle="miter")


def _path(axes: Any, way: list[tuple[int, int, int]], lead: int, paper: Paper) -> None:
    here: dict[tuple[int, int], list[int]] = {}
    for step, state in enumerate(way):
        if state[2] == lead and state != CRASH:
            here.setdefault((state[0], state[1]), []).append(step)
    if not here:
        return
    draw_path(axes, [float(gap) for gap, _ in here], [float(own) for _, own in here], paper)
    for (gap, own), steps in here.items():
        text = f"{steps[0]}–{steps[-1]}" if len(steps) > 2 else ", ".join(map(str, steps))
        axes.annotate(
            text, (gap, own), (7, 0), textcoords="offset points", ha="left", va="center", fontsize=8, zorder=6,
            bbox={"facecolor": paper.background, "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )  # fmt: skip
