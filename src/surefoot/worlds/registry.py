"""Worlds by name: stable ids such as ``thermal/small``, made when asked for.

The list is a constant. A world's module is imported when one of its names is made, so that reading the
list costs nothing.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.worlds.world import World

#: What tests and users may count on in a world, beyond what every world keeps.
#: ``traps``: somewhere an action that breaks nothing now can lead where every action breaks a limit.
TRAITS = frozenset({"traps"})


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of world in several sizes, all made by one function ``module.function(size, **knobs)``."""

    name: str
    function: str  # "module:function"
    description: str
    sizes: dict[str, str]  # size -> what it is for
    testing: str  # the size for quick tests
    traits: frozenset[str] = frozenset()


FAMILIES: tuple[Family, ...] = (
    Family(
        name="thermal",
        function="surefoot.worlds.thermal:thermal",
        description="a machine that earns by running hot, and cannot be stopped once too hot",
        sizes={
            "testing": "for tests",
            "small": "the quick start",
            "medium": "a finer grid",
        },
        testing="testing",
        traits=frozenset({"traps"}),
    ),
)


def names() -> dict[str, str]:
    """Every world's id, with one line on what it is."""
    return {
        f"{family.name}/{size}": f"{family.description} ({purpose})"
        for family in FAMILIES
        for size, purpose in family.sizes.items()
    }


def family_of(name: str) -> Family:
    """The family of a world's id; an unknown one is an error that offers the nearest names."""
    known = names()
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
        offer = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
        raise InvalidInput("no such world", got=repr(name), fix=offer)
    return next(family for family in FAMILIES if family.name == name.partition("/")[0])


def make(name: str, **knobs: Any) -> World:
    """The named world; ``knobs`` are the keywords of its function (see its documentation)."""
    family = family_of(name)
    module, _, function = family.function.partition(":")
    world: World = getattr(importlib.import_module(module), function)(size=name.partition("/")[2], **knobs)
    return world
