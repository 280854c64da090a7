"""The diagnosis: numbers by hand, remedies tried out, and nothing claimed that a run could refute."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.diagnosis.cold_start import fallback_spans, inside, prior
from surefoot.diagnosis.rank import triangle
from surefoot.diagnosis.text import layer_range, rounded_down, rounded_up
from surefoot.errors import InvalidInput
from surefoot.model.graph import NO_ACTION
from tests.differential.compare import problem_of
from tests.reference.generate import random_tables
from tests.saved_problems import PROBLEMS, stationary, template

HEAT = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)
Features = dict[Any, list[float]]


def walk(steps: Features, last: Features | None = None, **changes: Any) -> sf.Problem:
    """steps: (h, s, a, s2) → cost features. The anchor (1, 0) costs 0.25; the fallback plays 'stay'."""
    states = {(0, "s"): None} | {(h + 1, s2): None for h, _, _, s2 in steps}
    declared: dict[str, Any] = {
        "horizon": 1 + max(h for h, _ in states),
        "start": "s",
        "actions": lambda h, s: list(dict.fromkeys(a for g, t, a, _ in steps if (g, t) == (h, s))),
        "successors": lambda h, s, a: [s2 for g, t, b, s2 in steps if (g, t, b) == (h, s, a)],
        "reward": lambda h, s, a: 0.5,
        "cost_features": lambda *triplet: steps[triplet],
        "terminal_cost_features": None if last is None else last.get,
        "fallback": lambda h, s: "stay",
        "anchor": lambda h: ([1.0, 0.0], 0.25),
        "limits": HEAT,
    }
    return sf.Problem.from_functions(**(declared | changes))


def one_step(**changes: Any) -> sf.Problem:
    """'go' costs at most 0.25 + 0.5 L if it stays and 0.25 + L if it leads to 't'."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [1.0, 0.5],
        (0, "s", "go", "t"): [1.0, 1.0],
    }
    return walk(steps, **changes)


def two_steps(**changes: Any) -> sf.Problem:
    """'go' is cheap; in 't', which it leads to, both actions may cost too much, 'rest' 0.25 + L, 'run' 0.25 + 2 L."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "t"): [1.0, 0.2],
        (1, "s", "stay", "s"): [1.0, 0.0],
        (1, "t", "run", "s"): [1.0, 2.0],
        (1, "t", "rest", "s"): [1.0, 1.0],
    }
    return walk(steps, **changes)


def last_state(**changes: Any) -> sf.Problem:
    """'go' is free, but the last state 't' may itself cost 0.25 + L."""
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "t"): [1.0, 0.0]}
    return walk(steps, last={"s": [1.0, 0.0], "t": [1.0, 1.0]}, **changes)


def imprecise(**changes: Any) -> sf.Problem:
    """With ζ = 0.05: 0.25 + 2ζ + L for 't'."""
    return one_step(**({"limits": replace(HEAT, misspecification=0.05)} | changes))


def two_limits(**changes: Any) -> sf.Problem:
    """Limit 'wear' (c⁰ = 0, L = 0.5) keeps its bound of 2 by far; only 'heat' is in the way."""
    wear = sf.Limit("wear", bound=2.0, noise=0.2, norm=0.5)
    return one_step(**({"limits": [HEAT, wear], "anchor": lambda h: ([1.0, 0.0], [0.25, 0.0])} | changes))


def with_limit(problem: sf.Problem, j: int, **changes: float) -> sf.Problem:
    limits = list(problem.limits)
    limits[j] = replace(limits[j], **changes)
    return replace(problem, limits=tuple(limits))


def moves(problem: sf.Problem) -> bool:
    """By the agent itself: does its first plan certify an action beyond the fallback's where the fallback comes?"""
    masks = sf.LsviNew(problem).plan.certified_sets.pairs
    for layer, certified in zip(problem.graph.layers, masks, strict=True):
        beyond = certified & np.repeat(layer.fallback != NO_ACTION, np.diff(layer.state_ptr))
        beyond[layer.fallback_pairs()] = False
        if beyond.any():
            return True
    return False


# ---------------------------------------------------------------- the cold start, by hand


