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

from typing import ClassVar

import numpy as np

from surefoot.agents.slucb_qvi import SlucbQvi
from surefoot.estimate.costs import bound_costs
from surefoot.plan.certify import certify_one_step
from surefoot.plan.explore import pair_uncertainty
from surefoot.plan.mixing import best_mixture
from surefoot.plan.plan import Plan
from surefoot.plan.segments import likeliest_pair
from surefoot.plan.successors import assumed_excess
from surefoot.plan.values import Values


class Oplb(SlucbQvi):
    """Safe on average, and blind to what follows. ``bonus`` scales α."""

    name: ClassVar[str] = "oplb"

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds = bound_costs(problem, self.costs, self.cost_confidence)
        known = self.value_ellipsoids()
        # α·(upper − lower)/2 = (1 + 2/slack)·(slack·ω)/2 = ω·(slack/2 + 1), ω the relative width of spec 5.
        widths = pair_uncertainty(graph, bounds, self._slack)
        bonus = tuple(self._bonus * w * (self._slack[h].min() / 2.0 + 1.0) for h, w in enumerate(widths))
        excess = assumed_excess(graph, bounds, problem.bounds)
        q = tuple(layer.reward + bonus[h] for h, layer in enumerate(graph.layers))
        mixed = [best_mixture(layer, q[h], excess[h]) for h, layer in enumerate(graph.layers)]
        chances = tuple(each for each, _ in mixed)
        # What is learned of transitions is not used; its targets must lie in their range all the same.
        value = (*(np.clip(worth, 0.0, 1.0) for _, worth in mixed), graph.terminal.reward)
        action = tuple(likeliest_pair(c, layer.state_ptr) for c, layer in zip(chances, graph.layers, strict=True))
        certified = certify_one_step(graph, bounds, problem.bounds)
        values = Values(q, bonus, value, action)
        return Plan(problem, bounds, certified, values, known, self.replans, chances=chances)
