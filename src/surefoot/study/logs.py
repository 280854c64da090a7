"""Reading logs: CSV, JSON lines, Parquet, or an iterable of mappings, one mapping per row.

Cells are read strictly: what is not written as a number or as one of the problem's labels is an error, never a guess.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model.labels import other_spellings, shown
from surefoot.storage.strict_json import parse_line
from surefoot.study import records

MOST_ROWS = 1_000_000  #: in one import, which is one record of the journal


Log = str | Path | Iterable[Mapping[str, Any]]
Row = tuple[str, Mapping[str, Any]]
"""(where it stands: "line 7" of a text file, else "row 7"; its entries)."""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STEP = re.compile(r"0|[1-9][0-9]{0,8}")


class Text(str):
    """A cell of a CSV file: what it stands for depends on where it is."""

    __slots__ = ()


def log_rows(source: Log) -> Iterator[Row]:
    """The rows of a log. The suffix of a path says what it is: .csv, .jsonl or .ndjson, .parquet."""
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
    for i, row in enumerate(source):
        if not isinstance(row, Mapping):
            raise InvalidInput("a row is a mapping", where=f"row {i + 1}", got=f"a {type(row).__name__}")
        yield f"row {i + 1}", row


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
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        fix = "Install surefoot[parquet]."
        raise InvalidInput("reading Parquet needs pyarrow", got=str(path), fix=fix) from None
    try:
        with parquet.ParquetFile(path) as file:
            i, single = 0, [part.name for part in file.schema_arrow if part.type == pyarrow.float32()]
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    i += 1
                    yield f"row {i}", row | {name: np.float32(row[name]) for name in single if row[name] is not None}
    except pyarrow.ArrowException as error:
        raise UnreadableFile("the log cannot be read", where=str(path), got=str(error)[:200]) from error


# --- what a cell stands for -----------------------------------------------------------------------------


def readings(value: object) -> list[object]:
    """What a label's cell may mean. A CSV cell ``3`` is the number or the text; the problem knows which."""
    if not isinstance(value, Text):
        return [value]
    if value.startswith("("):  # a tuple as Python writes it
        return [*(each for each in other_spellings(str(value)) if repr(each) == value), str(value)]
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return [str(value)]
    if parsed == str(value) or value not in _spellings(parsed):  # " 3", 3.00 and NaN are text, and most likely unknown
        return [str(value)]
    return [parsed, str(value)]


def _spellings(value: object) -> list[str]:
    return [
        json.dumps(value, ensure_ascii=plain, separators=between)
        for plain in (True, False)
        for between in ((", ", ": "), (",", ":"))
    ]


def step_in(value: object) -> object:
    """The number of a step, from a cell or as it is; text that is none stays text and is refused later."""
    if isinstance(value, Text):
        return int(value) if _STEP.fullmatch(value) else str(value)
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


def cost_in(value: object, where: str) -> object:
    """A cost: a number, a list of them, or None, from a cell or as it is.

    In single precision 0.21 is 0.20999999344348907; it is read as 0.21, so that a copy of 0.21 is known again.
    """
    if isinstance(value, np.float32):
        return float(str(value))
    if not isinstance(value, Text):
        return value
    if _NUMBER.fullmatch(value):
        return float(value)
    if value.startswith("["):
        try:
            parsed: object = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list):
            return parsed
    fix = "Write it as 0.5, -12 or 3e-4, nothing around it; leave the cell empty if it was not measured."
    raise InvalidInput("a cost must be a number", where=where, got=shown(str(value)), fix=fix)
