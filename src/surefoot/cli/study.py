"""``surefoot study …``: a study from the command line, JSON in and out. The work is in ``surefoot.study.protocol``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.cli.options import LOG, Exploit, Json, pairs_of
from surefoot.cli.plain import PlainCommand, PlainGroup
from surefoot.errors import InvalidInput

if TYPE_CHECKING:
    from surefoot.study.study import Study

study = typer.Typer(
    name="study",
    help="Run a study on a real plant: ask for an action, tell what happened. JSON on stdin and stdout.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=PlainGroup,
)


def _command(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with an example, whose first word is its name."""
    return study.command(example.split()[0], cls=PlainCommand, epilog=f"Example: surefoot study {example}")


_Folder = Annotated[Path, typer.Argument(help="The study's folder.", show_default=False)]
_Despite = Annotated[
    str | None,
    typer.Option(help="Why the problem is right although 'surefoot check' finds errors; kept in the journal."),
]
_Reason = Annotated[str, typer.Option(help="The reason, kept in the journal.")]


@_command("new pump.study --problem pump.json")
def new(
    path: _Folder,
    problem: Annotated[Path, typer.Option(help="A problem file, .json or .npz.")],
    failure_probability: Annotated[
        float, typer.Option(help="p: all steps are safe with probability at least 1 - p.")
    ] = 0.05,
    false_alarm: Annotated[
        float, typer.Option(help="Probability of an alarm although the plant is as declared.")
    ] = 0.01,
    agent: Annotated[str, typer.Option(help="The learner: lsvi-new or lsvi-new-paper.")] = "lsvi-new",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the agent; may be repeated.")
    ] = None,
    despite: _Despite = None,
) -> None:
    """Create a study in a new folder."""
    from surefoot.model.problem import Problem
    from surefoot.study.study import Study

    if (path / "journal.jsonl").exists() and (path / "journal.jsonl").stat().st_size:
        fix = "Continue with begin, ask and tell."
        raise InvalidInput("the folder already holds a study", where=str(path), fix=fix)
    with Study.open(
        path,
        Problem.load(problem),
        agent=agent,
        failure_probability=failure_probability,
        false_alarm=false_alarm,
        progress=True,
        despite=despite,
        **pairs_of(option or [], "--option"),
    ) as study:
        _say(study.status())


@_command("begin pump.study")
def begin(
    path: _Folder,
    start: Annotated[str | None, typer.Option(help="The start state as JSON; required if there are several.")] = None,
) -> None:
    """Begin an episode."""
    _call(path, {"call": "begin", **({} if start is None else {"start": _json(start, "--start")})})


@_command("ask pump.study")
def ask(path: _Folder) -> None:
    """Print the action to take now, with its certificate; asking again before the tell prints the same one."""
    _call(path, {"call": "ask"})


@_command("tell pump.study < told.json")
def tell(path: _Folder) -> None:
    """Record what the plant did: read {"ask_id": …, "next_state": …, "cost": …} from stdin."""
    _call(path, {**_stdin(), "call": "tell"})


@_command("tell-terminal pump.study < told.json")
def tell_terminal(path: _Folder) -> None:
    """Record the cost of the last state: read {"cost": …, "episode": …} from stdin."""
    _call(path, {**_stdin(), "call": "tell_terminal"})


@_command("abort pump.study --reason 'the shift ends'")
def abort(path: _Folder, reason: _Reason = "") -> None:
    """End the episode early; what was told still counts."""
    _call(path, {"call": "abort", "reason": reason})


@_command("status pump.study")
def status_command(
    path: _Folder,
    json: Json = False,
) -> None:
    """Print the state of the study; works while another process runs it."""
    from surefoot.study.status import as_text
    from surefoot.study.study import Study

    found = Study.open(path, read_only=True).status()
    if json:
        _say(found)
    else:
        typer.echo(as_text(found))


