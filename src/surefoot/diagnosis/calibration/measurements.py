"""A log as arrays: the transition, cost and episode of each row.

For a plant: with exact states and features, and with the distances of next states from the models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.diagnosis.calibration.result import SupportCalibration
from surefoot.diagnosis.diagnosis import Finding
from surefoot.diagnosis.text import digits
from surefoot.errors import InvalidInput, SurefootError
from surefoot.logs.files import Row, all_rows
from surefoot.logs.rows import (
    LAST,
    OUTSIDE,
    Faults,
    LoggedTransition,
    RowReader,
    entry,
    episode_in,
    episode_key,
    no_such_step,
    readings,
    step_in,
)
from surefoot.model.arrays import FloatArray
from surefoot.model.growing import holding
from surefoot.model.labels import Label, label_of, shown
from surefoot.model.plant.plant import Plant
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL

Log = str | Path | Iterable[Mapping[str, Any]] | Mapping[str, Sequence[Any] | ArrayLike]
"""A file, a study's folder, rows, or columns: arrays of equal length by name."""

NO_EPISODE = -1


@dataclass(frozen=True, eq=False)
class Measurements:
    """n rows with a cost, in the order of the log; transitions outside the declared support are kept apart."""

    step: NDArray[np.int64]  # (n,)
    place: NDArray[np.int64]  # (n,)   the cost row, in the last step the state
    features: FloatArray  # (n, dc)
    cost: FloatArray  # (n, m)
    episode: NDArray[np.int64]  # (n,)   0, 1, … in order of appearance; NO_EPISODE where the log gives none
    transitions: tuple[tuple[int, int, int], ...]  # (step, pair, edge) of every transition, measured or not
    outside: tuple[tuple[str, LoggedTransition], ...]  # (where in the log, what)
    unmeasured: int  # rows without a cost

    @property
    def triplet(self) -> NDArray[np.int64]:
        """(n,) a number for each (step, place): rows of one number are repeats of one transition."""
        keys = np.stack([self.step, self.place], axis=1)
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    @property
    def has_episodes(self) -> bool:
        return len(self.episode) > 0 and bool((self.episode != NO_EPISODE).all())


def read_measurements(problem: Problem, log: Log) -> tuple[Problem, Measurements]:
    """The rows of a log, checked as for an import, except that a successor outside the declared support is no error.

    Also returns the problem that they refer to: if it grows, with all logged states and what may follow there.
    """
    if problem.graph.several_rows:
        raise InvalidInput(
            "calibrate takes one cost row per action, or one per triplet",
            got="some action has several, and a log does not say which was measured",
            fix="Of a plant, give the Plant; else declare the log's own problem with the exact features.",
        )
    listed = _listed(log, problem.horizon - 1)
    problem = holding(problem, _named(problem, listed))
    reader = RowReader(problem)
    rows, episode = fitting(problem, listed, lambda row: _as_played(problem, reader.read(row, outside=True)))
    return problem, _arrays(problem, rows, episode)


def _named(problem: Problem, listed: Listed) -> Iterator[tuple[int, Label, list[Label]]]:
    """The steps, states and actions of a log. A cell that can be read in two ways is a known state, or of the type of
    known states. Rows that do not fit are skipped here; the reader says why."""
    kinds = {type(name) for name in problem.naming.states[0]}
    for _, row in listed.rows:
        try:
            h = step_in(entry(row, "step"))
            states, actions = (
                [label_of(each, f"column {name!r}") for each in readings(row.get(name))] for name in ("state", "action")
            )
        except SurefootError:
            continue
        if type(h) is int and 0 <= h < problem.horizon:
            known = [name for name in states if problem.naming.states[h].find(name) is not None]
            alike = [name for name in states if type(name) in kinds]
            for name in (known or alike)[:1]:
                yield h, name, actions if h < problem.horizon - 1 else []


def _as_played(problem: Problem, row: LoggedTransition) -> LoggedTransition:
    """At intensity 0 an action is its centre, with the centre's successors."""
    if row.edge == LAST or row.intensity > 0.0:
        return row
    layer, centre, edge = problem.graph.layers[row.step], int(problem.graph.rays[row.step].center[row.pair]), row.edge
    if edge != OUTSIDE:
        found = layer.edge_to(centre, int(layer.successor[edge]))
        edge = OUTSIDE if found is None else found
    return replace(row, pair=centre, edge=edge, intensity=FULL)


class Listed(NamedTuple):
    """A log's rows, each with its place in it."""

    source: str
    rows: list[Row]


def _listed(log: Log, last: int) -> Listed:
    return Listed(str(log) if isinstance(log, (str, Path)) else "", list(_rows(log, last)))


