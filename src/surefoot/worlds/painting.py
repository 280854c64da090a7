"""Where an environment's pictures come from: a room above this one, loaded by name, as Gymnasium loads environments.

Worlds know nothing about drawing. ``PAINTER`` names a class with two methods, and nothing is imported before a picture
is needed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.worlds.world import World

MODES = ("rgb_array", "human")
PAINTER = "surefoot.reports.pictures.draw:FramePainter"


@dataclass(frozen=True)
class Walked:
    """An episode so far, by index: the states of steps 0, 1, …, and the pairs that were played in all but the last."""

    states: list[int] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)


class Painter(Protocol):
    """Draws one world, again and again."""

    def frame(self, walked: Walked) -> Any:
        """(height, width, 3) uint8: the world with the way walked so far."""

    def close(self) -> None:
        """Close the window, if there is one."""


def painter(world: World, window: bool) -> Painter:
    """The painter of a world; with ``window`` every frame is also shown."""
    module, _, name = PAINTER.partition(":")
    made: Painter = getattr(importlib.import_module(module), name)(world, window)
    return made
