"""What is given of a problem before its rules are checked: functions, arrays and files all come to this form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from surefoot.model.anchors import AnchorOf
from surefoot.model.arrays import IntArray
from surefoot.model.centers import Centers
from surefoot.model.graph import Beyond
from surefoot.model.layer import Layer, Terminal
from surefoot.model.limit import Limit
from surefoot.model.naming import Naming

FallbackChoice = Callable[[int, IntArray], Sequence[int] | IntArray]
"""(layer, states) → for each state the number of the fallback's action among the state's own, or -1."""


@dataclass(frozen=True, eq=False)
class Outline:
    """The graph, with a fallback that is still to be followed."""

    layers: Sequence[Layer]  # H-1
    terminal: Terminal
    naming: Naming
    starts: IntArray
    fallback: FallbackChoice
    centers: Sequence[Centers | None] = ()  # of rays: H-1, or none
    beyond: Beyond | None = None  # of a graph that grows

    @property
    def sizes(self) -> list[int]:
        """The number of states of each of H steps."""
        return [*(layer.n_states for layer in self.layers), self.terminal.n_states]


class Declared(NamedTuple):
    """What is declared beside the graph, as users give it."""

    limits: Sequence[Limit] | Limit
    anchor: AnchorOf | None
    features: Sequence[str] | None
    transition_norm: float
    stationary_costs: bool
    stationary_transitions: bool
