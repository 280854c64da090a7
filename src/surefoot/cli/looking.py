"""``worlds``, ``agents``, ``show``, ``check``: looking at what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.cli import options
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.worlds.world import World


def list_worlds(
    sizes: Annotated[bool, typer.Option("--sizes", help="Make each world and count; large ones take a while.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The named worlds, and what each one shows."""
    import json as text

    from surefoot import worlds
    from surefoot.cli.table import print_table

    known: dict[str, dict[str, Any]] = {name: {"shows": what} for name, what in worlds.names().items()}
    if sizes:
        for name, entry in known.items():
            entry |= _size(name)
    if json:
        typer.echo(text.dumps(known, indent=2, ensure_ascii=False))
        return
    counts = ["triplets", "horizon"] if sizes else []
    rows = []
    for name, shows in _by_family():
        rows.append([name, *(f"{known.get(name, {}).get(count, '')}" for count in counts), shows])
    print_table(["world", *counts, "shows"], rows, left=["shows"])


def _by_family() -> Iterator[tuple[str, str]]:
    """A line per world; what a family shows is said once, above its sizes."""
    from surefoot.worlds.registry import FAMILIES

    for family in FAMILIES:
        if not family.sizes:
            yield family.name, family.description
            continue
        yield "", f"[bold]{family.description}[/]"
        for size, what in family.sizes.items():
            yield f"{family.name}/{size}", what


def _size(name: str) -> dict[str, Any]:
    from surefoot import worlds

    try:
        problem = worlds.make(name).problem
    except (SurefootError, ImportError) as error:  # one that needs an extra
        return {"missing": str(error)}
    return {"triplets": sum(layer.n_edges for layer in problem.graph.layers), "horizon": problem.horizon}


def list_agents() -> None:
    """The agents, and what each may violate."""
    import inspect

    from surefoot.agents import registry
    from surefoot.cli.table import print_table

    rows = []
    for name in registry.names():
        kind = registry.kind(name)
        about = f"{inspect.getdoc(inspect.getmodule(kind)) or ''}\n\n{inspect.getdoc(kind) or ''}"
        risk = re.search(r"May violate:\s*(.+?)(?:\n\n|\Z)", about, re.DOTALL)
        rows.append([name, about.partition("\n")[0], "" if risk is None else " ".join(risk[1].split())])
    print_table(["agent", "what it is", "may violate"], rows, left=["what it is", "may violate"])


def show(
    world: options.World,
    world_option: options.WorldOptions = None,
    picture: Annotated[
        Path | None, typer.Option(help="Where the drawing goes, .png or .svg.", show_default="WORLD.png")
    ] = None,
    draw: Annotated[bool, typer.Option("--draw/--no-draw", help="Draw the world.")] = True,
) -> None:
    """Draw and diagnose a world: sizes, limits, what the fallback earns and what is possible."""
    from surefoot import worlds
    from surefoot.diagnosis import check as diagnose
    from surefoot.exact import fallback_value, solve

    place = make_world(world, world_option)
    best, known = solve(place), fallback_value(place)
    states = sum(int(mask.sum()) for mask in best.safe_states)
    every = sum(len(mask) for mask in best.safe_states)
    typer.echo(f"{world}: {worlds.names()[world]}")
    typer.echo(f"The fallback earns {known:.4g} per episode, the best safe policy {best.value:.4g}.")
    typer.echo(f"{states:,} of {every:,} states are truly safe.\n")
    typer.echo(str(diagnose(place.problem)))
    if draw:
        _draw(place, picture or Path(f"{world.replace('/', '-')}.png"))


def _draw(world: World, path: Path) -> None:
    try:
        from surefoot.report import draw as drawing  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        typer.secho("no picture: this version of surefoot draws no worlds.", fg="yellow", err=True)
        return
    try:
        typer.echo(f"\npicture: {drawing.draw(world, path=path) or path}")
    except SurefootError as error:
        typer.secho(f"no picture: {error}", fg="yellow", err=True)


def check(
    what: Annotated[
        str,
        typer.Argument(help="A problem file (.json, .npz) or the name of a world.", autocompletion=options.world_names),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="For the paper's constants.")] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Print the diagnosis as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 when learning cannot begin.")] = False,
) -> None:
    """Do the assumptions hold, what is the slack, can learning start at all?"""
    import json as text

    from surefoot import worlds
    from surefoot.diagnosis import check as diagnose
    from surefoot.model.problem import Problem

    file = Path(what).suffix in (".json", ".npz")
    problem = Problem.load(what) if file else worlds.make(what).problem
    diagnosis = diagnose(problem, episodes=episodes)
    typer.echo(text.dumps(diagnosis.to_dict(), indent=2) if json else str(diagnosis))
    if strict and diagnosis.problems:
        raise typer.Exit(1)


def make_world(name: str, world_option: list[str] | None) -> World:
    """The named world with its options, checked by name and type."""
    from surefoot import worlds
    from surefoot.cli.settings import pairs_of
    from surefoot.sweeps.folder import check_world_options

    options = pairs_of(world_option or [], "--world-option")
    check_world_options(name, options)
    return worlds.make(name, **options)
