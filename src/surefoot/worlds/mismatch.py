"""A truth that the linear model misses by ζ, placed where it hurts most.

    cost = ⟨γ, x⟩ + η,    η = −ζ  where ⟨γ, x⟩ ≤ bound − ζ, and on all triplets of the fallback
                          η = +ζ  elsewhere: all of these truly break the limit
                          η =  0  at the anchor, whose cost was declared

So whatever a learner measures while it is safe reads ζ too low, and the line through it promises room that is not
there: where ⟨γ, x⟩ lies within ζ of the bound, it predicts a cost below the bound, and the true one is above it.
With ``Limit(misspecification=ζ)`` the bounds of spec 3 are wide enough for that; without, no guarantee holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.features import product, rows_equal_to
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem
from surefoot.worlds.truth_tables import ranges
from surefoot.worlds.world import World

__all__ = ["allowance", "mismatched"]


def allowance(mismatch: float, declared: bool) -> float:
    """The ``misspecification`` that a limit declares when the truth is off by ``mismatch``."""
    if isinstance(mismatch, bool) or not (isinstance(mismatch, (int, float)) and 0.0 <= mismatch < math.inf):
        raise InvalidInput("mismatch must be a number, zero or more", got=repr(mismatch))
    return float(mismatch) if declared else 0.0


def mismatched(problem: Problem, mismatch: float, *, cost: ArrayLike, **truth: Any) -> World:
    """The world of the problem whose true costs miss the line by ``mismatch``, as the module's page says.

    ``cost`` is γ, (m, dc), or (dc,) with one limit, the same at all steps; ``truth`` are the other options of
    :class:`~surefoot.World`. Terminal costs stay as they are.
    """
    deviation = None if mismatch == 0.0 else [_layer(problem, h, cost, mismatch) for h in range(problem.horizon - 1)]
    return World(problem, cost=cost, deviation=deviation, **truth)


def _layer(problem: Problem, h: int, cost: ArrayLike, size: float) -> FloatArray:
    """(R, m) η of one step."""
    layer, anchor = problem.graph.layers[h], problem.graph.anchors[h]
    linear = product(layer.cost_features, np.atleast_2d(np.asarray(cost, dtype=np.float64)).T)
    bounds = problem.bounds[h]
    result: FloatArray = np.where(linear <= bounds - size, -size, size)
    result[ranges(layer.row_ptr, layer.fallback_pairs())] = -size
    if anchor is not None:
        for x in anchor.features:
            result[rows_equal_to(layer.cost_features, x)] = 0.0
    return result
