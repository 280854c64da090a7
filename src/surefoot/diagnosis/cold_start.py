"""Can the first plan, made before any data, leave the fallback? If not, what is nearest, and what would help?

Before any data (spec 3)   upper_j = k_j + ζ_j(1 + |ρ|) + L_j‖z‖,   and certification (spec 4) asks upper_j ≤ c̄_j
of every cost row that may follow. Both are monotone in c̄_j and in L_j, so one backward sweep finds what it takes:

    need(s,a) = max over s' of max( need(s,a,s'), need(s') ),   need(s) = min over a of need(s,a),   −∞ for the fallback

With need(s,a,s') = upper_j this is the smallest c̄_j that certifies (s,a); with −(c̄_j − k_j − ζ_j(1+|ρ|))/‖z‖ it is
minus the largest such L_j. The first step off the fallback is taken where the fallback comes: the least need there
decides.

**After the fallback's data.** Until it moves, all data are the fallback's. Their z span a subspace W, and say nothing
of γ across it: with γ, on the event of (S3), every γ' of the same part γ_W in W and of length L or less is possible
too. Every bound is one over a set that contains these, so with z = z_W + z_⊥

    upper_j ≥ k_j + ζ_j(1+|ρ|) + ⟨γ_W,z_W⟩ + ‖z_⊥‖ √(L_j² − ‖γ_W‖²) ≥ k_j + ζ_j(1+|ρ|) − L_j‖z_W‖

where the last is reached by a γ that lies in W and is as long as can be: data that show that leave nothing of the norm
for what the fallback never measures. Where W is empty there are no data, and the prior bound stays. If even these
certify nothing, no amount of fallback data will, with probability at least 1 − p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.diagnosis.diagnosis import Blocked, ColdStart
from surefoot.diagnosis.rank import slices, span, triangle
from surefoot.diagnosis.triangles import NEGLIGIBLE, Triangles, no_directions
from surefoot.estimate.bank import Basis
from surefoot.estimate.blocks import Blocks, cost_blocks
from surefoot.estimate.costs import CostBounds, known_part, split, turned_lengths
from surefoot.estimate.ellipsoids import prior_guard
from surefoot.model.features import Features, row_norms
from surefoot.model.graph import NO_ACTION, Anchor, BoolArray, FloatArray, Layer, LayeredGraph
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan.certify import Certified, certify
from surefoot.plan.segments import segment_max

Tables = list[FloatArray]
"""One array per decision layer, rows = cost rows; then one for the last layer, rows = states."""


@dataclass(frozen=True, eq=False)
class Needs:
    """What it takes to certify each pair and state; −∞ where nothing is needed, ∞ where nothing helps."""

    pairs: tuple[FloatArray, ...]  # H-1 of (N,)
    states: tuple[FloatArray, ...]  # H of (S,)


def backward(graph: LayeredGraph, needs: Tables) -> Needs:
    """The recursion above, from the needs of cost rows and of last states; nothing helps a forbidden state."""
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


def alternatives(layer: Layer) -> BoolArray:
    """(N,) the actions beyond the fallback's in states that the fallback reaches."""
    mask = np.repeat(layer.fallback != NO_ACTION, np.diff(layer.state_ptr))
    mask[layer.fallback_pairs()] = False
    return mask


def least(graph: LayeredGraph, needs: Needs) -> float:
    """The smallest need of an alternative, ∞ without one."""
    return min(
        float(pairs[alternatives(layer)].min(initial=np.inf))
        for layer, pairs in zip(graph.layers, needs.pairs, strict=True)
    )


def certified_moves(graph: LayeredGraph, certified: Certified) -> tuple[int, ...]:
    """Per decision step: pairs beyond the fallback's that are certified and reached by certified ones."""
    reached = np.zeros(graph.n_states(0), bool)
    reached[graph.starts] = True
    counts = []
    for h, layer in enumerate(graph.layers):
        played = certified.pairs[h] & np.repeat(reached, np.diff(layer.state_ptr))
        reached = np.zeros(graph.n_states(h + 1), bool)
        reached[layer.successor[np.repeat(played, np.diff(layer.pair_ptr))]] = True
        played[layer.fallback_pairs()] = False
        counts.append(int(played.sum()))
    return tuple(counts)


# --- what the prior bound is made of ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prior:
    """upper = fixed + L·(size + rounding) before any data."""

    fixed: Tables  # (rows, m)   k + ζ(1 + |ρ|)
    size: Tables  # (rows,)     ‖z‖
    rounding: Tables  # (rows,)  the guard


