"""``surefoot compare``: the published learners side by side, on worlds with and without traps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.sweeps.spec import Contender


WORLDS: dict[str, str] = {
    "thermal/testing": "traps: too hot is too late",
    "driving/testing": "traps: too fast to stop",
    "rover/testing": "traps: rocks that slide, and a map to learn",
    "figure1": "traps: the paper's sketch",
    "ladder/testing": "traps: generated, star-convex",
    "toy-text/cliff-walking": "no traps: every cell has a safe way back",
    "ablation/stall": "no traps: one step, and dozens of trials that each cost a little",
    "lower-bound/2": "what pays most is safe, and no safe learner can find out",
}
"""Each world, and what it asks of a learner."""


def compare_command(
    world: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORLD",
            help="A world; repeat it for several.",
            autocompletion=options.world_names,
            show_default="eight of them",
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]AGENT",
            help="An agent; repeat it for several.",
            autocompletion=options.agent_names,
            show_default="all, some of them tuned",
        ),
    ] = None,
    episodes: options.Episodes = 500,
    seeds: options.Seeds = "0:10",
    out: Annotated[Path, typer.Option(help="A directory for runs, tables and figures.")] = Path("field"),
    jobs: options.Jobs = None,
    force: options.Force = False,
) -> None:
    """Compare learners on worlds: what they earned, what they broke, how long they took.

    Writes a directory of runs per world, which 'surefoot report' can read. Run the same command again to continue
    where it stopped. Tables (field.md), a row per run (field.csv) and figures are written next to the runs.
    """
    from surefoot.cli.run_options import contenders_of, seeds_of
    from surefoot.cli.sweeping import play_sweep, refuse_interrupted
    from surefoot.sweeps.sweep import Spec

    given = contenders(episodes)
    if agent:
        known = {each.name: each for each in given}
        given = [known[each] if each in known else contenders_of([each])[0] for each in agent]
    specs = [Spec(each, given, seeds_of(seeds), episodes, snapshot_seeds=0) for each in world or WORLDS]
    for spec in specs:
        typer.echo(f"{spec.world}: {len(spec.agents) * len(spec.seeds)} runs of {episodes:,} episodes", err=True)
        outcome = play_sweep(spec, out / str(spec.world).replace("/", "-"), jobs=jobs, force=force, again=True)
        refuse_interrupted(outcome, "interrupted; run the same command again to continue.")
    _show(out)


def contenders(episodes: int) -> list[Contender]:
    """The learners, with published constants; those with which they would only play the fallback are tuned, and named
    so."""
    from surefoot.sweeps.spec import Contender

    return [
        Contender("lsvi-new"),
        Contender("fallback"),
        Contender("slucb-qvi"),
        Contender("rslucb-qvi"),
        Contender("safe-lucb", {"episodes": episodes}),
        Contender("oplb"),
        Contender("ucrl-vtr"),
        Contender("ucrl-vtr-plus"),
        Contender("hf-ucrl-vtr-plus", {"episodes": episodes}),
        Contender("lsvi-ucb", {"episodes": episodes, "scale": 0.01}, "lsvi-ucb-tuned"),
        Contender("safe-mdp"),
        Contender("sno-mdp"),
        Contender("sno-mdp", {"confidence": "proved", "successors": "all"}, "sno-mdp-proved"),
        Contender("safe-exp-opt"),
        Contender("mase"),
        Contender("lsvi-ae"),
        Contender("opt-cmdp", {"episodes": episodes}),
        Contender("dope", {"episodes": episodes, "initial_episodes": 50, "scale": 0.05, "bonus": 0.0}, "dope-tuned"),
        Contender("opdop", {"episodes": episodes}),
        Contender("opt-primal-dual", {"episodes": episodes, "scale": 0.02, "step": 1000.0}, "opt-primal-dual-tuned"),
        Contender("crpo", {"episodes": episodes, "scale": 1000.0, "tolerance": 0.0}, "crpo-tuned"),
        Contender("opse-lcmdp"),
        Contender("static-shield"),
        Contender("oracle-shield"),
    ]


def _show(out: Path) -> None:
    """Write tables and figures of the runs, and print the table of all worlds together."""
    from surefoot.cli.table import print_table
    from surefoot.reports.field import read_field, two_digits
    from surefoot.storage.disk import write_text

    field = read_field(out)
    write_text(out / "field.csv", field.csv())
    write_text(out / "field.md", field.markdown())
    try:
        from surefoot.reports.pictures.field import save_figures

        save_figures(field, out)
    except SurefootError as error:
        options.warn(f"no figures: {error}")
    rows = [
        [row.label, two_digits(row.earned), f"{row.per_episode:.3g}", f"{row.unsafe_runs} of {row.runs}"]
        for row in field.ranked()
    ]
    print_table(["agent", "earned", "violations per episode", "unsafe runs"], rows)
    typer.echo(f"tables and figures: {out}", err=True)
