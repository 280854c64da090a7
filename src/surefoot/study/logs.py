"""Reading logs: CSV, JSON lines, Parquet, or an iterable of mappings, one mapping per row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.study import records

MOST_ROWS = 1_000_000  #: in one import, which is one record of the journal


class Text(str):
    """A cell of a CSV file: what it stands for depends on where it is."""

    __slots__ = ()


def read(source: str | Path | Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows of a log. The suffix of a path says what it is: .csv, .jsonl or .ndjson, .parquet."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        readers = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
        reader = readers.get(path.suffix.lower())
        if reader is None:
            raise InvalidInput("a log ends in .csv, .jsonl, .ndjson or .parquet", got=repr(path.name))
        try:
            yield from reader(path)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UnreadableFile("the log cannot be read", where=str(path), got=str(error)) from error
        return
    for i, row in enumerate(source):
        if not isinstance(row, Mapping):
            raise InvalidInput("a row is a mapping", where=f"row {i + 1}", got=f"a {type(row).__name__}")
        yield row


def _csv(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, strict=True)
        header = next(rows, None)
        if header is None or len(set(header)) < len(header):
            raise UnreadableFile("a CSV log begins with the names of its columns", where=str(path), got=repr(header))
        for i, cells in enumerate(rows):
            if not cells:
                continue
            if len(cells) != len(header):
                got = f"{len(cells)} cells where {len(header)} are expected"
                raise UnreadableFile("a row of another length", where=f"{path}, row {i + 1}", got=got)
            yield {name: Text(cell) if cell != "" else None for name, cell in zip(header, cells, strict=True)}


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as stream:
        for i, line in enumerate(stream):
            if line.strip():
                try:
                    yield records.parse(line)
                except UnreadableFile as error:
                    raise UnreadableFile(error.rule, where=f"{path}, row {i + 1}", got=error.got) from None


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        fix = "Install surefoot[parquet]."
        raise InvalidInput("reading Parquet needs pyarrow", got=str(path), fix=fix) from None
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise UnreadableFile("the log cannot be read", where=str(path), got=str(error)[:200]) from error


# --- what a cell stands for -----------------------------------------------------------------------------


def readings(value: object) -> list[object]:
    """What a label's cell may mean. A CSV cell ``3`` is the number or the text; the problem knows which."""
    if not isinstance(value, Text):
        return [value]
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return [str(value)]
    return [str(value)] if parsed == str(value) else [parsed, str(value)]


def whole(value: object) -> object:
    """The layer's number, from a cell or as it is."""
    if isinstance(value, Text):
        return int(value) if value.strip().isdecimal() and len(value) < 10 else str(value)
    return value


def moment(value: object) -> str | None:
    """When a row was measured, as a record's time; None for what is no time, or leaves its zone open."""
    try:
        seconds = float(value) if isinstance(value, (int, float, Text)) and not isinstance(value, bool) else None
    except ValueError:
        seconds = None
    try:
        if seconds is None:
            when = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
            if when.tzinfo is None:
                return None
            seconds = when.timestamp()
        return records.time_text(seconds)
    except (ValueError, OverflowError, InvalidInput):
        return None


def number(value: object) -> object:
    """A cost: a number, a list of them, or None; text that is neither stays text and is refused later."""
    if not isinstance(value, Text):
        return value
    try:
        return float(value)
    except ValueError:
        pass
    try:
        parsed: object = json.loads(value)
    except (ValueError, RecursionError):
        return str(value)
    return parsed if isinstance(parsed, list) else str(value)
