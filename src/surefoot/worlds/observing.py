"""What a learner sees of a state: its number, a one-hot vector, or its coordinates.

``"index"``     MultiDiscrete (H, n): the step, and the state's number among the names of all states, which is the same
                at every step.
``"onehot"``    Box {0, 1}, (H + n,): the same two numbers, each as a one-hot vector.
``"features"``  Box [0, 1], (1 + d,): the step as a fraction of the horizon, then the coordinates of the state.

Coordinates come from the names of states. A number, or a tuple of numbers (gap, own speed, speed in front), gives one
coordinate per number, scaled so that the smallest becomes 0 and the largest 1. A part that is not a number gives one
coordinate per value, which is 1 for this value and 0 otherwise. A state whose name is of an unusual form (``"over"``
among cells of a grid) has its own coordinate, and 0 in all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from surefoot.checks import one_of
from surefoot.model.labels import Label
from surefoot.model.problem import Problem

KINDS = ("index", "onehot", "features")

Observation = NDArray[Any]
Space = gymnasium.spaces.Space[Any]


class Observer:
    """The observation of every step and state of a problem, in one of three forms."""

    def __init__(self, problem: Problem, kind: str) -> None:
        self.kind = one_of("observation", KINDS, kind)
        self._horizon = problem.horizon
        numbers: dict[Label, int] = {}
        for names in problem.naming.states:
            for label in names[:]:
                numbers.setdefault(label, len(numbers))
        self._numbers = [np.array([numbers[label] for label in names[:]]) for names in problem.naming.states]
        self._n = len(numbers)
        self._table = coordinates(tuple(numbers)) if kind == "features" else None

    @property
    def space(self) -> Space:
        """Gymnasium's description of what :meth:`see` returns."""
        if self._table is not None:
            return gymnasium.spaces.Box(0.0, 1.0, (1 + self._table.shape[1],), np.float32)
        if self.kind == "onehot":
            return gymnasium.spaces.Box(0.0, 1.0, (self._horizon + self._n,), np.float32)
        return gymnasium.spaces.MultiDiscrete([self._horizon, self._n])

    def see(self, h: int, state: int) -> Observation:
        """The observation of a state of step h, by index."""
        number = self._numbers[h][state]
        if self._table is not None:
            seen = np.empty(1 + self._table.shape[1], np.float32)
            seen[0], seen[1:] = h / (self._horizon - 1), self._table[number]
            return seen
        if self.kind == "onehot":
            seen = np.zeros(self._horizon + self._n, np.float32)
            seen[h] = seen[self._horizon + number] = 1.0
            return seen
        return np.array([h, number], dtype=np.int64)


def coordinates(labels: Sequence[Label]) -> NDArray[np.float32]:
    """(n, d) in [0, 1]: the coordinates of states, from their names."""
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    forms = [tuple(map(_is_number, part)) for part in parts]
    usual = Counter(forms).most_common(1)[0][0]
    inside = [i for i, form in enumerate(forms) if form == usual]
    odd = [i for i, form in enumerate(forms) if form != usual]
    columns: list[tuple[list[int], Any]] = []  # the states that have a coordinate, and its values there
    for at, numeric in enumerate(usual):
        values = [parts[i][at] for i in inside]
        if numeric:
            numbers = np.array(values, np.float64)
            columns.append((inside, (numbers - numbers.min()) / (np.ptp(numbers) or 1.0)))
        else:
            columns += [(inside, [each == value for each in values]) for value in dict.fromkeys(values)]
    columns += [([i], 1.0) for i in odd]
    table = np.zeros((len(labels), len(columns)), np.float32)
    for column, (rows, values) in enumerate(columns):
        table[rows, column] = values
    return table


def _is_number(part: Label) -> bool:
    return isinstance(part, (int, float)) and not isinstance(part, bool)