def fitting(
    problem: Problem, listed: Listed, read: Callable[[Mapping[str, Any]], LoggedTransition]
) -> tuple[list[tuple[str, LoggedTransition]], NDArray[np.int64]]:
    """Every row of a log with its place, and the numbers of their episodes; rows that do not fit are an error."""
    found, names = list[tuple[str, LoggedTransition]](), list[int]()
    known: dict[str, int] = {}
    faults = Faults()
    for place, row in listed.rows:
        try:
            taken = read(row)
            episode = row.get("episode")
            key = None if episode is None else episode_key(episode_in(episode))
        except SurefootError as error:
            faults.add(place, error)
            if faults.enough:
                break
            continue
        found.append((place, taken))
        names.append(NO_EPISODE if key is None else known.setdefault(key, len(known)))
    if faults:
        fix = "Correct or remove these rows and try again."
        raise InvalidInput("the log does not fit the problem", where=listed.source, got=str(faults), fix=fix)
    if NO_EPISODE in names and problem.shared_offsets:
        fix = "Add a column 'episode': rows of one episode share an offset, and are judged together."
        raise InvalidInput("a limit declares episode_noise, so every row needs its episode", fix=fix)
    return found, np.array(names, np.int64)


def _rows(log: Log, last: int) -> Iterable[Row]:
    if isinstance(log, Mapping):
        for name, column in log.items():
            if not isinstance(column, Iterable):
                fix = "Give lists or arrays; of a single row, a list that holds it."
                raise InvalidInput("a mapping is a log's columns", where=f"column {name!r}", got=shown(column), fix=fix)
        columns = {name: list(column) for name, column in log.items()}  # type: ignore[arg-type]
        if len({len(column) for column in columns.values()}) > 1:
            got = ", ".join(f"{name}: {len(column)}" for name, column in columns.items())
            raise InvalidInput("columns of different lengths", got=got)
        plain = {name: [_plain(value) for value in column] for name, column in columns.items()}
        n = len(next(iter(plain.values()), []))
        return ((f"row {i + 1}", {name: column[i] for name, column in plain.items()}) for i in range(n))
    return all_rows(log, last)


