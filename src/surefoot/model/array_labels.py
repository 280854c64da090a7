"""The labels of a problem that is declared by arrays: as given for each step, else plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.graph import Layer, Terminal
from surefoot.model.labels import Label, Names, Register, shown
from surefoot.model.naming import Naming

Labels = Sequence[Sequence[Label] | None]  # a step whose labels are None is numbered


def naming(
    layers: list[Layer],
    terminal: Terminal,
    state_labels: Labels | None,
    action_labels: Labels | None,
) -> Naming:
    """Labels per step where given (states: H lists; actions: H-1 lists, one per pair), else numbers."""
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
    """Each step's labels, checked; a step without uses the first ``numbers[h]`` whole numbers."""
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
