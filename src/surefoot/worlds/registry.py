"""Worlds by name: stable ids such as ``thermal/small``. A world's module is imported when one of its worlds is made."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.checks import check_options, nearest
from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.worlds.world import World


@dataclass(frozen=True, slots=True)
class WorldFamily:
    """A kind of world in several sizes, all made by one function ``module.function(size, **options)``.

    Without sizes there is one world, named like its family and made by ``module.function(**options)``.
    """

    name: str
    function: str  # "module:function" of surefoot.worlds.named
    description: str
    sizes: dict[str, str] = field(default_factory=dict)  # size -> what it is for; the first is for quick tests
    growing: tuple[str, ...] = ()  # sizes whose graph grows (spec 9); they cannot be environments

    def ids(self) -> dict[str, str]:
        """Every world of the family, the quickest first, with its size ("" without sizes)."""
        return {f"{self.name}/{size}": size for size in self.sizes} or {self.name: ""}

    def maker(self) -> Callable[..., World]:
        """The function that makes them; imports its module."""
        module, _, function = self.function.partition(":")
        makes: Callable[..., World] = getattr(importlib.import_module(f"surefoot.worlds.named.{module}"), function)
        return makes


FAMILIES: tuple[WorldFamily, ...] = (
    WorldFamily(
        "thermal",
        "thermal:thermal",
        "a machine that earns more when it runs hot, and cannot be stopped once it is too hot",
        {"testing": "for tests", "small": "the quick start", "medium": "a finer grid"},
    ),
    WorldFamily(
        "power",
        "power:power",
        "a load pocket with an expensive generator and a storage unit, whose lines must not be overloaded",
        {
            "testing": "for tests: case6ww, three hours per step",
            "testing-ac": "the same with AC flow as truth",
            "case9": "two hours per step",
            "case9-ac": "the same with AC flow as truth",
            "case30": "one hour per step",
            "case30-ac": "the same with AC flow as truth",
        },
    ),
    WorldFamily(
        "driving",
        "driving:driving",
        "a lorry that follows a car and must be able to stop in time",
        {"testing": "for tests: up to 15 m/s", "small": "up to 20 m/s", "medium": "up to 30 m/s"},
    ),
    WorldFamily(
        "rover",
        "rover:rover",
        "a rover on a real elevation map, whose best rock slides into ravines",
        {"testing": "for tests: 6 x 6 cells", "small": "10 x 10 cells", "medium": "16 x 16 cells"},
    ),
    WorldFamily(
        "dosing",
        "dosing:dosing",
        "one continuous dose per step, an unmeasured response, and a trap two steps later",
        {"testing": "for tests", "small": "eight levels, ten steps", "medium": "ten levels, fourteen steps"},
    ),
    WorldFamily(
        "throttle",
        "throttle:throttle",
        "the thermal machine with a continuous throttle instead of a grid of powers",
        {
            "testing": "for tests",
            "small": "like thermal/small",
            "medium": "a finer grid",
            "large": "a grid five times as fine, for plan times",
        },
    ),
    WorldFamily(
        "figure1", "figure1:figure1", "the paper's sketch of safe and unsafe subgraphs, five steps and two actions"
    ),
    WorldFamily(
        "toy-text",
        "toy_text:toy_text",
        "Gymnasium's small grids, with holes, cliffs and wrong stops as limits",
        {
            "cliff-walking": "for tests: the way along the edge is shorter",
            "cliff-walking-slippery": "moves slip to the side",
            "frozen-lake-4x4": "thin ice around the holes",
            "frozen-lake-8x8": "a larger lake",
            "taxi": "a passenger to fetch, and forbidden stops",
        },
    ),
    WorldFamily(
        "ladder",
        "ladder:ladder",
        "generated, star-convex and full of traps, of any size",
        {
            "testing": "for tests: 1e3 triplets per step, 4 features",
            "1e4": "1e4 triplets per step, 16 features",
            "1e5": "1e5 triplets per step, 32 features",
            "1e6": "1e6 triplets per step, 64 features, half a gigabyte",
        },
    ),
    WorldFamily(
        "heights",
        "heights:heights",
        "SNO-MDP's random grids, where climbs must not be too steep; with constant or varying thresholds",
        {"testing": "for tests: 7 x 7 cells", "small": "10 x 10 cells", "published": "20 x 20 cells, as published"},
    ),
    WorldFamily(
        "walk",
        "walk:walk",
        "a sled on an endless track that must know the bumps ahead; its graph grows",
        {"testing": "for tests: 6 steps, the whole graph", "small": "12 steps", "long": "40 steps"},
        growing=("small", "long"),
    ),
    WorldFamily("lower-bound/1", "lower_bound:first", "Theorem 3's first instance: an action that pays but is unsafe"),
    WorldFamily(
        "lower-bound/2",
        "lower_bound:second",
        "Theorem 3's second instance: the same action is safe, but no safe learner can find that out",
    ),
    WorldFamily(
        "ablation/look-ahead",
        "ablation:look_ahead",
        "a shortcut that is harmless for two steps and then a dead end: needs Idea I",
    ),
    WorldFamily(
        "ablation/transition",
        "ablation:transition",
        "a trial that opens the best action but pays less than idling: needs Idea II",
    ),
    WorldFamily(
        "ablation/future",
        "ablation:future",
        "a rarely reached test bench whose bonus is lost to clipping: needs Idea III",
    ),
    WorldFamily(
        "ablation/past", "ablation:past", "a first decision that needs more push than Idea II gives: needs Idea IV"
    ),
    WorldFamily(
        "ablation/stall",
        "ablation:stall",
        "dozens of trials open the best action, and each costs a little: needs directed exploration",
    ),
    WorldFamily(
        "ablation/stall-deep",
        "ablation:deep",
        "the same trials, two steps away: needs directed exploration that looks ahead",
    ),
)


def is_file_name(name: object) -> bool:
    """True if the name is that of a file rather than of a registered world."""
    return Path(str(name)).suffix.lower() in (".json", ".npz")


def refuse_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options for a world in a file."""
    if options:
        got = ", ".join(options)
        raise InvalidInput("a world in a file takes no options", where=str(name), got=got, fix="Leave them out.")


