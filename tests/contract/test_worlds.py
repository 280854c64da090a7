"""What every named world keeps, at its testing size; the backward inductions here are the test's own."""

import difflib
from typing import NamedTuple

import numpy as np
import pytest

import surefoot as sf
from surefoot import worlds
from surefoot.errors import InvalidInput
from surefoot.model.layer import NO_ACTION
from surefoot.worlds.registry import FAMILIES, WorldFamily
from surefoot.worlds.world import World
from tests.made_worlds import first_unsafe_entry

TOLERANCE = 1e-9  # relative


class Solution(NamedTuple):
    best: float  # of safe policies, from the first start
    fallback: float
    unrestricted: float
    safe: list[np.ndarray]  # per layer, (S,)
    traps: int  # pairs that keep every limit now and may lead to an unsafe state


def solve(world: World) -> Solution:
    """Loops over states and actions; safe means over successors with a positive probability."""
    graph = world.problem.graph
    bounds = np.array([limit.bound for limit in world.problem.limits])
    last = graph.terminal
    fine = np.ones(last.n_states, bool)
    if world.terminal_costs is not None:
        fine = (world.terminal_costs <= bounds + TOLERANCE).all(axis=1)
    safe, traps = [fine], 0
    best, fallback, free = (last.reward.copy() for _ in range(3))
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        costs = layer.worst_of_edges(world.costs[h])
        best_h, fallback_h, free_h = (np.full(layer.n_states, -np.inf) for _ in range(3))
        for state in range(layer.n_states):
            for pair in range(layer.state_ptr[state], layer.state_ptr[state + 1]):
                edges = np.arange(layer.pair_ptr[pair], layer.pair_ptr[pair + 1])
                edges = edges[world.probabilities[h][edges] > 0]
                p, after = world.probabilities[h][edges], layer.successor[edges]
                keeps = bool((costs[edges] <= bounds + TOLERANCE).all())
                leads_on = bool(safe[0][after].all())
                traps += keeps and not leads_on
                if keeps and leads_on:
                    best_h[state] = max(best_h[state], layer.reward[pair] + p @ best[after])
                free_h[state] = max(free_h[state], layer.reward[pair] + p @ free[after])
                if layer.fallback[state] == pair:
                    fallback_h[state] = layer.reward[pair] + p @ fallback[after]
        safe.insert(0, best_h > -np.inf)
        best, fallback, free = best_h, fallback_h, free_h
    start = int(graph.starts[0])
    return Solution(float(best[start]), float(fallback[start]), float(free[start]), safe, traps)


Case = tuple[WorldFamily, World, Solution]


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    family: WorldFamily = request.param
    world = worlds.make(next(iter(family.ids()))).at(1.0)  # rays in full: then every action is an ordinary one
    return family, world, solve(world)


def test_truth_satisfies_the_problem(case: Case) -> None:
    _, world, _ = case
    problem = world.problem
    for layer, p, c in zip(problem.graph.layers, world.probabilities, world.costs, strict=True):
        assert (p >= 0).all()
        np.testing.assert_allclose(np.add.reduceat(p, layer.pair_ptr[:-1]), 1.0, rtol=0, atol=1e-12)
        assert np.isfinite(c).all()
        assert c.shape == (layer.n_rows, len(problem.limits))
    assert np.linalg.norm(world.transition, axis=1).max() <= problem.transition_norm + TOLERANCE
    for j, limit in enumerate(problem.limits):
        assert np.linalg.norm(world.cost_parameters[:, j], axis=1).max() <= limit.norm + TOLERANCE
    assert not world.misspecified_beyond_declaration


def test_fallback_is_truly_safe(case: Case) -> None:
    _, world, _ = case
    bounds = np.array([limit.bound for limit in world.problem.limits])
    graph = world.problem.graph
    for h, layer in enumerate(graph.layers):
        for pair in layer.fallback[layer.fallback != NO_ACTION]:
            edges = slice(layer.pair_ptr[pair], layer.pair_ptr[pair + 1])
            possible = world.probabilities[h][edges] > 0
            assert (layer.worst_of_edges(world.costs[h])[edges][possible] <= bounds + TOLERANCE).all()
    if world.terminal_costs is not None:
        assert (world.terminal_costs[graph.terminal.fallback_reached] <= bounds + TOLERANCE).all()


