"""From the command line and TOML to the Spec of a sweep; every error says where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surefoot.checks import check_options, nearest, options_of, whole
from surefoot.cli.options import file_stem
from surefoot.errors import InvalidInput, SurefootError
from surefoot.exact.contenders import CONTENDERS, GIVEN
from surefoot.storage.documents import read_toml
from surefoot.sweeps.spec import Contender, Spec
from surefoot.worlds.world import World

MOST_SEEDS = 100_000


@dataclass(frozen=True)
class RunOptions:
    """The options of 'surefoot run', from a file or the command line, with their defaults."""

    world: str | World = ""
    world_options: Mapping[str, Any] = field(default_factory=dict)
    agents: tuple[Contender, ...] = (Contender("lsvi-new"),)
    episodes: int = 20_000
    seeds: tuple[int, ...] = (0, 1, 2)
    out: Path | None = None
    jobs: int | None = None
    on: str | None = None
    plan_on: str | None = None
    snapshots: int = 1
    checkpoint_seconds: float = 10.0
    strict: bool = False

    def spec(self) -> Spec:
        if not self.world:
            raise InvalidInput("no world is named", fix="Name one, or set world in the file; see 'surefoot worlds'.")
        return Spec(self.world, self.agents, self.seeds, self.episodes, self.world_options, self.snapshots)

    def folder(self) -> Path:
        if self.out is not None:
            return self.out
        return Path("runs") / file_stem(self.world if isinstance(self.world, str) else self.world.name or "own")


# --- words --------------------------------------------------------------------------------------------------


def seeds_of(text: str) -> tuple[int, ...]:
    """``0:10`` is 0 … 9, ``3`` is 3, ``0,5,7`` are 0, 5 and 7."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})(?::(\d{1,18}))?\s*", part)
        if match is None or (match[2] is not None and int(match[2]) <= int(match[1])):
            raise InvalidInput("seeds are first:end, a number, or several separated by commas", got=repr(text))
        first = int(match[1])
        end = first + 1 if match[2] is None else int(match[2])
        if len(found) + end - first > MOST_SEEDS:
            raise InvalidInput("too many seeds", got=repr(text), fix=f"{MOST_SEEDS:,} at most.")
        found += range(first, end)
    return tuple(found)


def contenders_of(words: Sequence[str]) -> tuple[Contender, ...]:
    """AGENT, or LABEL=AGENT to compare an agent with itself under different options."""
    found = []
    for word in words:
        label, equals, agent = word.partition("=")
        CONTENDERS.kind(agent if equals else label)  # refuses an unknown one, with the nearest names
        found.append(Contender(agent, {}, label) if equals else Contender(label))
    return tuple(found)


def with_options(found: Sequence[Contender], given: Mapping[str, Any]) -> tuple[Contender, ...]:
    """NAME goes to every agent that takes it, LABEL.NAME to one."""
    result = list(found)
    for key, value in given.items():
        label = max((c.name for c in result if key.startswith(f"{c.name}.")), key=len, default="")
        name = key[len(label) + 1 :] if label else key
        takers = [i for i, c in enumerate(result) if (c.name == label if label else name in _options_of(c))]
        if not takers:
            if "." in key:
                names = ", ".join(c.name for c in result)
                raise InvalidInput("no such agent in this run", got=repr(key), fix=f"There are {names}.")
            known = {option for c in result for option in _options_of(c)}
            who = result[0].agent if len(result) == 1 else "none of the agents"
            has = "has no option" if len(result) == 1 else "has the option"
            raise InvalidInput(f"{who} {has} {name!r}", fix=nearest(name, sorted(known), "Options are"))
        for i in takers:
            result[i] = replace(result[i], options={**result[i].options, name: value})
    return tuple(result)


def _options_of(contender: Contender) -> Mapping[str, Any]:
    return options_of(CONTENDERS.kind(contender.agent), without=GIVEN)


# --- TOML ---------------------------------------------------------------------------------------------------

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "world": ((str,), "text"),
    "world_options": ((dict,), "a table"),
    "agents": ((dict,), "a table of tables"),
    "episodes": ((int,), "a whole number"),
    "seeds": ((str, int, list), "text such as '0:10', a number or a list of numbers"),
    "out": ((str,), "text"),
    "jobs": ((int,), "a whole number"),
    "on": ((str,), "text"),
    "plan_on": ((str,), "text"),
    "snapshots": ((int,), "a whole number"),
    "checkpoint_seconds": ((int, float), "a number"),
    "strict": ((bool,), "true or false"),
}


def read_config(path: Path) -> RunOptions:
    """The options in a file; an error names the line."""
    document, text = read_toml(path)
    found = RunOptions()
    for key, value in document.items():
        place = f"{path}, line {_line(text, '', key)}"
        if key not in _KINDS:
            raise InvalidInput("unknown key", where=place, got=repr(key), fix=nearest(key, _KINDS, "Known keys are"))
        kinds, said = _KINDS[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InvalidInput(f"{key} must be {said}", where=place, got=repr(value))
        try:
            found = replace(found, **{key: _entry(key, value, path, text)})
        except SurefootError as error:
            if error.where:
                raise
            raise type(error)(error.rule, where=place, got=error.got, fix=error.fix) from error
    return found


def _entry(key: str, value: Any, path: Path, text: str) -> Any:
    if key == "agents":
        return tuple(_contender(label, table, path, text) for label, table in value.items())
    if key == "seeds":
        if isinstance(value, list):
            return tuple(whole("each seed", seed, 0) for seed in value)
        return seeds_of(str(value))
    return Path(value) if key == "out" else value


def _contender(label: str, table: Any, path: Path, text: str) -> Contender:
    place = f"{path}, line {_line(text, f'agents.{label}', '')}"
    if not isinstance(table, dict):
        raise InvalidInput("an agent is a table", where=place, got=repr(table), fix=f"Write [agents.{label}].")
    options = dict(table)
    agent = options.pop("agent", label)
    try:
        kind = CONTENDERS.kind(agent)
    except (InvalidInput, TypeError) as error:
        fix = error.fix if isinstance(error, InvalidInput) else ""
        raise InvalidInput("no such agent", where=place, got=repr(agent), fix=fix) from None
    for name, value in options.items():
        try:
            check_options(agent, kind, {name: value}, without=GIVEN)
        except InvalidInput as error:
            place = f"{path}, line {_line(text, f'agents.{label}', name)}"
            raise InvalidInput(error.rule, where=place, got=error.got, fix=error.fix) from None
    return Contender(agent, options, label)


def _line(text: str, table: str, key: str) -> int | str:
    """The line of a key in a table, or of the table itself; "?" if it is not found."""
    inside, quote = "", r"""["']?"""
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            inside = re.sub(r"""["'\s]""", "", head[1])
            if inside == table and not key:
                return number
            if not table and (inside == key or inside.startswith(f"{key}.")):
                return number
        elif inside == table and key and re.match(rf"\s*{quote}{re.escape(key)}{quote}\s*[=.]", line):
            return number
    return "?"
