"""One regression in its own directions, from which bounds are computed, and how rows are seen in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.blocks import Blocks, BlockShape, SameSize
from surefoot.estimate.update import Frames
from surefoot.model.arrays import FloatArray, IntArray

NO_DATA = -1  #: in place of where a block's numbers begin


@dataclass(frozen=True, eq=False)
class Turned:
    """One regression in the eigenbasis of its data: the directions of blocks with data, then one for all other blocks,
    if there are several."""

    eigenvalues: FloatArray  # (directions,)  e, that of blocks without data 0
    basis: Basis  # U
    targets: FloatArray  # (m, directions)  Uᵀb_j, likewise


@dataclass(frozen=True, eq=False)
class Whitened:
    """One regression beside unit·N, in directions in which its noise becomes that of ordinary least squares: with

        A = G/unit + N = CCᵀ        C⁻¹G/unit = V diag(s) Uᵀ        y = VᵀC⁻¹b/unit

    the norm of b − Gγ in (unit·A)⁻¹ is  √unit · ‖y − s∘Uᵀγ‖. In blocks without data s and y are zero.
    """

    values: FloatArray  # (directions,)  s
    basis: Basis  # U
    told: FloatArray  # (m, directions)  y
    lengths: FloatArray  # (m,)  ‖b_j‖
    unit: float
    least: float  # N ≽ least·I
    growth: float  # log det A − log det N
    size: float  # the trace of G, or of unit·A, whose last digits are lost; ∞ if none are left
    lost: float  # how many times the last digits of a row are lost on its way into this basis
    pulled: Callable[[FloatArray, IntArray], FloatArray]  # rows (v, largest block) of blocks (v,) → VᵀC⁻¹z/unit


def isotropic(data: Turned, ridge: float) -> Whitened:
    """The same with N = I and unit = λ, in the eigenbasis of G: s = q/√(q+1), q = e/λ."""
    q = data.eigenvalues / ridge
    root = np.sqrt(q + 1.0)

    def pulled(rows: FloatArray, block: IntArray) -> FloatArray:
        return data.basis.turned(rows, block) / (ridge * root)

    return Whitened(
        values=q / root,
        basis=data.basis,
        told=data.targets / (ridge * root),
        lengths=np.linalg.norm(data.targets, axis=1),
        unit=ridge,
        least=1.0,
        growth=float(np.log1p(q).sum()),
        size=float(data.eigenvalues.sum()),
        lost=1.0,
        pulled=pulled,
    )


class Lens(NamedTuple):
    """How compiled code sees rows: z = δ∘x − X⁰ᵀρ,  in the basis of one regression."""

    frames: Frames  # one; anchors are zero where there is none
    folded: bool  # True: ``turn`` includes the projection, turn·x = Uᵀz; False: turn·z
    turn: FloatArray  # (d, d)  Uᵀ where all is one block; else empty
    block: NDArray[np.int64]  # (2,)  the regression and its first block
    spot: NDArray[np.int64]  # these three as in Basis
    entry: NDArray[np.int64]
    flat: FloatArray
    shape: BlockShape
    room: int  # the size of the largest block


@dataclass(frozen=True, eq=False)
class Basis:
    """The basis of one regression: one for every block with data; the others need none."""

    blocks: Blocks
    regression: int
    spot: NDArray[np.int64]  # (blocks,)  where a block's eigenvalues begin, NO_DATA without data
    entry: NDArray[np.int64]  # (blocks,)  where its basis begins
    flat: FloatArray  # (Σ size²,)

    @property
    def directions(self) -> int:
        """How many there are: those of blocks with data, and one for all others."""
        with_data = np.flatnonzero(self.spot != NO_DATA) + int(self.blocks.first[self.regression])
        return int(self.blocks.shape.size[with_data].sum()) + (not self.blocks.whole)

    @cached_property
    def lens(self) -> Lens:
        """For rows without an anchor."""
        blocks, r, nothing = self.blocks, self.regression, np.zeros((1, 1, self.blocks.dim))
        # Laid out like all that rows are multiplied by, or the product would be compiled once more.
        turn = self.flat.reshape(blocks.dim, -1).T.copy() if blocks.whole and len(self.flat) else np.empty((0, 0))
        block = np.array([r, blocks.first[r]])
        frames = Frames(nothing, nothing, np.ones((1, blocks.dim)))
        return Lens(frames, True, turn, block, self.spot, self.entry, self.flat, blocks.shape, blocks.largest)

    @cached_property
    def looks(self) -> dict[Any, Lens]:
        """Kept by :func:`surefoot.estimate.costs.look_at`."""
        return {}

    def lens_beside(self, anchor: FloatArray, direction: FloatArray) -> Lens:
        """For rows beside one anchor x⁰: Uᵀz = Uᵀx − ρ Uᵀx⁰."""
        turn = self.lens.turn
        if turn.size:
            turn = turn - np.outer(anchor @ turn.T.copy(), direction)
        frames = Frames(anchor[None, None], direction[None, None], self.lens.frames.widths)
        return self.lens._replace(frames=frames, turn=turn)

    def lens_through(self, anchors: FloatArray, directions: FloatArray, width: FloatArray) -> Lens:
        """For scaled rows, or beside several anchors (n, d): z is computed first, because one product would lose digits
        if anchors are nearly dependent."""
        return self.lens._replace(frames=Frames(anchors[None], directions[None], width[None].copy()), folded=False)

    def turn(self, vector: FloatArray) -> FloatArray:
        """Uᵀv of a vector (d,), by direction; for all other blocks, its length."""
        shape, dim = self.blocks.shape, self.blocks.dim
        by_slot = vector[shape.column[self.regression * dim : (self.regression + 1) * dim]]
        parts, left = [], by_slot.copy()
        for run, has, bases in self._bases():
            begin = int(shape.slot[run.first]) - self.regression * dim
            there = slice(begin, begin + run.n * run.size)
            parts.append((by_slot[there].reshape(run.n, 1, run.size)[has] @ bases).reshape(-1))
            left[there].reshape(run.n, run.size)[has] = 0.0
        return np.concatenate(parts if self.blocks.whole else [*parts, [np.linalg.norm(left)]])

    def turned(self, rows: FloatArray, block: IntArray) -> FloatArray:
        """(v, directions) Uᵀz of rows (v, largest block), each inside a block (v,) with data."""
        bases = [each for _, _, each in self._bases()]
        return self.each(rows, block, lambda n, own, at: (own[:, None] @ bases[n][at])[:, 0])

    def each(
        self, rows: FloatArray, block: IntArray, found: Callable[[int, FloatArray, IntArray], FloatArray]
    ) -> FloatArray:
        """(v, directions) what ``found`` computes from rows inside blocks of one size: (number of the stack, rows
        (k, size), the places of their blocks in the stack (k,)) → (k, size)."""
        result = np.zeros((len(rows), self.directions))
        for n, (run, has, _) in enumerate(self._bases()):
            at = np.searchsorted(run.first + has, block)
            own = np.flatnonzero((run.first + has)[np.minimum(at, len(has) - 1)] == block)
            if len(own):
                first = self.spot[block[own] - int(self.blocks.first[self.regression])]
                result[own[:, None], first[:, None] + np.arange(run.size)] = found(n, rows[own, : run.size], at[own])
        return result

    def back(self, vectors: FloatArray, *, squared: bool = False) -> FloatArray:
        """(k, directions) Uw of vectors w, in the order of directions; ``squared``: (U∘U)w, the diagonals of U diag(w)
        Uᵀ. The direction for all other blocks stays as it is."""
        result, at = vectors.copy(), 0
        for run, has, bases in self._bases():
            there = slice(at, at := at + len(has) * run.size)
            own = vectors[:, there].reshape(len(vectors), len(has), run.size)
            turn = bases * bases if squared else bases
            result[:, there] = np.einsum("kbp,bip->kbi", own, turn).reshape(len(vectors), -1)
        return result

    def _bases(self) -> Iterator[tuple[SameSize, IntArray, FloatArray]]:
        """Of each run with data: the blocks that have some, and their U (n, size, size)."""
        first = int(self.blocks.first[self.regression])
        for run in self.blocks.runs[self.regression]:
            own = slice(run.first - first, run.first - first + run.n)
            has = np.flatnonzero(self.spot[own] != NO_DATA)
            if len(has):
                entry = int(self.entry[own][has[0]])
                yield run, has, self.flat[entry : entry + len(has) * run.size**2].reshape(-1, run.size, run.size)