# ---------------------------------------------------------------- what a family promises beyond that

# gain: the best safe value is at least 1.3 times the fallback's, and can be learnt.
# lookahead: a learner that looks one step ahead comes to a state without a safe action.
# stochastic: some action has more than one possible successor.
# unsafe_states: some states that can be reached have no safe action.
# traps: somewhere an action that breaks nothing now can lead where every action breaks a limit.
EVERYTHING = {"gain", "lookahead", "stochastic", "traps", "unsafe_states"}
PROMISED = {
    "toy-text": {"gain"},
    "heights": set(),  # maps are drawn: on some the limit costs nothing; what is gained: test_heights.py
    "dosing": {"stochastic", "traps", "unsafe_states"},  # the rest is said of intensities: tests/unit/test_rays.py
    "throttle": {"stochastic", "traps", "unsafe_states"},
    "lower-bound/1": {"gain", "unsafe_states"},
    "lower-bound/2": {"unsafe_states"},
    "ablation/look-ahead": {"gain", "lookahead", "traps", "unsafe_states"},
    "ablation/transition": {"gain"},
    "ablation/future": {"gain", "stochastic"},
    "ablation/past": {"gain"},
    "ablation/stall": set(),  # nothing there is unsafe, which the learner cannot know; what is gained: test_stalling.py
    "ablation/stall-deep": set(),
}


def promised(case: Case, trait: str) -> bool:
    return trait in PROMISED.get(case[0].name, EVERYTHING)


def test_gain_there_is_something_to_learn(case: Case) -> None:
    """… and no more than the limits allow: they cost something."""
    if promised(case, "gain"):
        _, world, solution = case
        assert solution.best >= 1.3 * solution.fallback
        assert solution.unrestricted > solution.best + 1e-6
        assert sf.check(world.problem).cold_start.can_move_later


def test_unsafe_states_can_be_reached(case: Case) -> None:
    if promised(case, "unsafe_states"):
        _, world, solution = case
        reached = world.problem.graph.reachable
        assert any((~safe & seen).any() for safe, seen in zip(solution.safe, reached, strict=True))


def test_traps_look_harmless(case: Case) -> None:
    if promised(case, "traps"):
        assert case[2].traps > 0


def test_stochastic_means_that_chance_decides(case: Case) -> None:
    if promised(case, "stochastic"):
        _, world, _ = case
        layers = zip(world.problem.graph.layers, world.probabilities, strict=True)
        assert any((np.add.reduceat(p > 0, layer.pair_ptr[:-1]) > 1).any() for layer, p in layers)


@pytest.mark.statistical
def test_lookahead_is_needed(case: Case, seed: int) -> None:
    """The learner that tests each step alone comes where no action is safe, in at least 8 of 10 runs."""
    if promised(case, "lookahead"):
        _, world, solution = case
        entries = [
            first_unsafe_entry(world, solution.safe, "slucb-qvi", seed=s, episodes=1000)
            for s in range(10 * seed, 10 * seed + 10)
        ]
        assert sum(entry is not None for entry in entries) >= 8


# ---------------------------------------------------------------- all of them


def test_made_twice_is_the_same(case: Case) -> None:
    family, world, _ = case
    again = worlds.make(next(iter(family.ids())))
    for one, two in zip(world.costs + world.probabilities, again.costs + again.probabilities, strict=True):
        assert np.array_equal(one, two)


def test_a_seeded_walk_stays_in_the_declared_support(case: Case, seed: int) -> None:
    _, world, _ = case
    sampler, rng = world.sampler(seed), np.random.default_rng(seed)
    for _ in range(100):
        state = int(world.problem.graph.starts[0])
        for h, layer in enumerate(world.problem.graph.layers):
            pair = int(rng.integers(layer.state_ptr[state], layer.state_ptr[state + 1]))
            edge = sampler.step(h, pair)
            assert layer.pair_ptr[pair] <= edge < layer.pair_ptr[pair + 1]
            assert world.probabilities[h][edge] > 0
            state = int(layer.successor[edge])


