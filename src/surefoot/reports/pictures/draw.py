"""Pictures of worlds: ``sf.draw(world, plan)`` shows what is certified, what could be, and what never will be.

Some families of worlds have their own picture, in the module of their name. With ``coordinates``, any world is drawn as
a map; otherwise as a graph, step by step, or, if that is too large to read, as counts per step. Nothing relies on
colour alone: certified squares are plain, those that could be certified are hatched, unsafe ones crossed out.

:class:`FramePainter` renders environments: the same picture, with the path of an episode. The environment loads it by
name (:mod:`surefoot.worlds.env`), because its room is below this one. The picture shows the truth; it is for people,
and no observation contains any of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from surefoot.checks import of_kind
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.plant.plant import Plant
from surefoot.plan.plan import Plan
from surefoot.reports.classes import View, classify
from surefoot.reports.pictures.map import Coordinates, map_figure
from surefoot.reports.pictures.plant import PlantGrid, plant_figure
from surefoot.reports.pictures.style import LIGHT, Paper, pyplot, save_figure
from surefoot.reports.wording import wording_of
from surefoot.runs.plans_kept import Snapshot
from surefoot.worlds.env import Walked
from surefoot.worlds.world import World

DPI = 100  # of a frame
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
        world: any world; registered ones have their own pictures. Or a plant: its certified cells over two
            coordinates, step by step, at the start's cell in all other coordinates.
        plan: an agent's plan; without one, the picture shows the fallback and the truth.
        path: where to write it, ``.png`` or ``.svg``; without one, nothing is written.
        paper: light or dark.
        coordinates: where to put a state, ``lambda state: (x, y)``; the picture is then a map. For a plant, the names
            of the two coordinates to show; by default the first two.
        steps: for a plant, which steps to show; by default four.
        paths: for a plant, trajectories to draw over the cells, such as ``run.paths[-1:]``.

    Returns the path, or, without one, the matplotlib figure. Needs the extra ``plot``.

    Examples:
        >>> sf.draw(sf.worlds.make("thermal/testing"), path="thermal.svg").name
        'thermal.svg'
        >>> sf.draw(sf.worlds.make("rover/testing"), path="map.png", coordinates=lambda cell: (cell[1], -cell[0])).name
        'map.png'
    """
    of_kind(world, (World, Plant), "draw needs a World or a Plant", "The plan comes second.")
    of_kind(plan, (Plan, Snapshot, type(None)), "draw needs a Plan", "Of an agent, give agent.plan.")
    if isinstance(world, Plant):
        if callable(coordinates):
            fix = "Give the names of two of its coordinates."
            raise InvalidInput("the states of a plant already have coordinates", got="a function", fix=fix)
        if isinstance(plan, Snapshot) or (plan is not None and plan.declared.first is not world.problem):
            raise InvalidInput("the plan is of another plant", got=repr(plan), fix="Draw it with its own plant.")
        grid, known = PlantGrid(world.cells, world.problem), plan
        return _drawn(lambda plt: plant_figure(plt, grid, known, paper, coordinates, steps, paths), path, paper)
    if coordinates is not None and not callable(coordinates):
        fix = "Give lambda state: (x, y)."
        raise InvalidInput("coordinates of a world must be a function", got=f"a {type(coordinates).__name__}", fix=fix)
    if isinstance(plan, Plan) and world.problem.growth is not None:
        world = world.on(plan.problem)
    if plan is not None and not isinstance(plan, Snapshot) and plan.declared.digest != world.problem.digest:
        raise InvalidInput("the plan is of another problem", got=repr(plan.declared), fix="Draw it with its own world.")
    view, at = classify(world, plan), coordinates
    return _drawn(
        lambda plt: figure_of(plt, view, paper) if at is None else map_figure(plt, view, paper, at), path, paper
    )


def _drawn(make: Callable[[Any], Any], path: str | Path | None, paper: Paper) -> Any:
    """The path that the figure was written to; without one, the figure itself."""
    plt, context = pyplot(paper)
    with context:
        figure = make(plt)
        if path is not None:
            return save_figure(plt, figure, Path(path))
        plt.close(figure)  # the caller holds it; pyplot need not
        return figure


def figure_of(plt: Any, view: View, paper: Paper) -> Any:
    """The picture of a world: its own, a map if its states are places, otherwise a graph."""
    family = (view.world.name or "").partition("/")[0]
    place = wording_of(view.world.problem, view.world.name).place
    if place is not None and family not in _OWN:
        return map_figure(plt, view, paper, lambda state: (place(state)[0], -place(state)[1]), ("column", "row"))
    kind = family if family in _OWN else "graph"
    module = importlib.import_module(f"surefoot.reports.pictures.{kind}")  # loads what only that family needs
    return getattr(module, f"{kind}_figure")(plt, view, paper)


# --- frames of an episode


@dataclass(frozen=True, eq=False)
class _WalkedView(View):
    """A view whose path is that of an episode."""

    walked: Walked

    @cached_property
    def path(self) -> list[tuple[int, int]]:
        return list(enumerate(self.walked.states))

    @property
    def path_name(self) -> str:
        return "the episode so far"


class FramePainter:
    """Draws the episodes of one world, and shows them with ``window``."""

    def __init__(self, world: World, window: bool) -> None:
        self._view = classify(world)
        self._window = _Window(world.name or "surefoot") if window else None

    def frame(self, walked: Walked) -> NDArray[np.uint8]:
        """(height, width, 3): the world with the path so far; before the first step, with the fallback's."""
        plt, context = pyplot(LIGHT)
        with context:
            figure = figure_of(plt, self._with(walked), LIGHT)
            figure.set_dpi(DPI)
            figure.canvas.draw()
            picture: NDArray[np.uint8] = np.array(figure.canvas.buffer_rgba())[:, :, :3].copy()
            plt.close(figure)
        if self._window is not None:
            self._window.show(picture)
        return picture

    def _with(self, walked: Walked) -> View:
        view = self._view
        if not walked.pairs:
            return view
        action = [row.copy() for row in view.action]
        for h, pair in enumerate(walked.pairs):
            action[h][walked.states[h]] = pair
        return _WalkedView(view.world, view.pairs, view.states, tuple(action), view.learned, walked)

    def close(self) -> None:
        if self._window is not None:
            self._window.close()


class _Window:
    """A window from the standard library; without a screen it says so once and shows nothing."""

    def __init__(self, title: str) -> None:
        self._root: Any = None
        self._label: Any = None
        try:
            import tkinter

            self._root = tkinter.Tk()
            self._root.title(title)
            self._label = tkinter.Label(self._root)
            self._label.pack()
        except Exception as error:  # tkinter.TclError cannot be named without tkinter
            self._root = None
            gymnasium.logger.warn(f"no window can be opened, so nothing is shown: {error}")

    def show(self, picture: NDArray[np.uint8]) -> None:
        if self._root is None:
            return
        import tkinter

        height, width, _ = picture.shape
        image = tkinter.PhotoImage(data=b"P6 %d %d 255 " % (width, height) + picture.tobytes(), format="PPM")
        self._label.configure(image=image)
        self._label.image = image  # else it is collected, and the window stays grey
        self._root.update()

    def close(self) -> None:
        if self._root is not None:
            self._root.destroy()
            self._root = None
