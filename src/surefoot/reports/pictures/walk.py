"""walk: speed over place, with what is certified, and how far the graph has grown."""

from __future__ import annotations

from typing import Any

from surefoot.model.grower import NOT_EXPANDED
from surefoot.reports.classes import View
from surefoot.reports.pictures.marks import box, draw_path, legend, path_handle, title_of
from surefoot.reports.pictures.style import Paper
from surefoot.worlds.named.walk import bump


def walk_figure(plt: Any, view: View, paper: Paper) -> Any:
    """A square per place and speed, at the first step at which the sled can be there, with the track below. Blank
    squares are not in the graph."""
    kinds = {label: kind for label, kind in view.at_first_sight().items() if label != NOT_EXPANDED}
    far, fast = (max(part) for part in zip(*kinds, strict=True))
    size = max(6.4, min(13.0, 0.24 * far + 2)), 5.4
    result, (axes, track) = plt.subplots(2, 1, figsize=size, height_ratios=(6, 1), sharex=True, layout="constrained")
    for (place, speed), kind in kinds.items():
        box(axes, place, speed, 0.86, 0.86, kind)
    way = [view.world.problem.naming.states[h][i] for h, i in view.path]
    draw_path(axes, [float(place) for place, _ in way], [float(speed) for _, speed in way], paper)
    axes.set_ylabel("speed")
    axes.set_ylim(-0.7, fast + 0.7)
    axes.set_xlim(-0.9, far + 0.9)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(False)
    axes.set_title(title_of(view, "speed over place"))
    tenths = [x / 10 for x in range(10 * far + 1)]
    track.fill_between(tenths, [bump(x) for x in tenths], color=paper.ink, alpha=0.35, linewidth=0)
    track.set_ylim(0, 1.15)
    track.set_yticks([])
    track.set_ylabel("track")
    track.grid(False)
    graph = view.world.problem.graph
    words = "place" if graph.beyond is None else f"place; {graph.n_all_states:,} states are in the graph, of all steps"
    track.set_xlabel(words)
    legend(result, view, [path_handle(view.path_name)], columns=2, shown=set(kinds.values()))
    return result
