"""Compiled: all episodes between two plans, bit for bit as step by step.

It uses the same random streams in the same order (surefoot.worlds.sampler), the same compiled updates
(surefoot.estimate.update) and the same test for a new plan.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surefoot.agents.agent import Agent
from surefoot.agents.learner import Learner
from surefoot.errors import AssumptionBroken
from surefoot.estimate.costs import CostData
from surefoot.estimate.families import of_norms
from surefoot.estimate.tables import (
    BY_PAIR,
    COST_FEATURES,
    POINTERS,
    REWARDS,
    STATES,
    SUCCESSORS,
    TRANSITION_FEATURES,
    StepTables,
    step_tables,
)
from surefoot.estimate.update import CostState, ValueState, count_cost, count_value, has_grown
from surefoot.estimate.values import ValueData
from surefoot.jit import compiled, leaf
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze
from surefoot.model.sharing import pool
from surefoot.runs.record import EpisodeTable
from surefoot.worlds.sampler import ROOT_3, Sampler
from surefoot.worlds.truth_rules import NOISES
from surefoot.worlds.world import World

MOST_TRACED = 4096  # episodes at once
CHANCES, COSTS = range(2)  # columns of Truth.begins


@compiled
def measure(
    truth: FloatArray,
    row: int,
    scales: FloatArray,
    offsets: FloatArray,
    kind: int,
    noise: np.random.Generator,
    measured: FloatArray,
) -> None:
    """measured = truth[row] + noise + the episode's offset, drawn as the sampler does."""
    for j in range(measured.shape[0]):
        measured[j] = truth[row, j] + draw_noise(scales[j], kind, noise) + offsets[j]


@compiled
def draw_noise(scale: float, kind: int, noise: np.random.Generator) -> float:
    if kind == 0:
        return scale * noise.standard_normal()
    if kind == 1:
        return (2.0 * noise.random() - 1.0) * ROOT_3 * scale
    return -scale if noise.random() < 0.5 else scale


class Graph(NamedTuple):
    """What agents know."""

    steps: StepTables
    terminal_reward: FloatArray
    terminal_has_cost: BoolArray
    forbidden: BoolArray  # the steps one after the other


class Truth(NamedTuple):
    """What the world hides from agents."""

    begins: IntArray  # (H-1, 2)  where each step begins in the next two
    cumulative: FloatArray
    costs: FloatArray
    terminal_costs: FloatArray
    scales: FloatArray
    shared_scales: FloatArray  # of offsets that an episode's measurements share
    offsets: FloatArray  # written: those of the last episode
    kind: int  # of the noise


class Learning(NamedTuple):
    """The plan in force, the statistics that observations change, and when the next plan is due."""

    policy: IntArray  # the steps one after the other
    value: FloatArray
    learns: bool  # if not, the rest means nothing
    costs: CostState
    values: ValueState
    planned_costs: FloatArray
    planned_values: FloatArray
    threshold: float


class Trace(NamedTuple):
    """The path of each episode and what was measured, for learners that need it; otherwise empty."""

    edges: IntArray  # (n, H-1)
    costs: FloatArray  # (n, H, m)


class Record(NamedTuple):
    """What is recorded for every episode, and against which limits."""

    starts: IntArray
    bounds: FloatArray
    thresholds: FloatArray
    rewards: FloatArray
    violations: IntArray
    margins: FloatArray
    highest: FloatArray


@leaf
def note(k: int, h: int, truth: FloatArray, row: int, measured: FloatArray, entered: bool, record: Record) -> None:
    """Record step h's true and measured costs in episode k; ``entered``: a forbidden state was entered."""
    broken = entered
    for j in range(measured.shape[0]):
        room = record.bounds[h, j] - truth[row, j]
        if truth[row, j] > record.thresholds[h, j]:
            broken = True
        else:  # a cost that exceeds its bound by rounding only keeps it
            room = max(room, 0.0)
        record.margins[k, j] = min(record.margins[k, j], room)
        record.highest[k, j] = max(record.highest[k, j], measured[j])
    if broken:
        record.violations[k] += 1


