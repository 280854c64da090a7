"""Compiled: all episodes between two plans, with the draws of the sampler and the updates of the learner.

Bit for bit what the step-by-step path does: the same random streams in the same order (surefoot.worlds.sampler), the
same compiled updates (surefoot.estimate.rows), the same test for a new plan.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba.typed import List

from surefoot.agents.base import Agent
from surefoot.agents.learner import Learner
from surefoot.estimate.costs import CostData
from surefoot.estimate.ridge import RidgeBank
from surefoot.estimate.rows import add_row, has_grown, project, value_row
from surefoot.estimate.values import ValueData
from surefoot.experiment.tables import VIOLATION, EpisodeTable
from surefoot.model.layered import FloatArray, IntArray, freeze
from surefoot.worlds.sampler import ROOT_3, Sampler
from surefoot.worlds.world import World

NOISES = ("gaussian", "uniform", "rademacher")


@numba.njit(cache=True)
def measure(truth: FloatArray, scales: FloatArray, kind: int, noise: np.random.Generator, measured: FloatArray) -> None:
    """measured = truth + noise, drawn as the sampler does."""
    for j in range(truth.shape[0]):
        if kind == 0:
            measured[j] = truth[j] + scales[j] * noise.standard_normal()
        elif kind == 1:
            measured[j] = truth[j] + (2.0 * noise.random() - 1.0) * ROOT_3 * scales[j]
        elif noise.random() < 0.5:
            measured[j] = truth[j] + -scales[j]
        else:
            measured[j] = truth[j] + scales[j]


@numba.njit(cache=True)
def note(
    k: int,
    truth: FloatArray,
    measured: FloatArray,
    bounds: FloatArray,
    tolerance: float,
    violations: IntArray,
    margins: FloatArray,
    highest: FloatArray,
) -> None:
    """Enter one step's true and measured costs into the record of episode k."""
    broken = False
    for j in range(truth.shape[0]):
        margins[k, j] = min(margins[k, j], bounds[j] - truth[j])
        highest[k, j] = max(highest[k, j], measured[j])
        broken = broken or truth[j] > bounds[j] + tolerance
    if broken:
        violations[k] += 1


@numba.njit(cache=True)
def roll(
    # the graph, a list entry per decision layer
    pair_ptr: Any,
    successor: Any,
    reward: Any,
    cost_features: Any,
    transition_features: Any,
    terminal_reward: FloatArray,
    terminal_features: FloatArray,
    terminal_has_cost: IntArray,
    # the truth
    cumulative: Any,
    costs: Any,
    terminal_costs: FloatArray,
    scales: FloatArray,
    kind: int,
    transitions: np.random.Generator,
    noise: np.random.Generator,
    # the plan
    policy: Any,
    value: Any,
    # the learner: cost regressions, value regressions
    learn: bool,
    cost_of: IntArray,
    value_of: IntArray,
    anchors: FloatArray,
    directions: FloatArray,
    anchor_costs: FloatArray,
    spread: FloatArray,
    cost_bank: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray],
    value_bank: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray],
    planned_cost: FloatArray,
    planned_value: FloatArray,
    threshold: float,
    # the record
    starts: IntArray,
    first: int,
    last: int,
    bounds: FloatArray,
    tolerance: float,
    rewards: FloatArray,
    violations: IntArray,
    margins: FloatArray,
    highest: FloatArray,
) -> tuple[int, bool]:
    """Plays episodes first … last-1; stops early when a new plan is due. → (the next episode, is one due)."""
    n_layers = len(pair_ptr)
    m = bounds.shape[0]
    measured, rest = np.empty(m), np.empty(m)
    z, phi_v = np.empty(anchors.shape[1]), np.empty(value_bank[0].shape[1])
    target = np.empty(1)
    for k in range(first, last):
        state = starts[k]
        total = 0.0
        for h in range(n_layers):
            pair = policy[h][state]
            if pair < 0:
                return k, False  # nothing is certified here: the step-by-step path says what is wrong
            begin, end = pair_ptr[h][pair], pair_ptr[h][pair + 1]
            u = transitions.random()
            edge = begin
            while u >= cumulative[h][edge]:
                edge += 1
            measure(costs[h][edge], scales, kind, noise, measured)
            total += reward[h][pair]
            note(k, costs[h][edge], measured, bounds, tolerance, violations, margins, highest)
            if learn:
                r = cost_of[h]
                rho = project(cost_features[h][edge], measured, anchors[h], directions[h], anchor_costs[h], z, rest)
                add_row(cost_bank[0][r], cost_bank[1][r], cost_bank[2][r], cost_bank[3][r], cost_bank[4][r], z, rest)
                cost_bank[5][r] += 1
                spread[r] += (1.0 + abs(rho)) ** 2
                q = value_of[h]
                value_row(transition_features[h], successor[h], begin, end, value[h + 1], phi_v)
                target[0] = value[h + 1][successor[h][edge]]
                add_row(
                    value_bank[0][q],
                    value_bank[1][q],
                    value_bank[2][q],
                    value_bank[3][q],
                    value_bank[4][q],
                    phi_v,
                    target,
                )
                value_bank[5][q] += 1
            state = successor[h][edge]
        total += terminal_reward[state]
        if terminal_has_cost[state]:
            measure(terminal_costs[state], scales, kind, noise, measured)
            note(k, terminal_costs[state], measured, bounds, tolerance, violations, margins, highest)
            if learn:
                r = cost_of[n_layers]
                rho = project(
                    terminal_features[state],
                    measured,
                    anchors[n_layers],
                    directions[n_layers],
                    anchor_costs[n_layers],
                    z,
                    rest,
                )
                add_row(cost_bank[0][r], cost_bank[1][r], cost_bank[2][r], cost_bank[3][r], cost_bank[4][r], z, rest)
                cost_bank[5][r] += 1
                spread[r] += (1.0 + abs(rho)) ** 2
        rewards[k] = total
        if learn and (
            threshold == 0.0
            or has_grown(cost_bank[4], planned_cost, threshold)
            or has_grown(value_bank[4], planned_value, threshold)
        ):
            return k + 1, True
    return last, False


