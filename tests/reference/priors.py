"""Priors, several anchors with tolerances, bounds by step and shared offsets: section 3 again, limit by limit.

`lsvi_new` has the plain case; here every limit has a space of its own, in which its rows are scaled and projected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .directed import DirectedReference
from .lsvi_new import (
    Beside,
    CostFit,
    Counted,
    Ellipsoid,
    Reference,
    Vector,
    count_visits,
    dual_ellipsoids,
    least_noise,
    shape_of,
)
from .scale import largest_cost_norm
from .tables import Tables, dot, norm

KnownCost = tuple[list[float], list[float], list[float]]  # features, a cost per limit, a tolerance per limit


@dataclass(frozen=True)
class Declared:
    """What is declared beside the tables; a list per limit, or per layer."""

    intervals: list[list[tuple[float, float]] | None]  # None: the norm alone
    beside: list[bool]  # the norm is declared beside the prior
    anchors: list[list[KnownCost]]
    bounds: list[list[float]]  # per layer, per limit
    shared: list[float]  # tau


@dataclass(frozen=True)
class BoxedFit(CostFit):
    """With what the box of a limit makes of its ellipsoids, row by row."""

    cuts: dict[Any, tuple[float, float]]


class PriorReference(Reference):
    """The learner with bonuses, for problems that declare more than norms."""

    def __init__(self, tables: Tables, failure_probability: float, declared: Declared, **options: Any) -> None:
        self.k = declared
        self._splits: dict[Any, tuple[list[float], float, float, float]] = {}
        super().__init__(tables, failure_probability, **options)

    def _check_stationary_anchors(self) -> None:
        if self.t.stationary_costs and any(each != self.k.anchors[0] for each in self.k.anchors[: self._costed()]):
            raise ValueError("stationary costs need the same anchors at all layers")

    def _costed(self) -> int:
        return self.H - 1 + (self.t.terminal_x is not None)

    # ------------------------------------------------------------------ what is known before any data

    def _centre(self, j: int | None) -> list[float]:
        known = None if j is None else self.k.intervals[j]
        return [0.0] * self.dc if known is None else [(low + high) / 2 for low, high in known]

    def _width(self, j: int | None) -> list[float]:
        known = None if j is None else self.k.intervals[j]
        return [1.0] * self.dc if known is None else [(high - low) / 2 for low, high in known]

    def _length(self, j: int) -> float:
        if self.k.intervals[j] is None:
            return self.t.limits[j].norm
        return math.sqrt(sum(w > 0.0 for w in self._width(j)))

    def _split(self, j: int | None, h: int, x: Sequence[float]) -> tuple[list[float], float, float, float]:
        """z, the known part, the sum of |rho|, and the sum of |rho| t: of the declaration alone, so computed once."""
        key = (j, h, *x)
        if key not in self._splits:
            self._splits[key] = self._split_afresh(j, h, x)
        return self._splits[key]

    def _split_afresh(self, j: int | None, h: int, x: Sequence[float]) -> tuple[list[float], float, float, float]:
        centre, width = self._centre(j), self._width(j)
        row = [w * xi for w, xi in zip(width, x, strict=True)]
        known, size, blur = dot(centre, x), 0.0, 0.0
        scaled = [[w * xi for w, xi in zip(width, x0, strict=True)] for x0, _, _ in self.k.anchors[h]]
        z = row
        for rho, x0, (raw, cost, tolerance) in zip(self._rho(scaled, row), scaled, self.k.anchors[h], strict=True):
            z = [zi - rho * x0i for zi, x0i in zip(z, x0, strict=True)]
            size += abs(rho)
            if j is not None:
                known += rho * (cost[j] - dot(centre, raw))
                blur += abs(rho) * tolerance[j]
        return z, known, size, blur

    def _rho(self, scaled: list[list[float]], row: list[float]) -> list[float]:
        """Coordinates in the anchors' span: least squares, of least norm among anchors of length one."""
        lengths = [norm(x0) for x0 in scaled]
        if not scaled or max(lengths) == 0.0:
            return [0.0] * len(scaled)
        units = np.array([[v / (size or 1.0) for v in x0] for x0, size in zip(scaled, lengths, strict=True)])
        found = np.linalg.lstsq(units.T, np.array(row), rcond=1e-6)[0]
        return [float(c) / size if size > 0.0 else 0.0 for c, size in zip(found, lengths, strict=True)]

    def _scale_of(self, j: int | None) -> float:
        """s: the mean square of z, at least 1e-6 of the longest scaled row's."""
        rows = self._all_rows()
        squares = [norm(self._split(j, h, x)[0]) ** 2 for h, x in rows]
        longest = max(norm([w * xi for w, xi in zip(self._width(j), x, strict=True)]) for _, x in rows)
        return max(sum(squares) / len(squares), 1e-6 * (longest or 1.0) ** 2)

    def _ridges(self, given: Sequence[float] | None) -> list[float]:
        s = self._scale_of(None)
        self.ratios = [self._scale_of(j) / s if any(self._width(j)) else 1.0 for j in range(self.m)]
        self._own_shapes: dict[tuple[int, int], Vector] = {}
        return [s] if given is None else list(given)

    def _beside_of(self, h: int, j: int) -> list[Beside]:
        """As for norms, of the scaled rows of limit j, whose ridges are multiplied by its ratio."""
        if not self.kappa:
            return [Beside(ridge * self.ratios[j], np.eye(self.dc)) for ridge in self.ridges]
        if (h, j) not in self._own_shapes:
            own = [row for row in self._all_rows() if self.t.stationary_costs or row[0] == h]
            rows = [self._split(j, *row)[0] for row in own]
            self._own_shapes[h, j] = shape_of(rows, self._scale_of(j), self.dc)
        return [Beside(self.kappa * self.ridges[0] * self.ratios[j], self._own_shapes[h, j])]

    def _bound(self, h: int, j: int) -> float:
        return self.k.bounds[h][j]

    def _sigma(self, j: int) -> float:
        rows_of_an_episode = self._costed() if self.t.stationary_costs else 1
        return math.sqrt(self.t.limits[j].noise ** 2 + rows_of_an_episode * self.k.shared[j] ** 2)

    def _known_cost(self, h: int, j: int) -> float:
        return self.k.anchors[h][0][1][j] if self.k.anchors[h] else 0.0

    def _slack(self, given: Any) -> list[list[float]]:
        return [
            [self._bound(h, j) - self.k.anchors[h][0][1][j] if self.k.anchors[h] else 1.0 for j in range(self.m)]
            for h in range(self.H)
        ]

    def _scales(self) -> list[float]:
        rows = [*self.t.x.values(), *(x for x in (self.t.terminal_x or {}).values() if x is not None)]
        scales = []
        for j, limit in enumerate(self.t.limits):
            most = limit.norm * largest_cost_norm(self.t)
            if self.k.intervals[j] is not None:
                box = max(abs(dot(self._centre(j), x)) + dot(self._width(j), [abs(xi) for xi in x]) for x in rows)
                most = min(box, most) if self.k.beside[j] else box
            scales.append(max(abs(self._bound(h, j)) for h in range(self.H)) + most)
        return scales

    # ------------------------------------------------------------------ (S3)

    def _cost_fit(self, h: int) -> BoxedFit:
        both_kinds = [self._ellipsoids_of(h, j) for j in range(self.m)]
        found, counted = [one for one, _ in both_kinds], [more for _, more in both_kinds]
        rows = [(at, x) for at, x in self._all_rows() if self.t.stationary_costs or at == h]
        cuts: dict[Any, tuple[float, float]] = {}
        for j, ellipsoids in enumerate(found):
            if rows and ellipsoids and self.k.intervals[j] is not None:
                both = _cuts(ellipsoids, [self._split(j, *row)[0] for row in rows])
                cuts |= {(j, at, *x): pair for (at, x), pair in zip(rows, zip(*both, strict=True), strict=True)}
        return BoxedFit(found, np.eye(self.dc), counted, cuts)

    def _all_rows(self) -> list[tuple[int, list[float]]]:
        """Of all layers, with that of the cost."""
        last = [(self.H - 1, x) for x in map(self.t.terminal_features, self.layers[-1]) if x is not None]
        return [(key[0], x) for key, x in self.t.x.items()] + last

    def _ellipsoids_of(self, h: int, j: int) -> tuple[list[Ellipsoid], Counted | None]:
        limit, gram, b, square = (
            self.t.limits[j],
            np.zeros((self.dc, self.dc), np.longdouble),
            np.zeros(self.dc, np.longdouble),
            0.0,
        )
        rows = []
        for row in self._cost_rows_of(h):
            z, known, size, blur = self._split(j, row.h, row.x)
            gram += np.outer(z, z)
            b += np.array(z) * (row.cost[j] - known)
            rows.append((row.x, np.array(z), limit.misspecification * (1.0 + size) + blur))
            square += rows[-1][2] ** 2
        length = self._length(j)
        if length == 0.0:
            return [], None
        noise = self._sigma(j)
        found, beside, log_term = list[Ellipsoid](), self._beside_of(h, j), math.log(self._union() / self.p)
        for one in beside:
            R = max(one.noise(gram, noise, log_term) + math.sqrt(square), least_noise(length, one))
            found += dual_ellipsoids(gram, b, one, length, R)
        middle = sorted(beside, key=lambda one: one.ridge)[len(beside) // 2]
        return found, count_visits(rows, b, middle, length, middle.noise(gram, noise, log_term))

    def _interval(self, fit: CostFit, h: int, x: Sequence[float]) -> tuple[list[float], list[float], float]:
        assert isinstance(fit, BoxedFit)
        upper: list[float] = []
        lower: list[float] = []
        for j, limit in enumerate(self.t.limits):
            z, known, size, blur = self._split(j, h, x)
            most = self._length(j) * norm(z)
            if self.k.intervals[j] is not None:
                most = min(most, sum(abs(zi) for zi in z))
            high, low = most, -most
            for mean, width in fit.told_of(j, np.array(z)):
                high, low = min(high, mean + width), max(low, mean - width)
                if math.isnan(width):
                    high = low = math.nan
                    break
            if (j, h, *x) in fit.cuts and not math.isnan(high):
                cut, opposite = fit.cuts[j, h, *x]
                high, low = min(high, cut), max(low, -opposite)
            off = limit.misspecification * (1.0 + size) + blur
            high, low = known + high + off, known + low - off
            if self.k.intervals[j] is not None and self.k.beside[j] and not math.isnan(high):
                outer = limit.norm * norm(x) + limit.misspecification
                high, low = min(high, outer), max(low, -outer)
            upper.append(high)
            lower.append(low)
        return upper, lower, 0.0


def _cuts(ellipsoids: Sequence[Ellipsoid], rows: Sequence[Sequence[float]]) -> tuple[Vector, Vector]:
    """What z = v + (z - v) gives: the box bounds the part of v, an ellipsoid the rest; v from two rounds of
    coordinate-wise minimisation. For every row z the least over the ellipsoids, of gamma and of -gamma; axes of the
    arrays: ellipsoid with its side, row, coordinate."""
    sided = [(one, side) for side in (1.0, -1.0) for one in ellipsoids]
    w = np.array([one.W for one, _ in sided])
    root = np.array([one.root.T for one, _ in sided], float)  # |y root|^2 = y'Wy
    g = np.array([side * one.centre for one, side in sided], float)[:, None, :]
    radius, z = np.array([[one.radius] for one, _ in sided]), np.array(rows)
    farthest, v = 8.0 * abs(z).sum(axis=1), np.zeros((len(sided), *z.shape))
    for _ in range(2):
        for i in range(z.shape[1]):
            wii, gi = w[:, i, i][:, None], g[:, :, i]
            reach, y = radius * np.sqrt(wii), z - v
            nearest = (y @ w[:, :, i, None])[:, :, 0] / wii  # how far to go for the least y'Wy
            rest = np.linalg.norm(y @ root - nearest[:, :, None] * root[:, i, None, :], axis=2)
            t = np.zeros_like(nearest)
            for sign in (1.0, -1.0):
                k = gi - sign
                crossing = abs(k) < reach
                beside = k / np.sqrt(wii) / np.sqrt(np.where(crossing, reach**2 - k**2, 1.0))
                found = v[:, :, i] + nearest + beside * rest
                t = np.where(crossing & (found * sign > 0.0), sign * np.minimum(abs(found), farthest), t)
            inside = abs(gi) + reach <= 1.0  # the ellipsoid stays inside the box along this coordinate
            v[:, :, i] = np.where(inside, v[:, :, i], t)
    y = z - v
    whole = abs(v).sum(axis=2) + (g * y).sum(axis=2) + radius * np.linalg.norm(y @ root, axis=2)
    return whole[: len(ellipsoids)].min(axis=0), whole[len(ellipsoids) :].min(axis=0)


class DirectedPriorReference(DirectedReference, PriorReference):
    """The learner that explores by what narrows a bound, in the space of the limit that stands in the way."""

    def _space(self, j: int) -> int:
        return next(i for i in range(self.m) if self._width(i) == self._width(j))

    def _row(self, space: int, h: int, x: Sequence[float]) -> list[float]:
        return self._split(space, h, x)[0]

    def _gram_in(self, space: int, h: int) -> Any:
        gram = sorted(self.ridges)[len(self.ridges) // 2] * self.ratios[space] * np.eye(self.dc)
        for row in self._cost_rows_of(h):
            z = self._row(space, row.h, row.x)
            gram += np.outer(z, z)
        return gram


def random_declared(tables: Tables, rng: np.random.Generator) -> Declared:
    """A true declaration of the tables' hidden costs: priors, anchors and bounds of all kinds."""
    m, horizon = len(tables.limits), tables.horizon
    costed = horizon - 1 + (tables.terminal_x is not None)
    intervals: list[list[tuple[float, float]] | None] = []
    common = [float(w) for w in rng.uniform(0.0, 0.6, len(tables.gamma[0][0]))]
    for j in range(m):
        kind = rng.choice(["norm", "own", "common"], p=[0.25, 0.5, 0.25])
        truth = [[tables.gamma[h][j][i] for h in range(costed)] for i in range(len(common))]
        if kind == "norm":
            intervals.append(None)
        elif kind == "common" and all(len(set(column)) == 1 for column in truth):
            # The same half-widths as another limit: both learn from the same rows.
            lows = [column[0] - w * rng.uniform(0.1, 0.9) for column, w in zip(truth, common, strict=True)]
            intervals.append([(low, low + w) for low, w in zip(lows, common, strict=True)])
        else:
            intervals.append([_around(column, rng) for column in truth])
    anchors = [_known_costs(tables, h, rng) for h in range(horizon)]
    if tables.stationary_costs:
        anchors = [anchors[0]] * horizon
    if tables.terminal_x is None:
        anchors[-1] = []
    steps = rng.random() < 0.5
    rises = [[float(rng.uniform(0.0, 0.2)) if steps else 0.0 for _ in range(m)] for _ in range(horizon)]
    bounds = [[limit.bound + rise for limit, rise in zip(tables.limits, row, strict=True)] for row in rises]
    shared = [float(rng.uniform(0.0, 0.05)) if rng.random() < 0.3 else 0.0 for _ in range(m)]
    return Declared(intervals, [bool(rng.random() < 0.4) for _ in range(m)], anchors, bounds, shared)


def _around(column: list[float], rng: np.random.Generator) -> tuple[float, float]:
    """An interval that holds all of these, or the number that they are."""
    if len(set(column)) == 1 and rng.random() < 0.35:
        return column[0], column[0]
    return min(column) - float(rng.uniform(0.0, 0.4)), max(column) + float(rng.uniform(0.01, 0.4))


def _known_costs(tables: Tables, h: int, rng: np.random.Generator) -> list[KnownCost]:
    """The tables' own anchor, and features of some triplets whose costs are known more or less."""
    own = tables.anchor(h)
    if own is None:
        return []
    found: list[KnownCost] = [(*own, [0.0] * len(own[1]))]
    rows = [x for key, x in tables.x.items() if key[0] == h] or [own[0]]
    for _ in range(int(rng.integers(0, 4))):
        x = rows[int(rng.integers(len(rows)))]
        if rng.random() < 0.2:  # one that tells nothing new
            x = [2.0 * xi for xi in own[0]]
        tolerance = [float(rng.uniform(0.0, 0.03)) if rng.random() < 0.6 else 0.0 for _ in own[1]]
        cost = [dot(g, x) + float(rng.uniform(-t, t)) for g, t in zip(tables.gamma[h], tolerance, strict=True)]
        found.append((list(x), cost, tolerance))
    return found
