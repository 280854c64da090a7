"""Counts, for learners that use no features, and the intervals that follow from them.

n(h,s,a,s'),  n(h,s,a) = Σ_{s'} n,  P̂ = n(h,s,a,s')/n(h,s,a),  and per pair the mean of the measured costs
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surefoot.model.arrays import BoolArray, FloatArray, IntArray, owner
from surefoot.model.problem import Problem


class Counts:
    """Visits of every triplet, and the sums of the costs measured at every pair and last state."""

    def __init__(self, problem: Problem) -> None:
        graph, m = problem.graph, len(problem.limits)
        self._graph = graph
        self.visits = tuple(np.zeros(layer.n_edges, np.int64) for layer in graph.layers)
        sizes = [*(layer.n_pairs for layer in graph.layers), graph.terminal.n_states]
        self.measured = tuple(np.zeros(n, np.int64) for n in sizes)  # H of (N,), the last (S,): costs reported
        self.cost_sums = tuple(np.zeros((n, m)) for n in sizes)  # H of (N, m)

    def add(self, h: int, edge: int, cost: FloatArray | None) -> None:
        self.visits[h][edge] += 1
        if cost is not None:
            pair = owner(self._graph.layers[h].pair_ptr, edge)
            self.measured[h][pair] += 1
            self.cost_sums[h][pair] += cost

    def add_last(self, state: int, cost: FloatArray | None) -> None:
        if cost is not None:
            self.measured[-1][state] += 1
            self.cost_sums[-1][state] += cost

    def pair_ptr(self, h: int) -> IntArray:
        return self._graph.layers[h].pair_ptr

    def of_pairs(self, h: int) -> IntArray:
        """(N,) n(h,s,a)."""
        return np.add.reduceat(self.visits[h], self._graph.layers[h].pair_ptr[:-1])

    def model(self, h: int) -> FloatArray:
        """(E,) P̂; uniform on the support where nothing has been seen."""
        sizes = np.diff(self._graph.layers[h].pair_ptr)
        n = np.repeat(self.of_pairs(h), sizes)
        return np.where(n > 0, self.visits[h] / np.maximum(n, 1), 1.0 / np.repeat(sizes, sizes))

    def mean_costs(self, h: int) -> FloatArray:
        """(N, m), (S, m) for the last layer: the mean measured cost, 0 without a measurement."""
        mean: FloatArray = self.cost_sums[h] / np.maximum(self.measured[h], 1)[:, None]
        return mean

    def arrays(self) -> dict[str, Any]:
        """Everything that a checkpoint must keep."""
        kinds = {"visits": self.visits, "measured": self.measured, "costs": self.cost_sums}
        return {f"counts/{name}/{h}": array for name, arrays in kinds.items() for h, array in enumerate(arrays)}


class Intervals(NamedTuple):
    """P lies in [low, high], triplet by triplet; ``width`` is half the interval before it is cut to [0, 1]."""

    low: FloatArray  # (E,)
    high: FloatArray  # (E,)
    width: FloatArray  # (E,)


def bernstein(counts: Counts, h: int, log_term: float, scale: float = 1.0) -> Intervals:
    """Of Efroni, Mannor and Pirotta (2020): P̂ ± min(1, 2√(l P̂(1−P̂)/n) + 14 l/(3n)), n at least 1.

    A pair with one declared successor is known: its interval is [1, 1].
    """
    p, n, known = _seen(counts, h)
    width = 2.0 * np.sqrt(log_term * p * (1.0 - p) / n) + 14.0 * log_term / (3.0 * n)
    return _cut(p, scale * width, known)


def empirical(counts: Counts, h: int, log_term: float, scale: float = 1.0) -> Intervals:
    """Of DOPE's published code (Bura et al. 2022): P̂ ± min(1, √(l P̂(1−P̂)/n) + l/n, l/√n), n at least 1."""
    p, n, known = _seen(counts, h)
    width = np.minimum(np.sqrt(log_term * p * (1.0 - p) / n) + log_term / n, log_term / np.sqrt(n))
    return _cut(p, scale * width, known)


def _seen(counts: Counts, h: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Per triplet (E,): P̂, its pair's n (at least 1), and whether it is the pair's only triplet."""
    sizes = np.diff(counts.pair_ptr(h))
    n = np.repeat(counts.of_pairs(h), sizes).astype(np.float64)
    return counts.model(h), np.maximum(n, 1.0), np.repeat(sizes, sizes) == 1


def _cut(p: FloatArray, width: FloatArray, known: BoolArray) -> Intervals:
    width = np.where(known, 0.0, np.minimum(width, 1.0))
    return Intervals(np.clip(p - width, 0.0, 1.0), np.clip(p + width, 0.0, 1.0), width)
