"""The transition model that an estimate amounts to: P̂ on the declared support, and expectations of any function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.graph import FloatArray, Layer


def expected(layer: Layer, worth: FloatArray, known: ValueEllipsoid) -> FloatArray:
    """(N,) ⟨θ̂, φ_f⟩ + optimism · radius · ‖φ_f‖_{A⁻¹}, clipped to f on the support, for f (E,) of the triplets."""
    by_triplet = replace(layer, successor=np.arange(layer.n_edges, dtype=np.int64))
    return expected_next_value(by_triplet, worth, known)


def likelihoods(layer: Layer, known: ValueEllipsoid) -> FloatArray:
    """(E,) P̂(s'|s,a) = ⟨θ̂, φ(s,a,s')⟩ cut off at 0 and scaled to 1 over the support; uniform where nothing is left."""
    alone = replace(
        layer,
        pair_ptr=np.arange(layer.n_edges + 1, dtype=np.int64),
        successor=np.zeros(layer.n_edges, np.int64),
    )
    raw = expected_next_value(alone, np.ones(1), replace(known, optimism=0.0, clip=False), np.arange(layer.n_edges))
    raw = np.where(raw > 0.0, raw, 0.0)
    total = np.add.reduceat(raw, layer.pair_ptr[:-1])
    sizes = np.diff(layer.pair_ptr)
    spread = np.repeat(total, sizes)
    result: FloatArray = np.where(
        spread > 0.0, raw / np.where(spread > 0.0, spread, 1.0), 1.0 / np.repeat(sizes, sizes)
    )
    return result
