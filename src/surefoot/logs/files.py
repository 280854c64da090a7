"""Reads logs: CSV, JSON lines, Parquet, or an iterable of mappings, one per row."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.checks import needed
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model.labels import shown
from surefoot.storage.documents import parse_line

MOST_ROWS = 1_000_000  #: in one import, which is one record of the journal


Log = str | Path | Iterable[Mapping[str, Any]]
Row = tuple[str, Mapping[str, Any]]
"""(where it stands: "line 7" of a text file, else "row 7"; its entries)."""


class Text(str):
    """A cell of a CSV file; its column decides what it stands for."""

    __slots__ = ()


def log_rows(source: Log) -> Iterator[Row]:
    """The rows of a log; of a file, according to its suffix: .csv, .jsonl or .ndjson, .parquet."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        readers = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
        reader = readers.get(path.suffix.lower())
        if reader is None:
            raise InvalidInput("a log ends in .csv, .jsonl, .ndjson or .parquet", got=repr(path.name))
        try:
            yield from reader(path)
        except (OSError, UnicodeError, csv.Error) as error:
            raise UnreadableFile("the log cannot be read", where=str(path), got=str(error)) from error
        return
    if not isinstance(source, Iterable):
        raise InvalidInput("a log is a file, a study's folder, or rows", got=shown(source))
    for i, row in enumerate(source):
        if not isinstance(row, Mapping):
            raise InvalidInput("a row is a mapping", where=f"row {i + 1}", got=shown(row), fix=_of_frame(source, row))
        yield f"row {i + 1}", row


def _of_frame(source: object, row: object) -> str:
    framed = hasattr(source, "to_dict") or hasattr(row, "to_dict")
    return "Of a pandas frame, give frame.to_dict('records')." if framed else ""


def _csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, strict=True)
        header = next(rows, None)
        if header is None or len(set(header)) < len(header):
            raise UnreadableFile("a CSV log begins with the names of its columns", where=str(path), got=repr(header))
        end = rows.line_num
        for cells in rows:
            place, end = f"line {end + 1}", rows.line_num  # a quoted cell may go over several lines
            if not cells:
                continue
            if len(cells) != len(header):
                got = f"{len(cells)} cells where {len(header)} are expected"
                raise UnreadableFile("a row of another length", where=f"{path}, {place}", got=got)
            yield place, {name: Text(cell) if cell != "" else None for name, cell in zip(header, cells, strict=True)}


def _json_lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as stream:
        for i, line in enumerate(stream):
            if line.strip():
                try:
                    row = parse_line(line if i else line.removeprefix(codecs.BOM_UTF8))
                except UnreadableFile as error:
                    raise UnreadableFile(error.rule, where=f"{path}, line {i + 1}", got=error.got) from None
                yield f"line {i + 1}", row


def _parquet(path: Path) -> Iterator[Row]:
    pyarrow = needed("pyarrow", "reading Parquet", "'surefoot[parquet]'")
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            i, single = 0, [part.name for part in file.schema_arrow if part.type == pyarrow.float32()]
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    i += 1
                    yield f"row {i}", row | {name: np.float32(row[name]) for name in single if row[name] is not None}
    except pyarrow.ArrowException as error:
        raise UnreadableFile("the log cannot be read", where=str(path), got=str(error)[:200]) from error


# --- the measurements in a study's journal (surefoot.study.records): what was told or imported. Nothing is verified;
# that is for the audit.

NAME = "journal.jsonl"


def all_rows(source: Log, last: int) -> Iterator[Row]:
    """The rows of a log, or the measurements of a study (its folder or ``journal.jsonl``). ``last`` is the step H−1."""
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is not None and path.is_dir():
        path = path / NAME
        if not path.exists():
            raise UnreadableFile(
                "there is no study here", where=repr(str(path.parent)), fix="Give its folder, or a log file."
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
                keys = ("step", "state", "action", "next_state", "intensity", "cost")
                yield place, {**{key: record[key] for key in keys}, "episode": episode}
            elif kind == "terminal":
                yield place, {"step": last, "state": record["state"], "cost": record["cost"], "episode": episode}
            elif kind == "import":
                yield from _imported(place, record)


_KEYS = {  # of the rows of an import's record, by their length
    3: ("step", "state", "cost"),
    5: ("step", "state", "action", "next_state", "cost"),
    6: ("step", "state", "action", "next_state", "intensity", "cost"),
}


def _imported(place: str, record: Mapping[str, Any]) -> Iterator[Row]:
    names = record["episodes"]
    for i, row in enumerate(record["rows"]):
        found = dict(zip(_KEYS[len(row)], row, strict=True))
        if names is not None:
            found["episode"] = f"imported {names[i]}"
        yield f"{place}, row {i + 1}", found
