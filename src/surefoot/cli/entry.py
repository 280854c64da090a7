"""The commands put together, and error handling: one clear line, never a traceback without ``--debug``.

The command ``surefoot NAME`` is in ``cli/NAME.py``, those of ``surefoot study`` in ``cli/study.py``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from surefoot.cli.ablate import ablate
from surefoot.cli.agents import agents_command
from surefoot.cli.audit import audit_command
from surefoot.cli.calibrate import calibrate
from surefoot.cli.check import check
from surefoot.cli.compare import compare
from surefoot.cli.config import config
from surefoot.cli.demo import demo
from surefoot.cli.export import export
from surefoot.cli.report import report
from surefoot.cli.resume import resume
from surefoot.cli.run import run
from surefoot.cli.show import show
from surefoot.cli.study import app as study
from surefoot.cli.theory import theory
from surefoot.cli.worlds import worlds_command
from surefoot.errors import SurefootError

BAD_INPUT, INTERNAL = 2, 70
SEE, RUN, PLANT = "See", "Run and compare", "On a real plant"

# name, function, panel, an example that a test runs (in this order, in one directory)
COMMANDS: tuple[tuple[str, Callable[..., Any], str, str], ...] = (
    ("demo", demo, SEE, "surefoot demo --world thermal/testing --episodes 2000"),
    ("worlds", worlds_command, SEE, "surefoot worlds"),
    ("agents", agents_command, SEE, "surefoot agents"),
    ("show", show, SEE, "surefoot show driving/testing --picture lorry.png"),
    ("check", check, SEE, "surefoot check thermal/small"),
    ("theory", theory, SEE, "surefoot theory thermal/small --episodes 1000000"),
    ("run", run, RUN, "surefoot run thermal/testing --agent lsvi-new --agent slucb-qvi --episodes 2000 --out runs"),
    ("resume", resume, RUN, "surefoot resume runs"),
    ("config", config, RUN, "surefoot config thermal/small > run.toml"),
    ("ablate", ablate, RUN, "surefoot ablate ablation/look-ahead --episodes 500"),
    (
        "compare",
        compare,
        RUN,
        "surefoot compare --world figure1 --agent lsvi-new --agent sno-mdp --episodes 50 --seeds 0:2 --out small-field",
    ),
    ("report", report, RUN, "surefoot report runs"),
    ("export", export, RUN, "surefoot export runs --agent lsvi-new --policy policy.json"),
    ("calibrate", calibrate, PLANT, "surefoot calibrate pump.json log.csv --picture residuals.png"),
    ("audit", audit_command, PLANT, "surefoot audit pump.study"),
)

app = typer.Typer(
    name="surefoot",
    help="Improve a known-safe controller online, without ever breaking a hard limit.",
    epilog="Start with: surefoot demo",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for _name, _function, _panel, _example in COMMANDS:
    app.command(_name, rich_help_panel=_panel, epilog=f"Example: {_example}")(_function)
app.add_typer(study, rich_help_panel=PLANT)


def main() -> None:
    """The entry point."""
    debug = "--debug" in sys.argv
    if debug:  # anywhere on the line
        sys.argv = [word for word in sys.argv if word != "--debug"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that cannot be printed must not stop a command
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="surefoot")
    except Exception as error:
        if debug:
            raise
        raise SystemExit(said(error)) from None


def said(error: Exception) -> int:
    """Print what went wrong in one line; → the exit code."""
    if isinstance(error, SurefootError):
        text, code = str(error), BAD_INPUT
    elif isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        text, code = f"{error.strerror or error}{place}", BAD_INPUT
    else:
        text, code = f"internal error: {type(error).__name__}: {error}. Use --debug for the traceback.", INTERNAL
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
