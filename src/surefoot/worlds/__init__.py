"""The truth: worlds to try a learner on, by name or of your own making.

Examples:
    >>> sf.worlds.make("thermal/testing").problem
    Problem(horizon=6, triplets=149, cost_dim=5, transition_dim=3, limits=[temperature])

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
    """Register every named world with Gymnasium, as ``surefoot/thermal-small-v0`` and so on.

    Examples:
        >>> import gymnasium
        >>> sf.worlds.register_all()
        >>> gymnasium.make("surefoot/thermal-testing-v0").action_space
        Discrete(3)
    """
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