def described(name: str) -> str:
    """What a world shows, in a few words."""
    return "a world of your own" if is_file_name(name) else family_of(name).description


def names() -> dict[str, str]:
    """The id of every world, with one line on what it is.

    Examples:
        >>> list(sf.worlds.names())[:3]
        ['thermal/testing', 'thermal/small', 'thermal/medium']
    """
    return {
        name: f"{family.description} ({family.sizes[size]})" if size else family.description
        for family in FAMILIES
        for name, size in family.ids().items()
    }


def family_of(name: str) -> WorldFamily:
    """The family of a world's id; for an unknown one, an error that suggests the nearest names."""
    known = names()
    if name not in known:
        own = "A world of your own is a file, .json or .npz (world.save). Known worlds are"
        raise InvalidInput("no such world", got=repr(name), fix=nearest(str(name), known, own))
    return next(family for family in FAMILIES if name in family.ids())


def make(name: str, *, mismatch: float = 0.0, declared: bool = True, **options: Any) -> World:
    """Make a named world, or load one from a file, ``.json`` or ``.npz``.

    Args:
        name: as :func:`names` has it, or the path of a file.
        mismatch: how far the true costs are from linear, where it hurts; see :mod:`surefoot.worlds.world`.
        declared: whether the limits declare this; if not, no guarantee holds.
        options: the world's own, see its function; a file has none.

    Examples:
        >>> sf.worlds.make("thermal/testing", bound=0.62).problem.limits[0].bound
        0.62
    """
    from surefoot.worlds.world import mismatched

    if is_file_name(name):
        from surefoot.worlds.files import load_world

        refuse_options(name, options)
        return mismatched(load_world(Path(name)), mismatch, declared).named(Path(name).name)
    family = family_of(name)
    sized, maker = {"size": family.ids()[name]} if family.sizes else {}, family.maker()
    check_options(name, maker, options, without=tuple(sized), beside=("mismatch", "declared"))
    return mismatched(maker(**sized, **options), mismatch, declared).named(name)


# --- in Gymnasium's registry
#
# Since version 1.0, Gymnasium finds an environment only after the package that registers it was imported. ``import
# surefoot`` is enough, before or after ``import gymnasium``. For a process that imports neither (a worker of a
# notebook), the id says what to import: ``surefoot:surefoot/thermal-small-v0``.

PREFIX = "surefoot/"


def environment_id(name: str) -> str:
    """``thermal/small`` is ``surefoot/thermal-small-v0`` in Gymnasium, whose names allow only one slash."""
    return f"{PREFIX}{name.replace('/', '-')}-v0"


def environments() -> list[str]:
    """The named worlds that are environments: those whose graph does not grow."""
    return [name for family in FAMILIES for name, size in family.ids().items() if size not in family.growing]


def register_all() -> None:
    """Add the named worlds to Gymnasium's registry, if they are not there. ``import surefoot`` does this.

    Examples:
        >>> import gymnasium
        >>> sf.worlds.register_all()
        >>> gymnasium.make("surefoot/thermal-testing-v0").action_space
        Discrete(3)
    """
    from gymnasium.envs import registration

    for name in environments():
        if environment_id(name) not in registration.registry:
            registration.register(
                id=environment_id(name), entry_point="surefoot.worlds.env:make_env", kwargs={"name": name}
            )
