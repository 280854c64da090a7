"""How a plan saves work in a problem with rays (spec 9).

Steps whose costs follow the same γ, with the same limits and anchors, form a *group*; in a stationary problem there is
one group. Its different layers are laid end to end, and steps with equal layers share one. Pairs with equal cost rows
are of one *kind*: their rows are bounded once, and their largest intensity is found once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze, pointer_of
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import Layer
from surefoot.model.rays import NO_CENTER, mixed

if TYPE_CHECKING:
    from surefoot.model.problem import Problem


class Ends(NamedTuple):
    """Numbers at both ends of rays."""

    zero: FloatArray
    one: FloatArray

    def at(self, intensity: FloatArray) -> FloatArray:
        """One intensity for each row."""
        return cast(FloatArray, mixed(self, intensity))

    def of(self, rows: IntArray) -> Ends:
        return Ends(self.zero.take(rows, axis=0), self.one.take(rows, axis=0))


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of pairs, by their cost rows. (K kinds, U rows)"""

    ray: BoolArray  # (K,)
    first_row: IntArray  # (K,)
    of_row: IntArray  # (U,)
    costs: Ends  # (U, dc)

    @cached_property
    def once(self) -> Once:
        own = np.flatnonzero(self.ray[self.of_row])
        numbers, first = _numbered(np.hstack(self.costs.of(own)))
        many = np.bincount(self.of_row, minlength=len(self.ray))[self.ray]
        costs = Ends(*map(freeze, self.costs.of(own[first])))
        return Once(costs, freeze(numbers), freeze(pointer_of(many)))

    def every(self, found: FloatArray) -> FloatArray:
        """(K,) the intensities found for the rays, and 1 for the other kinds."""
        made = np.ones(len(self.ray))
        made[self.ray] = found
        return made


class Once(NamedTuple):
    """The cost rows of rays, each distinct one once."""

    costs: Ends
    row: IntArray  # the number of each row in ``costs``, ray after ray
    begin: IntArray  # (rays + 1,)  where the rows of a ray begin


class Mixed(NamedTuple):
    """The layers of a group, with its rays at some intensities."""

    intensity: FloatArray  # (N,)
    reward: FloatArray  # (N,)
    cost_features: FloatArray  # (R, dc)
    transition_features: FloatArray  # (E, dp)


@dataclass(frozen=True, eq=False)
class RayGroup:
    """A group of steps, with their different layers end to end. (N pairs, R cost rows, E edges in all)"""

    steps: tuple[tuple[int, int], ...]  # each step, and the number of its layer
    pairs: tuple[int, ...]  # where the pairs of each layer begin, and the last ends; likewise:
    rows: tuple[int, ...]
    edges: tuple[int, ...]
    kind: IntArray  # (N,)
    kind_row: IntArray  # (R,) the row of its kind
    edge_pair: IntArray  # (E,)
    reward: Ends  # (N,)
    chances: Ends | None  # (E, dp); None: the cost features themselves
    kinds: Kinds

    def at(self, intensity: FloatArray, costs: FloatArray, near: Mixed | None = None) -> Mixed:
        """The group at the intensities (K,) of its kinds, whose cost rows (U, dc) are given. ``near``: the group at
        other intensities, to start from."""
        own, x = intensity[self.kind], freeze(costs.take(self.kind_row, axis=0))
        if self.chances is None:
            phi = x
        elif near is None:
            phi = self.chances.at(own[self.edge_pair])
        else:
            moved = np.flatnonzero((own != near.intensity)[self.edge_pair])
            phi = near.transition_features.copy()
            phi[moved] = self.chances.of(moved).at(own[self.edge_pair[moved]])
        return Mixed(freeze(own), freeze(self.reward.at(own)), x, freeze(phi))

    def by_step(self, table: FloatArray, cuts: Sequence[int]) -> list[tuple[int, FloatArray]]:
        """The part of a table that belongs to each step; steps that share a layer share an array."""
        parts = [table[begin:end] for begin, end in pairwise(cuts)]
        return [(h, parts[own]) for h, own in self.steps]

    def layers(self, graph: LayeredGraph, found: Mixed) -> list[tuple[int, Layer]]:
        """The layer of each step."""
        costs = self.by_step(found.cost_features, self.rows)
        chances = costs if self.chances is None else self.by_step(found.transition_features, self.edges)
        each = zip(self.by_step(found.reward, self.pairs), costs, chances, strict=True)
        return [
            (h, replace(graph.layers[h], reward=reward, cost_features=x, transition_features=phi))
            for (h, reward), (_, x), (_, phi) in each
        ]