class Rollout:
    """Everything that :func:`roll` reads of one agent on one world, laid out once."""

    def __init__(self, agent: Agent, world: World, sampler: Sampler) -> None:
        problem, graph = world.problem, world.problem.graph
        self._agent, self._sampler = agent, sampler
        last = graph.terminal
        self._graph = (
            List([layer.pair_ptr for layer in graph.layers]),
            List([layer.successor for layer in graph.layers]),
            List([layer.reward for layer in graph.layers]),
            List([layer.cost_features for layer in graph.layers]),
            List([layer.transition_features for layer in graph.layers]),
            last.reward,
            last.cost_features if last.cost_features is not None else freeze(np.zeros((1, graph.cost_dim))),
            last.has_cost,
        )
        costs = world.terminal_costs
        self._truth = (
            List(list(world.cumulative)),
            List(list(world.costs)),
            costs if costs is not None else freeze(np.zeros((1, len(problem.limits)))),
            np.array([limit.noise for limit in problem.limits]),
            NOISES.index(world.noise),
        )
        self._bounds = np.array([limit.bound for limit in problem.limits])
        self._learner = self._learning(agent)

    def _learning(self, agent: Agent) -> tuple[Any, ...]:
        """The learner's own arrays, which the roll-out changes in place; dummies for one that does not learn."""
        problem = self._agent.problem
        layers = range(problem.horizon)
        if not isinstance(agent, Learner):
            costs = CostData(problem, 1.0)
            values = ValueData(problem, 1.0)
        else:
            costs, values = agent.costs, agent.transitions
        return (
            isinstance(agent, Learner),
            np.array([costs.regression(h) for h in layers]),
            np.array([values.regression(h) for h in layers]),
            costs.anchors,
            costs.directions,
            costs.anchor_costs,
            costs.spread,
            _bank(costs.bank),
            _bank(values.bank),
        )

    def play(self, table: EpisodeTable, first: int, last: int) -> tuple[int, bool]:
        """Episodes first … last-1 under the policy in force; → (the next episode, is a new plan due)."""
        agent = self._agent
        policy = List([np.array(row, dtype=np.int64) for row in agent.policy()])
        if isinstance(agent, Learner):
            value = List([np.array(row) for row in agent.plan.values.value])
            planned = (agent.planned_cost_log_det, agent.planned_value_log_det, math.log1p(agent.replan_growth))
        else:
            value = List([np.zeros(1)] * (len(policy) + 1))
            planned = (np.zeros(1), np.zeros(1), 1.0)
        done, due = roll(
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
            VIOLATION,
            table.reward,
            table.violations,
            table.margin,
            table.highest,
        )
        return int(done), bool(due)


def _bank(bank: RidgeBank) -> tuple[Any, ...]:
    return (bank.gram, bank.gram_low, bank.targets, bank.targets_low, bank.factor, bank.rows)
