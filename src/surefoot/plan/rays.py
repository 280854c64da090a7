"""How far an action with an intensity may be opened: the largest certified intensity, in closed form (spec 9).

Along a ray, features are affine in α, and so are the known part of a cost and z; every bound of spec 3 is

    f(α) = affine(α) + ⟨centre, w(α)⟩ + radius·√(Σ weight w(α)²),     w(α) = w₀ + αΔ

convex in α, and f(α) = c̄ is a quadratic equation. It is solved about the point o of [0, 1] with the least norm, so that
no digits are lost: with T = c̄ − (affine and linear part at o), B their slope, a = ‖w_o‖², g = ⟨w_o, Δ⟩, q = ‖Δ‖² (all
in the ellipsoid's metric) and r the radius,

    (B² − r²q) t² − 2(TB + r²g) t + (T² − r²a) = 0,    α = o + t

and the root where f rises through c̄ is the right end of the interval that the ellipsoid certifies: the largest over
ellipsoids, any of which may certify, and the least over cost rows and limits, all of which must be kept. Model errors
and tolerances add |ρ(α)|, and a prior ‖z(α)‖₁; these are piecewise linear, so the equation is solved piece by piece.

The same with −cost, from the far end, gives the least intensity that is proved unsafe: below it a ray is *hopeful*.
Every intensity is checked against the bounds that certify and lowered until they agree, so an error in the closed form
would certify nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from surefoot.estimate.costs import CostBounds, CostData, bound_all, split, where_costed
from surefoot.estimate.ellipsoids import CostConfidence, CostEllipsoids
from surefoot.estimate.row_bounds import Both, possible
from surefoot.estimate.tables import sealed
from surefoot.model.arrays import FloatArray
from surefoot.model.features import Features
from surefoot.model.graph import Anchors
from surefoot.model.layer import Layer
from surefoot.model.problem import Problem
from surefoot.model.ray_groups import Kinds, Mixed, RayGroup
from surefoot.model.rays import FULL, Intensities, mixed, pair_at
from surefoot.plan.ray_kernels import RayBalls, RayEnd, RayRows, RaySide, fill_certified, fill_refuted, room_for
from surefoot.plan.ray_root_kernels import NOTHING
from surefoot.tolerances import CONTRADICTION

TIE = 1e-9  #: of a limit's scale: a bound exceeds its limit by less only because of rounding
_HALVINGS = 40  # of an interval of intensities, where bounds have no closed form
Bounding = Callable[[Features], Both]  # rows (n, dc) → (upper, lower), each (n, m)
_LOWER = (1e-15, 1e-13, 1e-11, 1e-9)  # steps by which an intensity is lowered if its bound does not certify it


class Opened(NamedTuple):
    """A problem with rays becomes two ordinary ones: one with certified intensities and one with hopeful ones."""

    declared: Problem  # with its rays
    problem: Problem  # every ray at the largest intensity that its own cost rows certify
    bounds: CostBounds
    intensities: Intensities
    hoped: Problem  # every ray at the largest intensity that is not proved unsafe
    hoped_bounds: CostBounds
    hoped_intensities: Intensities


def open_rows(
    x0: FloatArray, x1: FloatArray, anchors: Anchors | None, known: Sequence[CostEllipsoids], limits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(ass:starconvexity, spec 9) (n,) the largest certified α of each cost row between x₀ and x₁ (n, dc), NOTHING
    without one; and the largest not proved unsafe. ``limits`` (m,): bounds of all limits; ``known``: where γ may lie,
    by family."""
    alone = sealed(np.arange(len(x0) + 1))
    certified, hopeful = _closed_form(x0, x1, RayRows(alone[:-1], alone), anchors, known, limits)
    return _bisected(x0, x1, anchors, known, limits, certified, hopeful) if _curved(known) else (certified, hopeful)


