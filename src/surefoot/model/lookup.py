"""Reading a declaration by labels: which states, actions and successors there are, and the index of each."""

from __future__ import annotations

import numpy as np

from surefoot.errors import UnknownLabel
from surefoot.model.declared import Declared
from surefoot.model.labels import Label, Names, shown


class Lookup(Declared):
    """What a graph holds, by the labels that were declared; an unknown label raises UnknownLabel."""

    @property
    def horizon(self) -> int:
        """H, the number of steps."""
        return self.graph.horizon

    @property
    def starts(self) -> tuple[Label, ...]:
        return tuple(self.naming.states[0][int(i)] for i in self.graph.starts)

    def states(self, h: int) -> Names:
        """The states of a step, in index order; slices work."""
        return self.naming.states[self._layer(h, last=True)]

    def actions(self, h: int, s: Label) -> tuple[Label, ...]:
        """The actions of a state, in declaration order."""
        state = self.state_index(h, s)
        layer = self.graph.layers[self._layer(h)]
        pairs = range(int(layer.state_ptr[state]), int(layer.state_ptr[state + 1]))
        return tuple(self.naming.action(layer, h, p) for p in pairs)

    def successors(self, h: int, s: Label, a: Label) -> tuple[Label, ...]:
        """Every state that may follow an action: the declared support."""
        layer, pair = self.graph.layers[self._layer(h)], self.pair_index(h, s, a)
        reached = layer.successor[layer.pair_ptr[pair] : layer.pair_ptr[pair + 1]]
        return tuple(self.naming.states[h + 1][int(i)] for i in reached)

    def fallback_action(self, h: int, s: Label) -> Label | None:
        """The fallback's action, None in states that the fallback does not reach."""
        layer = self.graph.layers[self._layer(h)]
        pair = int(layer.fallback[self.state_index(h, s)])
        return None if pair < 0 else self.naming.action(layer, h, pair)

    def state_index(self, h: int, s: Label) -> int:
        return self.naming.states[self._layer(h, last=True)].index(s, f"step {h}")

    def pair_index(self, h: int, s: Label, a: Label) -> int:
        state = self.state_index(h, s)
        return self.naming.pair(self.graph.layers[self._layer(h)], h, state, a)

    def edge_index(self, h: int, s: Label, a: Label, s2: Label) -> int:
        layer, pair = self.graph.layers[self._layer(h)], self.pair_index(h, s, a)
        target = self.state_index(h + 1, s2)
        first, end = int(layer.pair_ptr[pair]), int(layer.pair_ptr[pair + 1])
        for edge in range(first, end):
            if layer.successor[edge] == target:
                return edge
        raise UnknownLabel(
            "successor is outside the declared support",
            where=self.naming.at_pair(layer, h, pair),
            got=shown(s2),
        )

    def _layer(self, h: int, last: bool = False) -> int:
        end = self.horizon if last else self.horizon - 1
        if isinstance(h, bool) or not isinstance(h, (int, np.integer)) or not 0 <= h < end:
            kind = "step" if last else "decision step"
            raise UnknownLabel(f"no such {kind}", got=f"{shown(h)}, steps are 0 … {end - 1}")
        return int(h)
