"""Limits that learn from the same rows, and how their rows come from the declared features (spec 3).

A prior turns features x into δ∘x, so limits with the same half-widths δ, a *family*, share their Gram matrices; limits
with only a norm have δ = 1 and are one family. In each, rows are the part of δ∘x beside the scaled anchors:

    ρ = (X⁰X⁰ᵀ)⁺ X⁰ (δ∘x),    z = δ∘x − X⁰ᵀρ,    X⁰ the anchors' δ∘x⁰, one per row

and the known part of a cost is ⟨m_j, x⟩ + Σ ρ_i (c⁰_ij − ⟨m_j, x⁰_i⟩), off by at most ζ_j (1 + Σ|ρ_i|) + Σ|ρ_i| t_ij.
For one anchor ρ = ⟨x, x⁰⟩/‖x⁰‖². It helps that z is orthogonal to the anchors, but no bound relies on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surefoot.checks import at_least, list_of
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.features import Features, parts_of, row_norms, table_times
from surefoot.model.graph import Anchors, LayeredGraph
from surefoot.model.limit import Limit
from surefoot.model.priors import Prior, longest_scaled, scaled
from surefoot.model.problem import Problem
from surefoot.tolerances import LEAST_RIDGE

LOST = 4.0 * float(np.finfo(np.float64).eps)  #: of a sum of squares, per √d: measured against 50 digits
_DEPENDENT = 1e-6  # singular values of anchors of length one: a direction below this share is left out


@dataclass(frozen=True, eq=False)
class Known:
    """The anchors of one step, as rows of one family are projected on them. (n anchors, k members)"""

    anchors: FloatArray  # (n, dc)  δ∘x⁰
    directions: FloatArray  # (n, dc)  ρ = directions·x, of unscaled rows
    costs: FloatArray  # (n, k)  c⁰ − ⟨m, x⁰⟩
    tolerances: FloatArray  # (n, k)  t, and what rounding takes from it and from the costs


@dataclass(frozen=True, eq=False)
class Family:
    """Some limits, and what is declared of them."""

    members: tuple[int, ...]  # k, among the problem's limits
    limits: tuple[Limit, ...]  # these
    noises: FloatArray  # (k,)  σ of (S3)
    priors: tuple[Prior, ...]
    width: FloatArray  # (dc,)  δ
    longest: float  # the largest ‖δ∘x‖ of rows
    reach: float  # the largest ‖δ∘x‖ of rows and anchors: in z, and in known parts, digits of (1 + Σ|ρ|) of it are lost
    raw: float  # the largest ‖x‖ of these
    ratio: float  # of mean ‖z‖² to that of rows as they are declared: what ridges are multiplied by

    @cached_property
    def plain(self) -> bool:
        """Is nothing declared but norms?"""
        return all(prior.plain for prior in self.priors)

    @cached_property
    def centres(self) -> FloatArray:
        """(k, dc) m"""
        return np.array([prior.centre for prior in self.priors])

    def known(self, anchors: Anchors | None) -> Known | None:
        """The anchors of a step in this family, computed once."""
        if anchors is None:
            return None
        if anchors not in self._anchors:
            self._anchors[anchors] = self._beside(anchors)
        return self._anchors[anchors]

    @cached_property
    def _anchors(self) -> dict[Anchors, Known]:
        return {}

    def _beside(self, anchors: Anchors) -> Known:
        own, rows = list(self.members), anchors.features * self.width
        lost = LOST * math.sqrt(rows.shape[1])
        cost, tolerance = anchors.cost[:, own], anchors.tolerance[:, own] * (1.0 + lost)
        if not self.plain:
            middle = anchors.features @ self.centres.T
            size = np.abs(cost) + np.abs(anchors.features) @ np.abs(self.centres).T
            cost, tolerance = cost - middle, tolerance + lost * size
        return Known(rows, _directions(rows) * self.width, cost, tolerance)


def _directions(rows: FloatArray) -> FloatArray:
    """(X⁰X⁰ᵀ)⁺X⁰ of rows X⁰ (n, d); zero for a row that is zero."""
    if len(rows) == 1:
        square = float(rows[0] @ rows[0])
        return rows / square if square > 0.0 else np.zeros_like(rows)
    units, lengths = _units(rows)
    inverse = np.linalg.pinv(units, rcond=_DEPENDENT).T
    result: FloatArray = np.divide(inverse, lengths, out=np.zeros_like(rows), where=lengths > 0.0)
    return result


def _units(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows of length one, zero for one that is zero, and their lengths (n, 1)."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0.0), lengths


def families(problem: Problem) -> tuple[Family, ...]:
    """The limits by their half-widths, in order of first occurrence."""
    groups: dict[bytes, list[int]] = {}
    for j, prior in enumerate(problem.priors):
        groups.setdefault(prior.width.tobytes(), []).append(j)
    return tuple(_family(problem, members, problem.priors) for members in groups.values())


def with_ratios(problem: Problem, ratios: Sequence[float] | None) -> tuple[Family, ...]:
    """:func:`families` with given ratios of ridges, one per limit, for data that are kept from before."""
    found = families(problem)
    if ratios is None:
        return found
    given = [at_least("ridge_ratios", value, 0.0, strictly=True) for value in list_of("ridge_ratios", ratios)]
    if len(given) != len(problem.limits):
        raise InvalidInput("ridge_ratios has one number per limit", got=repr(given))
    for family in found:
        if len({given[j] for j in family.members}) > 1:
            names = ", ".join(limit.name for limit in family.limits)
            raise InvalidInput("limits with the same intervals learn from the same rows", where=names, got=repr(given))
    return tuple(replace(family, ratio=given[family.members[0]]) for family in found)


def of_norms(problem: Problem) -> tuple[Family, ...]:
    """All limits in one family, by their norms; that of a prior is the length of the longest γ that it allows."""
    dim = problem.graph.cost_dim
    nothing, whole = np.zeros(dim), np.ones(dim)
    priors = [Prior(nothing, whole, prior.norm, False, prior.norm, math.inf) for prior in problem.priors]
    return (_family(problem, list(range(len(priors))), tuple(priors)),)


def _family(problem: Problem, members: list[int], priors: tuple[Prior, ...]) -> Family:
    width = priors[members[0]].width
    longest, anchors = longest_scaled(problem.graph, width), [x for x in problem.graph.anchors if x is not None]
    reach, raw = (
        max([of_rows, *(float(np.linalg.norm(x.features * scale, axis=1).max()) for x in anchors)])
        for of_rows, scale in ((longest, width), (problem.graph.largest_cost_norm(), np.ones_like(width)))
    )
    made = Family(
        members=tuple(members),
        limits=tuple(problem.limits[j] for j in members),
        noises=problem.noises[members],
        priors=tuple(priors[j] for j in members),
        width=width,
        longest=longest,
        reach=reach,
        raw=raw,
        ratio=1.0,
    )
    if (width == 1.0).all() or made.longest == 0.0:
        return made
    return replace(made, ratio=ridge_scale(problem, made) / ridge_scale(problem, of_norms(problem)[0]))


def ridge_scale(problem: Problem, family: Family) -> float:
    """s, the mean ‖z‖² over all rows that have a cost, at least 10⁻⁶ of the largest ‖δ∘x‖² (spec 3). If the problem
    grows, over the rows that it began with (spec 9)."""
    longest = family.longest or 1.0
    return max(mean_square(first_graph(problem), family), LEAST_RIDGE * longest**2)


def first_graph(problem: Problem) -> LayeredGraph:
    """The graph that a problem began with, with its present anchors."""
    first = problem.first
    return problem.graph if first is problem else replace(first.graph, anchors=problem.graph.anchors)


def mean_square(graph: LayeredGraph, family: Family) -> float:
    """The mean ‖z‖² over all rows that have a cost."""
    total, rows = 0.0, 0
    done: dict[tuple[int, int], float] = {}
    for x, anchors in costed_rows(graph):
        if x is None:
            continue
        key = id(x), id(anchors)
        if key not in done:
            done[key] = sum(_squares(part, family, family.known(anchors)) for part in parts_of(x))
        total, rows = total + done[key], rows + len(x)
    return max(total, 0.0) / max(rows, 1)


def costed_rows(graph: LayeredGraph) -> Iterator[tuple[Features | None, Anchors | None]]:
    """By step: the rows that have a cost, None without any, and the anchors."""
    last = graph.terminal
    ends = None if last.cost_features is None else last.cost_features[last.has_cost]
    return zip([*(layer.cost_features for layer in graph.layers), ends], graph.anchors, strict=True)


def _squares(x: Features, family: Family, known: Known | None) -> float:
    """Σ ‖z‖² over some rows."""
    lengths = row_norms(x if (family.width == 1.0).all() else scaled(x, family.width))
    if known is None:
        return float((lengths**2).sum())
    _, sizes, basis = np.linalg.svd(_units(known.anchors)[0], full_matrices=False)
    spanned = basis[sizes > _DEPENDENT * sizes.max()] * family.width  # orthonormal: ρ may be 10⁶ times x
    along = table_times(x, np.ascontiguousarray(spanned.T))
    return float((lengths**2).sum() - (along * along).sum())