@compiled
def roll(
    graph: Graph,
    truth: Truth,
    transitions: np.random.Generator,
    noise: np.random.Generator,
    learning: Learning,
    record: Record,
    trace: Trace,
    first: int,
    last: int,
) -> tuple[int, bool, int, int]:
    """Play episodes first … last-1; stop early when a new plan is due, or in a state without an action.

    → (the next episode, is a plan due?, step and state without an action or -1, -1)
    """
    # Unpacked once: each time, compiled code counts references to what it takes out of a tuple.
    steps, last_reward, last_has_cost, banned = graph
    offsets, pair_ptr, successor, reward, cost_rows, transition_rows, last_rows = steps
    begins, cumulative, costs, last_costs, scales, shared_scales, shared, kind = truth
    policy, value, learns, cost_state, value_state, planned_costs, planned_values, threshold = learning
    starts, rewards = record.starts, record.rewards
    edges_of, costs_of = trace
    traced, n_steps = edges_of.shape[0] > 0, offsets.shape[0] - 1
    measured = np.empty(record.bounds.shape[1])
    some_shared = shared_scales.any()
    for k in range(first, last):
        state = starts[k]
        total = 0.0
        if some_shared:
            for j in range(shared.shape[0]):
                shared[j] = draw_noise(shared_scales[j], kind, noise)
        for h in range(n_steps):
            pair = policy[offsets[h, STATES] + state]
            if pair < 0:
                return k, False, h, state
            begin = pair_ptr[offsets[h, POINTERS] + pair]
            end = pair_ptr[offsets[h, POINTERS] + pair + 1]
            u = transitions.random()
            edge = begin
            while u >= cumulative[begins[h, CHANCES] + edge]:
                edge += 1
            own = pair if offsets[h, BY_PAIR] == 1 else edge
            row = begins[h, COSTS] + own
            after = successor[offsets[h, SUCCESSORS] + edge]
            entered = banned[offsets[h + 1, STATES] + after]
            measure(costs, row, scales, shared, kind, noise, measured)
            note(k, h, costs, row, measured, entered, record)
            total += reward[offsets[h, REWARDS] + pair]
            if traced:
                edges_of[k - first, h] = edge
                costs_of[k - first, h] = measured
            if learns:
                count_cost(cost_rows, offsets[h, COST_FEATURES] + own, measured, h, cost_state)
                at, follow, offset = offsets[h, TRANSITION_FEATURES], offsets[h, SUCCESSORS], offsets[h + 1, STATES]
                count_value(transition_rows, at, successor, follow, begin, end, edge, value, offset, h, value_state)
            state = after
        total += last_reward[state]
        if last_has_cost[state]:
            measure(last_costs, state, scales, shared, kind, noise, measured)
            note(k, n_steps, last_costs, state, measured, False, record)
            if traced:
                costs_of[k - first, n_steps] = measured
            if learns:
                count_cost(last_rows, state, measured, n_steps, cost_state)
        rewards[k] = total
        if learns and (
            threshold == 0.0
            or has_grown(cost_state.bank.log_det, planned_costs, threshold)
            or has_grown(value_state.bank.log_det, planned_values, threshold)
        ):
            return k + 1, True, -1, -1
    return last, False, -1, -1


class Rollout:
    """Everything :func:`roll` needs for one agent on one world, laid out once."""

    def __init__(self, agent: Agent, world: World, sampler: Sampler) -> None:
        problem, graph = world.problem, world.problem.graph
        self._agent, self._sampler = agent, sampler
        (chances, chance_begins), (costs, cost_begins) = pool(world.cumulative), pool(world.costs)
        self._graph = Graph(
            steps=step_tables(graph),
            terminal_reward=graph.terminal.reward,
            terminal_has_cost=graph.terminal.has_cost,
            forbidden=freeze(np.concatenate([graph.forbidden(h) for h in range(graph.horizon)])),
        )
        last_costs = world.terminal_costs
        self._told_last = last_costs is not None
        self._truth = Truth(
            np.stack([chance_begins, cost_begins], axis=1),
            chances,
            costs,
            last_costs if last_costs is not None else freeze(np.zeros((1, len(problem.limits)))),
            np.array([limit.noise for limit in problem.limits]),
            sampler.shared_scales,
            sampler.offsets,
            NOISES.index(world.noise),
        )
        self._limits = problem.bounds, problem.violation_thresholds
        learner = agent if isinstance(agent, Learner) else None  # others get statistics that nobody reads
        self._costs = CostData(problem, 1.0, of_norms(problem), shaped=0.0) if learner is None else learner.costs
        self._values = ValueData(problem, 1.0) if learner is None else learner.transitions

    def play(self, table: EpisodeTable, first: int, last: int) -> tuple[int, bool]:
        """Play episodes first … last-1 under the policy in force. → (the next episode, is a new plan due?)"""
        agent, costs, values = self._agent, self._costs.state, self._values.state
        policy = np.concatenate(agent.policy())
        if isinstance(agent, Learner):
            value, threshold = np.concatenate(agent.plan.targets), math.log1p(agent.replan_growth)
            planned = agent.planned_cost_log_det, agent.planned_value_log_det
            learning = Learning(policy, value, True, costs, values, *planned, threshold)
        else:
            learning = Learning(policy, np.zeros(1), False, costs, values, np.zeros(1), np.zeros(1), 1.0)
        record = Record(table.start, *self._limits, table.reward, table.violations, table.margin, table.highest)
        traced = isinstance(agent, Learner) and agent.traced
        last = min(last, first + MOST_TRACED) if traced else last
        n, steps, m = (last - first if traced else 0), agent.problem.horizon - 1, len(agent.problem.limits)
        trace = Trace(np.empty((n, steps), np.int64), np.empty((n, steps + 1, m)))
        done, due, h, stuck = roll(
            self._graph, self._truth, *self._sampler.generators, learning, record, trace, first, last
        )
        if isinstance(agent, Learner) and traced:
            agent.retell(trace.edges[: done - first], trace.costs[: done - first], self._told_last)
        if h >= 0:
            agent._choose(h, stuck)  # says what is wrong, as on the step-by-step path
            where = agent.problem.naming.at_state(h, stuck)
            raise AssumptionBroken("the agent's policy has no action", where=where)
        return int(done), bool(due)
