"""The audit's own reading of a problem file, from its schema (``model/problem.schema.json``), and of its digest.

Archives and JSON are opened by the shared readers, within the same limits: a small file cannot claim much memory, by
compression or by sharing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.audits.problem import NONE, Layer, Limit, Names, Problem, Unreadable, label
from surefoot.storage import archive as npz
from surefoot.storage import documents

_ARRAYS = {  # entry of a layer, of the last layer, of an anchor -> (dtype, axes)
    "states": ("<i8", 1),
    "actions": ("<i8", 1),
    "state_ptr": ("<i8", 1),
    "pair_ptr": ("<i8", 1),
    "fallback": ("<i8", 1),
    "reward": ("<f8", 1),
    "cost_features": ("<f8", 2),
    "transition_features": ("<f8", 2),
    "has_cost": ("|b1", 1),
    "row_ptr": ("<i8", 1),
    "forbidden": ("|b1", 1),
    "features": ("<f8", 2),
    "cost": ("<f8", 2),
    "tolerance": ("<f8", 2),
    "starts": ("<i8", 1),
    "center": ("<i8", 1),
}

_LEAST_BUDGET = 1 << 20  # entries of arrays that are laid out for each layer; more in a larger file


def read_problem(path: Path) -> Problem:
    """A problem from its .json or .npz file; anything that is not one raises Unreadable."""
    try:
        if path.suffix == ".json":
            document, size = documents.read_json(path)
            return _built(document, document.get("arrays", {}), size)
        with npz.opened(path) as (header, open_members):
            members = open_members()
            return _built(header, members, members.size)
    except _DAMAGE as error:
        raise Unreadable(f"the problem {path} cannot be read: {error!r}") from error


_DAMAGE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, MemoryError)


class _Once:
    """Computes once what follows from the same arrays, which layers may share. The document keeps them alive."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Any] = {}

    def __call__(self, make: Callable[..., Any], *given: Any) -> Any:
        key = (make, *map(id, given))
        if key not in self._known:
            self._known[key] = make(*given)
        return self._known[key]


def _built(document: dict[str, Any], stored: Mapping[str, Any], size: int) -> Problem:
    if document["format"] != "surefoot-problem" or document["version"] != 4:
        raise Unreadable(f"a problem of another kind: {document['format']!r}, version {document['version']!r}")
    _resolve(document, stored)
    _refuse_shared(document, max(size, _LEAST_BUDGET))
    once = _Once()
    labels = {kind: [label(value) for value in document["labels"][kind]] for kind in ("states", "actions")}
    layers, names, none = [], [], [None] * len(document["layers"])
    for part, rays in zip(document["layers"], document.get("rays", none), strict=True):
        layers.append(
            Layer(
                state_ptr=once(np.ndarray.tolist, part["state_ptr"]),
                pair_ptr=once(np.ndarray.tolist, part["pair_ptr"]),
                successor=once(np.ndarray.tolist, part["successors"]),
                x=part["cost_features"],
                fallback=once(_fallback_pairs, part["fallback"], part["state_ptr"]),
                actions=once(_named, part["actions"], labels["actions"]),
                row_ptr=once(_row_ptr, part["row_ptr"], part["pair_ptr"], part["cost_features"]),
                by_edge=part["row_ptr"] is None,
                forbidden=once(_forbidden, part["forbidden"], part["fallback"]),
                x0=None if rays is None else rays["cost_features"],
                rays={} if rays is None else _rays(part, rays),
            )
        )
        names.append(once(_names, part["fallback"], part["states"], labels["states"]))
    last, starts = document["terminal"], document["starts"].tolist()
    n_last = len(last["reward"])
    last_forbidden = _forbidden(last["forbidden"], last["reward"])
    names.append(Names(n_last, _named(last["states"], labels["states"])))
    anchors = [None if part is None else _anchors(part, len(document["limits"])) for part in document["anchors"]]
    if document["stationary_costs"]:
        _refuse_other_anchors(anchors if last["cost_features"] is not None else anchors[:-1])
    phi = [part["transition_features"] for part in document["layers"]]
    longest = _longest_row(document.get("beyond"), layers, last_forbidden)
    return Problem(
        digest=_digest(document, once),
        horizon=document["horizon"],
        limits=[Limit(**limit) for limit in document["limits"]],
        stationary=document["stationary_costs"],
        starts=starts,
        layers=layers,
        states=names,
        last_x=None if last["cost_features"] is None else last["cost_features"],
        has_cost=[False] * n_last if last["has_cost"] is None else last["has_cost"].tolist(),
        fallback_ends=_fallback_ends(layers, starts, n_last, last_forbidden),
        last_forbidden=last_forbidden,
        anchors=anchors,
        names=document["features"],
        transition_norm=document["transition_norm"],
        transition_dim=0 if all(each is None for each in phi) else _own(document["layers"][0]).shape[1],
        largest_sum=max(once(_largest_sum, _own(part), part["pair_ptr"]) for part in document["layers"]),
        longest_row=longest,
    )


