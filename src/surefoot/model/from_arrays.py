"""Makes a layered graph of the user's CSR arrays.

Each argument is one ``numpy`` array, used by all steps, or a list of H-1 arrays; features may be sparse matrices.
Arrays are never converted, which could copy gigabytes: one of another kind, or not C-contiguous, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.checks import refuse_first
from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze, rows_of_pairs
from surefoot.model.centers import Centers, center_pairs
from surefoot.model.features import Features
from surefoot.model.graph import Beyond, LayeredGraph
from surefoot.model.labels import shown
from surefoot.model.layer import NO_ACTION, Layer, Terminal
from surefoot.model.naming import Naming, naming_of
from surefoot.model.outline import FallbackChoice, Outline
from surefoot.model.seals import Seal, taken_over
from surefoot.model.sharing import made_once
from surefoot.model.sparse_rows import SparseRows, Taker

PerLayer = NDArray[Any] | Sequence[NDArray[Any]]
Tables = Any  # of features: as PerLayer, or CSR matrices of scipy.sparse in place of the arrays

_INDEX = (np.dtype(np.int64),)
_NUMBER = (np.dtype(np.float64),)
_FEATURE = (np.dtype(np.float32), np.dtype(np.float64))
_FLAG = (np.dtype(np.bool_),)

#: the dtypes and the number of axes of every argument
_KINDS = {
    **dict.fromkeys(("state_ptr", "pair_ptr", "row_ptr", "fallback", "center"), (_INDEX, 1)),
    "successors": ((np.dtype(np.int32), np.dtype(np.int64)), 1),
    **dict.fromkeys(("reward", "terminal_reward"), (_NUMBER, 1)),
    **dict.fromkeys(("forbidden", "terminal_has_cost"), (_FLAG, 1)),
    **dict.fromkeys(("cost_features", "transition_features", "terminal_cost_features"), (_FEATURE, 2)),
    "center_cost_features": (_NUMBER, 2),
}
_OF_LAYERS = ("state_ptr", "pair_ptr", "successors", "reward", "cost_features")  # one for every step, always
_TABLES = ("cost_features", "transition_features", "terminal_cost_features")  # which may be sparse
_OTHERS = (*_OF_LAYERS[:4], "terminal_reward", "terminal_has_cost", "row_ptr")


def outline_of_arrays(
    horizon: int, start: object, given: Mapping[str, Any], beyond: Beyond | None
) -> tuple[Outline, tuple[Seal, ...]]:
    """The graph that the arguments of ``from_arrays`` describe, and the seals of the arrays that were not copied."""
    take = Taker()
    own, seals = taken_over(
        {
            **{name: given[name] for name in _OTHERS},
            **{name: take.each(name, given[name]) for name in _TABLES},
            "forbidden": per_step("forbidden", given["forbidden"], horizon),
        }
    )
    layers = build_layers(horizon, own)
    terminal = build_terminal(layers, own)
    naming = naming_of(layers, terminal, given["state_labels"], given["action_labels"])
    starts = start_indices(start, layers[0].n_states)
    choice = column_choice(given["fallback"], layers, naming)
    rays = centers(given["center"], given["center_cost_features"], layers)
    return Outline(layers, terminal, naming, starts, choice, rays, beyond), seals


def per_layer(name: str, value: PerLayer | Tables, n_layers: int) -> list[Any]:
    """The array of each step: one array n times, or the list as given."""
    if isinstance(value, (np.ndarray, SparseRows)):
        return [value] * n_layers
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(f"{name} must be a numpy array or a list of them", got=f"a {type(value).__name__}")
    if len(value) != n_layers:
        got = f"{len(value)} arrays where horizon - 1 = {n_layers} are expected"
        raise InvalidInput(f"{name} has the wrong number of steps", got=got)
    return list(value)


def taken(name: str, array: object, h: int | None = None) -> Any:
    """The array, if it has the right type, dtype, number of axes and layout. Sparse features are checked elsewhere."""
    (kinds, ndim), where = _KINDS[name], "" if h is None else f"step {h}"
    if isinstance(array, SparseRows) and kinds is _FEATURE:
        return array
    # A masked array or a matrix computes differently.
    if not isinstance(array, np.ndarray) or type(array) not in (np.ndarray, np.memmap):
        raise InvalidInput(f"{name} must be a numpy array", where=where, got=f"a {type(array).__name__}")
    if array.dtype not in kinds:
        got = f"{array.dtype} where {' or '.join(map(str, kinds))} is expected"
        raise InvalidInput(f"{name} has the wrong dtype", where=where, got=got)
    if array.ndim != ndim:
        got = f"{array.shape}, {array.ndim} axes where {ndim} are expected"
        raise InvalidInput(f"{name} has the wrong shape", where=where, got=got)
    if not array.flags.c_contiguous:
        raise InvalidInput(f"{name} is not C-contiguous", where=where, fix="Pass np.ascontiguousarray(…).")
    return array


def _check_length(name: str, array: Any, size: int, of: str, where: str = "", fix: str = "") -> None:
    if len(array) != size:
        got = f"{array.shape} where {of} ({size}) is expected"
        raise InvalidInput(f"{name} has the wrong shape", where=where, got=got, fix=fix)


def claim(graph: LayeredGraph) -> None:
    """Make the user's arrays, and the arrays they are views of, read-only."""
    for array in graph.arrays():
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = freeze(owner).base


