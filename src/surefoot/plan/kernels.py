"""Compiled: one layer of a plan's backward sweep, pair by pair and state by state.

Each kernel is one step of spec 4 to 6 for a range of states (``widths``: of pairs); ranges share nothing, so that
threads change no bit.
Comparisons are written so that a NaN certifies nothing and is never chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.estimate.value_kernels import Asked, expected
from surefoot.jit import compiled, unlocked
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.threads import in_ranges

WORTH_THREADS = 1 << 16  # edges of a layer: with fewer, the work is done before a second thread starts
ROWS = 1 << 14  # edges that are looked at together: they stay in the cache, and lanes are full
STATES = 1 << 11  # likewise, where each has one pair


def _certified(
    begin: int,
    end: int,
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
    m = len(bounds)
    for state in range(begin, end):
        some = False
        for pair in range(state_ptr[state], state_ptr[state + 1]):
            safe = True
            for row in range(row_ptr[pair], row_ptr[pair + 1]):
                for j in range(m):
                    safe &= upper[row, j] <= bounds[j]
            if safe:  # only then is it worth looking up what follows
                for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                    safe &= following[successor[edge]]
            safe |= pair == fallback[state]
            safe &= not forbidden[state]
            pairs[pair] = safe
            some |= safe
        states[state] = some


def _widths(
    begin: int,
    end: int,
    row_ptr: IntArray,
    upper: FloatArray,  # (R, m)
    lower: FloatArray,  # (R, m)
    slack: FloatArray,  # (m,)
    omega: FloatArray,  # (N,)  written
) -> None:
    """Spec 5: ω, the largest relative uncertainty over a pair's cost rows and the limits; a NaN is not counted."""
    m = len(slack)
    for pair in range(begin, end):
        widest = 0.0
        for row in range(row_ptr[pair], row_ptr[pair + 1]):
            for j in range(m):
                width = (upper[row, j] - lower[row, j]) / slack[j]
                if width > widest:
                    widest = width
        omega[pair] = widest


def _ahead(
    begin: int,
    end: int,
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
    for state in range(begin, end):
        most = 0.0
        for pair in range(state_ptr[state], state_ptr[state + 1]):
            later = 0.0
            for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                later = np.maximum(later, following[successor[edge]])
            ahead[pair] = later
            if allowed[pair]:
                most = np.maximum(most, np.maximum(omega[pair], later))
        future[state] = most


@unlocked
def _best(
    first: int,  # of the states that are looked at
    end: int,
    state_ptr: IntArray,
    q: FloatArray,  # (N,)
    allowed: BoolArray,  # (N,)
    cap: float,
    fallback: IntArray,  # (S,)  the fallback's pair or -1
    value: FloatArray,  # (S,)  written
    action: IntArray,  # (S,)  written
) -> None:
    """Spec 6: the allowed pair of largest min(Q, cap), ties by the larger Q, then the first; -1 and 0 without one.

    Where a Q is NaN, the fallback's pair is taken, or else the first allowed one, at the cap. Safety does not depend on
    it."""
    for state in range(first, end):
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


def _values(
    begin: int,
    end: int,
    state_ptr: IntArray,
    reward: FloatArray,  # (N,)
    bonus: FloatArray,  # (N,)
    most: FloatArray,  # (N,)  that follows, bonus included; or empty
    allowed: BoolArray,  # (N,)
    cap: float,
    fallback: IntArray,
    asked: Asked,
    q: FloatArray,  # (N,)  written, NaN where not allowed
    value: FloatArray,  # (S,)  written
    action: IntArray,  # (S,)  written
) -> None:
    """Spec 6, S7: Q of the allowed pairs, and V and the greedy pair by it."""
    pair_ptr, n = asked.ahead.pair_ptr, end - begin
    parts = 1 + (pair_ptr[state_ptr[end]] - pair_ptr[state_ptr[begin]]) // ROWS
    for part in range(parts):
        first, last = begin + n * part // parts, begin + n * (part + 1) // parts
        own = slice(state_ptr[first], state_ptr[last])
        q[own] = np.nan
        wanted = state_ptr[first] + np.flatnonzero(allowed[own])
        found = np.empty(len(wanted))
        expected(asked, wanted, found)
        for i in range(len(wanted)):
            pair = wanted[i]
            q[pair] = reward[pair] + found[i] + bonus[pair]
            if most.size and q[pair] > reward[pair] + most[pair]:
                q[pair] = reward[pair] + most[pair]
        _best(first, last, state_ptr, q, allowed, cap, fallback, value, action)


def _worths(
    begin: int,
    end: int,
    reward: FloatArray,  # (N,)
    action: IntArray,  # (S,)
    asked: Asked,
    worth: FloatArray,  # (S,)  written
) -> None:
    """Spec 6: what is expected of the chosen pairs, 0 where none is chosen."""
    n, parts = end - begin, 1 + (end - begin) // STATES
    for part in range(parts):
        first, last = begin + n * part // parts, begin + n * (part + 1) // parts
        own = first + np.flatnonzero(action[first:last] >= 0)
        wanted, found = action[own], np.empty(len(own))
        expected(asked, wanted, found)
        worth[first:last] = 0.0
        for i in range(len(own)):
            worth[own[i]] = reward[wanted[i]] + found[i]


@compiled
def met(own: tuple[Any, ...], there: BoolArray) -> IntArray:
    """The cost rows of some pairs in some states; nothing is looked at of other states.

    ``own``: state_ptr, pair_ptr, successor, row_ptr, those pairs (N,), those states (S,). ``there``: (S',) written,
    what may follow.
    """
    state_ptr, pair_ptr, successor, row_ptr, pairs, here = own
    n = 0
    for state in range(len(here)):
        if here[state]:
            for pair in range(state_ptr[state], state_ptr[state + 1]):
                if pairs[pair]:
                    n += row_ptr[pair + 1] - row_ptr[pair]
    rows, n = np.empty(n, np.int64), 0
    for state in range(len(here)):
        if here[state]:
            for pair in range(state_ptr[state], state_ptr[state + 1]):
                if pairs[pair]:
                    for row in range(row_ptr[pair], row_ptr[pair + 1]):
                        rows[n] = row
                        n += 1
                    for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                        there[successor[edge]] = True
    return rows


def _led_to(
    begin: int,
    end: int,
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    marked: BoolArray,  # (N,)
    allowed: BoolArray,  # (N,)
    following: BoolArray,  # (S',)
    led: BoolArray,  # (S,)  written
) -> None:
    """States with an allowed pair that is marked, or may lead to a marked state."""
    for state in range(begin, end):
        some = False
        for pair in range(state_ptr[state], state_ptr[state + 1]):
            if allowed[pair]:
                some |= marked[pair]
                for edge in range(pair_ptr[pair], pair_ptr[pair + 1]):
                    some |= following[successor[edge]]
        led[state] = some


def _on_threads(kernel: Callable[..., Any]) -> Callable[..., None]:
    """The kernel for every place of its last array; called with the layer's number of edges first, on threads if there
    are many."""

    def run(edges: int, *arrays: Any) -> None:
        in_ranges(len(arrays[-1]), edges >= WORTH_THREADS, kernel, *arrays)

    return run


def _compiled(kernel: Callable[..., Any]) -> Callable[..., None]:
    """Likewise, once it is compiled."""
    return _on_threads(unlocked(kernel))


certified = _compiled(_certified)
widths = _compiled(_widths)
ahead = _compiled(_ahead)
greedy = _on_threads(_best)
values = _compiled(_values)
worths = _compiled(_worths)
led_to = _compiled(_led_to)
