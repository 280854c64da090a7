"""Where the unknown γ_j may lie: (S3), in the directions of the whitened data (spec 3).

The noise of the data obeys ‖b − Gγ‖ ≤ R in the norm of (G + λN)⁻¹, which is √λ·‖y − s∘Uᵀγ‖ (surefoot.estimate.basis).
Adding c times ‖γ‖² ≤ L² to the square of that and completing the square gives an ellipsoid that contains γ, for every
c ≥ 0 at once and without further probability; the least of their bounds over all c is the largest cost over the
intersection of noise ellipsoid and ball. In units of λ and L, with r = R/(L√λ), κ = c/λ and y in units of L, a
direction's

    centre = L s y / (s² + κ),   weight = 1 / (λ (s² + κ)),   radius² = L² λ ( r² + κ − κ Σ y²/(s² + κ) )

**Rounding** widens the bounds like any other error. With λN ≽ μI, and G and b off by ‖E‖ ≤ η and ‖f‖, the true γ has
‖b − Gγ‖ ≤ R/√(1 − η/μ) + (ηL + ‖f‖)/√μ in the computed norm, and rows that lose digits beside the anchor count as a
model error: R grows by both. Evaluating a bound loses the last digits of (radius·√largest weight + ‖centre‖ + L)·‖x‖;
that much is added to every bound, that of the prior and for z ≈ 0 included.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surefoot.estimate import kernels
from surefoot.estimate.basis import Basis, Turned, Whitened, isotropic
from surefoot.estimate.families import LOST, Family
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.priors import Prior
from surefoot.tolerances import LEAST_NOISE, MOST_NOISE

RadiusRule = Callable[[float, float, float, float], float]
"""(log det of data and ridge less that of the ridge, λ, σ, L) → R if ``dual``, otherwise the radius around γ̂."""

WORTH_COUNTING = 0.1  #: of R: if model errors add up to less, rows are not counted individually
MULTIPLIERS = (0.01, 0.1, 1.0, 10.0)  #: of (R/L)²: the c that are tried, within one per cent of the best


@dataclass(frozen=True)
class CostConfidence:
    """How wide the bounds are. Nothing here has a default: a safety constant must be passed on."""

    ridges: tuple[float, ...]  # for rows as they are declared; a family multiplies them by its ratio
    multipliers: tuple[float, ...]  # of (R/L)²: the c of the dual ellipsoids
    radius: RadiusRule
    shaped: float  # above 0: so many times the only ridge, in the shape of the features; 0: all are even
    dual: bool  # True: with multiples of the norm's ball, (S3); False: one ellipsoid around γ̂, as in the paper
    prior: bool  # use |cost| ≤ L‖z‖, known before any data
    scale: float  # of the radius; anything below 1 voids the guarantee
    guard: bool  # against rounding

    def ridges_of(self, family: Family) -> list[float]:
        """The factors of the shapes of its ridges."""
        return [ridge * family.ratio * (self.shaped or 1.0) for ridge in self.ridges]


@dataclass(frozen=True, eq=False)
class CostEllipsoids:
    """Where the unknown γ_j may lie: n ellipsoids for each of m limits, in the directions of the whitened data.

    The last direction is for all blocks without data (surefoot.estimate.basis).
    """

    basis: Basis  # U
    weights: FloatArray  # (w, …)    of the shapes there are; limits with the same c share one
    shape: IntArray  # (n, m)        the row of ``weights`` that an ellipsoid has
    centres: FloatArray  # (n, m, …)
    radii: FloatArray  # (n, m)      NaN where data and declaration contradict each other
    norms: FloatArray  # (m,)        L, or ∞ where the prior bound is not used
    errors: FloatArray  # (m,)       ζ, and its last digits
    guards: FloatArray  # (m,)       times ‖δ∘x‖, added to every bound: rounding neither certifies nor contradicts
    prior_guards: FloatArray  # (m,) times ‖x‖, likewise, for what is declared of γ
    family: Family  # whose limits these are: m of them
    prior: bool  # use what is known before any data
    counted: Counted | None  # if model errors are large and rows are counted individually

    @cached_property
    def balls(self) -> kernels.Balls:
        """For compiled code, for features without an anchor."""
        n, m = self.radii.shape
        priors, dim = self.family.priors, len(self.family.width)
        plain, boxed = self.family.plain, np.array([prior.boxed and self.prior for prior in priors])
        weights, centres = np.vstack([np.ones(self.weights.shape[1]), self.weights]), self.centres.reshape(n * m, -1)
        nothing, counted = np.empty((0, weights.shape[1])), self.counted
        return kernels.Balls(
            weights=weights if counted is None else np.vstack([weights, *counted.weights]),
            shape=np.ascontiguousarray(self.shape + 1),
            centres=centres if counted is None else np.vstack([centres, *counted.told]),
            radii=np.ascontiguousarray(self.radii),
            norms=self.norms,
            errors=self.errors,
            guards=self.guards,
            boxed=boxed,
            diagonals=self.basis.back(weights, squared=True) if boxed.any() else nothing,
            middles=self.basis.back(centres) if boxed.any() else nothing,
            prior_centres=np.empty((0, dim)) if plain else self.family.centres,
            outer=np.array([prior.outer if self.prior else math.inf for prior in priors]),
            prior_guards=self.prior_guards,
            anchor_costs=np.zeros((1, m)),
            tolerances=np.zeros((1, m)),
            anchor_lengths=np.zeros(1),
            counted=np.zeros(m, bool) if counted is None else counted.used,
            factors=np.empty((m, 3)) if counted is None else counted.factors,
            amounts=np.empty((m, 0)) if counted is None else counted.amounts,
        )


def prior_guard(dim: int) -> float:
    """A bound on the guard before any data, per unit of the norm."""
    return LOST * math.sqrt(dim) * (1.0 + math.sqrt(1.0 + 1.0 / min(MULTIPLIERS)) * (1.0 + 1e-9))


@dataclass(frozen=True, eq=False)
class _Ellipsoid:
    weights: FloatArray
    centre: FloatArray
    radius: float


@dataclass(frozen=True, eq=False)
class Spread:
    """What model errors of the rows can add up to."""

    whole: float  # Σ b²,  b = 1 + Σ|ρ| of a row
    mixed: FloatArray  # (m,)  Σ b t_j,  t_j = Σ|ρ_i| t_ij
    blurred: FloatArray  # (m,)  Σ t_j²
    rows: int  # at least as many as these sums have terms, which decides what they lose to rounding
    visited: Visited | None = None  # the same rows individually

    @staticmethod
    def of(sums: FloatArray, rows: int) -> Spread:
        """From sums as they are kept, (1 + 2m,)."""
        m = len(sums) // 2
        return Spread(float(sums[0]), sums[1 : 1 + m], sums[1 + m :], rows)

    def error(self, j: int, zeta: float) -> float:
        """√Σ e_j²,  e_j = ζ b + t_j"""
        found, blurred = zeta * math.sqrt(self.whole), float(self.blurred[j])
        if blurred > 0.0:
            found = math.sqrt(found * found + 2.0 * zeta * float(self.mixed[j]) + blurred)
        return found * (1.0 + 1e-12 + self.rows * sys.float_info.epsilon)


@dataclass(frozen=True, eq=False)
class Visited:
    """v rows that were seen, how often, and the sums of all others."""

    z: FloatArray  # (v, largest block)
    block: IntArray  # (v,)
    off: FloatArray  # (v, 1 + m)  b, t_j
    times: IntArray  # (v,)
    rest: Spread

    def amounts(self, j: int, zeta: float) -> FloatArray:
        """(v,) what the model errors in n visits of each row add up to: n (ζ b + t_j)."""
        result: FloatArray = self.times * (zeta * self.off[:, 0] + self.off[:, 1 + j])
        return result * (1.0 + 1e-12)


@dataclass(frozen=True, eq=False)
class Counted:
    """An ellipsoid for the noise alone of each of m limits, which model errors move row by row."""

    used: BoolArray  # (m,)
    weights: FloatArray  # (m, 2, …)  its own, and those of the rows not counted individually: e³/D²
    told: FloatArray  # (m, 1 + v, …)  its centre, and what each row moves it by, per unit: z_e∘e/D
    factors: FloatArray  # (m, 3)  of √Σ weights w²: its radius, the error of the rows not counted; of ‖z‖: the guard
    amounts: FloatArray  # (m, v)  what the errors of a row's visits add up to


def cost_ellipsoids(
    data: Turned | Whitened, spread: Spread, family: Family, confidence: CostConfidence
) -> CostEllipsoids:
    """(S3) of every ridge and every limit of a family (eq:estimatesafetyparameter).

    ``data`` are G, and b of all limits: in the eigenbasis of G, for a grid of even ridges, or beside a single ridge.
    """
    beside = [data] if isinstance(data, Whitened) else [isotropic(data, x) for x in confidence.ridges_of(family)]
    found = []
    for i, (j, prior) in enumerate(zip(family.members, family.priors, strict=True)):
        radii = [sum(_radii(each, i, spread, family, confidence)) for each in beside]
        if confidence.dual:
            of_ridges = zip(beside, radii, strict=True)
            dual = [_dual(each, j, prior.length, radius, confidence.multipliers) for each, radius in of_ridges]
            found.append([each for part in dual for each in part])
        else:
            assert isinstance(data, Turned)
            found.append([_plain(data, j, each.unit, radius) for each, radius in zip(beside, radii, strict=True)])
    shapes = {each.weights.tobytes(): each.weights for row in found for each in row}
    place = {key: i for i, key in enumerate(shapes)}
    lost = LOST * math.sqrt(data.basis.blocks.dim) if confidence.guard else 0.0
    return CostEllipsoids(
        basis=data.basis,
        weights=np.array(list(shapes.values())),
        shape=np.array([[place[each.weights.tobytes()] for each in row] for row in found]).T,
        centres=np.array([[each.centre for each in row] for row in found]).swapaxes(0, 1),
        radii=np.array([[each.radius for each in row] for row in found]).T,
        norms=np.array([prior.length if confidence.prior else math.inf for prior in family.priors]),
        errors=np.array([limit.misspecification * (1.0 + lost) for limit in family.limits]),
        guards=np.array(
            [lost * (prior.length + max(map(_reach, row))) for prior, row in zip(family.priors, found, strict=True)]
        ),
        prior_guards=np.array([lost * _own_length(prior) for prior in family.priors]),
        family=family,
        prior=confidence.prior,
        counted=_counted(sorted(beside, key=_unit)[len(beside) // 2], spread, family, confidence)
        if confidence.dual
        else None,
    )


def _unit(data: Whitened) -> float:
    return data.unit


def _own_length(prior: Prior) -> float:
    """The largest ⟨m, x⟩ and declared norm, per ‖x‖."""
    return float(np.linalg.norm(prior.centre)) + (prior.outer if math.isfinite(prior.outer) else 0.0)


def _reach(each: _Ellipsoid) -> float:
    """The ellipsoid's largest distance from 0; a radius that is NaN spoils the bounds by itself."""
    radius = 0.0 if math.isnan(each.radius) else min(each.radius, sys.float_info.max)
    return float(radius * math.sqrt(each.weights.max()) + np.linalg.norm(each.centre))


