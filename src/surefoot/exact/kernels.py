"""Sweeps over one layer: arrays in, arrays out, compiled.

Letters as in :mod:`surefoot.model.graph`: S states, N pairs, E edges of the layer, S' states of the next one, m limits.
A value that does not exist is NaN, which spreads to whatever can lead there: so unsafe states, and states without an
action, cost no extra test.

An edge counts unless P ≤ 0, so a P that is NaN counts too: fail closed. Indices are unsigned, because a signed one
costs a test for "from the end" at every access: half the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.jit import unlocked
from surefoot.model.arrays import BoolArray, FloatArray, IntArray

uint = np.uintp
Index = int | np.integer[Any]
BLOCK = uint(256)


@unlocked
def pairs_within(
    pair_ptr: IntArray, probability: FloatArray, cost: FloatArray, bound: FloatArray, out: BoolArray
) -> None:
    """out (N,): cost (E, m) ≤ bound (m,) on every edge of the pair with P > 0."""
    out[:] = True
    pair, n_edges = uint(0), uint(len(probability))
    for first in range(uint(0), n_edges, BLOCK):  # a block without a cost beyond its bound is left at once
        end = min(first + BLOCK, n_edges)
        beyond = 0
        for j in range(uint(len(bound))):
            limit = bound[j]
            for edge in range(first, end):
                beyond += not cost[edge, j] <= limit
        if beyond == 0:
            continue
        for edge in range(first, end):
            within = True
            for j in range(uint(len(bound))):
                within &= cost[edge, j] <= bound[j]
            if not within and not probability[edge] <= 0.0:
                while uint(pair_ptr[pair + uint(1)]) <= edge:
                    pair += uint(1)
                out[pair] = False


@unlocked
def safe_layer(
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    probability: FloatArray,
    cost: FloatArray,
    bound: FloatArray,
    next_safe: BoolArray,
    running: IntArray,
    pairs: BoolArray,
    states: BoolArray,
) -> None:
    """``pairs`` (N,): every edge with P > 0 keeps cost (E, m) ≤ bound (m,) and ends in ``next_safe`` (S',).

    ``states`` (S,): some pair does. Scratch space: ``running`` (E+1,), int32, a running count: comparing it at both
    ends of a stretch needs no branch that a processor could mispredict, which would take most of the time. The count
    may overflow, since only neighbours are compared.
    """
    n_edges = uint(len(successor))
    running[0] = 0
    for edge in range(n_edges):
        running[edge + uint(1)] = not next_safe[uint(successor[edge])]
    for j in range(uint(len(bound))):
        limit = bound[j]
        for edge in range(n_edges):
            running[edge + uint(1)] |= not cost[edge, j] <= limit
    count = np.int32(0)
    for edge in range(n_edges):
        count += running[edge + uint(1)] & (not probability[edge] <= 0.0)
        running[edge + uint(1)] = count
    before = running[0]
    for pair in range(uint(len(pairs))):
        after = running[uint(pair_ptr[pair + uint(1)])]
        pairs[pair] = before == after
        before = after
    count = np.int32(0)
    for pair in range(uint(len(pairs))):  # there are no more pairs than edges: the space suffices
        count += np.int32(pairs[pair])
        running[pair + uint(1)] = count
    before = running[0]
    for state in range(uint(len(states))):
        after = running[uint(state_ptr[state + uint(1)])]
        states[state] = before != after
        before = after


@unlocked
def backed_up(
    first: Index,
    end: Index,
    successor: IntArray,
    reward: float,
    probability: FloatArray,
    next_value: FloatArray,
) -> float:
    """r + Σ P V' over the edges first … end-1 that have P > 0."""
    total = reward
    for edge in range(uint(first), uint(end)):
        p = probability[edge]
        if not p <= 0.0:
            total += p * next_value[uint(successor[edge])]
    return total


@unlocked
def best_between(
    first: Index,
    end: Index,
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    reward: FloatArray,
    probability: FloatArray,
    within: BoolArray,
    next_value: FloatArray,
    value: FloatArray,
    policy: IntArray,
    safe_pair: BoolArray,
) -> None:
    """For states first … end-1: V(s) = max over safe a of r + Σ P V', its lowest pair, the safe pairs.

    ``within`` (N,) bool, ``next_value`` (S',); written: ``value`` (S,), NaN where no action is safe,
    ``policy`` (S,) pair index or -1, ``safe_pair`` (N,) bool.
    """
    pair = uint(state_ptr[uint(first)])
    edge = uint(pair_ptr[pair])
    for state in range(uint(first), uint(end)):
        best = -np.inf
        chosen = np.int64(-1)
        end_pair = uint(state_ptr[state + uint(1)])
        while pair < end_pair:
            total = reward[pair]
            first_edge, end_edge = edge, uint(pair_ptr[pair + uint(1)])
            while edge + uint(1) < end_edge:  # two at a time, still in order: a tenth faster
                total += probability[edge] * next_value[uint(successor[edge])]
                total += probability[edge + uint(1)] * next_value[uint(successor[edge + uint(1)])]
                edge += uint(2)
            if edge < end_edge:
                total += probability[edge] * next_value[uint(successor[edge])]
                edge = end_edge
            if not within[pair]:
                total = np.nan
            elif total != total:  # some successor is unsafe: only now ask whether it has P > 0
                total = backed_up(first_edge, end_edge, successor, reward[pair], probability, next_value)
            safe_pair[pair] = total == total
            if total > best:
                best = total
                chosen = np.int64(pair)
            pair += uint(1)
        value[state] = best if chosen >= 0 else np.nan
        policy[state] = chosen


@unlocked
def mixed_values(
    state_ptr: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    reward: FloatArray,
    probability: FloatArray,
    weight: FloatArray,
    next_value: FloatArray,
    value: FloatArray,
) -> None:
    """value (S,): V(s) = Σ_a π(a|s) (r + Σ P V'), with π = ``weight`` (N,); NaN where no π is positive."""
    for state in range(uint(len(value))):
        mean = 0.0
        acts = False
        for pair in range(uint(state_ptr[state]), uint(state_ptr[state + uint(1)])):
            if weight[pair] > 0.0:
                acts = True
                first, end = pair_ptr[pair], pair_ptr[pair + uint(1)]
                q = backed_up(first, end, successor, reward[pair], probability, next_value)
                mean += weight[pair] * q
        value[state] = mean if acts else np.nan
