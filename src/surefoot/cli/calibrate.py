"""``surefoot calibrate``: what a log of the fallback says about a declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli import options


def calibrate_command(
    problem: Annotated[Path, typer.Argument(help="A problem file, .json or .npz.", show_default=False)],
    log: Annotated[Path, typer.Argument(help=f"{options.LOG}, or a study's folder.", show_default=False)],
    level: Annotated[float, typer.Option(help="The probability with which all bounds hold.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg of the residuals.", show_default="none")] = None,
    dark: options.Dark = False,
    json: options.Json = False,
) -> None:
    """Calibrate a declaration with a log: noise, linearity, offsets, clipping, supports. Exits with 1 on errors."""
    import json as text

    from surefoot.diagnosis import calibrate as examine
    from surefoot.model.problem import Problem

    found = examine(Problem.load(problem), log, level=level)
    typer.echo(text.dumps(found.to_dict(), indent=2) if json else str(found))
    if out is not None:
        from surefoot.reports.pictures.residuals import draw_residuals
        from surefoot.reports.pictures.style import DARK, LIGHT

        typer.echo(f"picture: {draw_residuals(found, out, DARK if dark else LIGHT)}", err=json)
    if found.errors:
        raise typer.Exit(1)
