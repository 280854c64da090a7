"""The parts of each bound before any data (spec 3), and what no data can certify.

Before any data a cost is at least  lower = k − L‖z‖ − ζ(1 + |ρ|)  (spec 3) for every truth that the declaration allows.
A cost row with lower > c̄ for some limit is over it whatever the truth. Backward from the last step, an action is lost
if one of its rows is over a limit or it may lead to a lost state, and a state is lost if it is forbidden or all its
actions are lost. The fallback's actions are never lost (spec 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefoot import theory
from surefoot.diagnosis.diagnosis import FallbackFault, Forced, Sense
from surefoot.diagnosis.rank import NEGLIGIBLE, no_directions, slices
from surefoot.estimate.basis import Basis
from surefoot.estimate.blocks import cost_blocks
from surefoot.estimate.costs import CostBounds, split, turned_lengths
from surefoot.estimate.ellipsoids import CostConfidence, prior_guard
from surefoot.estimate.families import Family, families
from surefoot.model.arrays import BoolArray, FloatArray, owner
from surefoot.model.features import Features, row_norms
from surefoot.model.graph import Anchors, LayeredGraph
from surefoot.model.layer import NO_ACTION, Layer
from surefoot.model.problem import Problem
from surefoot.model.sharing import made_once
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan.certify import Certified
from surefoot.plan.segments import segment_all, segment_any, spread

Tables = list[FloatArray]
"""One array per decision layer, rows = triplets; then one for the last layer, rows = states."""


@dataclass(frozen=True, eq=False)
class Before:
    """upper ≤ fixed + width·(size + rounding) before any data.

    A limit's ``width`` is its norm; with a prior it is 1, the factor on the half-widths.
    """

    families: tuple[Family, ...]
    width: FloatArray  # (m,)
    fixed: Tables  # (rows, m)   ⟨m, x⟩ + k + ζ(1 + Σ|ρ|) + Σ|ρ|t
    size: Tables  # (rows, m)    ‖z‖, or min(L‖z‖, ‖z‖₁) with a prior
    rounding: Tables  # (rows, m)  the guard


def before_data(problem: Problem) -> Before:
    """The parts of every row's bound; steps with the same features and anchors share them."""
    graph, own = problem.graph, families(problem)
    tables = [features_of(graph, h) for h in range(graph.horizon)]
    width = np.array([1.0 if prior.boxed else prior.length for prior in problem.priors])
    blocks = cost_blocks(problem) if isinstance(tables[0], SparseRows) else None

    def of_step(h: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        basis = None if blocks is None else no_directions(blocks, 0 if problem.stationary_costs else h)
        return _before(tables[h], graph.anchors[h], own, basis, len(problem.limits))

    keys = [
        (id(x), b"" if anchors is None else b"".join(part.tobytes() for part in anchors.parts))
        for x, anchors in zip(tables, graph.anchors, strict=True)
    ]
    fixed, size, rounding = (list(each) for each in zip(*made_once(keys, of_step), strict=True))
    return Before(own, width, fixed, size, rounding)


def _before(
    x: Features, anchors: Anchors | None, own: tuple[Family, ...], basis: Basis | None, m: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    fixed, size, rounding = (np.empty((len(x), m)) for _ in range(3))
    for family in own:
        known, members = family.known(anchors), list(family.members)
        guard = prior_guard(len(family.width)) * math.sqrt(2.0)  # ‖z‖ + |ρ|‖x⁰‖
        errors = np.array([limit.misspecification * (1.0 + guard) for limit in family.limits])
        for rows in [slice(0, len(x))] if isinstance(x, SparseRows) else slices(x):
            some = x[rows]
            if isinstance(some, SparseRows):
                assert basis is not None
                rho = np.zeros((len(some), 0)) if known is None else some @ np.ascontiguousarray(known.directions.T)
                lengths = turned_lengths(some, anchors, family, basis, np.ones(1))
                entries = np.diff(some.indptr) if known is None else some.dim  # a bound on those of z
                sums = lengths * np.sqrt(np.maximum(entries, 1))  # ≥ ‖z‖₁
                middle = some @ np.ascontiguousarray(family.centres.T)
            else:
                rho, z = split(some, family, known)
                lengths, sums = np.linalg.norm(z, axis=1), np.abs(z).sum(axis=1)
                middle = np.asarray(some, np.float64) @ family.centres.T
            long = row_norms(some)
            scaled_long = np.minimum(long * float(family.width.max()), family.longest)
            empty = lengths <= NEGLIGIBLE * scaled_long
            part = middle + errors * (1.0 + np.abs(rho).sum(axis=1))[:, None]
            if known is not None:
                part += rho @ known.costs + np.abs(rho) @ known.tolerances
            fixed[rows, members] = part
            for i, prior in zip(members, family.priors, strict=True):
                reach = np.minimum(prior.length * lengths, sums) if prior.boxed else lengths
                size[rows, i] = np.where(empty, 0.0, reach)
                rounding[rows, i] = guard * scaled_long * (prior.length if prior.boxed else 1.0)
                rounding[rows, i] += guard * float(np.linalg.norm(prior.centre)) * long
    return fixed, size, rounding


def features_of(graph: LayeredGraph, h: int) -> Features:
    if h < len(graph.layers):
        return graph.layers[h].cost_features
    last = graph.terminal
    if last.cost_features is not None:
        return last.cost_features
    if isinstance(graph.layers[0].cost_features, SparseRows):
        return SparseRows(np.zeros(last.n_states + 1, np.int64), np.empty(0, np.int32), np.empty(0), graph.cost_dim)
    return np.zeros((last.n_states, graph.cost_dim))


_EXAMPLES = 5


def surely_over(lower: FloatArray, problem: Problem, h: int) -> BoolArray:
    """(rows, m) True if even the lower bound of a row of step h is a violation (spec 8)."""
    return np.asarray(lower > problem.violation_thresholds[h])


def lost_sets(problem: Problem, bounds: CostBounds) -> Certified:
    """Masks of the pairs and states that can never be certified."""
    graph = problem.graph
    last = graph.terminal
    lost = last.forbidden
    if bounds.terminal_lower is not None:
        over = surely_over(bounds.terminal_lower, problem, problem.horizon - 1)
        lost = lost | over.any(axis=1) & ~last.fallback_reached
    states: list[BoolArray] = [lost]
    pairs: list[BoolArray] = []
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        lost_pairs = segment_any(np.any(surely_over(bounds.lower[h], problem, h), axis=1), layer.row_ptr)
        lost_pairs |= segment_any(states[0][layer.successor], layer.pair_ptr)
        lost_pairs |= spread(layer.forbidden, layer.state_ptr)
        lost_pairs[layer.fallback_pairs()] = False
        pairs.insert(0, lost_pairs)
        states.insert(0, segment_all(lost_pairs, layer.state_ptr))
    return Certified(tuple(pairs), tuple(states))


def describe_forced(problem: Problem, lost: Certified) -> Forced:
    """Totals over reachable states, and the first few by name."""
    reachable = problem.graph.reachable
    states = [mask & reached for mask, reached in zip(lost.states, reachable, strict=True)]
    actions = sum(lost_actions(problem, lost, h) for h in range(problem.horizon - 1))
    examples = [
        (h, problem.naming.states[h][int(i)]) for h, mask in enumerate(states) for i in np.flatnonzero(mask)[:_EXAMPLES]
    ]
    return Forced(int(sum(mask.sum() for mask in states)), actions, tuple(examples[:_EXAMPLES]))


def lost_actions(problem: Problem, lost: Certified, h: int) -> int:
    """How many pairs of step h, in reachable states, can never be certified."""
    layer = problem.graph.layers[h]
    possible = np.repeat(problem.graph.reachable[h], np.diff(layer.state_ptr))
    return int((lost.pairs[h] & possible).sum())


def find_fallback_fault(problem: Problem, bounds: CostBounds) -> FallbackFault | None:
    """The first of the fallback's own cost rows that is over a limit whatever the truth; None if there is none."""
    graph, naming, last = problem.graph, problem.naming, problem.horizon - 1
    count, first = 0, None
    for h, lower in enumerate((*bounds.lower, bounds.terminal_lower)):
        if lower is None:
            continue
        layer = graph.layers[h] if h < last else None
        own = graph.terminal.fallback_reached if layer is None else spread(layer.played_by_fallback(), layer.row_ptr)
        over = surely_over(lower, problem, h) & own[:, None]
        count += int(over.any(axis=1).sum())
        if first is None and over.any():
            row, j = (int(i) for i in np.argwhere(over)[0])
            if layer is None:
                where, beside = naming.at_state(h, row), over[own]
            else:
                pair = owner(layer.row_ptr, row)
                where, beside = naming.at_row(layer, h, row), over[layer.own_rows(pair)]
            wide = not beside.any(axis=1).all() and (layer is None or layer.per_triplet)
            first = where, h, j, float(lower[row, j]), wide
    if first is None:
        return None
    where, h, j, lowest, wide = first
    return FallbackFault(count, where, problem.limits[j].name, lowest, float(problem.bounds[h, j]), wide)


# --- does a limit make sense? Signs of a wrong unit, swapped arguments, or a bound that allows or forbids everything

_ROWS = 1 << 18  # processed at a time
_MOST_VISITS = 1e15


def alternatives(layer: Layer) -> BoolArray:
    """(N,) actions other than the fallback's in states that the fallback reaches."""
    return np.repeat(layer.fallback != NO_ACTION, np.diff(layer.state_ptr)) & ~layer.played_by_fallback()


def describe_sense(
    problem: Problem, bounds: CostBounds, failure_probability: float, confidence: CostConfidence
) -> tuple[Sense, ...]:
    """For each limit, what the declaration allows before any data."""
    low, high, vacuous = _range(problem, bounds)
    own = {j: family for family in families(problem) for j in family.members}
    return tuple(
        Sense(
            least_cost=float(low[j]),
            largest_cost=float(high[j]),
            vacuous=bool(vacuous[j]),
            only_fallback=_only_fallback(problem, bounds, j),
            episodes_to_tell=_episodes(problem, j, own[j], failure_probability, confidence),
        )
        for j in range(len(problem.limits))
    )


def _tables(problem: Problem, bounds: CostBounds) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """(step, lower, upper) of reachable states."""
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
    """(m,) the smallest and largest cost that the declaration allows, and whether all of them keep their bounds."""
    m = len(problem.limits)
    low, high, vacuous = np.full(m, np.inf), np.full(m, -np.inf), np.ones(m, bool)
    for h, lower, upper in _tables(problem, bounds):
        if len(lower):
            most = upper.max(axis=0)
            low, high = np.minimum(low, lower.min(axis=0)), np.maximum(high, most)
            vacuous &= most <= problem.bounds[h]
    return low, high, vacuous


def _only_fallback(problem: Problem, bounds: CostBounds, j: int) -> bool:
    """True if limit j alone rules out every action but the fallback's, whatever the truth, where the fallback goes."""
    some = False
    for h, layer in enumerate(problem.graph.layers):
        beyond = alternatives(layer)
        over: BoolArray = surely_over(bounds.lower[h], problem, h)[:, j]
        if (beyond & ~segment_any(over, layer.row_ptr)).any():
            return False
        some = some or bool(beyond.any())
    return some


def _episodes(
    problem: Problem, j: int, family: Family, failure_probability: float, confidence: CostConfidence
) -> float | None:
    """About how many episodes until (S3) can tell apart costs that differ by the room below the bound; None: never.

    After n visits to a direction of length X the bounds are 2R/√n apart, with R² = σ²(d·log(1 + nX²/(dλ)) +
    2 log(m·n_reg·|Λ|/p)), where d counts unknown coefficients. An episode has one visit, or in a stationary problem
    one per step.
    """
    room, longest, noise = room_below(problem, j), family.longest, float(problem.noises[j])
    dim, ridge = int(np.count_nonzero(family.width)), max(confidence.ridges_of(family))
    if noise == 0.0 or longest == 0.0:
        return 0.0
    if room <= 0.0:
        return None
    log_term = theory.cost_log_term(
        limits=len(problem.limits),
        regressions=1 if problem.stationary_costs else problem.horizon,
        n_ridges=len(confidence.ridges),
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
