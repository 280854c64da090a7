"""One world in the memory of many processes: its arrays in one file, mapped and never copied.

    sharing.write(world, folder)         in the process that made the world
    world = sharing.read(folder)         in every other one

``arrays.npy`` holds all distinct arrays one after the other, as bytes; the system keeps one copy of it for all
processes that map it. ``world.json`` says where each begins. Arrays of one kind of all layers are neighbours, so that
a roll-out, which wants them as one, need not copy them either. What was one object before is one object after, so that
work on layers that share their arrays stays shared. Nothing is computed or checked anew: every process has the very
bits that the first one made.

The folder is a hand-over between processes that trust each other, not a format to keep: see
:meth:`surefoot.Problem.save` for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.model.graph import Anchor, Layer, LayeredGraph, Terminal, freeze
from surefoot.model.labels import Label, Names
from surefoot.model.limit import Limit
from surefoot.model.naming import Naming
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.worlds.world import World

ARRAYS, HEADER = "arrays.npy", "world.json"

_ALIGNMENT = 64  # bytes; also that of an .npy file's data
_LAYER = ("state_ptr", "pair_ptr", "successor", "reward", "cost_features", "transition_features", "fallback")
_TERMINAL = ("reward", "cost_features", "has_cost", "fallback_reached")
_LIMIT = ("name", "bound", "noise", "norm", "misspecification")
_PLAIN = ("noise", "misspecified_beyond_declaration", "name", "exact_digest")
_TABLES = ("probabilities", "cumulative", "costs")

Number = Any  # of an array, None for None, and for a sparse table [columns, its arrays' numbers …]


def write(world: World, folder: Path) -> None:
    """Write the world into a folder that exists."""
    problem, graph, naming = world.problem, world.problem.graph, world.problem.naming
    arrays, labels = _Arrays(), _Lists()
    for name in _LAYER:
        arrays.numbers(getattr(layer, name) for layer in graph.layers)
    for name in _TABLES:
        arrays.numbers(getattr(world, name))
    header = {
        "digest": world.digest,
        "problem": {
            "digest": problem.digest,
            "limits": [[getattr(limit, name) for name in _LIMIT] for limit in problem.limits],
            "transition_norm": problem.transition_norm,
            "stationary_costs": problem.stationary_costs,
            "stationary_transitions": problem.stationary_transitions,
            "layers": [arrays.numbers(getattr(layer, name) for name in _LAYER) for layer in graph.layers],
            "terminal": arrays.numbers(getattr(graph.terminal, name) for name in _TERMINAL),
            "starts": arrays.number(graph.starts),
            "anchors": [None if a is None else arrays.numbers((a.features, a.cost)) for a in graph.anchors],
            "states": [[len(names), labels.number(names.listed)] for names in naming.states],
            "actions": [labels.number(row) for row in naming.actions],
        },
        "world": {
            "transition": arrays.number(world.transition),
            "cost_parameters": arrays.number(world.cost_parameters),
            "deviation": None if world.deviation is None else arrays.numbers(world.deviation),
            "terminal_costs": arrays.number(world.terminal_costs),
            **{name: getattr(world, name) for name in _PLAIN},
            **{name: arrays.numbers(getattr(world, name)) for name in _TABLES},
        },
        "labels": labels.lists,
    }
    header["arrays"] = arrays.write(folder / ARRAYS)
    (folder / HEADER).write_text(json.dumps(header), encoding="utf-8")


def read(folder: Path) -> World:
    """The world that :func:`write` wrote, on mapped arrays."""
    header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
    stored = np.asarray(np.load(folder / ARRAYS, mmap_mode="r"))  # a plain view: the file stays mapped behind it
    known = [
        freeze(stored[begin : begin + size].view(kind).reshape(shape)) for begin, size, kind, shape in header["arrays"]
    ]
    lists = [tuple(map(_label, row)) for row in header["labels"]]

    tables: dict[tuple[int, ...], SparseRows] = {}

    def array(number: Number) -> Any:
        if isinstance(number, list):
            dim, indptr, columns, values = number
            made = SparseRows(known[indptr], known[columns], known[values], dim)
            return tables.setdefault(tuple(number), made)
        return None if number is None else known[number]

    def arrays(numbers: Sequence[Number]) -> tuple[Any, ...]:
        return tuple(map(array, numbers))

    def listed(number: int | None) -> tuple[Label, ...] | None:
        return None if number is None else lists[number]

    part = header["problem"]
    problem = Problem(
        graph=LayeredGraph(
            layers=tuple(Layer(*arrays(numbers)) for numbers in part["layers"]),
            terminal=Terminal(*arrays(part["terminal"])),
            starts=array(part["starts"]),
            anchors=tuple(None if numbers is None else Anchor(*arrays(numbers)) for numbers in part["anchors"]),
        ),
        naming=Naming(
            states=tuple(Names(size, listed(number)) for size, number in part["states"]),
            actions=tuple(map(listed, part["actions"])),
        ),
        limits=tuple(Limit(*values) for values in part["limits"]),
        transition_norm=part["transition_norm"],
        stationary_costs=part["stationary_costs"],
        stationary_transitions=part["stationary_transitions"],
    )
    problem.__dict__["digest"] = part["digest"]  # cached: another look at all arrays is spared
    truth = header["world"]
    world = object.__new__(World)
    fields = {
        "problem": problem,
        "transition": array(truth["transition"]),
        "cost_parameters": array(truth["cost_parameters"]),
        "deviation": None if truth["deviation"] is None else arrays(truth["deviation"]),
        "terminal_costs": array(truth["terminal_costs"]),
        **{name: truth[name] for name in _PLAIN},
        **{name: arrays(truth[name]) for name in _TABLES},
    }
    for name, value in fields.items():
        object.__setattr__(world, name, value)
    world.__dict__["digest"] = header["digest"]
    return world


class _Arrays:
    """Distinct arrays, numbered in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._arrays: list[NDArray[Any]] = []  # keeps them alive, so that ids stay theirs

    def number(self, array: NDArray[Any] | SparseRows | None) -> Number:
        if array is None:
            return None
        if isinstance(array, SparseRows):
            return [array.dim, *(self.number(part) for part in array.parts)]
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self._arrays)
            self._arrays.append(array)
        return self._numbers[id(array)]

    def numbers(self, arrays: Iterable[NDArray[Any] | SparseRows | None]) -> list[Number]:
        return [self.number(array) for array in arrays]

    def write(self, path: Path) -> list[list[Any]]:
        """All of them into one file; → per array where it begins, its bytes, dtype and shape."""
        places: list[list[Any]] = []
        end, kind = 0, None
        for array in self._arrays:
            if array.dtype != kind:  # numbers of one kind stay aligned without gaps
                end, kind = end + -end % _ALIGNMENT, array.dtype
            places.append([end, array.nbytes, array.dtype.str, list(array.shape)])
            end += array.nbytes
        with path.open("wb") as file:
            head = {"descr": "|u1", "fortran_order": False, "shape": (end,)}
            np.lib.format.write_array_header_1_0(file, head)
            written = 0
            for array, (begin, size, *_) in zip(self._arrays, places, strict=True):
                file.write(bytes(begin - written))
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                written = begin + size
        return places


class _Lists:
    """Distinct lists of labels."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self.lists: list[tuple[Label, ...]] = []

    def number(self, row: tuple[Label, ...] | None) -> int | None:
        if row is None:
            return None
        if id(row) not in self._numbers:
            self._numbers[id(row)] = len(self.lists)
            self.lists.append(row)
        return self._numbers[id(row)]


def _label(value: Any) -> Label:
    """JSON has no tuples, and lists are no labels: every array is a tuple."""
    return tuple(map(_label, value)) if isinstance(value, list) else value
