"""Pictures of worlds: ``sf.draw(world, plan)`` shows what is certified, what could be, and what never will be.

Each kind of world has its own picture (a module in ``pictures``), chosen by its id in the registry. With
``coordinates`` a world of your own is a map; any other is drawn as a graph, step by step, or, when that is too large to
read, as counts per step.
Nothing relies on colour alone: squares that are certified are plain, those that could be are hatched, unsafe ones
crossed out.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from surefoot.errors import InvalidInput
from surefoot.plan.plan import Plan
from surefoot.reports.classes import View, classify
from surefoot.reports.figures import pyplot, save_figure
from surefoot.reports.pictures import places
from surefoot.reports.pictures.places import Coordinates
from surefoot.reports.style import LIGHT, Paper
from surefoot.runs.plans_kept import Snapshot
from surefoot.worlds.world import World

KINDS = {"thermal": "heat", "driving": "road", "rover": "terrain", "power": "grid"}


def draw(
    world: World,
    plan: Plan | Snapshot | None = None,
    path: str | Path | None = None,
    paper: Paper = LIGHT,
    *,
    coordinates: Coordinates | None = None,
) -> Any:
    """Draw a world, with a plan or with its fallback alone.

    Args:
        world: any world; those of the registry have pictures of their own.
        plan: an agent's plan; without one, the picture shows the fallback and the truth.
        path: where to write it, ``.png`` or ``.svg``; without one, nothing is written.
        paper: light or dark.
        coordinates: where a state stands, ``lambda state: (x, y)``; then the picture is a map.

    Returns the path, or, without one, the matplotlib figure. Needs the extra ``plot``.

    Examples:
        >>> sf.draw(sf.worlds.make("thermal/testing"), path="thermal.svg").name
        'thermal.svg'
        >>> sf.draw(sf.worlds.make("rover/testing"), path="map.png", coordinates=lambda cell: (cell[1], -cell[0])).name
        'map.png'
    """
    if plan is not None and not isinstance(plan, Snapshot) and plan.problem.digest != world.problem.digest:
        raise InvalidInput("the plan is of another problem", got=repr(plan.problem), fix="Draw it with its own world.")
    plt, context = pyplot(paper)
    with context:
        view = classify(world, plan)
        figure = figure_of(plt, view, paper) if coordinates is None else places.figure(plt, view, paper, coordinates)
        if path is not None:
            return save_figure(plt, figure, Path(path))
        plt.close(figure)  # the caller holds it; pyplot need not
        return figure


def figure_of(plt: Any, view: View, paper: Paper) -> Any:
    """The picture of a world, by its kind."""
    kind = KINDS.get((view.world.name or "").partition("/")[0], "layers")
    module = importlib.import_module(f"surefoot.reports.pictures.{kind}")
    return module.figure(plt, view, paper)
