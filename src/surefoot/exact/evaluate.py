"""Exact expectations under a policy: its value, and how often it breaks a limit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.exact.best import terminal_within
from surefoot.exact.policies import AnyPolicy, Rows, fallback, policy_rows, weights
from surefoot.exact.rays import as_played
from surefoot.model.arrays import FloatArray, IntArray, freeze
from surefoot.model.labels import Label
from surefoot.worlds.world import World, check_world


class Violations(NamedTuple):
    """How often an episode breaks a limit: steps in expectation, and the probability of any at all.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> sf.exact.violations(world, sf.exact.solve(world).policy)
        Violations(expected=0.0, probability=0.0)
    """

    expected: float
    probability: float


def evaluate(world: World, policy: AnyPolicy, start: Label | None = None) -> float:
    """The expected total reward, terminal reward included, from ``start`` (the first start if None).

    V_h(s) = Σ_a π_h(a|s) (r_h(s,a) + Σ_{s'} P_h(s'|s,a) V_{h+1}(s')), eq:defvvaluestandard; the bracket is
    Q_h(s,a), eq:defqvaluestandard. Of the policy that a learner plays it is eq:defalgvfunction.
    :mod:`surefoot.exact.policies` lists what a policy may be. A state that it reaches without an action is named.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> round(sf.exact.evaluate(world, lambda h, s: 1), 3)
        2.12
    """
    world, state = as_played(world, policy), start_state(world, start)
    rows = policy_rows(world, policy, np.array([state]))
    graph = world.problem.graph
    rewards = tuple(layer.reward for layer in graph.layers)
    return _mean(world, rows, state, rewards, world.probabilities, graph.terminal.reward)


def evaluate_all(world: World, policy: AnyPolicy) -> tuple[FloatArray, ...]:
    """V_h as H arrays (S,); NaN where the policy has no action, or can reach a state without one.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> [round(float(value[0]), 3) for value in sf.exact.evaluate_all(world, sf.exact.fallback(world.problem))]
        [1.089, 0.867, 0.645, 0.422, 0.2, 0.0]
    """
    world = as_played(world, policy)
    graph = world.problem.graph
    rows = policy_rows(world, policy, graph.starts)
    rewards = tuple(layer.reward for layer in graph.layers)
    return _backward(world, rows, rewards, world.probabilities, graph.terminal.reward)


def fallback_value(world: World, start: Label | None = None) -> float:
    """The exact value of the fallback.

    Examples:
        >>> round(sf.exact.fallback_value(sf.worlds.make("thermal/testing")), 3)
        1.089
    """
    check_world(world, "an exact value")
    return evaluate(world, fallback(world.problem), start)


def violations(world: World, policy: AnyPolicy, start: Label | None = None) -> Violations:
    """Violating steps of an episode, including the arrival in the last step (spec 8) and steps that enter a forbidden
    state (spec 9).

    With ν(s,a) = Σ P [the edge violates]: the expected number has ν for its reward; the probability of
    at least one has ν for its reward as well, but continues only along edges that do not violate.

    Examples:
        >>> sf.exact.violations(sf.worlds.make("thermal/testing"), lambda h, s: 2)
        Violations(expected=2.906072, probability=1.0)
    """
    world, state = as_played(world, policy), start_state(world, start)
    rows = policy_rows(world, policy, np.array([state]))
    broken_by, kept_by = _violating(world)
    last = (~terminal_within(world)).astype(np.float64)
    expected = _mean(world, rows, state, broken_by, world.probabilities, last)
    probability = _mean(world, rows, state, broken_by, kept_by, last)
    return Violations(expected, min(1.0, probability))


def _violating(world: World) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Per decision step: ν (N,), and P (E,) with 0 on the edges that violate."""
    limits = world.problem.violation_thresholds
    known: dict[tuple[int | bytes, ...], tuple[FloatArray, FloatArray]] = {}  # steps may share arrays
    found: list[tuple[FloatArray, FloatArray]] = []
    for layer, p, cost, bound in zip(
        world.problem.graph.layers, world.probabilities, world.arrival_costs, limits[:-1], strict=True
    ):
        key = (id(layer.pair_ptr), id(p), id(cost), bound.tobytes())
        if key not in known:
            violates = np.any(cost > bound, axis=1)
            broken = np.add.reduceat(np.where(violates, p, 0.0), layer.pair_ptr[:-1])
            known[key] = (freeze(broken), freeze(np.where(violates, 0.0, p)))
        found.append(known[key])
    return tuple(broken for broken, _ in found), tuple(kept for _, kept in found)


def start_state(world: World, start: Label | None) -> int:
    """The index of a state of step 0; None means the first start, unless None is itself a start's label."""
    if start is None and None not in world.problem.starts:
        return int(world.problem.graph.starts[0])
    return world.problem.state_index(0, start)


def _backward(
    world: World,
    rows: Rows,
    rewards: tuple[FloatArray, ...],
    probabilities: tuple[FloatArray, ...],
    last: FloatArray,
) -> tuple[FloatArray, ...]:
    from surefoot.exact import kernels

    layers = world.problem.graph.layers
    values = [freeze(last.view())]
    for h in range(len(layers) - 1, -1, -1):
        layer, value = layers[h], np.empty(layers[h].n_states)
        kernels.mixed_values(
            layer.state_ptr,
            layer.pair_ptr,
            layer.successor,
            rewards[h],
            probabilities[h],
            freeze(weights(layer, rows[h]).view()),
            values[-1],
            value,
        )
        values.append(freeze(value))
    return tuple(reversed(values))


def _mean(
    world: World,
    rows: Rows,
    state: int,
    rewards: tuple[FloatArray, ...],
    probabilities: tuple[FloatArray, ...],
    last: FloatArray,
) -> float:
    mean = float(_backward(world, rows, rewards, probabilities, last)[0][state])
    if np.isnan(mean):
        _refuse_missing_action(world, rows, state)
    return mean


def _refuse_missing_action(world: World, rows: Rows, state: int) -> None:
    """Raise if the policy can reach a state without an action from ``state``."""
    graph = world.problem.graph
    reached = np.zeros(graph.n_states(0), bool)
    reached[state] = True
    for h, layer in enumerate(graph.layers):
        played: NDArray[Any] = weights(layer, rows[h]) > 0
        idle: IntArray = np.flatnonzero(reached & ~np.logical_or.reduceat(played, layer.state_ptr[:-1]))
        if len(idle):
            raise InvalidInput(
                "policy has no action",
                where=world.problem.naming.at_state(h, int(idle[0])),
                got="the policy can reach this state",
                fix="Give it an action there.",
            )
        played &= np.repeat(reached, np.diff(layer.state_ptr))
        edges = np.repeat(played, np.diff(layer.pair_ptr)) & (world.probabilities[h] > 0)
        reached = np.zeros(graph.n_states(h + 1), bool)
        reached[layer.successor[edges]] = True
