"""``surefoot check``: what a declaration implies, before anything is learned."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from surefoot.cli import options
from surefoot.compiling import PATIENCE


def check_command(
    what: Annotated[
        str,
        typer.Argument(help="A problem file (.json, .npz) or the name of a world.", autocompletion=options.world_names),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="K, the number of episodes you plan.")] = 10_000,
    json: options.Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings, too.")] = False,
) -> None:
    """Check a declaration: is it possible at all, how much slack is there, can learning start? Exit 1 on errors."""
    import json as text

    from surefoot.diagnosis import check as diagnose

    diagnosis = diagnose(options.problem_of(what), episodes=episodes, progress=_Saying())
    typer.echo(text.dumps(diagnosis.to_dict(), indent=2) if json else str(diagnosis))
    if diagnosis.errors or (strict and diagnosis.warnings):
        raise typer.Exit(1)


class _Saying:
    """Tells a terminal what is being done, once that takes longer than ``PATIENCE``."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, words: str) -> None:
        if sys.stderr.isatty() and time.monotonic() - self._began > PATIENCE:
            typer.echo(f"surefoot: {words} …", err=True)
