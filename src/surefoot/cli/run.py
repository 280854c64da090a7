"""``surefoot run``: every agent with every seed on one world, in a directory of ledgers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli import options
from surefoot.cli.sweeping import finish, play_sweep


def run_command(
    world: Annotated[
        str,
        typer.Argument(
            help="A named world (see 'surefoot worlds'), a world file, or, with --world, a problem file.",
            autocompletion=options.world_names,
            show_default=False,
        ),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]AGENT",
            help="An agent; repeat it to compare several.",
            autocompletion=options.agent_names,
            show_default="lsvi-new",
        ),
    ] = None,
    episodes: options.Episodes = 20_000,
    seeds: options.Seeds = "0:3",
    out: Annotated[Path | None, typer.Option(help="A new directory for the runs.", show_default="runs/WORLD")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="[LABEL.]NAME=VALUE", help="An option for all agents, or for one; may be repeated."),
    ] = None,
    world_option: options.WorldOptions = None,
    truth: options.TruthFile = None,
    jobs: options.Jobs = None,
    on: options.On = None,
    plan_on: options.PlanOn = None,
    snapshots: Annotated[
        int, typer.Option(min=0, help="Number of seeds that keep plans for the report's explorer.")
    ] = 1,
    checkpoint_seconds: options.Pause = 10.0,
    force: options.Force = False,
    strict: options.Strict = False,
) -> None:
    """Run every agent with every seed on a world and write the results to a directory.

    Ctrl-C keeps what is done; 'surefoot resume DIR' finishes it with the same result.
    """
    from surefoot.cli.run_options import contenders_of, seeds_of, with_options
    from surefoot.sweeps.spec import Spec

    spec = Spec(
        options.own_world(world, truth),
        with_options(contenders_of(agent or ["lsvi-new"]), options.pairs_of(option or [], "--option")),
        seeds_of(seeds),
        episodes,
        options.pairs_of(world_option or [], "--world-option"),
        snapshots,
    )
    folder = out or Path("runs") / options.file_stem(world)
    runs = len(spec.agents) * len(spec.seeds)
    typer.echo(f"{spec.world_name}: {runs} run{'s' if runs > 1 else ''} of {episodes:,} episodes → {folder}", err=True)
    outcome = play_sweep(spec, folder, jobs=jobs, on=on, plan_on=plan_on, force=force, pause=checkpoint_seconds)
    finish(outcome, strict)
