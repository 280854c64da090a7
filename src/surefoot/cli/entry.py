"""The commands put together, and what becomes of an error: one clear line, never a traceback without ``--debug``."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from surefoot.cli import learn, looking, results, runs
from surefoot.cli.audit import audit_command
from surefoot.cli.studies import app as study
from surefoot.errors import SurefootError

BAD_INPUT, INTERNAL = 2, 70

app = typer.Typer(
    name="surefoot",
    help="Improve a known-safe controller online, without ever breaking a hard limit.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
SEE, RUN, PLANT = "See", "Run and compare", "On a real plant"
app.command(rich_help_panel=SEE)(runs.demo)
app.command("worlds", rich_help_panel=SEE)(looking.list_worlds)
app.command("agents", rich_help_panel=SEE)(looking.list_agents)
app.command(rich_help_panel=SEE)(looking.show)
app.command(rich_help_panel=SEE)(looking.check)
app.command(rich_help_panel=SEE)(learn.theory)
app.command(rich_help_panel=RUN)(runs.run)
app.command(rich_help_panel=RUN)(runs.resume)
app.command(rich_help_panel=RUN)(runs.config)
app.command(rich_help_panel=RUN)(learn.ablate)
app.command(rich_help_panel=RUN)(results.report)
app.command(rich_help_panel=RUN)(results.export)
app.command(
    rich_help_panel=RUN,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(results.bench)
study.command("report")(results.study_report)
app.add_typer(study, rich_help_panel=PLANT)
app.command("audit", rich_help_panel=PLANT)(audit_command)


def main() -> None:
    """The entry point."""
    debug = "--debug" in sys.argv
    if debug:  # wherever it stands
        sys.argv = [word for word in sys.argv if word != "--debug"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that cannot be printed must not stop what is done
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="surefoot")
    except Exception as error:
        if debug:
            raise
        raise SystemExit(explain(error)) from None


def explain(error: Exception) -> int:
    """Say what went wrong in a line; → the exit code."""
    if isinstance(error, SurefootError):
        text, code = str(error), BAD_INPUT
    elif isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        text, code = f"{error.strerror or error}{place}", BAD_INPUT
    else:
        text, code = f"internal error: {type(error).__name__}: {error}. Use --debug for the whole story.", INTERNAL
    typer.secho(f"surefoot: {text}", fg="red", err=True)
    return code


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    if version:
        from surefoot import __version__

        typer.echo(f"surefoot {__version__}")
        raise typer.Exit
