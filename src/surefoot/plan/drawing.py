"""Policies that draw their actions: per decision layer (N,) the chance of each pair in its state.

**Mirror ascent**, with a dual variable for what must not be exceeded:

    π'(a|s) ∝ ((1−θ) π(a|s) + θ/|A(s)|) · exp(step · gain(s,a))
    Y' = Y + step · (cost − budget), cut to [0, most]

**The best mixture** of a state's actions under one linear cost row:

    maximise Σ_a w(a) score(s,a)   subject to   Σ_a w(a) excess(s,a) ≤ 0,   w ≥ 0,  Σ w = 1

A linear program with two rows: some optimum has weight on two actions at most, one with excess ≤ 0 and one with
excess > 0, mixed so that the row is tight. Trying all such pairs is exact.
"""

from __future__ import annotations

import numpy as np

from surefoot.jit import compiled
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.layer import Layer
from surefoot.plan.segments import segment_max, spread


def uniform(layer: Layer) -> FloatArray:
    """(N,) equal chances for every action of a state."""
    sizes = np.diff(layer.state_ptr)
    return 1.0 / np.repeat(sizes, sizes)


def most_actions(layer: Layer) -> int:
    """The largest number of actions of any state, at least 2, since every step size contains its logarithm."""
    return max(2, int(np.diff(layer.state_ptr).max()))


def mirror_step(layer: Layer, chances: FloatArray, gain: FloatArray, explore: float = 0.0) -> FloatArray:
    """(N,) π·exp(gain), normalised, after mixing in equal chances by ``explore``. Gains include the step size."""
    base = (1.0 - explore) * chances + explore * uniform(layer)
    weight = base * np.exp(gain - spread(segment_max(gain, layer.state_ptr), layer.state_ptr))
    total = np.add.reduceat(weight, layer.state_ptr[:-1])
    result: FloatArray = weight / spread(total, layer.state_ptr)
    return result


def softmax(layer: Layer, score: FloatArray) -> FloatArray:
    """(N,) chances in proportion to exp(score)."""
    return mirror_step(layer, uniform(layer), score)


def averaged(layer: Layer, chances: FloatArray, q: FloatArray) -> FloatArray:
    """(S,) Σ_a π(a|s) q(s,a)."""
    return np.add.reduceat(chances * q, layer.state_ptr[:-1])


def dual_step(dual: FloatArray, cost: FloatArray, budget: FloatArray, step: float, most: FloatArray) -> FloatArray:
    """(m,) the prices of the budgets after a step."""
    return np.clip(dual + step * (cost - budget), 0.0, most)


def best_mixture(layer: Layer, score: FloatArray, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(chances (N,), score of the mixture (S,)) from score and excess (N,); ties go to the first, and to no mixing.

    Where no action has excess ≤ 0, the one with the least is played: there the row cannot be kept.
    """
    chances, value = np.zeros(layer.n_pairs), np.empty(layer.n_states)
    _mixed(layer.state_ptr, score, excess, chances, value)
    return chances, value


@compiled
def _mixed(state_ptr: IntArray, score: FloatArray, excess: FloatArray, chances: FloatArray, value: FloatArray) -> None:
    for state in range(len(state_ptr) - 1):
        first, end = state_ptr[state], state_ptr[state + 1]
        best, one, other, share, least = -np.inf, -1, -1, 0.0, first
        for i in range(first, end):
            if excess[i] < excess[least]:
                least = i
            if excess[i] <= 0.0 and score[i] > best:
                best, one, other, share = score[i], i, -1, 0.0
        if one < 0:
            one, best = least, score[least]
        else:
            for i in range(first, end):
                if not excess[i] <= 0.0:
                    continue
                for j in range(first, end):
                    if not 0.0 < excess[j] < np.inf or not score[j] > score[i]:
                        continue
                    t = -excess[i] / (excess[j] - excess[i])
                    mixed = (1.0 - t) * score[i] + t * score[j]
                    if mixed > best:
                        best, one, other, share = mixed, i, j, t
        chances[one] += 1.0 - share
        if other >= 0:
            chances[other] += share
        value[state] = best
