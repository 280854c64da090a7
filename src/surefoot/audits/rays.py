"""The audit's own look at actions with an intensity (spec 9).

An offer is examined at the intensity that is written. Of all other actions only this matters: is there an intensity at
which they are certified? Along a ray every bound is convex, f(α) = affine + ‖w(α)‖ + Σ|k(α)|, so Newton's steps down
from 1 never pass its largest root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_STEPS = 60  # of Newton's method, which takes about ten


@dataclass(frozen=True, eq=False)
class RayBound:
    """One bound along the rays of E rows, at both ends: (E,) of the affine part, (E, d) of w, (E, k) of the kinks."""

    affine: tuple[Any, Any]
    w: tuple[Any, Any]
    kinks: tuple[Any, Any]

    def largest(self, limit: Any) -> Any:
        """(E,) the largest α in [0, 1] with f(α) ≤ limit, −1 without one."""
        alpha = np.ones(len(limit))
        for _ in range(_STEPS):
            over, slope = self._at(np.maximum(alpha, 0.0))
            over = over - limit
            above = (alpha >= 0.0) & ~(over <= 0.0)  # also where it is no number
            with np.errstate(divide="ignore", invalid="ignore"):
                lower = np.where(slope > 0.0, alpha - over / slope, -1.0)
            lower = np.where(above, np.where(lower >= 0.0, lower, -1.0), alpha)
            if (lower == alpha).all():
                break
            alpha = lower
        return alpha

    def _at(self, alpha: Any) -> tuple[Any, Any]:
        """f and a slope of it: every tangent lies below f."""
        parts, rises = [], []
        for zero, one in (self.affine, self.w, self.kinks):
            share = alpha if one.ndim == 1 else alpha[:, None]
            parts.append((1.0 - share) * zero + share * one)
            rises.append(one - zero)
        affine, w, kinks = parts
        length = np.sqrt((w * w).sum(axis=1))
        slope = rises[0] + (w * rises[1]).sum(axis=1) / np.where(length > 0.0, length, 1.0)
        return affine + length + np.abs(kinks).sum(axis=1), slope + (np.sign(kinks) * rises[2]).sum(axis=1)


def largest_kept(lines: list[list[RayBound]], limits: Any) -> Any:
    """(E,) of every row the least over limits (E, m) of the largest α that one of the bounds keeps; −1 without one."""
    found = [np.max([line.largest(limit) for line in own], axis=0) for own, limit in zip(lines, limits.T, strict=True)]
    return np.min(found, axis=0)


def mixed(zero: Any, one: Any, alpha: Any) -> Any:
    """(1 − α)·(at 0) + α·(at 1), row by row or with one α for all."""
    share = np.asarray(alpha)[..., None]
    return (1.0 - share) * zero + share * one
