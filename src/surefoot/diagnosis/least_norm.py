"""The shortest vector that keeps linear conditions: does a declaration leave any truth possible?

    least ‖v‖   with   A v = b   and   G v ≥ h

v = v₀ + N y, v₀ the shortest solution of the equations and N a basis of what they leave free, has
‖v‖² = ‖v₀‖² + ‖y‖². What is left is a least-distance problem, which one non-negative least-squares problem solves
exactly (Lawson and Hanson, 1974, chapter 23): with E = [Gᵀ; hᵀ] and u ≥ 0 of least ‖Eu − e‖, e the last unit vector,
y = −r/r_last of the residual r = Eu − e. Where r is zero nothing keeps the conditions, and u > 0 names those at odds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefoot.model.graph import FloatArray

_NEGLIGIBLE = 1e-10  # a direction of the equations this much shorter than the longest is rounding
_ROUNDING = 1e-7  # of an equation, rows being of length 1: what least squares loses


@dataclass(frozen=True)
class Shortest:
    """The length of the shortest vector, ∞ where nothing keeps the conditions; then those that are at odds."""

    length: float
    equations: tuple[int, ...] = ()
    conditions: tuple[int, ...] = ()


def shortest(a: FloatArray, b: FloatArray, g: FloatArray, h: FloatArray) -> Shortest:
    """Least ‖v‖ with A v = b, A (k, d), and G v ≥ h, G (n, d); k or n may be 0."""
    a, b, _ = _unit_rows(a, b)
    start: FloatArray = np.zeros(g.shape[1])
    free = np.eye(g.shape[1])
    if len(a):
        start = np.asarray(np.linalg.lstsq(a, b, rcond=_NEGLIGIBLE)[0], np.float64)
        off = np.abs(a @ start - b)
        if off.max() > _ROUNDING * max(1.0, float(np.abs(b).max())):
            return Shortest(math.inf, equations=(int(off.argmax()),))
        _, values, right = np.linalg.svd(np.linalg.qr(a, mode="r"), full_matrices=True)
        free = right[int((values > _NEGLIGIBLE * float(values[0])).sum()) :].T
    g, h, zero = _unit_rows(g, h)
    if zero:
        return Shortest(math.inf, conditions=(zero[0],))
    missing = h - g @ start
    rounding = _ROUNDING * (1.0 + float(np.linalg.norm(start)))
    if not len(g) or missing.max() <= rounding:
        return Shortest(float(np.linalg.norm(start)))
    return _least_distance(g @ free, missing, start)


def _least_distance(g: FloatArray, h: FloatArray, start: FloatArray) -> Shortest:
    from scipy.optimize import nnls

    wanted = np.zeros(g.shape[1] + 1)
    wanted[-1] = 1.0
    scale = float(np.abs(h).max())  # y in units in which its length is about 1
    stacked = np.vstack([g.T, h / scale])
    weights, _ = nnls(stacked, wanted, maxiter=max(300, 10 * len(h)))
    rest = stacked @ weights - wanted
    at_odds = tuple(int(i) for i in np.argsort(-weights)[:4] if weights[i] > 0.0)
    if -rest[-1] <= 1e-12:  # ‖r‖² = −r_last
        return Shortest(math.inf, conditions=at_odds)
    y = scale * rest[:-1] / -rest[-1]
    return Shortest(math.hypot(float(np.linalg.norm(start)), float(np.linalg.norm(y))), conditions=at_odds)


def _unit_rows(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, list[int]]:
    """Each row of length 1, its condition unchanged; and the numbers of zero rows that ask for more than 0."""
    lengths = np.linalg.norm(a, axis=1)
    zero = np.flatnonzero((lengths == 0.0) & (b > 0.0)).tolist()
    divisor = np.where(lengths == 0.0, 1.0, lengths)
    return a / divisor[:, None], b / divisor, zero
