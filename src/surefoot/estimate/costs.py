"""Lower and upper bounds on the cost of every row: of every triplet or, where costs do not depend on the successor, of
every pair (spec 3 and 9; the paper's Step 1).

With an anchor x⁰ of known cost c⁰ the part of x along x⁰ is known, and only the rest is learned:

    ρ = ⟨x, x⁰⟩ / ‖x⁰‖²,   z = x − ρ x⁰,   k_j = ρ c⁰_j          (eq:estimatesafetyparameter)

and z is looked at in the eigenbasis of the data, w = Uᵀz, where surefoot.estimate.ellipsoids has what is known of γ_j
(eq:estimatesafetyvalue, spec 3):

    upper_j = k_j + min( L_j‖z‖ ,  min_k ⟨centre_kj, w⟩ + radius_kj √Σ weight_kj w² ) + ζ_j (1 + |ρ|) + guard_j ‖x‖

and lower_j likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from surefoot.estimate import kernels
from surefoot.estimate.bank import Bank, Basis, Lens
from surefoot.estimate.blocks import cost_blocks
from surefoot.estimate.ellipsoids import CostConfidence, CostEllipsoids, cost_ellipsoids
from surefoot.estimate.row_bounds import Both, BoundTable, RowBounds
from surefoot.estimate.update import CostState, count_cost, rows_of
from surefoot.model.features import FeatureArray, Features, parts_of, product, row_norms
from surefoot.model.graph import Anchor, BoolArray, FloatArray, IntArray, LayeredGraph, Terminal
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.tolerances import CONTRADICTION


class CostData:
    """All measured costs, as ridge statistics (eq:estimatesafetyparameter): one regression per layer, or one in all."""

    def __init__(self, problem: Problem, ridge: float) -> None:
        graph, m = problem.graph, len(problem.limits)
        self._pooled, self._longest = problem.stationary_costs, graph.largest_cost_norm()
        self.bank = Bank(cost_blocks(problem), m, ridge)
        self.spread = np.zeros(len(self.bank.rows))  # (R,)  Σ (1 + |ρ|)², what a model error can add up to
        # Per layer x⁰, x⁰/‖x⁰‖² and c⁰; zeros where there is no anchor, which projects nothing away.
        self.anchors = np.zeros((problem.horizon, graph.cost_dim))
        self.directions = np.zeros((problem.horizon, graph.cost_dim))
        self.anchor_costs = np.zeros((problem.horizon, m))
        for h, anchor in enumerate(graph.anchors):
            if anchor is not None:
                self.anchors[h], self.directions[h] = known_part(anchor, graph.cost_dim)
                self.anchor_costs[h] = anchor.cost
        self.state = CostState(
            regression=np.array([self.regression(h) for h in range(problem.horizon)]),
            anchors=self.anchors,
            directions=self.directions,
            anchor_costs=self.anchor_costs,
            spread=self.spread,
            bank=self.bank.state,
            shape=self.bank.blocks.shape,
            z=np.empty(self.bank.blocks.largest),
            rest=np.empty(m),
        )

    def regression(self, h: int) -> int:
        return 0 if self._pooled else h

    def add(self, h: int, x: Features, cost: FloatArray) -> None:
        """Count the cost (m,) that was measured at layer h with features x: (dc,), or a table of this one row."""
        count_cost(rows_of(x if isinstance(x, SparseRows) else x.reshape(1, -1)), 0, cost, h, self.state)

    def ellipsoids(self, h: int, limits: tuple[Limit, ...], confidence: CostConfidence) -> CostEllipsoids:
        """:func:`cost_ellipsoids` of the data of step h."""
        r = self.regression(h)
        return cost_ellipsoids(self.bank.turned(r), float(self.spread[r]), self._longest, limits, confidence)


def bound_rows(
    x: Features, anchor: Anchor | None, known: CostEllipsoids, rows: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(upper, lower), each (n, m), of the costs of features x (n, dc); only of the given rows, else (∞, −∞).

    The upper one is c̃ of eq:estimatesafetyvalue (spec 3):

        upper_j = ρ c⁰_j + min(L_j‖z‖, min_k ⟨centre_kj, w⟩ + radius_kj √Σ weight_kj w²) + ζ_j (1 + |ρ|) + guard_j ‖x‖
    """
    shape = len(x), len(known.norms)
    if rows is None:
        rows, upper, lower = np.arange(len(x)), np.empty(shape), np.empty(shape)
    else:
        upper, lower = np.full(shape, np.inf), np.full(shape, -np.inf)
    balls = known.balls
    if anchor is not None:
        balls = balls._replace(anchor_cost=anchor.cost, anchor_length=float(np.linalg.norm(anchor.features)))
    look, blocks = look_at(known.basis, anchor), known.basis.blocks
    kernels.bounds[kernels.worth_threads(x, len(rows))](
        rows_of(x), rows, look, blocks.shape, blocks.largest, balls, upper, lower
    )
    return upper, lower


def turned_lengths(x: Features, anchor: Anchor | None, basis: Basis, weights: FloatArray) -> FloatArray:
    """(rows,) √Σ_i w_i² weights_i with w = Uᵀz, of features x (rows, dc); ‖z‖ for weights that are all 1."""
    out, look, blocks = np.empty(len(x)), look_at(basis, anchor), basis.blocks
    kernels.lengths[kernels.worth_threads(x, len(x))](
        rows_of(x), look, blocks.shape, blocks.largest, weights[None, :], out
    )
    return out


def look_at(basis: Basis, anchor: Anchor | None) -> Lens:
    return basis.lens if anchor is None else basis.lens_beside(*known_part(anchor, basis.blocks.dim))


