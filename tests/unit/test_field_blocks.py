"""The blocks that the published learners share, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.blocks.random_actions import chance, drawn
from surefoot.estimate.weighted import WeightedData
from surefoot.plan.certify import certify, not_refuted, pair_excess
from surefoot.plan.drawing import best_mixture
from surefoot.plan.occupancy import best_occupancy
from surefoot.plan.successors import likeliest, likelihoods, with_one_successor
from tests.hand_made import bounds_of, maze
from tests.made_worlds import hand_world


def one_state(n: int) -> Any:
    return SimpleNamespace(n_pairs=n, n_states=1, state_ptr=np.array([0, n]))


# ---------------------------------------------------------------- two-action mixing


@pytest.mark.parametrize(
    ("score", "excess", "chances", "value"),
    [
        # one half of the unsafe one makes the row tight: (−1 + 1)/2 = 0
        ([1.0, 3.0], [-1.0, 1.0], [0.5, 0.5], 2.0),
        # a quarter: 3/4·(−1) + 1/4·3 = 0
        ([0.0, 4.0], [-1.0, 3.0], [0.75, 0.25], 1.0),
        # nothing to mix with: the best safe one
        ([1.0, 2.0, 0.5], [-1.0, 0.0, 2.0], [0.0, 1.0, 0.0], 2.0),
        # a worse safe action with more room wins: half of 4 beats 1, which leaves no room
        ([1.0, 0.0, 4.0], [0.0, -1.0, 1.0], [0.0, 0.5, 0.5], 2.0),
        # none is safe: the least unsafe
        ([5.0, 1.0], [2.0, 1.0], [0.0, 1.0], 1.0),
        # unbounded costs are never mixed in, and a NaN is never safe
        ([1.0, 9.0, 9.0], [-1.0, math.inf, math.nan], [1.0, 0.0, 0.0], 1.0),
    ],
)
def test_the_best_mixture(score: list[float], excess: list[float], chances: list[float], value: float) -> None:
    found, worth = best_mixture(one_state(len(score)), np.array(score), np.array(excess))
    np.testing.assert_allclose(found, chances)
    assert worth == pytest.approx(value)


def test_the_mixture_is_the_optimum_of_its_linear_program(seed: int) -> None:
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    for _ in range(50):
        n = int(rng.integers(2, 7))
        score, excess = rng.random(n), rng.normal(size=n)
        excess[0] = -abs(excess[0])
        chances, value = best_mixture(one_state(n), score, excess)
        best = linprog(-score, A_ub=excess[None], b_ub=[0.0], A_eq=np.ones((1, n)), b_eq=[1.0], method="highs")
        assert value[0] == pytest.approx(-best.fun, abs=1e-9)
        assert chances.sum() == pytest.approx(1.0)
        assert chances @ excess <= 1e-12
        assert np.count_nonzero(chances) <= 2


# ---------------------------------------------------------------- occupancies


def test_within_intervals_the_program_picks_the_best_model() -> None:
    """Two ends worth 0 and 1: P(good) in [0.2, 0.7] is taken to be 0.7; an interval [0, 1] to be 1."""
    world = hand_world(
        {(0, "s"): {"go": (0.0, {"bad": (0.5, 0.0), "good": (0.5, 0.0)})}}, {"bad": (0.0, None), "good": (1.0, None)}
    )
    graph = world.problem.graph
    rewards = [graph.layers[0].reward, graph.terminal.reward]
    for low, high, value in (
        ([0.3, 0.2], [0.8, 0.7], 0.7),
        ([0.0, 0.0], [1.0, 1.0], 1.0),
        ([0.4, 0.0], [1.0, 1.0], 0.6),
    ):
        found = best_occupancy(graph, [np.array(low)], [np.array(high)], rewards, [world.costs[0]], np.array([9.0]))
        assert found is not None
        assert found.value == pytest.approx(value)


# ---------------------------------------------------------------- drawn policies


def test_draws_are_those_of_the_chances_and_of_nothing_else(seed: int) -> None:
    """Frequencies of 4,000 episodes within five standard deviations; states without an action have none."""
    layer = SimpleNamespace(state_ptr=np.array([0, 3, 5, 6]))
    graph: Any = SimpleNamespace(layers=(layer,))
    chances = np.array([0.2, 0.5, 0.3, 0.0, 1.0, 0.0])
    picked = np.array([drawn(graph, [chances], seed, k)[0] for k in range(4000)])
    share = np.bincount(picked[:, 0], minlength=3) / 4000
    assert np.all(np.abs(share - chances[:3]) < 5 * np.sqrt(chances[:3] * (1 - chances[:3]) / 4000))
    assert set(picked[:, 1]) == {4}
    assert set(picked[:, 2]) == {-1}
    assert chance(seed, 3, 1) == chance(seed, 3, 1)
    assert len({chance(s, k, h) for s in (seed, seed + 1, seed + 2**70) for k in range(50) for h in range(4)}) == 600


def test_the_last_chance_is_taken_where_a_running_sum_falls_short() -> None:
    layer = SimpleNamespace(state_ptr=np.array([0, 10, 20]))
    chances = np.concatenate([np.full(10, 0.1), np.full(10, 0.1)])
    from surefoot.agents.blocks.random_actions import _pick

    assert _pick(chances, layer.state_ptr, np.nextafter(1.0, 0.0)).tolist() == [9, 19]


# ---------------------------------------------------------------- regressions and counts


def test_estimated_probabilities_by_hand() -> None:
    """φ = (P,) of each triplet and μ = 1, so θ̂ scales them all: what is left after scaling to 1 is P itself."""
    world = hand_world(
        {(0, "s"): {"go": (0.0, {"a": (0.2, 0.0), "b": (0.8, 0.0)})}}, {"a": (0.0, None), "b": (0.0, None)}
    )
    data, layer = WeightedData(world.problem, 1.0), world.problem.graph.layers[0]
    (blank,) = data.around([1.0], 1.0)
    np.testing.assert_allclose(likelihoods(layer, blank), [0.5, 0.5])  # θ̂ = 0: nothing known, all alike
    data.count(data.row(0, layer, 1, np.array([0.0, 1.0])))
    (known,) = data.around([1.0], 1.0)
    np.testing.assert_allclose(likelihoods(layer, known), [0.2, 0.8])
    assert likeliest(layer, known).tolist() == [1]


# ---------------------------------------------------------------- one successor


def test_one_successor_forgets_the_trap() -> None:
    """To go may end in the pit, whose way out is too dear; who expects the likeliest end only sees none of it."""
    problem = maze(
        {(0, "s"): {"stay": ["s"], "go": ["s", "pit"]}, (1, "s"): {"stay": ["s"]}, (1, "pit"): {"out": ["s"]}},
        {(0, "s"): "stay", (1, "s"): "stay"},
    )
    dear = {(1, "pit", "out", "s"): 5.0}
    bounds = bounds_of(problem, dear, dear)
    known = WeightedData(problem, 1.0).around([1.0] * 2, 1.0)
    full = certify(problem.graph, bounds, problem.bounds)
    assert full.pairs[0].tolist() == [True, False]
    assert not_refuted(problem.graph, bounds, problem.bounds).pairs[0].tolist() == [True, False]
    graph, left = with_one_successor(problem.graph, bounds, known)
    seen = certify(graph, left, problem.bounds)
    assert seen.pairs[0].tolist() == [True, True]
    np.testing.assert_allclose(pair_excess(problem.graph.layers[1], bounds.upper[1], problem.bounds[1]), [-0.5, 4.0])


# ---------------------------------------------------------------- a published problem, with published code's numbers


def inventory() -> sf.World:
    """The inventory problem of DOPE's authors: up to five items, seven periods; orders are dear, and storage is.

    An item's demand is 0 … 5 with the chances below; ordering a > 0 costs 4 + 2a, holding s + a costs as much. A demand
    d that is met pays 0.08·d, weighted by the chance of the state that it leads to, as their code has it. Both are
    scaled to 1.
    """
    demand, states = [0.3, 0.2, 0.2, 0.2, 0.05, 0.05], range(6)
    chance = {}
    for s in states:
        for a in range(6 - s):
            left = [max(0, s + a - d) for d in range(6)]
            chance[s, a] = {
                s2: sum(p for p, each in zip(demand, left, strict=True) if each == s2) for s2 in sorted(set(left))
            }
    paid = {sa: sum(chance[sa][max(0, sum(sa) - d)] * 0.08 * d for d in range(6) if sum(sa) >= d) for sa in chance}
    cost = {(s, a): (4 + 2 * a if a else 0) + s + a for s, a in chance}
    problem = sf.Problem.from_functions(
        horizon=8,
        start=0,
        actions=lambda h, s: list(range(6 - s)),
        successors=lambda h, s, a: list(chance[s, a]),
        reward=lambda h, s, a: paid[s, a] / max(paid.values()),
        cost_features=lambda h, s, a, s2: [cost[s, a] / max(cost.values())],
        transition_features=lambda h, s, a, s2: [chance[s, a][s2]],
        fallback=lambda h, s: 0,
        limits=[sf.Limit("budget", bound=1.0, noise=0.1, norm=1.0)],
    )
    return sf.World(problem, transition=[1.0], cost=[1.0])


@pytest.mark.parametrize(("budget", "value"), [(99.0, 7.0), (3.5, 6.6653), (0.7, 1.5557)])
def test_the_program_finds_what_published_code_finds(budget: float, value: float) -> None:
    """archanabura/DOPE-DoublyOptimisticPessimisticExploration prints these three for its inventory problem."""
    world = inventory()
    graph, p = world.problem.graph, world.probabilities
    rewards = [*(layer.reward for layer in graph.layers), graph.terminal.reward]
    found = best_occupancy(graph, p, p, rewards, world.costs, np.array([budget]))
    assert found is not None
    assert found.value == pytest.approx(value, abs=5e-5)
    assert sf.exact.evaluate(world, found.chances) == pytest.approx(found.value, abs=1e-6)
