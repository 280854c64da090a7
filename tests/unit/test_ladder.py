"""ladder: star-convex, with traps, of the size asked for, and made without waste."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot import exact
from surefoot.errors import InvalidInput
from surefoot.worlds.named.ladder import SIZES, ladder

RUNGS, BRANCHING = 8, 5


def by_rung(world: sf.World, h: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """Features (S, A, b, d) and costs (S, A, b) of a layer, and the number of landings."""
    layer, dim = world.problem.graph.layers[h], world.problem.graph.cost_dim
    shape = (layer.n_states, RUNGS, BRANCHING)
    landings = layer.n_states - layer.n_states // 8
    return layer.cost_features.reshape(*shape, dim), world.costs[h].reshape(shape), landings


@pytest.fixture(scope="module")
def world() -> sf.World:
    return sf.worlds.make("ladder/testing")


def test_features_are_star_convex(world: sf.World) -> None:
    """Of every feature x on a landing, x⁰ + (j/k)(x − x⁰) is there for j ≤ k, for the same state and successor slot."""
    features, _, landings = by_rung(world)
    seed = features[0, 0, 0]
    assert seed.tolist() == [1.0, 0.0, 0.0, 0.0]
    for k in range(1, RUNGS):
        for j in range(k + 1):
            between = seed + j / k * (features[:landings, k] - seed)
            np.testing.assert_allclose(features[:landings, j], between, atol=1e-15)


def test_costs_and_traps_as_the_page_says(world: sf.World) -> None:
    features, costs, landings = by_rung(world)
    lengths = np.linalg.norm(features[..., 1:], axis=-1)
    heights = np.broadcast_to(np.arange(RUNGS)[:, None] / 7, (landings, RUNGS, BRANCHING))
    np.testing.assert_allclose(lengths[:landings], heights)
    steepness = (costs[:landings, -1] - 0.1) / 0.6
    assert steepness.min() >= 0.4
    assert steepness.max() <= 0.9
    assert (costs[landings:] >= 0.58 - 1e-12).all()
    np.testing.assert_allclose(costs[:landings, 0], 0.1)
    keeps = (costs[:landings, -1] <= 0.5).all(axis=1)
    assert 0.2 < keeps.mean() < 0.8
    safe = exact.solve(world)
    layer = world.problem.graph.layers[0]
    for h in range(world.problem.horizon - 1):
        assert np.flatnonzero(~safe.safe_states[h]).tolist() == list(range(landings, layer.n_states))
    highest = layer.successor.reshape(-1, RUNGS, BRANCHING)[:, -1]
    assert (highest[:, -1] >= landings).all()
    others = layer.successor.reshape(-1, RUNGS, BRANCHING)[:, :-1]
    assert (others < landings).all()
    assert np.linalg.norm(world.cost_parameters[0]) == pytest.approx(np.hypot(0.1, 0.6))


def test_the_cold_start_can_move(world: sf.World) -> None:
    """By the declared norm alone, rungs up to α = 0.4 are certified, and no other."""
    plan = sf.LsviNew(world.problem).plan
    certified = [plan.certified(0, 0, rung) for rung in range(RUNGS)]
    assert certified == [rung / 7 <= 0.4 for rung in range(RUNGS)]


def test_sizes() -> None:
    for size in ("testing", "1e4"):
        triplets, features, horizon = SIZES[size]
        problem = sf.worlds.make(f"ladder/{size}").problem
        assert problem.horizon == horizon
        assert problem.graph.cost_dim == features
        assert {layer.n_edges for layer in problem.graph.layers} == {triplets}
        assert problem.graph.layers[0].successor.dtype == np.int32
    assert ladder(triplets=999, features=200).problem.graph.cost_dim == 200
    assert ladder(branching=3, rungs=4, triplets=1200).problem.graph.layers[0].n_edges == 1200


def test_layers_share_arrays_or_have_their_own() -> None:
    one, two, *_ = ladder().problem.graph.layers
    assert one.cost_features is two.cost_features
    assert one.successor is two.successor
    apart = ladder(shared=False)
    one, two, *_ = apart.problem.graph.layers
    assert one.cost_features is not two.cost_features
    assert not np.array_equal(one.cost_features, two.cost_features)
    assert exact.solve(apart).value > 2 * exact.fallback_value(apart)


def test_the_seed_draws_everything() -> None:
    assert ladder().digest == ladder(seed=0).digest
    assert ladder().digest != ladder(seed=1).digest


def test_other_options() -> None:
    world = ladder(stationary=True, horizon=3, noise="rademacher")
    assert world.problem.stationary_costs
    assert world.problem.stationary_transitions
    assert world.problem.horizon == 3
    assert world.noise == "rademacher"
    assert sf.worlds.make("ladder/testing", mismatch=0.02).problem.limits[0].misspecification == 0.02
    assert sf.worlds.make("ladder/testing", mismatch=0.02, declared=False).misspecified_beyond_declaration


def test_a_million_triplets_take_no_more_memory_than_their_arrays_and_a_quarter() -> None:
    tracemalloc.start()
    try:
        world = sf.worlds.make("ladder/1e6", features=8)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    graph = world.problem.graph
    held = [array for layer in graph.layers for array in vars(layer).values() if isinstance(array, np.ndarray)]
    held += [*world.probabilities, *world.cumulative, *world.costs]
    size = sum({id(array): array.nbytes for array in held}.values())
    assert graph.layers[0].n_edges == 1_000_000
    assert peak <= 1.25 * size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "1e9"}, "no such size: '1e9'. Choose from testing, 1e4, 1e5, 1e6."),
        (
            {"triplets": 100},
            "triplets are too few for a ladder: 100, with 8 rungs and 5 successors each: 2 states. "
            "Ask for 360 or more.",
        ),
        ({"features": 2}, "features must be a whole number, at least 3: 2"),
        ({"branching": 1}, "branching must be a whole number, at least 2: 1"),
        ({"rungs": 1}, "rungs must be a whole number, at least 2: 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0: -1"),
        ({"horizon": 1}, "horizon must be a whole number, at least 2: 1"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ladder(**options)
    assert str(refused.value) == message


def test_the_smallest_that_is_allowed() -> None:
    for branching in (2, 5, 7, 12, 20):
        with pytest.raises(InvalidInput) as refused:
            ladder(triplets=1, branching=branching)
        least = int(str(refused.value).split("Ask for ")[1].split()[0])
        world = ladder(triplets=least, branching=branching)
        assert exact.solve(world).value > exact.fallback_value(world)