def uncertainty_rows(x: Features, anchor: Anchor | None, known: CostEllipsoids) -> FloatArray:
    """(rows,) u = ‖z‖ in the inverse data metric of the first ridge: the paper's ‖ψ(U⊥, φ)‖_{Λ⁻¹}."""
    return turned_lengths(x, anchor, known.basis, known.weights[0])


def known_part(anchor: Anchor | None, dim: int) -> tuple[FloatArray, FloatArray]:
    """x⁰ and x⁰/‖x⁰‖², each (dc,); zeros without an anchor, which project nothing away."""
    if anchor is None:
        return np.zeros(dim), np.zeros(dim)
    return anchor.features, anchor.features / float(anchor.features @ anchor.features)


def split(x: FeatureArray, anchor: Anchor | None) -> tuple[FloatArray, FloatArray]:
    """ρ (rows,) and z (rows, dc) of features x (rows, dc); 0 and x itself without an anchor (spec 3)."""
    x = np.asarray(x, np.float64)
    if anchor is None:
        return np.zeros(len(x)), x
    rho = x @ (anchor.features / float(anchor.features @ anchor.features))
    return rho, x - rho[:, None] * anchor.features


def _square(x: Features, along: FloatArray, length: float) -> float:
    """Σ ‖z‖² of rows x, with z beside an anchor of this squared length, x⁰/‖x⁰‖² = along."""
    told = product(x, along)
    return float((row_norms(x) ** 2 - told * told * length).sum())


def mean_square(problem: Problem) -> float:
    """The mean ‖z‖² over all rows that have a cost: the scale of the ridges (spec 3)."""
    graph, last, total, rows = problem.graph, problem.graph.terminal, 0.0, 0
    done: dict[tuple[int, int], float] = {}
    for h, anchor in enumerate(graph.anchors):
        x = graph.layers[h].cost_features if h < len(graph.layers) else last.cost_features
        if x is None:
            continue
        if h == len(graph.layers):
            x = x[last.has_cost]
        key = id(x), id(anchor)
        if key not in done:
            length = 0.0 if anchor is None else float(anchor.features @ anchor.features)
            along = known_part(anchor, graph.cost_dim)[1]
            done[key] = sum(_square(part, along, length) for part in parts_of(x))
        total, rows = total + done[key], rows + len(x)
    return max(total, 0.0) / max(rows, 1)


@dataclass(frozen=True, eq=False)
class CostBounds:
    """What is known of every row's cost at one moment."""

    upper: tuple[FloatArray, ...]  # H-1 of (R, m); of a mapped problem a BoundTable, which reads like an array
    lower: tuple[FloatArray, ...]
    terminal_upper: FloatArray | None  # (S, m); −∞ in states without a cost
    terminal_lower: FloatArray | None
    consistent: bool  # False when some lower bound exceeds its upper: an assumption is wrong


def bound_costs(
    problem: Problem, data: CostData, confidence: CostConfidence, wanted: Sequence[BoolArray] | None = None
) -> CostBounds:
    """Bounds for the cost rows of the graph; layers with the same features and data share the work.

    ``wanted``: per decision layer (R,) the rows to look at, by default all; the others get (−∞, ∞).
    """
    graph, last = problem.graph, problem.graph.terminal
    rows = _wanted_rows(graph, data, wanted)
    tables = [*(layer.cost_features for layer in graph.layers), last.cost_features]
    keys = [(data.regression(h), id(x)) for h, x in enumerate(tables)]
    known: dict[int, CostEllipsoids] = {}
    done: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}
    later: dict[tuple[int, int], RowBounds] = {}
    for h, (x, key) in enumerate(zip(tables, keys, strict=True)):
        if x is None or key in done:
            continue
        if key[0] not in known:
            known[key[0]] = data.ellipsoids(h, problem.limits, confidence)
        if problem.mapped and h < len(graph.layers) and wanted is None:
            bounding = partial(bound_rows, anchor=graph.anchors[h], known=known[key[0]])
            later[key] = RowBounds(x, len(problem.limits), bounding)
            done[key] = cast(Both, (BoundTable(later[key], 0), BoundTable(later[key], 1)))
        else:
            done[key] = bound_rows(x, graph.anchors[h], known[key[0]], rows.get(key))
    upper, lower = (tuple(done[key][i] for key in keys[:-1]) for i in (0, 1))
    last_upper, last_lower = (_where_costed(last, done.get(keys[-1]), i) for i in (0, 1))
    rounding = CONTRADICTION * problem.cost_scales
    consistent = all(kernels.possible(*both, rounding) for key, both in done.items() if key not in later)
    consistent = consistent and all(each.possible(rounding) for each in later.values())
    return CostBounds(upper, lower, last_upper, last_lower, consistent)


def _where_costed(last: Terminal, bounds: tuple[FloatArray, FloatArray] | None, i: int) -> FloatArray | None:
    return None if bounds is None else np.where(last.has_cost[:, None], bounds[i], -np.inf)


def _wanted_rows(
    graph: LayeredGraph, data: CostData, wanted: Sequence[BoolArray] | None
) -> dict[tuple[int, int], IntArray]:
    """The rows to look at, by regression and feature array: what any layer that shares both wants."""
    marks: dict[tuple[int, int], BoolArray] = {}
    for h, mask in enumerate(wanted or ()):
        key = (data.regression(h), id(graph.layers[h].cost_features))
        marks[key] = marks[key] | mask if key in marks else mask
    if graph.terminal.cost_features is not None:  # a table that the last layer shares is wanted whole
        marks.pop((data.regression(graph.horizon - 1), id(graph.terminal.cost_features)), None)
    return {key: np.flatnonzero(mask) for key, mask in marks.items() if not mask.all()}
