"""The audit's own transcription of spec 3 (cost bounds) and spec 4 (certified sets), as plain as it can be.

Part of the audit: imports nothing of surefoot. Every answer comes twice, as what is *surely* so and what is *possibly*
so: between them lies rounding, as wide as the guard of spec 3.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.audits.declaration import NONE, Problem

CONTRADICTION = 1e-9  #: of a limit's scale: a lower bound above its upper by more than this is a contradiction

_EPSILON = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-10  # of two programs that sum in another order, relative


@dataclass(frozen=True)
class Confidence:
    """The constants of the bounds, from a study's record."""

    ridges: tuple[float, ...]
    failure_probability: float  # the share of the epoch
    scale: float  # on the radius
    beta: float | None  # the paper's radius; there is then no prior bound


class Data:
    """G = Σ z zᵀ, b_j = Σ z (ĉ_j − k_j) and Σ (1+|ρ|)² of every regression (spec 3), summed with more digits."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        n, m, dim = 1 if problem.stationary else problem.horizon, len(problem.limits), problem.dim
        self.gram = np.zeros((n, dim, dim), np.longdouble)
        self.targets = np.zeros((n, m, dim), np.longdouble)
        self.spread = [0.0] * n

    def add(self, h: int, x: Any, cost: Any) -> None:
        """Count a measured cost (m,) of a feature x (d,) at layer h."""
        rho, z, known = split(self._problem, h, x[None])
        r = 0 if self._problem.stationary else h
        exact, rest = z[0].astype(np.longdouble), (np.array(cost) - known[0]).astype(np.longdouble)
        self.gram[r] += np.outer(exact, exact)
        self.targets[r] += np.outer(rest, exact)
        self.spread[r] += (1.0 + abs(float(rho[0]))) ** 2


def split(problem: Problem, h: int, x: Any) -> tuple[Any, Any, Any]:
    """(ρ, z, k) of features x (E, d): ρ = ⟨x,x⁰⟩/‖x⁰‖², z = x − ρx⁰, k = ρc⁰; (0, x, 0) without an anchor."""
    anchor = problem.anchors[h]
    if anchor is None:
        return np.zeros(len(x)), x, np.zeros((len(x), len(problem.limits)))
    features, cost = anchor
    rho = (x @ features) / float(features @ features)
    return rho, x - np.outer(rho, features), np.outer(rho, cost)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Of every edge of a layer, (E, m) each: upper and lower, and by how much two programs may differ."""

    upper: Any
    lower: Any
    slop: Any