@_command("acknowledge pump.study --reason 'cable replaced'")
def acknowledge(
    path: _Folder,
    reason: _Reason,
    discard_data: Annotated[
        bool, typer.Option("--discard-data", help="Drop all data, because the plant has changed.")
    ] = False,
    noise: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A larger noise scale for the limit NAME; may be repeated."),
    ] = None,
    problem: Annotated[Path | None, typer.Option(help="A wider problem, .json or .npz; keeps the data.")] = None,
    trust_anchors: Annotated[
        bool, typer.Option("--trust-anchors", help="With --discard-data: keep trusting the anchors.")
    ] = False,
    despite: _Despite = None,
) -> None:
    """Acknowledge an alarm and leave safe mode. 'answers' in the status says what the alarm requires."""
    scales = dict(_scale(item) for item in noise or [])
    request = {"call": "acknowledge", "reason": reason, "discard_data": discard_data, "trust_anchors": trust_anchors}
    request |= {"noise": scales} if scales else {}
    request |= {} if despite is None else {"despite": despite}
    _call(path, request | ({} if problem is None else {"problem": str(problem)}))


@_command("policy pump.study --out policy.py")
def policy(
    path: _Folder,
    out: Annotated[Path | None, typer.Option(help="A .json or .py file.", show_default="printed as JSON")] = None,
    exploit: Exploit = False,
) -> None:
    """Export the certified greedy policy; using the file does not need surefoot."""
    from surefoot.study.exporting import document
    from surefoot.study.study import Study

    study = Study.open(path, read_only=True)
    if out is None:
        _say(document(study.standing, exploit=exploit))
    else:
        _say({"path": str(study.export_policy(out, exploit=exploit))})


@_command("import pump.study log.csv")
def import_log(
    path: _Folder,
    log: Annotated[Path, typer.Argument(help=f"{LOG}.")],
    different: Annotated[
        str | None, typer.Option(help="Why rows that look like copies are different measurements; kept in the journal.")
    ] = None,
) -> None:
    """Import logged transitions for a warm start."""
    _call(path, {"call": "import_log", "path": str(log), "different": different})


@_command("report pump.study")
def study_report(path: _Folder) -> None:
    """Write one self-contained page about a study: its state, its limits, its alarms, its audit."""
    from surefoot.reports import study_page

    typer.echo(f"report: {study_page.write_study_page(path)}")


@_command("serve pump.study")
def serve_command(
    path: _Folder,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name of this machine, for the Host header; may be repeated."),
    ] = None,
    new_tokens: Annotated[bool, typer.Option("--new-tokens", help="Replace the tokens.")] = False,
) -> None:
    """Serve a study over HTTP until Ctrl-C, with a live page for operators. Tokens are printed the first time."""
    from surefoot.serve.server import serve

    serve(path, host, port, allow_hosts=allow_host or (), new_tokens=new_tokens, say=_tell_user, progress=True)


@_command("pipe pump.study < requests.jsonl")
def pipe(path: _Folder) -> None:
    """Answer requests, one line of JSON each, until stdin ends: {"call": "ask"}, {"call": "tell", …}, …"""
    from surefoot.study.protocol import answer_all

    with _open(path) as study:
        answer_all(study, sys.stdin.buffer, sys.stdout)


def _open(path: Path) -> Study:
    from surefoot.study.study import Study

    study = Study.open(path, progress=True)
    for remark in study.recovered:
        typer.echo(f"surefoot: {remark}", err=True)
    return study


def _call(path: Path, request: dict[str, Any]) -> None:
    from surefoot.study.protocol import answer

    with _open(path) as study:
        _say(answer(study, request))


def _tell_user(line: str) -> None:
    print(line, flush=True)


def _say(value: dict[str, Any]) -> None:
    from surefoot.study.protocol import reply_line

    typer.echo(reply_line(value))


def _stdin() -> dict[str, Any]:
    from surefoot.study.protocol import LONGEST_REQUEST, parse_request

    if sys.stdin.isatty():
        fix = """Pipe it in: echo '{"ask_id": "…", "next_state": …, "cost": …}' | surefoot study tell …"""
        raise InvalidInput("what the plant did is read from stdin, but nothing is piped in", fix=fix)
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
