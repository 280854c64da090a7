"""Certified sets on graphs small enough to see: traps ahead, the seed, last states, contradicting data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.estimate.costs import CostBounds
from surefoot.plan import kernels
from surefoot.plan.certify import Certified, certify, certify_one_step, last_states, margins, with_least_worst
from surefoot.plan.segments import first_marked, likeliest_pair
from surefoot.threads import in_ranges
from tests.hand_made import bounds_of, corridor, maze, tell

# Layer 3 has a trap; "leap" leads towards it two steps before, harmlessly so far. The fallback stays on the road.
TRAP = {
    (0, "s"): {"stay": ["road"], "leap": ["edge"]},
    (1, "road"): {"stay": ["road"]},
    (1, "edge"): {"on": ["brink"]},
    (2, "road"): {"stay": ["road"]},
    (2, "brink"): {"fall": ["end"]},
}
ROAD = {(0, "s"): "stay", (1, "road"): "stay", (2, "road"): "stay"}


def certified(problem: sf.Problem, bounds: CostBounds, rule: Any = certify) -> set[tuple[int, str, str]]:
    return pairs(problem, rule(problem.graph, bounds, problem.bounds))


def pairs(problem: sf.Problem, sets: Certified) -> set[tuple[int, str, str]]:
    named = set()
    for h in range(problem.horizon - 1):
        for s in (problem.states(h)[i] for i in range(len(problem.states(h)))):
            for a in problem.actions(h, s):
                pair = problem.pair_index(h, s, a)
                assert sets.states[h][problem.state_index(h, s)] or not sets.pairs[h][pair]
                if sets.pairs[h][pair]:
                    named.add((h, s, a))
    return named


def fallback_pairs(seed: dict[tuple[int, str], str]) -> set[tuple[int, str, str]]:
    return {(h, s, a) for (h, s), a in seed.items()}


# ---------------------------------------------------------------- looking ahead (Idea I)


def test_a_trap_two_steps_ahead_is_refused() -> None:
    problem = maze(TRAP, ROAD)
    safe = bounds_of(problem, {})
    assert certified(problem, safe) == fallback_pairs(ROAD) | {
        (0, "s", "leap"),
        (1, "edge", "on"),
        (2, "brink", "fall"),
    }
    trap = bounds_of(problem, {(2, "brink", "fall", "end"): 1.1})
    assert certified(problem, trap) == fallback_pairs(ROAD)


def test_without_idea_i_it_walks_into_the_trap() -> None:
    problem = maze(TRAP, ROAD)
    trap = bounds_of(problem, {(2, "brink", "fall", "end"): 1.1})
    walked = certified(problem, trap, certify_one_step)
    assert walked == fallback_pairs(ROAD) | {(0, "s", "leap"), (1, "edge", "on")}


def test_one_way_out_is_enough() -> None:
    graph = {**TRAP, (2, "brink"): {"fall": ["end"], "back": ["end"]}}
    problem = maze(graph, ROAD)
    trap = bounds_of(problem, {(2, "brink", "fall", "end"): 1.1})
    assert certified(problem, trap) == fallback_pairs(ROAD) | {
        (0, "s", "leap"),
        (1, "edge", "on"),
        (2, "brink", "back"),
    }


def test_every_successor_must_be_safe() -> None:
    """One of two possible ends is a trap: the action that may lead there is refused, the other is not."""
    graph = {
        (0, "s"): {"stay": ["road"], "risk": ["road", "brink"]},
        (1, "road"): {"stay": ["end"], "also": ["end"]},
        (1, "brink"): {"fall": ["end"]},
    }
    problem = maze(graph, {(0, "s"): "stay", (1, "road"): "stay"})
    trap = bounds_of(problem, {(1, "brink", "fall", "end"): 2.0})
    assert certified(problem, trap) == {(0, "s", "stay"), (1, "road", "stay"), (1, "road", "also")}
    costly_edge = bounds_of(problem, {(0, "s", "risk", "road"): 2.0})  # one costly triplet of two
    assert (0, "s", "risk") not in certified(problem, costly_edge)
    assert (1, "brink", "fall") in certified(problem, costly_edge)


def test_a_trap_is_not_forgotten_behind_a_safe_detour() -> None:
    """Safety of a state is about its best action, of an action about its worst successor."""
    graph = {
        (0, "s"): {"stay": ["m"], "go": ["m", "n"]},
        (1, "m"): {"x": ["p"], "y": ["q"]},
        (1, "n"): {"y": ["q"]},
        (2, "p"): {"on": ["end"]},
        (2, "q"): {"fall": ["end"]},
    }
    problem = maze(graph, {(0, "s"): "stay", (1, "m"): "x", (2, "p"): "on"})
    trap = bounds_of(problem, {(2, "q", "fall", "end"): 5.0})
    assert certified(problem, trap) == {(0, "s", "stay"), (1, "m", "x"), (2, "p", "on")}


# ---------------------------------------------------------------- the fallback


def test_the_fallback_is_certified_whatever_the_bounds_say() -> None:
    problem = maze(TRAP, ROAD)
    everything = {(h, s, a, s2): 9.0 for (h, s), actions in TRAP.items() for a, ends in actions.items() for s2 in ends}
    assert certified(problem, bounds_of(problem, everything)) == fallback_pairs(ROAD)
    assert certified(problem, bounds_of(problem, everything), certify_one_step) == fallback_pairs(ROAD)


def test_another_action_of_a_fallback_state_earns_its_certificate() -> None:
    graph = {(0, "s"): {"other": ["end"], "stay": ["end"]}}
    problem = maze(graph, {(0, "s"): "stay"})
    assert certified(problem, bounds_of(problem, {(0, "s", "other", "end"): 1.5})) == {(0, "s", "stay")}
    assert len(certified(problem, bounds_of(problem, {}))) == 2


def test_an_action_may_lead_onto_the_seed() -> None:
    """States of the fallback are safe to enter, even where their own upper bounds are too high."""
    graph = {
        (0, "s"): {"stay": ["road"], "cut": ["road", "far"]},
        (1, "road"): {"stay": ["end"]},
        (1, "far"): {"home": ["end"]},
    }
    problem = maze(graph, {(0, "s"): "stay", (1, "road"): "stay"})
    bounds = bounds_of(problem, {(1, "road", "stay", "end"): 3.0})
    assert (0, "s", "cut") in certified(problem, bounds)


# ---------------------------------------------------------------- the edge of a limit


@pytest.mark.parametrize(
    ("upper", "kept"),
    [
        (1.0, True),
        (1.0 + 1e-15, False),  # meant exactly (spec 4)
        (math.inf, False),
        (math.nan, False),
    ],
)
def test_upper_at_the_limit(upper: float, kept: bool) -> None:
    graph = {(0, "s"): {"stay": ["end"], "other": ["end"]}}
    problem = maze(graph, {(0, "s"): "stay"})
    bounds = bounds_of(problem, {(0, "s", "other", "end"): upper})
    assert ((0, "s", "other") in certified(problem, bounds)) is kept
    assert ((0, "s", "other") in certified(problem, bounds, certify_one_step)) is kept


def test_every_limit_counts() -> None:
    graph = {(0, "s"): {"stay": ["end"], "other": ["end"]}}
    problem = maze(graph, {(0, "s"): "stay"}, limits=3)
    for j in range(3):
        upper = [0.5, 0.5, 0.5]
        upper[j] = 1.5
        bounds = bounds_of(problem, {(0, "s", "other", "end"): upper})
        assert certified(problem, bounds) == {(0, "s", "stay")}
    assert len(certified(problem, bounds_of(problem, {(0, "s", "other", "end"): [1.0, 1.0, 1.0]}))) == 2


def test_margins_as_they_are_shown() -> None:
    """bound − upper; nothing where there is no bound, and never a negative one of a certified action."""
    limits = np.ones(6)
    upper = np.array([0.25, 1.0, 1.5, math.inf, -math.inf, math.nan])
    assert margins(upper, limits, True) == [0.75, 0.0, None, None, None, None]
    assert margins(upper, limits, False) == [0.75, 0.0, -0.5, None, None, None]


# ---------------------------------------------------------------- the last layer

ENDS = {(0, "s"): {"stay": ["home"], "far": ["hot"], "free": ["open"], "mixed": ["home", "hot"]}}


def test_terminal_costs() -> None:
    problem = maze(ENDS, {(0, "s"): "stay"}, terminal_costs=["home", "hot"])  # "open" has no cost
    cool = bounds_of(problem, {})
    assert certified(problem, cool) == {(0, "s", a) for a in ("stay", "far", "free", "mixed")}
    for high in (math.nan, 1.1):
        hot = bounds_of(problem, {}, terminal_upper={"hot": high})
        assert certified(problem, hot) == {(0, "s", "stay"), (0, "s", "free")}
    later = [sf.Limit("limit 0", bound=[1.0, 1.1], noise=0.1, norm=1.0)]  # the last step has a bound of its own
    other = maze(ENDS, {(0, "s"): "stay"}, terminal_costs=["home", "hot"], limits=later)
    assert len(certified(other, bounds_of(other, {}, terminal_upper={"hot": 1.1}))) == 4
    # Without Idea I the last states are not looked at.
    assert certified(problem, hot, certify_one_step) == {(0, "s", a) for a in ("stay", "far", "free", "mixed")}


def test_terminal_states_of_the_fallback_are_certified_whatever_the_bounds_say() -> None:
    problem = maze(ENDS, {(0, "s"): "stay"}, terminal_costs=["home", "hot"])
    bounds = bounds_of(problem, {}, terminal_upper={"home": 7.0, "hot": 7.0})
    sets = certify(problem.graph, bounds, problem.bounds)
    last = {s: bool(sets.states[-1][problem.state_index(1, s)]) for s in ("home", "hot", "open")}
    assert last == {"home": True, "hot": False, "open": True}
    assert pairs(problem, sets) == {(0, "s", "stay"), (0, "s", "free")}


def test_terminal_states_without_any_cost_features() -> None:
    problem = maze(ENDS, {(0, "s"): "stay"})
    sets = certify(problem.graph, bounds_of(problem, {}), problem.bounds)
    assert sets.states[-1].all()
    assert len(pairs(problem, sets)) == 4


def test_the_first_that_is_marked() -> None:
    assert first_marked(np.array([False, True, True, False]), np.array([0, 3, 4])).tolist() == [1, -1]


# ---------------------------------------------------------------- data that contradict the assumptions


def test_contradicting_bounds_leave_the_fallback_alone() -> None:
    problem = maze(TRAP, ROAD)
    bounds = bounds_of(problem, {}, consistent=False)
    for rule in (certify, certify_one_step):
        sets = rule(problem.graph, bounds, problem.bounds)
        assert pairs(problem, sets) == fallback_pairs(ROAD)
        assert [int(mask.sum()) for mask in sets.states[:-1]] == [1, 1, 1]
    last = certify(problem.graph, bounds, problem.bounds).states[-1]
    for known, ends in ((bounds, last), (bounds_of(problem, {}), np.ones(2, bool))):
        assert last_states(problem.graph, known, problem.bounds)[0].tolist() == ends.tolist()
    assert {problem.states(3)[i] for i in np.flatnonzero(last)} == {"road"}


def test_crossing_bounds_are_seen_and_said() -> None:
    """A cost far beyond the norm bound: L‖z‖ and the data cannot both be right."""
    problem = corridor({"fallback": [1.0], "other": [0.5]}, sf.Limit("heat", bound=10.0, noise=0.01, norm=1.0))
    agent = sf.LsviNew(problem, replan_growth=0.0)
    assert agent.plan.consistent
    assert agent.plan.certified(0, "s", "other")
    tell(agent, [("fallback", 5.0)], [("fallback", 5.0)])
    assert not agent.plan.consistent
    assert not agent.plan.certified(0, "s", "other")
    assert agent.plan.certified(0, "s", "fallback")
    agent.begin_episode("s")
    assert agent.act(0, "s") == "fallback"


# ---------------------------------------------------------------- learners without a guarantee


def test_least_worst_where_nothing_is_certified() -> None:
    graph = {
        (0, "s"): {"stay": ["road"], "leap": ["brink"]},
        (1, "road"): {"stay": ["end"], "bad": ["end"]},
        (1, "brink"): {"worst": ["end", "out"], "less": ["end", "out"], "equal": ["end"]},
    }
    problem = maze(graph, {(0, "s"): "stay", (1, "road"): "stay"}, limits=2)
    bounds = bounds_of(
        problem,
        {
            (1, "road", "bad", "end"): [9.0, 9.0],
            (1, "brink", "worst", "end"): [0.0, 0.0],  # its other successor is what counts
            (1, "brink", "worst", "out"): [0.0, 4.0],
            (1, "brink", "less", "end"): [1.5, 0.2],
            (1, "brink", "less", "out"): [0.2, 1.4],
            (1, "brink", "equal", "end"): [1.5, 1.5],  # as bad as "less", declared later
        },
    )
    safe = certify_one_step(problem.graph, bounds, problem.bounds)
    assert pairs(problem, safe) == {(0, "s", "stay"), (0, "s", "leap"), (1, "road", "stay")}
    allowed = with_least_worst(problem.graph, safe, bounds, problem.bounds)
    assert pairs(problem, allowed) == {*pairs(problem, safe), (1, "brink", "less")}
    assert all(mask.all() for mask in allowed.states)


def test_least_worst_measures_against_each_limit() -> None:
    graph = {
        (0, "s"): {"stay": ["road"], "leap": ["brink"]},
        (1, "road"): {"stay": ["end"]},
        (1, "brink"): {"high": ["end"], "low": ["end"]},
    }
    limits = [sf.Limit("a", bound=10.0, noise=0.1, norm=1.0), sf.Limit("b", bound=1.0, noise=0.1, norm=1.0)]
    problem = maze(graph, {(0, "s"): "stay", (1, "road"): "stay"}, limits=limits)
    bounds = bounds_of(problem, {(1, "brink", "high", "end"): [10.5, 0.0], (1, "brink", "low", "end"): [2.0, 2.0]})
    safe = certify_one_step(problem.graph, bounds, problem.bounds)
    allowed = with_least_worst(problem.graph, safe, bounds, problem.bounds)
    assert (1, "brink", "high") in pairs(problem, allowed)  # 0.5 over its bound, the other is 1 over


def test_an_agent_without_idea_i_certifies_the_trap_and_goes_on_in_it() -> None:
    """The same problem, with and without looking ahead. Features say what costs what, so no data are needed."""
    graph = {
        (0, "s"): {"stay": ["road"], "leap": ["brink"]},
        (1, "road"): {"stay": ["end"]},
        (1, "brink"): {"fall": ["end"], "slip": ["end"]},
    }
    cost = {"stay": 0.1, "leap": 0.1, "fall": 3.0, "slip": 2.0}
    problem = maze(
        graph,
        {(0, "s"): "stay", (1, "road"): "stay"},
        cost_features=lambda h, s, a, s2: [cost[a]],
        reward={(0, "s", "leap"): 1.0, (1, "brink", "fall"): 1.0},
    )
    careful, blind = sf.LsviNew(problem), sf.LsviNew(problem, ideas=("II", "III", "IV"))
    assert not careful.plan.certified(0, "s", "leap")
    assert careful.plan.action(0, "s") == "stay"
    assert blind.plan.certified(0, "s", "leap")
    assert blind.plan.action(0, "s") == "leap"
    assert not blind.plan.certified(1, "brink", "fall")
    assert not blind.plan.certified(1, "brink", "slip")
    assert blind.plan.action(1, "brink") == "slip"  # the least worst, not the best paid
    with pytest.raises(sf.errors.AssumptionBroken, match=r"no certified action.*brink"):
        careful.plan.action(1, "brink")


# ---------------------------------------------------------------- the kernels, in parts


@pytest.mark.parametrize("n_states", [1, 5, 16, 23])
def test_threads_that_share_the_states_leave_none_out(
    n_states: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel on any number of threads writes what it writes on one, and writes everything."""
    rng = np.random.default_rng([seed, n_states])
    state_ptr = np.append(0, np.cumsum(rng.integers(1, 4, n_states)))
    n_pairs = int(state_ptr[-1])
    pair_ptr = np.append(0, np.cumsum(rng.integers(1, 4, n_pairs)))
    row_ptr = np.append(0, np.cumsum(rng.integers(1, 4, n_pairs)))
    n_edges, m = int(pair_ptr[-1]), 2
    successor, upper = rng.integers(0, 6, n_edges), rng.uniform(0.0, 1.2, (int(row_ptr[-1]), m))
    forbidden = rng.random(n_states) < 0.2
    fallback = np.where(rng.random(n_states) < 0.5, state_ptr[:-1], -1)
    omega, allowed, q = rng.random(n_pairs), rng.random(n_pairs) < 0.6, rng.random(n_pairs)
    certified_after, future_after = rng.random(6) < 0.8, rng.random(6)

    def swept(threads: int) -> list[Any]:
        monkeypatch.setattr("surefoot.threads.usable_threads", lambda: threads)
        pairs, states = np.full(n_pairs, 999), np.full(n_states, 999)
        width, ahead, future = np.full(n_pairs, 999.0), np.full(n_pairs, 999.0), np.full(n_states, 999.0)
        value, action = np.full(n_states, 999.0), np.full(n_states, 999)
        edges = state_ptr, pair_ptr, successor
        both = certified_after, fallback, forbidden, pairs, states
        in_ranges(n_states, True, kernels._certified, *edges, row_ptr, upper, np.ones(m), *both)
        in_ranges(n_pairs, True, kernels._widths, row_ptr, upper, upper / 2, np.array([1.0, 2.0]), width)
        in_ranges(n_states, True, kernels._ahead, *edges, omega, allowed, future_after, ahead, future)
        in_ranges(n_states, True, kernels._best, state_ptr, q, allowed, 0.9, fallback, value, action)
        return [array.tolist() for array in (pairs, states, width, ahead, future, value, action)]

    whole = swept(1)
    assert not any(999 in array for array in whole)
    for threads in (2, 3, 10):
        assert swept(threads) == whole


def test_the_likeliest_pair_of_a_state() -> None:
    """The first of equal ones, and none where no pair has a chance."""
    chances, pointer = np.array([0.2, 0.4, 0.4, 0.0, 0.0, 1.0]), np.array([0, 3, 5, 6])
    assert likeliest_pair(chances, pointer).tolist() == [1, -1, 5]
