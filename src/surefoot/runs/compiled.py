"""Compiled: all episodes between two plans, with the draws of the sampler and the updates of the learner.

Bit for bit what the step-by-step path does: the same random streams in the same order (surefoot.worlds.sampler), the
same compiled updates (surefoot.estimate.counting), the same test for a new plan.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from surefoot.agents.agent import Agent
from surefoot.agents.learner import Learner
from surefoot.errors import AssumptionBroken
from surefoot.estimate.costs import CostData
from surefoot.estimate.counting import CostState, Table, ValueState, bank_has_grown, compiled, count_cost, count_value
from surefoot.estimate.values import ValueData
from surefoot.model.graph import BoolArray, FloatArray, IntArray, freeze, pool
from surefoot.runs.record import EpisodeTable
from surefoot.worlds.sampler import ROOT_3, Sampler
from surefoot.worlds.world import World

NOISES = ("gaussian", "uniform", "rademacher")
# Columns of the table of offsets.
STATES, POINTERS, SUCCESSORS, REWARDS, COST_FEATURES, TRANSITION_FEATURES, CHANCES, COSTS = range(8)


@numba.njit(cache=True)
def measure(
    truth: FloatArray, row: int, scales: FloatArray, kind: int, noise: np.random.Generator, measured: FloatArray
) -> None:
    """measured = truth[row] + noise, drawn as the sampler does."""
    for j in range(measured.shape[0]):
        if kind == 0:
            measured[j] = truth[row, j] + scales[j] * noise.standard_normal()
        elif kind == 1:
            measured[j] = truth[row, j] + (2.0 * noise.random() - 1.0) * ROOT_3 * scales[j]
        elif noise.random() < 0.5:
            measured[j] = truth[row, j] + -scales[j]
        else:
            measured[j] = truth[row, j] + scales[j]


@numba.njit(cache=True)
def note(
    k: int,
    truth: FloatArray,
    row: int,
    measured: FloatArray,
    bounds: FloatArray,
    thresholds: FloatArray,
    violations: IntArray,
    margins: FloatArray,
    highest: FloatArray,
) -> None:
    """Enter one step's true and measured costs into the record of episode k."""
    broken = False
    for j in range(measured.shape[0]):
        room = bounds[j] - truth[row, j]
        if truth[row, j] > thresholds[j]:
            broken = True
        else:  # what exceeds the bound by rounding alone keeps it
            room = max(room, 0.0)
        margins[k, j] = min(margins[k, j], room)
        highest[k, j] = max(highest[k, j], measured[j])
    if broken:
        violations[k] += 1


@numba.njit(cache=True)
def roll(
    # the graph, layers one after the other; offsets (H, …) say where each layer's part of an array begins
    offsets: IntArray,
    pair_ptr: IntArray,
    successor: IntArray,
    reward: FloatArray,
    cost_features: Table,
    transition_features: Table,
    terminal_reward: FloatArray,
    terminal_features: Table,
    terminal_has_cost: BoolArray,
    # the truth
    cumulative: FloatArray,
    costs: FloatArray,
    terminal_costs: FloatArray,
    scales: FloatArray,
    kind: int,
    transitions: np.random.Generator,
    noise: np.random.Generator,
    # the plan, layers one after the other
    policy: IntArray,
    value: FloatArray,
    # the learner: cost regressions, value regressions
    learn: bool,
    cost_state: CostState,
    value_state: ValueState,
    planned_cost: FloatArray,
    planned_value: FloatArray,
    threshold: float,
    # the record
    starts: IntArray,
    first: int,
    last: int,
    bounds: FloatArray,
    thresholds: FloatArray,
    rewards: FloatArray,
    violations: IntArray,
    margins: FloatArray,
    highest: FloatArray,
) -> tuple[int, bool, int, int]:
    """Plays episodes first … last-1; stops early when a new plan is due, or in a state without an action.

    → (the next episode, is a plan due, layer and state without an action or -1, -1)
    """
    n_layers = offsets.shape[0] - 1
    m = bounds.shape[0]
    measured = np.empty(m)
    cost_of, anchors, directions, anchor_costs, spread, cost_bank, z, rest = cost_state
    value_of, value_bank, phi_v, target = value_state
    for k in range(first, last):
        state = starts[k]
        total = 0.0
        for h in range(n_layers):
            pair = policy[offsets[h, STATES] + state]
            if pair < 0:
                return k, False, h, state
            begin = pair_ptr[offsets[h, POINTERS] + pair]
            end = pair_ptr[offsets[h, POINTERS] + pair + 1]
            u = transitions.random()
            edge = begin
            while u >= cumulative[offsets[h, CHANCES] + edge]:
                edge += 1
            cost_row = offsets[h, COSTS] + edge
            measure(costs, cost_row, scales, kind, noise, measured)
            note(k, costs, cost_row, measured, bounds, thresholds, violations, margins, highest)
            total += reward[offsets[h, REWARDS] + pair]
            following = successor[offsets[h, SUCCESSORS] + edge]
            if learn:
                count_cost(
                    cost_features,
                    offsets[h, COST_FEATURES] + edge,
                    measured,
                    h,
                    cost_of,
                    anchors,
                    directions,
                    anchor_costs,
                    spread,
                    cost_bank,
                    z,
                    rest,
                )
                count_value(
                    transition_features,
                    offsets[h, TRANSITION_FEATURES],
                    successor,
                    offsets[h, SUCCESSORS],
                    begin,
                    end,
                    edge,
                    value,
                    offsets[h + 1, STATES],
                    h,
                    value_of,
                    value_bank,
                    phi_v,
                    target,
                )
            state = following
        total += terminal_reward[state]
        if terminal_has_cost[state]:
            measure(terminal_costs, state, scales, kind, noise, measured)
            note(k, terminal_costs, state, measured, bounds, thresholds, violations, margins, highest)
            if learn:
                count_cost(
                    terminal_features,
                    state,
                    measured,
                    n_layers,
                    cost_of,
                    anchors,
                    directions,
                    anchor_costs,
                    spread,
                    cost_bank,
                    z,
                    rest,
                )
        rewards[k] = total
        if learn and (
            threshold == 0.0
            or bank_has_grown(cost_bank, planned_cost, threshold)
            or bank_has_grown(value_bank, planned_value, threshold)
        ):
            return k + 1, True, -1, -1
    return last, False, -1, -1


