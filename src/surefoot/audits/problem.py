"""What the audit knows of a problem, and what follows from it: bounds by step, noise, scales, what a limit declares of
its coefficients (spec 3), the index of a label."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from surefoot.audits.rays import mixed

NONE = -1  #: where the fallback has no action
BEYOND = 1e-9  #: of a limit's scale: a cost exceeds its limit by more than this (spec 8)


class Unreadable(Exception):
    """There is nothing to audit, or it is written in a way that this audit does not know."""


@dataclass(frozen=True)
class Limit:
    """One limit, as in the file."""

    name: str
    bound: float | list[float]
    noise: float
    norm: float | None
    prior: list[list[float]] | None
    misspecification: float
    episode_noise: float
    features: list[Any] | None


@dataclass(frozen=True, eq=False)
class Knowledge:
    """γ = centre + width∘γ′ with ‖γ′‖ ≤ length, |γ′_i| ≤ 1 if boxed, and ‖γ‖ ≤ outer."""

    centre: Any  # (d,)
    width: Any  # (d,)
    length: float
    boxed: bool
    outer: float
    norm: float

    @property
    def plain(self) -> bool:
        return not self.boxed and bool((self.width == 1.0).all())


def knowledge(limit: Limit, names: list[str] | None, dim: int) -> Knowledge:
    """What is known of the coefficients of one limit."""
    own = list(range(dim))
    if limit.features is not None:
        own = [each if names is None else names.index(each) for each in limit.features]
    centre, width = np.zeros(dim), np.zeros(dim)
    if limit.prior is None:
        if limit.norm is None:
            raise ValueError(f"limit {limit.name!r} has neither a norm nor a prior")
        width[own] = 1.0
        return Knowledge(centre, width, float(limit.norm), False, math.inf, float(limit.norm))
    if len(limit.prior) != len(own):
        raise ValueError(f"limit {limit.name!r} has {len(limit.prior)} intervals for {len(own)} features")
    for i, (low, high) in zip(own, limit.prior, strict=True):
        if not low <= high:
            raise ValueError(f"limit {limit.name!r} has an interval from {low!r} to {high!r}")
        centre[i] = low if low == high else low / 2 + high / 2
        width[i] = 0.0 if low == high else math.nextafter(max(high - centre[i], centre[i] - low), math.inf)
    most = math.hypot(*(max(abs(low), abs(high)) for low, high in limit.prior))
    outer = math.inf if limit.norm is None else float(limit.norm)
    norm = most if limit.norm is None else outer
    return Knowledge(centre, width, math.sqrt(int((width > 0.0).sum())), True, outer, norm)


def norms_alone(each: Knowledge) -> Knowledge:
    """What the paper's learner knows of it."""
    return Knowledge(np.zeros_like(each.centre), np.ones_like(each.width), each.norm, False, math.inf, each.norm)


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer with actions: pairs of state i are state_ptr[i] … state_ptr[i+1]-1, edges of a pair likewise."""

    state_ptr: list[int]
    pair_ptr: list[int]
    successor: list[int]
    x: Any  # (rows, d) array
    fallback: list[int]  # the fallback's pair of each state, or NONE
    actions: list[Any] | None  # one label per pair; None: 0, 1, … in each state
    row_ptr: list[int]  # the rows of x that belong to each pair, as above
    by_edge: bool  # row e belongs to edge e
    forbidden: set[int]  # states that must not be entered
    x0: Any = None  # (rows, d) of actions with an intensity at 0, of others as x (spec 9); None: there are none
    rays: Mapping[int, int] = field(default_factory=dict)  # the pairs that have an intensity, each with its centre

    def pair_rows(self, pair: int) -> slice:
        """All rows of x that belong to a pair."""
        return slice(self.row_ptr[pair], self.row_ptr[pair + 1])

    def after(self, pair: int) -> list[int]:
        """The states that may follow a pair."""
        return self.successor[self.pair_ptr[pair] : self.pair_ptr[pair + 1]]

    def row_pairs(self) -> list[int]:
        """The pair of every row of x."""
        return [pair for pair, (first, end) in enumerate(itertools.pairwise(self.row_ptr)) for _ in range(first, end)]

    def rows_at(self, pair: int, intensity: float) -> Any:
        """(k, d) the rows of a pair at an intensity."""
        own = self.pair_rows(pair)
        return self.x[own] if self.x0 is None else mixed(self.x0[own], self.x[own], intensity)

    def can_have(self, pair: int | None, intensity: Any) -> bool:
        """Can this be written as the intensity of a pair? It is null without rays or for no pair, and 1 for a pair
        that has none."""
        if self.x0 is None or pair is None:
            return intensity is None
        return type(intensity) in (int, float) and 0.0 <= intensity <= 1.0 and (pair in self.rays or intensity == 1.0)

    def of_forbidden(self, pair: int) -> bool:
        """Does a pair belong to a state that must not be entered?"""
        return any(self.state_ptr[state] <= pair < self.state_ptr[state + 1] for state in self.forbidden)

    def rows(self, pair: int, edge: int) -> range:
        """The rows of x that decide about a pair's way along an edge (spec 9)."""
        return range(edge, edge + 1) if self.by_edge else range(self.row_ptr[pair], self.row_ptr[pair + 1])

    def measured(self, pair: int, edge: int, intensity: float | None = None) -> Any:
        """(d,) the features of a cost that was measured on an edge, at the intensity that was played."""
        rows = self.rows(pair, edge)
        if len(rows) != 1:
            raise Unreadable("an action with several cost rows, which have no row for a measurement")
        row = self.x[rows[0]]
        return row if self.x0 is None or intensity is None else mixed(self.x0[rows[0]], row, intensity)


