"""Saves and loads a world, a problem with its truth, as JSON or ``.npz``.

::

    {"format": "surefoot-world", "version": 1,
     "noise": "gaussian",
     "transition": [[…], …],        μ: one row per decision step, or a single row for all of them
     "cost": [[[…], …], …],         γ: per step and limit; or per limit, for all steps; or, with one limit, a single row
     "deviation": null,             or per decision step an array (E, m), and at the end one (S, m)
     "digest": "…",                 of the world; may be left out in a file written by hand
     "problem": {…}}                the document of :mod:`surefoot.model.files`

A truth written by hand may leave ``problem`` out; it is then given when the file is read
(``sf.World.load("truth.json", problem)``, ``surefoot run problem.json --world truth.json``). Round trips are exact, a
write replaces the whole file or nothing, and everything that is read is checked; nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.model import checked, files
from surefoot.model import document as problems
from surefoot.model.document import Document
from surefoot.model.growing import refuse_growing
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

FORMAT, VERSION = "surefoot-world", 1

_NEEDED = ("format", "version", "transition", "cost")
_OPTIONAL = ("noise", "deviation", "digest", "problem", "arrays")
_FLOAT = np.dtype(np.float64)
_DEEPEST = 3


def save_world(world: World, path: Path) -> Path:
    """Write the world in the format of the path's suffix, whole or not at all; returns the path."""
    refuse_growing(world.problem, "a file of a world")
    if world.exact_digest is not None:
        raise InvalidInput(
            "the truth of a world stored in float32 follows from features that it no longer has",
            fix="Save the world that stored_in_float32() was called on, and call it again after loading.",
        )
    document: Document = {
        "format": FORMAT,
        "version": VERSION,
        "noise": world.noise,
        "transition": world.transition,
        "cost": list(world.cost_parameters),
        "deviation": None if world.deviation is None else list(world.deviation),
        "digest": world.digest,
        "problem": {**problems.to_document(world.problem), "digest": world.problem.digest},
    }
    files.write_document(path, document)
    return path


def load_world(path: Path, problem: Problem | None = None) -> World:
    """Read a world. A file without a problem needs ``problem``; otherwise ``problem`` must be the file's own."""
    with files.opened_document(path, _check) as (document, stored, size):
        top = checked.mapping(document, "$", _NEEDED, _OPTIONAL)
        reader = _Reader(stored)
        transition = reader.numbers(top["transition"], "$.transition")
        cost = reader.numbers(top["cost"], "$.cost")
        noise = None if top.get("noise") is None else checked.string(top["noise"], "$.noise")
        deviation = reader.deviation(top.get("deviation"))
        world = World(_problem(top, reader.left(), size, problem), transition, cost, noise, deviation)
        if top.get("digest", world.digest) != world.digest:
            raise UnreadableFile(
                "the content does not match its digest",
                where="$.digest",
                got=f"{checked.short(top['digest'])} where {world.digest!r} is expected",
                fix="Restore it from a copy. If it was edited on purpose, remove its digest.",
            )
        return world.named(path.name)


def _check(document: object) -> Document:
    if isinstance(document, dict) and document.get("format") == problems.FORMAT:
        fix = "Give its truth too: surefoot run problem.json --world truth.json, or sf.World(problem, …).save(path)."
        raise UnreadableFile("a problem, not a world", where="$.format", got=repr(problems.FORMAT), fix=fix)
    if isinstance(document, dict) and "format" not in document and "cost" in document:
        fix = f'A truth that is written by hand begins with {{"format": "{FORMAT}", "version": {VERSION}, …'
        raise UnreadableFile("not marked as a world", where="$.format", got="no format", fix=fix)
    return checked.of_format(document, "a world", FORMAT, VERSION, "Save the world anew.")


def _problem(top: Document, stored: Mapping[str, object], size: int, given: Problem | None) -> Problem:
    if top.get("problem") is None:
        if stored:
            raise UnreadableFile("an array is not used", where="$.arrays", got=checked.short(next(iter(stored))))
        if given is None:
            fix = "Give it: sf.World.load(path, problem), or surefoot run problem.json --world FILE."
            raise InvalidInput("the file holds a truth without its problem", fix=fix)
        return given
    try:
        found = files.problem_from(problems.check_version(top["problem"]), stored, size)
    except (UnreadableFile, InvalidInput) as error:
        raise UnreadableFile(error.rule, where=f"$.problem: {error.where}", got=error.got, fix=error.fix) from error
    if given is not None and given.digest != found.digest:
        got = f"problem {found.digest[:12]}… in the file, {given.digest[:12]}… was given"
        raise InvalidInput(
            "the truth belongs to another problem", got=got, fix="Leave the problem out, or give its own."
        )
    return found if given is None else given


class _Reader:
    """Reads the numbers of a document, in place or stored separately, and records which stored arrays it has used."""

    def __init__(self, stored: Mapping[str, object]) -> None:
        self._stored, self._used = stored, set[str]()

    def numbers(self, value: object, at: str) -> NDArray[Any]:
        """An array of one to three axes, as nested lists, or lists of arrays that are stored separately."""
        if isinstance(value, dict):
            return self._array(value, at)
        rows = checked.sequence(value, at)
        depth = _depth(value)
        if depth > _DEEPEST or not rows:
            raise checked.wrong(at, f"numbers in one to {_DEEPEST} levels of brackets", value)
        if depth <= 2 and not isinstance(rows[0], dict):
            return checked.converted(value, at, _FLOAT, depth)
        parts = [self.numbers(row, f"{at}[{i}]") for i, row in enumerate(rows)]
        if len({part.shape for part in parts}) != 1:
            raise UnreadableFile("rows of different lengths", where=at, got=str([part.shape for part in parts][:4]))
        return np.stack(parts)

    def deviation(self, value: object) -> list[NDArray[Any]] | None:
        if value is None:
            return None
        return [
            self.numbers(part, f"$.deviation[{i}]") for i, part in enumerate(checked.sequence(value, "$.deviation"))
        ]

    def left(self) -> dict[str, object]:
        """The stored arrays that are the problem's."""
        return {name: self._stored[name] for name in self._stored if name not in self._used}

    def _array(self, value: object, at: str) -> NDArray[Any]:
        name = checked.string(checked.mapping(value, at, ("array",))["array"], f"{at}.array")
        if name not in self._stored:
            raise UnreadableFile("no such array", where=at, got=checked.short(name))
        self._used.add(name)
        found = self._stored[name]
        if isinstance(found, np.ndarray):
            if found.dtype.kind != "f":
                raise UnreadableFile("wrong type", where=at, got=f"{found.dtype} where numbers are expected")
            return found
        return checked.converted(found, f"$.arrays.{name}", _FLOAT, min(2, _depth(found)))


def _depth(value: object) -> int:
    depth = 0
    while isinstance(value, list) and value and depth <= _DEEPEST:
        value, depth = value[0], depth + 1
    return depth
