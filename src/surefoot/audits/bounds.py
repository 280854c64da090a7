"""The audit's own transcription of spec 3 (cost bounds), as plain as it can be.

Bounds come with a slop, as wide as the guard of spec 3: within it, two programs may differ by rounding.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.audits.problem import Problem, norms_alone
from surefoot.audits.rays import RayBound
from surefoot.audits.rows import feature_shapes, reach, split

SURELY, POSSIBLY = 1.0, -1.0  #: whether rounding counts against a bound or for it
MOST_VISITED = 64  #: rows of a regression whose visits are counted one by one

_EPSILON = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-10  # of two programs that sum in another order, relative


@dataclass(frozen=True)
class Confidence:
    """The constants of the bounds, from a study's record."""

    ridges: tuple[float, ...]
    shaped: float  # so many times beside N, of the shape of the features; 0: beside I
    ratios: tuple[float, ...]  # per limit, by which its ridges are multiplied
    multipliers: tuple[float, ...]  # of (R/L)²: how much of the ball joins the noise ellipsoid
    failure_probability: float  # the share of the epoch
    scale: float  # on the radius
    beta: float | None  # the paper's radius; there is then no prior bound


class Data:
    """G = Σ z zᵀ, b_j = Σ z (ĉ_j − k_j) and the sums of model errors of every regression (spec 3), with more digits.

    Limits with the same half-widths share their rows: a *space*.
    """

    def __init__(self, problem: Problem, paper: bool, since: Problem | None = None) -> None:
        """``since``: what was declared when these rows began to be kept, from which N comes (spec 3)."""
        self._problem, self.since = problem, since or problem
        self._paper = paper
        self.known = [norms_alone(each) if paper else each for each in problem.known]
        keys = [each.width.tobytes() for each in self.known]
        self.space = [keys.index(key) for key in keys]  # that of a limit: the first one with its half-widths
        n, m, dim = 1 if problem.stationary else problem.horizon, len(problem.limits), problem.dim
        self.gram = {s: np.zeros((n, dim, dim), np.longdouble) for s in self.space}
        self.targets = np.zeros((n, m, dim), np.longdouble)
        self.spread = np.zeros((n, m))  # Σ (1 + Σ|ρ|)²
        self.errors = np.zeros((n, m))  # Σ e²,  e = ζ(1 + Σ|ρ|) + Σ|ρ_i| t_i of a row
        self.visits: dict[tuple[int, int], dict[tuple[float, ...], Visit]] = {}  # by regression and limit
        self.rest = np.zeros((n, m))  # Σ e² of rows that are not among these

    @cached_property
    def shapes(self) -> dict[int, Any]:
        """N of every regression (n, d, d), by space."""
        known = [norms_alone(each) if self._paper else each for each in self.since.known]
        return {s: feature_shapes(self.since, known[s]) for s in self.gram}

    def add(self, h: int, x: Any, cost: Any, one_by_one: bool) -> None:
        """Count a measured cost (m,) of a feature x (d,) at layer h; ``one_by_one``: its visits are counted."""
        r = 0 if self._problem.stationary else h
        for j, value in enumerate(cost):
            part = split(self._problem, self.known[j], h, j, x[None])
            exact, size, off = part.z[0].astype(np.longdouble), 1.0 + float(part.size[0]), float(part.blur[0])
            if self.space[j] == j:
                self.gram[j][r] += np.outer(exact, exact)
            self.targets[r, j] += np.longdouble(value - float(part.known[0])) * exact
            error = self._problem.limits[j].misspecification * size + off
            self.spread[r, j] += size * size
            self.errors[r, j] += error * error
            if x.any() or not one_by_one:
                self._visit(r, j, tuple(x.tolist()), part.z[0], error, one_by_one)

    def _visit(self, r: int, j: int, x: tuple[float, ...], z: Any, error: float, one_by_one: bool) -> None:
        seen = self.visits.setdefault((r, j), {})
        if one_by_one and (x in seen or len(seen) < MOST_VISITED):
            seen[x] = Visit(z, (seen[x].amount if x in seen else 0.0) + error)
        else:
            self.rest[r, j] += error * error


