"""Names in a problem: labels of states and actions, places for messages, and names of cost features.

States and actions have labels or plain numbers; cost features have names or column numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.arrays import BoolArray, FloatArray, owner
from surefoot.model.labels import Label, Names, Register, hashable, meant, position, shown
from surefoot.model.layer import Layer, Terminal

Labels = Sequence[Sequence[Label] | None]  # a step whose labels are None is numbered
FeatureNames = tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Naming:
    """Labels of states (H steps), of actions (H-1 steps, one per pair; None: 0, 1, … per state), of cost features."""

    states: tuple[Names, ...]
    actions: tuple[tuple[Label, ...] | None, ...]
    features: tuple[str, ...] | None = None

    def action(self, layer: Layer, h: int, pair: int) -> Label:
        listed = self.actions[h]
        if listed is not None:
            return listed[pair]
        state = owner(layer.state_ptr, pair)
        return pair - int(layer.state_ptr[state])

    def pair(self, layer: Layer, h: int, state: int, action: Label) -> int:
        """The index of a pair."""
        first, end = int(layer.state_ptr[state]), int(layer.state_ptr[state + 1])
        listed = self.actions[h]

        def find(label: Label) -> int | None:
            if listed is None:
                return position(label, end - first)
            if not hashable(label):
                return None
            return next((i for i, known in enumerate(listed[first:end]) if known == label), None)

        number = find(action)
        if number is None:
            fix = meant(action, lambda other: find(other) is not None)
            raise UnknownLabel("no such action", where=self.at_state(h, state), got=shown(action), fix=fix)
        return first + number

    def at_state(self, h: int, state: int) -> str:
        return f"step {h}, state {self.states[h][state]!r}"

    def at_pair(self, layer: Layer, h: int, pair: int) -> str:
        state = owner(layer.state_ptr, pair)
        return f"{self.at_state(h, state)}, action {self.action(layer, h, pair)!r}"

    def at_edge(self, layer: Layer, h: int, edge: int) -> str:
        pair = owner(layer.pair_ptr, edge)
        successor = self.states[h + 1][int(layer.successor[edge])]
        return f"{self.at_pair(layer, h, pair)}, successor {successor!r}"

    def at_row(self, layer: Layer, h: int, row: int) -> str:
        """Where a cost row belongs: its triplet, or its pair."""
        if layer.per_triplet:
            return self.at_edge(layer, h, row)
        pair = owner(layer.row_ptr, row)
        first, end = int(layer.row_ptr[pair]), int(layer.row_ptr[pair + 1])
        which = f", cost row {row - first}" if end - first > 1 else ""
        return f"{self.at_pair(layer, h, pair)}{which}"

    def kept(self, keep: Sequence[BoolArray], layers: Sequence[Layer]) -> Naming:
        """The labels of the states that ``keep`` marks, and of their actions."""
        states = tuple(
            names if mask.all() else names.take(np.flatnonzero(mask).tolist())
            for names, mask in zip(self.states, keep, strict=True)
        )
        actions = tuple(
            None if row is None else tuple(row[p] for p in np.flatnonzero(np.repeat(mask, np.diff(layer.state_ptr))))
            for row, mask, layer in zip(self.actions, keep, layers, strict=False)
        )
        return Naming(states, actions, self.features)


def naming_of(
    layers: list[Layer],
    terminal: Terminal,
    state_labels: Labels | None,
    action_labels: Labels | None,
) -> Naming:
    """The labels of each step (states: H lists; actions: H-1 lists, one per pair), or numbers."""
    sizes = [layer.n_states for layer in layers] + [terminal.n_states]
    states = _listed("state", state_labels, sizes, sizes)
    most = [int(np.diff(layer.state_ptr).max()) for layer in layers]
    actions = _listed("action", action_labels, [layer.n_pairs for layer in layers], most)
    names = tuple(Names(size, row) for size, row in zip(sizes, states, strict=True))
    result = Naming(names, actions)
    for h, row in enumerate(states):
        if row is not None and len(set(row)) < len(row):
            twice = next(label for label, n in Counter(row).items() if n > 1)
            raise InvalidInput("two states of a step share a label", where=f"step {h}", got=shown(twice))
    for h, (row, layer) in enumerate(zip(actions, layers, strict=True)):
        if row is not None:
            _check_distinct_actions(row, layer, h, result)
    return result


def _listed(
    kind: str, labels: Labels | None, sizes: list[int], numbers: list[int]
) -> tuple[tuple[Label, ...] | None, ...]:
    """Each step's labels, checked; a step without labels uses the numbers 0 … numbers[h]-1."""
    if labels is None:
        return (None,) * len(sizes)
    if not isinstance(labels, (list, tuple)):
        raise InvalidInput(f"{kind}_labels must be a list with a list for each step", got=shown(labels))
    if len(labels) != len(sizes):
        raise InvalidInput(
            f"{kind}_labels has the wrong number of steps",
            got=f"{len(labels)} lists where {len(sizes)} are expected",
        )
    register = Register(kind, max((n for row, n in zip(labels, numbers, strict=True) if row is None), default=0))
    rows: list[tuple[Label, ...] | None] = []
    for h, (row, size) in enumerate(zip(labels, sizes, strict=True)):
        if row is None:
            rows.append(None)
            continue
        if not isinstance(row, (list, tuple)):
            raise InvalidInput(f"{kind}_labels must hold lists", where=f"step {h}", got=shown(row))
        if len(row) != size:
            raise InvalidInput(
                f"{kind}_labels has the wrong shape",
                where=f"step {h}",
                got=f"{len(row)} labels where {size} are expected",
            )
        for label in row:
            register.add(label, f"step {h}, {kind}")
        rows.append(tuple(row))
    return tuple(rows)