def prior(problem: Problem) -> Prior:
    """The two parts of every row's prior bound; steps with the same features and anchor share them."""
    graph = problem.graph
    errors = np.array([limit.misspecification for limit in problem.limits])
    done: dict[tuple[int, bytes], tuple[FloatArray, FloatArray, FloatArray]] = {}
    tables = [_features(graph, h) for h in range(graph.horizon)]
    result = Prior([], [], [])
    blocks = cost_blocks(problem) if isinstance(tables[0], SparseRows) else None
    for h, (x, anchor) in enumerate(zip(tables, graph.anchors, strict=True)):
        key = id(x), b"" if anchor is None else anchor.features.tobytes() + anchor.cost.tobytes()
        if key not in done:
            parts = _prior(x, anchor, errors, blocks, 0 if problem.stationary_costs else h)
            done[key] = *parts, prior_guard(graph.cost_dim) * math.sqrt(2.0) * row_norms(x)  # ‖z‖ + |ρ|‖x⁰‖
        for table, part in zip((result.fixed, result.size, result.rounding), done[key], strict=True):
            table.append(part)
    return result


def _prior(
    x: Features, anchor: Anchor | None, errors: FloatArray, blocks: Blocks | None, regression: int
) -> tuple[FloatArray, FloatArray]:
    fixed, size = np.empty((len(x), len(errors))), np.empty(len(x))
    if isinstance(x, SparseRows):
        assert blocks is not None
        rho = x @ known_part(anchor, x.dim)[1]
        lengths = turned_lengths(x, anchor, no_directions(blocks, regression), np.ones(1))
        size[:] = np.where(lengths <= NEGLIGIBLE * row_norms(x), 0.0, lengths)
        fixed[:] = errors * (1.0 + np.abs(rho))[:, None]
        if anchor is not None:
            fixed += rho[:, None] * anchor.cost
        return fixed, size
    for rows in slices(x):
        rho, z = split(x[rows], anchor)
        lengths = np.linalg.norm(z, axis=1)
        size[rows] = np.where(
            lengths <= NEGLIGIBLE * np.linalg.norm(np.asarray(x[rows], np.float64), axis=1), 0.0, lengths
        )
        fixed[rows] = errors * (1.0 + np.abs(rho))[:, None]
        if anchor is not None:
            fixed[rows] += rho[:, None] * anchor.cost
    return fixed, size


Span = FloatArray | tuple[Basis, FloatArray]
"""An orthonormal basis of W (dc, rank); of sparse features, one of every block and 1 for the directions in W."""


def inside(problem: Problem, bases: Sequence[Span]) -> Tables:
    """(rows,) ‖z_W‖ of every row; ``bases``: per step that of W."""
    graph = problem.graph
    result = []
    for h, basis in enumerate(bases):
        x = _features(graph, h)
        if isinstance(x, SparseRows):
            assert isinstance(basis, tuple)
            result.append(turned_lengths(x, graph.anchors[h], *basis))
            continue
        assert not isinstance(basis, tuple)
        lengths = [np.linalg.norm(split(x[rows], graph.anchors[h])[1] @ basis, axis=1) for rows in slices(x)]
        result.append(np.concatenate(lengths))
    return result


def _features(graph: LayeredGraph, h: int) -> Features:
    if h < len(graph.layers):
        return graph.layers[h].cost_features
    last = graph.terminal
    if last.cost_features is not None:
        return last.cost_features
    if isinstance(graph.layers[0].cost_features, SparseRows):
        return SparseRows(np.zeros(last.n_states + 1, np.int64), np.empty(0, np.int32), np.empty(0), graph.cost_dim)
    return np.zeros((last.n_states, graph.cost_dim))


def fallback_spans(problem: Problem) -> Sequence[Span]:
    """Per step the directions that the fallback's own triplets can teach, pooled when stationary."""
    graph = problem.graph
    rows: list[Features] = []
    for layer in graph.layers:
        played = np.zeros(layer.n_pairs, bool)
        played[layer.fallback_pairs()] = True
        rows.append(layer.cost_features[np.repeat(played, np.diff(layer.row_ptr))])
    last = graph.terminal
    rows.append(_features(graph, graph.horizon - 1)[last.fallback_reached & last.has_cost])
    sparse, dense = _kinds(rows)
    if sparse:
        return _block_spans(problem, sparse)
    if problem.stationary_costs:
        everything = _span(np.vstack(dense), graph.anchors[0])
        return [everything] * graph.horizon
    return [_span(x, graph.anchors[h]) for h, x in enumerate(dense)]


def _kinds(tables: Sequence[Features]) -> tuple[list[SparseRows], list[FloatArray]]:
    """All tables are of one kind, so one of the two lists is empty."""
    sparse = [x for x in tables if isinstance(x, SparseRows)]
    return sparse, [np.asarray(x, np.float64) for x in tables if not isinstance(x, SparseRows)]