def centers(
    center: PerLayer | None, cost_features: PerLayer | None, layers: Sequence[Layer]
) -> Sequence[Centers | None]:
    """The declared rays of each step; ``center`` counts within each state's own actions."""
    n = len(layers)
    if center is None:
        if cost_features is not None:
            raise InvalidInput("center_cost_features has no effect without center")
        return [None] * n
    tables = [None] * n if cost_features is None else per_layer("center_cost_features", cost_features, n)
    columns = list(zip(per_layer("center", center, n), tables, layers, strict=True))

    def of_step(h: int) -> Centers | None:
        number, table, layer = columns[h]
        if number is None:
            return None
        rows = None if table is None else taken("center_cost_features", table, h).copy()
        return Centers(center_pairs(taken("center", number, h), layer, h), rows)

    return made_once([(id(number), id(table), id(y.state_ptr)) for number, table, y in columns], of_step)


def build_layers(horizon: int, given: Mapping[str, Any]) -> list[Layer]:
    """One layer per decision step, from the arguments by name; steps go on sharing arrays."""
    n, known = horizon - 1, dict[int, IntArray]()
    columns = {name: per_layer(name, given[name], n) for name in _OF_LAYERS}
    for name, otherwise in (("transition_features", columns["cost_features"]), ("row_ptr", [None] * n)):
        columns[name] = otherwise if given[name] is None else per_layer(name, given[name], n)
    sizes = [max(0, len(taken("state_ptr", pointer, h)) - 1) for h, pointer in enumerate(columns["state_ptr"])]
    columns["forbidden"] = _forbidden_states(given["forbidden"][:-1], sizes)
    layers = [_layer(h, known, **{name: column[h] for name, column in columns.items()}) for h in range(n)]
    for h, layer in enumerate(layers):
        for name in ("cost_features", "transition_features"):
            _check_alike(name, getattr(layer, name), getattr(layers[0], name), h)
    return layers


def _check_alike(name: str, table: Features, first: Features, h: int) -> None:
    """All steps have features of the same kind and length."""
    _check_kind(name, table, first, f"step {h}")
    width, usual = table.shape[1], first.shape[1]
    if width != usual or width == 0:
        got = f"{width} columns where {usual or 'one or more'} are expected"
        raise InvalidInput(f"{name} has the wrong length", where=f"step {h}", got=got)
    if table.dtype != first.dtype:  # laid end to end, the smaller ones would be converted
        where, got = f"steps 0 and {h}", f"{first.dtype} and {table.dtype}"
        fix = "Use one dtype for all steps."
        raise InvalidInput(f"{name} has different dtypes", where=where, got=got, fix=fix)


def _check_kind(name: str, table: Features, first: Features, where: str) -> None:
    if isinstance(table, SparseRows) != isinstance(first, SparseRows):
        kinds = ["sparse" if isinstance(each, SparseRows) else "dense" for each in (table, first)]
        rule, got = f"{name} is sparse in one step and dense in another", f"{kinds[0]}, step 0 has {kinds[1]} ones"
        raise InvalidInput(rule, where=where, got=got, fix="Give all steps the same kind.")


