"""The truth: worlds to try a learner on, named ones or your own.

Examples:
    >>> sf.worlds.make("thermal/testing").problem
    Problem(horizon=6, triplets=149, cost_dim=5, transition_dim=3, limits=[temperature])

Nothing heavy is imported before it is used; only ``world.env()`` and :func:`register_all` import Gymnasium.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surefoot.worlds.registry import make, names, register_all

if TYPE_CHECKING:
    from surefoot.worlds.adapters import from_gymnasium
    from surefoot.worlds.named.tank import tank
    from surefoot.worlds.world import World

__all__ = ["World", "from_gymnasium", "make", "names", "register_all", "tank"]

_LATER = {"World": "world", "from_gymnasium": "adapters", "tank": "named.tank"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"surefoot.worlds.{_LATER[name]}"), name)
    raise AttributeError(f"module 'surefoot.worlds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
