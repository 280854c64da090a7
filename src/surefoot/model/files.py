"""Saves and loads a problem: JSON (``.json``) if it is small, an archive of arrays (``.npz``) if it is large, a folder
of arrays (``.problem``) if it is larger than memory.

All hold the same document (:mod:`surefoot.model.document`, ``problem.schema.json``). Round trips are exact, layers
that share arrays still do, and a write replaces the whole file or nothing. A file that is truncated, corrupted,
hostile or too new is refused; nothing in it is run or unpacked.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import checked
from surefoot.model.document import Document, arrays_in, check_version, from_document, to_document
from surefoot.model.problem import Problem
from surefoot.model.seals import FileSeal
from surefoot.storage import archive as npz
from surefoot.storage import disk, documents, raw_arrays
from surefoot.storage.disk import FileLayer

_RESTORE = "Restore it from a copy, or save it again."
_LEAST_BUDGET = 1 << 20
_JSON_ENTRIES = 200_000  # of arrays; a larger problem is saved as .npz
_HASHED = 1 << 20  # numbers at a time, converted to float64


def save_problem(problem: Problem, path: Path, layer: FileLayer | None = None) -> Path:
    """Write the problem in the format of the path's suffix, whole or not at all; returns the path."""
    if _suffix(path) == ".problem":
        _save_folder(to_document(problem), path, layer)
        return path
    write_document(path, {**to_document(problem), "digest": problem.digest}, layer)
    return path


def load_problem(path: Path, mapped: bool = False) -> Problem:
    """Read what :func:`save_problem` wrote, and check every rule again; anything else raises UnreadableFile.

    ``mapped``: the arrays of a ``.problem`` stay on disk.
    """
    if mapped and _suffix(path) != ".problem":
        fix = "Save the problem as NAME.problem."
        raise InvalidInput("only a .problem can be mapped", got=repr(path.name), fix=fix)
    if _suffix(path) == ".problem":
        with _naming(path):
            return _load_folder(path, mapped)
    with opened_document(path, check_version) as (document, stored, size):
        return problem_from(document, stored, size)


def write_document(path: Path, document: Document, layer: FileLayer | None = None) -> None:
    """Write a document that contains arrays, in the format of the path's suffix, whole or not at all."""
    write = _as_json if _suffix(path) == ".json" else _as_archive
    data = write(document)
    with disk.writing(path):
        (layer or disk.DISK).replace(path, data)


Stored = tuple[Document, Mapping[str, object], int]
"""A document, the arrays that it refers to by name, and the file's size in bytes."""


@contextmanager
def opened_document(path: Path, check: Callable[[object], Document]) -> Iterator[Stored]:
    """Opens what :func:`write_document` wrote; whatever is wrong with it is an UnreadableFile that names the file.

    ``check`` is called first: it returns the document if its format and version can be read.
    """
    suffix = _suffix(path)
    if suffix == ".problem":
        raise InvalidInput("a world is saved as .json or .npz", got=repr(path.name))
    if path.exists() and not path.is_file():  # reading a pipe or device may never end
        raise UnreadableFile("not a regular file", where=str(path), fix="Give the path of a saved file.")
    with _naming(path), (_opened_json if suffix == ".json" else _opened_archive)(path, check) as found:
        yield found


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns whatever is wrong with a file into an UnreadableFile that names it."""
    try:
        yield
    except (UnreadableFile, InvalidInput) as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        fix = error.fix or _RESTORE
        raise UnreadableFile(error.rule, where=where, got=error.got[:300], fix=fix) from error
    except RecursionError:
        raise UnreadableFile("the file is nested too deeply", where=str(path), fix=_RESTORE) from None
    except MemoryError:
        fix = "Load it on a machine with more free memory."
        raise UnreadableFile("the file does not fit in memory", where=str(path), fix=fix) from None


def file_for(problem: Problem, stem: str) -> str:
    """The name of the problem's file: JSON, which people can read, while it is small."""
    layers = problem.graph.layers
    entries = sum(y.cost_features.size + y.transition_features.size + 2 * y.n_edges for y in layers)
    return f"{stem}.json" if entries <= _JSON_ENTRIES else f"{stem}.npz"


