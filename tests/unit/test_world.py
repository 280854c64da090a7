"""The truth: hand-computed tables, every refusal, and the exact order of draws."""

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from surefoot.errors import InvalidInput, UnknownLabel
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.streams import stream
from surefoot.worlds.world import World

MU = [0.75, 0.25]
GAMMA = [[0.25, 0.5], [0.5, -0.25]]
LIMITS = (
    Limit("heat", bound=1.0, noise=0.5, norm=1.0),
    Limit("wear", bound=1.0, noise=0.25, norm=1.0),
)


def tiny(**changes: Any) -> Problem:
    """Three layers. `go` leads to 'up' with ⟨μ, (1, 0)⟩ and to 'down' with ⟨μ, (0, 1)⟩; `stay` to 'up'."""
    declared: dict[str, Any] = {
        "horizon": 3,
        "start": ["up", "down"],
        "actions": lambda h, s: ["stay", "go"],
        "successors": lambda h, s, a: ["up"] if a == "stay" else ["up", "down"],
        "reward": lambda h, s, a: 0.5,
        "cost_features": lambda h, s, a, s2: [1.0, float(s2 == "down")],
        "transition_features": lambda h, s, a, s2: (
            [1.0, 1.0] if a == "stay" else [float(s2 == "up"), float(s2 == "down")]
        ),
        "terminal_reward": lambda s: 0.25,
        "terminal_cost_features": lambda s: [0.0, 1.0] if s == "up" else None,
        "fallback": lambda h, s: "stay",
        "anchor": lambda h: ([1.0, 0.0], [0.25, 0.5]),
        "limits": list(LIMITS),
    }
    return Problem.from_functions(**{**declared, **changes})


def refused(*words: str, **changes: Any) -> None:
    """Build a world with changes to the truth (mu, gamma, …) or the problem, and read the refusal."""
    truth = {"transition": MU, "cost": GAMMA}
    for name in ("transition", "cost", "noise", "deviation"):
        if name in changes:
            truth[name] = changes.pop(name)
    with pytest.raises(InvalidInput) as error:
        World(tiny(**changes), **truth)
    for word in words:
        assert word in str(error.value)


# ---------------------------------------------------------------- tables


def test_probabilities_and_costs_by_hand() -> None:
    world = World(tiny(), transition=MU, cost=GAMMA)
    # Edges of 'up', then of 'down': stay → up, go → up, go → down.
    for h in (0, 1):
        assert world.probabilities[h].tolist() == [1.0, 0.75, 0.25] * 2
        assert world.cumulative[h].tolist() == [1.0, 0.75, 1.0] * 2
        assert world.costs[h].tolist() == [[0.25, 0.5], [0.25, 0.5], [0.75, 0.25]] * 2
    assert world.terminal_costs is not None
    assert world.terminal_costs.tolist() == [[0.5, -0.25], [-math.inf, -math.inf]]
    assert world.transition.shape == (2, 2)
    assert world.cost_parameters.shape == (3, 2, 2)
    assert world.noise == "gaussian"
    assert world.misspecified_beyond_declaration is False


def test_without_terminal_costs() -> None:
    world = World(tiny(terminal_cost_features=None), transition=MU, cost=GAMMA)
    assert world.terminal_costs is None
    with pytest.raises(UnknownLabel, match="no terminal cost: step 2, state 'up'"):
        world.sampler(0).measure_terminal(0)


def test_rounding_is_cleaned() -> None:
    # ⟨μ, φ⟩ is -1e-13, 1 and 1e-13: the first becomes zero, the rest sums to one again.
    rows = {"a": [-1e-13, 0.0], "b": [1.0, 0.0], "c": [1e-13, 0.0]}
    problem = tiny(
        successors=lambda h, s, a: ["a", "b", "c"],
        transition_features=lambda h, s, a, s2: rows[s2],
        terminal_cost_features=None,
        start="b",
    )
    p = World(problem, transition=[1.0, 0.0], cost=GAMMA).probabilities[0][:3]
    assert p[0] == 0.0
    assert p.sum() == 1.0


