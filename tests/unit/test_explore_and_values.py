"""Exploration bonuses, optimistic values and the greedy choice, worked out on paper (spec 5 and 6)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.estimate.basis import Basis
from surefoot.estimate.blocks import one_block_each
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.plan.certify import Certified, certify
from surefoot.plan.explore import bonuses, future_uncertainty, pair_uncertainty, slacks, terminal_uncertainty
from surefoot.plan.values import greedy, optimistic_values
from tests.hand_made import bounds_of, corridor, maze

# Two decisions, then the end: s → {m, n} → {t, u}. The fallback plays "a" everywhere.
GRAPH = {
    (0, "s"): {"a": ["m"], "b": ["m", "n"]},
    (1, "m"): {"a": ["t"], "b": ["t", "u"]},
    (1, "n"): {"c": ["u"]},
}
FALLBACK = {(0, "s"): "a", (1, "m"): "a"}


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12)


def at(problem: sf.Problem, h: int, s: str, a: str) -> int:
    return problem.pair_index(h, s, a)


# ---------------------------------------------------------------- ω, U and the bonuses

UPPER = {
    (0, "s", "a", "m"): [0.5, 0.6],
    (0, "s", "b", "m"): [0.9, 0.2],
    (0, "s", "b", "n"): [0.3, 0.9],
    (1, "m", "a", "t"): [0.4, 0.2],
    (1, "m", "b", "t"): [0.2, 0.2],
    (1, "m", "b", "u"): [3.0, 0.2],  # beyond the limit: not certified
    (1, "n", "c", "u"): [0.8, 0.8],
}
LOWER = {
    (0, "s", "a", "m"): [0.4, 0.2],
    (0, "s", "b", "m"): [0.5, 0.1],
    (0, "s", "b", "n"): [0.1, 0.5],
    (1, "m", "a", "t"): [0.3, 0.1],
    (1, "m", "b", "t"): [0.2, 0.2],
    (1, "m", "b", "u"): [1.0, 0.2],
    (1, "n", "c", "u"): [0.2, 0.9],  # crossed within rounding: counts as no width
}
SLACK = np.array([[0.5, 2.0]] * 3)


def explored(terminal: bool = False) -> tuple[sf.Problem, Any, Any, Certified]:
    problem = maze(GRAPH, FALLBACK, limits=2, terminal_costs=["t", "u"] if terminal else None)
    last = {"t": [0.2, 0.2], "u": [0.9, 0.6]}
    bounds = bounds_of(problem, UPPER, LOWER, terminal_upper=last if terminal else None)
    sets = certify(problem.graph, bounds, problem.bounds)
    omega = pair_uncertainty(problem.graph, bounds, SLACK)
    return problem, omega, (terminal_uncertainty(problem.graph, bounds, SLACK), sets.pairs), sets


def test_omega_is_the_widest_successor_relative_to_its_slack() -> None:
    problem, omega, _, _ = explored()
    expected = {
        (0, "s", "a"): max(0.1 / 0.5, 0.4 / 2),
        (0, "s", "b"): max(0.4 / 0.5, 0.1 / 2, 0.2 / 0.5, 0.4 / 2),
        (1, "m", "a"): max(0.1 / 0.5, 0.1 / 2),
        (1, "m", "b"): 2.0 / 0.5,
        (1, "n", "c"): 0.6 / 0.5,  # never negative: the second limit's width is −0.1
    }
    for (h, s, a), value in expected.items():
        assert omega[h][at(problem, h, s, a)] == close(value)


def test_future_looks_along_certified_actions_only() -> None:
    problem, omega, (last, allowed), sets = explored()
    assert not sets.pairs[1][at(problem, 1, "m", "b")]
    assert sets.pairs[1][at(problem, 1, "n", "c")]
    future = future_uncertainty(problem.graph, omega, last, allowed)
    assert future.states[2].tolist() == [0.0, 0.0]  # no terminal cost
    assert future.states[1][problem.state_index(1, "m")] == close(0.2)  # not the 4 of the uncertified action
    assert future.states[1][problem.state_index(1, "n")] == close(1.2)
    assert future.states[0].tolist() == close([1.2])  # over both actions: max(0.2, 0.2), max(0.8, 0.2, 1.2)


def test_future_begins_with_the_terminal_states_own_uncertainty() -> None:
    problem, omega, (last, allowed), _ = explored(terminal=True)
    by_name = {s: last[problem.state_index(2, s)] for s in ("t", "u")}
    assert by_name == {"t": close(0.4), "u": close(1.8)}  # 0.2/0.5, 0.9/0.5
    future = future_uncertainty(problem.graph, omega, last, allowed)
    assert future.states[1][problem.state_index(1, "m")] == close(0.4)
    assert future.states[1][problem.state_index(1, "n")] == close(1.8)


def test_future_of_a_state_without_certified_action_is_zero() -> None:
    problem, omega, (last, allowed), _ = explored()
    nowhere = [allowed[0], np.zeros_like(allowed[1])]
    future = future_uncertainty(problem.graph, omega, last, nowhere)
    assert future.states[1].tolist() == [0.0, 0.0]


def test_bonuses_by_hand() -> None:
    """R_0 = 3 and R_1 = 2; Idea IV at layer 0 only; Idea III through the action's own successors."""
    problem, omega, (last, allowed), _ = explored()
    future = future_uncertainty(problem.graph, omega, last, allowed)
    w2, w3, w4 = 0.1, 0.02, 0.003
    bonus = bonuses(problem.graph, omega, future, (w2, w3, w4))
    expected = {
        (0, "s", "a"): w2 * 3 * 0.2 + w3 * 3 * 0.2 + w4 * 3 * 0.2,
        (0, "s", "b"): w2 * 3 * 0.8 + w3 * 3 * 1.2 + w4 * 3 * 0.8,
        (1, "m", "a"): w2 * 2 * 0.2,  # nothing after it, and no Idea IV
        (1, "m", "b"): w2 * 2 * 4.0,
        (1, "n", "c"): w2 * 2 * 1.2,
    }
    for (h, s, a), value in expected.items():
        assert bonus[h][at(problem, h, s, a)] == close(value)


