"""What a sweep runs: a world, agents with their options, and seeds, checked before anything is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.checks import check_options, of_kind, whole
from surefoot.errors import InvalidInput
from surefoot.exact.contenders import CONTENDERS, GIVEN
from surefoot.worlds import registry as worlds
from surefoot.worlds.world import World

FORMAT, VERSION = "surefoot-sweep", 2  #: of the manifest
MOST = 2**63 - 1  #: the largest seed or number of episodes: it names folders and fills int64 columns

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}\Z")


@dataclass(frozen=True)
class Contender:
    """An agent by name, with its options, under a label that names its folder."""

    agent: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""  # by default the agent's name

    @property
    def name(self) -> str:
        return self.label or self.agent


@dataclass(frozen=True)
class Spec:
    """Everything that defines a sweep, checked; whether the world takes its options is known only when it is made."""

    world: str | World  # a name, a file, or a world of your own
    agents: Sequence[Contender]
    seeds: Sequence[int]
    episodes: int
    world_options: Mapping[str, Any] = field(default_factory=dict)
    snapshot_seeds: int = 1  # how many of the seeds, the first ones, keep snapshots of plans

    def __post_init__(self) -> None:
        if isinstance(self.world, World):
            worlds.refuse_options(self.world_name, self.world_options)
        else:
            check_world_options(self.world, self.world_options)
        _below("episodes", whole("episodes", self.episodes, 1))
        whole("snapshot_seeds", self.snapshot_seeds, 0)
        of_kind(self.seeds, Sequence, "the seeds of a sweep are a list", "Give [0, 1, 2], or range(3).")
        for each in self.agents:
            of_kind(each, Contender, "a sweep compares Contenders", "Give Contender(agent, options).")
        if not self.agents:
            raise InvalidInput("a sweep needs an agent", fix=f"Choose from {', '.join(CONTENDERS.names())}.")
        if not self.seeds:
            raise InvalidInput("a sweep needs a seed")
        for seed in self.seeds:
            _below("seed", whole("seed", seed, 0))
        _refuse_twice("seed", [str(seed) for seed in self.seeds])
        for each in self.agents:
            kind = CONTENDERS.kind(each.agent)
            if not _LABEL.match(each.name):
                fix = "Use up to 64 letters, digits, dots, dashes, plus signs and underscores."
                raise InvalidInput("a label cannot name a folder", got=repr(each.name), fix=fix)
            check_options(each.agent, kind, each.options, without=GIVEN)
        _refuse_twice("label", [each.name.lower() for each in self.agents])

    @property
    def world_name(self) -> str:
        """The world's name in the manifest and in titles."""
        if isinstance(self.world, World):
            return self.world.name or "a world of your own"
        return Path(self.world).name if worlds.is_file_name(self.world) else self.world

    @property
    def own_world(self) -> bool:
        """True if no registry can make the world again, so that a copy is kept with the runs."""
        return isinstance(self.world, World) or worlds.is_file_name(self.world)

    def make_world(self) -> World:
        return self.world if isinstance(self.world, World) else worlds.make(self.world, **self.world_options)

    def document(self) -> dict[str, Any]:
        """The part of the manifest that the user decides."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "world": {"name": self.world_name, "options": dict(self.world_options), "file": None},
            "agents": [{"label": c.name, "agent": c.agent, "options": dict(c.options)} for c in self.agents],
            "seeds": list(self.seeds),
            "episodes": self.episodes,
        }


def _below(name: str, value: int) -> None:
    if value > MOST:
        raise InvalidInput(f"{name} is too large", got=f"more than {MOST}")


def check_world_options(world: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown world, or options that it does not have."""
    if worlds.is_file_name(world):
        return worlds.refuse_options(world, options)
    worlds.family_of(world)
    if options:
        makes, given = world_function(world)
        of_all = {name: value for name, value in options.items() if name in ("mismatch", "declared")}
        check_options(world, worlds.make, of_all)
        own = {name: value for name, value in options.items() if name not in of_all}
        check_options(world, makes, own, without=given)


def world_function(world: str) -> tuple[Callable[..., World], tuple[str, ...]]:
    """The function that makes a named world, and the arguments that its name already determines."""
    family = worlds.family_of(world)
    return family.maker(), ("size",) if family.sizes else ()


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        fix = "Give one of them a name of its own: LABEL=AGENT." if what == "label" else ""
        raise InvalidInput(f"a {what} is given twice", got=twice, fix=fix)
