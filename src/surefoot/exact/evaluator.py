"""Fast values of many deterministic policies of one world, as a replanning loop needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.exact.evaluate import refuse_idle, start_state
from surefoot.model.graph import freeze, pool
from surefoot.model.labels import Label
from surefoot.worlds.world import World


class Evaluator:
    """Lays a world out once; then :meth:`value` is one compiled call over what the policy reaches (eq:defalgvfunction).

    The numbers are the same, bit by bit, as those of :func:`surefoot.exact.evaluate`. Scratch space is
    reused between calls, so an Evaluator serves one thread.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> evaluator = sf.exact.Evaluator(world)
        >>> round(evaluator.value(sf.exact.solve(world).policy.pairs), 3)
        2.542
    """

    def __init__(self, world: World) -> None:
        graph = world.problem.graph
        layers = graph.layers
        self.world = world
        self._sizes = [layer.n_states for layer in layers]
        pools = (
            pool(layer.state_ptr for layer in layers),
            pool(layer.pair_ptr for layer in layers),
            pool(layer.successor for layer in layers),
            pool(layer.reward for layer in layers),
            pool(world.probabilities),
        )
        of_pairs = np.concatenate([[0], np.cumsum(self._sizes)])[:-1]
        offsets = np.array([*(where for _, where in pools), of_pairs], np.int64)
        sizes = [*self._sizes, graph.terminal.n_states]
        self._pairs = np.empty(sum(self._sizes), np.int64)
        self._arguments: tuple[Any, ...] = (
            freeze(np.ascontiguousarray(offsets.T)),
            tuple(flat for flat, _ in pools),
            graph.terminal.reward,
            self._pairs,
            (
                np.empty(sum(sizes), np.int64),
                np.empty(len(sizes) + 1, np.int64),
                np.full(max(sizes), -1, np.int64),
                np.empty((2, max(sizes))),
            ),
        )
        self._stamp = 0

    def value(self, pairs: Sequence[NDArray[np.integer[Any]]], start: Label | None = None) -> float:
        """V_0(start) of the policy that plays ``pairs``: H-1 integer arrays (S,), -1 for no action.

        Only states that are reached matter; one without an action is an error that names it.
        """
        from surefoot.exact import kernels

        if [len(row) for row in pairs] != self._sizes:
            raise InvalidInput(
                "policy has the wrong shape",
                got=f"arrays of {[len(row) for row in pairs]} entries where {self._sizes} are expected",
            )
        np.concatenate(pairs, out=self._pairs, casting="same_kind")
        state = start_state(self.world, start)
        value, h, idle = kernels.value_along(state, self._stamp, *self._arguments)
        self._stamp += len(self._sizes)
        if h >= 0:
            refuse_idle(self.world, h, idle)
        return float(value)
