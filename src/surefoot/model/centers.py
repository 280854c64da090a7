"""How rays are declared: the action that each starts from, its centre, and the rules for it (spec 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from surefoot.checks import refuse_first
from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze
from surefoot.model.graph import OUTSIDE
from surefoot.model.layer import Layer, Rays
from surefoot.model.naming import Naming
from surefoot.model.rays import NO_CENTER
from surefoot.model.sparse_rows import SparseRows


@dataclass(frozen=True, eq=False)
class Centers:
    """The rays of one layer, as declared."""

    center: IntArray  # (N,) the centre of each pair, or NO_CENTER
    cost_features: FloatArray | None  # (R, dc) each cost row at α = 0; None: those of the centre itself


def center_pairs(number: IntArray, layer: Layer, h: int) -> IntArray:
    """(N,) the pair of each centre, from numbers that count within the state's own actions."""
    if len(number) != layer.n_pairs:
        got = f"{len(number)} entries where {layer.n_pairs} are expected"
        raise InvalidInput("center has the wrong length", where=f"step {h}", got=got)
    sizes = np.repeat(np.diff(layer.state_ptr), np.diff(layer.state_ptr))
    odd, rule = (number < NO_CENTER) | (number >= sizes), "center is no action of the state"
    refuse_first(odd, rule, lambda i: f"step {h}", got=lambda i: f"{int(number[i])} for pair {i}")
    pair = np.where(number == NO_CENTER, NO_CENTER, _first_pairs(layer) + number)
    pair[pair == np.arange(len(pair))] = NO_CENTER  # an action that is its own centre is an ordinary one
    return freeze(pair.astype(np.int64))


def center_numbers(pair: IntArray, layer: Layer) -> IntArray:
    """(N,) the reverse: each centre as a number within its state's own actions."""
    return np.where(pair == NO_CENTER, NO_CENTER, pair - _first_pairs(layer))


def _first_pairs(layer: Layer) -> IntArray:
    """(N,) the first pair of each pair's state."""
    return np.asarray(layer.state_ptr[layer.pair_state()])


def build_rays(
    layers: Sequence[Layer], declared: Sequence[Centers | None], naming: Naming, grows: bool = False
) -> tuple[Rays, ...]:
    """The rays of every layer, checked; an empty tuple if no action has an intensity. ``grows``: some pairs may not be
    expanded yet, and rays may still be added."""
    if not any(each is not None and (grows or (each.center != NO_CENTER).any()) for each in declared):
        return ()
    made: dict[tuple[int, ...], Rays] = {}
    result = []
    for h, (layer, each) in enumerate(zip(layers, declared, strict=True)):
        key = (id(each), *map(id, (layer.cost_features, layer.transition_features, layer.successor)))
        if key not in made:
            own = each or Centers(freeze(np.full(layer.n_pairs, NO_CENTER)), None)
            made[key] = _rays(layer, own, h, naming, grows)
        _refuse_fallback(layer, made[key], h, naming)
        result.append(made[key])
    return tuple(result)


def _rays(layer: Layer, declared: Centers, h: int, naming: Naming, grows: bool) -> Rays:
    costs, chances = layer.cost_features, layer.transition_features
    for table in (costs, chances):
        if isinstance(table, SparseRows) or table.dtype != np.float64:
            raise InvalidInput("rays need dense features in float64", where=f"step {h}", got=str(table.dtype))
    _check_centers(layer, declared.center, h, naming)
    # A pair that is not expanded leads outside at any intensity.
    apart = declared.center
    if grows:
        apart = np.where(layer.successor[layer.pair_ptr[:-1]] == OUTSIDE, NO_CENTER, apart)
    edge_of = _centre_edges(layer, apart, h, naming)
    phi = np.where((edge_of >= 0)[:, None], cast(FloatArray, chances)[edge_of], 0.0)  # elsewhere the chance is 0
    x = declared.cost_features
    if x is None:
        x = _centre_rows(layer, declared.center, edge_of, h, naming)
    x = np.ascontiguousarray(x, np.float64)
    if x.shape != costs.shape or not np.isfinite(x).all():
        got = f"shape {x.shape} where {costs.shape} is expected" if x.shape != costs.shape else "some are not finite"
        raise InvalidInput("the cost features of centres do not fit", where=f"step {h}", got=got)
    plain = np.repeat(declared.center == NO_CENTER, np.diff(layer.row_ptr))
    x = np.where(plain[:, None], cast(FloatArray, costs), x)
    joined = np.repeat(apart != NO_CENTER, np.diff(layer.pair_ptr))
    _check_ends(layer, joined, edge_of, x, h, naming)
    shared = chances is costs
    x = freeze(x)
    return Rays(freeze(declared.center.astype(np.int64)), x, x if shared else freeze(phi))


