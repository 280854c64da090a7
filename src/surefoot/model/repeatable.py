"""Do a user's functions give the same answer when they are asked again? A random one declares nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.graph import Layer
from surefoot.model.labels import shown
from surefoot.model.naming import Naming

SAMPLE = 64  #: pairs that are asked about twice, evenly over the steps


def check_repeatable(
    layers: Sequence[Layer],
    naming: Naming,
    successors: Callable[[int, Any, Any], Sequence[Any]],
    reward: Callable[[int, Any, Any], float],
) -> None:
    """Ask for successors and reward of some pairs once more, and refuse what differs."""
    total = sum(layer.n_pairs for layer in layers)
    wanted = set(np.linspace(0, total - 1, min(SAMPLE, total)).astype(np.int64).tolist())
    first = 0
    for h, layer in enumerate(layers):
        for pair in range(layer.n_pairs):
            if first + pair in wanted:
                _ask_again(layer, h, pair, naming, successors, reward)
        first += layer.n_pairs


def _ask_again(
    layer: Layer,
    h: int,
    pair: int,
    naming: Naming,
    successors: Callable[[int, Any, Any], Sequence[Any]],
    reward: Callable[[int, Any, Any], float],
) -> None:
    state = int(np.searchsorted(layer.state_ptr, pair, side="right")) - 1
    s, a = naming.states[h][state], naming.action(layer, h, pair)
    declared = [naming.states[h + 1][int(i)] for i in layer.successor[layer.pair_ptr[pair] : layer.pair_ptr[pair + 1]]]
    again = list(successors(h, s, a))
    if again != declared:
        raise InvalidInput(
            "successors gives another answer when it is asked again",
            where=naming.at_pair(layer, h, pair),
            got=f"first {shown(declared)}, then {shown(again)}",
            fix="List every state that may follow, always the same; what happens is drawn by the plant.",
        )
    value = reward(h, s, a)
    if value != float(layer.reward[pair]) and value == value:  # what is no number is refused elsewhere
        raise InvalidInput(
            "reward gives another answer when it is asked again",
            where=naming.at_pair(layer, h, pair),
            got=f"first {float(layer.reward[pair])!r}, then {value!r}",
            fix="Give the mean, always the same.",
        )