def digest(problem: Problem) -> str:
    """A sha256, in hex, of what is declared: arrays with dtype and shape, labels, limits, flags.

    It does not depend on the file format, on which arrays are shared, or on whether features are stored in float32 or
    as the same numbers in float64.
    """
    document = to_document(problem)
    del document["format"], document["version"]
    for layer in document["layers"]:
        if layer["transition_features"] is None:
            layer["transition_features"] = layer["cost_features"]
    known: dict[int, list[object]] = {}  # the document keeps the arrays alive, so ids stay valid

    def fingerprint(array: NDArray[Any]) -> list[object]:
        if id(array) not in known:
            kind = np.dtype("<f8") if array.dtype.kind == "f" else array.dtype.newbyteorder("<")
            content, flat = hashlib.sha256(), np.ascontiguousarray(array).reshape(-1)
            for first in range(0, flat.size, _HASHED):
                content.update(flat[first : first + _HASHED].astype(kind, copy=False).view(np.uint8).data)
            known[id(array)] = [kind.str, list(array.shape), content.hexdigest()]
        return known[id(array)]

    text = json.dumps(document, default=fingerprint, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(b"surefoot-problem 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


# --- writing --------------------------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".npz", ".problem"):
        raise InvalidInput(
            "the file of a problem or a world ends in .json, .npz or .problem",
            got=repr(path.name),
            fix="Use .json for a small one, .npz for a large one, .problem for a problem larger than memory.",
        )
    return suffix


def _as_json(document: Document) -> bytes:
    """Arrays in place, as nested lists; arrays used more than once in a table at the end."""
    uses = Counter(map(id, arrays_in(document)))
    arrays = {id(array): array for array in arrays_in(document)}
    if 2 * sum(array.size for array in arrays.values()) > documents.MAX_BYTES:  # each number takes two bytes or more
        raise _too_large(".json")
    shared = [array for key, array in arrays.items() if uses[key] > 1]
    names = {id(array): f"a{i}" for i, array in enumerate(shared)}
    if shared:
        document["arrays"] = {names[id(array)]: array.tolist() for array in shared}

    def write_array(array: NDArray[Any]) -> object:
        return {"array": names[id(array)]} if id(array) in names else array.tolist()

    return _checked_text(document, write_array, ".json")


def _members(document: Document) -> tuple[dict[str, NDArray[Any]], Callable[[NDArray[Any]], object]]:
    """The arrays of a document by name, and what refers to each of them."""
    arrays = {id(array): array for array in arrays_in(document)}
    names = {key: f"a{i}" for i, key in enumerate(arrays)}
    return {names[key]: array for key, array in arrays.items()}, lambda array: {"array": names[id(array)]}


def _as_archive(document: Document) -> Callable[[BinaryIO], None]:
    members, refer = _members(document)
    header = _checked_text(document, refer, ".npz")
    size = len(header) + sum(array.nbytes + npz.MEMBER_BYTES for array in members.values())
    if len(members) > npz.MAX_MEMBERS or size > npz.MAX_BYTES:
        raise _too_large(".npz")
    return partial(npz.write_archive, header=header, arrays=members)


def _save_folder(document: Document, path: Path, layer: FileLayer | None) -> None:
    """No digest is written, since that would take longer than writing the arrays; the header has their checksums."""
    members, refer = _members(document)

    def header(said: dict[str, Any]) -> bytes:
        return _checked_text({**document, "arrays": said}, refer, ".problem")

    raw_arrays.save_folder(path, members, header, layer)


def _checked_text(document: Document, write_array: Callable[[Any], object], suffix: str) -> bytes:
    """JSON with a line for each entry and layer; an error if it could not be loaded again."""

    def line(value: object) -> str:
        return json.dumps(value, default=write_array, ensure_ascii=False, allow_nan=False)

    def lines(part: Document) -> str:
        return "{\n" + ",\n".join(f'"{key}": {entry(key, value)}' for key, value in part.items()) + "\n}"

    def entry(key: str, value: Any) -> str:
        if key == "layers":
            return "[\n  " + ",\n  ".join(map(line, value)) + "\n]"
        return lines(value) if key == "problem" and isinstance(value, dict) else line(value)

    text = lines(document) + "\n"
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(
            "a label or name holds half a character",
            got="a surrogate code point, which a file cannot hold",
            fix="Use complete characters in labels and in the names of limits.",
        ) from None
    if documents.too_large(data):
        raise _too_large(suffix)
    return data


def _too_large(suffix: str) -> InvalidInput:
    fix = "Save it as .npz." if suffix == ".json" else "Use numbers instead of labels, or fewer steps."
    return InvalidInput(f"the problem is too large for a {suffix} file", fix=fix)


# --- reading --------------------------------------------------------------------------------------------


@contextmanager
def _opened_json(path: Path, check: Callable[[object], Document]) -> Iterator[Stored]:
    value, size = documents.read_json(path, fix="Save it as .npz.")
    document = check(value)
    stored = document.get("arrays", {})
    if not isinstance(stored, dict):
        raise checked.wrong("$.arrays", "an object", stored)
    yield document, stored, size


@contextmanager
def _opened_archive(path: Path, check: Callable[[object], Document]) -> Iterator[Stored]:
    with npz.opened(path) as (header, open_members):
        document = check(header)
        if "arrays" in document:
            raise UnreadableFile("unknown entry", where=f"{npz.HEADER}, $", got="'arrays'")
        members = open_members()
        yield document, members, members.size


def _load_folder(path: Path, mapped: bool) -> Problem:
    if path.exists() and not path.is_dir():
        raise UnreadableFile("not a folder", fix="Give the path of a saved problem.")
    document = check_version(raw_arrays.read_header(path))
    stored = raw_arrays.open_arrays(path, document.pop("arrays", None), mapped)
    problem = problem_from(document, stored, sum(array.nbytes for array in stored.values()))
    if not mapped:
        return problem
    names = {id(array): name for name, array in stored.items()}
    used = {id(array): array for array in problem.graph.arrays() if id(array) in names}
    seals = [FileSeal.of(names[key], used[key], raw_arrays.file_of(path, names[key])) for key in used]
    return replace(problem, seals=tuple(seals))


def problem_from(document: Document, stored: Mapping[str, object], size: int) -> Problem:
    """The problem in a document; if the document has a digest, it must be right."""
    problem = from_document(document, stored, max(size, _LEAST_BUDGET))
    expected = document.get("digest")
    if "digest" in document and expected != problem.digest:
        raise UnreadableFile(
            "the content does not match its digest",
            where="$.digest",
            got=f"{checked.short(expected)} where {problem.digest!r} is expected",
            fix=f"{_RESTORE} If it was edited on purpose, remove its digest.",
        )
    return problem
