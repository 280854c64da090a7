"""The audit's reading of what a limit declares of its coefficients (spec 3).

Part of the audit: imports nothing of surefoot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Limit:
    """One limit as it stands in a declaration."""

    name: str
    bound: float | list[float]
    noise: float
    norm: float | None
    prior: list[list[float]] | None
    misspecification: float
    episode_noise: float
    features: list[Any] | None


@dataclass(frozen=True, eq=False)
class Knowledge:
    """γ = centre + width∘γ′ with ‖γ′‖ ≤ length, |γ′_i| ≤ 1 if boxed, and ‖γ‖ ≤ outer."""

    centre: Any  # (d,)
    width: Any  # (d,)
    length: float
    boxed: bool
    outer: float
    norm: float

    @property
    def plain(self) -> bool:
        return not self.boxed and bool((self.width == 1.0).all())


def knowledge(limit: Limit, names: list[str] | None, dim: int) -> Knowledge:
    """What is known of the coefficients of one limit."""
    own = list(range(dim))
    if limit.features is not None:
        own = [each if names is None else names.index(each) for each in limit.features]
    centre, width = np.zeros(dim), np.zeros(dim)
    if limit.prior is None:
        if limit.norm is None:
            raise ValueError(f"limit {limit.name!r} has neither a norm nor a prior")
        width[own] = 1.0
        return Knowledge(centre, width, float(limit.norm), False, math.inf, float(limit.norm))
    if len(limit.prior) != len(own):
        raise ValueError(f"limit {limit.name!r} has {len(limit.prior)} intervals for {len(own)} features")
    for i, (low, high) in zip(own, limit.prior, strict=True):
        if not low <= high:
            raise ValueError(f"limit {limit.name!r} has an interval from {low!r} to {high!r}")
        centre[i] = low if low == high else low / 2 + high / 2
        width[i] = 0.0 if low == high else math.nextafter(max(high - centre[i], centre[i] - low), math.inf)
    most = math.hypot(*(max(abs(low), abs(high)) for low, high in limit.prior))
    outer = math.inf if limit.norm is None else float(limit.norm)
    norm = most if limit.norm is None else outer
    return Knowledge(centre, width, math.sqrt(int((width > 0.0).sum())), True, outer, norm)


def norms_alone(each: Knowledge) -> Knowledge:
    """What the paper's learner knows of it."""
    return Knowledge(np.zeros_like(each.centre), np.ones_like(each.width), each.norm, False, math.inf, each.norm)
