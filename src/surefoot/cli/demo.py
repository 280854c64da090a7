"""``surefoot demo``: four learners on one world, with a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options
from surefoot.cli.sweeping import finish, play_sweep
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.sweeps.sweep import Outcome

AGENTS = ("lsvi-new", "fallback", "slucb-qvi", "ucrl-vtr")


def demo_command(
    episodes: Annotated[int, typer.Option(min=1, help="Episodes per run.")] = 20_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per agent, each with its own seed.")] = 3,
    world: Annotated[
        str, typer.Option(help="A named world; see 'surefoot worlds'.", autocompletion=options.world_names)
    ] = "thermal/small",
    out: Annotated[Path, typer.Option(help="A directory for runs and pictures.")] = Path("surefoot-demo"),
    jobs: options.Jobs = None,
    force: options.Force = False,
) -> None:
    """Compare four learners on a machine that earns more when it runs hot: who learns, who breaks the limit?

    Prints the value, regret and violations of each, and draws regret and violations over the episodes.
    """
    from surefoot import worlds
    from surefoot.exact import fallback_value, solve
    from surefoot.sweeps.sweep import Contender, Spec

    place = worlds.make(world)
    best, known = solve(place).value, fallback_value(place)
    typer.echo(f"{world}: the known-safe fallback earns {known:.3f} per episode, the best safe policy {best:.3f}.")
    typer.echo(f"{len(AGENTS)} agents × {seeds} seed{'s' if seeds > 1 else ''} × {episodes:,} episodes")
    spec = Spec(world, [Contender(name) for name in AGENTS], range(seeds), episodes)
    outcome = play_sweep(spec, out, jobs=jobs, force=force, again=True)
    finish(outcome, strict=False)
    _draw(outcome, f"{world}, {seeds} seeds")


def _draw(outcome: Outcome, title: str) -> None:
    from surefoot.reports.pictures.curves import comparison
    from surefoot.reports.pictures.style import DARK, LIGHT

    folder, ledgers = outcome.folder, outcome.folder.ledgers()
    try:
        for paper in (LIGHT, DARK):
            path = comparison(ledgers, title, folder.root / f"demo-{paper.name}.png", paper)
            typer.echo(f"picture: {path}")
    except SurefootError as error:
        options.warn(f"no picture: {error}")
    typer.echo(f"see every plan on one page: surefoot report {folder.root}")
