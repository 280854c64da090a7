"""Any world whose states are places: a map, with what is certified on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from surefoot.errors import InvalidInput
from surefoot.model.labels import Label, shown
from surefoot.reports.classes import View
from surefoot.reports.pictures.marks import box, draw_path, ink_on, legend, path_handle, title_of
from surefoot.reports.pictures.style import Paper, literal

Coordinates = Callable[[Label], Any]
NAMED = 60  #: states, at most, that are named in the picture


def map_figure(plt: Any, view: View, paper: Paper, coordinates: Coordinates) -> Any:
    """A square per state at its place (x, y), at the first step at which it can occur; there, most lies ahead of it."""
    names = view.world.problem.naming.states
    kinds = view.at_first_sight()
    for i, kind in enumerate(view.states[-1].tolist()):
        kinds.setdefault(names[-1][i], kind)
    at = {label: place(coordinates, label) for label in kinds}
    side = 0.86 * _spacing(list(at.values()))
    (left, right), (low, high) = ((min(c), max(c)) for c in zip(*at.values(), strict=True))
    wide, tall = right - left + side, high - low + side
    result, axes = plt.subplots(figsize=(max(5.6, min(10.0, 7.5 * wide / tall)), 6.4), layout="constrained")
    for label, (x, y) in at.items():
        box(axes, x, y, side, side, kinds[label])
        if len(at) <= NAMED and (text := _short(label)):
            size = 8 if len(text) <= 6 else 6.5
            axes.text(x - 0.44 * side, y + 0.4 * side, literal(text), fontsize=size, color=ink_on(kinds[label], paper),
                      ha="left", va="top", zorder=6)  # fmt: skip
    way = [at[names[h][i]] for h, i in view.path]
    lower = 0.2 * side  # below the names, so that the path crosses none
    draw_path(axes, [x for x, _ in way], [y - lower for _, y in way], paper)
    axes.set_xlim(left - 0.6 * side, right + 0.6 * side)
    axes.set_ylim(low - 0.6 * side, high + 0.6 * side)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_title(title_of(view, "the map"))
    legend(result, view, [path_handle(view.path_name)], columns=2)
    return result


def place(coordinates: Coordinates, label: Label) -> tuple[float, float]:
    """Where a state stands; anything but two finite numbers is an error that names the state."""
    found = coordinates(label)
    try:
        x, y = (float(part) for part in found)
    except (TypeError, ValueError):
        x = y = math.nan
    if not (math.isfinite(x) and math.isfinite(y)):
        fix = "Return two finite numbers for every state."
        raise InvalidInput("coordinates are a pair (x, y)", where=f"state {shown(label)}", got=shown(found), fix=fix)
    return x, y


def _spacing(places: list[tuple[float, float]]) -> float:
    """The least distance between two places that differ, by the larger of the two differences; 1 for a single place."""
    distinct = sorted(set(places))
    best = math.inf
    for i, (x, y) in enumerate(distinct):
        for u, v in distinct[i + 1 :]:
            if u - x >= best:
                break
            best = min(best, max(u - x, abs(v - y)))
    return best if math.isfinite(best) else 1.0


def _short(label: Label) -> str:
    text = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    return text if len(text) <= 10 else ""
