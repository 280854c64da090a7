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
    """Of every cost row of a layer, (rows, m) each: upper and lower, and by how much two programs may differ."""

    upper: Any
    lower: Any
    slop: Any


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{γ : ‖factor⁻ᵀ(γ − centre)‖ ≤ radius}; ``lost`` is the share of the radius that rounding was given."""

    factor: Any  # (d, d)  zᵀWz = ‖factor·z‖²
    centre: Any
    radius: float
    lost: float


class Ellipsoids:
    """(S3) for one regression."""

    def __init__(self, problem: Problem, data: Data, r: int, confidence: Confidence) -> None:
        self._problem, self._confidence, self._spread = problem, confidence, data.spread[r]
        self._targets = data.targets[r].astype(float)
        values, self._basis = np.linalg.eigh(data.gram[r].astype(float))
        self._values = np.maximum(values, 0.0)
        make = self._dual if confidence.beta is None else self._plain
        self._parts = [
            [one for ridge in confidence.ridges for one in make(j, ridge)] for j in range(len(problem.limits))
        ]

    def _noise(self, j: int, ridge: float, choices: float) -> float:
        """σ√(logdet(G + λI) − d·log λ + 2 log(choices/p))."""
        log_det = float(np.log1p(self._values / ridge).sum())
        inside = log_det + 2.0 * math.log(choices / self._confidence.failure_probability)
        return self._problem.limits[j].noise * math.sqrt(inside)

    def _widened(self, j: int, ridge: float, radius: float) -> tuple[float, float]:
        """With the model error and what rounding takes from G, b and their rows (spec 3), and the latter's share."""
        limit, digits = self._problem.limits[j], 4.0 * _EPSILON
        radius += limit.misspecification * math.sqrt(self._spread)
        share = digits * math.sqrt(self._problem.dim)
        off = share * float(self._values.sum())
        if off >= ridge / 2:
            return math.inf, 1.0
        missing = off * limit.norm + share * float(np.sqrt(self._targets[j] @ self._targets[j]))
        rows = digits * (limit.norm * self._problem.longest + limit.noise) * math.sqrt(self._spread)
        widened = radius / math.sqrt(1.0 - off / ridge) + missing / math.sqrt(ridge) + rows
        return widened, 1.0 - radius / widened if widened > 0.0 else 0.0

    def _dual(self, j: int, ridge: float) -> list[Ellipsoid]:
        """The noise ellipsoid plus c times the ball of the norm, c = {0.1, 1, 10}·(R/L)²."""
        problem, known, limit = self._problem, self._confidence, self._problem.limits[j]
        regressions = 1 if problem.stationary else problem.horizon
        plain = known.scale * self._noise(j, ridge, len(problem.limits) * regressions * len(known.ridges))
        noise, lost = self._widened(j, ridge, plain)
        if noise >= 1e9 * limit.norm * math.sqrt(ridge):
            return []  # the ball alone says more
        noise = max(noise, 1e-6 * limit.norm * math.sqrt(ridge))
        values, turned = self._values / ridge, (self._targets[j] @ self._basis) / ridge
        size = noise / math.sqrt(ridge)  # R and c in units in which λ is 1
        parts = []
        for multiple in (0.1, 1.0, 10.0):
            c = multiple * (size / limit.norm) ** 2
            divisor = values * values + c * (values + 1.0)
            square = size * size + c * (limit.norm**2 - float((turned * turned / divisor).sum()))
            radius = math.sqrt(ridge * square) if square >= 0.0 else math.nan
            factor = np.sqrt((values + 1.0) / (ridge * divisor))[:, None] * self._basis.T
            parts.append(Ellipsoid(factor, self._basis @ (values * turned / divisor), radius, lost))
        return parts

    def _plain(self, j: int, ridge: float) -> list[Ellipsoid]:
        """The paper's one ellipsoid: γ̂ = A⁻¹b and its radius β, or more where imported rows outgrow it."""
        known, limit = self._confidence, self._problem.limits[j]
        proved = self._noise(j, ridge, len(self._problem.limits) * self._problem.horizon)
        plain = known.scale * max(proved + math.sqrt(ridge) * limit.norm, known.beta or 0.0)
        radius, lost = self._widened(j, ridge, plain)
        factor = (1.0 / np.sqrt(self._values + ridge))[:, None] * self._basis.T
        return [Ellipsoid(factor, self._targets[j] @ factor.T @ factor, radius, lost)]

    def bounds(self, h: int, x: Any) -> Bounds:
        """upper_j = k_j + min(L‖z‖, min ⟨centre,z⟩ + radius·√zᵀWz) + ζ(1+|ρ|), lower likewise; no last digits added."""
        rho, z, known = split(self._problem, h, x)
        upper, lower, slop = (np.zeros((len(x), len(self._problem.limits))) for _ in range(3))
        for j, limit in enumerate(self._problem.limits):
            reach = limit.norm * np.sqrt((z * z).sum(axis=1))
            if self._confidence.beta is not None:
                reach = np.full(len(x), np.inf)  # the paper's bounds know nothing before any data
            high, low, off = reach, -reach, np.zeros(len(x))
            for one in self._parts[j]:
                w = z @ one.factor.T
                width, predicted = one.radius * np.sqrt((w * w).sum(axis=1)), z @ one.centre
                high, low = np.minimum(high, predicted + width), np.maximum(low, predicted - width)
                off = np.maximum(off, one.lost * width)
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

    rows: list[Bounds]
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

    rows = [bounds(h, layer.x) for h, layer in enumerate(problem.layers)]
    last = None if problem.last_x is None else bounds(problem.horizon - 1, problem.last_x)
    everything = [*rows]
    if last is not None:
        costed = np.array(problem.has_cost)
        everything.append(Bounds(last.upper[costed], last.lower[costed], last.slop[costed]))
    surely, possibly = (all(_consistent(problem, each, side) for each in everything) for side in (-1.0, 1.0))
    return Plan(
        rows=rows,
        last=last,
        sure=certified(problem, rows, last, 1.0) if surely else fallback_only(problem),
        possible=certified(problem, rows, last, -1.0) if possibly else fallback_only(problem),
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


def certified(problem: Problem, rows: list[Bounds], last: Bounds | None, side: float) -> Sets:
    """Backward: every cost row keeps every limit and every successor is certified; the fallback always is, a forbidden
    state never."""
    n_last = len(problem.has_cost)
    keeps = [True] * n_last if last is None else kept(problem, last, side)
    ends = [keeps[s] or not problem.has_cost[s] or problem.fallback_ends[s] for s in range(n_last)]
    states = [[ends[s] and s not in problem.last_forbidden for s in range(n_last)]]
    pairs: list[list[bool]] = []
    for h in reversed(range(problem.horizon - 1)):
        layer, keeps, after = problem.layers[h], kept(problem, rows[h], side), states[0]
        safe = [
            all(
                after[layer.successor[e]] and all(keeps[r] for r in layer.rows(p, e))
                for e in range(layer.pair_ptr[p], layer.pair_ptr[p + 1])
            )
            for p in range(len(layer.pair_ptr) - 1)
        ]
        for pair in layer.fallback:
            if pair != NONE:
                safe[pair] = True
        for state in layer.forbidden:
            first, end = layer.state_ptr[state], layer.state_ptr[state + 1]
            safe[first:end] = [False] * (end - first)
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
    """Λ = s·{0.1, 1, 10}, s = the mean ‖z‖² of all cost rows, at least 10⁻⁶ of ‖x‖²; the paper's one ridge is d."""
    if paper:
        return [float(problem.dim + problem.transition_dim)]
    tables = [(h, layer.x) for h, layer in enumerate(problem.layers)]
    if problem.last_x is not None:
        tables.append((problem.horizon - 1, problem.last_x[np.array(problem.has_cost)]))
    squares = [(split(problem, h, x)[1] ** 2).sum(axis=1) for h, x in tables]
    longest = problem.longest or 1.0
    s = max(float(np.concatenate(squares).mean()), 1e-6 * longest**2)
    return [0.1 * s, s, 10.0 * s]


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
