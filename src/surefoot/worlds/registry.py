"""Worlds by name: stable ids such as ``thermal/small``, made when asked for.

The list is a constant. A world's module is imported when one of its names is made, so that reading the
list costs nothing.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.worlds.world import World

#: What tests and users may count on in a world, beyond what every world keeps.
#: ``traps``: somewhere an action that breaks nothing now can lead where every action breaks a limit.
TRAITS = frozenset({"traps"})


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of world in several sizes, all made by one function ``module.function(size, **knobs)``.

    Without sizes there is one world, named like its family and made by ``module.function(**knobs)``.
    """

    name: str
    function: str  # "module:function"
    description: str
    sizes: dict[str, str] = field(default_factory=dict)  # size -> what it is for
    testing: str = ""  # the size for quick tests
    traits: frozenset[str] = frozenset()

    def id_of(self, size: str) -> str:
        return f"{self.name}/{size}" if size else self.name

    def ids(self) -> dict[str, str]:
        """Every world of the family, with its size ("" without sizes)."""
        return {self.id_of(size): size for size in self.sizes or ("",)}


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
    Family(
        name="figure1",
        function="surefoot.worlds.figure1:figure1",
        description="the paper's sketch of safe and unsafe subgraphs, five steps and two actions",
        traits=frozenset({"traps"}),
    ),
    Family(
        name="ablation/look-ahead",
        function="surefoot.worlds.ablation:look_ahead",
        description="a shortcut that is harmless for two steps and then has no way out: needs Idea I",
        traits=frozenset({"traps"}),
    ),
    Family(
        name="ablation/transition",
        function="surefoot.worlds.ablation:transition",
        description="a trial that opens the best action and pays less than idling: needs Idea II",
    ),
    Family(
        name="ablation/future",
        function="surefoot.worlds.ablation:future",
        description="a seldom reached test bench whose bonus the clip swallows: needs Idea III",
    ),
    Family(
        name="ablation/past",
        function="surefoot.worlds.ablation:past",
        description="a first decision that needs more push than Idea II gives: needs Idea IV",
    ),
)


def names() -> dict[str, str]:
    """Every world's id, with one line on what it is."""
    return {
        name: f"{family.description} ({family.sizes[size]})" if size else family.description
        for family in FAMILIES
        for name, size in family.ids().items()
    }


def family_of(name: str) -> Family:
    """The family of a world's id; an unknown one is an error that offers the nearest names."""
    known = names()
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
        offer = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
        raise InvalidInput("no such world", got=repr(name), fix=offer)
    return next(family for family in FAMILIES if name in family.ids())


def make(name: str, **knobs: Any) -> World:
    """The named world; ``knobs`` are the keywords of its function (see its documentation)."""
    family = family_of(name)
    module, _, function = family.function.partition(":")
    sized = {"size": family.ids()[name]} if family.sizes else {}
    world: World = getattr(importlib.import_module(module), function)(**sized, **knobs)
    return world
