"""The layers of a problem with rays laid one after the other, so that a plan mixes and bounds many steps at once.

Steps whose costs follow the same γ, under the same limits and beside the same anchors, are a *group*: in a stationary
problem all of them. A layer that several steps share is in its group once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from surefoot.model.graph import BoolArray, FloatArray, IntArray, Layer, LayeredGraph, freeze
from surefoot.model.rays import NO_CENTER, mixed

if TYPE_CHECKING:
    from surefoot.model.problem import Problem


class Ends(NamedTuple):
    """The same numbers of every pair, row or edge of a group at both ends."""

    zero: FloatArray
    one: FloatArray

    def at(self, intensity: FloatArray) -> FloatArray:
        return cast(FloatArray, mixed(self, intensity))

    def of(self, rows: IntArray) -> Ends:
        return Ends(self.zero[rows], self.one[rows])


class Sizes(NamedTuple):
    """How many of each a group has before each of its layers, and in all: (layers + 1,)"""

    pairs: list[int]
    rows: list[int]
    edges: list[int]


@dataclass(frozen=True, eq=False)
class RayGroup:
    """Some steps of a problem, their different layers one after the other. (N pairs, R cost rows, E edges in all)"""

    steps: tuple[tuple[int, int], ...]  # each step, and which of the layers is its own
    sizes: Sizes
    ray: BoolArray  # (N,)
    first_row: IntArray  # (N,)
    row_pair: IntArray  # (R,)
    edge_pair: IntArray  # (E,)
    reward: Ends  # (N,)
    costs: Ends  # (R, dc)
    chances: Ends | None  # (E, dp); None: the cost features themselves

    @cached_property
    def once(self) -> tuple[Ends, IntArray, IntArray]:
        """The cost rows of the rays, equal ones once; (rows,) which of them each is, pair after pair; (rays,) where
        each ray's begin."""
        of_rays = self.ray[self.row_pair]
        ends = np.hstack([self.costs.zero[of_rays], self.costs.one[of_rays]])
        once, index = np.unique(ends, axis=0, return_inverse=True)
        many = np.diff(np.append(self.first_row, len(self.row_pair)))[self.ray]
        zero, one = (freeze(np.ascontiguousarray(part)) for part in np.split(once, 2, axis=1))
        return Ends(zero, one), index.reshape(-1), np.cumsum(many) - many

    def by_pair(self, found: FloatArray) -> FloatArray:
        """(N,) of every ray the least of what was :func:`found <once>` for its rows; 1 for pairs that are none."""
        _, index, first = self.once
        made = np.ones(len(self.ray))
        made[self.ray] = np.minimum.reduceat(found[index], first)
        return made

    def by_step(self, table: FloatArray, cuts: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        """Of every step its own part of a table; steps that share a layer share an array."""
        parts = [table[begin:end] for begin, end in pairwise(cuts)]
        return ((h, parts[own]) for h, own in self.steps)

    def layers_at(self, graph: LayeredGraph, intensity: FloatArray, costs: FloatArray) -> Iterator[tuple[int, Layer]]:
        """Of every step its layer with every ray at its intensity (N,), where the cost rows are those (R, dc)."""
        rewards = self.by_step(freeze(self.reward.at(intensity)), self.sizes.pairs)
        tables = list(self.by_step(freeze(costs), self.sizes.rows))
        chances = tables
        if self.chances is not None:
            chances = list(self.by_step(freeze(self.chances.at(intensity[self.edge_pair])), self.sizes.edges))
        for (h, reward), (_, x), (_, phi) in zip(rewards, tables, chances, strict=True):
            own = {"reward": reward, "cost_features": x, "transition_features": phi}
            yield h, Layer(**{**vars(graph.layers[h]), **own})


def ray_groups(problem: Problem) -> tuple[RayGroup, ...]:
    """All steps of a problem with rays, in groups."""
    graph, groups = problem.graph, dict[tuple[Any, ...], list[int]]()
    for h, anchors in enumerate(graph.anchors[:-1]):
        beside = () if anchors is None else tuple(array.tobytes() for array in anchors.parts)
        key = (0 if problem.stationary_costs else h, problem.bounds[h].tobytes(), *beside)
        groups.setdefault(key, []).append(h)
    return tuple(_group(graph, steps) for steps in groups.values())


def _group(graph: LayeredGraph, steps: list[int]) -> RayGroup:
    parts, own = dict[tuple[int, ...], int](), list[int]()  # layers that differ, and a step that has each
    for h in steps:
        if (key := _alike(graph, h)) not in parts:
            parts[key] = len(own)
            own.append(h)
    layers, rays = [graph.layers[h] for h in own], [graph.rays[h] for h in own]
    both = list(zip(layers, rays, strict=True))
    sizes = Sizes(*(_cuts(many) for many in zip(*((y.n_pairs, y.n_rows, y.n_edges) for y in layers), strict=True)))
    shared = all(layer.transition_features is layer.cost_features for layer in layers)
    return RayGroup(
        steps=tuple((h, parts[_alike(graph, h)]) for h in steps),
        sizes=sizes,
        ray=_joined(each.center != NO_CENTER for each in rays),
        first_row=_joined(layer.row_ptr[:-1] + begin for layer, begin in zip(layers, sizes.rows, strict=False)),
        row_pair=_joined(layer.row_pair() + begin for layer, begin in zip(layers, sizes.pairs, strict=False)),
        edge_pair=_joined(layer.edge_pair() + begin for layer, begin in zip(layers, sizes.pairs, strict=False)),
        reward=Ends(_joined(each.reward(layer) for layer, each in both), _joined(layer.reward for layer in layers)),
        costs=Ends(_joined(each.cost_features for each in rays), _joined(layer.cost_features for layer in layers)),
        chances=None
        if shared
        else Ends(
            _joined(each.transition_features for each in rays), _joined(layer.transition_features for layer in layers)
        ),
    )


def _alike(graph: LayeredGraph, h: int) -> tuple[int, ...]:
    """The same for steps whose layers are mixed alike."""
    layer = graph.layers[h]
    tables = layer.reward, layer.cost_features, layer.transition_features, layer.row_ptr, layer.pair_ptr
    return tuple(map(id, (*tables, graph.rays[h])))


def _cuts(many: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(many).tolist()]


def _joined(parts: Iterable[Any]) -> Any:
    """One after the other; a single one as it is, without a copy."""
    tables = list(parts)
    return tables[0] if len(tables) == 1 else np.concatenate(tables)
