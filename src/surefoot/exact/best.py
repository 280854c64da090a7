"""The truly safe states and pairs, and the best policy among them, each by one backward sweep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.exact.policies import Policy
from surefoot.exact.rays import at_truly_safe, true_intensities
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze
from surefoot.model.growing import fully_grown
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.threads import in_ranges
from surefoot.worlds.world import World, check_world

MOST_WHOLE = 20_000  # states up to which the whole of a growing problem is built: seconds
PARALLEL_EDGES = 100_000  # below, starting threads takes longer than the work


@dataclass(frozen=True, eq=False)
class Solution:
    """What a safe agent that knows the truth would do (formulas: :mod:`surefoot.exact`).

    Examples:
        >>> best = sf.exact.solve(sf.worlds.make("thermal/testing"))
        >>> best
        Solution(value=2.54228, 28 of 35 states truly safe)
        >>> best.policy.action(0, 0)
        2
    """

    value: float  # V_0 of the first start
    start_values: FloatArray  # (n,) V_0 of every start, in the order of problem.starts
    values: tuple[FloatArray, ...]  # H arrays (S,): V_h, NaN in states that are not truly safe
    policy: Policy  # H-1 arrays (S,): the lowest best pair, -1 in states that are not truly safe
    safe_states: tuple[BoolArray, ...]  # H arrays (S,)
    safe_actions: tuple[BoolArray, ...]  # H-1 arrays (N,), one entry per pair

    def __repr__(self) -> str:
        safe, states = (sum(map(count, self.safe_states)) for count in (np.count_nonzero, len))
        return f"Solution(value={self.value:.6g}, {safe} of {states} states truly safe)"


def terminal_within(world: World) -> BoolArray:
    """(S,) terminal states whose cost is within all bounds, including those without a cost and forbidden ones."""
    if world.terminal_costs is None:
        return np.ones(world.problem.graph.terminal.n_states, bool)
    within: BoolArray = np.all(world.terminal_costs <= world.problem.violation_thresholds[-1], axis=1)
    return within


def terminal_safe(world: World) -> BoolArray:
    """(S,) terminal states that are truly safe: within all bounds, and not forbidden."""
    return terminal_within(world) & ~world.problem.graph.terminal.forbidden


def solve(world: World) -> Solution:
    """Truly safe states and actions, and the best policy among them (eq;defoptimalvvalue); ties go to the lowest pair.

    If no policy is truly safe from a start state, the error names it. In a world with rays, each is played at its
    largest truly safe intensity or at its centre, whichever is better (:mod:`surefoot.exact.rays`).

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> best = sf.exact.solve(world)
        >>> round(best.value, 3), round(sf.exact.fallback_value(world), 3)
        (2.542, 1.089)
    """
    from surefoot.exact import kernels

    check_world(world, "an exact value")
    intensities = None
    if world.problem.has_rays:
        intensities = true_intensities(world)
        world = world.at(intensities)
    graph, limit = world.problem.graph, world.problem.violation_thresholds
    last = terminal_safe(world)
    values = [freeze(np.where(last, graph.terminal.reward, np.nan))]
    states, actions, policy = [freeze(last)], [], []
    known: dict[tuple[int | bytes, ...], BoolArray] = {}  # steps may share arrays
    for h in range(graph.horizon - 2, -1, -1):
        layer, probability, cost = graph.layers[h], world.probabilities[h], world.arrival_costs[h]
        key = (id(layer.pair_ptr), id(probability), id(cost), limit[h].tobytes())
        n_states, n_pairs = layer.n_states, layer.n_pairs
        if key not in known:
            known[key] = np.empty(n_pairs, bool)
            kernels.pairs_within(layer.pair_ptr, probability, cost, limit[h], known[key])
        value, chosen, safe = np.empty(n_states), np.empty(n_states, np.int64), np.empty(n_pairs, bool)
        arrays = (
            layer.state_ptr,
            layer.pair_ptr,
            layer.successor,
            layer.reward,
            probability,
            known[key],
            values[-1],
            value,
            chosen,
            safe,
        )
        in_ranges(n_states, layer.n_edges >= PARALLEL_EDGES, kernels.best_between, *arrays)
        if layer.forbidden.any():  # whatever could follow
            value[layer.forbidden], chosen[layer.forbidden] = np.nan, NO_ACTION
            safe[np.repeat(layer.forbidden, np.diff(layer.state_ptr))] = False
        is_safe = value == value  # a NaN is not equal to itself
        for array in (value, is_safe, safe, chosen):
            array.setflags(write=False)
        values.append(value)
        states.append(is_safe)
        actions.append(safe)
        policy.append(chosen)
    start_values = freeze(values[-1][graph.starts])
    _refuse_unsafe_start(world.problem, graph.starts[np.isnan(start_values)])
    return Solution(
        value=float(start_values[0]),
        start_values=start_values,
        values=tuple(reversed(values)),
        policy=Policy(world.problem, tuple(reversed(policy)), intensities),
        safe_states=tuple(reversed(states)),
        safe_actions=tuple(reversed(actions)),
    )


def solve_whole(world: World, most: int = MOST_WHOLE) -> tuple[Solution, bool]:
    """:func:`solve`, for a problem that grows on the whole graph if that is small enough; otherwise on what is expanded
    so far, and the second answer is False."""
    problem = world.problem
    if problem.growth is None:
        return solve(world), True
    everything = fully_grown(problem, most)
    return (solve(world), False) if everything is None else (solve(world.on(everything)), True)


def safe_sets(world: World) -> tuple[tuple[BoolArray, ...], tuple[BoolArray, ...]]:
    """(safe_states, safe_actions) of :func:`solve`, without policy and values: H arrays (S,), H-1 arrays (N,).

    Each ray is at the largest intensity that its own cost rows truly allow.

    Examples:
        >>> states, actions = sf.exact.safe_sets(sf.worlds.make("thermal/testing"))
        >>> [int(safe.sum()) for safe in states]
        [1, 4, 4, 5, 6, 8]
    """
    from surefoot.exact import kernels

    world = at_truly_safe(world)
    layers, limits = world.problem.graph.layers, world.problem.violation_thresholds
    running = np.empty(1 + max(layer.n_edges for layer in layers), np.int32)  # room to count the edges of any step
    states, pairs = [terminal_safe(world)], list[BoolArray]()
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


def _refuse_unsafe_start(problem: Problem, unsafe: IntArray) -> None:
    if len(unsafe):
        raise InvalidInput(
            "start is not truly safe",
            where=problem.naming.at_state(0, int(unsafe[0])),
            got="every policy can break a limit from there",
            fix="In this world the fallback is not safe either: correct the world, the limits or the fallback.",
        )
