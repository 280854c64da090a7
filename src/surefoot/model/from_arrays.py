"""Lay the user's CSR arrays into a layered graph without converting them.

Each argument is one ``numpy`` array, used by all steps, or a list of H-1 arrays; features may be sparse matrices.
Arrays are taken as they are: of the right kind and C-contiguous, or refused. A silent conversion would copy gigabytes.
Small arrays were copied before (:mod:`surefoot.model.seals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.model.features import Features
from surefoot.model.graph import (
    NO_ACTION,
    BoolArray,
    FloatArray,
    IntArray,
    Layer,
    LayeredGraph,
    Terminal,
    freeze,
    rows_of_pairs,
)
from surefoot.model.labels import shown
from surefoot.model.naming import Naming
from surefoot.model.rays import Centers, center_pairs
from surefoot.model.rules import FallbackChoice
from surefoot.model.sparse_rows import SparseRows

PerLayer = NDArray[Any] | Sequence[NDArray[Any]]
Tables = Any  # of features: as PerLayer, or CSR matrices of scipy.sparse in place of the arrays

_INDEX = (np.dtype(np.int64),)
_SUCCESSOR = (np.dtype(np.int32), np.dtype(np.int64))
_NUMBER = (np.dtype(np.float64),)
_FEATURE = (np.dtype(np.float32), np.dtype(np.float64))
_FLAG = (np.dtype(np.bool_),)


def per_layer(name: str, value: PerLayer | Tables, n_layers: int) -> list[Any]:
    """The array of each step: the template n times, or the list as given."""
    if isinstance(value, (np.ndarray, SparseRows)):
        return [value] * n_layers
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(f"{name} must be a numpy array or a list of them", got=f"a {type(value).__name__}")
    if len(value) != n_layers:
        raise InvalidInput(
            f"{name} has the wrong number of steps",
            got=f"{len(value)} arrays where horizon - 1 = {n_layers} are expected",
        )
    return list(value)


def taken(name: str, array: object, kinds: tuple[np.dtype[Any], ...], ndim: int, h: int | None = None) -> NDArray[Any]:
    """The array itself if it has the right type, dtype, number of axes and layout."""
    where = "" if h is None else f"step {h}"
    # Not a masked array or a matrix, which compute differently.
    if not isinstance(array, np.ndarray) or type(array) not in (np.ndarray, np.memmap):
        raise InvalidInput(f"{name} must be a numpy array", where=where, got=f"a {type(array).__name__}")
    if array.dtype not in kinds:
        raise InvalidInput(
            f"{name} has the wrong dtype",
            where=where,
            got=f"{array.dtype} where {' or '.join(map(str, kinds))} is expected",
        )
    if array.ndim != ndim:
        raise InvalidInput(
            f"{name} has the wrong shape",
            where=where,
            got=f"{array.shape}, {array.ndim} axes where {ndim} are expected",
        )
    if not array.flags.c_contiguous:
        raise InvalidInput(f"{name} is not C-contiguous", where=where, fix="Pass np.ascontiguousarray(…).")
    return array


def taken_features(name: str, table: object, h: int | None = None) -> Features:
    """A table of features of either kind; a sparse one was checked when it was taken."""
    return table if isinstance(table, SparseRows) else taken(name, table, _FEATURE, 2, h)


def claim(graph: LayeredGraph) -> None:
    """Make the user's arrays, and the arrays they are views of, read-only."""
    for array in graph.arrays():
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = freeze(owner).base


def centers(center: PerLayer | None, cost_features: PerLayer | None, layers: Sequence[Layer]) -> list[Centers | None]:
    """What is declared of rays, per step; ``center`` counts within each state's own actions."""
    n = len(layers)
    if center is None:
        if cost_features is not None:
            raise InvalidInput("center_cost_features has no effect without center")
        return [None] * n
    tables = [None] * n if cost_features is None else per_layer("center_cost_features", cost_features, n)
    known: dict[tuple[int, ...], Centers] = {}  # what steps share stays one object
    made: list[Centers | None] = []
    for h, (given, table, layer) in enumerate(zip(per_layer("center", center, n), tables, layers, strict=True)):
        if given is None:
            made.append(None)
            continue
        key = (id(given), id(table), id(layer.state_ptr))
        if key not in known:
            known[key] = _centers(given, table, layer, h)
        made.append(known[key])
    return made


