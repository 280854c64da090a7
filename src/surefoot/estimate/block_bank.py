"""Ridge statistics of sparse features: what ``ridge.py`` keeps, as small matrices along the diagonal.

    G = Σ z zᵀ,   b_j = Σ z y_j,   a triangular factor of λI + G   block by block   (surefoot.estimate.blocks)

A block without data is never looked at: its eigenvalues are zero and its factor √λ I.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.block_rows import BlockState, add_block_row
from surefoot.estimate.blocks import Blocks, Run
from surefoot.estimate.ridge import factored
from surefoot.estimate.rows import has_grown
from surefoot.model.graph import FloatArray, IntArray

NO_DATA = -1


class BlockBank:
    """R ridge regressions with one kind of sparse features."""

    def __init__(self, blocks: Blocks, n_targets: int, ridge: float) -> None:
        self.ridge, self.blocks = ridge, blocks
        shape, n = blocks.shape, len(blocks.runs)
        entries, slots = int(shape.entry[-1]), len(shape.column)
        self.state = BlockState(
            gram=np.zeros(entries),
            gram_low=np.zeros(entries),
            targets=np.zeros((n_targets, slots)),
            targets_low=np.zeros((n_targets, slots)),
            factor=np.zeros(entries),
            log_det=np.zeros(n),
            rows=np.zeros(n, np.int64),
            counts=np.zeros(len(shape.size), np.int64),
            shape=shape,
        )
        for runs in blocks.runs:
            for run in runs:
                self._stack(self.state.factor, run)[:] = np.sqrt(ridge) * np.eye(run.size)

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.state.rows

    def add(self, r: int, b: int, z: FloatArray, y: FloatArray) -> None:
        """Count one row with targets y (m,) in regression r; z is its part in block b, and is destroyed."""
        add_block_row(r, b, self.state, z, y)

    def log_det(self) -> FloatArray:
        """(R,) log det(λI + G), up to its value without data."""
        return self.state.log_det.copy()

    def has_grown(self, planned: FloatArray, threshold: float) -> bool:
        """True when some log det has grown by more than the threshold since it was ``planned`` (R,)."""
        return bool(has_grown(self.state.log_det, planned, threshold))

    def refresh(self) -> None:
        """Compute factors and log dets anew from G: ends the drift of their updates."""
        state = self.state
        for r, runs in enumerate(self.blocks.runs):
            state.log_det[r] = 0.0
            for run in runs:
                has = self._with_data(run)
                if len(has):
                    grams = self._stack(state.gram, run)[has]
                    if run.size == 1:  # nothing to turn
                        factors, growth = np.sqrt(grams + self.ridge), np.log1p(grams / self.ridge)
                    else:
                        factors, growth = factored(grams, self.ridge)
                    self._stack(state.factor, run)[has] = factors
                    state.log_det[r] += float(growth.sum())

    def turned(self, r: int) -> tuple[FloatArray, TurnedBlocks, FloatArray]:
        """(eigenvalues of G, their basis U, Uᵀb_j (m, …)) of the blocks with data, and a zero for all others."""
        state, first = self.state, int(self.blocks.first[r])
        n = int(self.blocks.first[r + 1]) - first
        spot, entry = np.full(n, NO_DATA), np.full(n, NO_DATA)
        eigenvalues, bases, rotated = [], [], []
        spots = entries = 0
        for run in self.blocks.runs[r]:
            has = self._with_data(run)
            if len(has) == 0:
                continue
            size = run.size
            grams = self._stack(state.gram, run)[has]
            values, basis = (grams[..., 0], np.ones_like(grams)) if size == 1 else np.linalg.eigh(grams)
            begin = int(self.blocks.shape.slot[run.first])
            targets = state.targets[:, begin : begin + run.n * size].reshape(-1, run.n, size)[:, has]
            eigenvalues.append(values.reshape(-1))
            bases.append(basis.reshape(-1))
            rotated.append((targets[:, :, None, :] @ basis).reshape(len(targets), -1))
            spot[run.first - first + has] = spots + np.arange(len(has)) * size
            entry[run.first - first + has] = entries + np.arange(len(has)) * size * size
            spots, entries = spots + len(has) * size, entries + len(has) * size * size
        basis_of = TurnedBlocks(self.blocks, r, spot, entry, np.concatenate([np.empty(0), *bases]))
        nothing = np.zeros((len(state.targets), 1))
        return (
            np.maximum(np.concatenate([*eigenvalues, [0.0]]), 0.0),
            basis_of,
            np.concatenate([*rotated, nothing], axis=1),
        )

    def arrays(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Everything that a checkpoint must keep."""
        return {name: getattr(self.state, name) for name in BlockState._fields if name != "shape"}

    def _with_data(self, run: Run) -> IntArray:
        """Which blocks of a run, counted from its first, have seen a row."""
        return np.flatnonzero(self.state.counts[run.first : run.first + run.n])

    def _stack(self, flat: FloatArray, run: Run) -> FloatArray:
        """(n, size, size) the matrices of a run, in place."""
        begin, end = self.blocks.shape.entry[[run.first, run.first + run.n]]
        return flat[begin:end].reshape(run.n, run.size, run.size)


@dataclass(frozen=True, eq=False)
class TurnedBlocks:
    """The eigenbasis of one regression: that of every block with data; the others need none."""

    blocks: Blocks
    regression: int
    spot: NDArray[np.int64]  # (blocks,)  where a block's eigenvalues begin, NO_DATA without data
    entry: NDArray[np.int64]  # (blocks,)  where its basis begins
    basis: FloatArray  # (Σ size²,)

    def turn(self, vector: FloatArray) -> FloatArray:
        """Uᵀv of a vector (d,): its parts in the blocks with data, and last the length of all the rest."""
        shape, first = self.blocks.shape, int(self.blocks.first[self.regression])
        dim = self.blocks.dim
        by_slot = vector[shape.column[self.regression * dim : (self.regression + 1) * dim]]
        parts, left = [], by_slot.copy()
        for run in self.blocks.runs[self.regression]:
            own = slice(run.first - first, run.first - first + run.n)
            has = np.flatnonzero(self.spot[own] != NO_DATA)
            if len(has) == 0:
                continue
            begin = int(shape.slot[run.first]) - self.regression * dim
            there = slice(begin, begin + run.n * run.size)
            entry = int(self.entry[own][has[0]])
            bases = self.basis[entry : entry + len(has) * run.size**2].reshape(-1, run.size, run.size)
            parts.append((by_slot[there].reshape(run.n, 1, run.size)[has] @ bases).reshape(-1))
            left[there].reshape(run.n, run.size)[has] = 0.0
        return np.concatenate([*parts, [np.linalg.norm(left)]])
