"""Value-targeted regression of any function of the triplet, with a weight per row (Zhou, Gu and Szepesvári 2021).

For any function f of the triplets of a step, Σ_{s'} P(s'|s,a) f(s,a,s') = ⟨μ, φ_f(s,a)⟩ is linear in μ, with

    φ_f(s,a) = Σ_{s'} φ(s,a,s') f(s,a,s')

A visit that ends with s' gives the row φ_f/w with the target f(s,a,s')/w, and

    A = λI + Σ φ_f φ_fᵀ/w²,    θ̂ = A⁻¹ Σ φ_f f/w²

f(s,a,s') = V(s') and w = 1 is spec 6; f = V² estimates second moments; f = cost + V(s') the cost to go. The statistics
are those of :mod:`surefoot.estimate.bank`, block by block, so sparse features stay sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.estimate.tables import rows_of
from surefoot.estimate.update import FACTOR, NOWHERE, value_row
from surefoot.estimate.values import ValueData, ValueEllipsoid, ellipsoid_around
from surefoot.jit import compiled
from surefoot.model.arrays import FloatArray, owner
from surefoot.model.layer import Layer


class Row(NamedTuple):
    """A row before it is counted, and what the data so far predict for it."""

    regression: int
    block: int
    phi: FloatArray  # φ_f inside its block
    mean: float  # ⟨θ̂, φ_f⟩
    length: float  # ‖φ_f‖_{A⁻¹}
    target: float  # f of the triplet that was seen


@compiled
def _seen(
    factor: FloatArray, targets: FloatArray, slot: int, entry: int, size: int, phi: FloatArray
) -> tuple[float, float]:
    """(⟨θ̂, φ⟩, ‖φ‖_{A⁻¹}) with A = F Fᵀ: both are products of F⁻¹φ and F⁻¹b, by forward substitution."""
    u, v = np.empty(size), np.empty(size)
    mean = square = 0.0
    for i in range(size):
        a, b = phi[i], targets[slot + i]
        for k in range(i):
            a -= factor[entry + i * size + k] * u[k]
            b -= factor[entry + i * size + k] * v[k]
        u[i], v[i] = a / factor[entry + i * size + i], b / factor[entry + i * size + i]
        mean += u[i] * v[i]
        square += u[i] * u[i]
    return mean, np.sqrt(square)


class WeightedData(ValueData):
    """Transitions as ridge statistics of one function of the triplets."""

    def row(self, h: int, layer: Layer, edge: int, worth: FloatArray) -> Row:
        """The row of a transition along an edge, with f (E,) given by edge; nothing is counted yet."""
        r, room, shape = self.regression(h), np.empty(self.bank.blocks.largest), self.bank.blocks.shape
        pair = owner(layer.pair_ptr, edge)
        first, end = int(layer.pair_ptr[pair]), int(layer.pair_ptr[pair + 1])
        edges = np.arange(layer.n_edges)
        b = int(value_row(rows_of(layer.transition_features), 0, edges, 0, first, end, worth, 0, r, shape, room))
        if b == NOWHERE:
            return Row(r, b, room, 0.0, 0.0, float(worth[edge]))
        size, slot, entry = int(shape.size[b]), int(shape.slot[b]), int(shape.entry[b])
        state = self.bank.state
        mean, length = _seen(state.squares[FACTOR], state.targets[0, 0], slot, entry, size, room)
        return Row(r, b, room, float(mean), float(length), float(worth[edge]))

    def count(self, row: Row, weight: float = 1.0) -> None:
        """Enter a row, divided by its weight w."""
        self.bank.add(row.regression, row.block, row.phi / weight, np.array([row.target / weight]))

    def around(self, radii: list[float], optimism: float) -> tuple[ValueEllipsoid, ...]:
        """One per decision layer, around θ̂ with the given radius."""
        turned = [self.bank.turned(r) for r in range(len(self.bank.rows))]
        each = ((turned[self.regression(h)], radius) for h, radius in enumerate(radii))
        return tuple(ellipsoid_around(data, self.ridge, radius, optimism, True) for data, radius in each)

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Everything that a checkpoint must keep."""
        return {f"{prefix}/{name}": array for name, array in self.bank.arrays().items()}


def prefixed_arrays(prefix: str, many: Sequence[WeightedData]) -> dict[str, Any]:
    """Everything that a checkpoint must keep of several."""
    return {name: array for i, data in enumerate(many) for name, array in data.arrays(f"{prefix}{i}").items()}


def by_edge(layer: Layer, value: FloatArray) -> FloatArray:
    """(E,) the values (S',) of the next states, by triplet."""
    worth: FloatArray = value[layer.successor]
    return worth
