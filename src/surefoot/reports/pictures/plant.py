"""A plant: the certified cells over two coordinates, step by step, with forbidden ranges and trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.graph import NO_ACTION, BoolArray, FloatArray
from surefoot.model.plant.cells import Cells
from surefoot.model.plant.measures import coordinate
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan
from surefoot.reports.classes import Class
from surefoot.reports.pictures.marks import FILLS, HATCHES, draw_path, path_handle
from surefoot.reports.pictures.style import Paper, literal

PANELS = 4


@dataclass(frozen=True, eq=False)
class PlantGrid:
    """What a picture needs of a plant; a study's files have it, too."""

    cells: Cells
    problem: Problem


def plant_figure(
    plt: Any,
    plant: PlantGrid,
    plan: Plan | None,
    paper: Paper,
    coordinates: Sequence[str] | None,
    steps: Sequence[int] | None,
    paths: Sequence[FloatArray],
) -> Any:
    """A panel per step. The stronger its blue, the more inputs are certified in all of a cell."""
    axes_of = _coordinates(plant, coordinates)
    shown = _steps(plant, steps)
    result, panels = plt.subplots(
        1, len(shown), figsize=(1.2 + 3.4 * len(shown), 4.4), layout="constrained", squeeze=False, sharey=True
    )
    for h, axes in zip(shown, panels[0], strict=True):
        _panel(axes, plant, plan, h, axes_of, paths, paper)
        axes.set_title(f"step {h}", fontsize=10.5)
        axes.set_xlabel(literal(plant.cells.names[axes_of[0]]))
    panels[0][0].set_ylabel(literal(plant.cells.names[axes_of[1]]) if len(axes_of) > 1 else "")
    many = (
        "no plan: the fallback alone" if plan is None else f"plan {plan.number}: {plan.n_certified()} pairs certified"
    )
    result.suptitle(many, x=0.01, ha="left", fontsize=12, fontweight="bold")
    _legend(result, plant, bool(paths), plan)
    return result


def _coordinates(plant: PlantGrid, given: Sequence[str] | None) -> list[int]:
    names = list(plant.cells.names[:2] if given is None else given)
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise InvalidInput("a picture shows one or two coordinates", got=repr(names))
    return [coordinate(plant.cells, name) for name in names]


def _steps(plant: PlantGrid, given: Sequence[int] | None) -> list[int]:
    last = plant.problem.horizon - 2
    steps = sorted({round(at) for at in np.linspace(0, last, PANELS)}) if given is None else list(given)
    if not steps or not all(0 <= h <= last for h in steps):
        raise InvalidInput("no such decision step", got=repr(given), fix=f"Steps are 0 … {last}.")
    return steps


def _panel(
    axes: Any, plant: PlantGrid, plan: Plan | None, h: int, at: list[int], paths: Sequence[FloatArray], paper: Paper
) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    share, fallback, forbidden = (_slice(plant, row, at) for row in _cells(plant, plan, h))
    x = plant.cells.edges[at[0]]
    y = plant.cells.edges[at[1]] if len(at) > 1 else np.array([0.0, 1.0])
    for (i, j), part in np.ndenumerate(share):
        place: dict[str, Any] = {"xy": (x[i], y[j]), "width": x[i + 1] - x[i], "height": y[j + 1] - y[j]}
        if forbidden[i, j]:
            look: dict[str, Any] = {
                "facecolor": to_rgba(FILLS[Class.FORBIDDEN], 0.25),
                "hatch": HATCHES[Class.FORBIDDEN],
            }
            axes.add_patch(Rectangle(**place, **look, edgecolor=FILLS[Class.FORBIDDEN], linewidth=0.0))
            continue
        if part > 0:
            axes.add_patch(Rectangle(**place, facecolor=to_rgba(FILLS[Class.CERTIFIED], 0.2 + 0.75 * part)))
        axes.add_patch(Rectangle(**place, facecolor="none", edgecolor=paper.faint, linewidth=0.5))
        if fallback[i, j]:
            middle = (x[i] + x[i + 1]) / 2, (y[j] + y[j + 1]) / 2
            axes.plot(*middle, marker="s", markersize=4, color=paper.background, markeredgecolor=paper.ink, zorder=4)
    for path in paths:
        until = path[: h + 1]
        up = until[:, at[1]] if len(at) > 1 else np.full(len(until), 0.5)
        draw_path(axes, until[:, at[0]].tolist(), up.tolist(), paper)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    axes.grid(False)
    if len(at) == 1:
        axes.set_yticks([])


def _cells(plant: PlantGrid, plan: Plan | None, h: int) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Of all cells: the share of inputs that are certified, where the fallback goes, and what is forbidden."""
    fallback = plant.problem.graph.layers[h].fallback[:-1] != NO_ACTION
    if plan is None:
        share = fallback * plant.cells.number / (plant.problem.graph.layers[h].n_pairs - 1)
    else:
        share = plan.certified_sets.pairs[h][:-1].reshape(plant.cells.number, -1).mean(axis=1)
    return share, fallback, plant.problem.graph.layers[h].forbidden[:-1]


def _slice(plant: PlantGrid, row: Any, at: list[int]) -> Any:
    """(cells, cells) over the coordinates shown; of the others the cell of the start."""
    starts = plant.problem.graph.starts
    middle = np.unravel_index(int(starts[len(starts) // 2]), plant.cells.shape)
    cut = tuple(slice(None) if d in at else int(middle[d]) for d in range(plant.cells.dim))
    found = row.reshape(plant.cells.shape)[cut]
    if len(at) == 1:
        return found[:, None]
    return found if at[0] < at[1] else found.T


def _legend(result: Any, plant: PlantGrid, paths: bool, plan: Plan | None) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    if plan is not None:
        some, every = (to_rgba(FILLS[Class.CERTIFIED], alpha) for alpha in (0.35, 0.95))
        handles += [Patch(facecolor=some, label="some inputs certified"), Patch(facecolor=every, label="all certified")]
    square: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 5, "color": "#ffffff"}
    handles.append(Line2D([], [], **square, markeredgecolor="#1f2328", label="the fallback's"))
    if plant.problem.graph.layers[0].forbidden[:-1].any():
        grey = to_rgba(FILLS[Class.FORBIDDEN], 0.25)
        edge = FILLS[Class.FORBIDDEN]
        handles.append(Patch(facecolor=grey, edgecolor=edge, hatch=HATCHES[Class.FORBIDDEN], label="forbidden"))
    handles += [path_handle("where the plant was")] if paths else []
    result.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9.5, handlelength=2.0)
