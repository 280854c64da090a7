"""The truth: worlds that a learner is tried on, by name or of your own making.

    world = surefoot.worlds.make("thermal/small")
    surefoot.worlds.names()
    surefoot.worlds.from_gymnasium(env, horizon=20, cost=…, limit=…)    # any environment with a transition table

Nothing heavy is imported before it is used; Gymnasium only by ``world.env()`` and :func:`register_all`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.worlds.registry import make, names

if TYPE_CHECKING:
    from surefoot.worlds.adapters import from_gymnasium
    from surefoot.worlds.world import World

__all__ = ["World", "from_gymnasium", "make", "names", "register_all"]


def register_all() -> None:
    """Enter every named world into Gymnasium's registry, as ``surefoot/thermal-small-v0`` and so on."""
    from surefoot.worlds import env

    env.register_all()


def __getattr__(name: str) -> Any:
    if name == "World":
        from surefoot.worlds.world import World

        return World
    if name == "from_gymnasium":
        from surefoot.worlds.adapters import from_gymnasium

        return from_gymnasium
    raise AttributeError(f"module 'surefoot.worlds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
