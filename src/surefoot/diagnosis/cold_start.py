"""Can the first plan, made before any data, leave the fallback? If not, what is closest, and what would help?

Before any data (spec 3)   upper_j = k_j + ζ_j(1 + |ρ|) + L_j‖z‖,   and certification (spec 4) requires upper_j ≤ c̄_j
for every cost row that may follow. Both are monotone in c̄_j and in L_j, so one backward sweep finds what is needed:

    need(s,a) = max over s' of max( need(s,a,s'), need(s') ),   need(s) = min over a of need(s,a),   −∞ for the fallback

With need(s,a,s') = upper_j this is the smallest c̄_j that certifies (s,a); with −(c̄_j − k_j − ζ_j(1+|ρ|))/‖z‖ it is
minus the largest such L_j. The first step off the fallback is taken in a state that the fallback reaches, so the least
need there decides.

**After the fallback's data.** Until the learner moves, all data are the fallback's. Their z span a subspace W and say
nothing about γ orthogonal to it. So on the event of (S3) every γ' with the same part γ_W in W and length at most L is
possible, and with z = z_W + z_⊥

    upper_j ≥ k_j + ζ_j(1+|ρ|) + ⟨γ_W,z_W⟩ + ‖z_⊥‖ √(L_j² − ‖γ_W‖²) ≥ k_j + ζ_j(1+|ρ|) − L_j‖z_W‖

The last is attained by a γ in W of length L: it leaves nothing of the norm for what the fallback never measures. If W
is empty, there are no data and the prior bound stays. If even these bounds certify nothing, no amount of fallback data
will, with probability at least 1 − p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.diagnosis.before_data import Before, Tables, alternatives, features_of
from surefoot.diagnosis.diagnosis import Blocked, ColdStart
from surefoot.diagnosis.rank import NEGLIGIBLE, Triangles
from surefoot.estimate.basis import Basis
from surefoot.estimate.blocks import cost_blocks
from surefoot.estimate.costs import CostBounds, turned_lengths
from surefoot.estimate.families import Family
from surefoot.model.arrays import FloatArray, owner
from surefoot.model.features import Features, row_norms
from surefoot.model.graph import LayeredGraph
from surefoot.model.priors import scaled
from surefoot.model.problem import Problem
from surefoot.model.sharing import made_once
from surefoot.plan.certify import Certified, certify
from surefoot.plan.segments import segment_max, spread


@dataclass(frozen=True, eq=False)
class Needs:
    """What it takes to certify each pair and state: −∞ if nothing is needed, ∞ if nothing helps."""

    pairs: tuple[FloatArray, ...]  # H-1 of (N,)
    states: tuple[FloatArray, ...]  # H of (S,)


def needs_of(graph: LayeredGraph, needs: Tables) -> Needs:
    """The recursion above, from the needs of cost rows and of last states. Nothing helps a forbidden state."""
    last = graph.terminal
    kept = last.fallback_reached | ~last.has_cost
    states = [np.where(last.forbidden, np.inf, np.where(kept, -np.inf, needs[-1]))]
    pairs: list[FloatArray] = []
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        later = segment_max(states[0][layer.successor], layer.pair_ptr)
        need = np.maximum(segment_max(needs[h], layer.row_ptr), later)
        need[layer.fallback_pairs()] = -np.inf
        pairs.insert(0, need)
        states.insert(0, np.where(layer.forbidden, np.inf, -segment_max(-need, layer.state_ptr)))
    return Needs(tuple(pairs), tuple(states))


def least_need(graph: LayeredGraph, needs: Needs) -> float:
    """The smallest need of an alternative, ∞ without one."""
    return min(
        float(pairs[alternatives(layer)].min(initial=np.inf))
        for layer, pairs in zip(graph.layers, needs.pairs, strict=True)
    )


def certified_moves(graph: LayeredGraph, certified: Certified) -> tuple[int, ...]:
    """Per decision step: pairs other than the fallback's that are certified and can be reached by certified ones."""
    counts, reached = [], graph.reached_along(certified.pairs)
    for h, layer in enumerate(graph.layers):
        played = certified.pairs[h] & spread(reached[h], layer.state_ptr)
        played[layer.fallback_pairs()] = False
        counts.append(int(played.sum()))
    return tuple(counts)


Span = tuple[Basis, FloatArray]
"""An orthonormal basis, and 1 for each of its directions that is in W."""


def inside(problem: Problem, family: Family, spans: Sequence[Span]) -> Tables:
    """(rows,) ‖z_W‖ of every row; ``spans``: W of each step."""
    graph = problem.graph
    return [
        turned_lengths(features_of(graph, h), graph.anchors[h], family, basis, weights)
        for h, (basis, weights) in enumerate(spans)
    ]


