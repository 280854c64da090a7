"""Turns a problem into a document, the same for every file format, and back.

The document is plain JSON, but an array in it is a nested list or ``{"array": name}``, where ``name`` is an array that
is stored separately. A sparse table is ``{"sparse": {"dim": d, "indptr": …, "columns": …, "values": …}}``.
``problem.schema.json`` describes it all. What is read is not trusted: types are checked here, and the rules of a
problem by :meth:`Problem.from_arrays`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import UnreadableFile
from surefoot.model import checked
from surefoot.model.anchors import Anchor
from surefoot.model.centers import center_numbers
from surefoot.model.features import Features
from surefoot.model.graph import Beyond, LayeredGraph
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.rules import check_horizon
from surefoot.model.sharing import made_once
from surefoot.model.sparse_rows import MOST_COLUMNS, RowParts, SparseRows
from surefoot.model.sparse_rows import checked as checked_rows

FORMAT = "surefoot-problem"
VERSION = 4

Document = dict[str, Any]

_INT, _SHORT = np.dtype(np.int64), np.dtype(np.int32)
_FLOAT, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
_FLOAT32 = np.dtype(np.float32)
_INDEX_TYPES: dict[object, np.dtype[Any]] = {"int32": _SHORT, "int64": _INT}
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}\Z")

_LIMIT_KEYS = ("name", "bound", "noise", "norm", "prior", "misspecification", "episode_noise", "features")
_LAYER_KEYS = (
    *("states", "actions", "state_ptr", "pair_ptr", "successors", "successor_dtype"),
    *("reward", "cost_features", "row_ptr", "transition_features", "fallback", "forbidden"),
)
_ANCHOR_KEYS = ("features", "cost", "tolerance")
_TERMINAL_KEYS = ("states", "reward", "cost_features", "has_cost", "forbidden")
_TOP_KEYS = (
    *("format", "version", "horizon", "limits", "transition_norm"),
    *("stationary_costs", "stationary_transitions", "starts", "labels"),
    *("layers", "terminal", "anchors", "features"),
)
_OPTIONAL_KEYS = ("digest", "arrays", "beyond", "rays")


# --- out ------------------------------------------------------------------------------------------------


def to_document(problem: Problem) -> Document:
    """The document with the arrays themselves in it; each file format decides how to write them."""
    graph, names = problem.graph, problem.naming
    states, actions = _LabelPool(), _LabelPool()
    layers = [
        {
            "states": states.row(names.states[h].listed),
            "actions": actions.row(names.actions[h]),
            "state_ptr": layer.state_ptr,
            "pair_ptr": layer.pair_ptr,
            "successors": layer.successor,
            "successor_dtype": layer.successor.dtype.name,
            "reward": layer.reward,
            "cost_features": _table(layer.cost_features),
            "row_ptr": None if layer.per_triplet else layer.row_ptr,
            "transition_features": None
            if layer.transition_features is layer.cost_features
            else _table(layer.transition_features),
            "fallback": np.where(layer.fallback == NO_ACTION, NO_ACTION, layer.fallback - layer.state_ptr[:-1]),
            "forbidden": layer.forbidden if layer.forbidden.any() else None,
        }
        for h, layer in enumerate(graph.layers)
    ]
    last = graph.terminal
    rays = _rays(graph)
    return {
        "format": FORMAT,
        "version": VERSION,
        **({"rays": rays} if rays else {}),
        "horizon": problem.horizon,
        "limits": [{key: _listed(getattr(limit, key)) for key in _LIMIT_KEYS} for limit in problem.limits],
        "features": _listed(problem.features),
        "transition_norm": problem.transition_norm,
        "stationary_costs": problem.stationary_costs,
        "stationary_transitions": problem.stationary_transitions,
        "starts": graph.starts,
        "layers": layers,
        "terminal": {
            "states": states.row(names.states[-1].listed),
            "reward": last.reward,
            "cost_features": _table(last.cost_features),
            "has_cost": None if last.cost_features is None else last.has_cost,
            "forbidden": last.forbidden if last.forbidden.any() else None,
        },
        "anchors": [None if a is None else dict(zip(_ANCHOR_KEYS, a.parts, strict=True)) for a in graph.anchors],
        "labels": {"states": list(states.seen), "actions": list(actions.seen)},
        **({} if graph.beyond is None else {"beyond": asdict(graph.beyond)}),
    }


def _rays(graph: LayeredGraph) -> list[Document]:
    """Centres as numbers within their states, and cost features at intensity 0; layers share arrays where they can."""
    keys = [(id(rays), id(layer.state_ptr)) for layer, rays in zip(graph.layers, graph.rays, strict=False)]
    numbers = made_once(keys, lambda h: center_numbers(graph.rays[h].center, graph.layers[h]))
    return [
        {"center": center, "cost_features": rays.cost_features}
        for center, rays in zip(numbers, graph.rays, strict=True)
    ]


def _listed(value: object) -> object:
    """Tuples as lists, as files give them back."""
    return [_listed(entry) for entry in value] if isinstance(value, tuple) else value


def _table(features: Features | None) -> object:
    if isinstance(features, SparseRows):
        return {"sparse": {"dim": features.dim, **features.parts._asdict()}}
    return features


class _LabelPool:
    """Writes each label once, however many layers use it. (Equal labels are always of the same type.)"""

    def __init__(self) -> None:
        self.seen: dict[Label, int] = {}

    def row(self, labels: Sequence[Label] | None) -> NDArray[Any] | None:
        if labels is None:
            return None
        return np.array([self.seen.setdefault(label, len(self.seen)) for label in labels], _INT)


def arrays_in(node: object) -> Iterator[NDArray[Any]]:
    """Every array of a document, as many times as it is used."""
    if isinstance(node, np.ndarray):
        yield node
    elif isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from arrays_in(child)


# --- and back -------------------------------------------------------------------------------------------


def check_version(document: object) -> Document:
    """The document, if it has our format and this version; the rest is not checked here."""
    old = "Declare the problem again and save it."
    return checked.of_format(document, "a saved problem", FORMAT, VERSION, old)


def from_document(document: Document, stored: Mapping[str, object], budget: int) -> Problem:
    """The problem, with every rule checked again.

    ``stored`` holds the arrays that the document refers to. ``budget`` bounds the entries of arrays that every layer
    needs a copy of: otherwise a small file could ask for any amount of memory by sharing one array many times.
    """
    reader = _Reader(stored, budget)
    top = checked.mapping(document, "$", _TOP_KEYS, _OPTIONAL_KEYS)
    labels = checked.mapping(top["labels"], "$.labels", ("states", "actions"))
    states = checked.labels(labels["states"], "$.labels.states")
    actions = checked.labels(labels["actions"], "$.labels.actions")
    horizon = check_horizon(checked.integer(top["horizon"], "$.horizon"))
    layers = checked.sequence(top["layers"], "$.layers", horizon - 1, "horizon - 1")
    anchors = checked.sequence(top["anchors"], "$.anchors", horizon, "horizon")
    rows = [reader.layer(layer, f"$.layers[{h}]", states, actions) for h, layer in enumerate(layers)]
    last = reader.terminal(top["terminal"], states)
    known = [reader.anchors(anchor, f"$.anchors[{h}]") for h, anchor in enumerate(anchors)]
    if known[-1] is not None and last["terminal_cost_features"] is None:
        raise UnreadableFile("the last step has an anchor but no cost", where=f"$.anchors[{horizon - 1}]")
    starts = reader.array(top["starts"], "$.starts", _INT)
    given = checked.sequence(top["rays"], "$.rays", horizon - 1, "horizon - 1") if "rays" in top else ()
    rays = [reader.rays(each, f"$.rays[{h}]") for h, each in enumerate(given)]
    centers: dict[str, Any] = {key: [each[key] for each in rays] for key in (rays[0] if rays else ())}
    reader.refuse_unused()
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in rows[0]}
    for key in ("state_labels", "forbidden"):
        columns[key].append(last.pop(key))
    problem = Problem.from_arrays(
        horizon=horizon,
        start=starts.tolist(),
        limits=[_limit(limit, i) for i, limit in enumerate(checked.sequence(top["limits"], "$.limits"))],
        anchor=lambda h: known[h],
        features=checked.list_of_names(top["features"], "$.features"),
        transition_norm=checked.floating(top["transition_norm"], "$.transition_norm"),
        stationary_costs=checked.flag(top["stationary_costs"], "$.stationary_costs"),
        stationary_transitions=checked.flag(top["stationary_transitions"], "$.stationary_transitions"),
        beyond=_beyond(top.get("beyond")),
        **columns,
        **last,
        **centers,
    )
    return replace(problem, seals=())  # nobody else has these arrays


class _Reader:
    """Turns the parts of a document into arguments of ``from_arrays``; a stored array is read once."""

    def __init__(self, stored: Mapping[str, object], budget: int) -> None:
        self._stored, self._budget = stored, budget
        self._arrays: dict[str, NDArray[Any]] = {}
        self._sparse: dict[tuple[int, ...], tuple[object, SparseRows]] = {}  # keeps the arrays, so that ids stay theirs

    def layer(self, value: object, at: str, states: list[Label], actions: list[Label]) -> dict[str, Any]:
        part = checked.mapping(value, at, _LAYER_KEYS)
        index_type = part["successor_dtype"]
        if index_type not in ("int32", "int64"):
            raise checked.wrong(f"{at}.successor_dtype", "'int32' or 'int64'", index_type)
        x = self._table(part["cost_features"], f"{at}.cost_features")
        phi = part["transition_features"]
        return {
            "state_ptr": self.array(part["state_ptr"], f"{at}.state_ptr", _INT),
            "pair_ptr": self.array(part["pair_ptr"], f"{at}.pair_ptr", _INT),
            "successors": self.array(part["successors"], f"{at}.successors", _INDEX_TYPES[index_type]),
            "reward": self.array(part["reward"], f"{at}.reward", _FLOAT),
            "cost_features": x,
            "transition_features": x if phi is None else self._table(phi, f"{at}.transition_features"),
            "fallback": self._laid_out(part["fallback"], f"{at}.fallback", _INT),
            "row_ptr": self._unless_null(part["row_ptr"], f"{at}.row_ptr", _INT),
            "forbidden": self._unless_null(part["forbidden"], f"{at}.forbidden", _BOOL),
            "state_labels": self._named(part["states"], f"{at}.states", states),
            "action_labels": self._named(part["actions"], f"{at}.actions", actions),
        }

    def terminal(self, value: object, states: list[Label]) -> dict[str, Any]:
        at = "$.terminal"
        part = checked.mapping(value, at, _TERMINAL_KEYS)
        x, has_cost = part["cost_features"], part["has_cost"]
        if (x is None) != (has_cost is None):
            raise checked.wrong(f"{at}.has_cost", "null exactly where cost_features is null", has_cost)
        return {
            "terminal_reward": self.array(part["reward"], f"{at}.reward", _FLOAT),
            "terminal_cost_features": None if x is None else self._table(x, f"{at}.cost_features"),
            "terminal_has_cost": None if x is None else self.array(has_cost, f"{at}.has_cost", _BOOL),
            "forbidden": self._unless_null(part["forbidden"], f"{at}.forbidden", _BOOL),
            "state_labels": self._named(part["states"], f"{at}.states", states),
        }

    def rays(self, value: object, at: str) -> dict[str, Any]:
        part = checked.mapping(value, at, ("center", "cost_features"))
        return {
            "center": self.array(part["center"], f"{at}.center", _INT),
            "center_cost_features": self.array(part["cost_features"], f"{at}.cost_features", _FLOAT, 2),
        }

    def _unless_null(self, value: object, at: str, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        return None if value is None else self.array(value, at, dtype)

    def anchors(self, value: object, at: str) -> list[Anchor] | None:
        if value is None:
            return None
        part = checked.mapping(value, at, _ANCHOR_KEYS)
        tables = [self._laid_out(part[key], f"{at}.{key}", _FLOAT, 2) for key in _ANCHOR_KEYS]
        sizes = [len(table) for table in tables]
        if len(set(sizes)) > 1 or not sizes[0]:
            raise UnreadableFile("an anchor has as many features as costs and tolerances", where=at, got=str(sizes))
        return list(zip(*tables, strict=True))

    def array(self, value: object, at: str, dtype: np.dtype[Any], ndim: int = 1) -> NDArray[Any]:
        """A nested list or a stored array, of exactly this dtype and number of axes."""
        if not isinstance(value, dict):
            return checked.converted(value, at, dtype, ndim)
        name = checked.mapping(value, at, ("array",))["array"]
        if type(name) is not str or not _NAME.match(name):
            raise checked.wrong(f"{at}.array", "the name of an array", name)
        if name not in self._arrays:
            if name not in self._stored:
                raise UnreadableFile("an array is missing", where=at, got=f"nothing is stored as {name!r}")
            self._arrays[name] = checked.converted(self._stored[name], f"$.arrays.{name}", dtype, ndim)
        array = self._arrays[name]
        narrow = ndim == 2 and array.dtype == _FLOAT32  # tables hold features, which may be stored in float32
        if (array.dtype != dtype and not narrow) or array.ndim != ndim:
            got = f"{array.dtype} with {array.ndim} axes where {dtype} with {ndim} is expected"
            raise UnreadableFile("an array is of the wrong kind", where=at, got=got)
        return array

    def _table(self, value: object, at: str) -> Features:
        """A dense or a sparse table; sparse tables of the same arrays are one object."""
        if not isinstance(value, dict) or "sparse" not in value:
            return self.array(value, at, _FLOAT, 2)
        at = f"{at}.sparse"
        part = checked.mapping(checked.mapping(value, at, ("sparse",))["sparse"], at, ("dim", *RowParts._fields))
        dim = checked.integer(part["dim"], f"{at}.dim")
        if not 1 <= dim <= MOST_COLUMNS:
            raise UnreadableFile("wrong number of columns", where=f"{at}.dim", got=checked.short(dim))
        indptr = self.array(part["indptr"], f"{at}.indptr", _INT)
        columns = self.array(part["columns"], f"{at}.columns", _SHORT)
        values = self.array(part["values"], f"{at}.values", _FLOAT)
        key = (id(indptr), id(columns), id(values), dim)
        if key not in self._sparse:
            table = checked_rows("a sparse table", indptr, columns, values, dim, at)
            self._sparse[key] = (indptr, columns, values), table
        return self._sparse[key][1]

    def _laid_out(self, value: object, at: str, dtype: np.dtype[Any], ndim: int = 1) -> NDArray[Any]:
        array = self.array(value, at, dtype, ndim)
        self._budget -= array.size
        if self._budget < 0:
            raise UnreadableFile(
                "arrays are shared beyond the size of the file",
                where=at,
                fix="Give each step a fallback, labels and an anchor of its own.",
            )
        return array

    def _named(self, value: object, at: str, pool: list[Label]) -> list[Label] | None:
        if value is None:
            return None
        indices = self._laid_out(value, at, _INT)
        outside = np.flatnonzero((indices < 0) | (indices >= len(pool)))
        if len(outside):
            where, got = f"{at}[{int(outside[0])}]", int(indices[outside[0]])
            raise UnreadableFile("no such label", where=where, got=f"{got}, labels are 0 … {len(pool) - 1}")
        return [pool[i] for i in indices.tolist()]

    def refuse_unused(self) -> None:
        for name in self._stored:
            if name not in self._arrays:
                raise UnreadableFile("an array is stored but not used", got=checked.short(name))


def _beyond(value: object) -> Beyond | None:
    if value is None:
        return None
    part = checked.mapping(value, "$.beyond", ("longest_row", "room"))
    longest = checked.finite(part["longest_row"], "$.beyond.longest_row")
    return Beyond(longest, checked.flag(part["room"], "$.beyond.room"))


def _limit(value: object, i: int) -> Limit:
    at = f"$.limits[{i}]"
    part = checked.mapping(value, at, _LIMIT_KEYS)
    scales = ("noise", "misspecification", "episode_noise", *(("norm",) if part["norm"] is not None else ()))
    bound, prior = part["bound"], part["prior"]
    if prior is not None:
        entries = enumerate(checked.sequence(prior, f"{at}.prior"))
        prior = [checked.pair_of_reals(each, f"{at}.prior[{k}]") for k, each in entries]
    read = checked.list_of_reals if isinstance(bound, list) else checked.floating
    return Limit(
        checked.string(part["name"], f"{at}.name"),
        bound=read(bound, f"{at}.bound"),
        prior=prior,
        features=checked.list_of_names(part["features"], f"{at}.features", columns=True),
        **{key: checked.floating(part[key], f"{at}.{key}") for key in scales},
    )
