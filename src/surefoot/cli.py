"""The command line: arguments and wiring. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.experiment.run import Run
    from surefoot.report.summary import Summary

app = typer.Typer(
    name="surefoot",
    help="Improve a known-safe controller online, without ever breaking a hard limit.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

DEMO_AGENTS = ("lsvi-new", "seed", "slucb-qvi", "ucrl-vtr")


def main() -> None:
    """The entry point: errors of surefoot are one clear message and exit code 2, never a traceback."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except SurefootError as error:
        if debug:
            raise
        typer.secho(f"surefoot: {error}", fg="red", err=True)
        raise SystemExit(2) from None


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from surefoot import __version__

        typer.echo(f"surefoot {__version__}")
        raise typer.Exit


@app.command()
def demo(
    episodes: Annotated[int, typer.Option(min=1, help="Episodes per run.")] = 20_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per agent, each with its own seed.")] = 3,
    world: Annotated[str, typer.Option(help="A named world; see 'surefoot worlds'.")] = "thermal/small",
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("surefoot-demo"),
) -> None:
    """Four learners on a machine that earns by running hot: who learns, and who breaks the limit?

    Prints a table (value reached, regret, violations) and draws both over the episodes.
    """
    from surefoot import agents, worlds
    from surefoot.exact import seed_value, solve
    from surefoot.experiment.runner import run
    from surefoot.report.summary import summarise

    place = worlds.make(world)
    best, known = solve(place).value, seed_value(place)
    typer.echo(f"{world}: the known-safe seed earns {known:.3f} per episode, the best safe policy {best:.3f}.")
    typer.echo(f"{len(DEMO_AGENTS)} agents × {seeds} seeds × {episodes:,} episodes")
    runs: dict[str, list[Run]] = {}
    for name in DEMO_AGENTS:
        runs[name] = []
        for seed in range(seeds):
            runs[name].append(run(agents.make(name, place.problem), place, episodes, seed))
            if runs[name][-1].interrupted:
                typer.echo("interrupted: nothing was drawn.", err=True)
                raise typer.Exit(130)
    _print_table([summarise(group) for group in runs.values()])
    _draw(runs, f"{world}, {seeds} seeds", out)


@app.command(name="worlds")
def list_worlds() -> None:
    """The named worlds, and what each one shows."""
    from surefoot import worlds

    for name, what in worlds.names().items():
        typer.echo(f"{name:<24} {what}")


@app.command()
def check(
    what: Annotated[str, typer.Argument(help="A problem file (.json, .npz) or the name of a world.")],
    episodes: Annotated[int, typer.Option(min=1, help="For the paper's constants.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print the diagnosis as JSON.")] = False,
) -> None:
    """Do the assumptions hold, what is the slack, can learning start at all?"""
    import json as text

    from surefoot import worlds
    from surefoot.diagnosis import check as diagnose
    from surefoot.model.problem import Problem

    known = Path(what).suffix in (".json", ".npz")
    problem = Problem.load(what) if known else worlds.make(what).problem
    diagnosis = diagnose(problem, episodes=episodes)
    typer.echo(text.dumps(diagnosis.to_dict(), indent=2) if json else str(diagnosis))


def _print_table(summaries: list[Summary]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title_justify="left", header_style="bold")
    table.add_column("agent")
    for column in ("value", "gap closed", "regret", "violations"):
        table.add_column(column, justify="right")
    table.add_column("promise")
    for row in summaries:
        broken = row.violations > 0
        table.add_row(
            row.agent,
            f"{row.value:.3f}",
            f"{row.gap_closed:.0%}",
            f"{row.total_regret:,.0f}",
            f"[bold red]{row.violations:,}[/]" if broken else "[green]0[/]",
            row.guarantee,
        )
    Console().print(table)
    typer.echo("Regret counts against the best safe policy: below 0 means earned by breaking the limit.")


def _draw(runs: dict[str, list[Run]], title: str, out: Path) -> None:
    from surefoot.report.plots import comparison
    from surefoot.report.style import DARK, LIGHT

    try:
        for paper in (LIGHT, DARK):
            path = comparison(runs, title, out / f"demo-{paper.name}.png", paper)
            typer.echo(f"picture: {path}")
    except SurefootError as error:
        typer.secho(f"no picture: {error}", fg="yellow", err=True)
