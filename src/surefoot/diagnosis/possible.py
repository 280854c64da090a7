"""Does the declaration allow any truth? Finds the shortest γ or μ that meets the conditions on it.

**Transitions.** One μ gives the probabilities of all pairs of a regression: ⟨μ, φ(s,a,s′)⟩ ≥ 0, and their sum over s′
is 1. If there is no such μ, or the shortest is longer than the declared `transition_norm`, the declaration is wrong.

**The fallback.** It is declared safe in every state that it can reach within the declared support. So for each limit
there must be a γ, in its prior and of length at most L, with ⟨γ, x⟩ ≤ c̄ + ζ for all of its triplets and ⟨γ, x⁰⟩ = c⁰,
up to ζ and the anchor's tolerance.

Large problems are sampled evenly: if a sample contradicts the declaration, so does the whole.

**The shortest vector**, least ‖v‖ with A v = b and G v ≥ h: let v = v₀ + N y, where v₀ is the shortest solution of the
equations and N a basis of what they leave free; then ‖v‖² = ‖v₀‖² + ‖y‖². What remains is a least-distance problem,
which one non-negative least-squares problem solves exactly (Lawson and Hanson, 1974, chapter 23): with E = [Gᵀ; hᵀ] and
u ≥ 0 of least ‖Eu − e‖, e the last unit vector, y = −r/r_last for the residual r = Eu − e. If r is zero, nothing meets
the conditions, and the entries u > 0 belong to those that conflict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.diagnosis.diagnosis import NoFallback, NoProbabilities
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.model.priors import Prior
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows

MOST_PAIRS = 1000  #: of a regression that are checked
_MOST_COLUMNS = 300  # wider features are lookup tables, which can represent anything
_BEYOND = 1e-6  # a length is too long if it exceeds the declared one by this share
_ROUNDING = 1e-9  # of a cost or a coefficient: smaller contradictions are rounding


def no_probabilities(problem: Problem) -> NoProbabilities | None:
    """The first regression whose features no μ of the declared length turns into probabilities; None without one."""
    graph = problem.graph
    if graph.transition_dim > _MOST_COLUMNS:
        return None
    steps = range(len(graph.layers))
    done: set[tuple[int, ...]] = set()
    for some in [list(steps)] if problem.stationary_transitions else [[h] for h in steps]:
        key = tuple(id(part) for h in some for part in (graph.layers[h].transition_features, graph.layers[h].pair_ptr))
        masks = [graph.reachable[h] for h in some]
        if all(mask.all() for mask in masks):
            if key in done:
                continue
            done.add(key)
        found = _no_weights(problem, some)
        if found is not None:
            return found
    return None


def _no_weights(problem: Problem, steps: Sequence[int]) -> NoProbabilities | None:
    graph = problem.graph
    rows, sums, places = list[FloatArray](), list[FloatArray](), list[tuple[int, int]]()
    total = 0
    for h in steps:
        layer = graph.layers[h]
        reached = np.flatnonzero(np.repeat(graph.reachable[h], np.diff(layer.state_ptr)))
        total += len(reached)
        pairs = _evenly(reached, max(1, MOST_PAIRS // len(steps)))
        for pair, phi in zip(pairs.tolist(), _rows_of(layer.pair_ptr, layer.transition_features, pairs), strict=True):
            rows.append(phi)
            sums.append(phi.sum(axis=0))
            places += [(h, pair)]
    a, g = np.array(sums), np.vstack(rows)
    scale = float(np.linalg.norm(g, axis=1).max()) or 1.0  # in this unit, weights have a length of about 1
    owner = np.repeat(np.arange(len(rows)), [len(phi) for phi in rows])
    first_a, first_g = _distinct(a), _distinct(g)
    found = shortest(a[first_a] / scale, np.ones(len(first_a)), g[first_g] / scale, np.zeros(len(first_g)))
    if found.length / scale <= problem.transition_norm * (1.0 + _BEYOND):
        return None
    named = [int(first_a[i]) for i in found.equations] + [int(owner[first_g[i]]) for i in found.conditions]
    where = [problem.naming.at_pair(graph.layers[h], h, pair) for h, pair in (places[i] for i in dict.fromkeys(named))]
    return NoProbabilities(
        layers=tuple(steps),
        least_norm=found.length / scale,
        transition_norm=problem.transition_norm,
        where=tuple(where[:2]),
        looked_at=len(places),
        pairs=total,
        shared=graph.shared_features,
    )


def _distinct(rows: FloatArray) -> IntArray:
    """The numbers of rows that differ from all earlier ones."""
    return np.sort(np.unique(rows, axis=0, return_index=True)[1])


def _evenly(numbers: IntArray, most: int) -> IntArray:
    if len(numbers) <= most:
        return numbers
    return numbers[np.linspace(0, len(numbers) - 1, most).astype(np.int64)]


def _rows_of(pointer: IntArray, x: Features, pairs: IntArray) -> Iterator[FloatArray]:
    for pair in pairs.tolist():
        yield _dense(x, slice(int(pointer[pair]), int(pointer[pair + 1])))


def _dense(x: Features, rows: slice | IntArray | BoolArray) -> FloatArray:
    some = x[rows]
    return some.dense() if isinstance(some, SparseRows) else np.asarray(some, np.float64)


# --- the fallback -------------------------------------------------------------------------------------------


def no_fallback(problem: Problem) -> NoFallback | None:
    """The first limit that the fallback cannot keep everywhere with any declared γ; None without one."""
    graph = problem.graph
    if graph.cost_dim > _MOST_COLUMNS:
        return None
    tables = [_fallback_rows(problem, h) for h in range(graph.horizon)]
    for some in [range(graph.horizon)] if problem.stationary_costs else [range(h, h + 1) for h in range(graph.horizon)]:
        x = np.vstack([tables[h] for h in some])
        steps = np.repeat(np.array(some), [len(tables[h]) for h in some])
        for j, (limit, prior) in enumerate(zip(problem.limits, problem.priors, strict=True)):
            bound = problem.bounds[steps, j]
            rows = _evenly(_distinct(np.hstack([x, bound[:, None]])), 5 * MOST_PAIRS) if len(x) else steps
            found = _least_weights(problem, j, x[rows], bound[rows], some)
            if found.length > prior.norm * (1.0 + _BEYOND) + _BEYOND * problem.cost_scales[j]:
                lowest = float(problem.bounds[list(some), j].min())
                return NoFallback(tuple(some), limit.name, lowest, prior.norm, prior.boxed, found.length)
    return None


def _least_weights(problem: Problem, j: int, x: FloatArray, bound: FloatArray, steps: Sequence[int]) -> Shortest:
    """The shortest γ of the prior with ⟨γ, x⟩ ≤ c̄ + ζ for all rows and ⟨γ, x⁰⟩ = c⁰ up to ζ and tolerances."""
    error, prior = problem.limits[j].misspecification, problem.priors[j]
    known = prior.width == 0.0  # 0 for features that the limit does not depend on
    equations, values = [np.eye(len(known))[known]], [prior.centre[known]]
    conditions, least = _box(prior)
    given = {id(each): each for each in (problem.graph.anchors[h] for h in steps) if each is not None}
    for each in given.values():
        off = error + each.tolerance[:, j]
        exact = off == 0.0
        equations, values = [*equations, each.features[exact]], [*values, each.cost[exact, j]]
        a, c, off = each.features[~exact], each.cost[~exact, j], off[~exact] + _ROUNDING * problem.cost_scales[j]
        conditions, least = [*conditions, a, -a], [*least, c - off, -c - off]
    return shortest(
        np.vstack(equations),
        np.concatenate(values),
        np.vstack([*conditions, -x]),
        np.concatenate([*least, -bound - error]),
    )


def _box(prior: Prior) -> tuple[list[FloatArray], list[FloatArray]]:
    """lowest ≤ γ_i ≤ highest, as conditions."""
    if not prior.boxed:
        return [], []
    free = prior.width > 0.0
    unit, centre = np.eye(len(free))[free], prior.centre[free]
    width = prior.width[free] + _ROUNDING * (np.abs(centre) + prior.width[free])
    return [unit, -unit], [centre - width, -centre - width]


def _fallback_rows(problem: Problem, h: int) -> FloatArray:
    graph = problem.graph
    if h == len(graph.layers):
        last = graph.terminal
        if last.cost_features is None:
            return np.empty((0, graph.cost_dim))
        return _dense(last.cost_features, last.fallback_reached & last.has_cost)
    layer = graph.layers[h]
    pairs = _evenly(layer.fallback_pairs(), MOST_PAIRS)
    return np.vstack([*_rows_of(layer.row_ptr, layer.cost_features, pairs)])


def is_none(length: float) -> bool:
    """True if there is no vector, or only one so long that it comes from rounding."""
    return not math.isfinite(length) or length > 1e8


_NEGLIGIBLE = 1e-10  # a direction of the equations this much shorter than the longest is rounding
_LOST = 1e-7  # the accuracy of least squares, for equations of length 1


@dataclass(frozen=True)
class Shortest:
    """The length of the shortest vector, ∞ if there is none, and the conditions that conflict."""

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
        if off.max() > _LOST * max(1.0, float(np.abs(b).max())):
            return Shortest(math.inf, equations=(int(off.argmax()),))
        _, values, right = np.linalg.svd(np.linalg.qr(a, mode="r"), full_matrices=True)
        free = right[int((values > _NEGLIGIBLE * float(values[0])).sum()) :].T
    g, h, zero = _unit_rows(g, h)
    if zero:
        return Shortest(math.inf, conditions=(zero[0],))
    missing = h - g @ start
    rounding = _LOST * (1.0 + float(np.linalg.norm(start)))
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
    """The same conditions with rows of length 1; and the numbers of zero rows that ask for more than 0."""
    lengths = np.linalg.norm(a, axis=1)
    zero = np.flatnonzero((lengths == 0.0) & (b > 0.0)).tolist()
    divisor = np.where(lengths == 0.0, 1.0, lengths)
    return a / divisor[:, None], b / divisor, zero
