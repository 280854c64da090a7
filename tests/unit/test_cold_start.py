"""The cold start: remedies by hand and tried out, and what the fallback's own data can open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.diagnosis.before_data import before_data
from surefoot.diagnosis.cold_start import fallback_spans, inside
from tests.diagnosed import (
    HEAT,
    imprecise,
    last_state,
    moves,
    one_step,
    two_limits,
    two_steps,
    walk,
    with_limit,
)
from tests.differential.compare import problem_of
from tests.reference.generate import random_tables


def near_to(value: float) -> Any:
    """To within the guard against rounding."""
    return pytest.approx(value, rel=1e-13)


# ---------------------------------------------------------------- the cold start, by hand


def test_blocked_by_one_step() -> None:
    found = sf.check(one_step())
    start = found.cold_start
    assert (start.can_move, start.moves, start.alternatives) == (False, 0, 1)
    near = start.closest
    assert near is not None
    assert (near.step, near.state, near.action, near.limit) == (0, "s", "go", "heat")
    assert (near.upper, near.bound, near.excess, near.later) == (near_to(1.25), 1.0, near_to(0.25), False)
    assert near.where == "step 0, state 's', action 'go', successor 't'"
    assert (start.all_bounds_raised_by, start.all_norms_times) == (near_to(0.25), near_to(0.75))
    (limit,) = found.limits
    assert (limit.smallest_bound, limit.largest_norm, limit.least_norm) == (near_to(1.25), near_to(0.75), 0.25)
    # The fallback's own feature is the anchor: z = 0, and nothing about (0, 1) is ever learnt.
    assert start.can_move is False
    assert found.errors
    assert not found.warnings


def test_blocked_by_what_may_follow() -> None:
    found = sf.check(two_steps())
    near = found.cold_start.closest
    assert near is not None
    assert (near.step, near.state, near.action) == (0, "s", "go")
    assert (near.upper, near.excess, near.later) == (near_to(1.25), near_to(0.25), True)
    assert near.where == "step 1, state 't', action 'rest', successor 's'"  # not 'run': rest needs less
    assert found.limits[0].largest_norm == near_to(0.75)


def test_blocked_by_a_last_state() -> None:
    near = sf.check(last_state()).cold_start.closest
    assert near is not None
    assert (near.excess, near.later, near.where) == (near_to(0.25), True, "step 1, state 't'")


def test_each_limit_alone() -> None:
    heat, wear = sf.check(two_limits()).limits
    assert (heat.smallest_bound, heat.largest_norm) == (near_to(1.25), near_to(0.75))
    assert (wear.smallest_bound, wear.largest_norm) == (None, None)  # 'wear' is not in the way


def test_two_limits_in_the_way_need_a_common_change() -> None:
    tight = sf.Limit("wear", bound=0.25, noise=0.2, norm=0.5)  # 0.5·1 > 0.25
    found = sf.check(two_limits(limits=[HEAT, tight]))
    assert all((limit.smallest_bound, limit.largest_norm) == (None, None) for limit in found.limits)
    start = found.cold_start
    assert (start.all_bounds_raised_by, start.all_norms_times) == (near_to(0.25), near_to(0.5))
    assert "all norms times 0.5 or all bounds larger by 0.25" in found.errors[0]


def test_a_norm_that_the_anchor_excludes_is_no_remedy() -> None:
    """0.25 + 4 L ≤ 1 asks for L ≤ 0.1875, but the anchor says L ≥ 0.25."""
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "s"): [1.0, 4.0]}
    found = sf.check(walk(steps))
    assert found.limits[0].largest_norm is None
    assert found.cold_start.all_norms_times is None
    assert found.limits[0].smallest_bound == near_to(4.25)


def test_already_moving() -> None:
    found = sf.check(one_step(limits=replace(HEAT, bound=1.5)))
    start = found.cold_start
    assert (start.can_move, start.moves, start.closest) == (True, 1, None)
    assert (found.limits[0].smallest_bound, found.limits[0].largest_norm) == (near_to(1.25), near_to(1.25))
    assert (len(found.errors), found.warnings) == (1, [])
    assert found.errors[0].startswith("Nothing can break limit 'heat'")


def test_any_norm() -> None:
    """An action with the anchor's own cost needs no norm; the least bound is what the anchors allow."""
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "s"): [0.5, 0.0]}
    found = sf.check(walk(steps))
    assert found.limits[0].largest_norm == math.inf
    assert found.limits[0].smallest_bound == 0.25  # the action's own 0.125 would leave no room for the anchor
    assert found.to_dict()["limits"][0]["largest_norm"] == "any"
    assert "any" in str(found)


