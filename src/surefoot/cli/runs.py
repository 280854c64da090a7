"""``demo``, ``run``, ``resume``, ``config``: making runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from surefoot.cli import options
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.cli.settings import Settings
    from surefoot.report.summary import Summary
    from surefoot.sweeps.sweep import Outcome, Spec

DEMO_AGENTS = ("lsvi-new", "fallback", "slucb-qvi", "ucrl-vtr")
BROKEN = 1  # exit code: what --strict demands is not so


def demo(
    episodes: Annotated[int, typer.Option(min=1, help="Episodes per run.")] = 20_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per agent, each with its own seed.")] = 3,
    world: Annotated[
        str, typer.Option(help="A named world; see 'surefoot worlds'.", autocompletion=options.world_names)
    ] = "thermal/small",
    out: Annotated[Path, typer.Option(help="Where runs and pictures go.")] = Path("surefoot-demo"),
    jobs: options.Jobs = None,
    force: options.Force = False,
) -> None:
    """Four learners on a machine that earns by running hot: who learns, and who breaks the limit?

    Prints a table (value reached, regret, violations) and draws both over the episodes.
    """
    from surefoot import worlds
    from surefoot.exact import fallback_value, solve
    from surefoot.sweeps.sweep import Contender, Spec

    place = worlds.make(world)
    best, known = solve(place).value, fallback_value(place)
    typer.echo(f"{world}: the known-safe fallback earns {known:.3f} per episode, the best safe policy {best:.3f}.")
    typer.echo(f"{len(DEMO_AGENTS)} agents × {seeds} seed{'s' if seeds > 1 else ''} × {episodes:,} episodes")
    spec = Spec(world, [Contender(name) for name in DEMO_AGENTS], range(seeds), episodes)
    outcome = play(spec, out, jobs=jobs, force=force, again=True)
    finish(outcome, strict=False)
    _draw(outcome, f"{world}, {seeds} seeds")


def run(
    world: Annotated[
        str, typer.Argument(help="A named world; see 'surefoot worlds'.", autocompletion=options.world_names)
    ] = "",
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]AGENT",
            help="Who learns; repeat it to compare. [default: lsvi-new]",
            autocompletion=options.agent_names,
        ),
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Episodes per run. [default: 20000]")] = None,
    seeds: Annotated[str | None, typer.Option(help="first:end, a number, or several. [default: 0:3]")] = None,
    out: Annotated[Path | None, typer.Option(help="A new directory. [default: runs/WORLD]")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="[LABEL.]NAME=VALUE", help="A keyword of the agents, or of one; may be repeated."
        ),
    ] = None,
    world_option: options.WorldOptions = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file, see 'surefoot config'; options take precedence.")
    ] = None,
    jobs: options.Jobs = None,
    snapshots: Annotated[
        int | None, typer.Option(min=0, help="Seeds whose plans are kept for the explorer. [default: 1]")
    ] = None,
    checkpoint_seconds: Annotated[
        float | None, typer.Option(min=0, help="How often a run under way is kept. [default: 10]")
    ] = None,
    force: options.Force = False,
    strict: options.Strict = False,
) -> None:
    """Run agents on a world, every seed of every agent, and write ledgers.

    Ctrl-C keeps what is done; 'surefoot resume DIR' goes on to the same result.
    """
    from dataclasses import replace

    from surefoot.cli import settings

    found = settings.read_config(config) if config is not None else settings.Settings()
    given: dict[str, Any] = {
        "world": world or None,
        "agents": settings.contenders_of(agent) if agent else None,
        "world_options": {**found.world_options, **settings.pairs_of(world_option, "--world-option")}
        if world_option
        else None,
        "episodes": episodes,
        "seeds": None if seeds is None else settings.seeds_of(seeds),
        "out": out,
        "jobs": jobs,
        "snapshots": snapshots,
        "checkpoint_seconds": checkpoint_seconds,
        "strict": strict or None,
    }
    found = replace(found, **{name: value for name, value in given.items() if value is not None})
    found = replace(found, agents=settings.with_options(found.agents, settings.pairs_of(setting or [], "--set")))
    finish(_run(found, force), found.strict)


def _run(found: Settings, force: bool) -> Outcome:
    spec, out = found.spec(), found.folder()
    runs = len(spec.agents) * len(spec.seeds)
    typer.echo(f"{spec.world}: {runs} run{'s' if runs > 1 else ''} of {spec.episodes:,} episodes → {out}", err=True)
    return play(spec, out, jobs=found.jobs, force=force, pause=found.checkpoint_seconds)


def resume(
    folder: options.Folder,
    jobs: options.Jobs = None,
    checkpoint_seconds: options.Pause = 10.0,
    strict: options.Strict = False,
) -> None:
    """Go on with runs that were interrupted, to the very same result."""
    from surefoot.sweeps import sweep

    try:
        outcome = sweep.resume(folder, jobs=jobs, checkpoint_seconds=checkpoint_seconds)
    except KeyboardInterrupt:
        _stopped_at_once(folder)
    finish(outcome, strict)


def config(
    world: Annotated[str, typer.Argument(help="A named world.", autocompletion=options.world_names)] = "thermal/small",
    agent: Annotated[
        list[str] | None, typer.Option(help="May be repeated. [default: lsvi-new]", autocompletion=options.agent_names)
    ] = None,
) -> None:
    """Print a commented configuration for 'surefoot run --config'; redirect it to a file."""
    from surefoot.cli.template import template

    typer.echo(template(world, agent or ["lsvi-new"]), nl=False)


# --- what they share ----------------------------------------------------------------------------------------


def play(
    spec: Spec, out: Path, *, jobs: int | None, force: bool = False, pause: float = 10.0, again: bool = False
) -> Outcome:
    """The sweep. ``again``: what is there already, of the very same sweep, is gone on with."""
    from surefoot.sweeps import sweep

    try:
        if again and not force and (out / "sweep.json").is_file():
            there = sweep.open_folder(out)
            if there.spec.document() == spec.document():
                return sweep.resume(out, jobs=jobs, checkpoint_seconds=pause)
        return sweep.sweep(spec, out, jobs=jobs, force=force, checkpoint_seconds=pause)
    except KeyboardInterrupt:
        _stopped_at_once(out)


def _stopped_at_once(out: Path) -> NoReturn:
    typer.secho(f"stopped at once; go on from the last checkpoints with: surefoot resume {out}", fg="yellow", err=True)
    raise typer.Exit(130)


def finish(outcome: Outcome, strict: bool, first: str = "agent") -> None:
    """Say what came of it: notes, a table, the next command; the exit code where it is not 0."""
    root = outcome.folder.root
    for note in outcome.notes:
        typer.secho(f"note: {note}", fg="yellow", err=True)
    if outcome.interrupted:
        kept = sum(place.begun for place in outcome.folder.places())
        typer.secho(
            f"interrupted: {outcome.finished} of {outcome.total} runs are finished, {kept} kept half way. "
            f"Go on with: surefoot resume {root}",
            fg="yellow",
            err=True,
        )
        raise typer.Exit(128 + (outcome.signal or 2))
    found = summaries(outcome)
    from surefoot.cli.table import print_summaries

    print_summaries(found, first)
    typer.echo(f"runs: {root}", err=True)
    if strict:
        _demand(found)


def summaries(outcome: Outcome) -> list[Summary]:
    from surefoot.report.summary import summarise

    found = []
    for label in outcome.folder.labels:
        places = [place for place in outcome.folder.places() if place.label == label]
        manifests = [outcome.folder.ledger(place).manifest for place in places]
        found.append(summarise(label, manifests))
    return found


def _demand(found: list[Summary]) -> None:
    broken = [row.label for row in found if row.violations]
    void = [row.label for row in found if not row.guaranteed]
    for names, what in ((broken, "broke a limit"), (void, "without a guarantee")):
        if names:
            typer.secho(f"surefoot: --strict: {what}: {', '.join(names)}", fg="red", err=True)
    if broken or void:
        raise typer.Exit(BROKEN)


def _draw(outcome: Outcome, title: str) -> None:
    from surefoot.report.figures import comparison
    from surefoot.report.style import DARK, LIGHT

    folder = outcome.folder
    ledgers = {
        label: [folder.ledger(place) for place in folder.places() if place.label == label] for label in folder.labels
    }
    try:
        for paper in (LIGHT, DARK):
            path = comparison(ledgers, title, folder.root / f"demo-{paper.name}.png", paper)
            typer.echo(f"picture: {path}")
    except SurefootError as error:
        typer.secho(f"no picture: {error}", fg="yellow", err=True)
    typer.echo(f"look at all of it, plan by plan, with: surefoot report {folder.root}")