# ---------------------------------------------------------------- names


def test_names_say_what_they_are() -> None:
    listed = worlds.names()
    assert {"thermal/testing", "thermal/small", "thermal/medium", "figure1", "ablation/past"} <= set(listed)
    assert all(text and "\n" not in text for text in listed.values())


@pytest.mark.parametrize("name", ["thermal/smal", "termal/small", "thermal"])
def test_an_unknown_name_offers_the_nearest(name: str) -> None:
    near = difflib.get_close_matches(name, worlds.names(), n=1, cutoff=0.4)[0]
    with pytest.raises(InvalidInput, match=f"no such world: '{name}'. Did you mean {near}"):
        worlds.make(name)


def test_an_option_that_a_world_does_not_have_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"thermal/testing has no option 'bond'\. Did you mean bound\?"):
        worlds.make("thermal/testing", bond=0.6)
    with pytest.raises(InvalidInput, match=r"has no option 'mismach'\. Did you mean mismatch\?"):
        worlds.make("thermal/testing", mismach=0.1)


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(InvalidInput, match="Known worlds are thermal/testing"):
        worlds.make("?")


# ---------------------------------------------------------------- thermal


@pytest.mark.parametrize(
    ("size", "triplets", "best", "fallback_value", "unsafe"),
    [("testing", 149, 2.5423, 1.0891, 7), ("small", 233, 3.4765, 1.5337, 15)],
)
def test_thermal_numbers(size: str, triplets: int, best: float, fallback_value: float, unsafe: int) -> None:
    world = worlds.make(f"thermal/{size}")
    solution = solve(world)
    assert sum(layer.n_edges for layer in world.problem.graph.layers) == triplets
    assert solution.best == pytest.approx(best, abs=1e-4)
    assert solution.fallback == pytest.approx(fallback_value, abs=1e-4)
    assert sum(int((~ok).sum()) for ok in solution.safe) == unsafe


def test_thermal_as_its_page_tells_it() -> None:
    world = worlds.make("thermal/small")
    problem, safe = world.problem, solve(world).safe

    def cost(h: int, *triplet: int) -> float:
        edge = problem.edge_index(h, *triplet)
        return float(world.costs[h][edge, 0])

    assert cost(0, 0, 0, 0) == pytest.approx(0.10)
    assert cost(3, 2, 2, 4) == pytest.approx(0.10 + 0.10 * 2 / 7 + 0.10 + 0.45 * 4 / 7 + 0.10 * 4 / 7)
    for heat, power in ((2, 2), (3, 1)):  # keeps the limit wherever it leads …
        assert all(cost(3, heat, power, after) <= 0.6 for after in problem.successors(3, heat, power))
        assert 4 in problem.successors(3, heat, power)
    for h, unsafe in enumerate([[], [], [4, 5], [4, 5, 6, 7], [4, 5, 6, 7], [5, 6, 7], [6, 7]]):
        assert [problem.states(h)[i] for i in np.flatnonzero(~safe[h])] == unsafe
    distance = min(float(np.abs(costs - 0.6).min()) for costs in world.costs)
    assert distance >= 0.028
    assert problem.stationary_costs
    assert problem.stationary_transitions


def test_thermal_options() -> None:
    assert worlds.make("thermal/small", horizon=3).problem.horizon == 3
    fine = worlds.make("thermal/small", resolution=2)
    assert len(fine.problem.states(7)) == 15
    assert worlds.make("thermal/small", bound=0.7).problem.limits[0].bound == 0.7
    assert worlds.make("thermal/small", noise_scale=0.2, noise="uniform").problem.limits[0].noise == 0.2
    with pytest.raises(InvalidInput, match="resolution must be a whole number, at least 1: 0"):
        worlds.make("thermal/small", resolution=0)
    with pytest.raises(InvalidInput, match="probabilities do not sum to one"):
        worlds.make("thermal/small", climate=(0.5, 0.3, 0.1))
