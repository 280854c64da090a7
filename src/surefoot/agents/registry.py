"""Agents by name."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.agents.agent import Agent
    from surefoot.model.problem import Problem

_HOMES = {
    "lsvi-new": ("surefoot.agents.lsvi_new", "LsviNew"),
    "lsvi-new-paper": ("surefoot.agents.lsvi_new_paper", "LsviNewPaper"),
    "fallback": ("surefoot.agents.fallback", "Fallback"),
    "ucrl-vtr": ("surefoot.agents.ucrl_vtr", "UcrlVtr"),
    "slucb-qvi": ("surefoot.agents.slucb_qvi", "SlucbQvi"),
    "static-shield": ("surefoot.agents.static_shield", "StaticShield"),
}


def names() -> tuple[str, ...]:
    """The agents that :func:`make` knows.

    Examples:
        >>> "lsvi-new" in sf.agents.names()
        True
    """
    return tuple(_HOMES)


def kind(name: str, among: tuple[str, ...] = tuple(_HOMES)) -> type[Agent]:
    """The class behind a name; ``among``: the names that an unknown one is answered with."""
    if name not in _HOMES:
        near = difflib.get_close_matches(name, among, n=3, cutoff=0.4) or list(among)
        raise InvalidInput("no such agent", got=repr(name), fix=f"Did you mean {', '.join(near)}?")
    module, attribute = _HOMES[name]
    found: type[Agent] = getattr(importlib.import_module(module), attribute)
    return found


def make(name: str, problem: Problem, **options: Any) -> Agent:
    """An agent by name, with its options.

    Examples:
        >>> sf.agents.make("lsvi-new", sf.worlds.make("thermal/testing").problem, failure_probability=0.01)
        LsviNew(episodes=0, replans=1)
    """
    return kind(name)(problem, **options)
