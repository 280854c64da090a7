"""Any world whose states are places: a map, with what is certified on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from surefoot.errors import InvalidInput
from surefoot.model.labels import Label, shown
from surefoot.reports.classes import WAYS, WAYS_OF_FALLBACK, Class, View
from surefoot.reports.pictures.marks import box, draw_path, ink_on, legend, path_handle, plate, title_of
from surefoot.reports.pictures.style import Paper, literal

Coordinates = Callable[[Label], Any]
NAMED = 60  #: states, at most, that are named in the picture


def map_figure(
    plt: Any, view: View, paper: Paper, coordinates: Coordinates, labels: tuple[str, str] = ("x", "y")
) -> Any:
    """A square per state at its place (x, y), coloured by how it can be reached at any step.

    ``labels``: of the axes; a "row" is counted downward, from y = 0.
    """
    names = view.world.problem.naming.states
    kinds = view.ways_to()
    at = {label: place(coordinates, label) for label in kinds}
    side = 0.86 * _spacing(list(at.values()))
    (left, right), (low, high) = ((min(c), max(c)) for c in zip(*at.values(), strict=True))
    wide, tall = right - left + side, high - low + side
    width = min(10.0, max(4.6, 5.0 * wide / tall))
    size = width + 1.0, min(8.0, max(1.4, (width - 0.2) * tall / wide)) + 2.5  # the rest is text
    result, axes = plt.subplots(figsize=size, layout="constrained")
    taken: set[tuple[float, float]] = set()
    for label, (x, y) in at.items():
        if (x, y) in taken:
            continue  # another label of the same place, which came first
        taken.add((x, y))
        box(axes, x, y, side, side, kinds[label])
        if len(at) <= NAMED and (text := _short(label)):
            look = {"fontsize": 8 if len(text) <= 6 else 6.5, "ha": "left", "va": "top", "zorder": 6}
            behind = None if kinds[label] == Class.CERTIFIED else plate(paper)
            where, colour = (x - 0.42 * side, y + 0.38 * side), ink_on(kinds[label], paper)
            axes.text(*where, literal(text), color=colour, bbox=behind, **look)
    way = [at[names[h][i]] for h, i in view.path]
    lower = 0.2 * side  # below the names, so that the path crosses none
    draw_path(axes, [x for x, _ in way], [y - lower for _, y in way], paper)
    axes.set_xlim(left - 0.6 * side, right + 0.6 * side)
    axes.set_ylim(low - 0.6 * side, high + 0.6 * side)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    if labels[1] == "row":
        axes.yaxis.set_major_formatter(lambda y, _: f"{abs(y):g}")
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_major_locator().set_params(integer=True)
    axes.set_title(title_of(view, "the map"))
    names_of = WAYS if view.learned else WAYS_OF_FALLBACK
    legend(result, view, [path_handle(view.path_name)], columns=2, shown=kinds.values(), names=names_of)
    return result


def place(coordinates: Coordinates, label: Label) -> tuple[float, float]:
    """The place of a state; anything but two finite numbers is an error that names the state."""
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
