"""Questions to a declaration: its states, actions and successors by label, and for each limit the bounds of all steps,
the prior, the noise and the scale of its cost."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from surefoot.errors import UnknownLabel
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.graph import OUTSIDE, LayeredGraph
from surefoot.model.labels import Label, Names, shown
from surefoot.model.layer import Layer
from surefoot.model.limit import Limit
from surefoot.model.naming import Naming
from surefoot.model.priors import Prior, largest_costs, resolved
from surefoot.tolerances import VIOLATION


class Lookup:
    """Answers by the declared labels; an unknown label raises UnknownLabel."""

    graph: LayeredGraph
    naming: Naming
    limits: tuple[Limit, ...]
    stationary_costs: bool

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

    def decisions(self, h: int) -> Layer:
        """The layer of a step in which an action is taken."""
        return self.graph.layers[self._layer(h)]

    def actions(self, h: int, s: Label) -> tuple[Label, ...]:
        """The actions of a state, in declaration order."""
        state = self.state_index(h, s)
        layer = self.decisions(h)
        return tuple(self.naming.action(layer, h, p) for p in layer.pairs_of(state))

    def successors(self, h: int, s: Label, a: Label) -> tuple[Label, ...]:
        """Every state that may follow an action: the declared support."""
        layer, pair = self.decisions(h), self.pair_index(h, s, a)
        return tuple(self.naming.states[h + 1][i] for i in layer.successors_of(pair).tolist())

    def fallback_action(self, h: int, s: Label) -> Label | None:
        """The fallback's action, None in states that the fallback does not reach."""
        layer = self.decisions(h)
        pair = int(layer.fallback[self.state_index(h, s)])
        return None if pair < 0 else self.naming.action(layer, h, pair)

    def state_index(self, h: int, s: Label) -> int:
        return self.naming.states[self._layer(h, last=True)].index(s, f"step {h}")

    def pair_index(self, h: int, s: Label, a: Label) -> int:
        state = self.state_index(h, s)
        return self.naming.pair(self.decisions(h), h, state, a)

    def edge_index(self, h: int, s: Label, a: Label, s2: Label) -> int:
        layer, pair = self.decisions(h), self.pair_index(h, s, a)
        target = self.state_index(h + 1, s2)
        outside = self.graph.beyond is not None and target == OUTSIDE  # stands for many states
        if not outside and (edge := layer.edge_to(pair, target)) is not None:
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

    # --- limits ----------------------------------------------------------------------------------------

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the cost features, if they have any."""
        return self.naming.features

    @cached_property
    def bounds(self) -> FloatArray:
        """(H, m) the bound c̄ of each limit at each step."""
        rows = [np.broadcast_to(np.asarray(limit.bound, np.float64), self.graph.horizon) for limit in self.limits]
        return freeze(np.array(rows).T.copy())

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        """What is known of the coefficients of each limit (spec 3)."""
        return tuple(resolved(limit, self.graph.cost_dim, self.features) for limit in self.limits)

    @cached_property
    def noises(self) -> FloatArray:
        """(m,) σ of (S3). With an offset of scale τ it is √(σ² + n τ²), n the rows that a regression gets from one
        episode (spec 3)."""
        costed = len(self.graph.layers) + (self.graph.terminal.cost_features is not None)
        return freeze(self.noise_of(costed if self.stationary_costs else 1))

    @cached_property
    def shared_offsets(self) -> bool:
        """True if the measurements of an episode share an offset (``episode_noise``)."""
        return any(limit.episode_noise > 0.0 for limit in self.limits)

    def noise_of(self, rows: int) -> FloatArray:
        """(m,) the scale of the noise of so many measurements of one episode, in any direction."""
        pairs = [(limit.noise, limit.episode_noise) for limit in self.limits]
        return np.array([s if t == 0.0 else math.sqrt(s * s + rows * t * t) * (1 + 1e-15) for s, t in pairs])

    @cached_property
    def largest_costs(self) -> FloatArray:
        """(m,) the largest |cost| that norm and prior allow anywhere, without misspecification."""
        return freeze(largest_costs(self.graph, self.priors))

    @cached_property
    def cost_scales(self) -> FloatArray:
        """(m,) |bound| + (largest possible |cost|), the scale of the tolerances on each limit's costs (spec 8)."""
        return freeze(np.abs(self.bounds).max(axis=0) + self.largest_costs)

    @cached_property
    def violation_thresholds(self) -> FloatArray:
        """(H, m) the largest true cost that still keeps each limit: bound + 10⁻⁹ of its scale (spec 8)."""
        return freeze(self.bounds + VIOLATION * self.cost_scales)