def test_cumulative_never_offers_an_edge_without_probability() -> None:
    # Probabilities 0, 0.1 × 10, 0: ten tenths add up to less than one in floating point.
    labels = list("zabcdefghijy")
    problem = tiny(
        successors=lambda h, s, a: labels,
        transition_features=lambda h, s, a, s2: [float(s2 not in "zy"), 0.0],
        terminal_cost_features=None,
        start="z",
    )
    world = World(problem, transition=[0.1, 0.0], cost=GAMMA)
    row = world.cumulative[0][:12]
    assert row[0] == 0.0
    assert (row[10], row[11]) == (1.0, 1.0)
    assert (np.diff(row) >= 0).all()
    largest = np.nextafter(1.0, 0.0)
    assert np.searchsorted(row, 0.0, side="right") == 1
    assert np.searchsorted(row, largest, side="right") == 10


def template(horizon: int) -> Problem:
    """One layer's arrays shared by all layers: two states, one action, both successors."""
    return Problem.from_arrays(
        horizon=horizon,
        start=0,
        state_ptr=np.array([0, 1, 2]),
        pair_ptr=np.array([0, 2, 4]),
        successors=np.array([0, 1, 0, 1]),
        reward=np.zeros(2),
        cost_features=np.array([[1.0], [0.5], [1.0], [0.5]]),
        transition_features=np.array([[1.0, 0.0], [0.0, 1.0]] * 2),
        fallback=np.array([0, 0]),
        limits=Limit("only", bound=1.0, noise=0.1, norm=1.0),
    )


def test_same_features_and_parameters_share_tables() -> None:
    world = World(template(4), transition=MU, cost=[0.5])
    for tables in (world.probabilities, world.cumulative, world.costs):
        assert all(table is tables[0] for table in tables)
    world = World(template(4), transition=[MU, [0.5, 0.5], MU], cost=[0.5])
    assert world.probabilities[2] is world.probabilities[0]
    assert world.probabilities[1] is not world.probabilities[0]
    extra = np.zeros((4, 1))
    deviating = World(template(4), MU, [0.5], deviation=[extra, extra, extra])
    assert deviating.costs[2] is deviating.costs[0]