def test_blocked_by_one_step() -> None:
    found = sf.check(one_step())
    start = found.cold_start
    assert (start.can_move, start.moves, start.alternatives) == (False, 0, 1)
    near = start.closest
    assert near is not None
    assert (near.step, near.state, near.action, near.limit) == (0, "s", "go", "heat")
    assert (near.upper, near.bound, near.excess, near.later) == (1.25, 1.0, 0.25, False)
    assert near.where == "step 0, state 's', action 'go', successor 't'"
    assert (start.all_bounds_raised_by, start.all_norms_times) == (0.25, 0.75)
    (limit,) = found.limits
    assert (limit.smallest_bound, limit.largest_norm, limit.least_norm) == (1.25, 0.75, 0.25)
    # The fallback's own feature is the anchor: z = 0, and nothing about (0, 1) is ever learnt.
    assert start.opens_with_fallback_data == "impossible"
    assert found.problems
    assert not found.warnings


def test_blocked_by_what_may_follow() -> None:
    found = sf.check(two_steps())
    near = found.cold_start.closest
    assert near is not None
    assert (near.step, near.state, near.action) == (0, "s", "go")
    assert (near.upper, near.excess, near.later) == (1.25, 0.25, True)
    assert near.where == "step 1, state 't', action 'rest', successor 's'"  # not 'run': rest needs less
    assert found.limits[0].largest_norm == 0.75


def test_blocked_by_a_last_state() -> None:
    near = sf.check(last_state()).cold_start.closest
    assert near is not None
    assert (near.excess, near.later, near.where) == (0.25, True, "step 1, state 't'")


def test_misspecification_counts() -> None:
    found = sf.check(imprecise())
    near = found.cold_start.closest
    assert near is not None
    assert near.upper == pytest.approx(1.35, abs=1e-15)
    assert found.limits[0].largest_norm == pytest.approx(0.65, abs=1e-15)
    assert found.limits[0].least_norm == 0.2  # (0.25 − ζ)/1


def test_each_limit_alone() -> None:
    heat, wear = sf.check(two_limits()).limits
    assert (heat.smallest_bound, heat.largest_norm) == (1.25, 0.75)
    assert (wear.smallest_bound, wear.largest_norm) == (None, None)  # 'wear' is not in the way


def test_two_limits_in_the_way_need_a_common_change() -> None:
    tight = sf.Limit("wear", bound=0.25, noise=0.2, norm=0.5)  # 0.5·1 > 0.25
    found = sf.check(two_limits(limits=[HEAT, tight]))
    assert all((limit.smallest_bound, limit.largest_norm) == (None, None) for limit in found.limits)
    start = found.cold_start
    assert (start.all_bounds_raised_by, start.all_norms_times) == (0.25, 0.5)
    assert "all norms times 0.5 or all bounds larger by 0.25" in found.problems[0]


def test_a_norm_that_the_anchor_excludes_is_no_remedy() -> None:
    """0.25 + 4 L ≤ 1 asks for L ≤ 0.1875, but the anchor says L ≥ 0.25."""
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "s"): [1.0, 4.0]}
    found = sf.check(walk(steps))
    assert found.limits[0].largest_norm is None
    assert found.cold_start.all_norms_times is None
    assert found.limits[0].smallest_bound == 4.25


def test_already_moving() -> None:
    found = sf.check(one_step(limits=replace(HEAT, bound=1.5)))
    start = found.cold_start
    assert (start.can_move, start.moves, start.closest) == (True, 1, None)
    assert start.opens_with_fallback_data == "not needed"
    assert (found.limits[0].smallest_bound, found.limits[0].largest_norm) == (1.25, 1.25)
    assert (found.problems, found.warnings) == ([], [])


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
    assert "only one" in found.problems[0]
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


@pytest.mark.parametrize("number", range(40))
def test_remedies_on_random_problems(number: int, seed: int) -> None:
    """Any graph, limits, anchors, last costs, misspecification: thresholds are exact to one in a million."""
    problem = problem_of(random_tables(1000 * seed + number))
    found = sf.check(problem)
    assert found.cold_start.can_move is moves(problem)
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
            above_anchors = all(a is None or smallest - 1e-6 > a.cost[j] for a in problem.graph.anchors)
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
    assert found.cold_start.opens_with_fallback_data == "possible"
    assert found.warnings
    assert not found.problems
    agent = sf.LsviNew(problem)
    assert not agent.plan.certified(0, "s", "go")
    for _ in range(200):
        agent.begin_episode()
        agent.observe(0, "s", "stay", "s", 0.25)
        agent.end_episode()
    assert agent.plan.certified(0, "s", "go")


