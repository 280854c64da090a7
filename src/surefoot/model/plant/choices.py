"""The inputs that a learner on a plant chooses from in a cell: those of the grid, and some along its rays (spec 9)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.plant.cells import Inputs
from surefoot.model.rays import FULL

ALONG = 8  #: a ray is divided into so many parts, and the inputs between them are tried


@dataclass(frozen=True, eq=False)
class Choices:
    """Inputs, each with an input of the grid and the intensity along the ray that ends there."""

    number: IntArray  # (C,)
    intensity: FloatArray  # (C,)
    inputs: tuple[Any, ...]  # C

    def __len__(self) -> int:
        return len(self.inputs)

    def __add__(self, more: Choices) -> Choices:
        number = np.concatenate([self.number, more.number])
        return Choices(number, np.concatenate([self.intensity, more.intensity]), self.inputs + more.inputs)


def chosen_along(inputs: Inputs, centre: int, number: IntArray, intensity: FloatArray) -> Choices:
    """The inputs at these intensities along the rays from a centre to inputs of the grid."""
    each = zip(number.tolist(), intensity.tolist(), strict=True)
    return Choices(number, intensity, tuple(inputs.between(centre, i, at) for i, at in each))


def choices_of(inputs: Inputs, centre: int | None) -> Choices:
    """All inputs of the grid, in order; with a centre, also inputs between it and each of the others."""
    number = np.arange(len(inputs))
    plain = Choices(number, np.full(len(inputs), FULL), inputs.values)
    if centre is None:
        return plain
    rays, at = number[number != centre], np.arange(1, ALONG) / ALONG
    return plain + chosen_along(inputs, centre, np.repeat(rays, len(at)), np.tile(at, len(rays)))


class Chooser(ABC):
    """The part of a plant that says which inputs may be chosen."""

    inputs: Inputs
    rays: bool
    _choices: dict[int | None, Choices]

    @abstractmethod
    def cell(self, x: Any) -> int:
        """The number of the cell that a state is in."""

    @abstractmethod
    def fallback_in(self, h: int, cell: int) -> int:
        """The number of the input that the fallback takes in a cell."""

    def centre(self, h: int, cell: int) -> int | None:
        """The input from which the rays of a cell begin; None without rays."""
        return self.fallback_in(h, cell) if self.rays else None

    def centres(self, h: int, cells: IntArray) -> Iterator[tuple[int | None, IntArray]]:
        """Each centre that these cells have at a step, and which cells have it."""
        if not self.rays:
            yield None, np.arange(len(cells))
            return
        own = np.array([self.fallback_in(h, cell) for cell in cells.tolist()])
        for centre in np.unique(own).tolist():
            yield centre, np.flatnonzero(own == centre)

    @property
    def n_choices(self) -> int:
        """How many inputs are tried in every cell."""
        return len(self.choices(0 if self.rays else None))

    def choices(self, centre: int | None) -> Choices:
        """The inputs that are tried in a cell with this centre: those of the grid first, in order."""
        if centre not in self._choices:
            self._choices[centre] = choices_of(self.inputs, centre)
        return self._choices[centre]

    def placed(self, h: int, x: Any, u: Any) -> tuple[int, float]:
        """(number, intensity) of an input at a state; without rays it must be on the grid, and the intensity is 1."""
        centre = self.centre(h, self.cell(x))
        return (self.inputs.index(u), 1.0) if centre is None else self.inputs.along(centre, u)
