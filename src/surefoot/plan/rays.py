"""How far may an action with an intensity be opened? The largest certified intensity, in closed form (spec 9).

Along a ray features are affine in α, and so are the known part of a cost and z; every bound of spec 3 is

    f(α) = affine(α) + ⟨centre, w(α)⟩ + radius·√(Σ weight w(α)²),     w(α) = w₀ + αΔ

convex in α, and f(α) = c̄ is a quadratic equation. It is solved about the point o of [0, 1] where the norm is least, so
that no digits are lost: with T = c̄ − (affine and told part at o), B their slope, a = ‖w_o‖², g = ⟨w_o, Δ⟩, q = ‖Δ‖²
(all in the ellipsoid's metric) and r the radius,

    (B² − r²q) t² − 2(TB + r²g) t + (T² − r²a) = 0,    α = o + t

and the root where f rises through c̄ is the right end of the interval that the ellipsoid certifies. The largest over
ellipsoids (any of them may certify), the least over cost rows and limits (all have to keep). Model errors and
tolerances add |ρ(α)|, which is piecewise linear; so is ‖z(α)‖₁ of a prior: the equation is solved piece by piece.

The very same with −cost and the ray turned round gives the least intensity that is proved unsafe: below it a ray is
*hopeful*. What is found is checked against the bounds that certify, and lowered until they agree: a closed form that
were wrong would certify nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from surefoot.estimate.costs import CostBounds, CostData, bound_costs, split
from surefoot.estimate.ellipsoids import CostConfidence, CostEllipsoids
from surefoot.model.graph import Anchors, FloatArray, IntArray, LayeredGraph, freeze
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL, NO_CENTER, Intensities, mixed, pair_at
from surefoot.plan.ray_kernels import RayBalls, RayEnd, furthest

TIE = 1e-9  #: of a limit's scale: a bound that exceeds its limit by less does so by rounding
_HALVINGS = 40  # of an interval of intensities, where bounds have no closed form
_LOWER = (1e-15, 1e-13, 1e-11, 1e-9)  # by which an intensity is lowered that its bound does not certify


class Opened(NamedTuple):
    """What follows for a problem with rays: an ordinary problem of certified intensities, and one of hopeful ones."""

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
    without one; and the largest that is not proved unsafe. ``limits`` (m,): the bounds of all limits, ``known``: where
    γ may lie, by family."""
    certified, hopeful = np.full(len(x0), FULL), np.full(len(x0), FULL)
    for each in known:
        balls, own = _balls(anchors, each), np.ascontiguousarray(limits[list(each.family.members)])
        zero, one = (_end(x, anchors, each, balls) for x in (x0, x1))
        between, found = one.w - zero.w, np.empty((len(x0), len(own)))
        lengths = (between * between) @ balls.weights.T
        furthest(zero, one, lengths, own, 1.0, balls, found)
        certified = np.minimum(certified, found.min(axis=1))
        furthest(one, zero, lengths, own, -1.0, balls, found)  # from the far end: where lower exceeds the limit
        hopeful = np.minimum(hopeful, np.where(found >= 0.0, 1.0 - found, FULL).min(axis=1))
    if any(each.counted is not None or any(prior.boxed for prior in each.family.priors) for each in known):
        return _bisected(x0, x1, anchors, known, limits, certified, hopeful)
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
    """The box of a prior cuts ellipsoids row by row, and visit counts add |z_eᵀMz| (spec 3): neither has a closed form.
    From what the closed form certifies up, and from what it refutes down, the bounds themselves are bisected. Below the
    first certified intensity nothing is looked for."""
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
    w = np.ascontiguousarray(z @ known.basis.lens.turn)
    told = w @ balls.centres.reshape(-1, w.shape[1]).T
    known_part = costs + x @ family.centres.T
    return RayEnd(np.ascontiguousarray(x), rho, z, w, known_part, told, (w * w) @ balls.weights.T)


def _balls(anchors: Anchors | None, known: CostEllipsoids) -> RayBalls:
    beside, own = known.family.known(anchors), known.balls
    k = len(known.family.members)
    return RayBalls(
        weights=own.weights,  # its first are ones: of the ball of the norm
        shape=np.vstack([np.zeros((1, k), np.int64), own.shape]),
        centres=np.concatenate([np.zeros_like(known.centres[:1]), known.centres]),
        radii=np.vstack([own.norms, known.radii]),
        errors=own.errors,
        guards=own.guards,
        prior_guards=own.prior_guards,
        boxed=own.boxed.astype(np.int64),
        outer=own.outer,
        tolerances=np.zeros((0, k)) if beside is None else np.ascontiguousarray(beside.tolerances),
        lengths=np.zeros(0) if beside is None else np.linalg.norm(beside.anchors, axis=1),
    )


@dataclass(frozen=True, eq=False)
class RayRows:
    """The cost rows of all rays of some steps, at both ends: equal ones once."""

    steps: tuple[int, ...]
    x0: FloatArray  # (n, dc)
    x1: FloatArray
    index: IntArray  # (rows,) which of them each row is, pair after pair, step after step
    ptr: IntArray  # (pairs,) the first row of each pair

    def by_pair(self, graph: LayeredGraph, found: FloatArray) -> list[FloatArray]:
        """Per step (N,) of every ray the least of what was found (n,) for its rows; 1 for pairs that are none."""
        least = np.minimum.reduceat(found[self.index], self.ptr)
        made, done = [], 0
        for h in self.steps:
            own = graph.rays[h].center != NO_CENTER
            many = int(own.sum())
            made.append(np.full(len(own), FULL))
            made[-1][own] = least[done : done + many]
            done += many
        return made