def _centers(given: NDArray[Any], table: NDArray[Any] | None, layer: Layer, h: int) -> Centers:
    pair = center_pairs(taken("center", given, _INDEX, 1, h), layer, h)
    rows = None if table is None else taken("center_cost_features", table, _NUMBER, 2, h).copy()
    return Centers(pair, rows)


def build_layers(
    horizon: int,
    state_ptr: PerLayer,
    pair_ptr: PerLayer,
    successors: PerLayer,
    reward: PerLayer,
    cost_features: Tables,
    transition_features: Tables | None,
    row_ptr: PerLayer | None,
    forbidden: list[BoolArray | None],
) -> list[Layer]:
    n = horizon - 1
    known: dict[int, IntArray] = {}  # what steps share stays one array
    columns = [
        per_layer("state_ptr", state_ptr, n),
        per_layer("pair_ptr", pair_ptr, n),
        per_layer("successors", successors, n),
        per_layer("reward", reward, n),
        per_layer("cost_features", cost_features, n),
    ]
    phi = columns[-1]
    if transition_features is not None:
        phi = per_layer("transition_features", transition_features, n)
    given = [None] * n if row_ptr is None else per_layer("row_ptr", row_ptr, n)  # None entries: as their number says
    sizes = [max(0, len(taken("state_ptr", pointer, _INDEX, 1, h)) - 1) for h, pointer in enumerate(columns[0])]
    marks = _forbidden_states(forbidden[:-1], sizes)
    rows = [_rows(h, known, *each) for h, each in enumerate(zip(given, *columns[1:3], columns[4], strict=True))]
    layers = [_layer(h, *arrays) for h, arrays in enumerate(zip(*columns, phi, rows, marks, strict=True))]
    for h, layer in enumerate(layers):
        for name in ("cost_features", "transition_features"):
            _check_kind(name, getattr(layer, name), getattr(layers[0], name), f"step {h}")
            width, first = getattr(layer, name).shape[1], getattr(layers[0], name).shape[1]
            if width != first or width == 0:
                raise InvalidInput(
                    f"{name} has the wrong length",
                    where=f"step {h}",
                    got=f"{width} columns where {first or 'one or more'} are expected",
                )
            kind, usual = getattr(layer, name).dtype, getattr(layers[0], name).dtype
            if kind != usual:  # put one after the other, the smaller kind would be copied into the larger
                raise InvalidInput(
                    f"{name} has different dtypes",
                    where=f"steps 0 and {h}",
                    got=f"{usual} and {kind}",
                    fix="Store the features of all steps in one kind.",
                )
    return layers


def _check_kind(name: str, table: Features, first: Features, where: str) -> None:
    if isinstance(table, SparseRows) != isinstance(first, SparseRows):
        kinds = ["sparse" if isinstance(each, SparseRows) else "dense" for each in (table, first)]
        raise InvalidInput(
            f"{name} is sparse in one step and dense in another",
            where=where,
            got=f"{kinds[0]}, step 0 has {kinds[1]} ones",
            fix="Give all steps the same kind.",
        )


def _layer(
    h: int,
    state_ptr: NDArray[Any],
    pair_ptr: NDArray[Any],
    successor: NDArray[Any],
    reward: NDArray[Any],
    x: Features,
    phi: Features,
    row_ptr: NDArray[Any],
    forbidden: NDArray[Any],
) -> Layer:
    taken("reward", reward, _NUMBER, 1, h)
    taken_features("transition_features", phi, h)
    _check_pointer("state_ptr", state_ptr, len(pair_ptr) - 1, "pairs (len(pair_ptr) - 1)", h)
    if phi is x and row_ptr is not pair_ptr:
        raise InvalidInput(
            "transition_features are missing",
            where=f"step {h}",
            got="cost_features have rows of their own for each pair, so transitions cannot use them",
            fix="Give transition_features, with a row per triplet.",
        )
    for name, array, size, of in (
        ("reward", reward, len(pair_ptr) - 1, "pair"),
        ("transition_features", phi, len(successor), "triplet"),
        ("forbidden", forbidden, len(state_ptr) - 1, "state"),
    ):
        if len(array) != size:
            raise InvalidInput(
                f"{name} has the wrong shape",
                where=f"step {h}",
                got=f"{array.shape} where one row per {of} ({size}) is expected",
            )
    no_fallback = np.empty(0, np.int64)  # laid in by follow_fallback
    return Layer(state_ptr, pair_ptr, successor, reward, x, phi, no_fallback, row_ptr, forbidden)


