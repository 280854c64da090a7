"""Options that several commands share, and shell completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def world_names(incomplete: str) -> list[str]:
    from surefoot.worlds import registry

    return [name for name in registry.names() if name.startswith(incomplete)]


def agent_names(incomplete: str) -> list[str]:
    from surefoot.exact import contenders

    return [name for name in contenders.names() if name.startswith(incomplete)]


Episodes = Annotated[int, typer.Option(min=1, help="K, the number of episodes.")]
World = Annotated[
    str,
    typer.Argument(
        help="A named world (see 'surefoot worlds'), or a world's file (.json, .npz).",
        autocompletion=world_names,
        show_default=False,
    ),
]
Truth = Annotated[
    Path | None,
    typer.Option("--world", help="With a problem file as WORLD: the file of its truth.", show_default=False),
]
Folder = Annotated[Path, typer.Argument(help="A directory that 'surefoot run' wrote.", show_default=False)]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of processes.", show_default="one per core")]
On = Annotated[
    str | None,
    typer.Option(
        help="Where runs are played: local, dask, joblib, a Dask scheduler's address, or a TOML file of a cluster.",
        show_default="local",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 1 when a limit was broken or a guarantee is void.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the runs in the directory.")]
SEEDS = "Random seeds: first:end, a number, or several with commas."
Seeds = Annotated[str, typer.Option(help=SEEDS)]
WorldOptions = Annotated[
    list[str] | None,
    typer.Option("--world-option", metavar="NAME=VALUE", help="An option of the world; may be repeated."),
]
Pause = Annotated[float, typer.Option("--checkpoint-seconds", min=0, help="Seconds between two checkpoints of a run.")]


def own_world(world: str, truth: Path | None) -> Any:
    """``world`` as it is; or, with a truth, the World of the problem file ``world``."""
    if truth is None:
        return world
    from surefoot.errors import InvalidInput
    from surefoot.model.problem import Problem
    from surefoot.worlds.files import load_world
    from surefoot.worlds.registry import is_file_name

    if not is_file_name(world):
        raise InvalidInput(
            "--world goes with a problem file", got=repr(world), fix="surefoot run problem.json --world truth.json"
        )
    return load_world(truth, Problem.load(world))