def _plain(value: Any) -> Any:
    """A numpy number as Python's; NaN means not measured."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    value = value.item() if isinstance(value, np.generic) and not isinstance(value, np.float32) else value
    return None if isinstance(value, float) and value != value else value


def _arrays(problem: Problem, rows: list[tuple[str, LoggedTransition]], episode: NDArray[np.int64]) -> Measurements:
    graph = problem.graph

    def place(row: LoggedTransition) -> int:
        return row.state if row.edge == LAST else graph.layers[row.step].row_of(row.edge)

    def features(i: int) -> FloatArray:
        row = rows[i][1]
        table = graph.terminal.cost_features if row.edge == LAST else graph.layers[row.step].cost_features
        assert table is not None
        own = np.asarray(table[place(row)], np.float64)
        if row.intensity == FULL:
            return own
        zero = graph.rays[row.step].cost_features[place(row)]
        return np.asarray((1.0 - row.intensity) * zero + row.intensity * own)

    inside = [i for i, (_, row) in enumerate(rows) if row.edge != OUTSIDE]
    kept = [i for i in inside if rows[i][1].cost is not None]
    x = np.array([features(i) for i in kept]).reshape(len(kept), graph.cost_dim)
    places = np.array([place(rows[i][1]) for i in kept], np.int64)
    if problem.has_rays:  # the same transition at another intensity is another
        keys = np.column_stack([places, [rows[i][1].intensity for i in kept]])
        places = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return _gathered(problem, rows, episode, kept, x, places, len(inside))


def _gathered(
    problem: Problem,
    rows: list[tuple[str, LoggedTransition]],
    episode: NDArray[np.int64],
    kept: list[int],
    features: FloatArray,
    place: NDArray[np.int64],
    usable: int,
) -> Measurements:
    """The rows ``kept``, of so many usable ones, with their features and places."""
    return Measurements(
        step=np.array([rows[i][1].step for i in kept], np.int64),
        place=place,
        features=features,
        cost=np.array([rows[i][1].cost for i in kept], np.float64).reshape(-1, len(problem.limits)),
        episode=episode[kept],
        transitions=tuple((row.step, row.pair, row.edge) for _, row in rows if row.edge not in (OUTSIDE, LAST)),
        outside=tuple((where, row) for where, row in rows if row.edge == OUTSIDE),
        unmeasured=usable - len(kept),
    )


# --- the declared successors beside those that were logged -----------------------------------------------


_EXAMPLES = 5


def describe_support(problem: Problem, data: Measurements, alpha: float) -> SupportCalibration:
    """Counts over all logged transitions; with none outside, the chance of one is at most 1 − α^(1/n)."""
    graph, naming = problem.graph, problem.naming
    seen = Counter(data.transitions)
    pairs = {(h, pair) for h, pair, _ in seen}
    declared = sum(int(np.diff(graph.layers[h].pair_ptr)[pair]) for h, pair in pairs)
    at_edge = may_touch = 0
    for (h, pair, edge), times in seen.items():
        first, end = (int(e) for e in graph.layers[h].pair_ptr[pair : pair + 2])
        if end - first >= 3:
            may_touch += times
            at_edge += times * (edge in _edges(problem, h, first, end))
    examples = []
    for where, row in data.outside[:_EXAMPLES]:
        place = naming.at_pair(graph.layers[row.step], row.step, row.pair)
        examples.append(f"{where}: {place} led to {row.following!r}")
    n = len(data.transitions) + len(data.outside)
    return SupportCalibration(
        transitions=n,
        outside=len(data.outside),
        examples=tuple(examples),
        pairs=len(pairs),
        never_seen=declared - len(seen),
        at_edge=at_edge,
        may_touch=may_touch,
        outside_chance=None if data.outside or not n else -float(np.expm1(np.log(alpha) / n)),
    )


def _edges(problem: Problem, h: int, first: int, end: int) -> tuple[int, int]:
    """The edges to the least and the largest successor where labels have an order, else to the first and the last."""
    layer, names = problem.graph.layers[h], problem.naming.states[h + 1]
    labels = [names[int(layer.successor[e])] for e in range(first, end)]
    try:
        order = sorted(range(len(labels)), key=lambda i: labels[i])
    except TypeError:
        return first, end - 1
    return first + order[0], first + order[-1]


def plant_measurements(plant: Plant, log: Log) -> tuple[Problem, Measurements, FloatArray]:
    """The problem that the rows refer to, with all logged cells if it grows; the measurements, with features at exact
    states; and (n, coordinates) how far each next state was from the closest model.

    Rows are those of a problem, with exact states (a list of numbers, or by name) and inputs as ``action``.
    """
    listed = _listed(log, plant.horizon - 1)
    problem = holding(plant.problem, _cells(plant, listed))
    reader = RowReader(problem)
    apart: list[FloatArray] = []
    features: list[FloatArray] = []

    def read(row: Any) -> LoggedTransition:
        h, x, number, u = _played(plant, row)
        after = plant.cells.point("column 'next_state'", readings(entry(row, "next_state"))[0])
        state, layer = problem.naming.states[h].find(plant.cell(x)), problem.graph.layers[h]
        assert state is not None
        pair = int(layer.state_ptr[state]) + number
        cost, partly = reader.cost(row)
        apart.append(_nearest(plant, h, x, u, after))
        features.append(plant.features(h, x, u, after))
        edge = OUTSIDE
        if plant.may_follow(h, x, u, after):
            first, end = int(layer.pair_ptr[pair]), int(layer.pair_ptr[pair + 1])
            there = problem.naming.states[h + 1].find(plant.cell(after))
            edge = first + int(np.flatnonzero(layer.successor[first:end] == there)[0])
        return LoggedTransition(h, state, pair, edge, cost, partly, tuple(after.tolist()))

    rows, episode = fitting(problem, listed, read)
    kept = [i for i, (_, row) in enumerate(rows) if row.cost is not None]
    x = np.array([features[i] for i in kept]).reshape(len(kept), problem.graph.cost_dim)
    place = np.unique(x, axis=0, return_inverse=True)[1].reshape(-1)
    data = _gathered(problem, rows, episode, kept, x, place, len(rows))
    return problem, data, np.array(apart).reshape(-1, plant.cells.dim)


def _cells(plant: Plant, listed: Listed) -> Iterator[tuple[int, Label, list[Label]]]:
    """The steps, cells and inputs of a log. Rows that do not fit are skipped here; the reader says why."""
    for _, row in listed.rows:
        try:
            h, x, number, _ = _played(plant, row)
        except SurefootError:
            continue
        yield h, plant.cell(x), [number]


def _played(plant: Plant, row: Mapping[str, Any]) -> tuple[int, FloatArray, int, Any]:
    """Step, state, number of the input or of its ray, and the input of a row."""
    h = step_in(entry(row, "step"))
    if type(h) is not int or not 0 <= h < plant.horizon - 1:
        raise no_such_step(h, plant.horizon - 2)
    x = plant.cells.point("column 'state'", readings(entry(row, "state"))[0])
    if plant.cell(x) == plant.cells.outside:
        raise InvalidInput("the state is outside the box of states", where="column 'state'", got=plant.cells.beyond(x))
    given = _input(readings(entry(row, "action"))[0])
    number, intensity = plant.placed(h, x, given)
    return h, x, number, plant.inputs.values[number] if intensity == FULL else given


def _input(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _nearest(plant: Plant, h: int, x: FloatArray, u: Any, after: FloatArray) -> FloatArray:
    """(n,) |next state − model| for the closest model, measured in half-widths of the disturbance."""
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
        "Declare a larger disturbance, or mend the models; states in another order or unit look like this, too."
        if beyond
        else "",
    )
