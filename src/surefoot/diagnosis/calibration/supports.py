"""The declared successors beside those that were logged."""

from __future__ import annotations

from collections import Counter

import numpy as np

from surefoot.diagnosis.calibration.measurements import Measurements
from surefoot.diagnosis.calibration.result import SupportCalibration
from surefoot.model.problem import Problem

_EXAMPLES = 5


def describe_support(problem: Problem, data: Measurements, alpha: float) -> SupportCalibration:
    """Counts over all logged transitions; with none outside, the chance of one is at most 1 − α^(1/n)."""
    graph, naming = problem.graph, problem.naming
    seen = Counter(data.transitions)
    pairs = {(h, pair) for h, pair, _ in seen}
    declared = sum(int(np.diff(graph.layers[h].pair_ptr)[pair]) for h, pair in pairs)
    at_edge = may_touch = 0
    for (h, pair, edge), times in seen.items():
        first, end = (int(e) for e in graph.layers[h].pair_ptr[pair : pair + 2])
        if end - first >= 3:
            may_touch += times
            at_edge += times * (edge in _edges(problem, h, first, end))
    examples = []
    for where, row in data.outside[:_EXAMPLES]:
        place = naming.at_pair(graph.layers[row.step], row.step, row.pair)
        examples.append(f"{where}: {place} led to {row.following!r}")
    n = len(data.transitions) + len(data.outside)
    return SupportCalibration(
        transitions=n,
        outside=len(data.outside),
        examples=tuple(examples),
        pairs=len(pairs),
        never_seen=declared - len(seen),
        at_edge=at_edge,
        may_touch=may_touch,
        outside_chance=None if data.outside or not n else -float(np.expm1(np.log(alpha) / n)),
    )


def _edges(problem: Problem, h: int, first: int, end: int) -> tuple[int, int]:
    """The edges to the least and the largest successor where labels have an order, else to the first and the last."""
    layer, names = problem.graph.layers[h], problem.naming.states[h + 1]
    labels = [names[int(layer.successor[e])] for e in range(first, end)]
    try:
        order = sorted(range(len(labels)), key=lambda i: labels[i])
    except TypeError:
        return first, end - 1
    return first + order[0], first + order[-1]
