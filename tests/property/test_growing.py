"""A graph that grows certifies what the whole graph certifies, on all that is expanded, and never more (spec 9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.plan.hope import hope
from tests.differential.compare import problem_of
from tests.drawn_worlds import center_of, ray_problem, ray_tables
from tests.reference.generate import random_tables, with_forbidden, with_pair_rows
from tests.reference.tables import Tables

RIDGES = (0.1, 1.0, 10.0)
PROBLEMS = 8


def tables_of(number: int, seed: int) -> Tables:
    """Random tables, a third with rows per pair, a third with forbidden states; true costs are linear."""
    rng = np.random.default_rng([seed, number, 16])
    tables = random_tables(number + 100_000 * seed, shared_features=False if number % 3 == 1 else None)
    if number % 3 == 1:
        tables = with_pair_rows(tables, rng, 1, 0.0)
    if number % 3 == 2:
        tables = with_forbidden(tables, rng)
    return replace(tables, deviation={}, terminal_deviation={})


def both(number: int, seed: int, **options: Any) -> tuple[sf.Problem, sf.World]:
    """The whole problem, and the world of the one that grows; of every fourth all actions are rays."""
    rays = number % 4 == 3
    tables = ray_tables(number, seed) if rays else tables_of(number, seed)
    whole = ray_problem(tables) if rays else problem_of(tables)
    options |= {"center": lambda h, s: center_of(tables, h, s)} if rays else {}
    longest = whole.graph.largest_cost_norm()
    growing = sf.Problem.growing(**tables.functions(), limits=list(whole.limits), longest_row=longest, **options)
    return whole, sf.World(growing, transition=tables.mu, cost=tables.gamma)


def whole_plan(whole: sf.Problem, agent: sf.LsviNew) -> Any:
    """The plan that the same data give with the whole graph."""
    other = sf.LsviNew(whole, ridges=RIDGES, replan_growth=0.0)
    other.inherit(agent)
    other.replan()
    return other.plan


def differing(agent: sf.LsviNew, other: Any) -> tuple[list[Any], list[Any]]:
    """Pairs of the grown graph that it alone certifies, and those that only the whole graph does."""
    more, less, plan = [], [], agent.plan
    for h in range(plan.problem.horizon - 1):
        for s in plan.problem.states(h)[h > 0 :]:
            for a in plan.problem.actions(h, s):
                ours, theirs = plan.certified(h, s, a), other.certified(h, s, a)
                more += [(h, s, a)] if ours and not theirs else []
                assert not ours or plan.intensity(h, s, a) == other.intensity(h, s, a)
                less += [(h, s, a)] if theirs and not ours else []
    return more, less


def test_ends_with_the_certified_sets_and_values_of_the_whole_graph(seed: int) -> None:
    """The same data, first while the graph grows, when nothing may be certified that the whole graph does not, then
    when it has stopped, when nothing may be missing either."""
    unexpanded = missing = compared = 0
    for number in range(PROBLEMS):
        whole, world = both(number, seed)
        agent = sf.LsviNew(world.problem, ridges=RIDGES, replan_growth=0.0)
        for episodes in (1, 60):
            sf.run(agent, world, episodes, seed if episodes == 1 else None)
            more, less = differing(agent, whole_plan(whole, agent))
            assert more == []
            missing += len(less)
        while agent.may_grow():
            sf.run(agent, world, 1)
        other = whole_plan(whole, agent)
        assert differing(agent, other) == ([], [])
        problem, plan = agent.problem, agent.plan
        done, actions = problem.expanded_actions
        unexpanded += actions - done
        # V over certified pairs, from the same value ellipsoids: to the last bit in every state that the graph holds.
        alike = hope(other.problem, other.bounds, other.certified_sets, plan.ellipsoids, opened=other.opened)
        for h in range(problem.horizon):
            for s in problem.states(h)[h > 0 :]:
                ours = plan.hope.sure.value[h][problem.state_index(h, s)]
                assert ours == alike.sure.value[h][whole.state_index(h, s)]
                compared += 1
    assert unexpanded > 0  # of what is not certified something stayed out
    assert missing > 0  # and the comparison is able to fail
    assert compared > 5 * PROBLEMS


def test_runs_step_by_step_compiled_and_resumed_are_the_same_to_the_last_bit(seed: int, tmp_path: Any) -> None:
    for number in range(4):
        _, world = both(number, seed)
        runs = [sf.run(sf.LsviNew(world.problem), world, 60, seed, compiled=compiled) for compiled in (False, True)]
        agent = sf.LsviNew(world.problem)
        sf.run(agent, world, 25, seed, checkpoint=tmp_path / f"{number}.npz")
        runs.append(sf.resume(tmp_path / f"{number}.npz", sf.LsviNew(world.problem), world, episodes=60))
        sf.run(agent, world, 35)
        for run in runs[1:]:
            assert np.array_equal(runs[0].regret, run.regret)
            assert np.array_equal(runs[0].violations, run.violations)
        plans = [run.plan for run in runs]
        for plan in (*plans[1:], agent.plan):
            assert plan.problem.digest == plans[0].problem.digest
            for h, value in enumerate(plan.values.value):
                assert np.array_equal(value, plans[0].values.value[h])


def test_no_limit_is_broken_while_the_bounds_hold(seed: int) -> None:
    """Theorem 1 on a graph that grows, with a budget that is spent on half of the problems."""
    held = 0
    for number in range(8):
        size = both(number, seed)[0].graph.n_all_states
        _, world = both(number, seed, most_states=size // (1 + number // 2 % 2))
        run = sf.run(sf.LsviNew(world.problem), world, 100, seed)
        assert run.plan is not None
        graph = run.plan.problem.graph
        assert graph.n_all_states <= max(world.problem.graph.n_all_states, size // (1 + number // 2 % 2))
        if run.cost_event:
            held += 1
            assert run.violations.sum() == 0
        assert (run.regret >= 0).all()
    assert held >= 5
