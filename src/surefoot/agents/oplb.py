"""OPLB (Pacchiano, Ghavamzadeh, Bartlett, Jiang 2021, arXiv 2006.10185): a linear bandit that is safe on average.

In every state, with u(s,a) = max_j (upper_j − c̄_j) of the worst successor, the distribution w over its actions with

    the largest  Σ w(a) (r(s,a) + α·half the width of the cost bound)   such that   Σ w(a) u(s,a) ≤ 0,
    α = α_r = 1 + 2/slack,   α_c = 1

Port of: the optimistic–pessimistic linear bandit, every state a context of its own. Sources: the constants
remembered; the linear program of its multi-armed version read in the authors' code.
Changed to fit: rewards are known, so that only exploration of costs is left of its optimism; the bounds are those of
spec 3; a bandit has no next state, so it looks at the reward of this step alone. Exact where the horizon is 2.
Assumes: a known safe action in every state, with known cost (here the anchor).
Guarantees: nothing about steps; in states with a safe action the mean cost of a step is within its limit.
May violate: half of the time in a state where it mixes; and by entering states that have no safe action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from surefoot.agents.slucb_qvi import SlucbQvi
from surefoot.estimate.costs import CostBounds
from surefoot.model.graph import FloatArray
from surefoot.plan.explore import pair_uncertainty
from surefoot.plan.mixing import best_mixture
from surefoot.plan.plan import Plan
from surefoot.plan.successors import assumed_excess


class Oplb(SlucbQvi):
    """Safe on average, and blind to what follows. ``bonus`` scales α."""

    name: ClassVar[str] = "oplb"

    def _bonuses(self, bounds: CostBounds) -> Sequence[FloatArray]:
        """α·(upper − lower)/2 = (1 + 2/slack)·(slack·ω)/2 = ω·(slack/2 + 1), ω the relative width of spec 5."""
        widths = pair_uncertainty(self.problem.graph, bounds, self._slack)
        return [self._bonus * w * (self._slack[h].min() / 2.0 + 1.0) for h, w in enumerate(widths)]

    def _make_plan(self) -> Plan:
        graph, bounds = self.problem.graph, self._bounds()
        bonus = self._bonuses(bounds)
        excess = assumed_excess(graph, bounds, self.problem.bounds)
        q = [layer.reward + bonus[h] for h, layer in enumerate(graph.layers)]
        mixed = [best_mixture(layer, q[h], excess[h]) for h, layer in enumerate(graph.layers)]
        # What is learned of transitions is not used; its targets must lie in their range all the same.
        value = [*(np.clip(worth, 0.0, 1.0) for _, worth in mixed), graph.terminal.reward]
        chances = tuple(each for each, _ in mixed)
        return self._drawn_plan(bounds, self._certify(bounds)[0], chances, q, value, bonus)
