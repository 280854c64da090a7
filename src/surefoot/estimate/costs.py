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

from surefoot.estimate import kernels
from surefoot.estimate.ridge import RidgeBank
from surefoot.estimate.rows import project
from surefoot.model.layered import Anchor, BoolArray, FloatArray, IntArray, LayeredGraph
from surefoot.model.limits import Limit
from surefoot.model.precision import FeatureArray, pieces
from surefoot.model.problem import Problem

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
    """All measured costs, as ridge statistics: one regression per layer, or one for all when stationary."""

    def __init__(self, problem: Problem, ridge: float) -> None:
        graph, m = problem.graph, len(problem.limits)
        self._pooled = problem.stationary_costs
        n = 1 if self._pooled else problem.horizon
        self.bank = RidgeBank(n, graph.cost_dim, m, ridge)
        self.spread = np.zeros(n)  # (R,)  Σ (1 + |ρ|)², what a model error can add up to
        # Per layer x⁰, x⁰/‖x⁰‖² and c⁰; zeros where there is no anchor, which projects nothing away.
        self.anchors = np.zeros((problem.horizon, graph.cost_dim))
        self.directions = np.zeros((problem.horizon, graph.cost_dim))
        self.anchor_costs = np.zeros((problem.horizon, m))
        for h, anchor in enumerate(graph.anchors):
            if anchor is not None:
                self.anchors[h], self.anchor_costs[h] = anchor.features, anchor.cost
                self.directions[h] = anchor.features / float(anchor.features @ anchor.features)
        self._z, self._rest = np.empty(graph.cost_dim), np.empty(m)

    def regression(self, h: int) -> int:
        return 0 if self._pooled else h

    def add(self, h: int, x: FeatureArray, cost: FloatArray) -> None:
        """Count the measured cost (m,) of a triplet with features x (dc,) at layer h."""
        r, anchors = self.regression(h), (self.anchors, self.directions, self.anchor_costs)
        rho = project(x.reshape(1, -1), 0, cost, h, *anchors, self._z, self._rest)
        self.bank.add(r, self._z, self._rest)
        part = 1.0 + abs(rho)
        self.spread[r] += part * part  # the bits of the compiled roll-out; a power now and then rounds otherwise

    def ellipsoids(self, h: int, limits: tuple[Limit, ...], confidence: CostConfidence) -> CostEllipsoids:
        r = self.regression(h)
        return cost_ellipsoids(self.bank.gram[r], self.bank.targets[r], float(self.spread[r]), limits, confidence)


@dataclass(frozen=True, eq=False)
class CostEllipsoids:
    """Where the unknown γ_j may lie: one ellipsoid per ridge, in the eigenbasis of the data. (n ridges)"""

    basis: FloatArray  # (dc, dc)    U
    weights: FloatArray  # (n, dc)   1 / (e + λ)
    centres: FloatArray  # (n, m, dc)   Uᵀ γ̂
    radii: FloatArray  # (n, m)      with the model error
    guards: FloatArray  # (n, m)     added to the radii of upper bounds: rounding never certifies
    norms: FloatArray  # (m,)        L, or ∞ where the prior bound is not used
    errors: FloatArray  # (m,)       ζ


def cost_ellipsoids(
    gram: FloatArray,
    targets: FloatArray,
    spread: float,
    limits: tuple[Limit, ...],
    confidence: CostConfidence,
) -> CostEllipsoids:
    """(S3) with misspecification and rounding guard, from G (dc, dc), b (m, dc) and Σ(1+|ρ|)²."""
    eigenvalues, basis = np.linalg.eigh(gram)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    dim, largest = len(gram), float(eigenvalues[-1])
    rotated = targets @ basis
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
    x: FeatureArray, anchor: Anchor | None, known: CostEllipsoids, rows: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(upper, lower), each (n, m), of the costs of features x (n, dc); only of the given rows, else (∞, −∞)."""
    dim, m = len(known.basis), len(known.norms)
    turn, direction, anchor_cost = known.basis, np.zeros(dim), np.zeros(m)
    if anchor is not None:
        direction, anchor_cost = anchor.features / float(anchor.features @ anchor.features), np.array(anchor.cost)
        turn = known.basis - np.outer(direction, anchor.features @ known.basis)  # Uᵀz = Uᵀx − ρ Uᵀx⁰
    predictions = known.centres.reshape(-1, dim) @ turn.T  # ⟨γ̂, z⟩ as a function of x
    upper, lower = np.full((len(x), m), np.inf), np.full((len(x), m), -np.inf)
    kernels.bounds(
        x,
        rows,
        turn,
        np.vstack([direction, predictions]),
        np.vstack([np.ones(dim), known.weights]),
        known.radii,
        known.guards,
        known.norms,
        known.errors,
        anchor_cost,
        upper,
        lower,
    )
    return upper, lower


def uncertainty_rows(x: FeatureArray, anchor: Anchor | None, known: CostEllipsoids) -> FloatArray:
    """(rows,) u = ‖z‖ in the inverse data metric of the first ridge: the paper's ‖ψ(U⊥, φ)‖_{Λ⁻¹}."""
    result = np.empty(len(x))
    for rows, piece in pieces(x):
        w = split(piece, anchor)[1] @ known.basis
        result[rows] = np.sqrt((w * w) @ known.weights[0])
    return result


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

    def bounds(h: int, x: FeatureArray) -> tuple[FloatArray, FloatArray]:
        r = data.regression(h)
        if r not in known:
            known[r] = data.ellipsoids(h, problem.limits, confidence)
        if (r, id(x)) not in done:
            done[r, id(x)] = bound_rows(x, graph.anchors[h], known[r], rows.get((r, id(x))))
        return done[r, id(x)]

    pairs = [bounds(h, layer.cost_features) for h, layer in enumerate(graph.layers)]
    last_upper, last_lower = _terminal(graph, bounds)
    consistent = all(kernels.possible(upper, lower) for upper, lower in done.values())
    return CostBounds(tuple(u for u, _ in pairs), tuple(low for _, low in pairs), last_upper, last_lower, consistent)


def _wanted_rows(
    graph: LayeredGraph, data: CostData, wanted: Sequence[BoolArray] | None
) -> dict[tuple[int, int], IntArray]:
    """The rows to look at, by regression and feature array: what any layer that shares both wants."""
    marks: dict[tuple[int, int], BoolArray] = {}
    for h, mask in enumerate(wanted or ()):
        key = (data.regression(h), id(graph.layers[h].cost_features))
        marks[key] = marks[key] | mask if key in marks else mask
    return {key: np.flatnonzero(mask) for key, mask in marks.items() if not mask.all()}


def _terminal(
    graph: LayeredGraph, bounds: Callable[[int, FeatureArray], tuple[FloatArray, FloatArray]]
) -> tuple[FloatArray | None, FloatArray | None]:
    last = graph.terminal
    if last.cost_features is None:
        return None, None
    upper, lower = bounds(graph.horizon - 1, last.cost_features)
    absent = ~last.has_cost[:, None]
    return np.where(absent, -np.inf, upper), np.where(absent, -np.inf, lower)
