"""Actions drawn from a randomised policy.

No state of a layered problem is met twice in an episode, so an action can be drawn for every state before the episode
begins, which then follows a deterministic policy; the distribution of episodes is that of the randomised one. The
number that decides at step h of episode k is a hash of (seed, k, h): there is no state to keep, every path draws the
same, and the streams of a world are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.plan.segments import first_marked

_WORD = (1 << 64) - 1


def _mixed(x: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x + 0x9E3779B97F4A7C15) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def chance(seed: int, episode: int, h: int) -> float:
    """In [0, 1), with 53 bits."""
    word = _mixed(seed & _WORD)
    for part in (seed >> 64, episode, h):  # a seed may be longer than a word
        word = _mixed(word ^ (part & _WORD))
    return (word >> 11) * 2.0**-53


def drawn(graph: LayeredGraph, chances: Sequence[FloatArray], seed: int, episode: int) -> tuple[IntArray, ...]:
    """Per decision layer (S,) the pair drawn for the episode, NO_ACTION where all chances are 0."""
    return tuple(_pick(chances[h], layer.state_ptr, chance(seed, episode, h)) for h, layer in enumerate(graph.layers))


def _pick(chances: FloatArray, state_ptr: IntArray, u: float) -> IntArray:
    """The first pair of each state at which the running sum of chances exceeds u times their total."""
    begins = np.concatenate([[0.0], np.cumsum(chances)])
    before, total = begins[state_ptr[:-1]], begins[state_ptr[1:]]
    wanted = np.repeat(before + u * (total - before), np.diff(state_ptr))
    picked = first_marked((begins[1:] > wanted) & (chances > 0), state_ptr)
    # With u next to 1, rounding may leave no such pair: then the last one with a chance.
    last = len(chances) - 1 - first_marked((chances > 0)[::-1], len(chances) - state_ptr[::-1])[::-1]
    return np.where((picked < 0) & (last < len(chances)), last, picked)