def test_no_alternative() -> None:
    found = sf.check(walk({(0, "s", "stay", "s"): [1.0, 0.0]}))
    assert (found.cold_start.can_move, found.cold_start.closest) == (False, None)
    assert "only one" in found.errors[1]
    assert "only one" in " ".join(str(found).split())


@pytest.mark.parametrize("build", [one_step, two_steps, last_state, imprecise, two_limits])
def test_the_remedies_are_the_thresholds(build: Callable[..., sf.Problem]) -> None:
    """Rebuilt with the number, it moves; a hundredth beyond, it does not. The agent's own plan agrees."""
    heat = sf.check(build()).limits[0]
    assert heat.largest_norm is not None
    assert heat.smallest_bound is not None
    others = list(build().limits[1:])
    for changes, expected in (
        ({"norm": heat.largest_norm}, True),
        ({"norm": heat.largest_norm * 1.01}, False),
        ({"bound": heat.smallest_bound}, True),
        ({"bound": heat.smallest_bound - 0.01}, False),
    ):
        problem = build(limits=[replace(build().limits[0], **changes), *others])
        assert sf.check(problem).cold_start.can_move is expected
        assert moves(problem) is expected


@pytest.mark.parametrize("number", range(16))
def test_remedies_on_random_problems(number: int, seed: int) -> None:
    """Any graph, limits, anchors, last costs, misspecification: thresholds are exact to one in a million."""
    problem = problem_of(random_tables(1000 * seed + number))
    found = sf.check(problem)
    assert (found.cold_start.can_move) is moves(problem)
    for j, limit in enumerate(found.limits):
        largest, smallest = limit.largest_norm, limit.smallest_bound
        if largest is None:
            assert not moves(with_limit(problem, j, norm=limit.least_norm * (1 - 1e-6)))
        elif largest < math.inf:
            assert moves(with_limit(problem, j, norm=largest * (1 - 1e-6)))
            assert not moves(with_limit(problem, j, norm=largest * (1 + 1e-6)))
        if smallest is None:
            assert not moves(with_limit(problem, j, bound=1e6))
        else:
            assert moves(with_limit(problem, j, bound=smallest + 1e-6))
            above_anchors = all(a is None or smallest - 1e-6 > a.cost[0, j] for a in problem.graph.anchors)
            if above_anchors:
                assert not moves(with_limit(problem, j, bound=smallest - 1e-6))
    start = found.cold_start
    if start.all_bounds_raised_by is not None:
        for more, expected in ((1e-6, True), (-1e-6, False)):
            raised = [replace(x, bound=x.bound + start.all_bounds_raised_by + more) for x in problem.limits]
            assert moves(replace(problem, limits=tuple(raised))) is expected
    if start.all_norms_times is not None:
        for share, expected in ((1 - 1e-6, True), (1 + 1e-6, False)):
            scaled = [replace(x, norm=x.norm * start.all_norms_times * share) for x in problem.limits]
            assert moves(replace(problem, limits=tuple(scaled))) is expected


# ---------------------------------------------------------------- what the fallback's data can do


