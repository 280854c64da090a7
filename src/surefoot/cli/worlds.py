"""``surefoot worlds``: the named worlds, and what each one shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from surefoot.cli import options
from surefoot.errors import SurefootError


def worlds_command(
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Make each world and show its size; slow for large ones.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List the named worlds and what each one shows."""
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
    """One line per world; a family's description appears once, above its sizes."""
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
    except (SurefootError, ImportError) as error:  # it needs an extra
        return {"missing": str(error)}
    return {"triplets": sum(layer.n_edges for layer in problem.graph.layers), "horizon": problem.horizon}