# ---------------------------------------------------------------- slack

LIMITS = [sf.Limit("a", bound=1.0, noise=0.1, norm=1.0), sf.Limit("b", bound=2.0, noise=0.1, norm=1.0)]


def test_slack_is_one_without_an_anchor() -> None:
    assert slacks(corridor({"x": [1.0]}, LIMITS), None).tolist() == [[1.0, 1.0]] * 2


def test_slack_is_what_the_anchor_leaves() -> None:
    problem = corridor({"x": [1.0]}, LIMITS, anchor=([1.0], [0.75, -0.5]), terminal=[1.0])
    assert slacks(problem, None).tolist() == [[0.25, 2.5]] * 2


def test_given_slack_overrides_both() -> None:
    problem = corridor({"x": [1.0]}, LIMITS, anchor=([1.0], [0.75, -0.5]))
    assert slacks(problem, 0.3).tolist() == [[0.3, 0.3]] * 2
    assert slacks(problem, [0.3, 0.4]).tolist() == [[0.3, 0.4]] * 2
    assert slacks(problem, np.array([0.3, 0.4])).tolist() == [[0.3, 0.4]] * 2


@pytest.mark.parametrize("slack", [0, math.nan, math.inf, [0.1, -0.1]])
def test_slack_must_be_positive(slack: Any) -> None:
    with pytest.raises(InvalidInput, match="slack must be positive"):
        sf.LsviNew(corridor({"x": [1.0]}, LIMITS), slack=slack)


@pytest.mark.parametrize("slack", [[0.1], [[0.1, 0.1]], [], "wide", [0.1, "wide"]])
def test_slack_is_one_number_or_one_per_limit(slack: Any) -> None:
    with pytest.raises(InvalidInput, match="slack must be one number, or one per limit"):
        sf.LsviNew(corridor({"x": [1.0]}, LIMITS), slack=slack)


# ---------------------------------------------------------------- expected next value

FLAT = {(0, "s"): {"a": ["low"], "b": ["low", "high"], "c": ["low", "middle", "high"]}}
PHI = {("a", "low"): [1.0, 0.0], ("b", "low"): [0.5, 0.1], ("b", "high"): [0.5, -0.1]}


