"""A plant: the certified cells over two coordinates, step by step, with forbidden ranges and trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray
from surefoot.model.layer import NO_ACTION
from surefoot.model.plant.build import centres
from surefoot.model.plant.cells import Cells
from surefoot.model.plant.cellwise import cells_in
from surefoot.model.plant.measures import coordinate
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan
from surefoot.reports.classes import Class
from surefoot.reports.pictures.marks import FILLS, HATCHES, draw_path, path_handle
from surefoot.reports.pictures.style import Paper, literal

PANELS = 4


@dataclass(frozen=True, eq=False)
class PlantGrid:
    """What a picture needs of a plant, or of a study's files."""

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
    title = "no plan: the fallback alone"
    if plan is not None:
        title = f"plan {plan.number}: {plan.n_certified()} pairs certified"
    result.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
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

    problem = plant.problem if plan is None else plan.problem
    shown = _shown(plant.cells, problem)
    share, fallback, forbidden = (_slice(plant, shown, row, at) for row in _cells(plant.cells, shown, problem, plan, h))
    x = np.asarray(shown.edges[at[0]])
    y = np.asarray(shown.edges[at[1]]) if len(at) > 1 else np.array([0.0, 1.0])
    for (i, j), part in np.ndenumerate(share):
        place: dict[str, Any] = {"xy": (x[i], y[j]), "width": x[i + 1] - x[i], "height": y[j + 1] - y[j]}
        if forbidden[i, j]:
            axes.add_patch(Rectangle(**place, **_forbidden(), linewidth=0.0))
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


def _shown(cells: Cells, problem: Problem) -> Cells:
    """The cells to draw: all, or for a graph that grows a box around those that it has before the last step."""
    if problem.graph.beyond is None:
        return cells
    held = np.concatenate([cells_in(problem, h, cells)[0] for h in range(problem.horizon - 1)])
    index = np.unravel_index(held, cells.shape)
    parts = zip(cells.edges, index, strict=True)
    return Cells(cells.names, tuple(edge[np.arange(i.min(), i.max() + 2)] for edge, i in parts))


def _cells(
    cells: Cells, shown: Cells, problem: Problem, plan: Plan | None, h: int
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """For all cells shown: the share of inputs that are certified, where the fallback goes, and what is forbidden."""
    own, states = cells_in(problem, h, cells)
    at, layer = shown.of(centres(cells, own)), problem.graph.layers[h]
    inputs = int(layer.state_ptr[states[0] + 1] - layer.state_ptr[states[0]])
    pairs = layer.state_ptr[states][:, None] + np.arange(inputs)
    share, fallback, forbidden = np.zeros(shown.number), np.zeros(shown.number, bool), np.zeros(shown.number, bool)
    fallback[at], forbidden[at] = layer.fallback[states] != NO_ACTION, layer.forbidden[states]
    share[at] = fallback[at] / inputs if plan is None else plan.certified_sets.pairs[h][pairs].mean(axis=1)
    return share, fallback, forbidden


def _slice(plant: PlantGrid, shown: Cells, row: Any, at: list[int]) -> Any:
    """(cells, cells) over the coordinates shown, at the start's cell in the others."""
    starts = np.array(plant.problem.starts)
    middle = np.unravel_index(shown.of(centres(plant.cells, starts[len(starts) // 2 :][:1]))[0], shown.shape)
    cut = tuple(slice(None) if d in at else int(middle[d]) for d in range(shown.dim))
    found = row.reshape(shown.shape)[cut]
    if len(at) == 1:
        return found[:, None]
    return found if at[0] < at[1] else found.T


def _forbidden() -> dict[str, Any]:
    """The look of what is forbidden."""
    from matplotlib.colors import to_rgba

    colour = FILLS[Class.FORBIDDEN]
    return {"facecolor": to_rgba(colour, 0.25), "edgecolor": colour, "hatch": HATCHES[Class.FORBIDDEN]}


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
    problem = plant.problem if plan is None else plan.problem
    layers = [(layer, cells_in(problem, h, plant.cells)[1]) for h, layer in enumerate(problem.graph.layers)]
    if any(layer.forbidden[states].any() for layer, states in layers):
        handles.append(Patch(**_forbidden(), label="forbidden"))
    handles += [path_handle("where the plant was")] if paths else []
    result.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9.5, handlelength=2.0)