class Ellipsoids:
    """(S3) for one regression."""

    def __init__(self, problem: Problem, data: Data, r: int, confidence: Confidence) -> None:
        self._problem, self._confidence = problem, confidence
        gram, targets = data.gram[r].astype(float), data.targets[r].astype(float)
        dim, m = problem.dim, len(problem.limits)
        values, basis = np.linalg.eigh(gram)  # of G: λI + G itself need not be positive definite to the last digit
        values = np.maximum(values, 0.0)
        largest = float(values[-1])
        self._parts = []  # (inverse factor, γ̂, radius (m,), guard (m,)) of each ridge
        for ridge in confidence.ridges:
            weights = 1.0 / np.sqrt(values + ridge)
            inverse = weights[:, None] * basis.T  # A⁻¹ = inverseᵀ·inverse
            estimate = (targets @ inverse.T) @ inverse
            log_det = float(np.log1p(values / ridge).sum())
            lost = 2.0 * math.sqrt(dim) * _EPSILON * (largest / ridge + 1.0)
            radius, guard = np.zeros(m), np.zeros(m)
            for j, limit in enumerate(problem.limits):
                radius[j] = self._radius(limit, ridge, max(0.0, log_det))
                radius[j] += limit.misspecification * math.sqrt(data.spread[r])
                guard[j] = lost * (radius[j] + math.sqrt(ridge) * float(np.sqrt(estimate[j] @ estimate[j])))
            self._parts.append((inverse, estimate, radius, guard))

    def _radius(self, limit: Any, ridge: float, log_det: float) -> float:
        """σ√(logdet(A) − d·log λ + 2 log(2mH|Λ|/p)) + √λ·L; with β, at least β, and mH for 2mH|Λ|; scaled."""
        known, problem = self._confidence, self._problem
        choices = len(problem.limits) * problem.horizon * (2.0 * len(known.ridges) if known.beta is None else 1.0)
        inside = log_det + 2.0 * math.log(choices / known.failure_probability)
        radius = limit.noise * math.sqrt(inside) + math.sqrt(ridge) * limit.norm
        return float(known.scale * max(radius, known.beta or 0.0))

    def bounds(self, h: int, x: Any) -> Bounds:
        """upper_j = k_j + min(L‖z‖, min_λ ⟨γ̂,z⟩ + radius·u) + ζ(1+|ρ|), lower likewise; without the guard."""
        rho, z, known = split(self._problem, h, x)
        upper, lower, slop = (np.zeros((len(x), len(self._problem.limits))) for _ in range(3))
        for j, limit in enumerate(self._problem.limits):
            reach = limit.norm * np.sqrt((z * z).sum(axis=1))
            if self._confidence.beta is not None:
                reach = np.full(len(x), np.inf)  # the paper's bounds know nothing before any data
            high, low, off = reach, -reach, np.zeros(len(x))
            for inverse, estimate, radius, guard in self._parts:
                w = z @ inverse.T
                u = np.sqrt((w * w).sum(axis=1))
                predicted = z @ estimate[j]
                high = np.minimum(high, predicted + radius[j] * u)
                low = np.maximum(low, predicted - radius[j] * u)
                off = np.maximum(off, guard[j] * u)
            error = limit.misspecification * (1.0 + np.abs(rho))
            upper[:, j], lower[:, j] = known[:, j] + high + error, known[:, j] + low - error
            slop[:, j] = 4.0 * off + _ROUNDING * (self._problem.scales[j] + np.abs(high) + np.abs(known[:, j]))
        return Bounds(upper, lower, slop)


@dataclass(frozen=True, eq=False)
class Sets:
    """What is certified, surely or possibly: a flag per pair of each layer, and per state (the last layer included)."""

    pairs: list[list[bool]]
    states: list[list[bool]]


@dataclass(frozen=True, eq=False)
class Plan:
    """Bounds and certified sets at one moment."""

    edges: list[Bounds]
    last: Bounds | None
    sure: Sets
    possible: Sets
    surely_consistent: bool
    possibly_consistent: bool


def make_plan(problem: Problem, data: Data, confidence: Confidence) -> Plan:
    """Spec 3 and 4 for the data at hand."""
    n = 1 if problem.stationary else problem.horizon
    known = [Ellipsoids(problem, data, r, confidence) for r in range(n)]
    done: dict[tuple[int, int], Bounds] = {}  # layers that share features, regression and anchor share the work

    def bounds(h: int, x: Any) -> Bounds:
        r = 0 if problem.stationary else h
        if (r, id(x)) not in done:
            done[r, id(x)] = known[r].bounds(h, x)
        return done[r, id(x)]

    edges = [bounds(h, layer.x) for h, layer in enumerate(problem.layers)]
    last = None if problem.last_x is None else bounds(problem.horizon - 1, problem.last_x)
    everything = [*edges]
    if last is not None:
        rows = np.array(problem.has_cost)
        everything.append(Bounds(last.upper[rows], last.lower[rows], last.slop[rows]))
    surely, possibly = (all(_consistent(problem, each, side) for each in everything) for side in (-1.0, 1.0))
    return Plan(
        edges=edges,
        last=last,
        sure=certified(problem, edges, last, 1.0) if surely else fallback_only(problem),
        possible=certified(problem, edges, last, -1.0) if possibly else fallback_only(problem),
        surely_consistent=surely,
        possibly_consistent=possibly,
    )


def _consistent(problem: Problem, bounds: Bounds, side: float) -> bool:
    """lower ≤ upper everywhere, but for rounding; a NaN is a contradiction."""
    room = CONTRADICTION * np.array(problem.scales) + side * bounds.slop
    with np.errstate(invalid="ignore"):
        return bool(np.all(bounds.lower <= bounds.upper + np.maximum(room, 0.0)))