def _refuse_shared(document: dict[str, Any], budget: int) -> None:
    """Like the loader: what is laid out for each layer may not be larger than the file."""
    anchors = filter(None, document["anchors"])
    arrays = [part[key] for part in document["layers"] for key in ("fallback", "states", "actions")]
    arrays += [part[key] for part in anchors for key in ("features", "cost", "tolerance")]
    if sum(array.size for array in arrays if array is not None) > budget:
        raise ValueError("arrays are shared beyond the size of the file")


def _resolve(document: dict[str, Any], stored: Mapping[str, Any]) -> None:
    """Put the arrays in place of their lists or references. One name is one array. No study has sparse features."""
    known: dict[str, Any] = {}

    def array(value: Any, kind: tuple[str, int]) -> Any:
        dtype, axes = kind
        if isinstance(value, dict):
            name = value["array"]
            if name not in known:
                known[name] = np.array(stored[name], dtype=dtype)
            found = known[name]
        else:
            found = np.array(value, dtype=dtype)
        if found.ndim != axes or found.dtype != np.dtype(dtype):
            raise ValueError(f"an array of {found.dtype} with {found.ndim} axes where {dtype} with {axes} is expected")
        return found

    document["starts"] = array(document["starts"], _ARRAYS["starts"])
    parts = (*document["layers"], document["terminal"], *filter(None, document["anchors"]), *document.get("rays", ()))
    for part in parts:
        for key, value in part.items():
            if key == "successors":
                part[key] = array(value, ("<i4" if part["successor_dtype"] == "int32" else "<i8", 1))
            elif isinstance(value, dict) and "sparse" in value:
                raise ValueError("sparse features, which no study has")
            elif value is not None and key in _ARRAYS:
                part[key] = array(value, _ARRAYS[key])


def _named(numbers: Any, pool: list[Any]) -> list[Any] | None:
    return None if numbers is None else [pool[i] for i in numbers.tolist()]


def _names(fallback: Any, numbers: Any, pool: list[Any]) -> Names:
    return Names(len(fallback), _named(numbers, pool))


def _fallback_pairs(fallback: Any, state_ptr: Any) -> list[int]:
    firsts = state_ptr.tolist()[:-1]
    return [NONE if a == NONE else first + a for a, first in zip(fallback.tolist(), firsts, strict=True)]


def _anchors(part: dict[str, Any], limits: int) -> tuple[Any, Any, Any]:
    found = part["features"], part["cost"], part["tolerance"]
    n = len(found[0])
    if n == 0 or found[1].shape != (n, limits) or found[2].shape != (n, limits) or (found[2] < 0).any():
        raise ValueError(f"anchors of shapes {[table.shape for table in found]}")
    return found


def _refuse_other_anchors(anchors: list[tuple[Any, Any, Any] | None]) -> None:
    """Stationary costs share one regression, which has one set of anchors (spec 3): bounds rest on it."""
    for h, found in enumerate(anchors):
        if any(not np.array_equal(a, b) for a, b in zip(found or (None,) * 3, anchors[0] or (None,) * 3, strict=True)):
            raise ValueError(f"anchors of steps 0 and {h} differ although costs are stationary")


def _row_ptr(row_ptr: Any, pair_ptr: Any, x: Any) -> list[int]:
    """Which rows of cost features belong to each pair; without a pointer each edge has its own."""
    n, ends = len(x), (pair_ptr if row_ptr is None else row_ptr).tolist()
    if len(ends) != len(pair_ptr) or ends[0] != 0 or ends[-1] != n or any(b <= a for a, b in itertools.pairwise(ends)):
        raise ValueError(f"each of {len(pair_ptr) - 1} pairs must have some of {n} rows of cost features")
    found: list[int] = ends
    return found


