"""Does a limit make sense? Signs of a wrong unit, swapped arguments, or a bound that says nothing or forbids all."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from surefoot import theory
from surefoot.diagnosis.before_data import surely_over
from surefoot.diagnosis.cold_start import alternatives
from surefoot.diagnosis.diagnosis import Sense
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.families import Family, families
from surefoot.model.graph import BoolArray, FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.segments import segment_any

_ROWS = 1 << 18  # looked at together
_MOST_VISITS = 1e15


def describe_sense(
    problem: Problem, bounds: CostBounds, failure_probability: float, ridges: tuple[float, ...]
) -> tuple[Sense, ...]:
    """For each limit, what the declaration leaves possible before any data."""
    low, high, vacuous = _range(problem, bounds)
    own = {j: family for family in families(problem) for j in family.members}
    return tuple(
        Sense(
            least_cost=float(low[j]),
            largest_cost=float(high[j]),
            vacuous=bool(vacuous[j]),
            only_fallback=_only_fallback(problem, bounds, j),
            episodes_to_tell=_episodes(problem, j, own[j], failure_probability, ridges),
        )
        for j in range(len(problem.limits))
    )


def _tables(problem: Problem, bounds: CostBounds) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """(step, lower, upper) of what can be reached."""
    graph = problem.graph
    for h, layer in enumerate(graph.layers):
        mask = graph.reachable[h]
        if mask.all():
            for first in range(0, layer.n_rows, _ROWS):  # bounds of a mapped problem do not fit in memory
                some = slice(first, first + _ROWS)
                yield h, bounds.lower[h][some], bounds.upper[h][some]
            continue
        seen = np.repeat(np.repeat(mask, np.diff(layer.state_ptr)), np.diff(layer.row_ptr))
        yield h, bounds.lower[h][seen], bounds.upper[h][seen]
    if bounds.terminal_upper is not None and bounds.terminal_lower is not None:
        seen = graph.reachable[-1] & graph.terminal.has_cost
        yield graph.horizon - 1, bounds.terminal_lower[seen], bounds.terminal_upper[seen]


def _range(problem: Problem, bounds: CostBounds) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(m,) the smallest and largest cost that the declaration leaves possible; do all of them keep their bounds?"""
    m = len(problem.limits)
    low, high, vacuous = np.full(m, np.inf), np.full(m, -np.inf), np.ones(m, bool)
    for h, lower, upper in _tables(problem, bounds):
        if len(lower):
            most = upper.max(axis=0)
            low, high = np.minimum(low, lower.min(axis=0)), np.maximum(high, most)
            vacuous &= most <= problem.bounds[h]
    return low, high, vacuous


def _only_fallback(problem: Problem, bounds: CostBounds, j: int) -> bool:
    """Does limit j alone rule out, for every truth, each other action in every state the fallback reaches?"""
    some = False
    for h, layer in enumerate(problem.graph.layers):
        beyond = alternatives(layer)
        over: BoolArray = surely_over(bounds.lower[h], problem, h)[:, j]
        if (beyond & ~segment_any(over, layer.row_ptr)).any():
            return False
        some = some or bool(beyond.any())
    return some


def _episodes(
    problem: Problem, j: int, family: Family, failure_probability: float, ridges: tuple[float, ...]
) -> float | None:
    """About how many episodes until (S3) can tell apart costs that differ by the room below the bound; None: never.

    A direction of length X that every episode shows once (in a stationary problem: at every step) has, after n visits,
    bounds 2R/√n apart, R² = σ²(d·log(1 + nX²/(dλ)) + 2 log(m·n_reg·|Λ|/p)); d counts coefficients that are not known.
    """
    room, longest, noise = room_below(problem, j), family.longest, float(problem.noises[j])
    dim, ridge = int(np.count_nonzero(family.width)), ridges[1] * family.ratio
    if noise == 0.0 or longest == 0.0:
        return 0.0
    if room <= 0.0:
        return None
    log_term = theory.cost_log_term(
        limits=len(problem.limits),
        regressions=1 if problem.stationary_costs else problem.horizon,
        n_ridges=len(ridges),
        failure_probability=failure_probability,
    )

    def apart(visits: float) -> float:
        growth = dim * math.log1p(visits * longest**2 / (dim * ridge))
        return 2.0 * theory.noise_radius(growth, noise=noise, log_inverse_probability=log_term) / math.sqrt(visits)

    low, high = 1.0, 2.0
    while apart(high) > room:
        low, high = high, 2.0 * high
        if high > _MOST_VISITS:
            return None
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if apart(middle) > room else (low, middle)
    return math.ceil(high / (problem.horizon - 1 if problem.stationary_costs else 1))


def room_below(problem: Problem, j: int) -> float:
    """The difference to resolve: bound − the fallback's anchor, or else the smaller of |bound| and the largest cost."""
    own, anchors = problem.bounds[:, j], problem.graph.anchors
    known = [float(own[h] - each.cost[0, j]) for h, each in enumerate(anchors) if each is not None]
    if known:
        return min(known)
    largest = float(problem.largest_costs[j]) + problem.limits[j].misspecification
    return min(float(np.abs(own).min()), largest) if own.all() else largest