def test_half_a_step_is_not_enough() -> None:
    """'go' has z = (0, 0.75, 1): L(‖z‖ − 2·0.75) = 1.25 − 1.5 < 0.75 with ‖z_W‖ = 0.75, but 1.25 − 0 with z_W = 0."""
    for measured, expected in ((0.5, "possible"), (0.0, "impossible")):
        steps = {
            (0, "s", "stay", "s"): [1.0, measured, 0.0],
            (0, "s", "go", "s"): [1.0, 0.75, 1.0],
        }
        found = sf.check(walk(steps, anchor=lambda h: ([1.0, 0.0, 0.0], 0.25)))
        assert found.cold_start.opens_with_fallback_data == expected


def test_stationary_costs_pool_the_fallbacks_data() -> None:
    """What the fallback measures at layer 1 teaches layer 0 only when all layers share γ."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [1.0, 1.0],
        (1, "s", "stay", "s"): [1.0, 0.5],
    }
    assert sf.check(walk(steps)).cold_start.opens_with_fallback_data == "impossible"
    assert sf.check(walk(steps, stationary_costs=True)).cold_start.opens_with_fallback_data == "possible"


@pytest.mark.parametrize("number", range(12))
def test_no_fallback_data_beats_the_floor(number: int, seed: int) -> None:
    """upper ≥ k + ζ(1+|ρ|) + L(‖z‖ − 2‖z_W‖) for every triplet, however much the fallback has measured."""
    tables = random_tables(1000 * seed + number, limits=1)
    problem = problem_of(tables)
    rng = np.random.default_rng(seed)
    known, taught = prior(problem), inside(problem, fallback_spans(problem))
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
            floor = known.fixed[h][:, 0] + norm * (known.size[h] - 2 * taught[h])
            assert (upper[:, 0] >= floor - 1e-9).all()


# ---------------------------------------------------------------- what the graph forces


def forced(**changes: Any) -> sf.Problem:
    """In 'pit' the only action costs 3·0.25 for sure; 'edge' may always fall in. 'ledge' may stay out."""
    pit, free = [3.0, 0.0], [1.0, 0.0]
    steps = {
        (0, "s", "stay", "s"): free,
        (0, "s", "go", "edge"): free,
        (0, "s", "go", "ledge"): free,
        (1, "s", "stay", "s"): free,
        (1, "edge", "left", "pit"): free,
        (1, "edge", "right", "s"): free,
        (1, "edge", "right", "pit"): free,
        (1, "ledge", "back", "s"): free,
        (1, "ledge", "on", "pit"): free,
        (2, "s", "stay", "s"): free,
        (2, "pit", "climb", "s"): pit,
    }
    return walk(steps, **({"limits": replace(HEAT, bound=0.5)} | changes))


def test_states_that_the_graph_forces() -> None:
    found = sf.check(forced())
    assert (found.forced.states, found.forced.actions) == (2, 5)
    assert found.forced.examples == ((1, "edge"), (2, "pit"))
    assert [layer.never_states for layer in found.layers] == [0, 1, 1, 0]
    assert [layer.never_actions for layer in found.layers] == [1, 3, 1, 0]
    assert "'edge' at step 1, 'pit' at step 2" in " ".join(str(found).split())
    near = found.cold_start.closest
    assert near is not None
    assert (near.excess, near.later) == (0.25, True)
    assert found.cold_start.opens_with_fallback_data == "impossible"
    with_room = sf.check(forced(limits=HEAT))
    assert (with_room.forced.states, with_room.cold_start.can_move) == (0, True)


def test_a_last_state_can_be_forced() -> None:
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "t"): [1.0, 0.0]}
    found = sf.check(walk(steps, last={"t": [5.0, 0.0]}))
    assert (found.forced.states, found.forced.examples) == (1, ((1, "t"),))


def test_a_fallback_against_the_declaration() -> None:
    found = sf.check(walk({(0, "s", "stay", "s"): [5.0, 0.0], (0, "s", "go", "s"): [1.0, 0.0]}))
    fault = found.fallback_fault
    assert fault is not None
    assert (fault.triplets, fault.limit, fault.lowest, fault.bound) == (1, "heat", 1.25, 1.0)
    assert fault.where == "step 0, state 's', action 'stay', successor 's'"
    assert found.problems[0].startswith("The declaration contradicts the fallback")
    assert found.forced.actions == 0  # the fallback is certified by assumption
    last = sf.check(walk({(0, "s", "stay", "s"): [1.0, 0.0]}, last={"s": [5.0, 0.0]})).fallback_fault
    assert last is not None
    assert last.where == "step 1, state 's'"
    assert sf.check(one_step()).fallback_fault is None


# ---------------------------------------------------------------- sizes, features, constants


def test_sizes_and_slack() -> None:
    found = sf.check(forced())
    table = [(x.states, x.reachable, x.fallback_states, x.actions, x.triplets) for x in found.layers]
    assert table == [(1, 1, 1, 2, 3), (3, 3, 1, 5, 6), (2, 2, 1, 2, 2), (1, 1, 1, 0, 0)]
    assert [layer.slack for layer in found.layers] == [(0.25,), (0.25,), (0.25,), None]


def test_unreachable_states() -> None:
    problem = template()
    found = sf.check(problem)
    assert found.unreachable_states == 24 - (1 + 2 + 3 + 4)
    assert "problem.pruned()" in str(found)
    assert sf.check(problem.pruned()).unreachable_states == 0


def test_rank() -> None:
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [3.0, 0.0],
        (1, "s", "stay", "s"): [0.0, 1.0],
        (1, "s", "go", "s"): [1.0, 1.0],
    }
    apart = sf.check(walk(steps)).features
    assert [(r.layers, r.rank, r.redundant) for r in apart.costs] == [((0,), 1, (1,)), ((1,), 2, ())]
    assert apart.shared
    pooled = sf.check(walk(steps, stationary_costs=True)).features
    assert [(r.layers, r.rank) for r in pooled.costs] == [((0, 1), 2)]
    assert [r.rank for r in pooled.transitions] == [1, 2]
    assert "rank 1 of 2" in str(sf.check(walk(steps)))


def test_rank_is_not_fooled_by_scale() -> None:
    """A Gram matrix squares the ratio 10⁹ and would lose the second column."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [1.0, 1e-9],
    }
    assert sf.check(walk(steps)).features.costs[0].rank == 2


