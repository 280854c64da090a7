"""Slack, the range of what comes next, (S6) by hand and the greedy choice (spec 5 and 6); else tests/differential."""

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
from surefoot.plan.explore import slacks
from surefoot.plan.values import greedy
from tests.hand_made import corridor, maze


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12)


# ---------------------------------------------------------------- slack

LIMITS = [sf.Limit("a", bound=1.0, noise=0.1, norm=1.0), sf.Limit("b", bound=2.0, noise=0.1, norm=1.0)]


def test_slack_is_what_the_anchor_of_the_step_leaves_of_its_bound_or_one() -> None:
    problem = corridor({"x": [1.0]}, LIMITS, anchor=([1.0], [0.75, -0.5]), terminal=[1.0])
    assert slacks(problem, None).tolist() == [[0.25, 2.5]] * 2
    anchors = {0: ([1.0], [0.5]), 1: None, 2: ([1.0], [0.25])}
    by_step = sf.Problem.from_functions(
        horizon=3,
        start="s",
        actions=lambda h, s: ["x"],
        successors=lambda h, s, a: ["s"],
        reward=lambda h, s, a: 0.0,
        cost_features=lambda h, s, a, s2: [1.0],
        terminal_cost_features=lambda s: [1.0],
        fallback=lambda h, s: "x",
        limits=sf.Limit("a", bound=[1.0, 0.5, 0.75], noise=0.1, norm=1.0),
        anchor=lambda h: anchors[h],
    )
    assert slacks(by_step, None).tolist() == [[0.5], [1.0], [0.5]]


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
