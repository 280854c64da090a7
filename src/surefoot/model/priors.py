"""What is known of each limit's coefficients γ before any data (spec 3).

A prior gives every coefficient a centre m_i and a half-width δ_i: γ = m + δ∘γ′ with |γ′_i| ≤ 1. The regression learns
γ′ from the scaled features δ∘x; its length is at most √(number of δ_i > 0). A known coefficient has δ_i = 0. With a
norm alone, m = 0 and δ = 1; for a feature that the limit does not depend on, m = δ = 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.features import Features, parts_of, pieces, row_norms
from surefoot.model.graph import LayeredGraph
from surefoot.model.limit import Feature, Interval, Limit
from surefoot.model.naming import listed
from surefoot.model.reals import constant
from surefoot.model.sparse_rows import SparseRows
from surefoot.tolerances import ANCHOR


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of one limit's γ: γ = centre + width∘γ′, ‖γ′‖ ≤ length."""

    centre: FloatArray  # (dc,)  m
    width: FloatArray  # (dc,)  δ ≥ 0
    length: float  # L, a bound on ‖γ′‖
    boxed: bool  # |γ′_i| ≤ 1 as well
    norm: float  # ‖γ‖ ≤ norm: as declared, else what the intervals allow
    outer: float  # ‖γ‖ ≤ outer, if a norm was declared in addition to a prior; else ∞

    @property
    def reach(self) -> float:
        """‖γ − centre‖ is at most this."""
        return math.hypot(*self.width.tolist()) if self.boxed else self.length

    @property
    def plain(self) -> bool:
        """True if rows stay as they are declared: nothing is scaled or known."""
        return not self.boxed and bool((self.width == 1.0).all())


def with_step_bounds(limit: Limit, horizon: int) -> Limit:
    """The limit with its bound as a number, or as one per step if they differ."""
    bound, where = limit.bound, f"limit {limit.name!r}"
    if callable(bound):
        function = bound
        bound = tuple(constant("bound", function(h), f"{where}, step {h}") for h in range(horizon))
    if not isinstance(bound, tuple):
        return limit
    if len(bound) != horizon:
        fix = f"Give {horizon}, for steps 0 … {horizon - 1}, or a function of the step."
        raise InvalidInput(
            "a bound per step needs a number for each", where=where, got=f"{len(bound)} numbers", fix=fix
        )
    same = all(value == bound[0] for value in bound)
    return replace(limit, bound=bound[0] if same else bound)


def canonical(limit: Limit, dim: int, features: tuple[str, ...] | None) -> Limit:
    """The limit with its features and prior in the order of the columns: equal limits become equal objects."""
    where = f"limit {limit.name!r}"
    own = list(range(dim))
    if limit.features is not None:
        own = [_column(name, dim, features, where) for name in limit.features]
    prior = None if limit.prior is None else _intervals(limit, own, dim, features, where)
    columns: list[Feature] = [i if features is None else features[i] for i in sorted(own)]
    intervals = None if prior is None else tuple(prior[i] for i in sorted(own))
    if intervals is not None:
        _check_prior(intervals, limit.norm, where)
    return replace(limit, prior=intervals, features=None if len(own) == dim else tuple(columns))


def resolved(limit: Limit, dim: int, features: tuple[str, ...] | None) -> Prior:
    """What a canonical limit declares of its γ."""
    own = list(range(dim))
    if limit.features is not None:
        own = [_column(name, dim, features, limit.name) for name in limit.features]
    centre, width = np.zeros(dim), np.zeros(dim)
    if limit.prior is None:
        assert limit.norm is not None  # Limit checks this
        width[own] = 1.0
        return Prior(freeze(centre), freeze(width), limit.norm, False, limit.norm, math.inf)
    assert isinstance(limit.prior, tuple)
    for i, (low, high) in zip(own, limit.prior, strict=True):
        centre[i] = low / 2 + high / 2 if low < high else low
        if low < high:  # rounded up, to contain the whole interval
            width[i] = math.nextafter(max(high - centre[i], centre[i] - low), math.inf)
    most = math.hypot(*(max(abs(low), abs(high)) for low, high in limit.prior))
    length = math.sqrt(np.count_nonzero(width))
    norm, outer = (most, math.inf) if limit.norm is None else (limit.norm, limit.norm)
    return Prior(freeze(centre), freeze(width), length, True, norm, outer)


