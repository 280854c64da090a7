"""What ``demo``, ``run``, ``resume`` and ``ablate`` share: play a sweep, print the results, choose the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from surefoot.cli.options import complain, warn

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
    on_start: Callable[[], object] | None = None,
) -> Outcome:
    """Run the sweep. ``again``: resume a directory that already has the same sweep."""
    from surefoot.sweeps import sweep

    try:
        if again and not force and (out / "sweep.json").is_file():
            there = sweep.open_folder(out)
            if there.spec.document() == spec.document():
                return sweep.resume_sweep(out, jobs=jobs, on=on, plan_on=plan_on, checkpoint_seconds=pause)
        places: dict[str, Any] = {"jobs": jobs, "on": on, "plan_on": plan_on}
        return sweep.sweep(spec, out, **places, force=force, checkpoint_seconds=pause, on_start=on_start)
    except KeyboardInterrupt:
        stopped_at_once(out)


def stopped_at_once(out: Path) -> NoReturn:
    warn(f"stopped immediately; resume from the last checkpoints with: surefoot resume {out}")
    raise typer.Exit(130)


def refuse_interrupted(outcome: Outcome, words: str) -> None:
    """Exit with the signal's code if the sweep was interrupted."""
    if outcome.interrupted:
        warn(words)
        raise typer.Exit(128 + (outcome.signal or 2))


def finish(outcome: Outcome, strict: bool, first: str = "agent") -> None:
    """Print notes, the table of results and the next command; exit with a non-zero code if needed."""
    root = outcome.folder.root
    for note in outcome.notes:
        warn(f"note: {note}")
    for each in outcome.lost:
        complain(f"given up: {each}")
    done = f"{outcome.finished} of {outcome.total} runs are finished"
    if outcome.lost and not outcome.signal:
        complain(f"{done}. If memory ran out, use fewer processes; try again with: surefoot resume {root}")
        raise typer.Exit(GIVEN_UP)
    begun = sum(place.begun for place in outcome.folder.places())
    refuse_interrupted(outcome, f"interrupted: {done}, {begun} saved part way. Resume with: surefoot resume {root}")
    from surefoot.cli.table import print_summaries

    found = summaries(outcome)
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
            complain(f"--strict: {what}: {', '.join(names)}")
    if broken or void:
        raise typer.Exit(BROKEN)
