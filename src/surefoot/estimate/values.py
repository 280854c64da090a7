"""Value-targeted regression: the expected next value of a state and an action (spec 6; the paper's Step 3).

P(s'|s,a) = ⟨μ, φ(s,a,s')⟩, so for any V the expected next value is linear in μ (eq:optqvalue):

    Σ_{s'} P(s'|s,a) V(s') = ⟨μ, φ_V(s,a)⟩,   φ_V(s,a) = Σ_{s'} φ(s,a,s') V(s')

Each visit adds a row φ_V with target V(s'), where V is that of the plan in force (eq:estimatemodel).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surefoot.estimate import kernels, value_kernels
from surefoot.estimate.bank import Bank
from surefoot.estimate.basis import Basis, Turned
from surefoot.estimate.blocks import value_blocks
from surefoot.estimate.tables import rows_of, sealed
from surefoot.estimate.update import ValueState, count_value
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.layer import Layer
from surefoot.model.problem import Problem
from surefoot.threads import in_ranges

ValueRadius = Callable[[int, float], float]
"""(layer, logdet(A) − d log λ₂) → the radius of the ellipsoid around θ̂."""


@dataclass(frozen=True)
class ValueConfidence:
    """How wide the ellipsoids of transitions are, and how optimistic their use."""

    ridge: float
    radius: ValueRadius
    optimism: float  # w₁, on the radius
    clip: bool = True  # to the range of V on the support


class ValueData:
    """All observed transitions, as ridge statistics of value targets (eq:estimatemodel)."""

    def __init__(self, problem: Problem, ridge: float) -> None:
        self.ridge, self._pooled = ridge, problem.stationary_transitions
        self.bank = Bank(value_blocks(problem), 1, ridge)
        self.state = ValueState(
            regression=np.array([self.regression(h) for h in range(problem.horizon - 1)]),
            bank=self.bank.state,
            shape=self.bank.blocks.shape,
            phi_v=np.empty(self.bank.blocks.largest),
            target=np.empty(1),
        )

    def regression(self, h: int) -> int:
        return 0 if self._pooled else h

    def add(self, h: int, layer: Layer, pair: int, edge: int, value: FloatArray) -> None:
        """Count the transition of a pair along an edge, with the values (S',) of the plan in force."""
        first, end = layer.pair_ptr[pair], layer.pair_ptr[pair + 1]
        count_value(
            rows_of(layer.transition_features), 0, layer.successor, 0, first, end, edge, value, 0, h, self.state
        )

    def ellipsoids(self, confidence: ValueConfidence) -> tuple[ValueEllipsoid, ...]:
        """One per decision layer; layers that share a regression share the work.

        θ̂ = (λ₂I + Σ φ_V φ_Vᵀ)⁻¹ Σ φ_V V(s')   (eq:estimatemodel), and its radius (S6).
        """
        turned, ridge = [self.bank.turned(r) for r in range(len(self.bank.rows))], self.ridge
        found = []
        for h, r in enumerate(self.state.regression.tolist()):
            ratio = float(np.log1p(turned[r].eigenvalues / ridge).sum())
            found.append(
                ellipsoid_around(turned[r], ridge, confidence.radius(h, ratio), confidence.optimism, confidence.clip)
            )
        return tuple(found)


@dataclass(frozen=True, eq=False)
class ValueEllipsoid:
    """Where the unknown μ of one layer may lie, in the eigenbasis of the data; directions as for costs."""

    basis: Basis  # U
    weights: FloatArray  # (…,)   1 / (e + λ₂)
    centre: FloatArray  # (…,)   Uᵀ θ̂
    radius: float
    optimism: float
    clip: bool = True

    def contains(self, mu: FloatArray) -> bool:
        """‖μ − θ̂‖_A ≤ radius: the value event of spec 8."""
        gap = self.basis.turn(mu) - self.centre
        return bool(np.sqrt(((gap * gap) / self.weights).sum()) <= self.radius)


def ellipsoid_around(data: Turned, ridge: float, radius: float, optimism: float, clip: bool) -> ValueEllipsoid:
    """The ellipsoid of this radius around the estimate θ̂ of a regression."""
    weights = 1.0 / (data.eigenvalues + ridge)
    return ValueEllipsoid(data.basis, weights, data.targets[0] * weights, radius, optimism, clip)


def expected_next_value(
    layer: Layer, value: FloatArray, known: ValueEllipsoid, wanted: IntArray | None = None
) -> FloatArray:
    """(N,) optimistic ⟨μ, φ_V⟩ (eq:optqvalue) for the wanted pairs (default: all), NaN for the others.

    ⟨θ̂, φ_V⟩ + optimism · radius · ‖φ_V‖_{A⁻¹}, clipped to the range of V on the pair's own support: valid because P is
    a distribution on a known support. The paper does not clip.
    """
    if wanted is None:
        return expected_of(layer, value, known, np.arange(layer.n_pairs))
    out = np.full(layer.n_pairs, np.nan)
    out[wanted] = expected_of(layer, value, known, wanted)
    return out


def expected_of(layer: Layer, value: FloatArray, known: ValueEllipsoid, pairs: IntArray) -> FloatArray:
    """(n,) the same of some pairs (n,), rising."""
    x, found = layer.transition_features, np.empty(len(pairs))
    of, many = asked(layer, value, known), kernels.worth_threads(x, len(pairs) * len(x) // max(1, layer.n_pairs))
    in_ranges(len(pairs), many, lambda first, end: value_kernels.expected(of, pairs[first:end], found[first:end]))
    return found


def asked(layer: Layer, value: FloatArray, known: ValueEllipsoid) -> value_kernels.Asked:
    """The same for compiled code."""
    return value_kernels.Asked(
        rows_of(layer.transition_features),
        value_kernels.Ahead(sealed(layer.successor), sealed(layer.pair_ptr), sealed(value)),
        known.basis.lens,
        known.weights[None, :],
        known.centre[None, :],
        float(known.optimism * known.radius),
        known.clip,
    )
