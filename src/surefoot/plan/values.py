"""Optimistic values and the greedy policy (spec 6, S7; Steps 4 and 5).

Q_h(s,a) = r + expected next value + bonus,     V_h(s) = max over certified a of min(Q, cap_h),  0 without one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.estimate.tables import sealed
from surefoot.estimate.values import ValueEllipsoid, asked
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.layer import Layer
from surefoot.plan import kernels as sweeps
from surefoot.plan.certify import Certified


@dataclass(frozen=True, eq=False)
class Values:
    """Q of allowed pairs (unclipped), V of all states, and the greedy pair (-1 where nothing is allowed)."""

    q: tuple[FloatArray, ...]  # H-1 of (N,), NaN where not allowed or not kept: Plan.q computes those when asked
    bonus: tuple[FloatArray, ...]  # H-1 of (N,)
    value: tuple[FloatArray, ...]  # H of (S,)
    action: tuple[IntArray, ...]  # H-1 of (S,)
    low: FloatArray | None = None  # (S,) of the first layer: a lower bound on what these actions are worth, if known


AtMost = Callable[[int, FloatArray], tuple[IntArray, FloatArray]]
"""(step, V of the next states) → some pairs (P,), rising, and the most that follows them, bonus included."""


StepValues = tuple[FloatArray, FloatArray, IntArray]
"""Of one step: Q (N,), V (S,) and the pair that is played (S,)."""

_NO_LIMITS = np.empty(0)


def most_to_come(graph: LayeredGraph) -> list[float]:
    """R_h = H − h per decision layer: the most reward that can still be collected (spec 5)."""
    return [float(graph.horizon - h) for h in range(graph.horizon - 1)]


def optimistic_values(
    graph: LayeredGraph,
    allowed: Certified,
    bonus: Sequence[FloatArray],
    known: Sequence[ValueEllipsoid],
    caps: Sequence[float],
    last_bonus: FloatArray | None = None,
    at_most: AtMost | None = None,
) -> Values:
    """One backward sweep of eq:estimateqvalue. ``caps``: the most that can still be collected, per layer;
    ``last_bonus`` (S,): of the last states.

    V is the maximum over allowed pairs, where eq:defanalysisvfunction has the unknown optimum (spec 7.13).
    """
    ends = graph.terminal.reward if last_bonus is None else graph.terminal.reward + last_bonus

    def step(h: int, following: FloatArray) -> StepValues:
        layer = graph.layers[h]
        most = None if at_most is None else limits_of(layer.n_pairs, *at_most(h, following))
        return step_values(layer, allowed.pairs[h], bonus[h], known[h], caps[h], following, most)

    return backward_values(step, bonus, np.where(allowed.states[-1], ends, 0.0))


def backward_values(
    step: Callable[[int, FloatArray], StepValues], bonus: Sequence[FloatArray], last: FloatArray
) -> Values:
    """Values, backward from V of the last states (S,); ``step(h, following)`` gets V of the next step's states."""
    value, q, action = [last], list[FloatArray](), list[IntArray]()
    for h in reversed(range(len(bonus))):
        here, best, chosen = step(h, value[0])
        q.insert(0, here)
        value.insert(0, best)
        action.insert(0, chosen)
    return Values(tuple(q), tuple(bonus), tuple(value), tuple(action))


def without_q(graph: LayeredGraph, values: Values) -> Values:
    """The same values without Q, which may take too much memory."""
    return replace(values, q=tuple(np.broadcast_to(np.nan, layer.n_pairs) for layer in graph.layers))


def limits_of(n: int, pairs: IntArray, most: FloatArray) -> FloatArray:
    """(n,) limits of some pairs, no limit for the others."""
    limits = np.full(n, np.inf)
    limits[pairs] = most
    return limits


def step_values(
    layer: Layer,
    allowed: BoolArray,
    bonus: FloatArray,
    known: ValueEllipsoid,
    cap: float,
    following: FloatArray,
    most: FloatArray | None = None,
) -> StepValues:
    """One step's values over the allowed pairs, from the next step's V; ``most`` (N,): that follows, bonus included."""
    q = np.empty(layer.n_pairs)
    value, action = np.empty(layer.n_states), np.empty(layer.n_states, np.int64)
    limits = _NO_LIMITS if most is None else most
    known_here = map(sealed, (layer.state_ptr, layer.reward, np.ascontiguousarray(bonus), limits, allowed))
    ahead = asked(layer, following, known)
    sweeps.values(layer.n_edges, *known_here, cap, sealed(layer.fallback), ahead, q, value, action)
    return q, value, action


def greedy(layer: Layer, q: FloatArray, allowed: BoolArray, cap: float) -> tuple[FloatArray, IntArray]:
    """(V, pair) of every state: largest min(Q, cap), ties by the larger Q, then by declaration order (eq:chooseaction).

    If data have overflowed and a Q is NaN: the fallback's pair, or else the first allowed one, at the cap.
    """
    value, action = np.empty(layer.n_states), np.empty(layer.n_states, np.int64)
    sweeps.greedy(layer.n_edges, layer.state_ptr, q, allowed, cap, layer.fallback, value, action)
    return value, action
