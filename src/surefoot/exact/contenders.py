"""Who can be compared on a world: every agent of the registry, and the oracle shield, which no problem can make.

Sweeps and commands choose agents here; whoever has a Problem and no World uses :mod:`surefoot.agents.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.agents import registry

if TYPE_CHECKING:
    from surefoot.agents.agent import Agent
    from surefoot.worlds.world import World

ORACLE = "oracle-shield"
GIVEN = ("problem", "world")  # what the comparison gives an agent; all else are options


def names() -> tuple[str, ...]:
    """Those of the registry, and the oracle shield."""
    return (*registry.names(), ORACLE)


def kind(name: str) -> type[Agent]:
    """The class behind a name."""
    if name == ORACLE:
        from surefoot.exact.oracle_shield import OracleShield

        return OracleShield
    return registry.kind(name, among=names())


def make(name: str, world: World, **options: Any) -> Agent:
    """An agent for a world, with its options; all but the oracle shield are handed the problem alone."""
    made: Any = kind(name)
    agent: Agent = made(world if name == ORACLE else world.problem, **options)
    return agent
