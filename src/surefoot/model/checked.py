"""Readers for documents that cannot be trusted: each value has the expected type, or an error names its JSON path."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import UnreadableFile
from surefoot.model.labels import Label, check_label

_JSON_TYPES: dict[str, set[type]] = {"f": {float, int}, "i": {int}, "b": {bool}}
_KINDS = {"f": "a number", "i": "a whole number", "b": "true or false"}
_HALF = re.compile("[\ud800-\udfff]")  # two of them would come back as one character


def mapping(value: object, at: str, keys: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """An object with exactly these keys, and perhaps some of the optional ones."""
    if not isinstance(value, dict):
        raise wrong(at, "an object", value)
    for key in keys:
        if key not in value:
            raise UnreadableFile("an entry is missing", where=at, got=f"no {key!r}")
    for key in value:
        if key not in keys and key not in optional:
            raise UnreadableFile("unknown entry", where=at, got=short(key))
    return value


def entries(value: object, at: str, keys: Sequence[str]) -> dict[str, Any]:
    """An object with at least these keys."""
    return mapping(value, at, keys, optional=list(value) if isinstance(value, dict) else ())


def of_format(value: object, what: str, format: str, version: int, old: str) -> dict[str, Any]:
    """An object of this format and version; the rest is not checked here. ``old``: what to do about an older one."""
    if not isinstance(value, dict) or value.get("format") != format:
        kind = value.get("format") if isinstance(value, dict) else value
        raise UnreadableFile(f"not {what} of surefoot", where="$.format", got=f"{short(kind)}, not {format!r}")
    found = integer(entries(value, "$", ("version",))["version"], "$.version")
    if found != version:
        age, fix = ("a newer", "Upgrade surefoot.") if found > version else ("an older", old)
        got = f"version {short(found)}, this surefoot reads version {version}"
        raise UnreadableFile(f"written by {age} version", where="$.version", got=got, fix=fix)
    return value


def sequence(value: object, at: str, length: int | None = None, of: str = "") -> list[Any]:
    if not isinstance(value, list):
        raise wrong(at, "an array", value)
    if length is not None and len(value) != length:
        raise UnreadableFile(
            "wrong number of entries", where=at, got=f"{len(value)} where {of} = {length} are expected"
        )
    return value


def integer(value: object, at: str) -> int:
    if type(value) is not int:
        raise wrong(at, "a whole number", value)
    return value


def floating(value: object, at: str) -> float:
    if type(value) is not int and type(value) is not float:
        raise wrong(at, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise UnreadableFile("a number is too large", where=at, got="does not fit float64") from None


def finite(value: object, at: str) -> float:
    found = floating(value, at)
    if not math.isfinite(found):
        raise UnreadableFile("a number is not finite", where=at, got=short(value))
    return found


def flag(value: object, at: str) -> bool:
    if type(value) is not bool:
        raise wrong(at, "true or false", value)
    return value


def string(value: object, at: str) -> str:
    if type(value) is not str:
        raise wrong(at, "a text", value)
    if _HALF.search(value):
        raise UnreadableFile("a text holds half a character", where=at, got=short(value))
    return value


def list_of_reals(value: object, at: str) -> list[float]:
    return [floating(each, f"{at}[{k}]") for k, each in enumerate(sequence(value, at))]


def pair_of_reals(value: object, at: str) -> list[float]:
    found = list_of_reals(value, at)
    if len(found) != 2:
        raise wrong(at, "[lowest, highest]", value)
    return found


def list_of_names(value: object, at: str, columns: bool = False) -> list[Any] | None:
    """Texts, or None; with ``columns`` also whole numbers."""
    if value is None:
        return None
    names = enumerate(sequence(value, at))
    return [name if columns and type(name) is int else string(name, f"{at}[{k}]") for k, name in names]


def labels(value: object, at: str) -> list[Label]:
    found = [_label(item, f"{at}[{i}]") for i, item in enumerate(sequence(value, at))]
    for i, label in enumerate(found):
        check_label(label, f"{at}[{i}]")
    return found


def _label(value: object, at: str) -> Label:
    if isinstance(value, list):
        return tuple(_label(item, f"{at}[{i}]") for i, item in enumerate(value))
    if isinstance(value, dict):
        raise wrong(at, "a text, number, true, false, null or an array of these", value)
    return string(value, at) if isinstance(value, str) else value


def wrong(at: str, expected: str, value: object) -> UnreadableFile:
    return UnreadableFile("wrong type", where=at, got=f"{short(value)} where {expected} is expected")


def short(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # a whole number of thousands of digits
        return f"a {type(value).__name__} too long to show"


def converted(value: object, at: str, dtype: np.dtype[Any], ndim: int) -> NDArray[Any]:
    """A nested list as an array; numpy alone would read '1' or true as 1, and cut 1.5 to 1."""
    if isinstance(value, np.ndarray):
        return value
    flat = sequence(value, at)
    shape: tuple[int, ...] = (len(flat),)
    if ndim == 2:
        rows = flat
        for i, row in enumerate(rows):
            sequence(row, f"{at}[{i}]", len(rows[0]) if i else None, "the length of the first row")
        shape = (len(rows), len(rows[0]) if rows else 0)
        flat = list(chain.from_iterable(rows))
    allowed = _JSON_TYPES[dtype.kind]
    if not set(map(type, flat)) <= allowed:
        i = next(i for i, item in enumerate(flat) if type(item) not in allowed)
        place = f"[{i}]" if ndim == 1 else f"[{i // shape[1]}][{i % shape[1]}]"
        raise wrong(f"{at}{place}", _KINDS[dtype.kind], flat[i])
    try:
        return np.array(flat, dtype).reshape(shape)
    except OverflowError:
        raise UnreadableFile("a number is too large", where=at, got=f"does not fit {dtype}") from None
