"""A study by JSON: one object says what is called, one object answers. Any language can drive it.

    {"call": "begin", "start": …}                                  → {"episode": 1, "next": "ask"}
    {"call": "ask"}                                                → {"ask_id": …, "action": …, "certificate": …, …}
    {"call": "tell", "ask_id": …, "next_state": …, "cost": …}      → {"repeated": false, "done": false, …}
        with "action_applied": …, "intensity": … when something else was done than was offered
    {"call": "tell_terminal", "cost": …, "episode": …}             → as tell; "episode" makes a repetition harmless
    {"call": "abort", "reason": …, "episode": …}                   → {"next": "begin"}; "episode" as in tell_terminal
    {"call": "acknowledge", "reason": …, "discard_data": false}    → {"next": "begin"}
        with "noise": {limit: scale, …}, "problem": a file's path, or "trust_anchors": true, as the alarm asks for
    {"call": "import_log", "path": …}                              → {"rows": …, …}
        with "different": why rows that are like others are different measurements
    {"call": "export_policy", "path": …}                           → {"path": …}
    {"call": "status"}                                             → where the study stands

Every answer holds "next", the call that is due. Labels are JSON values, a tuple is an array. A cost is a number, an
array with one per limit, or null. An error is {"error": its message, "kind": its type}; nothing was changed then.
An "id" in a request is given back in its answer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from typing import IO, Any

from surefoot.errors import InvalidInput, SurefootError
from surefoot.model.labels import shown
from surefoot.model.problem import Problem
from surefoot.study.study import Study
from surefoot.study.telling import AS_OFFERED

LONGEST_REQUEST = 1 << 20  #: bytes

_REQUIRED = object()


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
        raise InvalidInput("an entry is there twice", got=shown(twice))
    return found


def answer(study: Study, request: dict[str, Any]) -> dict[str, Any]:
    """What a request gives; refusals are raised."""
    arguments = {key: value for key, value in request.items() if key not in ("call", "id")}
    name = request.get("call")
    if type(name) is not str or name not in _CALLS:
        raise InvalidInput("no such call", got=shown(name), fix=f"Use one of {', '.join(_CALLS)}.")
    call, takes = _CALLS[name]
    for key in arguments:
        if key not in takes:
            raise InvalidInput(
                f"{name} does not take this", got=shown(key), fix=f"It takes {', '.join(takes) or 'nothing'}."
            )
    for key, default in takes.items():
        if default is _REQUIRED and key not in arguments:
            raise InvalidInput(f"{name} needs {key!r}")
    result = call(study, **{**takes, **arguments})
    return {**result, "next": study.next_call}


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
    """One line of ASCII; what is not finite, as in an id, becomes a string."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value), parse_constant=str))


def _begin(study: Study, start: Any) -> dict[str, Any]:
    return {"episode": study.begin(start)}


def _ask(study: Study) -> dict[str, Any]:
    return study.ask().to_dict()


def _tell(study: Study, ask_id: Any, next_state: Any, cost: Any, action_applied: Any, intensity: Any) -> dict[str, Any]:
    return study.tell(ask_id, next_state, cost, action_applied, intensity).to_dict()


def _tell_terminal(study: Study, cost: Any, episode: Any) -> dict[str, Any]:
    _whole_or_none("episode", episode)
    return study.tell_terminal(cost, episode).to_dict()


def _abort(study: Study, reason: Any, episode: Any) -> dict[str, Any]:
    _whole_or_none("episode", episode)
    study.abort(reason, episode)
    return {}


def _acknowledge(
    study: Study, reason: Any, discard_data: Any, noise: Any, problem: Any, trust_anchors: Any
) -> dict[str, Any]:
    _flag("discard_data", discard_data)
    _flag("trust_anchors", trust_anchors)
    declared = None if problem is None else _problem(_path(problem))
    study.acknowledge(reason, discard_data=discard_data, noise=noise, problem=declared, trust_anchors=trust_anchors)
    return {}


def _import_log(study: Study, path: Any, different: Any) -> dict[str, Any]:
    return study.import_log(_path(path), different=different).to_dict()


def _export_policy(study: Study, path: Any, start: Any, exploit: Any) -> dict[str, Any]:
    _flag("exploit", exploit)
    return {"path": str(study.export_policy(_path(path), start=start, exploit=exploit))}


def _status(study: Study) -> dict[str, Any]:
    return study.status()


def _whole_or_none(name: str, value: Any) -> None:
    if value is not None and type(value) is not int:
        raise InvalidInput(f"{name} is a whole number", got=shown(value))


def _flag(name: str, value: Any) -> None:
    if type(value) is not bool:
        raise InvalidInput(f"{name} is true or false", got=shown(value))


def _problem(path: str) -> Problem:
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


_CALLS: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Any]]] = {
    "begin": (_begin, {"start": None}),
    "ask": (_ask, {}),
    "tell": (
        _tell,
        {
            **{"ask_id": _REQUIRED, "next_state": _REQUIRED, "cost": _REQUIRED},
            **{"action_applied": AS_OFFERED, "intensity": None},
        },
    ),
    "tell_terminal": (_tell_terminal, {"cost": _REQUIRED, "episode": None}),
    "abort": (_abort, {"reason": "", "episode": None}),
    "acknowledge": (
        _acknowledge,
        {"reason": _REQUIRED, "discard_data": False, "noise": None, "problem": None, "trust_anchors": False},
    ),
    "import_log": (_import_log, {"path": _REQUIRED, "different": None}),
    "export_policy": (_export_policy, {"path": _REQUIRED, "start": None, "exploit": False}),
    "status": (_status, {}),
}
