"""Which label belongs to which index, and how to say where something is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.errors import UnknownLabel
from surefoot.model.graph import BoolArray, Layer
from surefoot.model.labels import Label, Names, hashable, meant, position, shown


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
        state = int(np.searchsorted(layer.state_ptr, pair, side="right")) - 1
        return pair - int(layer.state_ptr[state])

    def pair(self, layer: Layer, h: int, state: int, action: Label) -> int:
        """The index of a pair, by linear search: a state has few actions."""
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
        state = int(np.searchsorted(layer.state_ptr, pair, side="right")) - 1
        return f"{self.at_state(h, state)}, action {self.action(layer, h, pair)!r}"

    def at_edge(self, layer: Layer, h: int, edge: int) -> str:
        pair = int(np.searchsorted(layer.pair_ptr, edge, side="right")) - 1
        successor = self.states[h + 1][int(layer.successor[edge])]
        return f"{self.at_pair(layer, h, pair)}, successor {successor!r}"

    def at_row(self, layer: Layer, h: int, row: int) -> str:
        """Where a cost row belongs: its triplet, or its pair."""
        if layer.per_triplet:
            return self.at_edge(layer, h, row)
        pair = int(np.searchsorted(layer.row_ptr, row, side="right")) - 1
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
