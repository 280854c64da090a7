"""``surefoot export``: the learned policy, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options
from surefoot.errors import InvalidInput, SurefootError

if TYPE_CHECKING:
    from surefoot.sweeps.folder import Folder, RunPlace


def export_command(
    folder: Annotated[Path, typer.Argument(help="A directory of runs, or of one run.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The .json or .py file to write.")] = Path("policy.json"),
    agent: Annotated[str, typer.Option(help="The label of the agent.", show_default="the safe learner")] = "",
    seed: Annotated[int | None, typer.Option(help="The random seed of the run.", show_default="the first")] = None,
    exploit: options.Exploit = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write the learned policy: for each state its certified action, its exact value and its margin to each limit."""
    from surefoot.plan.policy_document import load_policy, save_policy
    from surefoot.storage.disk import writing
    from surefoot.sweeps.folder import EXPLOITING, POLICY

    document = load_policy(_run_of(folder, agent, seed) / (EXPLOITING if exploit else POLICY))
    steps = document.pop("steps")
    if out.exists() and not force:
        raise InvalidInput("the file exists", got=str(out), fix="Choose another, or use --force.")
    with writing(out):
        save_policy(out, document, steps)
    states, seed = sum(map(len, steps)), document["source"].get("seed")
    known = [start for start in document["starts"] if start["value"] is not None]
    worth = ", ".join(f"{start['value']:.4f} from {start['state']!r}" for start in known[:3]) or "not known"
    more = ", …" if len(known) > 3 else ""
    typer.echo(f"{out}: {document['agent']}, seed {seed}, {states} states; {document['promise']}")
    typer.echo(f"exact value: {worth}{more}")


def _run_of(folder: Path, agent: str, seed: int | None) -> Path:
    from surefoot.sweeps.folder import open_folder

    if not (folder / "sweep.json").exists() and (folder / "manifest.json").is_file():
        return folder
    found = open_folder(folder)
    label = _chosen(found, agent)
    places = [place for place in found.places() if place.label == label and seed in (None, place.seed)]
    if not places:
        seeds = ", ".join(map(str, found.manifest["seeds"]))
        raise InvalidInput("no run with this seed", got=str(seed), fix=f"There are {seeds}.")
    done = [place for place in places if place.finished]
    if not done:
        fix = f"Resume with: surefoot resume {folder}."
        raise SurefootError("the run is not finished", where=places[0].key, fix=fix)
    return done[0].folder


def _chosen(found: Folder, agent: str) -> str:
    """The label that was asked for; otherwise the only learner with a guarantee."""
    from surefoot.checks import nearest

    if agent:
        if agent not in found.labels:
            fix = nearest(agent, found.labels, "There are")
            raise InvalidInput("no such agent in these runs", got=repr(agent), fix=fix)
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
    from surefoot.sweeps.folder import POLICY

    document = load_policy(place.folder / POLICY)
    return bool(document["guaranteed"]) and document["plan"] is not None
