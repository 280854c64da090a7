"""A log of a plant as measurements: exact states, exact features, and how far next states were from the models."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.diagnosis.calibration.measurements import Log, Measurements, fitting
from surefoot.diagnosis.diagnosis import Finding
from surefoot.diagnosis.text import digits
from surefoot.errors import InvalidInput
from surefoot.logs.rows import OUTSIDE, LoggedTransition, RowReader, entry, readings, step_in
from surefoot.model.graph import FloatArray
from surefoot.model.plant.plant import Plant


def plant_measurements(plant: Plant, log: Log) -> tuple[Measurements, FloatArray]:
    """The measurements, with features at exact states, and (n, coordinates) how far each next state was from the model
    that comes nearest.

    Rows are as for a problem, with exact states, a list of numbers or by name; ``action`` is the input.
    """
    reader = RowReader(plant.problem)
    apart: list[FloatArray] = []
    features: list[FloatArray] = []

    def read(row: Any) -> LoggedTransition:
        h = step_in(entry(row, "step"))
        if type(h) is not int or not 0 <= h < plant.horizon - 1:
            raise InvalidInput("no such step", got=f"{h!r}, steps are 0 … {plant.horizon - 2}")
        x, after = (plant.cells.point(f"column {name!r}", readings(entry(row, name))[0]) for name in _STATES)
        number = plant.inputs.index(_input(readings(entry(row, "action"))[0]))
        u, cell = plant.inputs.values[number], plant.cell(x)
        pair, layer = cell * len(plant.inputs) + number, plant.problem.graph.layers[h]
        cost, partly = reader.cost(row)
        apart.append(_nearest(plant, h, x, u, after))
        features.append(plant.features(h, x, u, after))
        edge = OUTSIDE
        if plant.may_follow(h, x, u, after):
            first, end = int(layer.pair_ptr[pair]), int(layer.pair_ptr[pair + 1])
            edge = first + int(np.flatnonzero(layer.successor[first:end] == plant.cell(after))[0])
        return LoggedTransition(h, cell, pair, edge, cost, partly, tuple(after.tolist()))

    rows, episode = fitting(plant.problem, log, read)
    kept = [i for i, (_, row) in enumerate(rows) if row.cost is not None]
    x = np.array([features[i] for i in kept]).reshape(len(kept), -1)
    data = Measurements(
        step=np.array([rows[i][1].step for i in kept], np.int64),
        place=np.unique(x, axis=0, return_inverse=True)[1].reshape(-1),
        features=x,
        cost=np.array([rows[i][1].cost for i in kept], np.float64).reshape(-1, len(plant.limits)),
        episode=episode[kept],
        transitions=tuple((row.step, row.pair, row.edge) for _, row in rows if row.edge != OUTSIDE),
        outside=tuple((where, row) for where, row in rows if row.edge == OUTSIDE),
        unmeasured=len(rows) - len(kept),
    )
    return data, np.array(apart).reshape(-1, plant.cells.dim)


_STATES = ("state", "next_state")


def _input(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _nearest(plant: Plant, h: int, x: FloatArray, u: Any, after: FloatArray) -> FloatArray:
    """(n,) |next state − model|, of the model to which it is nearest in half-widths of the disturbance."""
    scale = np.maximum(plant.reach.disturbance, plant.cells.guard)
    images = [0.5 * (low + high) for low, high in plant.boxes(h, x, u)]
    return np.abs(min((after - image for image in images), key=lambda off: float(np.abs(off / scale).max())))


def disturbance_found(plant: Plant, apart: FloatArray) -> Finding:
    """What the log says of the declared disturbance, coordinate by coordinate."""
    largest, declared, n = apart.max(axis=0), plant.reach.disturbance, len(apart)
    told = [
        f"{name} {digits(a)} (declared {digits(w)})"
        for name, a, w in zip(plant.cells.names, largest, declared, strict=True)
    ]
    beyond = bool((largest > declared + plant.cells.guard).any())
    return Finding(
        "error" if beyond else "note",
        f"Next states were off the models by up to {', '.join(told)}; one more row as logged exceeds what was seen "
        f"with a chance of about 1 in {n + 1} (estimate; of other inputs and states a log says nothing).",
        "Declare a larger disturbance, or mend the models." if beyond else "",
    )