def _block_spans(problem: Problem, rows: Sequence[SparseRows]) -> list[tuple[Basis, FloatArray]]:
    anchors, blocks = problem.graph.anchors, cost_blocks(problem)
    layers = range(problem.horizon)
    spans = []
    for r, each in enumerate([layers] if problem.stationary_costs else [range(h, h + 1) for h in layers]):
        triangles = Triangles(blocks, r)
        for h in each:
            triangles.add(rows[h], anchors[h])
        length = math.hypot(*(float(np.linalg.norm(rows[h].values)) for h in each))
        spans += [triangles.spanned(NEGLIGIBLE * length)] * len(each)
    return spans


def _span(x: FloatArray, anchor: Anchor | None) -> FloatArray:
    if len(x) == 0:
        return np.empty((x.shape[1], 0))
    # Measured against x, not z: where z is all rounding there is nothing to learn.
    return span(triangle([split(x, anchor)[1]]), float(np.linalg.norm(x)))


# --- what would help ----------------------------------------------------------------------------------------


class Remedies:
    """The smallest bounds and largest norms with which the first plan leaves the fallback."""

    def __init__(self, problem: Problem, bounds: CostBounds, known: Prior) -> None:
        self.problem, self.graph = problem, problem.graph
        self.bounds = np.array([limit.bound for limit in problem.limits])
        self.norms = np.array([limit.norm for limit in problem.limits])
        self.known = known
        self.upper = [*bounds.upper, _last_upper(problem, bounds)]
        self._over = [upper > self.bounds for upper in self.upper]
        roofs: dict[int, FloatArray] = {}
        for fixed, size, rounding in zip(known.fixed, known.size, known.rounding, strict=True):
            if id(fixed) not in roofs:
                roofs[id(fixed)] = _largest_norms(self.bounds - fixed, np.where(size > 0.0, size + rounding, 0.0))
        self._roofs = [roofs[id(fixed)] for fixed in known.fixed]

    def smallest_bound(self, j: int) -> float | None:
        """The least c̄_j, all else kept; None if no c̄_j would do."""
        scores = [upper[:, j] for upper in self.upper]
        found = least(self.graph, backward(self.graph, self._unless_others_block(j, scores)))
        lowest = [float(anchor.cost[j]) for anchor in self.graph.anchors if anchor is not None]
        return None if found == np.inf else max([found, *lowest])

    def largest_norm(self, j: int) -> float | None:
        """The largest L_j, all else kept; None if none would do that the anchors leave possible."""
        scores = [-roof[:, j] for roof in self._roofs]
        found = -least(self.graph, backward(self.graph, self._unless_others_block(j, scores)))
        return found + 0.0 if found >= self.least_norm(j) else None  # + 0.0: no −0

    def least_norm(self, j: int) -> float:
        """A known cost c⁰ of x⁰ asks for ‖γ‖ ≥ (|c⁰| − ζ)/‖x⁰‖."""
        error = self.problem.limits[j].misspecification
        asked = [
            (abs(float(anchor.cost[j])) - error) / float(np.linalg.norm(anchor.features))
            for anchor in self.graph.anchors
            if anchor is not None
        ]
        return max([0.0, *asked])

    def common_raise(self) -> Needs:
        """By how much all bounds would have to grow together."""
        return backward(self.graph, [(upper - self.bounds).max(axis=1) for upper in self.upper])

    def common_factor(self) -> float | None:
        """The largest factor on all norms together; None if none would do."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = [np.where(np.isnan(roof / self.norms), np.inf, roof / self.norms) for roof in self._roofs]
        found = -least(self.graph, backward(self.graph, [-share.min(axis=1) for share in shares]))
        kept = all(found * norm >= self.least_norm(j) for j, norm in enumerate(self.norms.tolist()))
        return found if found > 0 and kept else None

    def _unless_others_block(self, j: int, scores: Tables) -> Tables:
        """∞ where another limit fails its own test: changing limit j cannot help there."""
        return [
            np.where(over.sum(axis=1) > over[:, j], np.inf, score)
            for over, score in zip(self._over, scores, strict=True)
        ]


def _largest_norms(room: FloatArray, size: FloatArray) -> FloatArray:
    """(rows, m) the largest L with L·size ≤ room: ∞ where size is 0 and there is room, −∞ where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        roof = np.maximum(room, 0.0) / size[:, None]
    result: FloatArray = np.where(room < 0.0, -np.inf, np.where(size[:, None] == 0, np.inf, roof))
    return result


