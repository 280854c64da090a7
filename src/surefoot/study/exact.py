"""A study of a plant: exact states in, inputs with a certificate at the exact state out (spec 9).

The journal's labels are those of the plant's problem: cells, and numbers of inputs. The exact values are in the entry
``point`` of its records (:mod:`surefoot.study.records`), with what the plant's functions gave there, since functions
cannot be stored. A replay needs no function; to ask and to tell, the plant must be given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder, UnreadableFile
from surefoot.model.labels import label_of, shown
from surefoot.model.layer import NO_ACTION
from surefoot.model.plant.plant import Plant
from surefoot.model.rays import FULL
from surefoot.plan.centres import CentreValues
from surefoot.plan.point import Point, at_point
from surefoot.storage.disk import FileLayer, writing
from surefoot.study.records import Record
from surefoot.study.standing import Standing

FILE = "plant.json"  #: beside the journal
UNVERIFIED = "functions cannot be stored: that features and boxes are those of the models at each state is not verified"


class Exact:
    """The exact states of a study; ``plant`` is None if the study was opened without it."""

    def __init__(self, plant: Plant | None) -> None:
        self.plant = plant
        self._centres = None if plant is None else CentreValues(plant)

    def given(self) -> Plant:
        if self.plant is None:
            fix = "Open it with its Plant."
            raise OutOfOrder("this is a study of a plant, whose functions are not stored", fix=fix)
        return self.plant

    def begin(self, start: Any) -> tuple[int, list[float]]:
        """The cell of an exact start, and the start."""
        plant = self.given()
        x = plant.starting(start)
        return plant.cell(x), x.tolist()

    def look(self, standing: Standing) -> Point:
        """What the plan in force certifies where the plant is."""
        plant, place, plan = self.given(), standing.place, standing.agent.plan
        assert place is not None
        assert self._centres is not None
        return at_point(plant, plan, self._centres.of(plan), place.step, place.exact)

    def choose(self, standing: Standing, point: Point) -> int:
        """The choice to offer: the best input that is certified at the exact state, or the fallback's."""
        h, own = point.step, int(standing.problem.graph.layers[point.step].fallback[point.state])
        if own != NO_ACTION and (standing.safe_mode or not point.plan.consistent or standing.agent.playing_fallback):
            return point.of_pair(own)
        may = point.proved.copy()
        if own != NO_ACTION:
            may[point.of_pair(own)] = True
        chosen = np.flatnonzero(may)
        if len(chosen) == 0:
            raise AssumptionBroken(
                "no certified input here, so nothing is offered", where=f"step {h}, {point.x.tolist()}"
            )
        q = np.where(np.isfinite(point.q[chosen]), point.q[chosen], -np.inf)
        return int(chosen[q.argmax()])

    def offered(self, point: Point, choice: int) -> Record:
        """The entry ``point`` of an ask."""
        return {
            "state": point.x.tolist(),
            "input": _plain(point.choices.inputs[choice]),
            "features": point.features[choice].tolist(),
            "boxes": [[low[:, choice].tolist(), high[:, choice].tolist()] for low, high in point.ahead.boxes],
            "cells": point.next_cells(choice).tolist(),
        }

    def applied(self, ask: Record, applied: Any) -> tuple[Any, Any, float | None] | None:
        """(number, input, intensity) of what was applied (None: as offered); None if it is no input of the plant."""
        offered = label_of(ask["point"]["input"])
        if applied is None or _same_input(applied, offered):
            return ask["action"], offered, ask["intensity"]
        plant = self.given()
        _refuse_another_count(plant, applied)
        try:
            number, intensity = plant.placed(ask["step"], ask["point"]["state"], applied)
        except InvalidInput:
            return None
        u = plant.inputs.values[number] if intensity == FULL else applied
        return number, u, intensity if plant.rays else None

    def told(self, ask: Record, next_state: Any, u: Any) -> tuple[int, Record, bool]:
        """(cell, the entry ``point`` of a tell, may it follow) for a next state after an input, None if it is not one
        of the plant's."""
        plant, x, h = self.given(), ask["point"]["state"], ask["step"]
        try:
            after = plant.cells.point("next_state", next_state)
        except InvalidInput as error:
            fix = f"{error.fix} If it was not measured, abort the episode. Nothing was recorded.".lstrip()
            raise InvalidInput(error.rule, got=error.got, fix=fix) from None
        if u is None:
            return plant.cell(after), {"state": after.tolist(), "features": None, "boxes": None}, True
        boxes = [[low.tolist(), high.tolist()] for low, high in plant.boxes(h, x, u)]
        entry = {"state": after.tolist(), "features": plant.features(h, x, u, after).tolist(), "boxes": boxes}
        return plant.cell(after), entry, plant.may_follow(h, x, u, after)

    def beyond(self, told: Record) -> str:
        """Which coordinates of the next state of a tell cannot have followed, in words; '' if it may have, or if this
        is no study of a plant."""
        point = told["point"]
        if point is None or told["unused"] != "successor":
            return ""
        cells = self.given().cells
        return " or ".join(cells.beyond(point["state"], low, high) for low, high in point["boxes"])


