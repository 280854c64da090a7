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

#: What tests and users may rely on in a world, beyond what holds for every world.
#: ``gain``: the best safe value is at least 1.3 times the fallback's, and can be learnt.
#: ``lookahead``: a learner that looks one step ahead reaches a state without a safe action.
#: ``stochastic``: some action has more than one possible successor.
#: ``unsafe_states``: some states that can be reached have no safe action.
#: ``traps``: somewhere an action that breaks nothing now can lead where every action breaks a limit.
TRAITS = frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"})


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of world in several sizes, all made by one function ``module.function(size, **options)``.

    Without sizes there is one world, named like its family and made by ``module.function(**options)``.
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
        function="surefoot.worlds.named.thermal:thermal",
        description="a machine that earns by running hot, and cannot be stopped once too hot",
        sizes={
            "testing": "for tests",
            "small": "the quick start",
            "medium": "a finer grid",
        },
        testing="testing",
        traits=frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"}),
    ),
    Family(
        name="power",
        function="surefoot.worlds.named.power:power",
        description="a load pocket with an expensive generator and a storage, whose lines must not be overloaded",
        sizes={
            "testing": "for tests: case6ww, three hours a step",
            "testing-ac": "the same with AC flow as truth",
            "case9": "two hours a step",
            "case9-ac": "the same with AC flow as truth",
            "case30": "one hour a step",
            "case30-ac": "the same with AC flow as truth",
        },
        testing="testing",
        traits=frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"}),
    ),
    Family(
        name="driving",
        function="surefoot.worlds.named.driving:driving",
        description="a lorry that follows a car, and must be able to stop in time",
        sizes={
            "testing": "for tests: up to 15 m/s",
            "small": "up to 20 m/s",
            "medium": "up to 30 m/s",
        },
        testing="testing",
        traits=frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"}),
    ),
    Family(
        name="rover",
        function="surefoot.worlds.named.rover:rover",
        description="a rover on a real elevation map, whose best rock slides into ravines",
        sizes={
            "testing": "for tests: 6 x 6 cells",
            "small": "10 x 10 cells",
            "medium": "16 x 16 cells",
        },
        testing="testing",
        traits=frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"}),
    ),
    Family(
        name="figure1",
        function="surefoot.worlds.named.figure1:figure1",
        description="the paper's sketch of safe and unsafe subgraphs, five steps and two actions",
        traits=frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"}),
    ),
    Family(
        name="toy-text",
        function="surefoot.worlds.named.toy_text:toy_text",
        description="Gymnasium's small grids, with holes, cliffs and wrong stops as limits",
        sizes={
            "cliff-walking": "the way along the edge is shorter; for tests",
            "cliff-walking-slippery": "moves slip to the side",
            "frozen-lake-4x4": "thin ice around the holes",
            "frozen-lake-8x8": "a larger lake",
            "taxi": "a passenger to fetch, and stops that are not allowed",
        },
        testing="cliff-walking",
        traits=frozenset({"gain"}),
    ),
    Family(
        name="ladder",
        function="surefoot.worlds.named.ladder:ladder",
        description="generated, star-convex and full of traps, of any size",
        sizes={
            "testing": "for tests: 1e3 triplets a step, 4 features",
            "1e4": "1e4 triplets a step, 16 features",
            "1e5": "1e5 triplets a step, 32 features",
            "1e6": "1e6 triplets a step, 64 features, half a gigabyte",
        },
        testing="testing",
        traits=frozenset({"gain", "lookahead", "stochastic", "traps", "unsafe_states"}),
    ),
    Family(
        name="lower-bound/1",
        function="surefoot.worlds.named.lower_bound:first",
        description="Theorem 3's first instance: an action that pays and is unsafe",
        traits=frozenset({"gain", "unsafe_states"}),
    ),
    Family(
        name="lower-bound/2",
        function="surefoot.worlds.named.lower_bound:second",
        description="Theorem 3's second instance: the same action is safe, which no safe learner can find out",
        traits=frozenset({"unsafe_states"}),
    ),
    Family(
        name="ablation/look-ahead",
        function="surefoot.worlds.named.ablation:look_ahead",
        description="a shortcut that is harmless for two steps and then has no way out: needs Idea I",
        traits=frozenset({"gain", "lookahead", "traps", "unsafe_states"}),
    ),
    Family(
        name="ablation/transition",
        function="surefoot.worlds.named.ablation:transition",
        description="a trial that opens the best action and pays less than idling: needs Idea II",
        traits=frozenset({"gain"}),
    ),
    Family(
        name="ablation/future",
        function="surefoot.worlds.named.ablation:future",
        description="a rarely reached test bench whose bonus is lost by clipping: needs Idea III",
        traits=frozenset({"gain", "stochastic"}),
    ),
    Family(
        name="ablation/past",
        function="surefoot.worlds.named.ablation:past",
        description="a first decision that needs a larger bonus than Idea II gives: needs Idea IV",
        traits=frozenset({"gain"}),
    ),
)


def names() -> dict[str, str]:
    """Every world's id, with one line on what it is.

    Examples:
        >>> list(sf.worlds.names())[:3]
        ['thermal/testing', 'thermal/small', 'thermal/medium']
    """
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
        own = "" if near else " With a world of your own, call surefoot.run in Python."
        raise InvalidInput("no such world", got=repr(name), fix=offer + own)
    return next(family for family in FAMILIES if name in family.ids())


def make(name: str, **options: Any) -> World:
    """The named world; its function documents the ``options``.

    Examples:
        >>> sf.worlds.make("thermal/testing", bound=0.62).problem.limits[0].bound
        0.62
    """
    family = family_of(name)
    module, _, function = family.function.partition(":")
    sized = {"size": family.ids()[name]} if family.sizes else {}
    world: World = getattr(importlib.import_module(module), function)(**sized, **options)
    return world.named(name)
