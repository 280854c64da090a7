"""The picture of a world with the way that an episode has walked: what its environment renders.

The environment loads this class by name (:mod:`surefoot.worlds.painting`): it is below this room, and knows nothing of
drawing. The picture shows the truth; it is for people, and no observation holds any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from surefoot.reports.classes import View, classify
from surefoot.reports.pictures.draw import figure_of
from surefoot.reports.pictures.style import LIGHT, pyplot
from surefoot.worlds.painting import Walked
from surefoot.worlds.world import World

DPI = 100


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
        """(height, width, 3): the world with the way so far; before the first step, with the fallback's."""
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
    """A window of the standard library's; where there is no screen, said once, and nothing is shown."""

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