def ray_rows(problem: Problem, steps: tuple[int, ...]) -> RayRows:
    """Of the rays of these steps, sorted out once."""
    if steps in problem.ray_rows:
        found: RayRows = problem.ray_rows[steps]
        return found
    graph = problem.graph
    ends, sizes = [], []
    for h in steps:
        layer, own = graph.layers[h], graph.rays[h].center != NO_CENTER
        of_rays = np.repeat(own, np.diff(layer.row_ptr))
        ends.append(np.hstack([graph.rays[h].cost_features[of_rays], cast(FloatArray, layer.cost_features)[of_rays]]))
        sizes.append(np.diff(layer.row_ptr)[own])
    rows = np.concatenate(ends)
    once, index = np.unique(rows, axis=0, return_inverse=True)
    dim, many = rows.shape[1] // 2, np.concatenate(sizes)
    x0, x1 = (freeze(np.ascontiguousarray(part)) for part in (once[:, :dim], once[:, dim:]))
    problem.ray_rows[steps] = RayRows(steps, x0, x1, index.reshape(-1), np.cumsum(many) - many)
    return ray_rows(problem, steps)


# --- all rays of a problem ------------------------------------------------------------------------------


def open_rays(problem: Problem, data: CostData, confidence: CostConfidence) -> Opened:
    """Every ray at its largest certified and at its largest hopeful intensity; what may follow is not looked at yet."""
    graph, keys, groups = problem.graph, list[tuple[object, ...]](), dict[tuple[object, ...], list[int]]()
    found: dict[tuple[object, ...], tuple[FloatArray, FloatArray]] = {}
    for h, (layer, rays) in enumerate(zip(graph.layers, graph.rays, strict=True)):
        anchors = graph.anchors[h]
        beside = () if anchors is None else tuple(array.tobytes() for array in vars(anchors).values())
        group = (data.regression(h), problem.bounds[h].tobytes(), *beside)
        keys.append((*group, *map(id, (layer.cost_features, layer.row_ptr, rays))))
        if not (rays.center != NO_CENTER).any():
            found[keys[-1]] = (np.full(layer.n_pairs, FULL),) * 2
        elif keys[-1] not in keys[:-1]:
            groups.setdefault(group, []).append(h)
    for steps in groups.values():
        h = steps[0]
        known = [data.ellipsoids(h, confidence, f) for f in range(len(data.families))]
        rows = ray_rows(problem, tuple(steps))
        both = open_rows(rows.x0, rows.x1, graph.anchors[h], known, problem.bounds[h])
        opened = zip(steps, *(rows.by_pair(graph, np.maximum(each, 0.0)) for each in both), strict=True)
        found.update({keys[step]: (certified, hopeful) for step, certified, hopeful in opened})
    at, bounds, intensities = _lowered(problem, data, confidence, tuple(found[key][0] for key in keys))
    up = {(id(own), key): np.maximum(own, found[key][1]) for own, key in zip(intensities, keys, strict=True)}
    hoped_for = tuple(up[id(own), key] for own, key in zip(intensities, keys, strict=True))
    if all(map(np.array_equal, hoped_for, intensities)):
        return Opened(problem, at, bounds, intensities, at, bounds, intensities)
    hoped = problem.at(hoped_for)
    return Opened(problem, at, bounds, intensities, hoped, bound_costs(hoped, data, confidence), hoped_for)


def opening(opened: Opened, h: int, pair: int) -> dict[str, Any] | None:
    """How far a ray may be opened, ``to``, and which ``limit`` may have which ``upper`` bound a little ``beyond``; None
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


def _lowered(
    problem: Problem, data: CostData, confidence: CostConfidence, wanted: Intensities
) -> tuple[Problem, CostBounds, Intensities]:
    """The intensities, each lowered until the bounds that certify do so, or to 0; with the problem and its bounds.

    What rounding took is given back in small steps; where a row fails by more, its certified interval begins further
    out, and nothing is certified.
    """
    rounding = TIE * problem.cost_scales
    for step in (*_LOWER, FULL):
        at = problem.at(wanted)
        bounds = bound_costs(at, data, confidence)
        over = [upper - limits for upper, limits in zip(bounds.upper, problem.bounds, strict=False)]
        lower: dict[int, FloatArray] = {}
        for own, rays, layer, excess in zip(wanted, problem.graph.rays, problem.graph.layers, over, strict=True):
            open_ray = (own > 0.0) & (rays.center != NO_CENTER)
            fails, far = (
                np.logical_or.reduceat(~np.all(excess <= most, axis=1), layer.row_ptr[:-1]) & open_ray
                for most in (0.0, rounding)
            )
            if fails.any():
                down = np.where(far, 0.0, np.where(fails, np.maximum(own - step, 0.0), own))
                lower[id(own)] = np.minimum(lower.get(id(own), own), down)
        if not lower or not bounds.consistent:
            return at, bounds, wanted
        wanted = tuple(lower.get(id(own), own) for own in wanted)
    at = problem.at(wanted)
    return at, bound_costs(at, data, confidence), wanted