def _layer(
    h: int,
    known: dict[int, IntArray],
    *,
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successors: IntArray,
    reward: FloatArray,
    cost_features: Features,
    transition_features: Features,
    row_ptr: IntArray | None,
    forbidden: BoolArray,
) -> Layer:
    where, pairs, x, phi = f"step {h}", len(taken("pair_ptr", pair_ptr, h)) - 1, cost_features, transition_features
    for name, array in (("successors", successors), ("cost_features", x)):
        taken(name, array, h)
    _check_pointer("pair_ptr", pair_ptr, len(successors), "edges (len(successors))", h)
    rows = _rows(h, known, row_ptr, pair_ptr, len(successors), x)
    for name, array in (("reward", reward), ("transition_features", phi)):
        taken(name, array, h)
    _check_pointer("state_ptr", state_ptr, pairs, "pairs (len(pair_ptr) - 1)", h)
    if phi is x and rows is not pair_ptr:
        got = "cost_features have rows of their own for each pair, so transitions cannot use them"
        fix = "Give transition_features, with a row per triplet."
        raise InvalidInput("transition_features are missing", where=where, got=got, fix=fix)
    _check_length("reward", reward, pairs, "one row per pair", where)
    _check_length("transition_features", phi, len(successors), "one row per triplet", where)
    _check_length("forbidden", forbidden, len(state_ptr) - 1, "one row per state", where)
    no_fallback = np.empty(0, np.int64)  # follow_fallback finds it
    return Layer(state_ptr, pair_ptr, successors, reward, x, phi, no_fallback, rows, forbidden)


def _rows(
    h: int, known: dict[int, IntArray], given: IntArray | None, pair_ptr: IntArray, triplets: int, x: Features
) -> IntArray:
    """The pair of each cost row: as given, else one row per triplet or per pair, whichever their number fits."""
    where, pairs = f"step {h}", len(pair_ptr) - 1
    if given is not None:
        row_ptr: IntArray = taken("row_ptr", given, h)
        _check_pointer("row_ptr", row_ptr, len(x), "cost rows (len(cost_features))", h)
        _check_length("row_ptr", row_ptr, pairs + 1, "pairs + 1", where)
        if row_ptr is pair_ptr:  # declared as rows of pairs, even where there are as many triplets
            row_ptr = known.setdefault(id(pair_ptr), row_ptr.copy())
        return rows_of_pairs(row_ptr, pair_ptr)
    if len(x) == triplets:
        return pair_ptr
    fix = "If pairs have more rows, give row_ptr, which says whose each row is."
    _check_length("cost_features", x, pairs, f"one row per triplet ({triplets}) or one per pair", where, fix)
    return known.setdefault(-pairs, np.arange(pairs + 1))


def per_step(name: str, value: object, horizon: int) -> list[BoolArray | None]:
    """The array of each of the H steps, from one for all steps or a list with an array or None for each."""
    if value is None or isinstance(value, np.ndarray):
        return [value] * horizon
    if not isinstance(value, (list, tuple)) or len(value) != horizon:
        got = f"{len(value)} entries" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"
        raise InvalidInput(f"{name} must be a numpy array or a list of one for each of {horizon} steps", got=got)
    return list(value)


def _forbidden_states(given: list[BoolArray | None], sizes: list[int], first: int = 0) -> list[BoolArray]:
    """(S,) per step; steps without forbidden states share a mask."""
    none: dict[int, BoolArray] = {}
    return [
        none.setdefault(size, np.zeros(size, bool)) if mask is None else taken("forbidden", mask, h)
        for h, (mask, size) in enumerate(zip(given, sizes, strict=True), first)
    ]