def keep_plant(path: Path, plant: Plant, layer: FileLayer) -> Record:
    """Write what can be stored of the plant beside the journal; returns the file's name and its sha256."""
    document = {
        "format": "surefoot-plant", "version": 1, "problem": plant.problem.digest, **plant.document(),
        "guard": plant.cells.guard.tolist(), "unverified": UNVERIFIED,
    }  # fmt: skip
    data = (json.dumps(document, indent=1) + "\n").encode("ascii")
    with writing(path / FILE):
        layer.replace(path / FILE, data)
    return {"file": FILE, "sha256": hashlib.sha256(data).hexdigest()}


def check_plant_file(path: Path, opened: Record, plant: Plant | None, layer: FileLayer) -> None:
    """Check that the plant's file is the one that the study was begun with, and that a given plant is that plant."""
    if opened["plant"] is None:
        if plant is not None:
            raise InvalidInput("this is not a study of a plant", where=str(path), fix="Open it with its problem.")
        return
    try:
        with layer.read(path / FILE) as stream:
            data = stream.read()
    except OSError as error:
        raise UnreadableFile("the plant's file cannot be read", where=str(path / FILE), got=str(error)) from error
    if hashlib.sha256(data).hexdigest() != opened["plant"]["sha256"]:
        fix = "Restore the file from a copy."
        raise UnreadableFile("the plant's file is not what was written", where=str(path / FILE), fix=fix)
    if plant is not None:
        known = json.loads(data)
        for key, value in plant.document().items():
            if known.get(key) != value:
                got = f"another {key}: {value!r:.100}, the study has {known.get(key)!r:.100}"
                raise InvalidInput("the study was begun with another plant", where=str(path), got=got)


def _refuse_another_count(plant: Plant, applied: Any) -> None:
    """Refuse another count of numbers: that is a mistake of the caller, not an input that somebody applied."""
    names = plant.inputs.names
    try:
        count = np.asarray(applied, np.float64).size
    except (TypeError, ValueError):
        count = 0 if isinstance(applied, Mapping) else len(names)
    if count != len(names):
        fix = f"Give {', '.join(names)}. Nothing was recorded."
        raise InvalidInput("an applied input has a number for each of the plant's inputs", got=shown(applied), fix=fix)


def _same_input(one: Any, other: Any) -> bool:
    try:
        mine, theirs = (np.asarray(u, np.float64).reshape(-1) for u in (one, other))
        return np.array_equal(mine, theirs)
    except (TypeError, ValueError):
        return False


def _plain(u: Any) -> Any:
    return list(u) if isinstance(u, tuple) else u
