"""A study by JSON: one object says what is called, one object answers. Any language can drive it.

    {"call": "begin", "start": …}                                  → {"episode": 1, "next": "ask"}
    {"call": "ask"}                                                → {"ask_id": …, "action": …, "certificate": …, …}
    {"call": "tell", "ask_id": …, "next_state": …, "cost": …}      → {"repeated": false, "done": false, …}
        with "action_applied": …, "intensity": … if something else was done than was offered; of a plant a next state
        that cannot have followed is refused without "sure": true, and nothing is asked until the tell is right
    {"call": "tell_terminal", "cost": …, "episode": …}             → as tell; "episode" makes a repetition harmless
    {"call": "abort", "reason": …, "episode": …}                   → {"next": "begin"}; "episode" as in tell_terminal
    {"call": "acknowledge", "reason": …, "discard_data": false}    → {"next": "begin"}
        with "noise": {limit: scale, …}, "problem": a file's path or its content, or "trust_anchors": true, as the alarm
        requires; "despite": why, if the problem has errors; "alarms": the records of those that were seen
    {"call": "import_log", "path": …}                              → {"rows": …, …}
        with "different": why rows that are like others are different measurements
    {"call": "export_policy", "path": …}                           → {"path": …}
    {"call": "status"}                                             → the state of the study

Every answer has "next", the call that is due. Labels are JSON values; a tuple is an array. A cost is a number, an array
with one per limit, or null. An error is {"error": its message, "kind": its type}; nothing was changed then. An "id" in
a request is returned in its answer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from inspect import Parameter, signature
from pathlib import Path
from typing import IO, Any

from surefoot.errors import InvalidInput, SurefootError
from surefoot.model import files
from surefoot.model.document import check_version
from surefoot.model.labels import shown
from surefoot.model.problem import Problem
from surefoot.study.study import Study

LONGEST_REQUEST = 1 << 20  #: bytes
CALLS = (
    *("begin", "ask", "tell", "tell_terminal", "abort", "acknowledge"),
    *("import_log", "export_policy", "status"),
)  #: methods of a study

_NAMES = {"rows": "path"}  # of arguments, where JSON has another


def parse_request(text: bytes | str) -> dict[str, Any]:
    """A request. NaN and Infinity pass: a cost that is not finite must reach the study, which raises an alarm."""
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise InvalidInput("the request is nested too deeply") from None
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput("the request is not JSON", got=str(error)[:200]) from None
    if not isinstance(found, dict):
        raise InvalidInput("a request is a JSON object", got=shown(found))
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise InvalidInput("an entry occurs twice", got=shown(twice))
    return found


def arguments_of(call: str) -> dict[str, bool]:
    """The arguments of a call, which are those of the study's method; True for those that are required."""
    _, *own = signature(getattr(Study, call)).parameters.values()
    return {_NAMES.get(each.name, each.name): each.default is Parameter.empty for each in own}


def answer(study: Study, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request; refusals are raised."""
    given = {key: value for key, value in request.items() if key not in ("call", "id")}
    name = request.get("call")
    if type(name) is not str or name not in CALLS:
        raise InvalidInput("no such call", got=shown(name), fix=f"Use one of {', '.join(CALLS)}.")
    takes = arguments_of(name)
    for key in given.keys() - takes.keys():
        raise InvalidInput(
            f"{name} does not take this", got=shown(key), fix=f"It takes {', '.join(takes) or 'nothing'}."
        )
    for key, must in takes.items():
        if must and key not in given:
            raise InvalidInput(f"{name} needs {key!r}")
    if "path" in given:
        given["path"] = _path(given["path"])
    if given.get("problem") is not None:
        given["problem"] = _problem(given["problem"])
    if name == "import_log":
        given["rows"] = given.pop("path")
    result = getattr(study, name)(**given)
    return {**_plain(name, result), "next": study.next_call}


def _plain(name: str, result: Any) -> dict[str, Any]:
    if result is None or isinstance(result, dict):
        return result or {}
    if name == "begin":
        return {"episode": result}
    found: dict[str, Any] = {"path": str(result)} if isinstance(result, Path) else result.to_dict()
    return found


def answer_all(study: Study, requests: IO[bytes], answers: IO[str]) -> None:
    """Answer requests, a line each, until there are no more."""
    while line := requests.readline(LONGEST_REQUEST + 1):
        if not line.strip():
            continue
        reply: dict[str, Any]
        known: object = None
        try:
            if len(line) > LONGEST_REQUEST:
                _skip_line(requests, line)
                raise InvalidInput("the request is too long", got=f"more than {LONGEST_REQUEST} bytes")
            request = parse_request(line)
            known = request.get("id")
            reply = answer(study, request)
        except SurefootError as error:
            reply = {"error": str(error), "kind": type(error).__name__}
        if known is not None:
            reply["id"] = known
        answers.write(reply_line(reply) + "\n")
        answers.flush()


def _skip_line(stream: IO[bytes], line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(LONGEST_REQUEST)


def reply_line(value: dict[str, Any]) -> str:
    """One line of ASCII; a number that is not finite, as in an id, becomes a string."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value), parse_constant=str))


def _problem(given: Any) -> Problem:
    """A problem from its file, or from the document that ``problem.save`` writes."""
    if isinstance(given, dict):
        stored = given.get("arrays", {})
        if not isinstance(stored, dict):
            raise InvalidInput("arrays is an object", got=shown(stored))
        return files.problem_from(check_version(given), stored, LONGEST_REQUEST)
    path = _path(given)
    try:
        return Problem.load(path)
    except OSError as error:
        raise InvalidInput("the problem cannot be read", where=path, got=str(error)) from None


def _path(value: Any) -> str:
    try:
        fits = type(value) is str and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # half of a character
        fits = False
    if not fits:
        raise InvalidInput("a path is text", got=shown(value))
    return str(value)
