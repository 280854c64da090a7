"""Actions drawn from a policy that has chances instead of choices.

No state of a layered problem is met twice in an episode, so an action may be drawn for every state before it begins:
the episode is then one of a policy without chance, and the distribution of episodes is that of the randomised policy.
The number that decides at step h of episode k is a hash of (seed, k, h) and nothing else: it has no state to keep, is
the same on every path, and owes nothing to the streams of a world.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.model.graph import FloatArray, IntArray, LayeredGraph
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
    """Per decision layer (S,) the pair that is drawn for the episode, NO_ACTION where all chances are 0."""
    return tuple(_pick(chances[h], layer.state_ptr, chance(seed, episode, h)) for h, layer in enumerate(graph.layers))


def _pick(chances: FloatArray, state_ptr: IntArray, u: float) -> IntArray:
    """The first pair of each state up to which the chances add up to more than u times all of them."""
    begins = np.concatenate([[0.0], np.cumsum(chances)])
    before, total = begins[state_ptr[:-1]], begins[state_ptr[1:]]
    wanted = np.repeat(before + u * (total - before), np.diff(state_ptr))
    picked = first_marked((begins[1:] > wanted) & (chances > 0), state_ptr)
    # Rounding of a running sum can leave nothing for u next to 1: then the last one that has a chance.
    last = len(chances) - 1 - first_marked((chances > 0)[::-1], len(chances) - state_ptr[::-1])[::-1]
    return np.where((picked < 0) & (last < len(chances)), last, picked)
