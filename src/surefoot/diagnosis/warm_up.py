"""Estimates how many episodes of the fallback's own data it takes until another action is certified.

It has to guess: every declared successor is equally likely, and where the anchors say nothing about γ, it is in the
middle of its prior, or zero with a norm alone. That is optimistic: a fallback that comes closer to its limits takes
longer. After n episodes the regressions then hold n times the rows of one. Bounds (spec 3) and certificates (spec 4)
are computed as a learner does, to find the least n that certifies something.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surefoot.diagnosis.cold_start import certified_moves
from surefoot.estimate.costs import CostData, bound_costs
from surefoot.estimate.ellipsoids import CostConfidence, CostEllipsoids, Spread, cost_ellipsoids
from surefoot.estimate.families import families
from surefoot.model.features import Features
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan.certify import certify

MOST_EPISODES = 1_000_000
_MOST_ROWS = 20_000  # of the fallback; with more, the estimate takes too long
_MOST_TRIPLETS = 1_000_000


def episodes_to_open(problem: Problem, confidence: CostConfidence) -> int | None:
    """About how many; None if MOST_EPISODES are not enough or the problem is too large to try."""
    graph = problem.graph
    own = sum(int(np.diff(layer.pair_ptr)[layer.fallback_pairs()].sum()) for layer in graph.layers)
    if own > _MOST_ROWS or sum(layer.n_edges for layer in graph.layers) > _MOST_TRIPLETS:
        return None
    data = _Expected(problem, confidence)

    def opens(episodes: float) -> bool:
        data.episodes = episodes
        bounds = bound_costs(problem, data, confidence)
        return sum(certified_moves(graph, certify(graph, bounds, problem.bounds))) > 0

    low, high = 0.0, 1.0
    while not opens(high):
        low, high = high, 4.0 * high
        if low >= MOST_EPISODES:
            return None
    while high > 1.1 * low + 1.0:
        middle = (low * high) ** 0.5 if low else high / 2.0
        low, high = (low, middle) if opens(middle) else (middle, high)
    return int(np.ceil(high))


class _Expected(CostData):
    """The regressions as a number of the fallback's episodes leave them, on average."""

    def __init__(self, problem: Problem, confidence: CostConfidence) -> None:
        super().__init__(problem, min(confidence.ridges), families(problem), shaped=confidence.shaped)
        self.episodes = 1.0
        self._horizon, self._nothing = problem.horizon, np.zeros(len(problem.limits))
        graph = problem.graph
        here = np.zeros(graph.n_states(0))
        here[graph.starts] = 1.0 / len(graph.starts)
        for h, layer in enumerate(graph.layers):
            after = np.zeros(graph.n_states(h + 1))
            for state in np.flatnonzero(here).tolist():
                pair = int(layer.fallback[state])
                following, rows = layer.successors_of(pair), range(layer.n_rows)[layer.own_rows(pair)]
                after[following] += float(here[state]) / len(following)
                for row in rows:
                    self._expect(h, layer.cost_features[row : row + 1], float(here[state]) / len(rows))
            here = after
        last = graph.terminal
        if last.cost_features is not None:
            for state in np.flatnonzero(here * last.has_cost).tolist():
                self._expect(graph.horizon - 1, last.cost_features[state : state + 1], float(here[state]))
        self.bank.state.targets[:] = 0.0  # every row costs just what prior and anchors say

    def _expect(self, h: int, x: Features, weight: float) -> None:
        """Add a row that occurs with this probability, which is its weight."""
        dense = x.dense()[0] if isinstance(x, SparseRows) else np.asarray(x[0], np.float64)
        root = np.sqrt(weight)
        before = self.spread.copy()
        self.add(h, replace(x, values=root * x.values) if isinstance(x, SparseRows) else root * dense, self._nothing)
        self.spread[:] = before
        for f in range(len(self.families)):
            at = f * self._horizon + h
            rho = np.abs(self.state.frames.directions[at] @ dense)
            size = 1.0 + float(rho.sum())
            blur = rho @ self.state.tolerances[at]
            self.spread[self.regression(h, f)] += weight * np.concatenate([[size * size], size * blur, blur * blur])

    def ellipsoids(self, h: int, confidence: CostConfidence, family: int = 0) -> CostEllipsoids:
        r, n = self.regression(h, family), self.episodes
        many, spread = self.learned(r, confidence, times=n), Spread.of(n * self.spread[r], int(n))
        return cost_ellipsoids(many, spread, self.families[family], confidence)
