"""Compiled: enter one observation into a regression, for the step-by-step path and the compiled roll-out alike."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate.blocks import Blocks, BlockShape
from surefoot.estimate.tables import Rows, number, rows_of
from surefoot.jit import compiled, leaf
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.sparse_rows import SparseRows

NOWHERE = -1  #: the block of a row that is all zeros
FAR = 1e100  #: a product that grows beyond this is replaced by its logarithm before it overflows
GRAM, GRAM_LOW, FACTOR = range(3)


class BankState(NamedTuple):
    """The statistics of R regressions with m targets, flat: block after block (surefoot.estimate.blocks)."""

    squares: FloatArray  # (3, Σ size²)  Σ z zᵀ, its rounding error, a factor of λI + Σ z zᵀ: lower triangles
    targets: FloatArray  # (2, m, R·d)  Σ z y_j by slot, and its rounding error
    log_det: FloatArray  # (R,)  log det(λI + G) − d log λ
    rows: NDArray[np.int64]  # (R,)  observations
    counts: NDArray[np.int64]  # (B,)  observations in the block


class Frames(NamedTuple):
    """How rows become z = δ∘x − X⁰ᵀρ: per step and family, n anchors at most (surefoot.estimate.families)."""

    anchors: FloatArray  # (…, n, dc)  δ∘x⁰, zero where there is no such anchor
    directions: FloatArray  # (…, n, dc)  ρ = directions·x
    widths: FloatArray  # (…, dc)  δ


@leaf
def cost_row(
    x: Rows,
    e: int,
    r: int,
    at: int,  # the frame
    frames: Frames,
    shape: BlockShape,
    z: FloatArray,  # (largest block,)
    rho: FloatArray,  # (n,)
) -> int:
    """The block of row e; writes its ρ, and z = δ∘x − X⁰ᵀρ inside the block (spec 3)."""
    anchors, directions, widths = frames
    rho[:] = 0.0
    if x.indptr.size == 0:  # all columns are one block, in order
        for a in range(rho.shape[0]):
            for i in range(z.shape[0]):
                rho[a] += number(x, e, i) * directions[at, a, i]
        for i in range(z.shape[0]):
            z[i] = number(x, e, i) * widths[at, i]
        for a in range(rho.shape[0]):
            for i in range(z.shape[0]):
                z[i] -= rho[a] * anchors[at, a, i]
        return r
    first, end = x.indptr[e], x.indptr[e + 1]
    if first == end:
        return NOWHERE
    b: int = shape.block[r, x.columns[first]]
    size, slot = shape.size[b], shape.slot[b]
    z[:size] = 0.0
    for k in range(first, end):
        z[shape.place[r, x.columns[k]]] = x.values[k, 0] * widths[at, x.columns[k]]
    for a in range(rho.shape[0]):
        for k in range(first, end):
            rho[a] += x.values[k, 0] * directions[at, a, x.columns[k]]
        if rho[a] != 0.0:  # then x has a column of an anchor; the columns of all anchors are in this block
            for i in range(size):
                z[i] -= rho[a] * anchors[at, a, shape.column[slot + i]]
    return b


@leaf
def along(x: Rows, e: int, vector: FloatArray, j: int) -> float:
    """⟨vector[j], x⟩ of row e."""
    total = 0.0
    if x.indptr.size == 0:
        for i in range(vector.shape[1]):
            total += number(x, e, i) * vector[j, i]
        return total
    for k in range(x.indptr[e], x.indptr[e + 1]):
        total += x.values[k, 0] * vector[j, x.columns[k]]
    return total


@leaf
def value_row(
    features: Rows,
    at: int,  # where the step's rows begin in the table
    following: IntArray,  # next states by edge, from ``begin`` on
    begin: int,
    first: int,
    end: int,
    value: FloatArray,  # of the next states, from ``offset`` on
    offset: int,
    r: int,
    shape: BlockShape,
    phi_v: FloatArray,  # (largest block,)
) -> int:
    """The block of φ_V = Σ_{s'} φ(s,a,s') V(s') over the step's edges first … end-1; writes it there (spec 6)."""
    if features.indptr.size == 0:
        phi_v[:] = 0.0
        for edge in range(first, end):
            v = value[offset + following[begin + edge]]
            for i in range(phi_v.shape[0]):
                phi_v[i] += v * number(features, at + edge, i)
        return r
    b = NOWHERE
    for edge in range(first, end):
        v = value[offset + following[begin + edge]]
        for k in range(features.indptr[at + edge], features.indptr[at + edge + 1]):
            if b == NOWHERE:
                b = shape.block[r, features.columns[k]]
                phi_v[: shape.size[b]] = 0.0
            phi_v[shape.place[r, features.columns[k]]] += v * features.values[k, 0]
    return b


@leaf
def add_row(r: int, b: int, bank: BankState, shape: BlockShape, z: FloatArray, y: FloatArray) -> None:
    """Regression r, block b: G += z zᵀ, b_j += y_j z (compensated), and the factor with its log det; in place. z, room
    of (largest block,), is destroyed; y (m,).

    The compensation is Knuth's two-sum: the low part collects what rounding takes from the sum and is added back each
    time, so that together they are the exact sum to about two roundings, whatever the number of rows.
    """
    squares, targets, log_det, rows, counts = bank
    rows[r] += 1
    if b == NOWHERE:
        return
    counts[b] += 1
    d, slot, entry = shape.size[b], shape.slot[b], shape.entry[b]
    for i in range(d):
        for k in range(i + 1):
            at = entry + i * d + k
            term = z[i] * z[k] + squares[GRAM_LOW, at]
            old = squares[GRAM, at]
            new = old + term
            back = new - old
            squares[GRAM_LOW, at] = (old - (new - back)) + (term - back)
            squares[GRAM, at] = new
    for j in range(y.shape[0]):
        for i in range(slot, slot + d):
            term = y[j] * z[i - slot] + targets[1, j, i]
            old = targets[0, j, i]
            new = old + term
            back = new - old
            targets[1, j, i] = (old - (new - back)) + (term - back)
            targets[0, j, i] = new
    # Rank-one update of a triangular factor by plane rotations: O(d²), and positive definite by construction.
    growth = 1.0  # of the determinant
    for i in range(d):
        if z[i] == 0.0:
            continue
        old = squares[FACTOR, entry + i * d + i]
        new = math.sqrt(old * old + z[i] * z[i])
        cosine, sine = old / new, z[i] / new
        squares[FACTOR, entry + i * d + i] = new
        growth *= (new / old) * (new / old)
        if growth > FAR:
            log_det[r] += math.log(growth)
            growth = 1.0
        for k in range(i + 1, d):
            at = entry + k * d + i
            below = squares[FACTOR, at]
            squares[FACTOR, at] = cosine * below + sine * z[k]
            z[k] = cosine * z[k] - sine * below
    log_det[r] += math.log(growth)


@leaf
def has_grown(log_det: FloatArray, planned: FloatArray, threshold: float) -> bool:
    """Does any log det exceed its value at the last plan by more than the threshold (spec 6)?"""
    for r in range(log_det.shape[0]):  # noqa: SIM110  (a generator would not compile)
        if log_det[r] - planned[r] > threshold:
            return True
    return False


class Visits(NamedTuple):
    """The first V distinct rows that each of R regressions has seen, and how often (spec 3). Without a declared model
    error V = 0."""

    raw: FloatArray  # (R, V, largest block)  x inside its block
    z: FloatArray  # (R, V, largest block)
    block: NDArray[np.int64]  # (R, V)
    off: FloatArray  # (R, V, 1 + m)  how far its cost may be off: b, t_j
    times: NDArray[np.int64]  # (R, V)  0: free
    rest: FloatArray  # (R, 1 + 2m)  the sums of CostState.spread, of rows that found no room here


class CostState(NamedTuple):
    """The cost regressions of F families, and room to work in; frames and steps are numbered family after family."""

    regression: NDArray[np.int64]  # (F·H,)  that of a step
    families: int  # F
    family: NDArray[np.int64]  # (m,)  that of a limit
    frames: Frames  # the last one leaves rows unchanged
    anchor_costs: FloatArray  # (F·H, n, m)  c⁰ − ⟨m, x⁰⟩
    tolerances: FloatArray  # (F·H, n, m)
    centres: FloatArray  # (m, dc)
    centred: NDArray[np.bool_]  # (m,)  is some entry of the centre not zero?
    spread: FloatArray  # (R, 1 + 2m)  with b = 1 + Σ|ρ| and t_j = Σ|ρ_i| t_ij of a row: Σ b², Σ b t_j, Σ t_j²
    bank: BankState
    shape: BlockShape
    z: FloatArray
    rest: FloatArray  # (m,)
    rho: FloatArray  # (n,)
    visits: Visits
    raw: FloatArray
    off: FloatArray  # (1 + m,)


class ValueState(NamedTuple):
    """The value regressions, and room to work in."""

    regression: NDArray[np.int64]  # (H-1,)
    bank: BankState
    shape: BlockShape
    phi_v: FloatArray
    target: FloatArray  # (1,)


@leaf
def _slot(r: int, b: int, raw: FloatArray, dim: int, seen: FloatArray, block: IntArray, times: IntArray) -> int:
    """The place of an equal row, or the first free place, or V if there is neither."""
    room: int = times.shape[1]
    for v in range(room):
        same = block[r, v] == b
        for i in range(dim):
            if not same:
                break
            same = seen[r, v, i] == raw[i]
        if same or times[r, v] == 0:
            return v
    return room


@leaf
def _spread(sums: FloatArray, r: int, off: FloatArray) -> None:
    """Add a row to the sums of a regression. They do not include ζ, which may grow while data are kept."""
    m = off.shape[0] - 1
    sums[r, 0] += off[0] * off[0]
    for j in range(1, 1 + m):
        sums[r, j] += off[0] * off[j]
        sums[r, m + j] += off[j] * off[j]


@leaf
def _visit(r: int, b: int, dim: int, raw: FloatArray, z: FloatArray, off: FloatArray, visits: Visits) -> None:
    """Count a row, dim numbers in its block, among the rows seen, unless it is zero."""
    seen, seen_z, block, seen_off, times, rest = visits
    some = False
    for i in range(dim):
        some |= raw[i] != 0.0
    if not some:
        return
    v = _slot(r, b, raw, dim, seen, block, times)
    if v == times.shape[1]:
        _spread(rest, r, off)
        return
    if times[r, v] == 0:
        block[r, v] = b
        for i in range(dim):
            seen[r, v, i], seen_z[r, v, i] = raw[i], z[i]
        for j in range(off.shape[0]):
            seen_off[r, v, j] = off[j]
    times[r, v] += 1


@leaf
def count_cost(x: Rows, e: int, cost: FloatArray, h: int, state: CostState) -> None:
    """Count the measured cost (m,) of row e of a table of features, seen at step h (spec 3)."""
    regression, families, family, frames, known, tolerances = state[:6]
    centres, centred, spread, bank, shape, z, rest, rho = state[6:14]
    visits, raw, off = state[14:]
    steps = regression.shape[0] // families
    for f in range(families):
        at = f * steps + h
        r = regression[at]
        if visits.times.shape[1] > 0:
            cost_row(x, e, r, regression.shape[0], frames, shape, raw, rho)
        b = cost_row(x, e, r, at, frames, shape, z, rho)
        off[0] = 1.0
        for a in range(rho.shape[0]):
            off[0] += abs(rho[a])
        for j in range(rest.shape[0]):
            rest[j], off[1 + j] = 0.0, 0.0
            if family[j] != f:  # its targets belong to another family
                continue
            rest[j] = cost[j]
            if centred[j]:
                rest[j] -= along(x, e, centres, j)
            for a in range(rho.shape[0]):
                rest[j] -= rho[a] * known[at, a, j]
                off[1 + j] += abs(rho[a]) * tolerances[at, a, j]
        _spread(spread, r, off)
        if visits.times.shape[1] > 0 and b != NOWHERE:
            _visit(r, b, shape.size[b], raw, z, off, visits)
        add_row(r, b, bank, shape, z, rest)


@leaf
def count_value(
    x: Rows,
    at: int,  # where the step's rows begin in the table
    following: IntArray,
    begin: int,  # where its next states begin
    first: int,
    end: int,
    edge: int,
    value: FloatArray,
    offset: int,  # where the next step's values begin
    h: int,
    state: ValueState,
) -> None:
    """Count the transition along an edge, one of edges first … end-1 of its pair, at step h (spec 6)."""
    regression, bank, shape, phi_v, target = state
    target[0] = value[offset + following[begin + edge]]
    r = regression[h]
    b = value_row(x, at, following, begin, first, end, value, offset, r, shape, phi_v)
    add_row(r, b, bank, shape, phi_v, target)


@compiled
def _lay_out(x: Rows, rows: IntArray, r: int, frames: Frames, shape: BlockShape, begin: Any, flat: Any) -> None:
    rho = np.empty(frames.anchors.shape[1])
    for at in range(rows.shape[0]):
        cost_row(x, rows[at], r, 0, frames, shape, flat[begin[at] : begin[at + 1]], rho)


def laid_out(x: SparseRows, blocks: Blocks, r: int, frames: Frames) -> tuple[IntArray, IntArray, FloatArray]:
    """(block, where z begins, all z inside their blocks one after the other) of the rows that are not empty."""
    rows = np.flatnonzero(np.diff(x.indptr))
    block = blocks.shape.block[r, x.columns[x.indptr[rows]]]
    begin = np.concatenate([[0], np.cumsum(blocks.shape.size[block])])
    flat = np.empty(int(begin[-1]))
    _lay_out(rows_of(x), rows, r, frames, blocks.shape, begin, flat)
    return block, begin[:-1], flat
