"""``surefoot check``: what follows from a declaration, before anything is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli import options


def check(
    what: Annotated[
        str,
        typer.Argument(help="A problem file (.json, .npz) or the name of a world.", autocompletion=options.world_names),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="K, for the paper's constants.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print the diagnosis as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 when learning cannot start.")] = False,
) -> None:
    """Check a declaration: do the assumptions hold, what is the slack, can learning start?"""
    import json as text

    from surefoot import worlds
    from surefoot.diagnosis import check as diagnose
    from surefoot.model.problem import Problem

    file = Path(what).suffix in (".json", ".npz")
    problem = Problem.load(what) if file else worlds.make(what).problem
    diagnosis = diagnose(problem, episodes=episodes)
    typer.echo(text.dumps(diagnosis.to_dict(), indent=2) if json else str(diagnosis))
    if strict and diagnosis.problems:
        raise typer.Exit(1)
