"""Priors, anchors, bounds by step and shared offsets: the engine agrees with a second transcription of section 3."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import surefoot as sf
from tests.differential.test_reference import ridges
from tests.reference.generate import random_tables
from tests.reference.history import feed, random_history
from tests.reference.priors import Declared, PriorReference, random_declared
from tests.reference.tables import Tables

P = 0.05
PROBLEMS = 14
CLOSE = 1e-9


def limits_of(tables: Tables, known: Declared) -> list[sf.Limit]:
    found = []
    for j, limit in enumerate(tables.limits):
        prior = known.intervals[j]
        found.append(
            sf.Limit(
                f"limit {j}",
                bound=[row[j] for row in known.bounds],
                noise=limit.noise,
                norm=limit.norm if prior is None or known.beside[j] else None,
                prior=prior,
                misspecification=limit.misspecification,
                episode_noise=known.shared[j],
            )
        )
    return found


def problem_of(tables: Tables, known: Declared) -> sf.Problem:
    declared = tables.functions() | {"anchor": lambda h: list(known.anchors[h])}
    return sf.Problem.from_functions(**declared, limits=limits_of(tables, known))


def agent_of(problem: sf.Problem, **ridges: Any) -> sf.LsviNew:
    agent = sf.LsviNew(problem, P, exploration="ideas", replan_growth=0.0, **ridges)
    agent._departs = lambda *_: False  # type: ignore[method-assign]  # the history below has no offsets
    return agent


def faults_of(plan: Any, reference: PriorReference) -> tuple[list[str], set[bool]]:
    theirs, faults = reference.plan, []
    if plan.consistent != theirs.consistent:
        return ["consistent"], set()
    if not theirs.consistent:
        return [], set()
    near = set()
    for key, upper in theirs.upper.items():
        for j in range(len(upper)):
            for ours, other in ((plan.upper(*key)[j], upper[j]), (plan.lower(*key)[j], theirs.lower[key][j])):
                if not abs(ours - other) <= CLOSE * max(1.0, abs(other)):
                    faults.append(f"{key}, limit {j}: {ours} and {other}")
            if abs(upper[j] - reference.k.bounds[key[0]][j]) <= CLOSE:
                near.add(key[:3])
    for s, upper in theirs.terminal_upper.items():
        if not np.allclose(plan.terminal_upper(s), upper, rtol=0, atol=CLOSE):
            faults.append(f"last state {s}")
    if not near:
        faults += [f"certified {pair}" for pair, ok in theirs.certified.items() if plan.certified(*pair) != ok]
    seed = reference.t.fallback_pairs()
    return faults, {ok for pair, ok in theirs.certified.items() if pair not in seed}


def test_engine_agrees_with_the_reference(seed: int) -> None:
    mixed = several = 0
    for number in range(PROBLEMS):
        tables, rng = random_tables(number + 100_000 * seed), np.random.default_rng([seed, number, 7])
        known = random_declared(tables, rng)
        agent = agent_of(problem_of(tables, known), **ridges(number))
        reference = PriorReference(tables, P, known, replan_growth=0.0, **ridges(number))
        several += len(agent.costs.families) > 1
        faults, _ = faults_of(agent.plan, reference)
        assert not faults, (number, faults[:5])
        for episode in random_history(tables, reference, 12, rng):
            feed(agent, episode)
        faults, masks = faults_of(agent.plan, reference)
        assert not faults, (number, faults[:5])
        mixed += len(masks) == 2
    assert mixed >= 0.2 * PROBLEMS, "where all or nothing is certified little is proved"
    assert several >= 2


def test_sparse_features_give_the_same_bounds(seed: int) -> None:
    for number in range(6):
        tables, rng = random_tables(900 + number + 100_000 * seed), np.random.default_rng([seed, number, 8])
        known = random_declared(tables, rng)
        dense = problem_of(tables, known)
        thin = sf.Problem.from_arrays(**as_arrays(dense), anchor=lambda h: list(known.anchors[h]))  # noqa: B023
        agents = [agent_of(problem) for problem in (dense, thin)]
        for episode in random_history(tables, np.random.default_rng([seed, number, 9]), 8, rng):
            for agent in agents:
                feed(agent, episode)
        one, other = (agent.plan.bounds for agent in agents)
        for a, b in zip(one.upper + one.lower, other.upper + other.lower, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def as_arrays(problem: sf.Problem) -> dict[str, Any]:
    """The same problem with sparse cost features."""
    graph, last = problem.graph, problem.graph.terminal
    phi = [layer.transition_features for layer in graph.layers]
    starts = {"fallback": [np.where(y.fallback < 0, -1, y.fallback - y.state_ptr[:-1]) for y in graph.layers]}
    declared: dict[str, Any] = {
        "horizon": problem.horizon,
        "start": graph.starts.tolist(),
        "state_ptr": [y.state_ptr for y in graph.layers],
        "pair_ptr": [y.pair_ptr for y in graph.layers],
        "successors": [y.successor for y in graph.layers],
        "reward": [y.reward for y in graph.layers],
        "cost_features": [sparse.csr_array(y.cost_features) for y in graph.layers],
        "transition_features": [np.array(table) for table in phi],
        "terminal_reward": last.reward,
        "limits": problem.limits,
        "transition_norm": problem.transition_norm,
        "stationary_costs": problem.stationary_costs,
        "stationary_transitions": problem.stationary_transitions,
        "state_labels": [list(names) for names in problem.naming.states],
        "action_labels": [list(names or ()) for names in problem.naming.actions],
        **starts,
    }
    if last.cost_features is not None:
        declared |= {
            "terminal_cost_features": sparse.csr_array(last.cost_features),
            "terminal_has_cost": np.array(last.has_cost),
        }
    return declared
