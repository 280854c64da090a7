"""Only truly safe states and pairs, without values and policy: once, or many times from a prepared layout."""

from __future__ import annotations

import numpy as np

from surefoot.exact.best import terminal_safe
from surefoot.exact.rays import at_truly_safe
from surefoot.model.graph import BoolArray, IntArray
from surefoot.worlds.world import World

INT32_END = 2**31  # numbers below fit into 32 bits: half the memory traffic

Sets = tuple[tuple[BoolArray, ...], tuple[BoolArray, ...]]


def safe_sets(world: World) -> Sets:
    """(safe_states, safe_actions) of :func:`solve`, without policy and values: H arrays (S,), H-1 arrays (N,).

    Each ray is at the largest intensity that its own cost rows truly allow. One backward sweep; building a
    :class:`SafeSets` takes several times as long.

    Examples:
        >>> states, actions = sf.exact.safe_sets(sf.worlds.make("thermal/testing"))
        >>> [int(safe.sum()) for safe in states]
        [1, 4, 4, 5, 6, 8]
    """
    from surefoot.exact import kernels

    world = at_truly_safe(world)
    layers, limits = world.problem.graph.layers, world.problem.violation_thresholds
    running = _running(world)
    states, pairs = [terminal_safe(world)], []
    steps = zip(layers, world.probabilities, world.arrival_costs, limits[:-1], strict=True)
    for layer, probability, cost, limit in reversed(list(steps)):
        safe, some = np.empty(layer.n_pairs, bool), np.empty(layer.n_states, bool)
        arrays = (layer.state_ptr, layer.pair_ptr, layer.successor, probability, cost)
        kernels.safe_layer(*arrays, limit, states[-1], running, safe, some)
        if layer.forbidden.any():
            safe &= ~np.repeat(layer.forbidden, np.diff(layer.state_ptr))
            some &= ~layer.forbidden
        pairs.append(safe)
        states.append(some)
    return tuple(reversed(states)), tuple(reversed(pairs))


class SafeSets:
    """The same sets for many calls: prepares once which pairs keep all limits and where they lead (P > 0).

    :meth:`sets` then only spreads unsafety backward, visiting only transitions into unsafe states.

    Examples:
        >>> sets = sf.exact.SafeSets(sf.worlds.make("thermal/testing"))
        >>> states, actions = sets.sets()
        >>> [int(safe.sum()) for safe in states]
        [1, 4, 4, 5, 6, 8]
    """

    def __init__(self, world: World) -> None:
        from surefoot.exact import kernels

        world = at_truly_safe(world)
        graph, limit = world.problem.graph, world.problem.violation_thresholds
        sizes = [graph.n_states(h) for h in range(graph.horizon)]
        self._states = _cuts(sizes)
        self._pairs = _cuts([layer.n_pairs for layer in graph.layers])
        n_states, n_edges = sum(sizes), sum(layer.n_edges for layer in graph.layers)
        small = np.dtype(np.int32 if max(n_states, n_edges) < INT32_END else np.int64)  # no more pairs than edges

        within, running = np.empty(self._pairs[-1].stop, bool), _running(world)
        first: IntArray = np.zeros(n_states + 1, small)
        steps = []
        for h, layer in enumerate(graph.layers):
            kept, after = within[self._pairs[h]], self._states[h + 1]
            anywhere, unused = np.ones(sizes[h + 1], bool), np.empty(sizes[h], bool)
            arrays = (layer.pair_ptr, layer.successor, world.probabilities[h])
            costs, bound = world.arrival_costs[h], limit[h]
            kernels.safe_layer(layer.state_ptr, *arrays, costs, bound, anywhere, running, kept, unused)
            if layer.forbidden.any():
                kept &= ~np.repeat(layer.forbidden, np.diff(layer.state_ptr))
            kernels.count_arrivals(*arrays, kept, first[1:][after])
            steps.append((*arrays, kept))
        np.cumsum(first, out=first)
        arriving: IntArray = np.empty(first[-1], small)
        free = first[:-1].copy()
        for step, before, after in zip(steps, self._pairs, self._states[1:], strict=True):
            kernels.list_arrivals(before.start, *step, free[after], arriving)

        n_acting, choices = self._states[-1].start, [np.diff(layer.state_ptr) for layer in graph.layers]
        owner: IntArray = np.repeat(np.arange(n_acting, dtype=small), np.concatenate(choices))
        left = np.concatenate([np.bincount(owner[within], minlength=n_acting), terminal_safe(world)])
        self._first, self._arriving, self._owner, self._within = first, arriving, owner, within
        self._left: IntArray = left.astype(np.min_scalar_type(left.max()))

    def sets(self) -> Sets:
        from surefoot.exact import kernels

        pairs, left = self._within.copy(), self._left.copy()
        states = np.empty(len(left), bool)
        kernels.spread_unsafety(self._first, self._arriving, self._owner, left, pairs, states)
        return tuple(states[cut] for cut in self._states), tuple(pairs[cut] for cut in self._pairs)


def _running(world: World) -> IntArray:
    """Room for one count per edge of any step, and a first one."""
    return np.empty(1 + max(layer.n_edges for layer in world.problem.graph.layers), np.int32)


def _cuts(sizes: list[int]) -> list[slice]:
    """The slice of each array after concatenation."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