def test_a_world_is_immutable() -> None:
    world = World(tiny(), transition=MU, cost=GAMMA)
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.noise = "uniform"  # type: ignore[misc]
    assert world.terminal_costs is not None
    arrays = (world.transition, world.cost_parameters, world.terminal_costs, *world.costs)
    for array in (*arrays, *world.probabilities, *world.cumulative):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_importing_brings_no_more_than_is_needed() -> None:
    """The start stays light: heavy libraries come with what needs them, and not before."""
    program = """
import sys
def without(*names):
    assert not set(names) & set(sys.modules), names
import surefoot as sf
without("numpy", "gymnasium")
import surefoot.model.problem
without("scipy.sparse")
import surefoot.exact
without("numba")
from surefoot.worlds.named import power
sf.World, sf.worlds.names(), sf.worlds.make("thermal/testing")
without("gymnasium", "matplotlib", "pandapower", "pandas")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ---------------------------------------------------------------- deviation


def deviation(size: float) -> list[np.ndarray]:
    return [np.full((6, 2), size), np.full((6, 2), -size), np.full((2, 2), size)]


def test_deviation_is_added_everywhere() -> None:
    world = World(tiny(), MU, GAMMA, deviation=deviation(0.125))
    assert world.costs[0][2].tolist() == [0.875, 0.375]
    assert world.costs[1][2].tolist() == [0.625, 0.125]
    assert world.terminal_costs is not None
    assert world.terminal_costs.tolist() == [[0.625, -0.125], [-math.inf, -math.inf]]
    assert World(tiny(), MU, GAMMA, deviation=deviation(0.125)[:2]).costs[0][2, 0] == 0.875


@pytest.mark.parametrize(("declared", "beyond"), [(0.125, False), (0.0625, True)])
def test_deviation_beyond_its_declaration_is_said(declared: float, beyond: bool) -> None:
    limits = [dataclasses.replace(limit, misspecification=declared) for limit in LIMITS]
    world = World(tiny(limits=limits), MU, GAMMA, deviation=deviation(0.125))
    assert world.misspecified_beyond_declaration is beyond


def test_deviation_of_the_wrong_shape() -> None:
    refused("deviation has the wrong number of steps", "1 arrays", deviation=[np.zeros((6, 2))])
    wrong = [np.zeros((6, 2)), np.zeros((5, 2))]
    refused("deviations of step 1 have the wrong shape", "(5, 2)", "(6, 2)", deviation=wrong)
    refused("deviations of step 0 are not finite", deviation=[np.full((6, 2), np.nan)] * 2)


# ---------------------------------------------------------------- refusals


def test_parameters_of_the_wrong_shape_or_kind() -> None:
    refused("transition parameters have the wrong shape", "(3,)", "(2, 2) or (2,)", transition=[1, 0, 0])
    refused("cost parameters have the wrong shape", "(2,)", "(3, 2, 2) or (2, 2)", cost=[0.1, 0.1])
    refused("transition parameters must be numbers", transition="abc")
    refused("cost parameters must be numbers", cost=[[1, 2], [3]])
    refused("transition parameters are not finite", transition=[np.nan, 1.0])
    refused("cost parameters are not finite", cost=[[np.inf, 0.0], [0.0, 0.0]])


def test_negative_probability() -> None:
    refused(
        "probability is negative: step 0, state 'up', action 'go', successor 'down'",
        "⟨μ, φ⟩ = -0.25",
        transition=[1.25, -0.25],
        transition_norm=2.0,
    )


def test_probabilities_that_miss_one() -> None:
    refused(
        "probabilities do not sum to one over the declared successors: step 1, state 'up', action 'stay'",
        "sum 0.75",
        transition=[MU, [0.5, 0.25]],
    )


def test_parameters_longer_than_declared() -> None:
    refused(
        "transition parameters are longer than declared: step 0",
        "length 0.79",
        "declared 0.5",
        "transition_norm",
        transition_norm=0.5,
    )
    refused(
        "cost parameters are longer than declared: step 1, limit 'wear'",
        "length 1.25",
        "declared 1.0",
        cost=[GAMMA, [[0.25, 0.5], [1.0, 0.75]], GAMMA],
    )


def test_the_last_cost_parameters_count_only_with_a_terminal_cost() -> None:
    gamma = [GAMMA, GAMMA, [[5.0, 5.0], [5.0, 5.0]]]
    refused("longer than declared: step 2, limit 'heat'", cost=gamma)
    World(tiny(terminal_cost_features=None, stationary_costs=True), MU, gamma)


def test_unsafe_fallback() -> None:
    tight = [LIMITS[0], dataclasses.replace(LIMITS[1], bound=0.375)]
    refused(
        "fallback is not safe: step 0, state 'up', action 'stay', successor 'up', limit 'wear'",
        "true cost 0.5, bound 0.375",
        limits=tight,
        anchor=None,
    )
    tight = [dataclasses.replace(LIMITS[0], bound=0.375), LIMITS[1]]
    refused("fallback is not safe: step 2, state 'up', limit 'heat'", "0.5", limits=tight, anchor=None)


def test_fallback_may_have_unsafe_successors_of_probability_zero() -> None:
    declared = {"fallback": lambda h, s: "go", "terminal_cost_features": None}
    tight = [dataclasses.replace(LIMITS[0], bound=0.5), LIMITS[1]]
    refused("fallback is not safe", "action 'go', successor 'down'", limits=tight, **declared)
    World(tiny(limits=tight, **declared), transition=[1.0, 0.0], cost=GAMMA)


def test_fallback_is_checked_wherever_declared_successors_let_it_come() -> None:
    # 'down' has probability zero, yet agents certify the fallback's action there without a test (spec 4).
    def features(h: int, s: str, a: str, s2: str) -> list[float]:
        return [1.0, 2.0 * (s == "down" and h == 1)]

    refused(
        "fallback is not safe: step 1, state 'down', action 'go'",
        transition=[1.0, 0.0],
        cost_features=features,
        fallback=lambda h, s: "go",
        terminal_cost_features=None,
        start="up",
    )


def test_anchor_that_is_not_true() -> None:
    wrong = {"anchor": lambda h: ([1.0, 0.0], [0.25, 0.5 if h < 1 else 0.375])}
    refused("anchor is not true: anchor of step 1, limit 'wear'", "0.375", "true cost 0.5", **wrong)
    limits = [dataclasses.replace(limit, misspecification=0.125) for limit in LIMITS]
    World(tiny(limits=limits, **wrong), MU, GAMMA)  # within what may deviate


def test_parameters_that_differ_although_stationary() -> None:
    refused(
        "transition parameters differ although the problem says stationary_transitions: steps 0 and 1",
        transition=[MU, [0.5, 0.5]],
        stationary_transitions=True,
    )
    gamma = [GAMMA, GAMMA, [[0.25, 0.25], [0.5, 0.0]]]
    refused(
        "cost parameters differ although the problem says stationary_costs: steps 0 and 2",
        cost=gamma,
        stationary_costs=True,
    )


def test_cost_that_overflows() -> None:
    refused(
        "cost feature is too large to be squared: step 0, state 'up', action 'go', successor 'down'",
        cost_features=lambda h, s, a, s2: [1.0, 1e300 if s2 == "down" else 0.0],
        cost=[[0.25, 1e10], [0.5, 0.0]],
        limits=[Limit("heat", bound=1.0, noise=0.1, norm=1e11), LIMITS[1]],
    )
    refused(
        "cost is too large to be squared: limit 'heat'",
        cost_features=lambda h, s, a, s2: [1.0, 1e120 if s2 == "down" else 0.0],
        cost=[[0.25, 1e10], [0.5, 0.0]],
        limits=[Limit("heat", bound=1.0, noise=0.1, norm=1e11), LIMITS[1]],
    )
    refused("longer than declared", "length inf", cost=[[0.25, 1e200], [0.5, 0.0]])


def test_unknown_noise_and_other_arguments() -> None:
    refused("no such noise: 'pink'. Choose from gaussian, uniform, rademacher.", noise="pink")
    with pytest.raises(InvalidInput, match="a world needs a Problem: a dict"):
        World({}, MU, GAMMA)  # type: ignore[arg-type]
    for seed in (-1, 1.5, "x", None, True):
        with pytest.raises(InvalidInput, match="seed must be a whole number"):
            World(tiny(), MU, GAMMA).sampler(seed)  # type: ignore[arg-type]


# ---------------------------------------------------------------- draws

DRAWS: dict[str, Callable[[np.random.Generator, float], float]] = {
    "gaussian": lambda rng, scale: scale * rng.standard_normal(),
    "uniform": lambda rng, scale: (2 * rng.random() - 1) * math.sqrt(3) * scale,
    "rademacher": lambda rng, scale: -scale if rng.random() < 0.5 else scale,
}


@pytest.mark.parametrize("noise", DRAWS)
def test_draws_come_in_the_documented_order(noise: str, seed: int) -> None:
    """Ten episodes drawn once more by hand, from streams of the same names."""
    world = World(tiny(), MU, GAMMA, noise=noise)
    sampler = world.sampler(seed)
    transitions, sensor = stream(seed, "transitions"), stream(seed, "noise")
    graph, draw = world.problem.graph, DRAWS[noise]

    def measured(truth: np.ndarray) -> list[float]:
        return [truth[j] + draw(sensor, limit.noise) for j, limit in enumerate(LIMITS)]

    for _ in range(10):
        state = 0
        for h, layer in enumerate(graph.layers):
            pair = int(layer.state_ptr[state]) + 1  # 'go'
            edge = int(layer.pair_ptr[pair]) + (0 if transitions.random() < 0.75 else 1)
            assert sampler.step(h, pair) == edge
            assert sampler.measure(h, edge).tolist() == measured(world.costs[h][edge])
            state = int(layer.successor[edge])
        if graph.terminal.has_cost[state]:
            assert world.terminal_costs is not None
            assert sampler.measure_terminal(state).tolist() == measured(world.terminal_costs[state])


def test_a_certain_step_draws_too(seed: int) -> None:
    sampler = World(tiny(), MU, GAMMA).sampler(seed)
    sampler.step(0, 0)
    rest = stream(seed, "transitions")
    rest.random()
    assert sampler.state()["transitions"] == rest.bit_generator.state


def test_state_survives_json(seed: int) -> None:
    world = World(tiny(), MU, GAMMA)
    sampler = world.sampler(seed)
    sampler.step(0, 1)
    sampler.measure(0, 1)
    kept = json.loads(json.dumps(sampler.state()))
    later = [(sampler.step(0, 1), sampler.measure(0, 1).tolist()) for _ in range(20)]
    other = world.sampler(seed + 1)
    other.restore(kept)
    assert [(other.step(0, 1), other.measure(0, 1).tolist()) for _ in range(20)] == later


@pytest.mark.parametrize("bad", [{}, {"transitions": 3, "noise": 3}, None])
def test_a_bad_state_changes_nothing(bad: Any, seed: int) -> None:
    sampler = World(tiny(), MU, GAMMA).sampler(seed)
    before = sampler.state()
    half = {"transitions": World(tiny(), MU, GAMMA).sampler(seed + 1).state()["transitions"]}
    for state in (bad, half):
        with pytest.raises(InvalidInput, match="sampler state cannot be restored"):
            sampler.restore(state)
        assert sampler.state() == before
