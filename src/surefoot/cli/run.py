"""``surefoot run``: every agent with every seed on one world, in a directory of ledgers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.cli import options
from surefoot.cli.sweeping import finish, play_sweep

if TYPE_CHECKING:
    from surefoot.cli.run_options import RunOptions
    from surefoot.sweeps.sweep import Outcome


def run_command(
    world: Annotated[
        str,
        typer.Argument(
            help="A named world (see 'surefoot worlds'), a world file, or, with --world, a problem file.",
            autocompletion=options.world_names,
            show_default="the one in --config",
        ),
    ] = "",
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]AGENT",
            help="An agent; repeat it to compare several.",
            autocompletion=options.agent_names,
            show_default="lsvi-new",
        ),
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Episodes per run.", show_default="20000")] = None,
    seeds: Annotated[str | None, typer.Option(help=options.SEEDS, show_default="0:3")] = None,
    out: Annotated[Path | None, typer.Option(help="A new directory for the runs.", show_default="runs/WORLD")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="[LABEL.]NAME=VALUE", help="An option for all agents, or for one; may be repeated."),
    ] = None,
    world_option: options.WorldOptions = None,
    truth: options.TruthFile = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file from 'surefoot config'; options given here take precedence.")
    ] = None,
    jobs: options.Jobs = None,
    on: options.On = None,
    plan_on: options.PlanOn = None,
    snapshots: Annotated[
        int | None,
        typer.Option(min=0, help="Number of seeds that keep plans for the report's explorer.", show_default="1"),
    ] = None,
    checkpoint_seconds: Annotated[
        float | None, typer.Option(min=0, help="Seconds between two checkpoints of a run.", show_default="10")
    ] = None,
    force: options.Force = False,
    strict: options.Strict = False,
) -> None:
    """Run every agent with every seed on a world and write the results to a directory.

    Ctrl-C keeps what is done; 'surefoot resume DIR' finishes it with the same result.
    """
    from dataclasses import replace

    from surefoot.cli import run_options

    found = run_options.read_config(config) if config is not None else run_options.RunOptions()
    given: dict[str, Any] = {
        "world": options.own_world(world, truth) or None,
        "agents": run_options.contenders_of(agent) if agent else None,
        "world_options": {**found.world_options, **options.pairs_of(world_option, "--world-option")}
        if world_option
        else None,
        "episodes": episodes,
        "seeds": None if seeds is None else run_options.seeds_of(seeds),
        "out": out,
        "jobs": jobs,
        "on": on,
        "plan_on": plan_on,
        "snapshots": snapshots,
        "checkpoint_seconds": checkpoint_seconds,
        "strict": strict or None,
    }
    found = replace(found, **{name: value for name, value in given.items() if value is not None})
    found = replace(found, agents=run_options.with_options(found.agents, options.pairs_of(option or [], "--option")))
    finish(_run(found, force), found.strict)


def _run(found: RunOptions, force: bool) -> Outcome:
    spec, out = found.spec(), found.folder()
    runs = len(spec.agents) * len(spec.seeds)
    words = f"{spec.world_name}: {runs} run{'s' if runs > 1 else ''} of {spec.episodes:,} episodes → {out}"
    places: dict[str, Any] = {"jobs": found.jobs, "on": found.on, "plan_on": found.plan_on}
    begin = partial(typer.echo, words, err=True)
    return play_sweep(spec, out, **places, force=force, pause=found.checkpoint_seconds, on_start=begin)