def test_compression_keeps_the_singular_values(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(300_000, 5)) @ np.diag([1.0, 1e-3, 1.0, 0.0, 2.0])
    expected = np.linalg.svd(rows, compute_uv=False)
    found = np.linalg.svd(triangle([rows[:100], rows[100:]]), compute_uv=False)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_papers_constants() -> None:
    many = sf.check(stationary(), episodes=10**9).paper
    assert (many.usable, many.reasons) == (True, ())
    few = sf.check(stationary()).paper
    assert not few.usable
    assert few.initial_episodes is not None
    assert few.initial_episodes > few.episodes == 10_000
    assert str(few.initial_episodes) in few.reasons[0]
    enough = few.smallest_usable_episodes
    assert enough is not None
    assert sf.check(stationary(), episodes=2 * enough).paper.usable
    assert not sf.check(stationary(), episodes=enough - 1).paper.usable
    assert few.gaps == (0.375,) * 3
    assert few.delta_phi == (0.0,)


def test_the_papers_constants_need_slack() -> None:
    """Δ_φ = L·‖(1, 1) − (1, 0.5)‖ = 0.5, so gap = 0.5 − 0.25 − 0.5 < 0, whatever the number of episodes."""
    paper = sf.check(one_step(limits=replace(HEAT, bound=0.5)), episodes=10**15).paper
    assert paper.gaps == (-0.25,)
    assert not paper.usable
    assert any("gap" in reason for reason in paper.reasons)


def test_the_papers_constants_need_anchors() -> None:
    found = sf.check(one_step(anchor=None))
    assert (found.paper.usable, found.paper.beta) == (False, None)
    assert "anchor at every step" in found.paper.reasons[0]
    assert "anchor at every step" in " ".join(str(found).split())


