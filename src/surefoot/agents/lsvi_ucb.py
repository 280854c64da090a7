"""LSVI-UCB (Jin et al. 2020) with a feature per pair: least-squares value iteration on counts, blind to limits.

    w(s,a) = Σ (r + V(s'))/(1 + n),     Q = min(R_h, w + β/√(1 + n)),     β = scale·d·H·√log(2dKH/p)

over all visits of the pair, with the V of this plan; d is the number of pairs of the step.

Port of: the paper's algorithm; a linear mixture is no linear MDP, but a feature per pair makes any finite problem
one. Sources: remembered, textbook.
Changed to fit: R_h takes the place of H; planning is lazy. At ``scale`` 1, as published, the bonus stays at its cap
for longer than any run.
Assumes: nothing about features or costs.
Guarantees: nothing about limits; regret of the unconstrained problem.
May violate: always; it does not look.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from surefoot.agents.blocks.tabular import Tabular
from surefoot.model.graph import FloatArray, IntArray
from surefoot.plan.certify import certify
from surefoot.plan.plan import Plan
from surefoot.plan.values import Values, greedy, most_to_come


class LsviUcb(Tabular):
    """Learns without a model, and breaks limits."""

    name: ClassVar[str] = "lsvi-ucb"

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        most = most_to_come(graph)
        value, q, bonus, action = [graph.terminal.reward], list[FloatArray](), list[FloatArray](), list[IntArray]()
        for h in reversed(range(len(graph.layers))):
            layer, visits = graph.layers[h], self.counts.visits[h]
            n = self.counts.of_pairs(h)
            ahead = np.add.reduceat(visits * value[0][layer.successor], layer.pair_ptr[:-1])
            bonus.insert(0, self._beta(layer.n_pairs) / np.sqrt(1.0 + n))
            q.insert(0, (n * layer.reward + ahead) / (1.0 + n) + bonus[0])
            worth, chosen = greedy(layer, q[0], np.ones(layer.n_pairs, bool), most[h])
            value.insert(0, worth)
            action.insert(0, chosen)
        bounds = self._bounds()
        values = Values(tuple(q), tuple(bonus), tuple(value), tuple(action))
        certified = certify(graph, bounds, problem.bounds)
        return Plan(problem, bounds, certified, values, self._known(), self.replans)

    def _beta(self, d: int) -> float:
        steps = self.problem.horizon - 1
        log = math.log(2.0 * d * self._episodes * steps / self.options.failure_probability)
        return self._scale * d * steps * math.sqrt(log)
