"""A step as a user's functions describe it, state by state, before it becomes the arrays of a layer.

A problem that grows drafts what is added to its layers in the same way (surefoot.model.grower).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from surefoot.model.graph import FloatArray
from surefoot.model.labels import Label
from surefoot.model.rays import NO_CENTER


class Drafted(NamedTuple):
    """What an action of a state does."""

    reward: float
    after: list[Label]  # its successors, at any intensity
    x: list[FloatArray]  # its cost rows, or those of its triplets
    phi: list[FloatArray]  # transition features of its triplets; none where they are the cost features
    center: int = NO_CENTER  # the number, among the state's own, of the action that it is at intensity 0
    x0: tuple[FloatArray, ...] = ()  # of rows of triplets what they are there


@dataclass
class Draft:
    """States of one step with their actions: entries of its arrays, numbered from the first number that is free."""

    state: int = 0  # the first new state
    pair: int = 0
    edge: int = 0
    row: int = 0
    labels: list[Label] = field(default_factory=list)
    index: dict[Label, int] = field(default_factory=dict)
    actions: list[Label] = field(default_factory=list)
    state_ptr: list[int] = field(default_factory=list)  # where each state's pairs end
    pair_ptr: list[int] = field(default_factory=list)
    row_ptr: list[int] = field(default_factory=list)  # likewise of the cost rows of each pair
    successor: list[int] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    x: list[FloatArray] = field(default_factory=list)
    phi: list[FloatArray] = field(default_factory=list)
    center: list[int] = field(default_factory=list)  # of pairs that are rays (spec 9), NO_CENTER of others
    x0: list[FloatArray] = field(default_factory=list)  # and of rows of triplets what they are at intensity 0
    forbidden: list[bool] = field(default_factory=list)
    has_cost: list[bool] = field(default_factory=list)  # of the last step
    leads: dict[int, int] = field(default_factory=dict)  # edges that were there before → their successors

    @property
    def pairs(self) -> int:
        return self.pair + len(self.reward)

    @property
    def edges(self) -> int:
        return self.edge + len(self.successor)

    def add(
        self, label: Label, actions: list[Label], pairs: list[Drafted], forbidden: bool, number: Callable[[Label], int]
    ) -> None:
        """A state with its actions; ``number`` gives the number of a successor in the next step."""
        self._name(label, forbidden)
        first = self.pairs
        self.actions += actions
        for pair in pairs:
            self.reward.append(pair.reward)
            self.successor += map(number, pair.after)
            self.x += pair.x
            self.x0 += pair.x0 or pair.x
            self.phi += pair.phi
            self.center.append(NO_CENTER if pair.center == NO_CENTER else first + pair.center)
            self.pair_ptr.append(self.edges)
            self.row_ptr.append(self.row + len(self.x))
        self.state_ptr.append(self.pairs)

    def add_last(self, label: Label, reward: float, x: FloatArray | None, forbidden: bool, cost_dim: int) -> None:
        """A state of the last step; without cost features it has no cost there."""
        self._name(label, forbidden)
        self.reward.append(reward)
        self.has_cost.append(x is not None)
        self.x.append(np.zeros(cost_dim) if x is None else x)

    def _name(self, label: Label, forbidden: bool) -> None:
        self.index[label] = self.state + len(self.labels)
        self.labels.append(label)
        self.forbidden.append(forbidden)
