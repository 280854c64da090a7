"""Compiled: one observation enters a regression whose Gram matrix is made of blocks; the twin of ``rows.py``."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.blocks import BlockShape
from surefoot.estimate.rows import FAR
from surefoot.model.graph import FloatArray, IntArray
from surefoot.model.sparse_rows import RowParts

NOWHERE = -1  #: the block of a row that is all zeros


class BlockState(NamedTuple):
    """What :func:`add_block_row` changes, flat: block after block, and where the blocks lie."""

    gram: FloatArray  # (Σ size²,)  Σ z zᵀ, its rounding error in gram_low
    gram_low: FloatArray
    targets: FloatArray  # (m, R·d)  Σ z y_j by slot, likewise
    targets_low: FloatArray
    factor: FloatArray  # (Σ size²,)  lower, factor·factorᵀ = λI + G
    log_det: FloatArray  # (R,)  log det(λI + G) − d log λ
    rows: NDArray[np.int64]  # (R,)  observations
    counts: NDArray[np.int64]  # (B,)  those that have a part in the block
    shape: BlockShape


@numba.njit(cache=True)
def cost_row(
    x: RowParts,
    e: int,
    r: int,
    anchor: FloatArray,  # (dc,)  x⁰, zero without an anchor
    direction: FloatArray,  # (dc,)  x⁰/‖x⁰‖²
    shape: BlockShape,
    z: FloatArray,  # (largest block,)
) -> tuple[float, int]:
    """(ρ, block) of row e; writes z = x − ρ x⁰ inside the block (spec 3)."""
    first, end = x.indptr[e], x.indptr[e + 1]
    if first == end:
        return 0.0, NOWHERE
    rho = 0.0
    for k in range(first, end):
        rho += x.values[k] * direction[x.columns[k]]
    b = shape.block[r, x.columns[first]]
    size, slot = shape.size[b], shape.slot[b]
    z[:size] = 0.0
    for k in range(first, end):
        z[shape.place[r, x.columns[k]]] = x.values[k]
    if rho != 0.0:  # then x has a column of x⁰, whose columns are all in this block
        for i in range(size):
            z[i] -= rho * anchor[shape.column[slot + i]]
    return rho, b


@numba.njit(cache=True)
def block_value_row(
    features: RowParts,
    row: int,  # where the layer's rows begin
    successor: IntArray,
    begin: int,  # where its successors begin
    first: int,
    end: int,
    value: FloatArray,
    offset: int,
    r: int,
    shape: BlockShape,
    phi_v: FloatArray,  # (largest block,)
) -> int:
    """The block of φ_V = Σ_{s'} φ(s,a,s') V(s') over edges first … end-1; writes it there (spec 6)."""
    b = NOWHERE
    for edge in range(first, end):
        v = value[offset + successor[begin + edge]]
        for k in range(features.indptr[row + edge], features.indptr[row + edge + 1]):
            if b == NOWHERE:
                b = shape.block[r, features.columns[k]]
                phi_v[: shape.size[b]] = 0.0
            phi_v[shape.place[r, features.columns[k]]] += v * features.values[k]
    return b


@numba.njit(cache=True)
def add_block_row(
    r: int,
    b: int,
    state: BlockState,
    z: FloatArray,  # (largest block,)  destroyed
    y: FloatArray,  # (m,)
) -> None:
    """Regression r, block b: the update of :func:`surefoot.estimate.rows.add_row` on one small matrix."""
    state.rows[r] += 1
    if b == NOWHERE:
        return
    state.counts[b] += 1
    d, slot, entry = state.shape.size[b], state.shape.slot[b], state.shape.entry[b]
    for i in range(d):
        for k in range(i + 1):
            at, mirror = entry + i * d + k, entry + k * d + i
            term = z[i] * z[k] + state.gram_low[at]
            old = state.gram[at]
            new = old + term
            back = new - old
            low = (old - (new - back)) + (term - back)
            state.gram[at] = new
            state.gram_low[at] = low
            state.gram[mirror] = new
            state.gram_low[mirror] = low
    for j in range(y.shape[0]):
        for i in range(d):
            term = y[j] * z[i] + state.targets_low[j, slot + i]
            old = state.targets[j, slot + i]
            new = old + term
            back = new - old
            state.targets_low[j, slot + i] = (old - (new - back)) + (term - back)
            state.targets[j, slot + i] = new
    growth = 1.0
    for i in range(d):
        if z[i] == 0.0:
            continue
        old = state.factor[entry + i * d + i]
        new = math.sqrt(old * old + z[i] * z[i])
        cosine, sine = old / new, z[i] / new
        state.factor[entry + i * d + i] = new
        growth *= (new / old) * (new / old)
        if growth > FAR:
            state.log_det[r] += math.log(growth)
            growth = 1.0
        for k in range(i + 1, d):
            at = entry + k * d + i
            below = state.factor[at]
            state.factor[at] = cosine * below + sine * z[k]
            z[k] = cosine * z[k] - sine * below
    state.log_det[r] += math.log(growth)
