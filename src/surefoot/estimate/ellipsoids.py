"""Where the unknown γ_j may lie: (S3), in the eigenbasis of the data (spec 3).

The noise of the data obeys ‖b − Gγ‖_{(G+λI)⁻¹} ≤ R. Adding c times ‖γ‖² ≤ L² to the square of that and completing the
square gives, for every c ≥ 0 at once and with no further probability, an ellipsoid that contains γ; the least of their
bounds over all c is the largest cost over the intersection of noise ellipsoid and ball. In units of λ and L, with
q = e/λ, y = b/(λL), r = R/(L√λ), κ = c/λ and D = q² + κ(q + 1), an eigenvector's

    centre = L q y / D,   weight = (q + 1)/(λ D),   radius² = L² λ ( r² + κ − κ Σ y²/D )

**Rounding** is an assumption like any other, and pays like one. G and b are off by ‖E‖ ≤ η and ‖f‖, so the true γ has
‖b − Gγ‖ ≤ R/√(1 − η/λ) + (ηL + ‖f‖)/√λ in the norm that is computed with, and rows that lose digits beside the anchor
count as a model error: R grows by both. What evaluating a bound adds beyond that is of the size of the last digits of
(radius·√largest weight + ‖centre‖ + L)·‖x‖, and is added to every bound, the prior one and that of z ≈ 0 included.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surefoot.estimate import kernels
from surefoot.estimate.bank import Basis, Turned
from surefoot.estimate.families import LOST, Family
from surefoot.model.graph import FloatArray, IntArray
from surefoot.model.priors import Prior
from surefoot.tolerances import LEAST_NOISE, MOST_NOISE

RadiusRule = Callable[[float, float, float, float], float]
"""(log det(G + λI) − d log λ, λ, σ, L) → R where ``dual``, else the radius of the ellipsoid around γ̂."""

MULTIPLES = (0.1, 1.0, 10.0)  #: of (R/L)², where c is tried: within a few per cent of the best c


@dataclass(frozen=True)
class CostConfidence:
    """How wide the bounds are. Nothing here has a default: a safety constant must be passed on."""

    ridges: tuple[float, ...]  # of rows as they are declared; a family's are these times its ratio
    radius: RadiusRule
    dual: bool  # with multiples of the ball of the declared norm, (S3); else one ellipsoid around γ̂, as the paper has
    prior: bool  # use |cost| ≤ L‖z‖, known before any data
    scale: float  # on the radius; anything below 1 voids the guarantee
    guard: bool  # against rounding


@dataclass(frozen=True, eq=False)
class CostEllipsoids:
    """Where the unknown γ_j may lie: n ellipsoids for each of m limits, in the eigenbasis of the data.

    Directions are those of blocks with data, and last one for all the rest (surefoot.estimate.bank).
    """

    basis: Basis  # U
    weights: FloatArray  # (w, …)    of the shapes there are; limits with the same c share one
    shape: IntArray  # (n, m)        the row of ``weights`` that an ellipsoid has
    centres: FloatArray  # (n, m, …)
    radii: FloatArray  # (n, m)      NaN where data and declaration contradict each other
    norms: FloatArray  # (m,)        L, or ∞ where the prior bound is not used
    errors: FloatArray  # (m,)       ζ
    guards: FloatArray  # (m,)       times ‖δ∘x‖, added to every bound: rounding never certifies, and never contradicts
    prior_guards: FloatArray  # (m,) times ‖x‖, likewise, for what is known of γ
    family: Family  # whose limits these are: m of them
    prior: bool  # what is known before any data is used

    @cached_property
    def balls(self) -> kernels.Balls:
        """As compiled code takes them, for features without an anchor."""
        n, m = self.radii.shape
        priors, dim = self.family.priors, len(self.family.width)
        plain, boxed = self.family.plain, np.array([prior.boxed and self.prior for prior in priors])
        weights, centres = np.vstack([np.ones(self.weights.shape[1]), self.weights]), self.centres.reshape(n * m, -1)
        nothing = np.empty((0, weights.shape[1]))
        return kernels.Balls(
            weights=weights,
            shape=self.shape + 1,
            centres=centres,
            radii=self.radii,
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
        )


def prior_guard(dim: int) -> float:
    """The guard before any data, per unit of the norm: no ellipsoid of (S3) then reaches further than this."""
    return LOST * math.sqrt(dim) * (1.0 + math.sqrt(1.0 + 1.0 / min(MULTIPLES)) * (1.0 + 1e-9))


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
    tolerant: bool  # some t is not zero

    def error(self, j: int, misspecification: float) -> float:
        """√Σ (ζ b + t_j)²"""
        if not self.tolerant:
            return misspecification * math.sqrt(self.whole)
        mixed = 2.0 * misspecification * float(self.mixed[j])
        return math.sqrt(misspecification**2 * self.whole + mixed + float(self.blurred[j])) * (1.0 + 1e-12)


def cost_ellipsoids(data: Turned, spread: Spread, family: Family, confidence: CostConfidence) -> CostEllipsoids:
    """(S3) of every ridge and every limit of a family (eq:estimatesafetyparameter).

    ``data`` are G and b in the eigenbasis of G, the latter of the problem's limits.
    """
    make = _dual if confidence.dual else _plain
    ridges = [ridge * family.ratio for ridge in confidence.ridges]
    found = [
        [
            each
            for ridge in ridges
            for each in make(data, j, ridge, prior.length, _radius(data, i, ridge, spread, family, confidence))
        ]
        for i, (j, prior) in enumerate(zip(family.members, family.priors, strict=True))
    ]
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
        errors=np.array([limit.misspecification for limit in family.limits]),
        guards=np.array(
            [lost * (prior.length + max(map(_reach, row))) for prior, row in zip(family.priors, found, strict=True)]
        ),
        prior_guards=np.array([lost * _own_length(prior) for prior in family.priors]),
        family=family,
        prior=confidence.prior,
    )


def _own_length(prior: Prior) -> float:
    """What ⟨m, x⟩ and a norm beside it can be, per ‖x‖."""
    return float(np.linalg.norm(prior.centre)) + (prior.outer if math.isfinite(prior.outer) else 0.0)


def _reach(each: _Ellipsoid) -> float:
    """No further from 0 than this does the ellipsoid go; one without a radius spoils the bounds by itself."""
    radius = 0.0 if math.isnan(each.radius) else min(each.radius, sys.float_info.max)
    return float(radius * math.sqrt(each.weights.max()) + np.linalg.norm(each.centre))


def _radius(data: Turned, i: int, ridge: float, spread: Spread, family: Family, confidence: CostConfidence) -> float:
    """scale · R + √Σ (ζ(1+Σ|ρ|) + Σ|ρ|t)², and what rounding may have taken from G, b and their rows; ∞ where it took
    all. Of member i of a family."""
    prior, noise, j = family.priors[i], float(family.noises[i]), family.members[i]
    ratio = float(np.log1p(data.eigenvalues / ridge).sum())  # log det(G + λI) − d log λ
    error = spread.error(j, family.limits[i].misspecification)
    radius = confidence.scale * confidence.radius(ratio, ridge, noise, prior.length) + error
    if not confidence.guard:
        return radius
    lost = LOST * math.sqrt(data.basis.blocks.dim)
    eta = lost * float(data.eigenvalues.sum())
    length = float(np.linalg.norm(data.targets[j]))
    if not math.isfinite(length):
        return math.nan  # costs that overflowed: nothing may be certified by what is left
    if eta >= ridge / 2:
        return math.inf
    missing = eta * prior.length + lost * length
    middle = math.sqrt(data.basis.blocks.dim) * float(np.linalg.norm(prior.centre)) * family.raw
    of_rows = LOST * (prior.length * family.longest + middle + noise) * math.sqrt(spread.whole)
    return radius / math.sqrt(1.0 - eta / ridge) + missing / math.sqrt(ridge) + of_rows


def _dual(data: Turned, j: int, ridge: float, norm: float, radius: float) -> list[_Ellipsoid]:
    """(S3): an ellipsoid for every c; the ball itself where the data say less than it does."""
    n = len(data.eigenvalues)
    unit = norm * math.sqrt(ridge)
    if radius >= MOST_NOISE * unit:  # not for a NaN, which must reach the bounds
        return [_Ellipsoid(np.ones(n), np.zeros(n), norm)] * len(MULTIPLES)
    r = max(radius / unit, LEAST_NOISE)
    q, y = data.eigenvalues / ridge, data.targets[j] / (ridge * norm)
    found = []
    for multiple in MULTIPLES:
        kappa = multiple * r * r
        divisor = q * q + kappa * (q + 1.0)
        used = float((y * y / divisor).sum())
        square = r * r + kappa - kappa * used
        square += LOST * math.sqrt(n) * (r * r + kappa)
        inside = math.sqrt(square) if square >= 0.0 else math.nan  # NaN: no γ explains the data
        found.append(_Ellipsoid((q + 1.0) / (ridge * divisor), norm * q * y / divisor, unit * inside))
    return found


def _plain(data: Turned, j: int, ridge: float, norm: float, radius: float) -> list[_Ellipsoid]:
    """The paper's: γ̂ = (G + λI)⁻¹ b and ‖γ − γ̂‖_{G+λI} ≤ radius (lemma:safetyparameteraccuracy)."""
    weights = 1.0 / (data.eigenvalues + ridge)
    return [_Ellipsoid(weights, data.targets[j] * weights, radius)]
