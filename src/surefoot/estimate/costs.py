"""Lower and upper bounds on the cost of every triplet (spec 3; the paper's Step 1).

With an anchor x⁰ of known cost c⁰ the part of x along x⁰ is known, and only the rest is learned:

    ρ = ⟨x, x⁰⟩ / ‖x⁰‖²,   z = x − ρ x⁰,   k_j = ρ c⁰_j          (eq:estimatesafetyparameter)

For every ridge λ of a small grid, A = λI + Σ z zᵀ, γ̂_j = A⁻¹ b_j and u = √(zᵀA⁻¹z) give (eq:estimatesafetyvalue)

    upper_j = k_j + min( L_j‖z‖ ,  min_λ ⟨γ̂_j, z⟩ + radius_λj u ),    lower_j = k_j + max( −L_j‖z‖ , … − … )

One eigendecomposition Σ z zᵀ = U diag(e) Uᵀ serves all λ: with w = Uᵀz, u² = Σ w_i² / (e_i + λ) and ‖z‖ = ‖w‖.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.estimate import block_kernels, kernels
from surefoot.estimate.block_bank import BlockBank, TurnedBlocks
from surefoot.estimate.blocks import cost_blocks
from surefoot.estimate.counting import CostState, compiled, count_cost
from surefoot.estimate.ridge import RidgeBank, turned
from surefoot.model.features import FeatureArray, Features, pieces
from surefoot.model.graph import Anchor, BoolArray, FloatArray, IntArray, LayeredGraph
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.tolerances import CONTRADICTION

RadiusRule = Callable[[float, float, Limit], float]
"""(logdet(A) − d log λ, λ, limit) → the radius of that limit's ellipsoid."""

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CostConfidence:
    """How wide the bounds are. Nothing here has a default: a safety constant must be passed on."""

    ridges: tuple[float, ...]
    radius: RadiusRule
    prior: bool  # use |cost| ≤ L‖z‖, known before any data
    scale: float  # on the radius; anything below 1 voids the guarantee


class CostData:
    """All measured costs, as ridge statistics (eq:estimatesafetyparameter): one regression per layer, or one in all."""

    def __init__(self, problem: Problem, ridge: float) -> None:
        graph, m = problem.graph, len(problem.limits)
        self._pooled = problem.stationary_costs
        n = 1 if self._pooled else problem.horizon
        self.bank: RidgeBank | BlockBank
        self.spread = np.zeros(n)  # (R,)  Σ (1 + |ρ|)², what a model error can add up to
        # Per layer x⁰, x⁰/‖x⁰‖² and c⁰; zeros where there is no anchor, which projects nothing away.
        self.anchors = np.zeros((problem.horizon, graph.cost_dim))
        self.directions = np.zeros((problem.horizon, graph.cost_dim))
        self.anchor_costs = np.zeros((problem.horizon, m))
        for h, anchor in enumerate(graph.anchors):
            if anchor is not None:
                self.anchors[h], self.directions[h] = known_part(anchor, graph.cost_dim)
                self.anchor_costs[h] = anchor.cost
        if isinstance(graph.layers[0].cost_features, SparseRows):
            blocks = cost_blocks(problem)
            self.bank, room = BlockBank(blocks, m, ridge), blocks.largest
        else:
            self.bank, room = RidgeBank(n, graph.cost_dim, m, ridge), graph.cost_dim
        self.state = CostState(
            regression=np.array([self.regression(h) for h in range(problem.horizon)]),
            anchors=self.anchors,
            directions=self.directions,
            anchor_costs=self.anchor_costs,
            spread=self.spread,
            bank=self.bank.state,
            z=np.empty(room),
            rest=np.empty(m),
        )

    def regression(self, h: int) -> int:
        return 0 if self._pooled else h

    def add(self, h: int, x: Features, cost: FloatArray) -> None:
        """Count the measured cost (m,) of a triplet at layer h with features x: (dc,), or a table of this one row."""
        table = x if isinstance(x, SparseRows) else x.reshape(1, -1)
        if isinstance(self.bank, BlockBank) and not isinstance(table, SparseRows):
            table = SparseRows.from_dense(np.asarray(table, np.float64))
        count_cost(compiled(table), 0, cost, h, *self.state)

    def ellipsoids(self, h: int, limits: tuple[Limit, ...], confidence: CostConfidence) -> CostEllipsoids:
        r = self.regression(h)
        dim, spread = self.anchors.shape[1], float(self.spread[r])
        return _ellipsoids(self.bank.turned(r), dim, spread, limits, confidence)


