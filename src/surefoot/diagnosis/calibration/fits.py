"""Least squares on a log, accurate enough for the tests to have the distributions they claim for Gaussian noise.

A design is an orthonormal basis Q of the possible means: with n rows and rank r, the residual e = y − QQᵀy has
‖e‖²/σ² ~ χ²(n − r) if y = Qβ + ξ with Gaussian ξ, whatever β is. There are two designs: *linear*, the features of each
regression, and *repeats*, one mean for every logged transition, which assumes nothing about the features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.model.arrays import FloatArray

_NEGLIGIBLE = 1e-9
_MOST_NUMBERS = 20_000_000  # of a basis with the episodes'; of a longer log, the first rows are used


@dataclass(frozen=True, eq=False)
class Design:
    """Blocks of rows, each with an orthonormal basis of its own; together they hold every row once."""

    rows: tuple[NDArray[np.int64], ...]
    bases: tuple[FloatArray, ...]

    @property
    def n(self) -> int:
        return sum(map(len, self.rows))

    @property
    def rank(self) -> int:
        return sum(basis.shape[1] for basis in self.bases)

    @property
    def freedom(self) -> int:
        """Degrees of freedom that are left to the noise."""
        return self.n - self.rank

    def fitted(self, y: FloatArray) -> FloatArray:
        """QQᵀy of one target (n,)."""
        result = np.zeros(len(y))
        for rows, basis in zip(self.rows, self.bases, strict=True):
            result[rows] = basis @ (basis.T @ y[rows])
        return result

    def leverage(self) -> FloatArray:
        """(n,) the diagonal of QQᵀ."""
        result = np.zeros(self.n)
        for rows, basis in zip(self.rows, self.bases, strict=True):
            result[rows] = np.einsum("ij,ij->i", basis, basis)
        return result

    def matrix(self) -> FloatArray:
        """Q itself, (n, rank)."""
        result, first = np.zeros((self.n, self.rank)), 0
        for rows, basis in zip(self.rows, self.bases, strict=True):
            result[rows, first : first + basis.shape[1]] = basis
            first += basis.shape[1]
        return result

    def part(self, some: NDArray[np.bool_]) -> Design:
        """The design of some rows only, renumbered."""
        number = np.cumsum(some) - 1
        rows, bases = [], []
        for own, basis in zip(self.rows, self.bases, strict=True):
            kept = some[own]
            if kept.any():
                rows.append(number[own[kept]])
                some_rows = basis[kept]
                bases.append(some_rows / np.linalg.norm(some_rows) if basis.shape[1] == 1 else orthonormal(some_rows))
        return Design(tuple(rows), tuple(bases))


def linear(features: FloatArray, regression: NDArray[np.int64]) -> Design:
    """One block for each regression; ``regression`` (n,) says of which a row is."""
    rows = [np.flatnonzero(regression == r) for r in np.unique(regression)]
    return Design(tuple(rows), tuple(orthonormal(features[own]) for own in rows))


def repeats(triplet: NDArray[np.int64]) -> Design:
    """One mean for every transition."""
    order = np.argsort(triplet, kind="stable")
    rows = np.split(order, np.flatnonzero(np.diff(triplet[order])) + 1) if len(order) else []
    return Design(tuple(rows), tuple(np.full((len(own), 1), len(own) ** -0.5) for own in rows))


def orthonormal(x: FloatArray) -> FloatArray:
    """(n, rank) a basis of the columns of x (n, d)."""
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    return left[:, values > _NEGLIGIBLE * max(float(values.max(initial=0.0)), 1e-300)]


def squares(e: FloatArray) -> float:
    return float(e @ e)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a design leaves of the readings."""

    residual: FloatArray  # (n,)
    room: FloatArray  # (n,)  1 − leverage
    freedom: int

    @property
    def squares(self) -> float:
        return squares(self.residual)


def fit(design: Design, y: FloatArray) -> Fit:
    return Fit(y - design.fitted(y), 1.0 - design.leverage(), design.freedom)


def fit_beside(design: Design, y: FloatArray, episode: NDArray[np.int64]) -> Fit:
    """The same with an offset for every episode, fitted along with the design, so that only differences within an
    episode matter."""
    code = np.unique(episode, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(code)
    basis = orthonormal(within(design.matrix(), code)) if design.rank else np.empty((len(y), 0))
    centred = within(y[:, None], code)[:, 0]
    leverage = 1.0 / counts[code] + np.einsum("ij,ij->i", basis, basis)
    left = centred - basis @ (basis.T @ centred)
    return Fit(left, 1.0 - leverage, len(y) - len(counts) - basis.shape[1])


def within(table: FloatArray, code: NDArray[np.int64]) -> FloatArray:
    """Rows (n, d) less the mean of their episode; ``code``: 0, 1, …"""
    counts = np.bincount(code)
    sums = np.stack([np.bincount(code, column, len(counts)) for column in table.T], axis=1)
    result: FloatArray = table - (sums / counts[:, None])[code]
    return result


@dataclass(frozen=True)
class Between:
    """What an offset for every episode adds to a design."""

    explained: float  # sum of squares
    gained: int  # degrees of freedom
    left: float  # sum of squares that remains
    freedom: int
    load: float  # what one unit of the offset's variance adds to ``explained`` on average
    rows: int  # that were looked at
    most: int  # rows of one episode


def between_episodes(design: Design, y: FloatArray, episode: NDArray[np.int64]) -> Between | None:
    """An offset for every episode in addition to the design; None if no episode has rows to compare."""
    kept = first_rows(design, episode)
    if not kept.all():
        design, y, episode = design.part(kept), y[kept], episode[kept]
    code = np.unique(episode, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(code)
    beside = fit_beside(design, y, episode)
    gained = design.freedom - beside.freedom
    if gained <= 0 or beside.freedom <= 0:
        return None
    sums = [np.bincount(code, column, len(counts)) for column in design.matrix().T]
    load = float(counts.sum()) - math.fsum(float(each @ each) for each in sums)
    explained = max(0.0, squares(y - design.fitted(y)) - beside.squares)
    return Between(explained, gained, beside.squares, beside.freedom, load, len(y), int(counts.max()))


def first_rows(design: Design, episode: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,) the rows of the first episodes: as many as there is room for beside the design."""
    most = max(2, _MOST_NUMBERS // max(1, design.rank))
    return np.ones(len(episode), bool) if len(episode) <= most else episode <= episode[most - 1]
