"""What ``demo``, ``run``, ``resume`` and ``ablate`` share: play a sweep, print the results, choose the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from surefoot.reports.statistics import Summary
    from surefoot.sweeps.sweep import Outcome, Spec

BROKEN = 1  # exit code: --strict was not satisfied
GIVEN_UP = 2  # exit code: a run killed every process that played it


def play_sweep(
    spec: Spec,
    out: Path,
    *,
    jobs: int | None,
    on: str | None = None,
    plan_on: str | None = None,
    force: bool = False,
    pause: float = 10.0,
    again: bool = False,
) -> Outcome:
    """Run the sweep. ``again``: resume a directory that already holds the same sweep."""
    from surefoot.sweeps import sweep

    try:
        if again and not force and (out / "sweep.json").is_file():
            there = sweep.open_folder(out)
            if there.spec.document() == spec.document():
                return sweep.resume_sweep(out, jobs=jobs, on=on, plan_on=plan_on, checkpoint_seconds=pause)
        return sweep.sweep(spec, out, jobs=jobs, on=on, plan_on=plan_on, force=force, checkpoint_seconds=pause)
    except KeyboardInterrupt:
        stopped_at_once(out)


def stopped_at_once(out: Path) -> NoReturn:
    typer.secho(
        f"stopped immediately; resume from the last checkpoints with: surefoot resume {out}", fg="yellow", err=True
    )
    raise typer.Exit(130)


def finish(outcome: Outcome, strict: bool, first: str = "agent") -> None:
    """Print notes, the table of results and the next command; exit with a non-zero code if needed."""
    root = outcome.folder.root
    for note in outcome.notes:
        typer.secho(f"note: {note}", fg="yellow", err=True)
    for each in outcome.lost:
        typer.secho(f"given up: {each}", fg="red", err=True)
    if outcome.lost and not outcome.signal:
        what = f"{outcome.finished} of {outcome.total} runs are finished. If memory ran out, use fewer processes"
        typer.secho(f"surefoot: {what}; try again with: surefoot resume {root}", fg="red", err=True)
        raise typer.Exit(GIVEN_UP)
    if outcome.interrupted:
        kept = sum(place.begun for place in outcome.folder.places())
        typer.secho(
            f"interrupted: {outcome.finished} of {outcome.total} runs are finished, {kept} saved part way. "
            f"Resume with: surefoot resume {root}",
            fg="yellow",
            err=True,
        )
        raise typer.Exit(128 + (outcome.signal or 2))
    found = summaries(outcome)
    from surefoot.cli.table import print_summaries

    print_summaries(found, first)
    _print_prices(outcome)
    typer.echo(f"runs: {root}", err=True)
    if strict:
        _demand(found)


def summaries(outcome: Outcome) -> list[Summary]:
    from surefoot.reports.statistics import summarise

    return [summarise(label, manifests) for label, manifests in _manifests(outcome).items()]


def _manifests(outcome: Outcome) -> dict[str, list[dict[str, Any]]]:
    """Of all runs, by label."""
    return {label: [each.manifest for each in ledgers] for label, ledgers in outcome.folder.ledgers().items()}


def _print_prices(outcome: Outcome) -> None:
    """Where the comparison has an oracle shield."""
    from surefoot.reports.statistics import prices

    for price in prices(_manifests(outcome)):
        if price.oracle is not None:
            typer.echo(f"Price of safety, {price}.")


def _demand(found: list[Summary]) -> None:
    broken = [row.label for row in found if row.broke_a_limit]
    void = [row.label for row in found if not row.guaranteed]
    for names, what in ((broken, "broke a limit"), (void, "without a guarantee")):
        if names:
            typer.secho(f"surefoot: --strict: {what}: {', '.join(names)}", fg="red", err=True)
    if broken or void:
        raise typer.Exit(BROKEN)
