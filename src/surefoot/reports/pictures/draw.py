"""Pictures of worlds: ``sf.draw(world, plan)`` shows what is certified, what could be, and what never will be.

Each family of worlds has its own picture, in the module of its name. With
``coordinates`` a world of your own is a map; any other is drawn as a graph, step by step, or, when that is too large to
read, as counts per step.
Nothing relies on colour alone: squares that are certified are plain, those that could be are hatched, unsafe ones
crossed out.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.errors import InvalidInput
from surefoot.model.graph import FloatArray
from surefoot.model.plant.plant import Plant
from surefoot.plan.plan import Plan
from surefoot.reports.classes import View, classify
from surefoot.reports.pictures.map import Coordinates, map_figure
from surefoot.reports.pictures.plant import PlantGrid, plant_figure
from surefoot.reports.pictures.style import LIGHT, Paper, pyplot, save_figure
from surefoot.reports.wording import wording_of
from surefoot.runs.plans_kept import Snapshot
from surefoot.worlds.world import World

_OWN = ("thermal", "driving", "rover", "power", "walk")  # families with a module here for their own picture


def draw(
    world: World | Plant,
    plan: Plan | Snapshot | None = None,
    path: str | Path | None = None,
    paper: Paper = LIGHT,
    *,
    coordinates: Coordinates | Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    paths: Sequence[FloatArray] = (),
) -> Any:
    """Draw a world or a plant, with a plan or with its fallback alone.

    Args:
        world: any world; those of the registry have pictures of their own. Or a plant: its certified cells over two
            coordinates, step by step; of further coordinates the cell of the start.
        plan: an agent's plan; without one, the picture shows the fallback and the truth.
        path: where to write it, ``.png`` or ``.svg``; without one, nothing is written.
        paper: light or dark.
        coordinates: where a state stands, ``lambda state: (x, y)``; then the picture is a map. Of a plant, the names
            of the two to show; by default the first two.
        steps: of a plant, which to show; by default four.
        paths: of a plant, trajectories to draw over the cells, such as ``run.paths[-1:]``.

    Returns the path, or, without one, the matplotlib figure. Needs the extra ``plot``.

    Examples:
        >>> sf.draw(sf.worlds.make("thermal/testing"), path="thermal.svg").name
        'thermal.svg'
        >>> sf.draw(sf.worlds.make("rover/testing"), path="map.png", coordinates=lambda cell: (cell[1], -cell[0])).name
        'map.png'
    """
    if isinstance(world, Plant):
        if callable(coordinates):
            fix = "Give the names of two of its coordinates."
            raise InvalidInput("the states of a plant have coordinates already", got="a function", fix=fix)
        return _draw_plant(world, plan, path, paper, coordinates, steps, paths)
    if coordinates is not None and not callable(coordinates):
        fix = "Give lambda state: (x, y)."
        raise InvalidInput("coordinates of a world must be a function", got=f"a {type(coordinates).__name__}", fix=fix)
    if isinstance(plan, Plan) and world.problem.growth is not None:
        world = world.on(plan.problem)
    if plan is not None and not isinstance(plan, Snapshot) and plan.declared.digest != world.problem.digest:
        raise InvalidInput("the plan is of another problem", got=repr(plan.declared), fix="Draw it with its own world.")
    plt, context = pyplot(paper)
    with context:
        view = classify(world, plan)
        figure = figure_of(plt, view, paper) if coordinates is None else map_figure(plt, view, paper, coordinates)
        if path is not None:
            return save_figure(plt, figure, Path(path))
        plt.close(figure)  # the caller holds it; pyplot need not
        return figure


def _draw_plant(
    plant: Plant,
    plan: Plan | Snapshot | None,
    path: str | Path | None,
    paper: Paper,
    coordinates: Sequence[str] | None,
    steps: Sequence[int] | None,
    paths: Sequence[FloatArray],
) -> Any:
    if isinstance(plan, Snapshot) or (plan is not None and plan.problem is not plant.problem):
        raise InvalidInput("the plan is of another plant", got=repr(plan), fix="Draw it with its own plant.")
    plt, context = pyplot(paper)
    with context:
        figure = plant_figure(plt, PlantGrid(plant.cells, plant.problem), plan, paper, coordinates, steps, paths)
        if path is not None:
            return save_figure(plt, figure, Path(path))
        plt.close(figure)
        return figure


def figure_of(plt: Any, view: View, paper: Paper) -> Any:
    """The picture of a world: its own, a map where its states are places, else a graph."""
    family = (view.world.name or "").partition("/")[0]
    place = wording_of(view.world.problem, view.world.name).place
    if place is not None and family not in _OWN:
        return map_figure(plt, view, paper, lambda state: (place(state)[0], -place(state)[1]), ("column", "row"))
    kind = family if family in _OWN else "graph"
    module = importlib.import_module(f"surefoot.reports.pictures.{kind}")  # loads what only that family needs
    return getattr(module, f"{kind}_figure")(plt, view, paper)
