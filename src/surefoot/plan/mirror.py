"""Policies by mirror ascent, with a dual variable for what must not be exceeded.

    π'(a|s) ∝ ((1−θ) π(a|s) + θ/|A(s)|) · exp(step · gain(s,a))
    Y' = Y + step · (cost − budget), cut to [0, most]

A policy is per decision layer (N,) the chance of each pair in its state.
"""

from __future__ import annotations

import numpy as np

from surefoot.model.graph import FloatArray, Layer
from surefoot.plan.segments import segment_max, spread


def uniform(layer: Layer) -> FloatArray:
    """(N,) every action alike."""
    sizes = np.diff(layer.state_ptr)
    return 1.0 / np.repeat(sizes, sizes)


def most_actions(layer: Layer) -> int:
    """The largest number of actions of a state, but at least 2: its logarithm is in every step size."""
    return max(2, int(np.diff(layer.state_ptr).max()))


def mirror_step(layer: Layer, chances: FloatArray, gain: FloatArray, explore: float = 0.0) -> FloatArray:
    """(N,) π·exp(gain), normalised, after a share ``explore`` went to all actions alike. Gains contain the step."""
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
