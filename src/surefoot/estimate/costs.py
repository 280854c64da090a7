"""Lower and upper bounds on the cost of every row: of every triplet or, if costs do not depend on the successor, of
every pair (spec 3 and 9; the paper's Step 1).

With an anchor x⁰ of known cost c⁰, the part of x along x⁰ is known, and only the rest is learned:

    ρ = ⟨x, x⁰⟩ / ‖x⁰‖²,   z = x − ρ x⁰,   k_j = ρ c⁰_j          (eq:estimatesafetyparameter)

and z is seen in the directions of the whitened data, w = Uᵀz, in which surefoot.estimate.ellipsoids says where γ_j may
lie (eq:estimatesafetyvalue, spec 3):

    upper_j = k_j + min( L_j‖z‖ ,  min_k ⟨centre_kj, w⟩ + radius_kj √Σ weight_kj w² ) + ζ_j (1 + |ρ|) + guard_j ‖x‖

and lower_j likewise. With a prior, δ∘x takes the place of x, k_j gains ⟨m_j, x⟩, and ‖z‖₁ and a declared norm join the
minimum; with several anchors, or tolerances, k_j and the errors are sums over them (surefoot.estimate.families).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.estimate import kernels
from surefoot.estimate.bank import Bank
from surefoot.estimate.basis import Basis, Lens, Turned, Whitened
from surefoot.estimate.blocks import cost_blocks
from surefoot.estimate.ellipsoids import CostConfidence, CostEllipsoids, Spread, Visited, cost_ellipsoids
from surefoot.estimate.families import Family, Known
from surefoot.estimate.row_bounds import Both, BoundTable, RowBounds, possible
from surefoot.estimate.shapes import feature_shapes
from surefoot.estimate.tables import rows_of
from surefoot.estimate.update import CostState, Frames, Visits, count_cost
from surefoot.model.arrays import FloatArray
from surefoot.model.features import FeatureArray, Features
from surefoot.model.graph import Anchors
from surefoot.model.layer import Terminal
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.threads import in_ranges
from surefoot.tolerances import CONTRADICTION

MOST_VISITED = 64  #: rows of a regression whose visits are counted individually


class CostData:
    """All measured costs (eq:estimatesafetyparameter), by family: one regression per layer, or one if stationary."""

    def __init__(self, problem: Problem, ridge: float, families: tuple[Family, ...], *, shaped: float) -> None:
        """``ridge``: of the factors, for rows as they are declared. ``shaped``: above 0, bounds will have a ridge in
        the shape of the features, which is fixed here, before any data."""
        self.families, self._steps = families, 1 if problem.stationary_costs else problem.horizon
        ridges = [ridge * family.ratio for family in families for _ in range(self._steps)]
        self.bank = Bank(cost_blocks(problem, len(families)), len(problem.limits), ridges)
        self.shapes = feature_shapes(problem, families, self.bank.blocks) if shaped > 0.0 else np.empty(0)
        self.spread = np.zeros((len(ridges), 1 + 2 * len(problem.limits)))  # what model errors can add up to
        self.state = self._state(problem)

    def _state(self, problem: Problem) -> CostState:
        horizon, dim, m = problem.horizon, problem.graph.cost_dim, len(problem.limits)
        n = max([1, *(len(each) for each in problem.graph.anchors if each is not None)])
        steps = len(self.families) * horizon
        frames = Frames(np.zeros((steps + 1, n, dim)), np.zeros((steps + 1, n, dim)), np.ones((steps + 1, dim)))
        known, tolerances, centres = np.zeros((steps, n, m)), np.zeros((steps, n, m)), np.zeros((m, dim))
        of = np.empty(m, np.int64)
        for f, family in enumerate(self.families):
            own = list(family.members)
            of[own], centres[own] = f, family.centres
            for h, anchors in enumerate(problem.graph.anchors):
                at, each = f * horizon + h, family.known(anchors)
                frames.widths[at] = family.width
                if each is not None:  # where there are fewer anchors, zeros project nothing away
                    rows = slice(0, len(each.anchors))
                    frames.anchors[at, rows], frames.directions[at, rows] = each.anchors, each.directions
                    known[at, rows, own], tolerances[at, rows, own] = each.costs.T, each.tolerances.T
        return CostState(
            regression=np.array([self.regression(h, f) for f in range(len(self.families)) for h in range(horizon)]),
            families=len(self.families),
            family=of,
            frames=frames,
            anchor_costs=known,
            tolerances=tolerances,
            centres=centres,
            centred=np.any(centres != 0.0, axis=1),
            spread=self.spread,
            bank=self.bank.state,
            shape=self.bank.blocks.shape,
            z=np.empty(self.bank.blocks.largest),
            rest=np.empty(m),
            rho=np.empty(n),
            visits=self._visits(problem),
            raw=np.empty(self.bank.blocks.largest),
            off=np.empty(1 + m),
        )

    def _visits(self, problem: Problem) -> Visits:
        told = any(each is not None and each.tolerance.any() for each in problem.graph.anchors)
        some = told or any(limit.misspecification > 0.0 for family in self.families for limit in family.limits)
        n, v, size = len(self.spread), MOST_VISITED if some else 0, self.bank.blocks.largest
        return Visits(
            raw=np.zeros((n, v, size)),
            z=np.zeros((n, v, size)),
            block=np.zeros((n, v), np.int64),
            off=np.zeros((n, v, 1 + len(problem.limits))),
            times=np.zeros((n, v), np.int64),
            rest=np.zeros_like(self.spread),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that a checkpoint must keep."""
        visits = self.state.visits
        counted = {f"visits/{name}": array for name, array in visits._asdict().items() if visits.times.size}
        return {**self.bank.arrays(), "spread": self.spread, "shapes": self.shapes, **counted}

    def regression(self, h: int, family: int = 0) -> int:
        return family * self._steps + (0 if self._steps == 1 else h)

    def family_of(self, j: int) -> int:
        """The number of a limit's family."""
        return int(self.state.family[j])

    def add(self, h: int, x: Features, cost: FloatArray) -> None:
        """Count the cost (m,) measured at layer h with features x: (dc,), or a table of one row."""
        count_cost(rows_of(x if isinstance(x, SparseRows) else x.reshape(1, -1)), 0, cost, h, self.state)

    def ellipsoids(self, h: int, confidence: CostConfidence, family: int = 0) -> CostEllipsoids:
        """:func:`cost_ellipsoids` of a family, from the data of step h."""
        r = self.regression(h, family)
        return cost_ellipsoids(self.learned(r, confidence), self.spread_of(r), self.families[family], confidence)

    def learned(self, r: int, confidence: CostConfidence, times: float = 1.0) -> Turned | Whitened:
        """Regression r, with ``times`` its data, as bounds use it."""
        if confidence.shaped == 0.0:
            turned = self.bank.turned(r)
            return replace(turned, eigenvalues=times * turned.eigenvalues, targets=times * turned.targets)
        (ridge,) = confidence.ridges_of(self.families[r // self._steps])
        return self.bank.whitened(r, self.shapes, ridge, times)

    def spread_of(self, r: int) -> Spread:
        """What the model errors in the rows of regression r can add up to."""
        visits, rows = self.state.visits, int(self.bank.rows[r])
        some = visits.times[r] > 0
        z, block, off, times = (each[r][some] for each in (visits.z, visits.block, visits.off, visits.times))
        visited = Visited(z, block, off, times, Spread.of(visits.rest[r], rows)) if some.any() else None
        return replace(Spread.of(self.spread[r], rows), visited=visited)

    def follow(self, other: CostData) -> None:
        """Take over the data of another declaration. If that had no model errors, and so counted no visits, its rows
        are not counted individually here."""
        if not other.state.visits.times.size:
            self.state.visits.rest[...] = self.spread


def bound_rows(x: Features, anchors: Anchors | None, known: CostEllipsoids) -> tuple[FloatArray, FloatArray]:
    """(upper, lower), each (n, m), on the costs of features x (n, dc) for the m limits of a family. The upper one is c̃
    of eq:estimatesafetyvalue (spec 3)."""
    rows, (upper, lower) = np.arange(len(x)), (np.empty((len(x), len(known.norms))) for _ in range(2))
    balls, beside = known.balls, known.family.known(anchors)
    if beside is not None:
        balls = balls._replace(
            anchor_costs=np.ascontiguousarray(beside.costs),
            tolerances=np.ascontiguousarray(beside.tolerances),
            anchor_lengths=np.array([float(np.linalg.norm(row)) for row in beside.anchors]),
        )
    look, table = look_at(known.basis, beside, known.family), rows_of(x)

    def some(first: int, end: int) -> None:
        kernels.bound(table, rows[first:end], look, balls, upper, lower)

    in_ranges(len(rows), kernels.worth_threads(x, len(rows)), some)
    return upper, lower


def turned_lengths(
    x: Features, anchors: Anchors | None, family: Family, basis: Basis, weights: FloatArray
) -> FloatArray:
    """(rows,) √Σ_i w_i² weights_i with w = Uᵀz, of features x (rows, dc)."""
    out, look = np.empty(len(x)), look_at(basis, family.known(anchors), family)
    table, weights = rows_of(x), weights[None, :]

    def some(first: int, end: int) -> None:
        kernels.length(table, first, end, look, weights, out)

    in_ranges(len(x), kernels.worth_threads(x, len(x)), some)
    return out


def look_at(basis: Basis, known: Known | None, family: Family) -> Lens:
    """The lens for rows as they are, beside one anchor, or scaled and beside several; computed once."""
    if (known, family) not in basis.looks:
        basis.looks[known, family] = _lens(basis, known, family)
    found: Lens = basis.looks[known, family]
    return found


def _lens(basis: Basis, known: Known | None, family: Family) -> Lens:
    if family.plain and (known is None or len(known.anchors) == 1):
        return basis.lens if known is None else basis.lens_beside(known.anchors[0], known.directions[0])
    nothing = np.zeros((1, len(family.width)))
    anchors, directions = (nothing, nothing) if known is None else (known.anchors, known.directions)
    return basis.lens_through(anchors, directions, family.width)


def uncertainty_rows(x: Features, anchors: Anchors | None, known: CostEllipsoids) -> FloatArray:
    """(rows,) u = ‖z‖ in the inverse data metric of the first ridge: the paper's ‖ψ(U⊥, φ)‖_{Λ⁻¹}."""
    return turned_lengths(x, anchors, known.family, known.basis, known.weights[0])


def split(x: FeatureArray, family: Family, known: Known | None) -> tuple[FloatArray, FloatArray]:
    """ρ (rows, n) and z (rows, dc) of features x (rows, dc); (rows, 0) and δ∘x without an anchor (spec 3)."""
    x = np.asarray(x, np.float64)
    if known is None:
        return np.zeros((len(x), 0)), x * family.width
    rho = x @ known.directions.T
    return rho, x * family.width - rho @ known.anchors


@dataclass(frozen=True, eq=False)
class CostBounds:
    """What is known of every row's cost at one moment."""

    upper: tuple[FloatArray, ...]  # H-1 of (R, m); of a mapped problem a BoundTable, which reads like an array
    lower: tuple[FloatArray, ...]
    terminal_upper: FloatArray | None  # (S, m); −∞ in states without a cost
    terminal_lower: FloatArray | None
    consistent: bool  # False if some lower bound exceeds its upper: an assumption is wrong
    known: tuple[list[CostEllipsoids] | None, ...] = ()  # H: where γ may lie, by family
    anchors: tuple[Anchors | None, ...] = ()  # H

    def at(self, h: int, x: Features) -> tuple[FloatArray, FloatArray]:
        """(upper, lower), each (n, m), of exact rows x (n, dc) of step h, which are not in the graph (spec 9)."""
        known = self.known[h]
        assert known is not None
        return _by_limit([bound_rows(x, self.anchors[h], each) for each in known], [each.family for each in known])

    def worst(self, h: int, x: FloatArray) -> FloatArray:
        """(n, m) the largest upper bound of the rows x (n, R, dc) of each of n actions, likewise."""
        upper = self.at(h, x.reshape(-1, x.shape[2]))[0]
        return np.asarray(upper.reshape(*x.shape[:2], -1).max(axis=1))


Look = Callable[[CostBounds, FloatArray], bool]
"""(bounds of rows that were not computed yet, rounding (m,)) → does no lower bound exceed its upper by more?"""


def bound_costs(
    problem: Problem,
    data: CostData,
    confidence: CostConfidence,
    look: Look | None = None,
) -> CostBounds:
    """Bounds for the cost rows of the graph; layers with the same features and data share the work.

    ``look``: computes all rows of the decision layers once, if that is not done here. For a mapped problem, or one that
    many processes plan, bounds are then computed on demand and not kept.
    """
    graph, last = problem.graph, problem.graph.terminal
    tables = [*(layer.cost_features for layer in graph.layers), last.cost_features]
    keys = [(data.regression(h), id(x)) for h, x in enumerate(tables)]
    known: dict[int, list[CostEllipsoids]] = {}
    done: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}
    later: dict[tuple[int, int], RowBounds] = {}
    for h, (x, key) in enumerate(zip(tables, keys, strict=True)):
        if x is None or key in done:
            continue
        if key[0] not in known:
            known[key[0]] = [data.ellipsoids(h, confidence, f) for f in range(len(data.families))]
        bounding = partial(bound_all, anchors=graph.anchors[h], known=known[key[0]], families=data.families)
        if (problem.mapped or look) and h < len(graph.layers):
            own = [i for i, other in enumerate(keys[:-1]) if other == key]
            later[key] = RowBounds(x, problem.bounds[own], bounding)
            done[key] = cast(Both, (BoundTable(later[key], 0), BoundTable(later[key], 1)))
        else:
            done[key] = bounding(x)
    upper, lower = (tuple(done[key][i] for key in keys[:-1]) for i in (0, 1))
    last_upper, last_lower = (where_costed(last, done.get(keys[-1]), i) for i in (0, 1))
    rounding = CONTRADICTION * problem.cost_scales
    consistent = all(possible(*both, rounding) for key, both in done.items() if key not in later)
    found = tuple(known.get(data.regression(h)) for h in range(graph.horizon))
    bounds = CostBounds(upper, lower, last_upper, last_lower, consistent, found, graph.anchors)
    looked = [each.look(rounding) for each in later.values()] if look is None else [look(bounds, rounding)]
    return replace(bounds, consistent=all([consistent, *looked]))  # a list: every table is checked


def bound_all(x: Features, anchors: Anchors | None, known: list[CostEllipsoids], families: Sequence[Family]) -> Both:
    """:func:`bound_rows` for the limits of all families."""
    return _by_limit([bound_rows(x, anchors, each) for each in known], families)


def _by_limit(parts: list[tuple[FloatArray, FloatArray]], families: Sequence[Family]) -> tuple[FloatArray, FloatArray]:
    """The bounds of all families side by side, in the order of the problem's limits."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort([j for family in families for j in family.members])
    upper, lower = (np.ascontiguousarray(np.hstack([part[i] for part in parts])[:, order]) for i in (0, 1))
    return upper, lower


def where_costed(last: Terminal, bounds: Both | None, i: int) -> FloatArray | None:
    """(S, m) the upper (i = 0) or lower bounds of the last states, −∞ in states without a cost."""
    return None if bounds is None else np.where(last.has_cost[:, None], bounds[i], -np.inf)
