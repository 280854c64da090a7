"""``surefoot audit PATH``: exit code 0 if clean, 1 with exceptions, 2 if the study cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli import options


def audit_command(
    path: Annotated[Path, typer.Argument(help="The study's folder.", show_default=False)],
    json: options.Json = False,
) -> None:
    """Re-verify a study independently: was every action certified when it was offered, and has nothing been altered?"""
    import json as text

    from surefoot.audits.audit import Unreadable, audit

    try:
        report = audit(path)
    except Unreadable as error:
        options.complain(str(error))
        raise typer.Exit(2) from None
    typer.echo(text.dumps(report.to_dict(), indent=2) if json else str(report))
    raise typer.Exit(report.exit_code)