def _last_upper(problem: Problem, bounds: CostBounds) -> FloatArray:
    if bounds.terminal_upper is None:
        return np.full((problem.graph.terminal.n_states, len(problem.limits)), -np.inf)
    return bounds.terminal_upper


# --- the answer ---------------------------------------------------------------------------------------------


def describe_cold_start(problem: Problem, bounds: CostBounds, certified: Certified, remedies: Remedies) -> ColdStart:
    graph = problem.graph
    moves = sum(certified_moves(graph, certified))
    n = sum(int(alternatives(layer).sum()) for layer in graph.layers)
    if moves:
        return ColdStart(True, moves, n, None, None, None, "not needed")
    if n == 0:
        return ColdStart(False, 0, 0, None, None, None, "impossible")
    needs = remedies.common_raise()
    if least(graph, needs) == np.inf:  # every alternative may enter a forbidden state
        return ColdStart(False, 0, n, None, None, None, "impossible")
    return ColdStart(
        can_move=False,
        moves=0,
        alternatives=n,
        closest=_closest(problem, remedies, needs),
        all_bounds_raised_by=least(graph, needs),
        all_norms_times=remedies.common_factor(),
        opens_with_fallback_data="possible"
        if fallback_data_may_help(problem, bounds, remedies.known)
        else "impossible",
    )


def fallback_data_may_help(problem: Problem, bounds: CostBounds, known: Prior) -> bool:
    """False: no amount of fallback data certifies an action beyond the fallback's (see the module's text)."""
    norms = np.array([limit.norm for limit in problem.limits])
    spans = fallback_spans(problem)
    floors = [
        fixed + norms * (-part if _some(basis) else size)[:, None]
        for fixed, size, part, basis in zip(known.fixed, known.size, inside(problem, spans), spans, strict=True)
    ]
    costed = bounds.terminal_upper is not None
    best = replace(bounds, upper=tuple(floors[:-1]), terminal_upper=floors[-1] if costed else None)
    return sum(certified_moves(problem.graph, certify(problem.graph, best, problem.limits))) > 0


def _some(basis: Span) -> bool:
    """Is there a direction in W?"""
    return bool(basis[1].any()) if isinstance(basis, tuple) else basis.shape[1] > 0


def _closest(problem: Problem, remedies: Remedies, needs: Needs) -> Blocked:
    """The alternative of least need, and the cost row or last state that it stumbles over."""
    graph, naming = problem.graph, problem.naming
    best = least(graph, needs)
    tied = [alternatives(layer) & (needs.pairs[h] == best) for h, layer in enumerate(graph.layers)]
    h = next(h for h, mask in enumerate(tied) if mask.any())
    layer, pair = graph.layers[h], int(np.flatnonzero(tied[h])[0])
    (at, row), where = _follow(problem, remedies, needs, h, pair)
    excess = remedies.upper[at][row] - remedies.bounds
    j = int(excess.argmax())
    return Blocked(
        step=h,
        state=naming.states[h][int(np.searchsorted(layer.state_ptr, pair, side="right")) - 1],
        action=naming.action(layer, h, pair),
        limit=problem.limits[j].name,
        excess=float(excess[j]),
        upper=float(remedies.upper[at][row, j]),
        bound=problem.limits[j].bound,
        later=at > h,
        where=where,
    )


def _follow(problem: Problem, remedies: Remedies, needs: Needs, h: int, pair: int) -> tuple[tuple[int, int], str]:
    """((step, row), in words) of what decides a pair's need, along the hardest successors' easiest actions."""
    graph = problem.graph
    while True:
        layer = graph.layers[h]
        edges = np.arange(layer.pair_ptr[pair], layer.pair_ptr[pair + 1])
        rows = np.arange(layer.row_ptr[pair], layer.row_ptr[pair + 1])
        here = (remedies.upper[h][rows] - remedies.bounds).max(axis=1)
        if not layer.per_triplet:  # the pair's worst row counts towards every successor
            rows, here = np.full(len(edges), rows[here.argmax()]), np.full(len(edges), here.max())
        after = needs.states[h + 1][layer.successor[edges]]
        worst = int(np.maximum(here, after).argmax())
        if here[worst] >= after[worst]:
            return (h, int(rows[worst])), problem.naming.at_row(layer, h, int(rows[worst]))
        h, state = h + 1, int(layer.successor[edges[worst]])
        if h == graph.horizon - 1:
            return (h, state), problem.naming.at_state(h, state)
        own = slice(int(graph.layers[h].state_ptr[state]), int(graph.layers[h].state_ptr[state + 1]))
        pair = own.start + int(needs.pairs[h][own].argmin())
