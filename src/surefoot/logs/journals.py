"""The measurements in a study's journal, as rows of a log. Its form is described in :mod:`surefoot.study.records`.

Only what was told or imported is read, and neither chain nor certificates are verified: the audit does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from surefoot.errors import UnreadableFile
from surefoot.logs.files import Log, Row, log_rows
from surefoot.storage.strict_json import parse_line

NAME = "journal.jsonl"


def all_rows(source: Log, last: int) -> Iterator[Row]:
    """The rows of a log; of a study's folder or its ``journal.jsonl``, what was measured. ``last`` is the step H−1."""
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is not None and path.is_dir():
        path = path / NAME
        if not path.exists():
            raise UnreadableFile(
                "there is no study here", where=str(path.parent), fix="Give its folder, or a log file."
            )
    if path is not None and path.name == NAME:
        yield from _journal_rows(path, last)
        return
    yield from log_rows(source)


def _journal_rows(path: Path, last: int) -> Iterator[Row]:
    episode = 0
    with path.open("rb") as stream:
        for n, line in enumerate(stream):
            if not line.endswith(b"\n"):
                return  # still being written, or cut off: it was never acknowledged
            record, place = parse_line(line), f"record {n}"
            kind = record.get("kind")
            if kind == "begin":
                episode = record["episode"]
            elif kind == "tell" and record["unused"] in (None, "successor"):
                keys = ("step", "state", "action", "next_state", "cost")
                yield place, {**{key: record[key] for key in keys}, "episode": episode}
            elif kind == "terminal":
                yield place, {"step": last, "state": record["state"], "cost": record["cost"], "episode": episode}
            elif kind == "import":
                yield from _imported(place, record)


def _imported(place: str, record: Mapping[str, Any]) -> Iterator[Row]:
    names = record["episodes"]
    for i, row in enumerate(record["rows"]):
        keys = ("step", "state", "cost") if len(row) == 3 else ("step", "state", "action", "next_state", "cost")
        found = dict(zip(keys, row, strict=True))
        if names is not None:
            found["episode"] = f"imported {names[i]}"
        yield f"{place}, row {i + 1}", found
