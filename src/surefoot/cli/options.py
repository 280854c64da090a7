"""Options that several commands share, and shell completion."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.model.problem import Problem
    from surefoot.worlds.world import World


def world_names(incomplete: str) -> list[str]:
    from surefoot.worlds import registry

    return [name for name in registry.names() if name.startswith(incomplete)]


def agent_names(incomplete: str) -> list[str]:
    from surefoot.exact.contenders import CONTENDERS

    return [name for name in CONTENDERS.names() if name.startswith(incomplete)]


Episodes = Annotated[int, typer.Option(min=1, help="K, the number of episodes.")]
WorldArgument = Annotated[
    str,
    typer.Argument(
        help="A named world (see 'surefoot worlds'), or a world file (.json, .npz).",
        autocompletion=world_names,
        show_default=False,
    ),
]
TruthFile = Annotated[
    Path | None,
    typer.Option("--world", help="If WORLD is a problem file: the file with its truth.", show_default=False),
]
RunsFolder = Annotated[Path, typer.Argument(help="A directory that 'surefoot run' wrote.", show_default=False)]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of processes.", show_default="one per core")]
On = Annotated[
    str | None,
    typer.Option(
        help="Where to play the runs: local, dask, joblib, the address of a Dask scheduler, or a cluster's TOML file.",
        show_default="local",
    ),
]
PlanOn = Annotated[
    str | None,
    typer.Option(
        help="Make plans on a Dask cluster: dask, the address of a scheduler, or its TOML file. For problems that one "
        "machine cannot plan in time; runs are then played here, one after the other.",
        show_default="in each run's own process",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a limit was broken or a guarantee is void.")]
Dark = Annotated[bool, typer.Option("--dark", help="Draw on a dark background.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the runs in the directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Exploit = Annotated[bool, typer.Option("--exploit", help="Without exploring; still certified.")]
LOG = "A .csv, .jsonl or .parquet of logged transitions"
SEEDS = "Random seeds: first:end, a number, or several separated by commas."
Seeds = Annotated[str, typer.Option(help=SEEDS)]
WorldOptions = Annotated[
    list[str] | None,
    typer.Option("--world-option", metavar="NAME=VALUE", help="An option of the world; may be repeated."),
]
Pause = Annotated[float, typer.Option("--checkpoint-seconds", min=0, help="Seconds between two checkpoints of a run.")]


def warn(text: str) -> None:
    """A line on standard error, in yellow."""
    typer.secho(text, fg="yellow", err=True)


def complain(text: str) -> None:
    """A line on standard error, in red."""
    typer.secho(f"surefoot: {text}", fg="red", err=True)


def pairs_of(words: Sequence[str], option: str) -> dict[str, Any]:
    """NAME=VALUE of a repeated option."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InvalidInput(f"{option} takes NAME=VALUE", got=repr(word))
        if name in found:
            raise InvalidInput(f"{option} names {name!r} twice", got=repr(word))
        found[name] = value_of(text)
    return found


def value_of(text: str) -> Any:
    """A TOML or JSON value; anything else is text, so that words need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def problem_of(what: str, world_option: Sequence[str] | None = None) -> Problem:
    """The problem in a file, or that of a named world."""
    from surefoot.model.problem import Problem

    if Path(what).suffix in (".json", ".npz"):
        return Problem.load(what)
    return make_world(what, world_option).problem


def make_world(name: str, world_option: Sequence[str] | None) -> World:
    """The named world with its options, checked by name and by type."""
    from surefoot import worlds
    from surefoot.sweeps.spec import check_world_options

    options = pairs_of(world_option or [], "--world-option")
    check_world_options(name, options)
    return worlds.make(name, **options)


def file_stem(world: str) -> str:
    """What files about a world are called."""
    from surefoot.worlds.registry import is_file_name

    return Path(world).stem if is_file_name(world) else world.replace("/", "-")


def own_world(world: str, truth: Path | None) -> Any:
    """``world`` itself; or, with a truth, the World of the problem file ``world``."""
    if truth is None:
        return world
    from surefoot.model.problem import Problem
    from surefoot.worlds.files import load_world
    from surefoot.worlds.registry import is_file_name

    if not is_file_name(world):
        fix = "surefoot run problem.json --world truth.json"
        raise InvalidInput("--world goes with a problem file", got=repr(world), fix=fix)
    return load_world(truth, Problem.load(world))
