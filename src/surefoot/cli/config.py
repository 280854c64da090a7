"""``surefoot config``: a commented configuration file for ``surefoot run --config``."""

from __future__ import annotations

from typing import Annotated

import typer

from surefoot.cli import options


def config_command(
    world: Annotated[str, typer.Argument(help="A named world.", autocompletion=options.world_names)] = "thermal/small",
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT",
            help="An agent to configure; may be repeated.",
            autocompletion=options.agent_names,
            show_default="lsvi-new",
        ),
    ] = None,
) -> None:
    """Print a commented configuration for 'surefoot run --config'; redirect it to a file."""
    from surefoot.cli.template import template

    typer.echo(template(world, agent or ["lsvi-new"]), nl=False)
