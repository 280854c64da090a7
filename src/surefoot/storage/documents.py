"""Reads JSON that cannot be trusted, and TOML; a file that is too large is refused before it is parsed.

NaN, duplicate entries and numbers with thousands of digits, which JSON leaves undefined, are refused.
"""

from __future__ import annotations

import json
import math
import reprlib
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surefoot.errors import SurefootError, UnreadableFile

# Parsed JSON takes up to 25 times its size, most of it for brackets: together these bound it near 1 GiB.
MAX_BYTES = 64 << 20
MAX_BRACKETS = 4 << 20
MAX_TOML = 1 << 20  # bytes


@contextmanager
def reading(path: Path, damaged: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one error that names it; ``damaged``: the rule for errors that
    are not surefoot's own."""
    try:
        yield
    except UnreadableFile as error:
        got = ": ".join(part for part in (error.where, error.got) if part)[:300]
        raise UnreadableFile(error.rule, where=str(path), got=got, fix=error.fix) from error
    except Exception as error:  # numpy, pyarrow, json and the file system each have their own
        got = str(error) if isinstance(error, SurefootError) else repr(error)
        raise UnreadableFile(damaged, where=str(path), got=got[:300]) from error


def read_json(path: Path, fix: str = "") -> tuple[Any, int]:
    """The value in a file, and the file's size. ``fix``: what to do if it is too large."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return parse_json(data, fix=fix), len(data)


def too_large(data: bytes) -> bool:
    return len(data) > MAX_BYTES or data.count(b"[") + data.count(b"{") > MAX_BRACKETS


def parse_json(data: bytes, where: str = "", fix: str = "") -> Any:
    """The value of a document, or UnreadableFile. Its numbers are for the caller to check."""
    if too_large(data):
        got = f"at most {MAX_BYTES} bytes and {MAX_BRACKETS} brackets are read"
        raise UnreadableFile("the JSON is too large", where=where, got=got, fix=fix)
    return _parsed(data, where, float)


def parse_line(data: bytes) -> dict[str, Any]:
    """The object on a line of a journal or log, of any length; a number that overflows is refused."""
    found = _parsed(data, "", _finite)
    if not isinstance(found, dict):
        raise UnreadableFile("not a JSON object", got=reprlib.repr(found))
    return found


def _parsed(data: bytes, where: str, real: Callable[[str], float]) -> Any:
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=real
        )
    except UnicodeDecodeError as error:
        raise UnreadableFile("not UTF-8 text", where=where, got=f"byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UnreadableFile(
            "not complete, valid JSON", where=f"{where}, {place}" if where else place, got=error.msg
        ) from None
    except RecursionError:
        raise UnreadableFile("the file is nested too deeply", where=where) from None
    except UnreadableFile:
        raise
    except ValueError as error:  # Python refuses to read whole numbers of thousands of digits
        raise UnreadableFile("a number is too large", where=where, got=str(error)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UnreadableFile("an entry occurs twice", got=reprlib.repr(key))
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise UnreadableFile("a number is not finite", got=name)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise UnreadableFile("a number is not finite", got=text[:40])
    return number


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """(the document, its text) of a TOML file; anything else is an error that names the file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TOML + 1)
    except OSError as error:
        raise UnreadableFile("the file cannot be read", where=str(path), got=error.strerror or "") from error
    if len(data) > MAX_TOML:
        raise UnreadableFile("the file is too large", where=str(path))
    try:
        text = data.decode("utf-8")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        raise UnreadableFile("not UTF-8 text", where=str(path), got=f"byte {error.start}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableFile("not valid TOML", where=str(path), got=str(error)) from None