def ray_groups(problem: Problem) -> tuple[RayGroup, ...]:
    """The steps of a problem with rays, in groups."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for h, anchors in enumerate(problem.graph.anchors[:-1]):
        key = 0 if problem.stationary_costs else h, problem.bounds[h].tobytes(), anchors
        groups.setdefault(key, []).append(h)
    return tuple(_group(problem.graph, steps) for steps in groups.values())


def _group(graph: LayeredGraph, steps: list[int]) -> RayGroup:
    first, number = list[int](), list[int]()  # the first step of each layer that differs; of every step which it has
    for h in steps:
        same = [i for i, other in enumerate(first) if _alike(graph, h, other)]
        number.append(same[0] if same else len(first))
        first += [] if same else [h]
    layers, rays = [graph.layers[h] for h in first], [graph.rays[h] for h in first]
    both = list(zip(layers, rays, strict=True))
    pairs, rows, edges = (
        (0, *np.cumsum(many).tolist())
        for many in zip(*((layer.n_pairs, layer.n_rows, layer.n_edges) for layer in layers), strict=True)
    )
    chances = None
    if not all(layer.shares_features for layer in layers):
        chances = Ends(_joined(e.transition_features for e in rays), _joined(y.transition_features for y in layers))
    costs = Ends(_joined(each.cost_features for each in rays), _joined(layer.cost_features for layer in layers))
    ray = _joined(each.center != NO_CENTER for each in rays)
    kind, kind_row, kinds = _kinds(ray, _joined(np.diff(layer.row_ptr) for layer in layers), costs)
    return RayGroup(
        steps=tuple(zip(steps, number, strict=True)),
        pairs=pairs,
        rows=rows,
        edges=edges,
        kind=kind,
        kind_row=kind_row,
        edge_pair=np.repeat(np.arange(pairs[-1]), _joined(np.diff(layer.pair_ptr) for layer in layers)),
        reward=Ends(_joined(each.reward(layer) for layer, each in both), _joined(layer.reward for layer in layers)),
        chances=chances,
        kinds=kinds,
    )


def _kinds(ray: BoolArray, sizes: IntArray, costs: Ends) -> tuple[IntArray, IntArray, Kinds]:
    """(N,) the kind of each pair; (R,) the number of each row among those of the kinds; the kinds. ``sizes`` (N,): how
    many rows each pair has."""
    first, number = np.cumsum(sizes) - sizes, _numbered(np.hstack(costs))[0]
    kind, chosen = np.empty(len(sizes), np.int64), list[IntArray]()  # the pairs that stand for the kinds
    for size in np.unique(sizes).tolist():
        own = np.flatnonzero(sizes == size)
        same, once = _numbered(np.column_stack([ray[own], number[first[own, None] + np.arange(size)]]))
        kind[own] = same + sum(map(len, chosen))
        chosen.append(own[once])
    stands = np.concatenate(chosen)
    many = sizes[stands]
    begin = np.cumsum(many) - many
    of_row, at = np.repeat(np.arange(len(stands)), many), np.arange(int(many.sum()))
    rows = at + np.repeat(first[stands] - begin, many)
    within = np.arange(len(number)) - np.repeat(first, sizes)
    return kind, np.repeat(begin[kind], sizes) + within, Kinds(ray[stands], begin, of_row, costs.of(rows))


def _numbered(rows: Any) -> tuple[IntArray, IntArray]:
    """(n,) a number for each row, the same for equal rows; and the first row of each number."""
    _, first, numbers = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return numbers.reshape(-1), first


def _alike(graph: LayeredGraph, h: int, other: int) -> bool:
    """True if the layers of two steps are the same at any intensity."""
    names = ("reward", "cost_features", "transition_features", "row_ptr", "pair_ptr")
    one, two = (
        (*(getattr(graph.layers[step], name) for name in names), *vars(graph.rays[step]).values())
        for step in (h, other)
    )
    return all(a is b or np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def _joined(parts: Iterable[Any]) -> Any:
    """The parts end to end; a single one is not copied."""
    tables = list(parts)
    return tables[0] if len(tables) == 1 else np.concatenate(tables)