def flat() -> sf.Problem:
    return maze(FLAT, {(0, "s"): "a"}, transition_features=lambda h, s, a, s2: PHI.get((a, s2), [0.25, 0.25]))


def plain(d: int) -> Basis:
    start = np.zeros(1, np.int64)
    return Basis(one_block_each(d, 1), 0, start, start, np.eye(d).ravel())


def known(centre: list[float], radius: float = 0.0, optimism: float = 1.0) -> ValueEllipsoid:
    return ValueEllipsoid(plain(2), np.array([1.0, 0.25]), np.array(centre), radius, optimism)


def values_of(problem: sf.Problem, **values: float) -> np.ndarray:
    out = np.zeros(len(values))
    for s, v in values.items():
        out[problem.state_index(1, s)] = v
    return out


def test_expected_next_value_by_hand() -> None:
    problem = flat()
    layer, value = problem.graph.layers[0], values_of(problem, low=0.2, middle=0.5, high=0.6)
    # φ_V(b) = 0.2(0.5, 0.1) + 0.6(0.5, −0.1) = (0.4, −0.04); φ_V(c) = 1.3·(0.25, 0.25)
    got = expected_next_value(layer, value, known([0.9, -0.5]))
    assert got.tolist() == close([0.2, 0.9 * 0.4 + 0.5 * 0.04, 0.2])  # c: 0.13, lifted to its lowest
    wide = expected_next_value(layer, value, known([0.9, -0.5], radius=0.3, optimism=0.5))
    more = 0.15 * math.sqrt(0.4**2 + 0.25 * 0.04**2)  # w₁·radius·‖φ_V‖ in the inverse metric diag(1, 1/4)
    assert wide[1] == close(0.38 + more)
    assert wide[2] == close(max(0.2, 0.13 + 0.15 * 0.325 * math.sqrt(1.25)))


def test_expected_next_value_is_clipped_to_the_range_on_the_pairs_own_support() -> None:
    problem = flat()
    layer, value = problem.graph.layers[0], values_of(problem, low=0.2, middle=0.5, high=0.6)
    assert expected_next_value(layer, value, known([50.0, 0.0])).tolist() == [0.2, 0.6, 0.6]
    assert expected_next_value(layer, value, known([-50.0, 0.0])).tolist() == [0.2, 0.2, 0.2]
    assert expected_next_value(layer, value, known([0.0, 0.0], radius=1e9)).tolist() == [0.2, 0.6, 0.6]
    raw = expected_next_value(layer, value, replace(known([50.0, 0.0]), clip=False))  # the paper's: ⟨θ̂, φ_V⟩ alone
    assert raw[1:].tolist() == close([50 * 0.4, 50 * 1.3 * 0.25])