def _rays(part: dict[str, Any], rays: dict[str, Any]) -> dict[int, int]:
    """The pairs that have an intensity, and their centres; checked, as certificates rest on their rows at both ends."""
    center, x0, x1 = rays["center"], rays["cost_features"], part["cost_features"]
    state_ptr, rows = part["state_ptr"], part["pair_ptr"] if part["row_ptr"] is None else part["row_ptr"]
    own = np.repeat(np.diff(state_ptr), np.diff(state_ptr))  # actions of each pair's state
    if len(center) != len(own) or (center < NONE).any() or (center >= own).any():
        raise ValueError("centres that are no actions of their states")
    open_pair = center != NONE
    plain = np.repeat(~open_pair, np.diff(rows))
    if x0.shape != x1.shape or not np.isfinite(x0).all() or not np.array_equal(x0[plain], x1[plain]):
        raise ValueError("cost features of centres that do not fit")
    first = np.repeat(state_ptr[:-1], np.diff(state_ptr))
    fallback = part["fallback"] + state_ptr[:-1]
    if open_pair[(first + center)[open_pair]].any() or open_pair[fallback[part["fallback"] != NONE]].any():
        raise ValueError("a centre, or an action of the fallback, that has an intensity")
    return dict(zip(np.flatnonzero(open_pair).tolist(), (first + center)[open_pair].tolist(), strict=True))


def _forbidden(flags: Any, states: Any) -> set[int]:
    if flags is not None and len(flags) != len(states):
        raise ValueError(f"{len(flags)} flags of forbidden states for {len(states)} states")
    return set() if flags is None else set(np.flatnonzero(flags).tolist())


def _longest_row(beyond: Any, layers: list[Layer], last_forbidden: set[int]) -> float | None:
    """The longest row that a graph that grows declares. Its state 0, for everything not in the graph, is forbidden."""
    if beyond is None:
        return None
    longest = beyond["longest_row"]
    if type(longest) not in (int, float) or type(beyond["room"]) is not bool:
        raise ValueError(f"beyond is {beyond!r:.80}")
    if any(0 not in layer.forbidden for layer in layers[1:]) or 0 not in last_forbidden:
        raise ValueError("what is outside a graph that grows is not forbidden")
    if any(np.sqrt((layer.x * layer.x).sum(axis=1)).max() > longest * (1 + 1e-12) for layer in layers):
        raise ValueError(f"a row is longer than {longest!r}")
    return float(longest)


def _own(part: dict[str, Any]) -> Any:
    return part["cost_features"] if part["transition_features"] is None else part["transition_features"]


def _largest_sum(features: Any, pair_ptr: Any) -> float:
    lengths, ends = np.sqrt((features**2).sum(axis=1)), pair_ptr.tolist()
    return max(float(lengths[first:end].sum()) for first, end in itertools.pairwise(ends))


def _fallback_ends(layers: list[Layer], starts: list[int], n_last: int, last_forbidden: set[int]) -> list[bool]:
    """Follow the fallback from the starts: where it ends. Neither a state without a fallback's action nor a forbidden
    one must be reached."""
    reached = set(starts)
    for h, layer in enumerate(layers):
        if reached & layer.forbidden:
            state = min(reached & layer.forbidden)
            raise ValueError(f"the fallback can reach state number {state} of step {h}, which is forbidden")
        after: set[int] = set()
        for state in reached:
            pair = layer.fallback[state]
            if pair == NONE:
                raise ValueError(f"the fallback has no action at step {h}, state number {state}, which it can reach")
            after.update(layer.after(pair))
        reached = after
    if reached & last_forbidden:
        raise ValueError(f"the fallback can end in state number {min(reached & last_forbidden)}, which is forbidden")
    return [state in reached for state in range(n_last)]


def _digest(document: dict[str, Any], once: _Once) -> str:
    """sha256 of all that is declared: arrays by dtype, shape and content, however they are stored or shared.

    Features stored in float32 were read as float64, and count as such.
    """
    content = {key: value for key, value in document.items() if key not in ("format", "version", "digest", "arrays")}
    content["layers"] = [{**part, "transition_features": _own(part)} for part in document["layers"]]

    def fingerprint(array: Any) -> list[Any]:
        return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]

    text = json.dumps(content, default=partial(once, fingerprint), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(b"surefoot-problem 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()