def _radii(data: Whitened, i: int, spread: Spread, family: Family, confidence: CostConfidence) -> tuple[float, float]:
    """scale · R and √Σ (ζ(1+Σ|ρ|) + Σ|ρ|t)² of member i of a family; the first includes what rounding may have taken
    from G, b and their rows, and is ∞ if that is everything."""
    prior, noise, j = family.priors[i], float(family.noises[i]), family.members[i]
    error = spread.error(j, family.limits[i].misspecification)
    radius = confidence.scale * confidence.radius(data.growth, data.unit, noise, prior.length)
    if not confidence.guard:
        return radius, error
    lost, least = LOST * math.sqrt(data.basis.blocks.dim), data.least * data.unit
    eta, length = lost * data.size, float(data.lengths[j])
    if not math.isfinite(length):
        return math.nan, error  # costs have overflowed: nothing may be certified by what is left
    if eta >= least / 2:
        return math.inf, error
    missing = eta * prior.length + lost * length
    middle = math.sqrt(data.basis.blocks.dim) * float(np.linalg.norm(prior.centre)) * family.raw
    of_rows = LOST * (prior.length * family.reach + middle + noise) * math.sqrt(spread.whole)
    root = math.sqrt(1.0 - eta / least)
    return radius / root + missing / math.sqrt(least) + of_rows, error / root