def _rows(
    h: int, known: dict[int, IntArray], given: object, pair_ptr: IntArray, successor: IntArray, x: Features
) -> IntArray:
    """Whose the cost rows are: as given, else one per triplet or one per pair, whichever their number says."""
    taken("pair_ptr", pair_ptr, _INDEX, 1, h)
    taken("successors", successor, _SUCCESSOR, 1, h)
    taken_features("cost_features", x, h)
    _check_pointer("pair_ptr", pair_ptr, len(successor), "edges (len(successors))", h)
    triplets, pairs = len(successor), len(pair_ptr) - 1
    if given is not None:
        row_ptr: IntArray = taken("row_ptr", given, _INDEX, 1, h)
        _check_pointer("row_ptr", row_ptr, len(x), "cost rows (len(cost_features))", h)
        if len(row_ptr) != len(pair_ptr):
            raise InvalidInput(
                "row_ptr has the wrong shape",
                where=f"step {h}",
                got=f"{row_ptr.shape} where pairs + 1 ({pairs + 1}) is expected",
            )
        if row_ptr is pair_ptr:  # rows that were given to pairs stay theirs, also where both counts agree
            row_ptr = known.setdefault(id(pair_ptr), row_ptr.copy())
        return rows_of_pairs(row_ptr, pair_ptr)
    if len(x) == triplets:
        return pair_ptr
    if len(x) != pairs:
        raise InvalidInput(
            "cost_features has the wrong shape",
            where=f"step {h}",
            got=f"{x.shape} where one row per triplet ({triplets}) or one per pair ({pairs}) is expected",
            fix="Say with row_ptr which rows belong to which pair, if there are more.",
        )
    return known.setdefault(-pairs, np.arange(pairs + 1))


def per_step(name: str, value: object, horizon: int) -> list[BoolArray | None]:
    """The array of each of all H steps: one for all, or a list with an array or None for each."""
    if value is None or isinstance(value, np.ndarray):
        return [value] * horizon
    if not isinstance(value, (list, tuple)) or len(value) != horizon:
        got = f"{len(value)} entries" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"
        raise InvalidInput(f"{name} must be a numpy array or a list of one for each of {horizon} steps", got=got)
    return list(value)


def _forbidden_states(given: list[BoolArray | None], sizes: list[int], first: int = 0) -> list[BoolArray]:
    """(S,) per step; the same empty mask for all steps of one size."""
    none: dict[int, BoolArray] = {}
    return [
        none.setdefault(size, np.zeros(size, bool)) if mask is None else taken("forbidden", mask, _FLAG, 1, h)
        for h, (mask, size) in enumerate(zip(given, sizes, strict=True), first)
    ]


def _check_pointer(name: str, pointer: IntArray, end: int, of: str, h: int) -> None:
    if len(pointer) < 2 or pointer[0] != 0 or pointer[-1] != end:
        ends = f"{pointer[0]} … {pointer[-1]}" if len(pointer) else "an empty array"
        raise InvalidInput(
            f"{name} must run from 0 to the number of {of}",
            where=f"step {h}",
            got=f"{ends} where 0 … {end} is expected",
        )
    if (pointer[1:] < pointer[:-1]).any():
        at = int(np.flatnonzero(pointer[1:] < pointer[:-1])[0])
        got = f"{pointer[at + 1]} after {pointer[at]}"
        raise InvalidInput(f"{name} decreases", where=f"step {h}, entry {at + 1}", got=got)