@dataclass(frozen=True, eq=False)
class CostEllipsoids:
    """Where the unknown γ_j may lie: one ellipsoid per ridge, in the eigenbasis of the data. (n ridges)

    With sparse features the eigenvectors, here dc of them, are those of blocks with data, and one for all the rest.
    """

    basis: FloatArray | TurnedBlocks  # (dc, dc)    U
    weights: FloatArray  # (n, dc)   1 / (e + λ)
    centres: FloatArray  # (n, m, dc)   Uᵀ γ̂
    radii: FloatArray  # (n, m)      with the model error
    guards: FloatArray  # (n, m)     added to the radii: rounding never certifies, and never contradicts
    norms: FloatArray  # (m,)        L, or ∞ where the prior bound is not used
    errors: FloatArray  # (m,)       ζ


def cost_ellipsoids(
    gram: FloatArray,
    targets: FloatArray,
    spread: float,
    limits: tuple[Limit, ...],
    confidence: CostConfidence,
) -> CostEllipsoids:
    """(S3) with misspecification and rounding guard, from G (dc, dc), b (m, dc) and Σ(1+|ρ|)²: γ̂ and its radius.

    eq:estimatesafetyparameter, for every ridge and every limit (spec 3).
    """
    return _ellipsoids(turned(gram, targets), len(gram), spread, limits, confidence)


def _ellipsoids(
    data: tuple[FloatArray, FloatArray | TurnedBlocks, FloatArray],  # e, U and Uᵀb
    dim: int,
    spread: float,
    limits: tuple[Limit, ...],
    confidence: CostConfidence,
) -> CostEllipsoids:
    eigenvalues, basis, rotated = data
    largest = float(eigenvalues.max())
    weights, centres, radii, guards = [], [], [], []
    for ridge in confidence.ridges:
        weight = 1.0 / (eigenvalues + ridge)
        centre = rotated * weight
        ratio = float(np.log1p(eigenvalues / ridge).sum())  # logdet(A) − d log λ
        radius = [
            confidence.scale * confidence.radius(ratio, ridge, limit) + limit.misspecification * math.sqrt(spread)
            for limit in limits
        ]
        # In a little-explored direction u² is off by about ε·λmax/λ of itself, and the prediction by as much
        # of √λ‖γ̂‖u. The factor 2√d was measured to cover it against exact arithmetic.
        lost = 2.0 * math.sqrt(dim) * _EPS * (largest / ridge + 1.0)
        guard = [lost * (radius[j] + math.sqrt(ridge) * float(np.linalg.norm(row))) for j, row in enumerate(centre)]
        weights.append(weight)
        centres.append(centre)
        radii.append(radius)
        guards.append(guard)
    return CostEllipsoids(
        basis=basis,
        weights=np.array(weights),
        centres=np.array(centres),
        radii=np.array(radii),
        guards=np.array(guards),
        norms=np.array([limit.norm if confidence.prior else math.inf for limit in limits]),
        errors=np.array([limit.misspecification for limit in limits]),
    )