@pytest.mark.parametrize(("stationary", "ridge"), [(False, 1.0), (True, 2.25)])
def test_S6_by_hand(stationary: bool, ridge: float) -> None:
    """One observed transition: A = λ₂ + φ_V², the radius of its layer, and what follows for Q."""
    p, norm, optimism = 0.05, 1.5, 0.01
    problem = maze(
        {(0, "s"): {"a": ["x", "y"]}, (1, "x"): {"a": ["t", "u"]}, (1, "y"): {"a": ["t"]}},
        {(0, "s"): "a", (1, "x"): "a", (1, "y"): "a"},
        terminal_reward={"t": 0.2, "u": 0.8},
        reward={(1, "x", "a"): 0.1, (1, "y", "a"): 0.4},
        cost_features=lambda h, s, a, s2: [0.0],
        transition_features=lambda h, s, a, s2: [0.5],
        transition_norm=norm,
        stationary_transitions=stationary,
    )
    agent = sf.LsviNew(problem, p, optimism=optimism, value_ridge=ridge, replan_growth=0.0)
    agent.begin_episode("s")
    v_x, v_y = agent.plan.value(1, "x"), agent.plan.value(1, "y")
    # No data: θ̂ = 0 and A = λ₂. φ_V(x) = (0.2 + 0.8)/2 = 0.5; the range is 1 at layer 1, or H−1 = 2 when stationary.
    first = (2 if stationary else 1) / 2 * math.sqrt(2 * math.log(3 / p)) + math.sqrt(ridge) * norm
    assert v_x == close(0.1 + max(0.2, optimism * first * 0.5 / math.sqrt(ridge)))
    assert v_y == close(0.4 + 0.2)
    agent.observe(0, "s", "a", "x", 0.0)
    agent.observe(1, "x", "a", "u", 0.0)
    agent.end_episode()
    # Layer 0 saw φ = (v_x + v_y)/2 with target v_x; layer 1 saw φ = 0.5 with target 0.8.
    phi = (v_x + v_y) / 2
    rows = {0: (phi * phi, phi * v_x), 1: (0.25, 0.4)}
    pooled = tuple(map(sum, zip(*rows.values(), strict=True)))
    for h, s in ((1, "x"), (0, "s")):
        gram, target = pooled if stationary else rows[h]
        ratio = math.log((ridge + gram) / ridge)
        r = (2 if stationary else 2 - h) / 2 * math.sqrt(ratio + 2 * math.log(3 / p)) + math.sqrt(ridge) * norm
        nexts = [0.2, 0.8] if h else [agent.plan.value(1, "x"), agent.plan.value(1, "y")]
        f = sum(nexts) / 2
        expected = target / (ridge + gram) * f + optimism * r * f / math.sqrt(ridge + gram)
        reward = 0.1 if h else 0.0
        assert agent.plan.q(h, s, "a") == close(reward + min(max(expected, min(nexts)), max(nexts)))


# ---------------------------------------------------------------- Q, V and the choice


def choose(q: list[float], allowed: list[bool], cap: float) -> tuple[float, int]:
    """In a state that stands between two others, whose actions are all allowed."""
    n = len(q)
    actions = {str(i): ["end"] for i in range(n)}
    problem = maze(
        {(0, "s"): {"on": ["x", "y", "z"]}, (1, "x"): actions, (1, "y"): actions, (1, "z"): actions},
        {(0, "s"): "on", (1, "x"): "0", (1, "y"): "2", (1, "z"): "0"},
    )
    others, free = [1.0] * n, [True] * n
    value, action = greedy(problem.graph.layers[1], np.array(others + q + others), np.array(free + allowed + free), cap)
    assert (value[[0, 2]].tolist(), action[[0, 2]].tolist()) == ([1.0, 1.0], [0, 2 * n])
    return float(value[1]), int(action[1]) - n if action[1] >= 0 else -1


@pytest.mark.parametrize(
    ("q", "allowed", "value", "action"),
    [
        ([0.1, 0.7, 0.3], [True] * 3, 0.7, 1),
        ([0.1, 0.7, 0.3], [True, False, True], 0.3, 2),  # an uncertified action is never chosen
        ([5.0, 7.0, 6.0], [True] * 3, 2.0, 1),  # all clipped alike: the larger Q
        ([5.0, 7.0, 6.0], [True, False, True], 2.0, 2),
        ([1.5, 9.0, 1.9], [True, False, True], 1.9, 2),
        ([7.0, 7.0, 7.0], [False, True, True], 2.0, 1),  # equal in all: declared first
        ([0.3, 0.3, 0.1], [True] * 3, 0.3, 0),
        ([2.0, 3.0, 1.0], [True] * 3, 2.0, 1),  # a Q at the cap ties with one above it
        ([0.0, 0.0, 0.0], [True] * 3, 0.0, 0),
        ([1.0, 1.0, 1.0], [False] * 3, 0.0, -1),  # nothing certified: V = 0 and no action
        ([math.nan, 1.0, 1.0], [True] * 3, 2.0, 2),  # a NaN says nothing: the fallback, at the cap
        ([0.5, math.nan, 1.0], [True] * 3, 2.0, 2),
        ([1.0, math.nan, 1.5], [True, True, False], 2.0, 0),  # without the fallback the first that is certified
        ([math.nan, 1.0, 1.5], [False, True, True], 1.5, 2),  # of an uncertified action it does not matter
        ([math.nan] * 3, [False] * 3, 0.0, -1),
    ],
)
def test_greedy_choice(q: list[float], allowed: list[bool], value: float, action: int) -> None:
    assert choose(q, allowed, cap=2.0) == (value, action)


