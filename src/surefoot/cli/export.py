"""``surefoot export``: the policy that was learned, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.errors import InvalidInput, SurefootError, UnreadableFile

if TYPE_CHECKING:
    from surefoot.sweeps.folder import Folder, RunPlace


def export(
    folder: Annotated[Path, typer.Argument(help="A directory of runs, or of one run.", show_default=False)],
    policy: Annotated[Path, typer.Option(help="The file to write.")] = Path("policy.json"),
    agent: Annotated[str, typer.Option(help="The label of the agent.", show_default="the safe learner")] = "",
    seed: Annotated[int | None, typer.Option(help="The random seed of the run.", show_default="the first")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write the learned policy as JSON: for each state its certified action, its value and its margin to each limit."""
    from surefoot.storage.atomic import write_text, writing

    source = _policy_of(folder, agent, seed)
    document = _read(source)
    if policy.exists() and not force:
        raise InvalidInput("the file exists", got=str(policy), fix="Choose another, or use --force.")
    with writing(policy):
        write_text(policy, source.read_text(encoding="utf-8"))
    states = sum(len(layer) for layer in document["layers"])
    typer.echo(f"{policy}: {document['agent']}, seed {document['seed']}, {states} states; {document['guarantee']}")


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
        fix = f"Resume with: surefoot resume {folder}."
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
    document = _read(place.folder / "policy.json")
    return bool(document["guaranteed"]) and document["plan"] is not None


def _read(source: Path) -> dict[str, Any]:
    from surefoot.model import checked
    from surefoot.storage import strict_json

    try:
        document = checked.entries(strict_json.read(source)[0], "$", ("format", *_POLICY))
        if document["format"] != "surefoot-policy":
            raise UnreadableFile("not a policy")
        for h, layer in enumerate(checked.sequence(document["layers"], "$.layers")):
            checked.sequence(layer, f"$.layers[{h}]")
        for name in ("agent", "guarantee"):
            checked.text(document[name], f"$.{name}")
        checked.whole(document["seed"], "$.seed")
        checked.flag(document["guaranteed"], "$.guaranteed")
    except (OSError, UnreadableFile) as error:
        raise UnreadableFile("the policy cannot be read", where=str(source), got=str(error)[:300]) from error
    return document


_POLICY = ("agent", "seed", "guarantee", "guaranteed", "plan", "layers")  # the entries of a policy file
