"""RSLUCB-QVI (Amani, Thrampoulidis, Yang 2021): SLUCB-QVI with actions drawn, so that they are safe on average.

With u(s,a) = max_j (upper_j − c̄_j) of the worst successor, in every state the distribution w over its actions with

    the largest  Σ w(a) min(R_h, Q(s,a))   such that   Σ w(a) u(s,a) ≤ 0

and V its value; Q as in SLUCB-QVI, with V of the next step. The optimum is on two actions (surefoot.plan.mixing).

Port of: the randomised algorithm of the same paper. Sources: remembered; no code is public.
Changed to fit: as SLUCB-QVI. The paper's bonus and bound are norms of the mixed feature, which is not concave; here
both are mixed themselves, which is no smaller, so the mean cost is bounded as it promises. Of several limits the
worst decides.
Assumes: a safe action in every state.
Guarantees: nothing about steps; in states with a safe action the mean cost of a step is within its limit.
May violate: half of the time in a state where it mixes; and by entering states that have no safe action.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from surefoot.agents.slucb_qvi import SlucbQvi
from surefoot.estimate.values import expected_next_value
from surefoot.model.graph import FloatArray
from surefoot.plan.mixing import best_mixture
from surefoot.plan.plan import Plan
from surefoot.plan.successors import assumed_excess
from surefoot.plan.values import most_to_come


class RslucbQvi(SlucbQvi):
    """Safe on average, now."""

    name: ClassVar[str] = "rslucb-qvi"

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds, known = self._bounds(), self._known()
        bonus, most = self._bonuses(bounds), most_to_come(graph)
        excess = assumed_excess(graph, bounds, problem.bounds)
        value, q, chances = [graph.terminal.reward], list[FloatArray](), list[FloatArray]()
        for h in reversed(range(len(graph.layers))):
            layer = graph.layers[h]
            q.insert(0, layer.reward + expected_next_value(layer, value[0], known[h]) + bonus[h])
            mixed, worth = best_mixture(layer, np.minimum(q[0], most[h]), excess[h])
            chances.insert(0, mixed)
            value.insert(0, worth)
        return self._drawn_plan(bounds, self._certify(bounds)[0], tuple(chances), q, value, bonus)