@dataclass(frozen=True, eq=False)
class Visit:
    """A row that was seen, and what the model errors of all its visits add up to."""

    z: Any  # (d,)
    amount: float


@dataclass(frozen=True, eq=False)
class Bounds:
    """Of every cost row of a layer, (rows, m) each: upper and lower, and by how much two programs may differ."""

    upper: Any
    lower: Any
    slop: Any

    @property
    def tables(self) -> tuple[Any, Any, Any]:
        return self.upper, self.lower, self.slop

    def part(self, rows: Any) -> Bounds:
        """The bounds of some of the rows."""
        return Bounds(*(table[rows] for table in self.tables))

    def keep(self, limits: Any, side: float) -> Any:
        """(rows,) does every upper bound keep its limit (m,), SURELY or POSSIBLY?"""
        return np.all(self.upper + side * self.slop <= np.asarray(limits), axis=1)


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{γ : ‖factor⁻ᵀ(γ − centre)‖ ≤ radius}; ``lost`` is the share of the radius that rounding was given."""

    factor: Any  # (d, d)  zᵀWz = ‖factor·z‖²
    centre: Any
    radius: float
    lost: float


@dataclass(frozen=True, eq=False)
class Counted:
    """An ellipsoid for the noise alone; how far model errors move its centre is counted row by row (spec 3)."""

    one: Ellipsoid
    moves: Any  # (v, d)  what each visited row moves it by, per unit
    amounts: Any  # (v,)
    spread: Any  # (d, d)  zᵀMGMᵀz is no more than ‖spread·z‖²
    rest: float
    digits: float  # what rounding may have taken from the visited rows, as a share of the length of z in W,
    blurred: Any  # (d, d)  and from ``spread``: with it

    def width(self, z: Any) -> Any:
        """(E,) how far off its centre ⟨γ, z⟩ may be."""
        noise, others = (np.sqrt(((z @ factor.T) ** 2).sum(axis=1)) for factor in (self.one.factor, self.spread))
        return self.one.radius * noise + np.abs(z @ self.moves.T) @ self.amounts + self.rest * others

    def slop(self, z: Any, width: Any) -> Any:
        """(E,) by how much two programs may differ."""
        lengths = [np.sqrt(((z @ each.T) ** 2).sum(axis=1)) for each in (self.one.factor, self.spread, self.blurred)]
        return self.one.lost * width + self.digits * lengths[0] + self.rest * (lengths[2] - lengths[1])


@dataclass(frozen=True, eq=False)
class Beside:
    """One regression beside λN, as ordinary least squares: with A = G/λ + N = CCᵀ and C⁻¹G/λ = V diag(s) Uᵀ. In
    directions of which nothing is known, s = 0."""

    ridge: float  # λ
    least: float  # N ≽ least·I
    size: float  # tr G, or λ·tr A: what it loses digits of
    log_det: float  # of A, less that of N
    s: Any  # (d,)
    basis: Any  # (d, d)  U
    pull: Any  # (d, d)  VᵀC⁻¹

    @property
    def floor(self) -> float:
        """No direction has less of a ridge than this: μ."""
        return self.least * self.ridge


def beside(gram: Any, ridge: float, shape: Any | None) -> Beside:
    """With N = KKᵀ and K⁻¹GK⁻ᵀ = Q diag(e) Qᵀ: C = KQ√(e/λ + 1), so C⁻¹G/λ = (e/λ)/√(e/λ + 1) QᵀKᵀ."""
    root = np.eye(len(gram)) if shape is None else np.linalg.cholesky(shape)
    inside = np.linalg.solve(root, np.linalg.solve(root, gram).T)
    values, basis = np.linalg.eigh((inside + inside.T) / 2)
    q = np.maximum(values, 0.0) / ridge
    white = basis.T / np.sqrt(q + 1.0)[:, None]
    side, s, turn = np.linalg.svd(q[:, None] * white @ root.T)
    trace = float(np.trace(gram))
    return Beside(
        ridge=ridge,
        least=1.0 if shape is None else 0.01,
        size=trace if shape is None else trace + ridge * float(np.trace(shape)),
        log_det=float(np.log1p(q).sum()),
        s=s,
        basis=turn.T,
        pull=side.T @ np.linalg.solve(root.T, white.T).T,
    )


def in_the_box(one: Ellipsoid, z: Any, side: float) -> Any:
    """(E,) ‖v‖₁ + ⟨centre, z − v⟩ + radius·√(z − v)ᵀW(z − v) for the v of two rounds of coordinate-wise minimisation:
    a bound on ⟨γ, z⟩, with side −1 on ⟨−γ, z⟩, where |γ_i| ≤ 1, whatever v is."""
    centre, v, far = side * one.centre, np.zeros_like(z), 8.0 * np.abs(z).sum(axis=1)
    for _, i in itertools.product(range(2), range(z.shape[1])):
        column = one.factor[:, i]
        own = float(np.sqrt(column @ column))
        reach = one.radius * own
        if not abs(centre[i]) + reach > 1.0:
            continue
        y = (z - v) @ one.factor.T
        nearest = (y @ column) / own**2
        rest = np.sqrt(((y - nearest[:, None] * column) ** 2).sum(axis=1))
        best = np.zeros(len(z))
        for sign in (1.0, -1.0):
            k = float(centre[i]) - sign
            if abs(k) < reach:
                t = v[:, i] + nearest + k * rest / own / math.sqrt(reach * reach - k * k)
                best = np.where(t * sign > 0.0, sign * np.minimum(np.abs(t), far), best)
        v[:, i] = best
    y = (z - v) @ one.factor.T
    return np.abs(v).sum(axis=1) + (z - v) @ centre + one.radius * np.sqrt((y * y).sum(axis=1))


class Ellipsoids:
    """(S3) for one regression."""

    def __init__(self, problem: Problem, data: Data, r: int, confidence: Confidence) -> None:
        self._problem, self._confidence, self._data, self._r = problem, confidence, data, r
        self._targets = data.targets[r].astype(float)
        self._found: dict[tuple[int, float, float], Beside] = {}
        make = self._dual if confidence.beta is None else self._plain
        grid = [[self._beside(j, ridge) for ridge in sorted(confidence.ridges)] for j in range(len(problem.limits))]
        self._parts = [[one for each in own for one in make(j, each)] for j, own in enumerate(grid)]
        self._counted = [
            None if confidence.beta is not None else self._count(j, own[len(own) // 2]) for j, own in enumerate(grid)
        ]

    def _beside(self, j: int, ridge: float) -> Beside:
        space, shaped = self._data.space[j], self._confidence.shaped
        key = space, ridge, self._confidence.ratios[j]
        if key not in self._found:
            shape = self._data.shapes[space][self._r] if shaped else None
            times = self._confidence.ratios[j] * (shaped or 1.0)
            self._found[key] = beside(self._data.gram[space][self._r].astype(float), ridge * times, shape)
        return self._found[key]

    def _sigma(self, j: int) -> float:
        return self._problem.noise(j, self._problem.rows_of_an_episode)

    def _noise(self, j: int, own: Beside, choices: float) -> float:
        """σ√(logdet A − logdet λN + 2 log(choices/p))."""
        inside = own.log_det + 2.0 * math.log(choices / self._confidence.failure_probability)
        return self._sigma(j) * math.sqrt(inside)

    def _error(self, j: int) -> float:
        """What the model errors of all rows can add up to."""
        return math.sqrt(float(self._data.errors[self._r, j]))

    def _widened(self, j: int, own: Beside, radius: float) -> tuple[float, float]:
        """With what rounding takes from G, b and their rows (spec 3), and its share."""
        known, digits, spread = self._data.known[j], 4.0 * _EPSILON, float(self._data.spread[self._r, j])
        share = digits * math.sqrt(self._problem.dim)
        off = share * own.size
        if off >= own.floor / 2:
            return math.inf, 1.0
        missing = off * known.length + share * float(np.sqrt(self._targets[j] @ self._targets[j]))
        size = known.length * reach(self._problem, known.width) + self._sigma(j)
        blur = 0.0
        if not known.plain:
            raw = reach(self._problem, np.ones_like(known.width))
            size += math.sqrt(self._problem.dim) * float(np.sqrt(known.centre @ known.centre)) * raw
            blur = share * size * math.sqrt(spread)  # of the anchors' costs
        rows = digits * size * math.sqrt(spread) + blur
        widened = radius / math.sqrt(1.0 - off / own.floor) + missing / math.sqrt(own.floor) + rows
        return widened, 1.0 - radius / widened if widened > 0.0 else 0.0

    def _dual(self, j: int, own: Beside) -> list[Ellipsoid]:
        noise, lost = self._widened(j, own, self._proved(j, own) + self._error(j))
        if noise >= 1e9 * self._data.known[j].length * math.sqrt(own.ridge):
            return []  # the ball alone says more
        return [self._joined(j, own, (noise, lost), each)[0] for each in self._confidence.multipliers]

    def _joined(
        self, j: int, own: Beside, radius: tuple[float, float], multiplier: float, error: float = 0.0
    ) -> tuple[Ellipsoid, Any]:
        """The noise ellipsoid plus c times the ball of the norm, c = multiplier·(R/L)², and s² + c. ``error``: how far
        model errors may have moved what the data say of the ball."""
        length, unit = self._data.known[j].length, math.sqrt(own.ridge)
        size = max(radius[0], 1e-6 * length * unit) / unit  # R, c, s and y in units in which λ is 1
        s, y, c = own.s, own.pull @ self._targets[j] / own.ridge, multiplier * (size / length) ** 2
        divisor = s * s + c
        told = math.sqrt(c * float((y * y / divisor).sum()))
        square = size * size + c * length**2 - max(0.0, told - error / unit) ** 2
        joined = unit * math.sqrt(square) if square >= 0.0 else math.nan
        factor = own.basis.T / (unit * np.sqrt(divisor))[:, None]
        return Ellipsoid(factor, own.basis @ (s * y / divisor), joined, radius[1]), divisor

    def _proved(self, j: int, own: Beside) -> float:
        problem, known = self._problem, self._confidence
        regressions = 1 if problem.stationary else problem.horizon
        return known.scale * self._noise(j, own, len(problem.limits) * regressions * len(known.ridges))

    def _count(self, j: int, own: Beside) -> Counted | None:
        """The least multiplier's ellipsoid, with R without model errors; these move the centre, each visited row by no
        more than its own errors add up to."""
        unit, error, s = math.sqrt(own.ridge), self._error(j), own.s
        noise, lost = self._widened(j, own, self._proved(j, own))
        visits = list(self._data.visits.get((self._r, j), {}).values())
        if not visits or not error > 0.1 * noise or noise >= 1e9 * self._data.known[j].length * unit:
            return None
        one, divisor = self._joined(j, own, (noise, lost), min(self._confidence.multipliers), error)
        rows, amounts = np.array([visit.z for visit in visits]), np.array([visit.amount for visit in visits])
        share, worse = 4.0 * _EPSILON * math.sqrt(self._problem.dim), 1.0
        if self._confidence.shaped:
            worse = math.sqrt(own.size / own.floor)  # κ
        blurred = np.sqrt(s * s + share * worse * own.size / own.ridge)
        return Counted(
            one=one,
            moves=(rows @ own.pull.T) * (s / divisor) @ own.basis.T / own.ridge,
            amounts=amounts,
            spread=(s / divisor / unit)[:, None] * own.basis.T,
            rest=math.sqrt(float(self._data.rest[self._r, j])),
            digits=share * worse * float(amounts @ np.sqrt((rows * rows).sum(axis=1))) / math.sqrt(own.floor),
            blurred=(blurred / divisor / unit)[:, None] * own.basis.T,
        )

    def _plain(self, j: int, own: Beside) -> list[Ellipsoid]:
        """The paper's one ellipsoid: γ̂ = A⁻¹b and its radius β, or more where imported rows outgrow it."""
        known = self._confidence
        proved = self._noise(j, own, len(self._problem.limits) * self._problem.horizon)
        plain = known.scale * max(proved + math.sqrt(own.ridge) * self._data.known[j].length, known.beta or 0.0)
        radius, lost = self._widened(j, own, plain + self._error(j))
        values, basis = np.linalg.eigh(self._data.gram[self._data.space[j]][self._r].astype(float))
        factor = (1.0 / np.sqrt(np.maximum(values, 0.0) + own.ridge))[:, None] * basis.T
        return [Ellipsoid(factor, self._targets[j] @ factor.T @ factor, radius, lost)]

    def bounds(self, h: int, x: Any) -> Bounds:
        """upper_j = k_j + min(L‖z‖, ‖z‖₁, min ⟨centre,z⟩ + radius·√zᵀWz) + ζ(1+Σ|ρ|) + Σ|ρ|t, at most outer·‖x‖ + ζ;
        with a prior also within the box; lower likewise. The slop is not added."""
        upper, lower, slop = (np.zeros((len(x), len(self._problem.limits))) for _ in range(3))
        for j, limit in enumerate(self._problem.limits):
            known = self._data.known[j]
            part = split(self._problem, known, h, j, x)
            z = part.z
            reach = known.length * np.sqrt((z * z).sum(axis=1))
            if known.boxed:
                reach = np.minimum(reach, np.abs(z).sum(axis=1))
            if self._confidence.beta is not None:
                reach = np.full(len(x), np.inf)  # the paper's bounds know nothing before any data
            high, low, off = reach, -reach, np.zeros(len(x))
            for one in self._parts[j]:
                w = z @ one.factor.T
                width, predicted = one.radius * np.sqrt((w * w).sum(axis=1)), z @ one.centre
                high, low = np.minimum(high, predicted + width), np.maximum(low, predicted - width)
                if known.boxed and self._confidence.beta is None:
                    high, low = np.minimum(high, in_the_box(one, z, 1.0)), np.maximum(low, -in_the_box(one, z, -1.0))
                off = np.maximum(off, one.lost * width)
            counted = self._counted[j]
            if counted is not None:
                width, predicted = counted.width(z), z @ counted.one.centre
                high, low = np.minimum(high, predicted + width), np.maximum(low, predicted - width)
                off = np.maximum(off, counted.slop(z, width))
            error = limit.misspecification * (1.0 + part.size) + part.blur
            upper[:, j], lower[:, j] = part.known + high + error, part.known + low - error
            if math.isfinite(known.outer):
                most = known.outer * np.sqrt((x * x).sum(axis=1)) + limit.misspecification
                upper[:, j], lower[:, j] = np.minimum(upper[:, j], most), np.maximum(lower[:, j], -most)
            slop[:, j] = 4.0 * off + _ROUNDING * (self._problem.scales[j] + np.abs(high) + np.abs(part.known))
        return Bounds(upper, lower, slop)

    def lines(self, h: int, zero: Any, one: Any) -> list[list[RayBound]]:
        """For every limit its upper bounds along the rays from rows at 0 to rows at 1 (spec 9), except those of the
        box, which have no closed form."""
        return [self._lines(h, j, zero, one) for j in range(len(self._problem.limits))]

    def _lines(self, h: int, j: int, zero: Any, one: Any) -> list[RayBound]:
        known, zeta = self._data.known[j], self._problem.limits[j].misspecification
        ends = [split(self._problem, known, h, j, x) for x in (zero, one)]
        anchors, flat = self._problem.anchors[h], np.zeros((len(zero), 0))
        weights = zeta if anchors is None else zeta + anchors[2][:, j]
        affine, kinks = [end.known + zeta for end in ends], [end.rho * weights for end in ends]

        def line(told: Any, w: Any, more: Any = None) -> RayBound:
            sides = range(2)
            bent = [kinks[e] if more is None else np.hstack([kinks[e], more[e]]) for e in sides]
            return RayBound(*(tuple(each) for each in ([affine[e] + told[e] for e in sides], w, bent)))

        found = []
        if self._confidence.beta is None:
            found.append(line([0.0, 0.0], [known.length * end.z for end in ends]))
            if known.boxed:
                found.append(line([0.0, 0.0], [flat, flat], [end.z for end in ends]))
        for each in self._parts[j]:
            if math.isfinite(each.radius):
                turned = [each.radius * (end.z @ each.factor.T) for end in ends]
                found.append(line([end.z @ each.centre for end in ends], turned))
        if math.isfinite(known.outer):
            always = np.full(len(zero), zeta)
            found.append(RayBound((always, always), (known.outer * zero, known.outer * one), (flat, flat)))
        return found
