"""What follows from a declaration's limits: bounds by step, priors by column, noise, and the scale of costs."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from surefoot.model.graph import FloatArray, LayeredGraph, freeze
from surefoot.model.limit import Limit
from surefoot.model.naming import Naming
from surefoot.model.priors import Prior, largest_costs, resolved
from surefoot.tolerances import VIOLATION


class Declared:
    """Limits beside the graph that they are about. (H steps, m limits)"""

    graph: LayeredGraph
    naming: Naming
    limits: tuple[Limit, ...]
    stationary_costs: bool

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
        """(m,) σ of (S3): √(σ² + n τ²) with an offset of scale τ that the n rows which one regression takes from an
        episode share (spec 3)."""
        costed = len(self.graph.layers) + (self.graph.terminal.cost_features is not None)
        return freeze(self.noise_of(costed if self.stationary_costs else 1))

    def noise_of(self, rows: int) -> FloatArray:
        """(m,) the scale of the noise of so many measurements of one episode, in any one direction."""
        pairs = [(limit.noise, limit.episode_noise) for limit in self.limits]
        return np.array([s if t == 0.0 else math.sqrt(s * s + rows * t * t) * (1 + 1e-15) for s, t in pairs])

    @cached_property
    def largest_costs(self) -> FloatArray:
        """(m,) the largest |cost| that norms and priors leave possible anywhere, without misspecification."""
        return freeze(largest_costs(self.graph, self.priors))

    @cached_property
    def cost_scales(self) -> FloatArray:
        """(m,) |bound| + (largest possible |cost|): what tolerances on each limit's costs refer to (spec 8)."""
        return freeze(np.abs(self.bounds).max(axis=0) + self.largest_costs)

    @cached_property
    def violation_thresholds(self) -> FloatArray:
        """(H, m) the largest true cost that still keeps each limit: bound + 10⁻⁹ of its scale (spec 8)."""
        return freeze(self.bounds + VIOLATION * self.cost_scales)
