"""``surefoot study …``: a study from the command line, JSON in and out. The work is in ``protocol``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.study.study import Study

app = typer.Typer(
    name="study",
    help="Run a study on a real plant: ask for an action, tell what came of it. JSON on stdin and stdout.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Folder = Annotated[Path, typer.Argument(help="The study's folder.", show_default=False)]
Reason = Annotated[str, typer.Option(help="Why; it is kept in the journal.")]


@app.command()
def new(
    path: Folder,
    problem: Annotated[Path, typer.Option(help="A problem file, .json or .npz.")],
    failure_probability: Annotated[float, typer.Option(help="p: all steps are safe with probability 1 - p.")] = 0.05,
    false_alarm: Annotated[float, typer.Option(help="A truthful plant ever raises an alarm with at most this.")] = 0.01,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the agent, NAME=JSON; may be repeated.")
    ] = None,
) -> None:
    """Begin a study in a new folder."""
    from surefoot.model.problem import Problem
    from surefoot.study.study import Study

    if (path / "journal.jsonl").exists() and (path / "journal.jsonl").stat().st_size:
        raise InvalidInput("there is a study already", where=str(path), fix="Use begin, ask and tell to go on with it.")
    with Study.open(
        path,
        Problem.load(problem),
        failure_probability=failure_probability,
        false_alarm=false_alarm,
        **_options(option or []),
    ) as study:
        _say(study.status())


@app.command()
def begin(
    path: Folder,
    start: Annotated[str | None, typer.Option(help="The start state, as JSON; needed with several.")] = None,
) -> None:
    """Begin an episode."""
    _call(path, {"call": "begin", **({} if start is None else {"start": _json(start, "--start")})})


@app.command()
def ask(path: Folder) -> None:
    """Print the action to take now, with its certificate. Asking again prints the same until it is told."""
    _call(path, {"call": "ask"})


@app.command()
def tell(path: Folder) -> None:
    """Read {"ask_id": …, "next_state": …, "cost": …} from stdin: what the plant did."""
    _call(path, {**_stdin(), "call": "tell"})


@app.command(name="tell-terminal")
def tell_terminal(path: Folder) -> None:
    """Read {"cost": …, "episode": …} from stdin: the cost of the episode's last state."""
    _call(path, {**_stdin(), "call": "tell_terminal"})


@app.command()
def abort(path: Folder, reason: Reason = "") -> None:
    """End the episode here; what was told counts."""
    _call(path, {"call": "abort", "reason": reason})


@app.command()
def status(path: Folder) -> None:
    """Print where the study stands; also while another process runs it."""
    from surefoot.study.study import Study

    _say(Study.open(path, read_only=True).status())


@app.command()
def acknowledge(
    path: Folder,
    reason: Reason,
    discard: Annotated[bool, typer.Option(help="Drop all data: the plant is another one now.")] = False,
    noise: Annotated[
        list[str] | None, typer.Option(help="A larger noise scale of a limit, NAME=NUMBER; may be repeated.")
    ] = None,
    problem: Annotated[Path | None, typer.Option(help="A wider declaration, .json or .npz; the data are kept.")] = None,
    trust_anchors: Annotated[bool, typer.Option(help="With --discard: the anchors still hold.")] = False,
) -> None:
    """Answer an alarm as a person, and end the safe mode. `status` says under "answers" what an alarm asks for."""
    scales = dict(_scale(item) for item in noise or [])
    request = {"call": "acknowledge", "reason": reason, "discard_data": discard, "trust_anchors": trust_anchors}
    request |= {"noise": scales} if scales else {}
    _call(path, request | ({} if problem is None else {"problem": str(problem)}))


@app.command()
def policy(
    path: Folder,
    out: Annotated[Path | None, typer.Argument(help="A .json or .py file; printed as JSON when left out.")] = None,
) -> None:
    """Export the certified greedy policy; the file needs no surefoot."""
    from surefoot.study.exporting import document
    from surefoot.study.study import Study

    study = Study.open(path, read_only=True)
    _say(document(study.standing) if out is None else {"path": str(study.export_policy(out))})


@app.command(name="import")
def import_log(
    path: Folder,
    log: Annotated[Path, typer.Argument(help="A .csv, .jsonl or .parquet of logged transitions.")],
    different: Annotated[
        str | None, typer.Option(help="Why rows that are like others are different measurements; it is journalled.")
    ] = None,
) -> None:
    """Import logged transitions, to start warm."""
    _call(path, {"call": "import_log", "path": str(log), "different": different})


@app.command()
def serve(path: Folder) -> None:
    """Answer requests, a line of JSON each, until stdin ends: {"call": "ask"}, {"call": "tell", …}, …"""
    from surefoot.study.protocol import serve as answer_all

    with _open(path) as study:
        answer_all(study, sys.stdin.buffer, sys.stdout)


def _open(path: Path) -> Study:
    from surefoot.study.study import Study

    study = Study.open(path)
    for remark in study.recovered:
        typer.echo(f"surefoot: {remark}", err=True)
    return study


def _call(path: Path, request: dict[str, Any]) -> None:
    from surefoot.study.protocol import answer

    with _open(path) as study:
        _say(answer(study, request))


def _say(value: dict[str, Any]) -> None:
    from surefoot.study.protocol import reply_line

    typer.echo(reply_line(value))


def _stdin() -> dict[str, Any]:
    from surefoot.study.protocol import LONGEST_REQUEST, parse_request

    return parse_request(sys.stdin.buffer.read(LONGEST_REQUEST))


def _json(text: str, name: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{name} takes JSON", got=text[:80], fix="Text goes in quotes: '\"cold\"'.") from None


def _scale(item: str) -> tuple[str, Any]:
    name, equals, value = item.rpartition("=")
    if not equals or not name:
        raise InvalidInput("a noise scale is NAME=NUMBER", got=item[:80])
    return name, _json(value, "--noise")


def _options(given: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier() or name in found:
            raise InvalidInput("an option is NAME=JSON, each once", got=item[:80])
        found[name] = _json(value, name)
    return found
