"""``surefoot config``: a commented configuration file for ``surefoot run --config``."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import typer

from surefoot.cli import options

_HEAD = """\
# For: surefoot run --config FILE; options on the command line take precedence.

world = {world}
episodes = {episodes}
seeds = "0:3"  # first:end, or a list such as [0, 5, 7]
out = {out}  # a new directory; nothing is overwritten without --force
# jobs = 2  # number of processes; by default one per core
# on = "dask"  # where to play the runs: local, dask, joblib, a scheduler's address, or a cluster's TOML file
# plan_on = "dask"  # make plans on a Dask cluster: dask, a scheduler's address, or its TOML file
# snapshots = {snapshots}  # how many seeds keep plans for the report's explorer
# checkpoint_seconds = {pause}  # seconds between two checkpoints of a run
# strict = true  # exit with 1 if a limit was broken or a guarantee is void

"""


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
    typer.echo(template(world, agent or ["lsvi-new"]), nl=False)


def template(world: str, names: Sequence[str]) -> str:
    """TOML with the given choices and, as comments, every option with its default, from the signatures that a
    configuration is checked against."""
    from surefoot.checks import options_of
    from surefoot.cli.run_options import RunOptions
    from surefoot.exact.contenders import CONTENDERS, GIVEN
    from surefoot.sweeps.spec import Contender, world_function
    from surefoot.worlds.registry import make

    known = RunOptions(world=world, agents=tuple(Contender(name) for name in names))
    known.spec()  # refuses unknown names
    text = _HEAD.format(
        world=json.dumps(world),
        episodes=known.episodes,
        out=json.dumps(known.folder().as_posix()),
        snapshots=known.snapshots,
        pause=known.checkpoint_seconds,
    )
    makes, size = world_function(world)
    text += "[world_options]  # options of the world\n" + _lines(options_of(makes, size))
    text += _lines(options_of(make, without=("name",)))
    for name in names:
        kind = CONTENDERS.kind(name)
        text += f"\n[agents.{name}]\n"
        text += "# To compare an agent with itself, add a table with another label: [agents.LABEL], and in it\n"
        text += f"# agent = {json.dumps(name)}\n"
        text += _comment(inspect.getdoc(kind) or "", GIVEN)
        text += _lines(options_of(kind, without=GIVEN))
    return text


def _lines(options: Mapping[str, inspect.Parameter]) -> str:
    return "".join(f"# {name} = {_value(parameter.default)}\n" for name, parameter in options.items())


def _value(default: Any) -> str:
    if default is None or default is inspect.Parameter.empty:
        return "…  (chosen automatically if left out)"
    return json.dumps(list(default) if isinstance(default, tuple) else default)


def _comment(doc: str, without: Collection[str]) -> str:
    """The part of a docstring that explains its arguments."""
    _, found, arguments = doc.partition("Args:\n")
    if not found:
        return ""
    lines = textwrap.dedent(arguments.partition("\n\n")[0]).rstrip().splitlines()
    text, told = "", True
    for line in lines:
        if not line.startswith(" "):
            told = line.partition(":")[0] not in without
        text += f"#   {line}\n" if told else ""
    return text
