"""Compiled: how much playing a cost row would narrow the bounds of others (spec 5, directed exploration).

With A = λI + G of the regression of both, one more row x removes from the squared width zᵀA⁻¹z of a target z

    (xᵀA⁻¹z)² / ((1 + xᵀA⁻¹x) · zᵀA⁻¹z)        of it, a share between 0 and u/(1+u), u = xᵀA⁻¹x

(Sherman–Morrison, Cauchy–Schwarz). The score of x is the mean over the targets: all of them are in the way. Dense rows
are computed as their bounds are (surefoot.estimate.kernels); a sparse row tells only about targets in its own block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefoot.estimate.basis import NO_DATA, Lens, Turned
from surefoot.estimate.costs import look_at
from surefoot.estimate.families import Family
from surefoot.estimate.kernels import LANES, room_to_see, see_dense
from surefoot.estimate.tables import Rows, rows_of
from surefoot.estimate.update import NOWHERE, cost_row
from surefoot.jit import compiled, leaf, unlocked
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.model.graph import Anchors
from surefoot.threads import in_ranges

WORTH_THREADS = 1 << 20  # products: with fewer, the work is done before a second thread is awake


class Aims(NamedTuple):
    """Targets of one regression, each inside its own block; dense features are one block."""

    turned: FloatArray  # (T, largest block)  A⁻¹z/√(zᵀA⁻¹z) in the eigenbasis; 0 for a row without features
    block: IntArray  # (T,)


@compiled
def _inside(x: Rows, row: int, look: Lens, weights: FloatArray, z: FloatArray, w: FloatArray, a: FloatArray) -> int:
    """Writes Uᵀz into w and A⁻¹z into a, both in the eigenbasis of the row's block, 0 beyond it; → the block."""
    frames, shape = look.frames, look.shape
    b = cost_row(x, row, look.block[0], 0, frames, shape, z, np.empty(frames.anchors.shape[1]))
    w[:] = 0.0
    a[:] = 0.0
    if b == NOWHERE:
        return b
    at = b - look.block[1]
    size, spot = shape.size[b], look.spot[at]
    if spot == NO_DATA:  # A = λI there
        for p in range(size):
            w[p] = z[p]
            a[p] = z[p] * weights[weights.shape[0] - 1]
        return b
    basis = look.flat[look.entry[at] :]
    for n in range(size):
        if z[n] != 0.0:
            for p in range(size):
                w[p] += basis[n * size + p] * z[n]
    for p in range(size):
        a[p] = w[p] * weights[spot + p]
    return b


@compiled
def _aim(x: Rows, rows: IntArray, look: Lens, weights: FloatArray, aims: Aims) -> None:
    z, w = np.empty(look.room), np.empty(look.room)
    for t in range(rows.shape[0]):
        aims.block[t] = _inside(x, rows[t], look, weights, z, w, aims.turned[t])
        length = (w * aims.turned[t]).sum()
        aims.turned[t] *= 1.0 / np.sqrt(length) if length > 0.0 else 0.0


@leaf
def _sum(told: FloatArray, u: FloatArray, score: FloatArray, which: IntArray, square: FloatArray) -> None:
    """The sum over targets and the one narrowed most, of some rows; told: xᵀA⁻¹z/√(zᵀA⁻¹z) of each (T, …)."""
    for i in range(min(score.shape[0], u.shape[0])):
        total, most, aim = 0.0, 0.0, -1
        for t in range(told.shape[0]):
            share = told[t, i] * told[t, i]
            if share > 0.0:  # never a NaN
                total += share
            if share > most:
                most, aim = share, t
        score[i], which[i], square[i] = total / (1.0 + u[i]), aim, u[i]


@unlocked
def _score(
    x: Rows,
    rows: IntArray,  # rising
    look: Lens,
    weights: FloatArray,  # (…,)  1/(e + λ)
    aims: Aims,
    score: FloatArray,  # (rows,)  written, as the two below
    which: IntArray,  # the target that it narrows most
    square: FloatArray,  # u
) -> None:
    n = rows.shape[0]
    if x.indptr.size == 0:
        seen = room_to_see(look, 1, aims.block.shape[0])
        for first in range(0, n, LANES):
            own = rows[first : min(n, first + LANES)]
            see_dense(x, own, look, weights.reshape(1, -1), aims.turned, seen)
            _sum(seen.told, seen.u[0], score[first:], which[first:], square[first:])
    else:
        z, w, a = np.empty(look.room), np.empty(look.room), np.empty(look.room)
        told = np.empty((aims.block.shape[0], 1))
        for i in range(n):
            b = _inside(x, rows[i], look, weights, z, w, a)
            for t in range(told.shape[0]):
                told[t, 0] = (w * aims.turned[t]).sum() if aims.block[t] == b else 0.0
            _sum(told, np.array([(w * a).sum()]), score[i : i + 1], which[i : i + 1], square[i : i + 1])


class Sight(NamedTuple):
    """A regression of some family, and how it sees the rows of one step."""

    data: Turned
    family: Family
    anchors: Anchors | None  # of the step
    ridge: float  # λ, of the family

    @property
    def look(self) -> Lens:
        return look_at(self.data.basis, self.family.known(self.anchors), self.family)

    @property
    def weights(self) -> FloatArray:
        """(…,) 1/(e + λ)"""
        return 1.0 / (self.data.eigenvalues + self.ridge)


def aims_at(x: Features, rows: IntArray, sight: Sight) -> Aims:
    """Rows of a table of cost features, as targets."""
    look = sight.look
    aims = Aims(np.zeros((len(rows), look.room)), np.empty(len(rows), np.int64))
    _aim(rows_of(x), rows, look, sight.weights, aims)
    return aims


def joined(parts: list[Aims], data: Turned) -> Aims:
    """All targets of one regression."""
    none = Aims(np.zeros((0, data.basis.blocks.largest)), np.empty(0, np.int64))
    return Aims(*(np.concatenate(field) for field in zip(none, *parts, strict=True)))


def scores(x: Features, rows: IntArray, sight: Sight, aims: Aims) -> tuple[FloatArray, IntArray, FloatArray]:
    """(sum over the targets, the one that it narrows most or -1, u) of some rows of a table (rising), each (rows,)."""
    score, which, square = np.empty(len(rows)), np.empty(len(rows), np.int8), np.empty(len(rows))
    look, weights, table = sight.look, sight.weights, rows_of(x)
    many = len(rows) * look.room * (len(aims.block) + look.room) >= WORTH_THREADS

    def some(first: int, end: int) -> None:
        written = score[first:end], which[first:end], square[first:end]
        _score(table, rows[first:end], look, weights, aims, *written)

    in_ranges(len(rows), many, some)
    return score, which, square
