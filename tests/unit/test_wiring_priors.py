"""No constant of a prior, an anchor, a bound by step or a shared offset is ignored: each is changed, and it is seen.

Each belongs to one limit, and the bounds of the other limit stay as they are, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from tests.differential.test_priors import agent_of, problem_of
from tests.reference.generate import random_history, random_tables
from tests.reference.history import feed
from tests.reference.priors import Declared
from tests.reference.tables import Tables

FIELDS = {"prior", "episode_noise", "features"}  #: of a limit, looked at here; the others in test_wiring
PROBLEMS, EPISODES, M = 2, 4, 2


def tables_of(number: int, seed: int) -> Tables:
    return random_tables(1000 * seed + number, anchors=True, limits=M, misspecified=True, shared_features=False)


def declared(tables: Tables) -> Declared:
    """Both limits with priors, of different half-widths: true ones."""
    horizon, dim = tables.horizon, len(tables.gamma[0][0])
    rows = [[[gamma[j][i] for gamma in tables.gamma] for i in range(dim)] for j in range(M)]
    intervals: Any = [
        [(min(row) - 0.3 - 0.1 * j - 0.01 * i, max(row) + 0.3) for i, row in enumerate(rows[j])] for j in range(M)
    ]
    anchors = [[(*own, [0.01] * M)] if (own := tables.anchor(h)) else [] for h in range(horizon)]
    bounds = [[limit.bound for limit in tables.limits] for _ in range(horizon)]
    return Declared(intervals, [False] * M, anchors, bounds, [0.02] * M)


def bounds_after(problem: sf.Problem, tables: Tables, number: int, seed: int) -> np.ndarray:
    """(2, rows, m) lower and upper bounds after a history that is the same for all."""
    agent, rng = agent_of(problem), np.random.default_rng([seed, number])
    for episode in random_history(tables, rng, EPISODES, rng):
        feed(agent, episode)
    found = agent.plan.bounds
    return np.array([np.concatenate(found.lower), np.concatenate(found.upper)])


def widened(known: Declared, j: int, low: float, high: float) -> Declared:
    mine = known.intervals[j]
    assert mine is not None
    intervals = list(known.intervals)
    intervals[j] = [(a - low, b + high) for a, b in mine]
    return replace(known, intervals=intervals)


def with_tolerance(known: Declared, j: int) -> Declared:
    anchors = [
        [(x, cost, [t + 0.02 * (i == j) for i, t in enumerate(tolerance)]) for x, cost, tolerance in each]
        for each in known.anchors
    ]
    return replace(known, anchors=anchors)


def with_offset(known: Declared, j: int) -> Declared:
    return replace(known, shared=[t + 0.1 * (i == j) for i, t in enumerate(known.shared)])


CHANGES: dict[str, Callable[[Declared, int], Declared]] = {
    "half-widths": lambda known, j: widened(known, j, 0.1, 0.1),
    "centres": lambda known, j: widened(known, j, -0.05, 0.05),
    "tolerance": with_tolerance,
    "episode_noise": with_offset,
}


def moved(before: np.ndarray, after: np.ndarray) -> list[bool]:
    """Which limits' bounds changed."""
    return [not np.array_equal(before[..., j], after[..., j], equal_nan=True) for j in range(M)]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("j", range(M))
def test_what_is_declared_of_one_limit_moves_its_bounds_alone(change: str, j: int, seed: int) -> None:
    seen = 0
    for number in range(PROBLEMS):
        tables = tables_of(number, seed)
        known = declared(tables)
        before, after = (
            bounds_after(problem_of(tables, each), tables, number, seed) for each in (known, CHANGES[change](known, j))
        )
        changed = moved(before, after)
        assert not changed[1 - j], f"problem {number}: {change} of limit {j} moves the other's"
        seen += changed[j]
    assert seen == PROBLEMS


@pytest.mark.parametrize("j", range(M))
def test_a_norm_beside_a_prior_counts(j: int, seed: int) -> None:
    """Beside a prior so wide that the norm is what binds, in some row."""
    seen = 0
    for number in range(PROBLEMS):
        tables = tables_of(number, seed)
        wide = replace(widened(declared(tables), j, 20.0, 20.0), beside=[i == j for i in range(M)])
        problem = problem_of(tables, wide)
        limits = list(problem.limits)
        assert limits[j].norm is not None
        limits[j] = replace(limits[j], norm=1.1 * limits[j].norm)
        loose = again(tables, wide, limits)
        changed = moved(*(bounds_after(each, tables, number, seed) for each in (problem, loose)))
        assert not changed[1 - j]
        seen += changed[j]
    assert seen > 0


def again(tables: Tables, known: Declared, limits: list[sf.Limit]) -> sf.Problem:
    functions = tables.functions() | {"anchor": lambda h: list(known.anchors[h])}
    return sf.Problem.from_functions(**functions, limits=limits)


@pytest.mark.parametrize("j", range(M))
def test_the_features_that_a_limit_depends_on_count(j: int, seed: int) -> None:
    """One left out has the coefficient 0: what it adds to a cost is open no more. Without anchors, which it might
    contradict, and before any data, of which it may be untrue."""
    for number in range(PROBLEMS):
        tables = tables_of(number, seed)
        bare = replace(declared(tables), anchors=[[]] * tables.horizon)
        problem = problem_of(tables, bare)
        limits, dim = list(problem.limits), problem.graph.cost_dim
        assert isinstance(limits[j].prior, tuple)
        limits[j] = replace(limits[j], features=tuple(range(dim - 1)), prior=limits[j].prior[:-1])
        plans = [agent_of(each).plan.bounds for each in (problem, again(tables, bare, limits))]
        before, after = (np.array([np.concatenate(plan.lower), np.concatenate(plan.upper)]) for plan in plans)
        assert moved(before, after) == [i == j for i in range(M)]


def test_the_bound_of_a_step_counts_at_that_step(seed: int) -> None:
    """So high that nothing at one step breaks a limit: condition 1 holds there, and elsewhere is what it was."""
    seen = 0
    for number in range(2 * PROBLEMS):
        tables = tables_of(number, seed)
        known = declared(tables)
        before = agent_of(problem_of(tables, known)).plan
        for h in range(tables.horizon - 1):
            bounds = [[1e6] * M if step == h else row for step, row in enumerate(known.bounds)]
            after = agent_of(problem_of(tables, replace(known, bounds=bounds))).plan
            assert after.condition_1(h).all()
            for other in range(tables.horizon - 1):
                if other != h:
                    np.testing.assert_array_equal(after.condition_1(other), before.condition_1(other))
            seen += not before.condition_1(h).all()
    assert seen > 0


def test_the_same_declaration_gives_the_same_bounds(seed: int) -> None:
    """Negative control."""
    tables = tables_of(0, seed)
    one, two = (bounds_after(problem_of(tables, declared(tables)), tables, 0, seed) for _ in range(2))
    assert not any(moved(one, two))
