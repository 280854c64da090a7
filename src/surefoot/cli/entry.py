"""All commands, and error handling: one clear line, never a traceback without ``--debug``.

The command ``surefoot NAME`` is in ``cli/NAME.py``, those of ``surefoot study`` in ``cli/study.py``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from surefoot.cli.ablate import ablate_command
from surefoot.cli.agents import agents_command
from surefoot.cli.audit import audit_command
from surefoot.cli.calibrate import calibrate_command
from surefoot.cli.check import check_command
from surefoot.cli.compare import compare_command
from surefoot.cli.config import config_command
from surefoot.cli.demo import demo_command
from surefoot.cli.export import export_command
from surefoot.cli.options import complain
from surefoot.cli.plain import PlainCommand, PlainGroup, WorkingCommand
from surefoot.cli.report import report_command
from surefoot.cli.resume import resume_command
from surefoot.cli.run import run_command
from surefoot.cli.show import show_command
from surefoot.cli.study import study
from surefoot.cli.theory import theory_command
from surefoot.cli.worlds import worlds_command
from surefoot.errors import SurefootError

BAD_INPUT, INTERNAL = 2, 70
SEE, RUN, PLANT = "See", "Run and compare", "On a real plant"

# name, function, panel, an example that a test runs (in this order, in one directory)
COMMANDS: tuple[tuple[str, Callable[..., Any], str, str], ...] = (
    ("demo", demo_command, SEE, "surefoot demo --world thermal/testing --episodes 2000"),
    ("worlds", worlds_command, SEE, "surefoot worlds"),
    ("agents", agents_command, SEE, "surefoot agents"),
    ("show", show_command, SEE, "surefoot show driving/testing --out lorry.png"),
    ("check", check_command, SEE, "surefoot check thermal/small"),
    ("theory", theory_command, SEE, "surefoot theory thermal/small --episodes 1000000"),
    (
        "run",
        run_command,
        RUN,
        "surefoot run thermal/testing --agent lsvi-new --agent slucb-qvi --episodes 2000 --out runs",
    ),
    ("resume", resume_command, RUN, "surefoot resume runs"),
    ("config", config_command, RUN, "surefoot config thermal/small > run.toml"),
    ("ablate", ablate_command, RUN, "surefoot ablate ablation/look-ahead --episodes 500"),
    (
        "compare",
        compare_command,
        RUN,
        "surefoot compare --world figure1 --agent lsvi-new --agent sno-mdp --episodes 50 --seeds 0:2 --out small-field",
    ),
    ("report", report_command, RUN, "surefoot report runs"),
    ("export", export_command, RUN, "surefoot export runs --agent lsvi-new --out policy.json"),
    ("calibrate", calibrate_command, PLANT, "surefoot calibrate pump.json log.csv --out residuals.png"),
    ("audit", audit_command, PLANT, "surefoot audit pump.study"),
)

WORKING = ("demo", "show", "check", "theory", "run", "resume", "compare", "ablate", "report", "calibrate")

app = typer.Typer(
    name="surefoot",
    help="Improve a known-safe controller online, without ever breaking a hard limit.",
    epilog="Start with: surefoot demo",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    cls=PlainGroup,
)
for _name, _function, _panel, _example in COMMANDS:
    app.command(
        _name,
        cls=WorkingCommand if _name in WORKING else PlainCommand,
        rich_help_panel=_panel,
        epilog=f"Example: {_example}",
    )(_function)
app.add_typer(study, rich_help_panel=PLANT)


def main() -> None:
    """The entry point."""
    debug = "--debug" in sys.argv
    if debug:  # anywhere on the line
        sys.argv = [word for word in sys.argv if word != "--debug"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # a label that cannot be printed must not stop a command
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="surefoot")
    except Exception as error:
        if debug:
            raise
        raise SystemExit(_said(error)) from None


def _said(error: Exception) -> int:
    """Print what went wrong on one line; returns the exit code."""
    if isinstance(error, SurefootError):
        text, code = str(error), BAD_INPUT
    elif isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        text, code = f"{error.strerror or error}{place}", BAD_INPUT
    else:
        text, code = f"internal error: {type(error).__name__}: {error}. Use --debug for the traceback.", INTERNAL
    complain(text)
    return code


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may be anywhere on the line.")] = False,
) -> None:
    if version:
        from surefoot import __version__

        typer.echo(f"surefoot {__version__}")
        raise typer.Exit