def _check_centers(layer: Layer, center: IntArray, h: int, naming: Naming) -> None:
    if center.shape != (layer.n_pairs,):
        got = f"{center.shape} where {(layer.n_pairs,)} is expected"
        raise InvalidInput("center has the wrong shape", where=f"step {h}", got=got)
    ray = np.flatnonzero(center != NO_CENTER)
    own = layer.pair_state()
    inside = (center[ray] >= 0) & (center[ray] < layer.n_pairs)
    bad = ray[~inside | (own[np.where(inside, center[ray], 0)] != own[ray])]
    if len(bad):
        where = naming.at_pair(layer, h, int(bad[0]))
        raise InvalidInput("the centre must be an action of the same state", where=where)
    again = ray[center[center[ray]] != NO_CENTER]
    if len(again):
        pair = int(again[0])
        raise InvalidInput(
            "a centre has no centre of its own",
            where=naming.at_pair(layer, h, pair),
            got=f"its centre {naming.action(layer, h, int(center[pair]))!r} is a ray itself",
            fix="Let all rays of a state start from an action that has no intensity.",
        )


def _centre_edges(layer: Layer, center: IntArray, h: int, naming: Naming) -> IntArray:
    """(E,) for each edge, the edge of its pair's centre to the same successor, or -1 if the centre does not lead there;
    for a pair without a centre, the edge itself. A ray must list every successor of its centre."""
    sizes, states = np.diff(layer.pair_ptr), len(naming.states[h + 1])
    start = np.where(center == NO_CENTER, np.arange(layer.n_pairs), center)
    own, from_centre = (np.repeat(p, sizes) * states + layer.successor for p in (np.arange(layer.n_pairs), start))
    order = np.argsort(own, kind="stable")
    at = order[np.minimum(np.searchsorted(own, from_centre, sorter=order), layer.n_edges - 1)]
    found = np.where(own[at] == from_centre, at, -1)
    plain = np.repeat(center == NO_CENTER, sizes)  # a pair that is not expanded has several edges to the outside
    found[plain] = np.flatnonzero(plain)
    few = np.flatnonzero(np.add.reduceat((found >= 0).astype(np.int64), layer.pair_ptr[:-1]) < sizes[start])
    if len(few):
        pair = int(few[0])
        listed, needed = (layer.successors_of(p).tolist() for p in (pair, start[pair]))
        missing = next(s for s in needed if s not in listed)
        raise InvalidInput(
            "a ray must list the successors of its centre too",
            where=naming.at_pair(layer, h, pair),
            got=f"{naming.states[h + 1][missing]!r} is missing",
            fix="Between the ends any successor of either may follow: add it, with transition features 0.",
        )
    return np.asarray(found)


def _centre_rows(layer: Layer, center: IntArray, edge_of: IntArray, h: int, naming: Naming) -> FloatArray:
    """(R, dc) the centre's own cost rows, triplet by triplet or row by row."""
    table = cast(FloatArray, layer.cost_features)
    if layer.per_triplet:
        refuse_first(
            edge_of < 0,
            "the cost features of a centre are missing",
            partial(naming.at_edge, layer, h),
            fix="Give center_cost_features, or costs that do not depend on the successor.",
            got="the centre does not lead there, but the ray does",
        )
        return table[edge_of]
    own = np.where(center == NO_CENTER, np.arange(layer.n_pairs), center)
    sizes = np.diff(layer.row_ptr)
    refuse_first(
        sizes[own] != sizes,
        "a ray needs as many cost rows as its centre",
        partial(naming.at_pair, layer, h),
        got=lambda pair: f"{int(sizes[pair])} where its centre has {int(sizes[own[pair]])}",
    )
    rows = np.repeat(layer.row_ptr[own] - layer.row_ptr[:-1], sizes) + np.arange(layer.n_rows)
    return table[rows]


def _check_ends(layer: Layer, joined: BoolArray, edge_of: IntArray, x: FloatArray, h: int, naming: Naming) -> None:
    """At α = 0 a ray is its centre, so where both lead, the cost features must be the centre's. ``joined`` (E,): edges
    of expanded rays."""
    costs = cast(FloatArray, layer.cost_features)
    if layer.per_triplet:
        differ, both = np.zeros(layer.n_edges, bool), np.flatnonzero(joined & (edge_of >= 0))
        differ[both] = np.any(x[both] != costs[edge_of[both]], axis=1)
        rule = "at intensity 0 a ray has the cost features of its centre"
        refuse_first(differ, rule, partial(naming.at_edge, layer, h))
    if layer.shares_features:
        rule = "rays whose ends have different successors need transition features of their own"
        refuse_first(edge_of < 0, rule, partial(naming.at_edge, layer, h), "Give transition_features.")


def _refuse_fallback(layer: Layer, rays: Rays, h: int, naming: Naming) -> None:
    refuse_first(
        layer.played_by_fallback() & (rays.center != NO_CENTER),
        "the fallback plays an action with an intensity",
        partial(naming.at_pair, layer, h),
        "The fallback plays its actions in full: make this one the centre, or give it no centre.",
    )
