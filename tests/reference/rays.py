"""Rays transcribed from the specification, section 9, with dicts and loops: how far each may be opened.

No closed form: along a ray every bound of section 3 is a convex function of the intensity, and its interval is found by
looking at a hundred intensities, then at a hundred around what was found, and so on. With every ray at its intensity
the plan is that of `lsvi_new`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .lsvi_new import CostFit, CostRow, Reference, ValueRow, Vector
from .tables import Action, PairKey, State, StateKey, Tables

POINTS = np.linspace(0.0, 1.0, 101)
ZOOMS = 6
Curve = Callable[[Vector], Vector]  # at some intensities


def united(tables: Tables, centre: dict[StateKey, Action]) -> Tables:
    """The same problem, in which a ray also lists the successors of its centre, without a chance of its own."""
    successors, phi = dict(tables.successors), dict(tables.phi)
    nothing = [0.0] * len(next(iter(phi.values())))
    for (h, s, a), own in tables.successors.items():
        more = [s2 for s2 in tables.successors[h, s, centre[h, s]] if s2 not in own]
        successors[h, s, a] = [*own, *more]
        phi.update({(h, s, a, s2): nothing for s2 in more})
    return replace(tables, successors=successors, phi=phi)


def with_rays_at(tables: Tables, centre: dict[StateKey, Action], alpha: dict[PairKey, float]) -> Tables:
    """Every ray at its intensity: reward, cost rows and transition features are affine in it."""
    nothing = [0.0] * len(next(iter(tables.phi.values())))

    def between(a: float, zero: Sequence[float], one: Sequence[float]) -> list[float]:
        return [(1.0 - a) * low + a * high for low, high in zip(zero, one, strict=True)]

    reward, x, phi = dict(tables.reward), dict(tables.x), dict(tables.phi)
    for pair, a in alpha.items():
        h, s, _ = pair
        start = (h, s, centre[h, s])
        reward[pair] = (1.0 - a) * tables.reward[start] + a * tables.reward[pair]
        for row, own in zip(tables.rows(start), tables.rows(pair), strict=True):
            x[own] = between(a, tables.x[row], tables.x[own])
        for s2 in tables.successors[pair]:
            phi[*pair, s2] = between(a, tables.phi.get((*start, s2), nothing), tables.phi[*pair, s2])
    return replace(tables, reward=reward, x=x, phi=phi)


def right_end(f: Curve, limit: float) -> float | None:
    """The largest intensity at which a convex function is at most a limit; None without one."""
    if f(np.ones(1))[0] <= limit:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(ZOOMS):  # where it is least
        at = low + (high - low) * POINTS
        k = int(np.argmin(f(at)))
        low, high = at[max(k - 1, 0)], at[min(k + 1, len(at) - 1)]
    inside = float(at[k])
    if not f(np.array([inside]))[0] <= limit:
        return None
    outside = 1.0
    for _ in range(ZOOMS):
        at = inside + (outside - inside) * POINTS
        kept = np.flatnonzero(f(at) <= limit)
        inside, outside = float(at[kept[-1]]), float(at[min(kept[-1] + 1, len(at) - 1)])
    return inside


class RayReference(Reference):
    """The learner with bonuses on a problem all of whose actions but the centres are rays, with a cost row per pair."""

    def __init__(self, tables: Tables, centre: dict[StateKey, Action], p: float, **options: Any) -> None:
        self.full, self.centre = united(tables, centre), centre
        self.alpha: dict[PairKey, float] = {}
        self.hoped: dict[PairKey, float] = {}
        super().__init__(self.full, p, **options)

    def rays(self) -> list[PairKey]:
        return [(h, s, a) for h, s, a in self.full.pairs() if self.centre[h, s] != a]

    def _make_plan(self) -> None:
        self.t = self.full
        fits = self._per_layer(self._cost_fit, self.H, self.t.stationary_costs)
        for pair in self.rays():
            self.alpha[pair], self.hoped[pair] = self._opened(fits[pair[0]], pair)
        self.t = with_rays_at(self.full, self.centre, self.alpha)
        super()._make_plan()

    def _opened(self, fit: CostFit, pair: PairKey) -> tuple[float, float]:
        """alpha and its hopeful counterpart (spec 9)."""
        h, s, _ = pair
        least, hoped = 1.0, 1.0
        start = (h, s, self.centre[h, s])
        for row, own in zip(self.full.rows(start), self.full.rows(pair), strict=True):
            for j in range(self.m):
                ends = [self._project(h, self.full.x[key]) for key in (row, own)]
                certified, refuted = self._along(fit, j, ends)
                least, hoped = min(least, certified), min(hoped, refuted)
        at = with_rays_at(self.full, self.centre, {pair: least})
        if not all(self._within(h, self._interval(fit, h, at.x[own])[0]) for own in self.full.rows(pair)):
            lower = with_rays_at(self.full, self.centre, {pair: max(0.0, least - 1e-9)})
            if not all(self._within(h, self._interval(fit, h, lower.x[own])[0]) for own in self.full.rows(pair)):
                least = 0.0  # one row has it only where another has not
        return least, max(least, hoped)

    def _along(
        self, fit: CostFit, j: int, ends: Sequence[tuple[list[float], list[float], float]]
    ) -> tuple[float, float]:
        """Of a row and a limit: the largest intensity that a bound certifies, 0 without one; the least that a bound
        refutes, 1 without one."""
        (z0, known0, _), (z1, known1, _) = ends
        limit, bound = self.t.limits[j], self._bound(0, j)

        def curve(sign: float, centre: Vector, W: Vector, radius: float) -> Curve:
            def f(at: Vector) -> Vector:
                z = (1.0 - at)[:, None] * np.array(z0) + at[:, None] * np.array(z1)
                told = (1.0 - at) * known0[j] + at * known1[j] + z @ centre
                return sign * told + radius * np.sqrt(np.maximum(((z @ W) * z).sum(axis=1), 0.0))

            return f

        shapes = [(np.zeros(self.dc), np.eye(self.dc), limit.norm)]
        shapes += [(one.centre, one.W, one.radius) for one in fit.ellipsoids[j]]
        if any(np.isnan(radius) for *_, radius in shapes):
            return 0.0, 1.0
        up = [right_end(curve(1.0, *shape), bound) for shape in shapes]
        z0, z1, known0, known1 = z1, z0, known1, known0  # from the far end
        down = [right_end(curve(-1.0, *shape), -bound) for shape in shapes]
        found = [a for a in up if a is not None], [1.0 - a for a in down if a is not None]
        return max(found[0], default=0.0), min(found[1], default=1.0)

    def observe_at(self, h: int, s: State, a: Action, s2: State, cost: Sequence[float], alpha: float) -> None:
        """As `observe`, of an action that an operator played at an intensity of their own."""
        at = with_rays_at(self.full, self.centre, {(h, s, a): alpha})
        self.cost_rows.append(CostRow(h, list(at.x[at.rows((h, s, a))[0]]), list(cost)))
        mine, self.t = self.t, at
        features = self._value_features(self.plan.value, (h, s, a))
        self.t = mine
        self.value_rows.append(ValueRow(h, features, self.plan.value[h + 1, s2]))
        self.saw_data = True