def _check_pointer(name: str, pointer: IntArray, end: int, of: str, h: int) -> None:
    if len(pointer) < 2 or pointer[0] != 0 or pointer[-1] != end:
        ends = f"{pointer[0]} … {pointer[-1]}" if len(pointer) else "an empty array"
        rule, got = f"{name} must run from 0 to the number of {of}", f"{ends} where 0 … {end} is expected"
        raise InvalidInput(rule, where=f"step {h}", got=got)
    if (pointer[1:] < pointer[:-1]).any():
        at = int(np.flatnonzero(pointer[1:] < pointer[:-1])[0])
        got = f"{pointer[at + 1]} after {pointer[at]}"
        raise InvalidInput(f"{name} decreases", where=f"step {h}, entry {at + 1}", got=got)


def build_terminal(layers: list[Layer], given: Mapping[str, Any]) -> Terminal:
    """The last step, from the arguments by name."""
    cost_features, has_cost = given["terminal_cost_features"], given["terminal_has_cost"]
    rewards = np.zeros(_last_states(layers)) if given["terminal_reward"] is None else given["terminal_reward"]
    n, first = len(taken("terminal_reward", rewards)), layers[0].cost_features
    if cost_features is not None:
        _check_kind("terminal_cost_features", taken("terminal_cost_features", cost_features), first, "last step")
        if cost_features.shape != (n, first.shape[1]):
            got = f"{cost_features.shape} where {(n, first.shape[1])} is expected"
            raise InvalidInput("terminal_cost_features has the wrong shape", got=got)
    if has_cost is None:
        has_cost = np.full(n, cost_features is not None)
    else:
        _check_has_cost(has_cost, cost_features)
    (marks,) = _forbidden_states(given["forbidden"][-1:], [n], len(layers))
    _check_length("forbidden", marks, n, "one entry per state", f"step {len(layers)}")
    return Terminal(rewards, cost_features, has_cost, np.zeros(n, bool), marks)


def _last_states(layers: list[Layer]) -> int:
    """The number of last states: where all steps share their arrays, that of any step; else as many as are reached."""
    last = layers[-1]
    if len(layers) > 1 and layers[0].successor is last.successor:
        return last.n_states
    n = max(0, int(last.successor.max(initial=-1)) + 1)
    if n > len(last.successor):  # probably a wrong number, and the states may not fit in memory
        raise InvalidInput(
            "the number of last states is not clear",
            where=f"step {len(layers) - 1}",
            got=f"{len(last.successor)} successors, and one of them is state {n - 1}",
            fix="Correct successors, or give terminal_reward, one for each last state.",
        )
    return n


def _check_has_cost(has_cost: BoolArray, cost_features: Features | None) -> None:
    costed: Any = np.empty(0, bool)
    if cost_features is not None:
        costed = cost_features.not_zero() if isinstance(cost_features, SparseRows) else cost_features.any(axis=1)
    of = "one entry per row of terminal_cost_features"
    _check_length("terminal_has_cost", taken("terminal_has_cost", has_cost), len(costed), of)
    refuse_first(
        ~has_cost & costed,
        "a terminal state without a cost has cost features",
        lambda i: f"last step, state number {i}",
        "Set the row to zero, or declare that the state has a cost.",
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
            got = f"{state}, step 0 has {n_states} states"
            raise InvalidInput("start state does not exist", where="start", got=got)
    if len(np.unique(starts)) < len(starts):
        raise InvalidInput("a start state is listed twice", where="start", got=shown(start))
    return freeze(starts.astype(np.int64))


def column_choice(fallback: PerLayer, layers: list[Layer], names: Naming) -> FallbackChoice:
    """The fallback from an array: the number of its action within each state's own list, or -1."""
    columns: list[IntArray] = per_layer("fallback", fallback, len(layers))
    for h, (column, layer) in enumerate(zip(columns, layers, strict=True)):
        _check_length("fallback", taken("fallback", column, h), layer.n_states, "one entry per state", f"step {h}")

    def choose(h: int, states: IntArray) -> IntArray:
        counts = np.diff(layers[h].state_ptr)
        outside = np.flatnonzero((columns[h] < NO_ACTION) | (columns[h] >= counts))
        if len(outside):  # a wrong number is a mistake even where the fallback never goes
            state = int(outside[0])
            raise InvalidInput(
                "fallback's action does not exist",
                where=names.at_state(h, state),
                got=f"number {columns[h][state]}, the state has {counts[state]} actions",
                fix="Give the number of one of the state's own actions, or -1.",
            )
        return columns[h][states]

    return choose
