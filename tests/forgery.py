"""A careful forger of journals: whatever is changed, all that can be computed anew fits again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = dict[str, Any]

JOURNAL = "journal.jsonl"


def records_of(path: Path) -> list[Record]:
    return [json.loads(line) for line in (path / JOURNAL).read_bytes().splitlines()]


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def sealed(record: Record) -> bytes:
    """The line of a record, with the right hash."""
    body = compact({key: value for key, value in record.items() if key != "hash"})
    return body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode("ascii") + b'"}\n'


def forge(path: Path, edit: Callable[[list[Record]], Any]) -> None:
    """Change the records of a journal; numbers, references, ask ids, times and every hash are then made to fit."""
    records = records_of(path)
    edit(records)
    new = {record["n"]: n for n, record in enumerate(records)}
    previous, asks, lines = "0" * 64, dict[str, str](), list[bytes]()
    time = records[0]["time"]
    for n, record in enumerate(records):
        time = record["time"] = max(time, record["time"])
        record["n"], record["previous"] = n, previous
        if record["kind"] == "ask":
            asks[record["ask"]] = f"{n}-{previous[:8]}"
        if record.get("ask") is not None:
            record["ask"] = asks.get(record["ask"], record["ask"])
        if record["kind"] == "begin":
            record["made_after"] = new.get(record["made_after"], record["made_after"])
        if record["kind"] == "alarm":
            record["record"] = new.get(record["record"], record["record"])
        if record["kind"] == "acknowledge":
            record["alarms"] = [new.get(at, at) for at in record["alarms"]]
        if record["kind"] == "import":
            record["digest"] = hashlib.sha256(compact(record["rows"])).hexdigest()
        line = sealed(record)
        previous = json.loads(line)["hash"]
        lines.append(line)
    (path / JOURNAL).write_bytes(b"".join(lines))