class Rollout:
    """Everything that :func:`roll` reads of one agent on one world, laid out once."""

    def __init__(self, agent: Agent, world: World, sampler: Sampler) -> None:
        problem, graph = world.problem, world.problem.graph
        self._agent, self._sampler = agent, sampler
        last = graph.terminal
        pools = {
            POINTERS: pool(layer.pair_ptr for layer in graph.layers),
            SUCCESSORS: pool(layer.successor for layer in graph.layers),
            REWARDS: pool(layer.reward for layer in graph.layers),
            COST_FEATURES: pool(layer.cost_features for layer in graph.layers),
            TRANSITION_FEATURES: pool(layer.transition_features for layer in graph.layers),
            CHANCES: pool(world.cumulative),
            COSTS: pool(world.costs),
        }
        offsets = np.zeros((graph.horizon, len(pools) + 1), np.int64)
        for column, (_, where) in pools.items():
            offsets[:-1, column] = where
        sizes = [graph.n_states(h) for h in range(graph.horizon)]
        offsets[:, STATES] = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        self._graph = (
            offsets,
            *(pools[column][0] for column in (POINTERS, SUCCESSORS, REWARDS)),
            *(compiled(pools[column][0]) for column in (COST_FEATURES, TRANSITION_FEATURES)),
            last.reward,
            compiled(graph.layers[0].cost_features[:1] if last.cost_features is None else last.cost_features),
            last.has_cost,
        )
        costs = world.terminal_costs
        self._truth = (
            pools[CHANCES][0],
            pools[COSTS][0],
            costs if costs is not None else freeze(np.zeros((1, len(problem.limits)))),
            np.array([limit.noise for limit in problem.limits]),
            NOISES.index(world.noise),
        )
        self._bounds = np.array([limit.bound for limit in problem.limits])
        self._thresholds = problem.violation_thresholds
        self._learner = self._learning(agent)

    def _learning(self, agent: Agent) -> tuple[Any, ...]:
        """The learner's own arrays, which the roll-out changes in place; dummies for one that does not learn."""
        problem = self._agent.problem
        if not isinstance(agent, Learner):
            costs = CostData(problem, 1.0)
            values = ValueData(problem, 1.0)
        else:
            costs, values = agent.costs, agent.transitions
        return (
            isinstance(agent, Learner),
            costs.state,
            values.state,
        )

    def play(self, table: EpisodeTable, first: int, last: int) -> tuple[int, bool]:
        """Episodes first … last-1 under the policy in force; → (the next episode, is a new plan due)."""
        agent = self._agent
        policy = np.concatenate(agent.policy())
        if isinstance(agent, Learner):
            value = np.concatenate(agent.plan.values.value)
            planned = (agent.planned_cost_log_det, agent.planned_value_log_det, math.log1p(agent.replan_growth))
        else:
            value = np.zeros(1)
            planned = (np.zeros(1), np.zeros(1), 1.0)
        arguments: tuple[Any, ...] = (
            *self._graph,
            *self._truth,
            *self._sampler.generators,
            policy,
            value,
            *self._learner,
            *planned,
            table.start,
            first,
            last,
            self._bounds,
            self._thresholds,
            table.reward,
            table.violations,
            table.margin,
            table.highest,
        )
        done, due, h, stuck = roll(*arguments)
        if h >= 0:
            agent._choose(h, stuck)  # says what is wrong, as on the step-by-step path
            where = agent.problem.naming.at_state(h, stuck)
            raise AssumptionBroken("the agent's policy has no action", where=where)
        return int(done), bool(due)
