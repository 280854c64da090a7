"""``surefoot show``: draw and diagnose a world."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.worlds.world import World


def show_command(
    world: options.WorldArgument,
    world_option: options.WorldOptions = None,
    truth: options.TruthFile = None,
    out: Annotated[
        Path | None, typer.Option(help="The picture to write, .png or .svg.", show_default="WORLD.png")
    ] = None,
    draw: Annotated[bool, typer.Option("--draw/--no-draw", help="Write a picture.")] = True,
    dark: options.Dark = False,
) -> None:
    """Draw and diagnose a world: its sizes, its limits, the values of the fallback and the best safe policy."""
    from surefoot import worlds
    from surefoot.diagnosis import check as diagnose
    from surefoot.exact import fallback_value
    from surefoot.exact.best import solve_whole
    from surefoot.worlds.registry import is_file_name

    place = options.make_world(world, world_option) if truth is None else options.own_world(world, truth)
    best, of_all = solve_whole(place)
    known = mean(fallback_value(place, start) for start in place.problem.starts)
    states = sum(int(mask.sum()) for mask in best.safe_states)
    every = sum(len(mask) for mask in best.safe_states)
    typer.echo(f"{world}: {'a world of your own' if is_file_name(world) else worlds.names()[world]}")
    typer.echo(f"The fallback earns {known:.4g} per episode, the best safe policy {best.start_values.mean():.4g}.")
    grown = "" if of_all else " (in the graph before it grows; the whole graph is too large)"
    typer.echo(f"{states:,} of {every:,} states are truly safe{grown}.\n")
    typer.echo(str(diagnose(place.problem)))
    if draw:
        _draw(place, out or Path(f"{options.file_stem(world)}.png"), dark)


def _draw(world: World, path: Path, dark: bool) -> None:
    from surefoot.reports.pictures import draw as drawing
    from surefoot.reports.pictures.style import DARK, LIGHT

    try:
        typer.echo(f"\npicture: {drawing.draw(world, path=path, paper=DARK if dark else LIGHT) or path}")
    except SurefootError as error:
        options.warn(f"no picture: {error}")