def bound_rows(
    x: Features, anchor: Anchor | None, known: CostEllipsoids, rows: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(upper, lower), each (n, m), of the costs of features x (n, dc); only of the given rows, else (∞, −∞).

    The upper one is c̃ of eq:estimatesafetyvalue (spec 3).
    """
    dim, m = x.shape[1], len(known.norms)
    upper, lower = np.empty((len(x), m)), np.empty((len(x), m))
    if rows is not None:
        upper[:], lower[:] = np.inf, -np.inf
    x0, direction = known_part(anchor, dim)
    anchor_cost = np.zeros(m) if anchor is None else np.array(anchor.cost)
    weights = np.vstack([np.ones(known.weights.shape[1]), known.weights])
    rest = (known.radii, known.guards, known.norms, known.errors, anchor_cost, upper, lower)
    if isinstance(x, SparseRows):
        assert isinstance(known.basis, TurnedBlocks)
        block_kernels.bounds(x, rows, known.basis, x0, direction, weights, known.centres, *rest)
        return upper, lower
    assert not isinstance(known.basis, TurnedBlocks)
    turn = known.basis
    if anchor is not None:
        turn = known.basis - np.outer(direction, x0 @ known.basis)  # Uᵀz = Uᵀx − ρ Uᵀx⁰
    predictions = known.centres.reshape(-1, dim) @ turn.T  # ⟨γ̂, z⟩ as a function of x
    kernels.bounds(x, rows, turn, np.vstack([direction, predictions]), weights, *rest)
    return upper, lower


def uncertainty_rows(x: Features, anchor: Anchor | None, known: CostEllipsoids) -> FloatArray:
    """(rows,) u = ‖z‖ in the inverse data metric of the first ridge: the paper's ‖ψ(U⊥, φ)‖_{Λ⁻¹}."""
    if isinstance(x, SparseRows):
        assert isinstance(known.basis, TurnedBlocks)
        return block_lengths(x, anchor, known.basis, known.weights[0])
    assert not isinstance(known.basis, TurnedBlocks)
    result = np.empty(len(x))
    for rows, piece in pieces(x):
        w = split(piece, anchor)[1] @ known.basis
        result[rows] = np.sqrt((w * w) @ known.weights[0])
    return result


def block_lengths(x: SparseRows, anchor: Anchor | None, basis: TurnedBlocks, weights: FloatArray) -> FloatArray:
    """(rows,) √Σ_i w_i² weights_i with w = Uᵀz, of sparse features x; ‖z‖ for weights that are all 1."""
    return block_kernels.lengths(x, basis, *known_part(anchor, x.dim), weights[None, :])


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


@dataclass(frozen=True, eq=False)
class CostBounds:
    """What is known of every triplet's cost at one moment."""

    upper: tuple[FloatArray, ...]  # H-1 of (E, m)
    lower: tuple[FloatArray, ...]
    terminal_upper: FloatArray | None  # (S, m); −∞ in states without a cost
    terminal_lower: FloatArray | None
    consistent: bool  # False when some lower bound exceeds its upper: an assumption is wrong


def bound_costs(
    problem: Problem, data: CostData, confidence: CostConfidence, wanted: Sequence[BoolArray] | None = None
) -> CostBounds:
    """Bounds for the triplets of the graph; layers with the same features and data share the work.

    ``wanted``: per decision layer (E,) the triplets to look at, by default all; the others get (−∞, ∞).
    """
    graph = problem.graph
    rows = _wanted_rows(graph, data, wanted)
    done: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}
    known: dict[int, CostEllipsoids] = {}

    def bounds(h: int, x: Features) -> tuple[FloatArray, FloatArray]:
        r = data.regression(h)
        if r not in known:
            known[r] = data.ellipsoids(h, problem.limits, confidence)
        if (r, id(x)) not in done:
            done[r, id(x)] = bound_rows(x, graph.anchors[h], known[r], rows.get((r, id(x))))
        return done[r, id(x)]

    pairs = [bounds(h, layer.cost_features) for h, layer in enumerate(graph.layers)]
    last_upper, last_lower = _terminal(graph, bounds)
    rounding = CONTRADICTION * problem.cost_scales
    consistent = all(kernels.possible(upper, lower, rounding) for upper, lower in done.values())
    return CostBounds(tuple(u for u, _ in pairs), tuple(low for _, low in pairs), last_upper, last_lower, consistent)


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


def _terminal(
    graph: LayeredGraph, bounds: Callable[[int, Features], tuple[FloatArray, FloatArray]]
) -> tuple[FloatArray | None, FloatArray | None]:
    last = graph.terminal
    if last.cost_features is None:
        return None, None
    upper, lower = bounds(graph.horizon - 1, last.cost_features)
    absent = ~last.has_cost[:, None]
    return np.where(absent, -np.inf, upper), np.where(absent, -np.inf, lower)