def _dual(data: Whitened, j: int, norm: float, radius: float, multipliers: Sequence[float]) -> list[_Ellipsoid]:
    """(S3): an ellipsoid for every c, or the ball itself if the data say less than it does."""
    s, n = data.values, len(data.values)
    unit = norm * math.sqrt(data.unit)
    if radius >= MOST_NOISE * unit:  # not for a NaN, which must reach the bounds
        return [_Ellipsoid(np.ones(n), np.zeros(n), norm)] * len(multipliers)
    r, y, found = max(radius / unit, LEAST_NOISE), data.told[j] / norm, []
    for multiplier in multipliers:
        kappa = multiplier * r * r
        divisor = s * s + kappa
        square = r * r + kappa - kappa * float((y * y / divisor).sum())
        square += LOST * math.sqrt(n) * (r * r + kappa)
        inside = math.sqrt(square) if square >= 0.0 else math.nan  # NaN: no γ explains the data
        found.append(_Ellipsoid(1.0 / (data.unit * divisor), norm * s * y / divisor, unit * inside))
    return found


def _counted(data: Whitened, spread: Spread, family: Family, confidence: CostConfidence) -> Counted | None:
    """The bound with visit counts, of the smallest multiplier; None if no limit needs it.

    Without the model errors f = Σ z_e e_e the data are b − f. So the centre is off by what f moves it, and the radius
    is that of the noise alone, of b − f, whose share is at least that of b less √Σ e_e² (spec 3).
    """
    visited, m, s = spread.visited, len(family.members), data.values
    if visited is None:
        return None
    pulled = data.pulled(visited.z, visited.block)
    used, (v, n) = np.zeros(m, bool), pulled.shape
    weights, told = np.zeros((m, 2, n)), np.zeros((m, 1 + v, n))
    factors, amounts = np.zeros((m, 3)), np.zeros((m, v))
    lost = LOST * math.sqrt(data.basis.blocks.dim) if confidence.guard else 0.0
    blurred = lost * data.lost * data.size / data.unit  # what squares of s are off by
    for i, (j, prior) in enumerate(zip(family.members, family.priors, strict=True)):
        noise, error = _radii(data, i, spread, family, confidence)
        unit = prior.length * math.sqrt(data.unit)
        if not (error > WORTH_COUNTING * noise and noise < MOST_NOISE * unit):
            continue
        r, y = max(noise / unit, LEAST_NOISE), data.told[j] / prior.length
        kappa = min(confidence.multipliers) * r * r
        divisor = s * s + kappa
        told_by_data = math.sqrt(kappa * float((y * y / divisor).sum())) * (1.0 - lost)
        square = r * r + kappa - max(0.0, told_by_data - error / unit) ** 2
        square += LOST * math.sqrt(n) * (r * r + kappa)
        weights[i] = 1.0 / (data.unit * divisor), (s * s + blurred) / (data.unit * divisor * divisor)
        told[i, 0], told[i, 1:] = prior.length * s * y / divisor, pulled * (s / divisor)
        amounts[i] = visited.amounts(j, family.limits[i].misspecification)
        radius = unit * math.sqrt(square) if square >= 0.0 else math.nan
        rest = visited.rest.error(j, family.limits[i].misspecification)
        # Turning loses digits of z, which `beyond` answers for, and of the visited rows: ‖Mᵀz‖² ≤ zᵀWz/(unit·least).
        beyond = float(np.linalg.norm(told[i, 0]) + amounts[i] @ np.linalg.norm(told[i, 1:], axis=1))
        beyond += float(np.array([radius, rest]) @ np.sqrt(weights[i].max(axis=1)))
        off = float(amounts[i] @ np.linalg.norm(visited.z, axis=1)) / math.sqrt(data.unit * data.least)
        factors[i] = radius + lost * data.lost * off, rest, lost * beyond
        used[i] = True
    return Counted(used, weights, told, factors, amounts) if used.any() else None


def _plain(data: Turned, j: int, ridge: float, radius: float) -> _Ellipsoid:
    """The paper's: γ̂ = (G + λI)⁻¹ b and ‖γ − γ̂‖_{G+λI} ≤ radius (lemma:safetyparameteraccuracy)."""
    weights = 1.0 / (data.eigenvalues + ridge)
    return _Ellipsoid(weights, data.targets[j] * weights, radius)
