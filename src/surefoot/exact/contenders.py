"""The agents that can be compared on a world: those of the registry, and the oracle shield, which needs the world.

Sweeps and commands choose agents here; without a World, use :mod:`surefoot.agents.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.agents.registry import AGENTS, Roster
from surefoot.checks import options_of

if TYPE_CHECKING:
    from surefoot.agents.agent import Agent
    from surefoot.worlds.world import World

ORACLE = "oracle-shield"
GIVEN = ("problem", "world", "on")  # what the comparison gives an agent; all else are options
CONTENDERS = Roster({**AGENTS.homes, ORACLE: "exact.oracle_shield.OracleShield"})


def plans_on_clusters(name: str) -> bool:
    """Can this agent's plans be made on a cluster?"""
    return "on" in options_of(CONTENDERS.kind(name), without=())


def agent_for(name: str, world: World, **options: Any) -> Agent:
    """An agent for a world, with its options; all but the oracle shield get only the problem."""
    made: Any = CONTENDERS.kind(name)
    agent: Agent = made(world if name == ORACLE else world.problem, **options)
    return agent