def kept(problem: Problem, bounds: Bounds, side: float) -> list[bool]:
    """Per row: does every upper bound keep its limit? side 1: surely, −1: possibly."""
    limit = np.array([limit.bound for limit in problem.limits])
    found: list[bool] = np.all(bounds.upper + side * bounds.slop <= limit, axis=1).tolist()
    return found


def certified(problem: Problem, edges: list[Bounds], last: Bounds | None, side: float) -> Sets:
    """Backward: every successor keeps every limit and is itself certified; the fallback always is."""
    n_last = len(problem.has_cost)
    if last is None:
        states = [[True] * n_last]
    else:
        keeps = kept(problem, last, side)
        states = [[keeps[s] or not problem.has_cost[s] or problem.fallback_ends[s] for s in range(n_last)]]
    pairs: list[list[bool]] = []
    for h in reversed(range(problem.horizon - 1)):
        layer, keeps, after = problem.layers[h], kept(problem, edges[h], side), states[0]
        safe = [
            all(keeps[e] and after[layer.successor[e]] for e in range(layer.pair_ptr[p], layer.pair_ptr[p + 1]))
            for p in range(len(layer.pair_ptr) - 1)
        ]
        for pair in layer.fallback:
            if pair != NONE:
                safe[pair] = True
        pairs.insert(0, safe)
        states.insert(0, _with_a_pair(layer.state_ptr, safe))
    return Sets(pairs, states)


def fallback_only(problem: Problem) -> Sets:
    """What is left when bounds contradict each other."""
    pairs = [[p in set(layer.fallback) for p in range(len(layer.pair_ptr) - 1)] for layer in problem.layers]
    states = [_with_a_pair(layer.state_ptr, row) for layer, row in zip(problem.layers, pairs, strict=True)]
    return Sets(pairs, [*states, problem.fallback_ends])


def _with_a_pair(state_ptr: list[int], safe: list[bool]) -> list[bool]:
    return [any(safe[first:end]) for first, end in itertools.pairwise(state_ptr)]


# --- constants ------------------------------------------------------------------------------------------


def default_ridges(problem: Problem, paper: bool) -> list[float]:
    """Λ = q·{4, 40, 400}, q = largest (σ_j/L_j)², from 10⁻⁶ to 10¹⁸ times ‖x‖²; the paper's one ridge is d."""
    if paper:
        return [float(problem.dim + problem.transition_dim)]
    longest = problem.longest or 1.0
    ratios = [min(limit.noise / limit.norm, 1e9 * longest) for limit in problem.limits if limit.norm > 0]
    q = max([1e-6 * longest**2] + [ratio**2 for ratio in ratios])
    return [4 * q, 40 * q, 400 * q]


def paper_feature_bound(problem: Problem) -> float:
    """D = H·max Σ‖φ‖ of the paper's learner (spec 6), or the longest cost feature where that is longer."""
    return max(problem.horizon * problem.largest_sum, problem.longest)


def paper_beta(problem: Problem, constants: dict[str, Any]) -> float:
    """β of the paper's learner (spec 6): max(β₁, b_β·d·H·√log(dT/p)), with p/(mH) in β₁."""
    p, bound, ridge = constants["failure_probability"], constants["feature_bound"], float(constants["ridges"][0])
    dim, total = problem.dim + problem.transition_dim, problem.horizon * int(constants["episodes"])
    inside = (2 + 2 * total * bound * bound / ridge) * len(problem.limits) * problem.horizon / p
    norm = max(*(limit.norm for limit in problem.limits), problem.transition_norm)
    noise = max(limit.noise for limit in problem.limits)
    beta_1 = noise * math.sqrt(dim * math.log(inside)) + math.sqrt(ridge) * norm
    scale = float(constants["value_radius_scale"])
    return max(beta_1, scale * dim * problem.horizon * math.sqrt(math.log(dim * total / p)))
