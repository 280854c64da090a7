"""The audit's own reading of a journal: is every line what was written, in the order in which it was written? The form
of a line is described in :mod:`surefoot.study.records`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from surefoot.audits.problem import Unreadable

NAME = "journal.jsonl"
VERSION = 6

Record = dict[str, Any]
Say = Callable[[int, str], None]
"""(record, what is wrong with it)."""

ENTRIES = {
    "open": (
        "version surefoot problem problem_file plant failure_probability false_alarm agent options share constants "
        "despite"
    ),
    "begin": "episode start epoch plan made_after safe_mode certified to_gain point",
    "ask": "ask episode step state action intensity certificate point",
    "tell": "ask step state action intensity override next_state cost raw_cost unused ends point",
    "doubt": "ask step state action intensity override next_state cost raw_cost unused ends point",
    "terminal": "episode state cost raw_cost",
    "abort": "episode step state ask reason",
    "alarm": "alarm record message details",
    "acknowledge": "reason alarms discard epoch share monitor constants problem problem_file changes despite",
    "import": "source digest episodes different repeated since rows",
    "grow": "problem problem_file expanded refused",
    "snapshot": "file sha256",
    "clock": "expected",
}

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def read_journal(path: Path, remark: Callable[[str], None]) -> Iterator[tuple[Record | None, list[str]]]:
    """The records of a journal in order, each with what is wrong with its line; the last is None if it is no record."""
    previous, time, n = "0" * 64, "", 0
    for line, is_last in _lines(path):
        if is_last and (not line.endswith(b"\n") or b"\0" in line):
            remark(f"after {n} records stand {len(line)} bytes of one that was never acknowledged")
            return
        try:
            record = _parsed(line)
        except (ValueError, RecursionError) as error:
            yield None, [f"its line is not a record: {str(error)[:200]}; nothing after it was examined"]
            return
        yield record, list(_faults(line, record, n, previous, time))
        if record["kind"] == "clock":  # times start again from here
            remark(f"at record {n} the clock went back, from {record['expected']} to {record['time']}")
            time = ""
        previous, time, n = record["hash"], max(time, str(record["time"])), n + 1


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether it is the last one. Lines that are added meanwhile are ignored."""
    try:
        with path.open("rb") as stream:
            left = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            while line := stream.readline(left):
                left -= len(line)
                yield line, left == 0
    except OSError as error:
        raise Unreadable(f"there is no journal to read: {path}: {error.strerror}") from error


def _parsed(line: bytes) -> Record:
    record = json.loads(line, object_pairs_hook=_unique, parse_constant=_refused)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    kind = record.get("kind")
    entries = ENTRIES.get(kind) if isinstance(kind, str) else None
    if entries is None or list(record) != ["n", "time", "kind", *entries.split(), "previous", "hash"]:
        raise ValueError(f"kind {kind!r} with the entries {', '.join(record)}")
    return record


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an entry is there twice")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _faults(line: bytes, record: Record, n: int, previous: str, time: str) -> Iterator[str]:
    if type(record["n"]) is not int or record["n"] != n:
        yield f"its number is {record['n']!r}: a record was dropped, added or moved"
    if record["previous"] != previous:
        yield "it does not follow from the record before: one of the two was changed, dropped or moved"
    body = compact({key: value for key, value in record.items() if key != "hash"})
    if hashlib.sha256(body).hexdigest() != record["hash"]:
        yield "its content does not match its hash: it was changed"
    elif body[:-1] + b',"hash":"' + str(record["hash"]).encode("ascii", "replace") + b'"}\n' != line:
        yield "its line is not written as records are"
    if not isinstance(record["time"], str) or not _TIME.match(record["time"]):
        yield f"its time is {record['time']!r}"
    elif record["time"] < time and record["kind"] != "clock":
        yield f"its time {record['time']} is earlier than that of the record before, {time}"