def fallback_spans(problem: Problem, family: Family) -> list[Span]:
    """Per step, the directions that the fallback's own triplets show; of all steps together when stationary."""
    graph, last, blocks = problem.graph, problem.graph.terminal, cost_blocks(problem)
    rows: list[Features] = [y.cost_features[spread(y.played_by_fallback(), y.row_ptr)] for y in graph.layers]
    rows.append(features_of(graph, graph.horizon - 1)[last.fallback_reached & last.has_cost])
    lengths = [float(np.linalg.norm(row_norms(scaled(x, family.width)))) for x in rows]
    steps, spans = range(graph.horizon), list[Span]()
    for r, each in enumerate([steps] if problem.stationary_costs else [range(h, h + 1) for h in steps]):
        triangles = Triangles(blocks, r)
        for h in each:
            triangles.add(rows[h], family, graph.anchors[h])
        # Compared with the length of x, not of z: if z is only rounding, there is nothing to learn.
        spans += [triangles.spanned(NEGLIGIBLE * math.hypot(*(lengths[h] for h in each)))] * len(each)
    return spans


# --- what would help ----------------------------------------------------------------------------------------


class Remedies:
    """Finds the smallest bounds and largest norms with which the first plan leaves the fallback."""

    def __init__(self, problem: Problem, bounds: CostBounds, known: Before) -> None:
        self.problem, self.graph = problem, problem.graph
        self.bounds, self.widths = problem.bounds, known.width
        self.known = known
        last = bounds.terminal_upper
        nothing = np.full((self.graph.terminal.n_states, len(problem.limits)), -np.inf)
        self.upper = [*bounds.upper, nothing if last is None else last]
        self._over = [upper > bound for upper, bound in zip(self.upper, self.bounds, strict=True)]
        keys = [(id(fixed), bound.tobytes()) for fixed, bound in zip(known.fixed, self.bounds, strict=True)]
        self._roofs = made_once(keys, self._roof)

    def smallest_bound(self, j: int) -> float | None:
        """The least c̄_j with everything else unchanged; None if no c̄_j is enough. A bound per step is raised equally
        at all steps; the result is then its largest."""
        own = self.bounds[:, j]
        steps = [0.0] * len(own) if (own == own[0]).all() else (own - own.max()).tolist()
        scores = [upper[:, j] - step for upper, step in zip(self.upper, steps, strict=True)]
        found = least_need(self.graph, needs_of(self.graph, self._unless_others_block(j, scores)))
        lowest = [
            float(anchors.cost[0, j]) - step
            for anchors, step in zip(self.graph.anchors, steps, strict=True)
            if anchors is not None
        ]
        return None if found == np.inf else max([found, *lowest])

    def _roof(self, h: int) -> FloatArray:
        """(rows, m) the largest widths with which each cost row of a step keeps the limits: ∞ where it costs nothing
        and there is room, −∞ where there is none."""
        size, room = self.known.size[h], self.bounds[h] - self.known.fixed[h]
        with np.errstate(divide="ignore", invalid="ignore"):
            roof = np.maximum(room, 0.0) / (size + self.known.rounding[h])
        return np.where(room < 0.0, -np.inf, np.where(size == 0.0, np.inf, roof))

    def largest_width(self, j: int) -> float | None:
        """The largest L_j, or factor on a prior's half-widths, with everything else unchanged; None if none that the
        anchors allow is small enough."""
        scores = [-roof[:, j] for roof in self._roofs]
        found = -least_need(self.graph, needs_of(self.graph, self._unless_others_block(j, scores)))
        return found + 0.0 if found >= self.least_width(j) else None  # + 0.0: no −0

    def least_width(self, j: int) -> float:
        """A known cost c⁰ of x⁰ requires ‖γ‖ ≥ (|c⁰| − ζ − t)/‖x⁰‖; likewise for the half-widths of a prior."""
        prior, asked = self.problem.priors[j], [0.0]
        for anchors in self.graph.anchors:
            if anchors is None:
                continue
            error = self.problem.limits[j].misspecification + anchors.tolerance[:, j]
            off = np.abs(anchors.cost[:, j] - anchors.features @ prior.centre) - error
            scaled = np.abs(anchors.features) * prior.width
            reach = scaled.sum(axis=1) if prior.boxed else np.linalg.norm(scaled, axis=1)
            asked += (off[reach > 0.0] / reach[reach > 0.0]).tolist()
        return max(asked)

    def common_raise(self) -> Needs:
        """By how much all bounds would have to be raised together."""
        excess = [(upper - bound).max(axis=1) for upper, bound in zip(self.upper, self.bounds, strict=True)]
        return needs_of(self.graph, excess)

    def common_factor(self) -> float | None:
        """The largest factor on all norms and half-widths together; None if none is enough."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = [np.where(np.isnan(roof / self.widths), np.inf, roof / self.widths) for roof in self._roofs]
        found = -least_need(self.graph, needs_of(self.graph, [-share.min(axis=1) for share in shares]))
        kept = all(found * width >= self.least_width(j) for j, width in enumerate(self.widths.tolist()))
        return found if found > 0 and kept else None

    def _unless_others_block(self, j: int, scores: Tables) -> Tables:
        """∞ where another limit fails too: changing limit j cannot help there."""
        return [
            np.where(over.sum(axis=1) > over[:, j], np.inf, score)
            for over, score in zip(self._over, scores, strict=True)
        ]


# --- the answer ---------------------------------------------------------------------------------------------


def describe_cold_start(problem: Problem, bounds: CostBounds, certified: Certified, remedies: Remedies) -> ColdStart:
    graph = problem.graph
    moves = sum(certified_moves(graph, certified))
    n = sum(int(alternatives(layer).sum()) for layer in graph.layers)
    if moves:
        return ColdStart(True, True, moves, n)
    needs = remedies.common_raise()
    if n == 0 or least_need(graph, needs) == np.inf:  # then every alternative may enter a forbidden state
        return ColdStart(False, False, 0, n)
    return ColdStart(
        can_move=False,
        can_move_later=fallback_data_may_help(problem, bounds, remedies.known),
        moves=0,
        alternatives=n,
        closest=_closest(problem, remedies, needs),
        all_bounds_raised_by=least_need(graph, needs),
        all_norms_times=remedies.common_factor(),
    )


def fallback_data_may_help(problem: Problem, bounds: CostBounds, known: Before) -> bool:
    """False if no amount of fallback data certifies another action (see the module docstring).

    With a prior, a cost may be as low as the box allows, whatever directions were learned.
    """
    floors = [fixed + known.width * size for fixed, size in zip(known.fixed, known.size, strict=True)]
    for family in known.families:
        spans = fallback_spans(problem, family)
        for h, (part, (_, weights)) in enumerate(zip(inside(problem, family, spans), spans, strict=True)):
            for j, prior in zip(family.members, family.priors, strict=True):
                if weights.any():
                    size = known.size[h][:, j] if prior.boxed else part
                    floors[h][:, j] = known.fixed[h][:, j] - known.width[j] * size
    costed = bounds.terminal_upper is not None
    best = replace(bounds, upper=tuple(floors[:-1]), terminal_upper=floors[-1] if costed else None)
    return sum(certified_moves(problem.graph, certify(problem.graph, best, problem.bounds))) > 0


def _closest(problem: Problem, remedies: Remedies, needs: Needs) -> Blocked:
    """The alternative with the least need, and the cost row or last state that blocks it."""
    graph, naming = problem.graph, problem.naming
    best = least_need(graph, needs)
    tied = [alternatives(layer) & (needs.pairs[h] == best) for h, layer in enumerate(graph.layers)]
    h = next(h for h, mask in enumerate(tied) if mask.any())
    layer, pair = graph.layers[h], int(np.flatnonzero(tied[h])[0])
    (at, row), where = _follow(problem, remedies, needs, h, pair)
    excess = remedies.upper[at][row] - remedies.bounds[at]
    j = int(excess.argmax())
    return Blocked(
        step=h,
        state=naming.states[h][owner(layer.state_ptr, pair)],
        action=naming.action(layer, h, pair),
        limit=problem.limits[j].name,
        excess=float(excess[j]),
        upper=float(remedies.upper[at][row, j]),
        bound=float(problem.bounds[at, j]),
        later=at > h,
        where=where,
    )


def _follow(problem: Problem, remedies: Remedies, needs: Needs, h: int, pair: int) -> tuple[tuple[int, int], str]:
    """((step, row), in words): what decides a pair's need, along the hardest successors and their easiest actions."""
    graph = problem.graph
    while True:
        layer = graph.layers[h]
        edges = layer.edges_of(pair)
        rows = np.arange(layer.row_ptr[pair], layer.row_ptr[pair + 1])
        here = (remedies.upper[h][rows] - remedies.bounds[h]).max(axis=1)
        if not layer.per_triplet:  # the pair's worst row counts towards every successor
            rows, here = np.full(len(edges), rows[here.argmax()]), np.full(len(edges), here.max())
        after = needs.states[h + 1][layer.successors_of(pair)]
        worst = int(np.maximum(here, after).argmax())
        if here[worst] >= after[worst]:
            return (h, int(rows[worst])), problem.naming.at_row(layer, h, int(rows[worst]))
        h, state = h + 1, int(layer.successor[edges[worst]])
        if h == graph.horizon - 1:
            return (h, state), problem.naming.at_state(h, state)
        own = graph.layers[h].pairs_of(state)
        pair = own[int(needs.pairs[h][own].argmin())]