class Names:
    """The labels of some states or actions, in order; without a list they are 0, 1, …"""

    def __init__(self, size: int, labels: list[Any] | None) -> None:
        self._size, self._labels = size, labels
        self._index = None if labels is None else {name: i for i, name in enumerate(labels)}

    def __getitem__(self, i: int) -> Any:
        return i if self._labels is None else self._labels[i]

    def index(self, wanted: Any) -> int | None:
        """The position of a label, None for an unknown one."""
        if self._index is not None:
            return self._index.get(wanted)
        number = isinstance(wanted, int) or (isinstance(wanted, float) and wanted.is_integer())
        return int(wanted) if number and 0 <= wanted < self._size else None


@dataclass(frozen=True, eq=False)
class Problem:
    """What the audit needs of a problem."""

    digest: str
    horizon: int
    limits: list[Limit]
    stationary: bool  # of costs: all layers share one regression
    starts: list[int]
    layers: list[Layer]  # horizon - 1
    states: list[Names]  # per layer
    last_x: Any  # (S, d) array, None when no last state has a cost
    has_cost: list[bool]
    fallback_ends: list[bool]  # last states that the fallback can reach
    last_forbidden: set[int]
    anchors: list[tuple[Any, Any, Any] | None]  # per layer (features (n, d), cost (n, m), tolerance (n, m))
    names: list[str] | None  # of the cost features
    transition_norm: float
    transition_dim: int  # 0 when transitions use the cost features
    largest_sum: float  # max over pairs of Σ ‖φ‖
    longest_row: float | None = None  # of a graph that grows: no row is longer, of states to come either
    first: Problem | None = None  # the graph that it has grown from, which the ridges are of

    @cached_property
    def tables(self) -> list[Any]:
        """All cost features, of actions with an intensity at both ends."""
        layers = [table for layer in self.layers for table in (layer.x, layer.x0) if table is not None]
        return layers + ([] if self.last_x is None else [self.last_x])

    @cached_property
    def longest(self) -> float:
        """The largest ‖x‖ of a cost feature; of a graph that grows as declared."""
        if self.longest_row is not None:
            return self.longest_row
        return max(float(np.sqrt((table * table).sum(axis=1)).max()) for table in self.tables)

    @cached_property
    def scales(self) -> list[float]:
        """|bound| + (largest possible |cost|) of every limit: what tolerances are shares of (spec 8)."""
        return [
            max(map(abs, bounds)) + self._largest_cost(known)
            for bounds, known in zip(zip(*self.bounds, strict=True), self.known, strict=True)
        ]

    def _largest_cost(self, known: Knowledge) -> float:
        if not known.boxed or self.longest_row is not None:
            return known.norm * self.longest
        box = max(float((np.abs(x @ known.centre) + np.abs(x) @ known.width).max()) for x in self.tables)
        return min(box, known.outer * self.longest) if self.longest > 0.0 else 0.0

    @cached_property
    def bounds(self) -> list[list[float]]:
        """Per layer the bound of every limit."""
        rows = [limit.bound if isinstance(limit.bound, list) else [limit.bound] * self.horizon for limit in self.limits]
        if any(len(row) != self.horizon for row in rows):
            raise ValueError("a limit has not one bound for each step")
        return [list(column) for column in zip(*rows, strict=True)]

    @cached_property
    def known(self) -> list[Knowledge]:
        """What is known of the coefficients of every limit."""
        return [knowledge(limit, self.names, self.dim) for limit in self.limits]

    def noise(self, j: int, rows: int) -> float:
        """√(σ² + nτ²): the scale of the noise of n measurements of one episode, in any one direction."""
        limit = self.limits[j]
        return math.sqrt(limit.noise**2 + rows * limit.episode_noise**2) if limit.episode_noise else limit.noise

    @cached_property
    def rows_of_an_episode(self) -> int:
        """The most that one regression takes from one episode."""
        return self.horizon - (self.last_x is None) if self.stationary else 1

    @cached_property
    def shared(self) -> bool:
        """Some measurements of one episode share an offset."""
        return any(limit.episode_noise > 0 for limit in self.limits)

    @cached_property
    def errs(self) -> bool:
        """Costs may be off by model errors, or anchors by a tolerance."""
        return any(limit.misspecification > 0 for limit in self.limits) or any(
            anchors is not None and bool(np.any(anchors[2])) for anchors in self.anchors
        )

    def beyond_noise(self, h: int, cost: list[float], t: int, alpha: float) -> bool:
        """Does measurement number t exceed a limit by more than its noise explains at the level α/2, and rounding?"""
        reach = self.noise_reach(t, alpha) * (1 + 1e-9)
        return any(
            value > bound + self.noise(j, 1) * reach + 2 * BEYOND * scale
            for j, (value, bound, scale) in enumerate(zip(cost, self.bounds[h], self.scales, strict=True))
        )

    def noise_reach(self, t: int, alpha: float) -> float:
        """By how many noise scales measurement number t may be off, at the level α/2 over all of them."""
        return math.sqrt(2 * math.log(math.pi**2 * t**2 * len(self.limits) / (3 * alpha)))

    @property
    def dim(self) -> int:
        return int(self.layers[0].x.shape[1])

    def state(self, h: int, label: Any) -> int | None:
        """The index of a state, None for one that does not exist."""
        return self.states[h].index(label)

    def acting_state(self, h: Any, name: Any) -> int:
        """The index of a state in which an action is chosen, from a record; any other raises."""
        found = self.state(h, label(name)) if type(h) is int and 0 <= h < self.horizon - 1 else None
        if found is None:
            raise ValueError(f"there is no step {h!r} with a state {name!r}")
        return found

    def pair(self, h: int, state: int, label: Any) -> int | None:
        layer = self.layers[h]
        first, end = layer.state_ptr[state], layer.state_ptr[state + 1]
        found = Names(end - first, None if layer.actions is None else layer.actions[first:end]).index(label)
        return None if found is None else first + found

    def expanded(self, h: int, pair: int) -> bool:
        """False where a pair may lead to what a growing graph does not hold: to state 0 of the next layer."""
        return self.longest_row is None or 0 not in self.layers[h].after(pair)

    def edge(self, h: int, pair: int, state: int) -> int | None:
        """The edge of a pair that leads to a state of the next layer."""
        layer = self.layers[h]
        after = layer.after(pair)
        return layer.pair_ptr[pair] + after.index(state) if state in after else None


def label(value: Any) -> Any:
    """A label as JSON gives it: an array is a tuple."""
    return tuple(map(label, value)) if isinstance(value, (list, tuple)) else value