def build_terminal(
    layers: list[Layer],
    rewards: FloatArray | None,
    cost_features: Tables | None,
    has_cost: BoolArray | None,
    forbidden: BoolArray | None,
) -> Terminal:
    last = layers[-1]
    if rewards is None:
        rewards = np.zeros(_last_states(layers))
    taken("terminal_reward", rewards, _NUMBER, 1)
    if cost_features is not None:
        cost_features = taken_features("terminal_cost_features", cost_features)
        _check_kind("terminal_cost_features", cost_features, layers[0].cost_features, "last step")
        expected = (len(rewards), last.cost_features.shape[1])
        if cost_features.shape != expected:
            raise InvalidInput(
                "terminal_cost_features has the wrong shape",
                got=f"{cost_features.shape} where {expected} is expected",
            )
    if has_cost is None:
        has_cost = np.full(len(rewards), cost_features is not None)
    else:
        _check_has_cost(has_cost, cost_features)
    unreached = np.zeros(len(rewards), bool)
    (marks,) = _forbidden_states([forbidden], [len(rewards)], len(layers))
    if len(marks) != len(rewards):
        raise InvalidInput(
            "forbidden has the wrong shape",
            where=f"step {len(layers)}",
            got=f"{marks.shape} where one entry per state ({len(rewards)}) is expected",
        )
    return Terminal(rewards, cost_features, has_cost, unreached, marks)


def _last_states(layers: list[Layer]) -> int:
    """With a template, the last step has the template's states; otherwise the states that are reached."""
    last = layers[-1]
    if len(layers) > 1 and layers[0].successor is last.successor:
        return last.n_states
    n = max(0, int(last.successor.max(initial=-1)) + 1)
    if n > len(last.successor):  # most likely a wrong number, and it may be larger than any memory
        raise InvalidInput(
            "the number of last states is not clear",
            where=f"step {len(layers) - 1}",
            got=f"{len(last.successor)} successors, and one of them is state {n - 1}",
            fix="Correct successors, or say with terminal_reward how many there are.",
        )
    return n


def _check_has_cost(has_cost: BoolArray, cost_features: Features | None) -> None:
    taken("terminal_has_cost", has_cost, _FLAG, 1)
    n = 0 if cost_features is None else len(cost_features)
    if cost_features is None or len(has_cost) != n:
        raise InvalidInput(
            "terminal_has_cost has the wrong shape",
            got=f"{has_cost.shape} where one entry per row of terminal_cost_features ({n}) is expected",
        )
    costed = cost_features.not_zero() if isinstance(cost_features, SparseRows) else cost_features.any(axis=1)
    idle = np.flatnonzero(~has_cost & costed)
    if len(idle):
        raise InvalidInput(
            "a terminal state without a cost has cost features",
            where=f"last step, state number {int(idle[0])}",
            fix="Make the row zero, or say that the state has a cost.",
        )


def start_indices(start: object, n_states: int) -> IntArray:
    """State numbers of the starts; one number or a list of several."""
    try:
        starts = np.atleast_1d(np.asarray(start))
    except ValueError:  # lists of different lengths
        starts = np.empty(0)
    if starts.ndim != 1 or len(starts) == 0 or starts.dtype.kind not in "iu":
        raise InvalidInput("start must be a state number or a list of them", got=shown(start))
    for state in starts.tolist():
        if not 0 <= state < n_states:
            raise InvalidInput(
                "start state does not exist", where="start", got=f"{state}, step 0 has {n_states} states"
            )
    if len(np.unique(starts)) < len(starts):
        raise InvalidInput("a start state is listed twice", where="start", got=shown(start))
    return freeze(starts.astype(np.int64))


def fallback_choice(fallback: PerLayer, layers: list[Layer], names: Naming) -> FallbackChoice:
    """The fallback as the number of an action within each state's own list; -1 where it has none."""
    columns: list[IntArray] = per_layer("fallback", fallback, len(layers))
    for h, (column, layer) in enumerate(zip(columns, layers, strict=True)):
        taken("fallback", column, _INDEX, 1, h)
        if len(column) != layer.n_states:
            raise InvalidInput(
                "fallback has the wrong shape",
                where=f"step {h}",
                got=f"{column.shape} where one entry per state ({layer.n_states}) is expected",
            )

    def choose(h: int, states: IntArray) -> IntArray:
        counts = np.diff(layers[h].state_ptr)
        outside = np.flatnonzero((columns[h] < NO_ACTION) | (columns[h] >= counts))
        if len(outside):  # also where the fallback never comes: a wrong number is a mistake anywhere
            state = int(outside[0])
            raise InvalidInput(
                "fallback's action does not exist",
                where=names.at_state(h, state),
                got=f"number {columns[h][state]}, the state has {counts[state]} actions",
                fix="Give the number of one of the state's own actions, or -1.",
            )
        return columns[h][states]

    return choose
