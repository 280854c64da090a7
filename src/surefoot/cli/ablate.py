"""``surefoot ablate``: the four ideas of the paper, left out one by one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli import options
from surefoot.cli.sweeping import finish, play_sweep, refuse_interrupted, summaries


def ablate_command(
    world: options.WorldArgument,
    episodes: options.Episodes = 3000,
    seeds: options.Seeds = "0:3",
    out: Annotated[Path | None, typer.Option(help="Keep the runs in this directory.", show_default="not kept")] = None,
    world_option: options.WorldOptions = None,
    truth: options.TruthFile = None,
    jobs: options.Jobs = None,
    force: options.Force = False,
) -> None:
    """Leave out the four ideas of the paper one by one, and compare.

    Idea I looks ahead; II, III and IV reward uncertain transitions, futures and pasts. Without Idea I there is no
    safety guarantee.
    """
    from surefoot.agents.blocks.look_ahead import IDEAS
    from surefoot.cli.run_options import seeds_of
    from surefoot.sweeps.sweep import Contender, Spec

    variants = [Contender("lsvi-new", {"exploration": "ideas"}, "all-four")]
    for idea in IDEAS:
        kept = [each for each in IDEAS if each != idea]
        variants.append(Contender("lsvi-new", {"ideas": kept}, f"without-{idea}"))
    world_options = options.pairs_of(world_option or [], "--world-option")
    spec = Spec(options.own_world(world, truth), variants, seeds_of(seeds), episodes, world_options)
    if out is not None:
        finish(play_sweep(spec, out, jobs=jobs, force=force), strict=False, first="ideas")
        return
    with tempfile.TemporaryDirectory(prefix="surefoot-ablate-") as folder:
        outcome = play_sweep(spec, Path(folder), jobs=jobs)
        refuse_interrupted(outcome, "interrupted; the runs were not kept (use --out to keep them).")
        from surefoot.cli.table import print_summaries

        print_summaries(summaries(outcome), "ideas")
