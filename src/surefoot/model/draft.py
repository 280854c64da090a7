"""A step of a problem while a user's functions are asked about it: its arrays so far, and what is added to them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from surefoot.model.arrays import FloatArray, freeze, owner
from surefoot.model.labels import Label, Names
from surefoot.model.layer import Layer, Rays
from surefoot.model.rays import NO_CENTER


class Drafted(NamedTuple):
    """What an action of a state does."""

    reward: float
    after: list[Label]  # its successors, at any intensity
    x: list[FloatArray]  # its cost rows, or those of its triplets
    phi: list[FloatArray]  # transition features of its triplets; none where they are the cost features
    center: int = NO_CENTER  # the number, among the state's own, of the action that it is at intensity 0
    x0: tuple[FloatArray, ...] = ()  # its rows at intensity 0


@dataclass
class Draft:
    """A step with new states. States, pairs, edges and rows are numbered on from those that it has already."""

    names: Names = field(default_factory=lambda: Names(0))  # of the states that it has
    known_actions: Sequence[Label] = ()
    layer: Layer | None = None  # its arrays; None: a new step, or the last one
    rays: Rays | None = None
    labels: list[Label] = field(default_factory=list)  # of new states; all that follows is of these
    index: dict[Label, int] = field(default_factory=dict)
    actions: list[Label] = field(default_factory=list)
    state_ptr: list[int] = field(default_factory=list)  # where each state's pairs end
    pair_ptr: list[int] = field(default_factory=list)
    row_ptr: list[int] = field(default_factory=list)  # where the cost rows of each pair end
    successor: list[int] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    x: list[FloatArray] = field(default_factory=list)
    phi: list[FloatArray] = field(default_factory=list)
    center: list[int] = field(default_factory=list)  # of pairs that are rays (spec 9), else NO_CENTER
    x0: list[FloatArray] = field(default_factory=list)  # the rows at intensity 0
    forbidden: list[bool] = field(default_factory=list)
    has_cost: list[bool] = field(default_factory=list)  # in the last step
    leads: dict[int, int] = field(default_factory=dict)  # edges that the step has already, and where they lead now

    def __post_init__(self) -> None:
        layer = self.layer
        self.state = len(self.names)  # the first new state, and so on
        self.pair, self.edge, self.row = (0, 0, 0) if layer is None else (layer.n_pairs, layer.n_edges, layer.n_rows)

    # --- what there is, known or new ----------------------------------------------------------------------

    def find(self, label: Label) -> int | None:
        """The number of a state; None if the step does not have it."""
        known = self.names.find(label)
        return self.index.get(label) if known is None else known

    def pairs_of(self, state: int) -> range:
        if state < self.state:
            return self._layer.pairs_of(state)
        return _span(self.pair, self.state_ptr, state - self.state)

    def edges_of(self, pair: int) -> range:
        if pair < self.pair:
            return self._layer.edges_of(pair)
        return _span(self.edge, self.pair_ptr, pair - self.pair)

    def state_of(self, pair: int) -> Label:
        """The name of the state that a pair belongs to."""
        if pair < self.pair:
            return self.names[owner(self._layer.state_ptr, pair)]
        return self.labels[bisect_right(self.state_ptr, pair)]

    def action(self, pair: int) -> Label:
        return self.known_actions[pair] if pair < self.pair else self.actions[pair - self.pair]

    def target(self, edge: int) -> int:
        """Where an edge leads so far."""
        if edge >= self.edge:
            return self.successor[edge - self.edge]
        return self.leads.get(edge, int(self._layer.successor[edge]))

    def center_of(self, pair: int) -> int:
        if pair >= self.pair:
            return self.center[pair - self.pair]
        return NO_CENTER if self.rays is None else int(self.rays.center[pair])

    @property
    def _layer(self) -> Layer:
        assert self.layer is not None
        return self.layer

    # --- additions ----------------------------------------------------------------------------------------

    def add(
        self, label: Label, actions: list[Label], pairs: list[Drafted], forbidden: bool, number: Callable[[Label], int]
    ) -> None:
        """Add a state with its actions; ``number`` gives the number of a successor in the next step."""
        self._name(label, forbidden)
        first = self.pair + len(self.reward)
        self.actions += actions
        for pair in pairs:
            self.reward.append(pair.reward)
            self.successor += map(number, pair.after)
            self.x += pair.x
            self.x0 += pair.x0 or pair.x
            self.phi += pair.phi
            self.center.append(NO_CENTER if pair.center == NO_CENTER else first + pair.center)
            self.pair_ptr.append(self.edge + len(self.successor))
            self.row_ptr.append(self.row + len(self.x))
        self.state_ptr.append(self.pair + len(self.reward))

    def add_last(self, label: Label, reward: float, x: FloatArray | None, forbidden: bool, cost_dim: int) -> None:
        """Add a state of the last step; without cost features it has no cost there."""
        self._name(label, forbidden)
        self.reward.append(reward)
        self.has_cost.append(x is not None)
        self.x.append(np.zeros(cost_dim) if x is None else x)

    def _name(self, label: Label, forbidden: bool) -> None:
        self.index[label] = self.state + len(self.labels)
        self.labels.append(label)
        self.forbidden.append(forbidden)

    def lead(self, edge: int, state: int) -> None:
        """Let an edge lead to a state of the next step."""
        if edge < self.edge:
            self.leads[edge] = state
        else:
            self.successor[edge - self.edge] = state


def _span(begin: int, ends: list[int], i: int) -> range:
    return range(ends[i - 1] if i else begin, ends[i])


def longer(array: Any, more: Any) -> Any:
    """The array with more rows, read-only; without any, the array itself."""
    return freeze(np.concatenate([array, np.asarray(more, array.dtype)]) if len(more) else array)