def _check_distinct_actions(row: tuple[Label, ...], layer: Layer, h: int, names: Naming) -> None:
    pointer = layer.state_ptr.tolist()
    for state, (first, end) in enumerate(pairwise(pointer)):
        if len(set(row[first:end])) < end - first:
            raise InvalidInput("duplicate actions", where=names.at_state(h, state), got=shown(list(row[first:end])))


# --- names of cost features -------------------------------------------------------------------------------

_OWN = "Give each cost feature its own name."
MOST = 8  #: features that are listed in a sentence


def check_features(given: Sequence[str] | None, dim: int) -> FeatureNames:
    """The names of the cost features."""
    fix = "Give a name for each cost feature, in order."
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput("features must be a list of names", got=shown(given), fix=fix)
    for name in given:
        if type(name) is not str or not name:
            raise InvalidInput("a feature's name must be a text", where="features", got=shown(name), fix=_OWN)
    for name in given:
        if list(given).count(name) > 1:
            raise InvalidInput("two features share a name", where="features", got=repr(name), fix=_OWN)
    if len(given) != dim:
        got = f"{len(given)} names for {dim} features: {shown(list(given))}"
        raise InvalidInput("every cost feature needs a name", where="features", got=got, fix=fix)
    return tuple(given)


def feature_name(features: FeatureNames, i: int) -> str:
    """A feature as messages call it."""
    return f"feature {i}" if features is None else repr(features[i])


def listed(features: FeatureNames, columns: Sequence[int]) -> str:
    """Several features in a sentence; of many, the first few."""
    names = ", ".join(str(i) if features is None else repr(features[i]) for i in columns[:MOST])
    kind = "column" if len(columns) == 1 else "columns"
    return (f"{kind} {names}" if features is None else names) + (", …" if len(columns) > MOST else "")


def row_entries(features: FeatureNames, x: FloatArray) -> tuple[tuple[str, float], ...]:
    """Names and values of a row's features that are not zero; empty if features have no names."""
    if features is None:
        return ()
    return tuple((features[i], float(x[i])) for i in np.flatnonzero(x).tolist())


def told_entries(entries: Sequence[tuple[str, float]]) -> str:
    """As text: ``bias=1, pressure=0.4``."""
    return ", ".join(f"{name}={value:.4g}" for name, value in entries[:MOST]) + (", …" if len(entries) > MOST else "")


def told_row(features: FeatureNames, x: FloatArray) -> str:
    """A row of features for an error message: by name, with all digits; without names, just the numbers."""
    if features is None:
        return shown(x.tolist())
    return shown(dict(row_entries(features, x)) or dict.fromkeys(features, 0.0))