def test_values_by_hand() -> None:
    """Backward with caps R_h; states without a certified action are worth 0, unsafe last states too."""
    problem = maze(
        GRAPH,
        FALLBACK,
        reward={(0, "s", "a"): 0.5, (0, "s", "b"): 0.1, (1, "m", "a"): 0.6, (1, "m", "b"): 1.0, (1, "n", "c"): 1.0},
        terminal_reward={"t": 0.3, "u": 0.9},
    )
    graph = problem.graph
    pairs = [np.ones(layer.n_pairs, bool) for layer in graph.layers]
    pairs[1][at(problem, 1, "n", "c")] = False
    ends = np.array([True, True])
    ends[problem.state_index(2, "u")] = False
    sets = Certified(tuple(pairs), (np.ones(1, bool), np.array([True, False]), ends))
    exact = [ValueEllipsoid(plain(1), np.ones(1), np.array([0.5]), 0.0, 1.0)] * 2
    bonus = [np.array([0.0, 0.25]), np.array([0.0, 1.7, 0.0])]
    values = optimistic_values(graph, sets, bonus, exact, [3.0, 2.0])
    last = {s: values.value[2][problem.state_index(2, s)] for s in ("t", "u")}
    assert last == {"t": 0.3, "u": 0.0}
    # layer 1: a → 0.6 + 0.3 (one successor: no choice), b → 1 + clip(0.5·0.3) + 1.7
    assert values.q[1][:2].tolist() == close([0.9, 1.0 + 0.15 + 1.7])
    assert values.value[1].tolist() == close([2.0, 0.0])  # capped at R_1 = 2; nothing certified in n
    assert values.q[0].tolist() == close([0.5 + 2.0, 0.1 + 0.5 * 2.0 + 0.25])
    assert values.value[0].tolist() == close([2.5])
    assert [row.tolist() for row in values.action] == [[0], [1, -1]]


def test_a_plan_is_the_sum_of_its_parts() -> None:
    """Through the agent: Q = r + expected next value + bonuses with the default weights and slack 1."""
    limit = sf.Limit("heat", bound=10.0, noise=0.1, norm=1.0)
    problem = corridor({"fallback": [1.0], "wide": [2.0]}, limit, horizon=3)
    agent = sf.LsviNew(problem, exploration="ideas")
    # No data: widths are 2L‖x‖ = 2 and 4. Everything is certified (upper 2 ≤ 10). R_0 = 3, R_1 = 2. One successor, so
    # the expected next value is V itself.
    q1 = {a: 0.5 + 0.1 * 2 * w for a, w in (("fallback", 2.0), ("wide", 4.0))}
    assert {a: agent.plan.q(1, "s", a) for a in q1} == close(q1)
    assert agent.plan.value(1, "s") == close(1.3)
    q0 = {a: 0.5 + 1.3 + 3 * (0.1 * w + 0.02 * 4.0 + 0.02 * w) for a, w in (("fallback", 2.0), ("wide", 4.0))}
    assert {a: agent.plan.q(0, "s", a) for a in q0} == close(q0)
    assert agent.plan.value(0, "s") == 3.0  # R_0
    assert agent.plan.action(0, "s") == "wide"


def test_q_of_an_uncertified_action_is_defined_and_by_the_same_formula() -> None:
    """Its cost may be beyond the limit; its value is asked for all the same (spec 8)."""
    limit = sf.Limit("heat", bound=1.5, noise=0.1, norm=1.0)
    agent = sf.LsviNew(corridor({"fallback": [1.0], "wide": [2.0]}, limit, horizon=3), exploration="ideas")
    assert not agent.plan.certified(1, "s", "wide")
    assert agent.plan.q(1, "s", "wide") == close(0.5 + 0.1 * 2 * 4.0)
    # V_1 is that of the certified "fallback" alone: 0.5 + 0.1·2·2; and the future's uncertainty its 2, not 4.
    assert agent.plan.q(0, "s", "wide") == close(0.5 + 0.9 + 3 * (0.1 * 4.0 + 0.02 * 2.0 + 0.02 * 4.0))
