"""The named worlds in Gymnasium's registry.

Gymnasium has no plug-ins since its version 1.0: an environment is found once the package that registers it was
imported. ``import surefoot`` is enough, before or after ``import gymnasium``. A process that imports neither by itself
(a worker that is spawned from a notebook) is told by the id: ``surefoot:surefoot/thermal-small-v0``.
"""

from __future__ import annotations

from surefoot.worlds import registry

PREFIX = "surefoot/"


def environment_id(name: str) -> str:
    """``thermal/small`` is ``surefoot/thermal-small-v0`` in Gymnasium, whose names hold one slash at most."""
    return f"{PREFIX}{name.replace('/', '-')}-v0"


def register_all() -> None:
    """Enter every named world into Gymnasium's registry; those already there stay. ``import surefoot`` calls it.

    Examples:
        >>> import gymnasium
        >>> sf.worlds.register_all()
        >>> gymnasium.make("surefoot/thermal-testing-v0").action_space
        Discrete(3)
    """
    from gymnasium.envs import registration

    for name in registry.names():
        if environment_id(name) not in registration.registry:
            registration.register(
                id=environment_id(name), entry_point="surefoot.worlds.env:make_env", kwargs={"name": name}
            )
