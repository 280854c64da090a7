"""``surefoot agents``: the agents, and what each may violate; with a name, everything known about it."""

from __future__ import annotations

from typing import Annotated

import typer


def agents_command(
    name: Annotated[str | None, typer.Argument(help="Show this agent's card.", show_default="all, in a table")] = None,
) -> None:
    """List the agents and what each may violate."""
    from surefoot.agents.registry import card
    from surefoot.cli.table import print_table
    from surefoot.exact.contenders import CONTENDERS

    if name is not None:
        shown = card(name, CONTENDERS.kind(name))
        typer.echo(f"{shown.name}: {shown.title}\n")
        facts = {
            "port of": shown.port_of,
            "changed to fit": shown.changed,
            "assumes": shown.assumes,
            "guarantees": shown.guarantees,
            "may violate": shown.may_violate,
        }
        print_table(["", ""], [[what, fact] for what, fact in facts.items()], left=["", ""])
        return
    cards = [card(each, CONTENDERS.kind(each)) for each in CONTENDERS.names()]
    rows = [[each.name, each.title, each.may_violate] for each in cards]
    print_table(["agent", "what it is", "may violate"], rows, left=["what it is", "may violate"])
