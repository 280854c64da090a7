"""Compiled: one layer of a plan's backward sweep, pair by pair and state by state.

Each kernel is one step of spec 4 to 6 for a range of states; ranges share nothing, so that threads change no bit.
Comparisons are written so that a NaN certifies nothing and is never chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from surefoot.model.graph import BoolArray, FloatArray, IntArray
from surefoot.threads import serial_and_parallel, usable_threads

WORTH_THREADS = 1 << 16  # edges of a layer: fewer are done before a second thread is awake
RANGES = 16  # of states, whatever the number of threads


def _certified(
    ranges: int,
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    row_ptr: IntArray,
    upper: FloatArray,  # (R, m)
    bounds: FloatArray,  # (m,)
    following: BoolArray,  # (S',)  certified states of the next layer
    fallback: IntArray,  # (S,)  the fallback's pair or -1
    forbidden: BoolArray,  # (S,)
    pairs: BoolArray,  # (N,)  written
    states: BoolArray,  # (S,)  written
) -> None:
    """Spec 4 and 9: every cost row keeps every limit and every successor is certified, or the fallback plays the pair;
    nothing in a forbidden state."""
    n, m = len(states), len(bounds)
    for part in numba.prange(ranges):
        for state in range(n * part // ranges, n * (part + 1) // ranges):
            some = False
            for pair in range(state_ptr[state], state_ptr[state + 1]):
                safe = True
                for row in range(row_ptr[pair], row_ptr[pair + 1]):
                    for j in range(m):
                        safe &= upper[row, j] <= bounds[j]
                if safe:  # else nobody asks what follows, which takes longer to look up
                    for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                        safe &= following[successor[edge]]
                safe |= pair == fallback[state]
                safe &= not forbidden[state]
                pairs[pair] = safe
                some |= safe
            states[state] = some


def _widths(
    ranges: int,
    row_ptr: IntArray,
    upper: FloatArray,  # (R, m)
    lower: FloatArray,  # (R, m)
    slack: FloatArray,  # (m,)
    omega: FloatArray,  # (N,)  written
) -> None:
    """Spec 5: ω, the largest relative uncertainty over a pair's cost rows and the limits."""
    n, m = len(omega), len(slack)
    for part in numba.prange(ranges):
        for pair in range(n * part // ranges, n * (part + 1) // ranges):
            widest = 0.0
            for row in range(row_ptr[pair], row_ptr[pair + 1]):
                for j in range(m):
                    widest = np.maximum(widest, (upper[row, j] - lower[row, j]) / slack[j])
            omega[pair] = widest


def _ahead(
    ranges: int,
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    omega: FloatArray,  # (N,)
    allowed: BoolArray,  # (N,)
    following: FloatArray,  # (S',)  U of the next layer
    ahead: FloatArray,  # (N,)  written: max over successors of it
    future: FloatArray,  # (S,)  written: U of this layer
) -> None:
    """Spec 5, Idea III: the largest uncertainty that lies ahead of a pair, and of a state along allowed pairs."""
    n = len(future)
    for part in numba.prange(ranges):
        for state in range(n * part // ranges, n * (part + 1) // ranges):
            most = 0.0
            for pair in range(state_ptr[state], state_ptr[state + 1]):
                later = 0.0
                for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                    later = np.maximum(later, following[successor[edge]])
                ahead[pair] = later
                if allowed[pair]:
                    most = np.maximum(most, np.maximum(omega[pair], later))
            future[state] = most


def _greedy(
    ranges: int,
    state_ptr: IntArray,
    q: FloatArray,  # (N,)
    allowed: BoolArray,  # (N,)
    cap: float,
    fallback: IntArray,  # (S,)  the fallback's pair or -1
    value: FloatArray,  # (S,)  written
    action: IntArray,  # (S,)  written
) -> None:
    """Spec 6: the allowed pair of largest min(Q, cap), ties by the larger Q, then the first; -1 and 0 without one.

    A NaN says nothing: then the fallback's pair, or else the first allowed one, at the cap. Safety is not at stake
    here."""
    n = len(value)
    for part in numba.prange(ranges):
        for state in range(n * part // ranges, n * (part + 1) // ranges):
            best, best_q, chosen, broken = 0.0, 0.0, -1, False
            for pair in range(state_ptr[state], state_ptr[state + 1]):
                if allowed[pair]:
                    clipped = min(q[pair], cap)
                    broken |= q[pair] != q[pair]
                    if chosen < 0 or clipped > best or (clipped == best and q[pair] > best_q):
                        best, best_q, chosen = clipped, q[pair], pair
            if broken:
                best, chosen = cap, -1
                for pair in range(state_ptr[state], state_ptr[state + 1]):
                    if allowed[pair] and (chosen < 0 or pair == fallback[state]):
                        chosen = pair
            value[state] = best
            action[state] = chosen


def _compiled(kernel: Callable[..., Any]) -> Callable[..., None]:
    """The kernel, called with the number of a layer's edges first; on threads where that pays."""
    serial, parallel = serial_and_parallel(kernel)

    def run(edges: int, *arrays: Any) -> None:
        if edges >= WORTH_THREADS and usable_threads() > 1:
            parallel(RANGES, *arrays)
        else:
            serial(1, *arrays)

    return run


certified = _compiled(_certified)
widths = _compiled(_widths)
ahead = _compiled(_ahead)
greedy = _compiled(_greedy)