def _check_prior(prior: Sequence[Interval], norm: float | None, where: str) -> None:
    """The intervals are not too wide to compute with, and some γ in them keeps the norm."""
    if not math.isfinite(math.hypot(*(max(abs(low), abs(high)) for low, high in prior))):
        raise InvalidInput("a prior is too wide to compute with", where=where, fix="Measure this cost in other units.")
    least = math.hypot(*(max(low, -high, 0.0) for low, high in prior))
    if norm is not None and least > norm * (1 + ANCHOR):
        raise InvalidInput(
            "the prior is impossible under the norm",
            where=where,
            got=f"every γ of the prior is at least {least!r} long, norm {norm!r}",
            fix="Raise the norm, or leave it out: the prior is enough.",
        )


def _column(name: Feature, dim: int, features: tuple[str, ...] | None, where: str) -> int:
    if features is not None and name in features:
        return features.index(str(name))
    if type(name) is int and 0 <= name < dim and features is None:
        return name
    known = f"columns 0 … {dim - 1}" if features is None else listed(features, range(dim))
    fix = "Use one of these names." if features is not None else "To use names, declare them with features=[…]."
    raise InvalidInput("no such feature", where=where, got=f"{name!r}, there are {known}", fix=fix)


def _intervals(
    limit: Limit, own: list[int], dim: int, features: tuple[str, ...] | None, where: str
) -> dict[int, Interval]:
    """The interval of every coefficient that the limit depends on, by column. ``own``: the columns of a list."""
    if isinstance(limit.prior, tuple):
        if len(limit.prior) != len(own):
            got = f"{len(limit.prior)} entries for {len(own)} features: {listed(features, own)}"
            fix = "Give an interval or a number for each, in order; or a dict by feature."
            raise InvalidInput("prior has the wrong length", where=where, got=got, fix=fix)
        return dict(zip(own, limit.prior, strict=True))
    assert limit.prior is not None
    given = {_column(name, dim, features, where): entry for name, entry in limit.prior.items()}
    outside = [i for i in given if i not in own]
    if outside:
        got = listed(features, outside)
        fix = "Add it to the limit's features, or remove it from the prior."
        raise InvalidInput("prior of a feature that this limit does not depend on", where=where, got=got, fix=fix)
    left_out = [i for i in own if i not in given]
    if left_out and limit.norm is None:
        raise InvalidInput(
            "prior leaves features out",
            where=where,
            got=listed(features, left_out),
            fix="Give their intervals too (0 if the cost does not depend on one), or norm, which bounds the rest.",
        )
    norm = float(limit.norm or 0.0)
    return {**dict.fromkeys(left_out, (-norm, norm)), **given}


def largest_costs(graph: LayeredGraph, priors: Sequence[Prior]) -> FloatArray:
    """(m,) the largest |⟨γ, x⟩| that is possible anywhere."""
    longest = graph.largest_cost_norm()
    result = np.array([prior.norm * longest for prior in priors])
    if graph.beyond is not None:  # later rows are not known
        return result
    for j, prior in enumerate(priors):
        if prior.boxed:
            most = max(_largest_in_box(x, prior) for x in graph.cost_tables())
            result[j] = min(most, prior.outer * longest if longest > 0.0 else 0.0)
    return result


def _largest_in_box(x: Features, prior: Prior) -> float:
    """max over rows of |⟨m, x⟩| + ⟨δ, |x|⟩."""
    if isinstance(x, SparseRows):
        size = SparseRows(x.indptr, x.columns, np.abs(x.values), x.dim)
        return float((np.abs(x @ prior.centre) + size @ prior.width).max(initial=0.0))
    return max(
        float((np.abs(piece @ prior.centre) + np.abs(piece) @ prior.width).max(initial=0.0)) for _, piece in pieces(x)
    )


def longest_scaled(graph: LayeredGraph, width: FloatArray) -> float:
    """max ‖δ∘x‖ over all triplets and last states; in a graph that grows, a bound on it."""
    if (width == 1.0).all():
        return graph.largest_cost_norm()
    if graph.beyond is not None:
        return float(width.max()) * graph.largest_cost_norm()
    return max(
        float(np.max(row_norms(scaled(part, width)), initial=0.0)) for x in graph.cost_tables() for part in parts_of(x)
    )


def scaled(x: Features, width: FloatArray) -> Features:
    """δ∘x of every row, in float64."""
    if isinstance(x, SparseRows):
        return SparseRows(x.indptr, x.columns, x.values * width[x.columns], x.dim)
    return np.asarray(x, np.float64) * width