def test_fallback_data_may_open_what_the_fallback_measures() -> None:
    """The fallback's z is (0, 0.5), along which 'go' lies: after enough low costs it is certified."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.5],
        (0, "s", "go", "s"): [1.0, 1.0],
    }
    problem = walk(steps)
    found = sf.check(problem)
    assert (found.cold_start.can_move, found.cold_start.can_move_later) == (False, True)
    assert found.warnings
    assert not found.errors
    agent = sf.LsviNew(problem)
    assert not agent.plan.certified(0, "s", "go")
    for _ in range(200):
        agent.begin_episode()
        agent.observe(0, "s", "stay", "s", 0.25)
        agent.end_episode()
    assert agent.plan.certified(0, "s", "go")


def test_what_the_fallback_never_measures_may_still_open() -> None:
    """'go' has z = (0, 0.75, 1). Data along (0, 1, 0) that show ‖γ‖ to be used up leave nothing for (0, 0, 1)."""
    for measured, expected in ((0.5, True), (0.0, False)):
        steps = {
            (0, "s", "stay", "s"): [1.0, measured, 0.0],
            (0, "s", "go", "s"): [1.0, 0.75, 1.0],
        }
        problem = walk(steps, anchor=lambda h: ([1.0, 0.0, 0.0], 0.25))
        assert sf.check(problem).cold_start.can_move_later is expected
    problem = walk(
        {(0, "s", "stay", "s"): [1.0, 1.0, 0.0], (0, "s", "go", "s"): [1.0, 0.0, 0.9]},
        anchor=lambda h: ([1.0, 0.0, 0.0], 0.25),
    )
    agent = sf.LsviNew(problem)
    assert not agent.plan.certified(0, "s", "go")  # 0.25 + 0.9 > 1
    for _ in range(2000):
        agent.begin_episode()
        agent.observe(0, "s", "stay", "s", 0.25 - 0.95)  # γ = (·, −0.95, ·): √(1 − 0.95²)·0.9 = 0.28 is left
        agent.end_episode()
    assert agent.plan.certified(0, "s", "go")


def test_stationary_costs_pool_the_fallbacks_data() -> None:
    """What the seed measures at layer 1 teaches layer 0 only when all layers share γ."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [1.0, 1.0],
        (1, "s", "stay", "s"): [1.0, 0.5],
    }
    assert not sf.check(walk(steps)).cold_start.can_move_later
    assert sf.check(walk(steps, stationary_costs=True)).cold_start.can_move_later


@pytest.mark.parametrize("number", range(6))
def test_no_fallback_data_beats_the_floor(number: int, seed: int) -> None:
    """upper ≥ k + ζ(1+|ρ|) − L‖z_W‖, or + L‖z‖ where there is no W, however much the fallback has measured."""
    tables = random_tables(1000 * seed + number, limits=1)
    problem = problem_of(tables)
    rng = np.random.default_rng(seed)
    known = before_data(problem)
    spans = fallback_spans(problem, known.families[0])
    assert all(len(weights) == basis.directions for basis, weights in spans)  # else compiled code reads beyond them
    taught = inside(problem, known.families[0], spans)
    noise, norm = problem.limits[0].noise, problem.limits[0].norm
    agent = sf.LsviNew(problem, failure_probability=1e-6, replan_growth=1e9)
    for more in (0, 1, 3, 30, 300):
        for _ in range(more):
            s = tables.starts[int(rng.integers(len(tables.starts)))]
            agent.begin_episode(s)
            for h in range(problem.horizon - 1):
                a = tables.fallback[h, s]
                support = tables.successors[h, s, a]
                s2 = support[int(rng.integers(len(support)))]
                agent.observe(h, s, a, s2, tables.cost((h, s, a, s2))[0] + noise * rng.normal())
                s = s2
            agent.abort_episode()
        agent.replan()
        for h, upper in enumerate(agent.plan.bounds.upper):
            floor = known.fixed[h][:, 0] + norm * (-taught[h] if spans[h][1].any() else known.size[h][:, 0])
            assert (upper[:, 0] >= floor - 1e-9).all()
