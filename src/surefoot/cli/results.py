"""``report``, ``export``, ``bench``: using what was run, and measuring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options
from surefoot.errors import InvalidInput, SurefootError

if TYPE_CHECKING:
    from surefoot.sweeps.folder import Folder, RunPlace


def report(folder: options.Folder) -> None:
    """Write one self-contained page about the runs of a directory, to open in a browser."""
    from surefoot.sweeps.folder import open_folder

    found = open_folder(folder)
    if not found.finished():
        raise SurefootError("no run is finished yet", where=str(folder), fix=f"Go on with: surefoot resume {folder}.")
    try:
        from surefoot.report import page as html  # type: ignore[attr-defined, unused-ignore]
    except ImportError as error:
        raise SurefootError("this installation writes no reports", got=str(error)) from error
    typer.echo(f"report: {html.write_page(folder)}")


def study_report(
    path: Annotated[Path, typer.Argument(help="The study's directory.", show_default=False)],
) -> None:
    """Write one self-contained page about a study: where it stands, its limits, its alarms, its audit."""
    from surefoot.report import study_page as study

    typer.echo(f"report: {study.write_page(path)}")


def export(
    folder: Annotated[Path, typer.Argument(help="A directory of runs, or of one run.", show_default=False)],
    policy: Annotated[Path, typer.Option(help="The .json or .py file to write.")] = Path("policy.json"),
    agent: Annotated[str, typer.Option(help="The label of the agent.", show_default="the guaranteed learner")] = "",
    seed: Annotated[int | None, typer.Option(help="Of the run.", show_default="the first")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write the learned certified policy: for each state its action, its value and its margin to each limit."""
    from surefoot.plan.policy_document import load_policy, save_policy
    from surefoot.storage.atomic import writing

    document = load_policy(_policy_of(folder, agent, seed))
    steps = document.pop("steps")
    if policy.exists() and not force:
        raise InvalidInput("the file is there already", got=str(policy), fix="Choose another, or use --force.")
    with writing(policy):
        save_policy(policy, document, steps)
    states, seed = sum(map(len, steps)), document["source"].get("seed")
    typer.echo(f"{policy}: {document['agent']}, seed {seed}, {states} states; {document['promise']}")


def _policy_of(folder: Path, agent: str, seed: int | None) -> Path:
    from surefoot.sweeps.folder import open_folder

    if not (folder / "sweep.json").exists() and (folder / "manifest.json").is_file():
        return folder / "policy.json"
    found = open_folder(folder)
    label = _chosen(found, agent)
    places = [place for place in found.places() if place.label == label and seed in (None, place.seed)]
    if not places:
        seeds = ", ".join(map(str, found.manifest["seeds"]))
        raise InvalidInput("no run with this seed", got=str(seed), fix=f"There are {seeds}.")
    done = [place for place in places if place.finished]
    if not done:
        fix = f"Go on with: surefoot resume {folder}."
        raise SurefootError("the run is not finished", where=places[0].key, fix=fix)
    return done[0].folder / "policy.json"


def _chosen(found: Folder, agent: str) -> str:
    """The label that was asked for; else the only learner with a guarantee."""
    from surefoot.checks import nearest

    if agent:
        if agent not in found.labels:
            raise InvalidInput(
                "no such agent in these runs", got=repr(agent), fix=nearest(agent, found.labels, "There are")
            )
        return agent
    if len(found.labels) == 1:
        return found.labels[0]
    safe = [label for label in found.labels if any(_promises(p) for p in found.finished() if p.label == label)]
    if len(safe) != 1:
        raise InvalidInput("which agent's policy?", got=", ".join(found.labels), fix="Choose with --agent.")
    return safe[0]


def _promises(place: RunPlace) -> bool:
    """A finished run of an agent that learns, with a guarantee."""
    from surefoot.plan.policy_document import load_policy

    document = load_policy(place.folder / "policy.json")
    return bool(document["guaranteed"]) and document["plan"] is not None


def bench(context: typer.Context) -> None:
    """Measure: becomes 'python -m benchmarks' of the checkout, with the arguments given."""
    import os
    import sys

    import surefoot

    checkout = Path(surefoot.__file__).resolve().parents[2]
    if not (checkout / "benchmarks" / "__main__.py").is_file():
        raise SurefootError(
            "the benchmarks are not part of an installed surefoot",
            fix="Clone the repository and run 'make bench' there.",
        )
    os.chdir(checkout)
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *context.args])