def _open_pairs(
    kinds: Kinds, anchors: Anchors | None, known: Sequence[CostEllipsoids], limits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same (K,) for the pairs of each kind, all of whose rows must keep the limits; 1 if they are no rays."""
    (x0, x1), rays = kinds.once.costs, RayRows(kinds.once.row, kinds.once.begin)
    if _curved(known):
        by_row = open_rows(x0, x1, anchors, known, limits)
        certified, hopeful = (np.minimum.reduceat(each[rays.row], rays.begin[:-1]) for each in by_row)
    else:
        certified, hopeful = _closed_form(x0, x1, rays, anchors, known, limits)
    return kinds.every(np.maximum(certified, 0.0)), kinds.every(hopeful)


def _curved(known: Sequence[CostEllipsoids]) -> bool:
    """Do some bounds have no closed form?"""
    return any(each.counted is not None or any(prior.boxed for prior in each.family.priors) for each in known)


def _closed_form(
    x0: FloatArray,
    x1: FloatArray,
    rays: RayRows,
    anchors: Anchors | None,
    known: Sequence[CostEllipsoids],
    limits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    n = len(rays.begin) - 1
    certified, hopeful, found = np.full(n, FULL), np.full(n, FULL), np.empty(n)
    for each in known:
        balls, own = _balls(anchors, each), np.ascontiguousarray(limits[list(each.family.members)])
        if np.isnan(balls.radii).any():  # no γ explains the data: nothing is certified, and nothing refuted
            certified[:] = NOTHING
            continue
        zero, one = (_end(x, anchors, each, balls) for x in (x0, x1))
        between = one.w - zero.w
        lengths = (between * between) @ balls.weights.T
        side = RaySide(zero, one, lengths, own, 1.0, balls, room_for(zero, balls))
        fill_certified(side, rays, found)
        certified = np.minimum(certified, found)
        turned = balls._replace(centres=-balls.centres)
        far = side._replace(zero=one, one=zero, limits=-own, sign=-1.0, balls=turned)  # from the far end
        fill_refuted(far, rays, found)
        hopeful = np.minimum(hopeful, np.where(found >= 0.0, 1.0 - found, FULL))
    return certified, hopeful


def _bisected(
    x0: FloatArray,
    x1: FloatArray,
    anchors: Anchors | None,
    known: Sequence[CostEllipsoids],
    limits: FloatArray,
    certified: FloatArray,
    hopeful: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Bisect the bounds themselves, up from what the closed form certifies and down from what it refutes: the box of a
    prior and visit counts (spec 3) have no closed form. Nothing is searched below the first certified intensity."""
    bounds = CostBounds((), (), None, None, True, (list(known),), (anchors,))
    certified = np.where((certified < 0.0) & np.all(bounds.at(0, x0)[0] <= limits, axis=1), 0.0, certified)
    low, high, bad = np.maximum(certified, 0.0), np.full(len(x0), FULL), hopeful.copy()
    fine = np.maximum(certified, 0.0)
    for step in range(_HALVINGS):
        up = high if step == 0 else (low + high) / 2.0
        down = bad if step == 0 else (fine + bad) / 2.0
        kept = np.all(bounds.at(0, mixed((x0, x1), up))[0] <= limits, axis=1)
        low, high = np.where(kept & (certified >= 0.0), up, low), np.where(kept, high, up)
        refuted = np.any(bounds.at(0, mixed((x0, x1), down))[1] > limits, axis=1)
        bad, fine = np.where(refuted, down, bad), np.where(refuted, fine, down)
    return np.where(certified >= 0.0, low, certified), np.maximum(bad, np.maximum(low, 0.0))


def _end(x: FloatArray, anchors: Anchors | None, known: CostEllipsoids, balls: RayBalls) -> RayEnd:
    """Rows at one end, as a family of limits sees them."""
    family, beside = known.family, known.family.known(anchors)
    rho, z = split(x, family, beside)
    costs = np.zeros((len(x), len(family.members))) if beside is None else rho @ beside.costs
    w = np.ascontiguousarray(z @ known.basis.lens.turn.T.copy())
    told = w @ balls.centres.reshape(-1, w.shape[1]).T
    known_part = costs + x @ family.centres.T
    return RayEnd(sealed(np.ascontiguousarray(x)), rho, z, w, known_part, told, (w * w) @ balls.weights.T)


def _balls(anchors: Anchors | None, known: CostEllipsoids) -> RayBalls:
    beside, own = known.family.known(anchors), known.balls
    k = len(known.family.members)
    # The same layout for every shape, or the kernels would be compiled for each.
    centres = np.concatenate([np.zeros_like(known.centres[:1]), known.centres])
    radii = np.vstack([own.norms, known.radii])
    return RayBalls(
        weights=own.weights,  # its first are ones: of the ball of the norm
        shape=np.vstack([np.zeros((1, k), np.int64), own.shape]),
        centres=np.ascontiguousarray(centres),
        radii=np.ascontiguousarray(radii),
        errors=own.errors,
        guards=own.guards,
        prior_guards=own.prior_guards,
        boxed=own.boxed.astype(np.int64),
        outer=own.outer,
        tolerances=np.zeros((0, k)) if beside is None else np.ascontiguousarray(beside.tolerances),
        lengths=np.zeros(0) if beside is None else np.linalg.norm(beside.anchors, axis=1),
    )


# --- all rays of a problem ------------------------------------------------------------------------------


class _At(NamedTuple):
    """The kinds of pairs of a group at some intensities, and the bounds of their cost rows."""

    intensity: FloatArray  # (K,)
    costs: FloatArray  # (U, dc)
    upper: FloatArray  # (U, m)
    lower: FloatArray

    def moved(self, kinds: Kinds, intensity: FloatArray, bound: Bounding) -> _At:
        """At other intensities; only what changes is mixed and bounded again."""
        rows = np.flatnonzero((intensity != self.intensity)[kinds.of_row])
        if not len(rows):
            return self
        costs, upper, lower = self.costs.copy(), self.upper.copy(), self.lower.copy()
        costs[rows] = kinds.costs.of(rows).at(intensity[kinds.of_row[rows]])
        upper[rows], lower[rows] = bound(costs[rows])
        return _At(intensity, costs, upper, lower)


class _Side(NamedTuple):
    """A group at some intensities."""

    group: RayGroup
    kinds: _At
    mixed: Mixed


def open_rays(problem: Problem, data: CostData, confidence: CostConfidence) -> Opened:
    """Every ray at its largest certified and at its largest hopeful intensity, by its own costs: what may follow does
    not count yet."""
    graph, known, found = problem.graph, dict[int, list[CostEllipsoids]](), list[tuple[RayGroup, _At, _At]]()

    def bounding(h: int) -> Bounding:
        if (r := data.regression(h)) not in known:
            known[r] = [data.ellipsoids(h, confidence, f) for f in range(len(data.families))]
        return partial(bound_all, anchors=graph.anchors[h], known=known[r], families=data.families)

    for group in problem.ray_groups:
        kinds, h = group.kinds, group.steps[0][0]
        bound = bounding(h)
        wanted, hopeful = _open_pairs(kinds, graph.anchors[h], known[data.regression(h)], problem.bounds[h])
        certified = _lowered(kinds, wanted, bound, problem, h)
        hoped = certified.moved(kinds, np.maximum(certified.intensity, hopeful), bound)
        found.append((group, certified, hoped))
    last = None if graph.terminal.cost_features is None else bounding(graph.horizon - 1)(graph.terminal.cost_features)
    by_step = tuple(known.get(data.regression(h)) for h in range(graph.horizon))
    near, far = list[_Side](), list[_Side]()
    for group, one, other in found:
        near.append(_Side(group, one, group.at(one.intensity, one.costs)))
        far.append(
            near[-1] if other is one else _Side(group, other, group.at(other.intensity, other.costs, near[-1].mixed))
        )
    certain = _opened(problem, near, last, by_step)
    alike = all(one is other for one, other in zip(near, far, strict=True))
    return Opened(problem, *certain, *(certain if alike else _opened(problem, far, last, by_step)))


def _lowered(kinds: Kinds, wanted: FloatArray, bound: Bounding, problem: Problem, h: int) -> _At:
    """The intensities (K,), each lowered until its bounds certify it, or to 0.

    Small steps make up for rounding; if a row fails by more, its certified interval begins further out, and nothing is
    certified.
    """
    limits, costs = problem.bounds[h], kinds.costs.at(wanted[kinds.of_row])
    found = _At(wanted, costs, *bound(costs))
    for less in (*_LOWER, FULL):
        over, far = (
            np.logical_or.reduceat(~np.all(found.upper - limits <= most, axis=1), kinds.first_row)
            for most in (0.0, TIE * problem.cost_scales)
        )
        fails = over & kinds.ray & (found.intensity > 0.0)
        if not fails.any() or not possible(found.upper, found.lower, CONTRADICTION * problem.cost_scales):
            break
        lower = np.where(far, 0.0, np.maximum(found.intensity - less, 0.0))
        found = found.moved(kinds, np.where(fails, lower, found.intensity), bound)
    return found


def _opened(
    problem: Problem,
    found: Sequence[_Side],
    last: Both | None,
    known: tuple[list[CostEllipsoids] | None, ...],
) -> tuple[Problem, CostBounds, Intensities]:
    """The problem at these intensities, its bounds, and the intensities by step."""
    layers, parts = dict[int, Layer](), (dict[int, FloatArray](), dict[int, FloatArray](), dict[int, FloatArray]())
    rounding = CONTRADICTION * problem.cost_scales
    for group, at, its in found:
        layers.update(group.layers(problem.graph, its))
        parts[0].update(group.by_step(at.upper.take(group.kind_row, axis=0), group.rows))
        parts[1].update(group.by_step(at.lower.take(group.kind_row, axis=0), group.rows))
        parts[2].update(group.by_step(its.intensity, group.pairs))
    upper, lower, intensities = (tuple(each[h] for h in range(len(layers))) for each in parts)
    consistent = all(possible(at.upper, at.lower, rounding) for at in (side.kinds for side in found))
    consistent &= last is None or possible(*last, rounding)
    high, low = (where_costed(problem.graph.terminal, last, i) for i in (0, 1))
    bounds = CostBounds(upper, lower, high, low, consistent, known, problem.graph.anchors)
    return problem.with_layers([layers[h] for h in range(len(layers))]), bounds, intensities


def opening(opened: Opened, h: int, pair: int) -> dict[str, Any] | None:
    """How far a ray may be opened (``to``), and the ``upper`` bound of the deciding ``limit`` a little ``beyond``; None
    for an action without an intensity."""
    problem, intensity = opened.declared, float(opened.intensities[h][pair])
    if not problem.is_ray(h, pair):
        return None
    if intensity == FULL:
        return {"to": FULL, "beyond": None, "limit": None, "upper": None}
    digits = _digits(intensity)
    beyond = min(FULL, math.floor(intensity * 10**digits + 1) / 10**digits)
    rows = pair_at(problem.graph.layers[h], problem.graph.rays[h], pair, beyond).cost_features
    upper, _ = opened.bounds.at(h, cast(FloatArray, rows))
    row, j = np.unravel_index(int((upper - problem.bounds[h]).argmax()), upper.shape)
    return {"to": intensity, "beyond": beyond, "limit": problem.limits[j].name, "upper": float(upper[row, j])}


def opening_in_words(found: Mapping[str, Any] | None, bounds: Mapping[str, float]) -> str:
    """An :func:`opening` in words, with the limits' bounds; empty for an action without an intensity."""
    if found is None:
        return ""
    if found["beyond"] is None:
        return "may be opened in full"
    digits = _digits(found["to"])
    shown = math.floor(found["to"] * 10**digits) / 10**digits
    reached = f"at {found['beyond']:.{digits}f} {found['limit']} may reach {found['upper']:.4g}"
    return f"may be opened to {shown:.{digits}f}: {reached}, and the limit is {bounds[found['limit']]:.4g}"


def _digits(intensity: float) -> int:
    return 2 if intensity >= 0.01 else 6