# ---------------------------------------------------------------- reading it


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_program_can_use_it(name: str) -> None:
    told = sf.check(PROBLEMS[name]()).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert {"limits", "layers", "features", "cold_start", "forced", "paper", "findings"} <= told.keys()


def test_a_person_can_read_it() -> None:
    text = str(sf.check(one_step()))
    lines = text.splitlines()
    assert lines[0] == "Problem with 2 steps, 3 states, 2 actions, 3 triplets; 1 limit"
    assert lines[2].startswith("PROBLEM  Learning will never start")
    assert max(map(len, lines)) <= 110
    said = " ".join(text.split())
    for words in (
        "step 0, state 's', action 'go': over limit 'heat' by 0.25 (upper bound 1.25, bound 1)",
        "'heat' norm ≤ 0.75 (now 1) or 'heat' bound ≥ 1.25 (now 1)",
        "slack heat",
        "probability ≥ 0.95",
        "κ",
    ):
        assert words in said
    table = [line for line in lines if line.startswith("  0 ") or line.startswith("  step")]
    assert len({len(line) for line in table}) == 1  # columns are aligned
    assert repr(sf.check(one_step())).startswith("<Diagnosis: 1 problems, 0 warnings")


def test_printed_numbers_do_what_they_say() -> None:
    """Copied from the text, a bound is never too small and a norm never too large."""
    assert (rounded_up(0.64311), rounded_down(0.64319)) == ("0.6432", "0.6431")
    assert (rounded_up(0.65), rounded_down(0.65)) == ("0.65", "0.65")
    assert (rounded_up(-1.23456), rounded_down(-1.23451)) == ("-1.234", "-1.235")
    assert (rounded_up(123456.0), rounded_down(0.0)) == ("1.235e+05", "0")
    for value in np.random.default_rng(0).uniform(0.001, 10, 200).tolist():
        assert float(rounded_down(value)) <= value <= float(rounded_up(value))


def test_layers_in_short() -> None:
    assert layer_range([0]) == "0"
    assert layer_range([3, 1, 2, 7]) == "1–3, 7"


def test_many_layers_and_limits_stay_readable() -> None:
    steps: Features = {}
    for h in range(40):
        steps |= {(h, "s", "stay", "s"): [1.0, 0.0], (h, "s", "go", "s"): [1.0, 0.1]}
    limits = [replace(HEAT, name=f"line {j}") for j in range(6)]
    costs = [0.0] * 6
    long = sf.check(walk(steps, limits=limits, anchor=lambda h: ([1.0, 0.0], [h / 100, *costs[1:]])))
    text = str(long)
    assert len(text.splitlines()) < 50
    assert "least slack" in text
    assert "…" in text


def test_large_problems(seed: int) -> None:
    """10⁵ triplets by arrays; only that it runs and counts right, no clock."""
    rng = np.random.default_rng(seed)
    n, a, b = 5_000, 5, 4
    successors = rng.integers(0, n - b, size=(n, a, 1)) + np.arange(b)
    successors[:, 0] = np.arange(b)
    features = rng.normal(size=(n * a * b, 6)) / 6
    problem = sf.Problem.from_arrays(
        horizon=4,
        start=0,
        state_ptr=np.arange(n + 1) * a,
        pair_ptr=np.arange(n * a + 1) * b,
        successors=successors.ravel(),
        reward=np.full(n * a, 0.5),
        cost_features=features,
        fallback=np.zeros(n, np.int64),
        limits=[sf.Limit("heat", bound=0.3, noise=0.1, norm=1.0), sf.Limit("wear", 0.9, 0.1, 2.0)],
        anchor=lambda h: (np.ones(6), [0.1, 0.2]),
    )
    found = sf.check(problem)
    assert [layer.triplets for layer in found.layers] == [n * a * b] * 3 + [0]
    assert found.cold_start.can_move is moves(problem)


# ---------------------------------------------------------------- refusals


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"needs a Problem: a str\. For a World, pass world\.problem"):
        sf.check("problem")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="failure_probability"):
        sf.check(one_step(), failure_probability=0)
    with pytest.raises(InvalidInput, match="episodes"):
        sf.check(one_step(), episodes=0)
