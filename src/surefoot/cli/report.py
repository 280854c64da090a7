"""``surefoot report``: one page about the runs in a directory."""

from __future__ import annotations

import typer

from surefoot.cli import options
from surefoot.errors import SurefootError


def report_command(folder: options.RunsFolder) -> None:
    """Write one self-contained page about the runs in a directory, to open in a browser."""
    from surefoot.reports import page
    from surefoot.sweeps.folder import open_folder

    found = open_folder(folder)
    if not found.finished():
        raise SurefootError("no run is finished", where=str(folder), fix=f"Resume with: surefoot resume {folder}.")
    typer.echo(f"report: {page.write_page(folder)}")
