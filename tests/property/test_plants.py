"""What a plant's cells and corners promise holds at every point: in boxes, bounds and certificates."""

from __future__ import annotations

import numpy as np
import pytest

import surefoot as sf
from surefoot.plan.centres import CentreValues
from surefoot.plan.point import at_point
from tests.plants import RandomPlant, random_plant

DIMS = (1, 2, 3)


def learned(world: RandomPlant, seed: int, episodes: int = 40) -> sf.PlantAgent:
    agent = sf.PlantAgent(world.plant)
    sf.run(agent, world.plant.simulate(world.step), episodes, seed)
    return agent


def points(world: RandomPlant, rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, dim) anywhere in the box, some of them on edges of cells."""
    cells = world.plant.cells
    x = rng.uniform(-1.0, 1.0, (n, cells.dim))
    for d, edge in enumerate(cells.edges):
        at = rng.random(n) < 0.2
        x[at, d] = rng.choice(edge, at.sum())
    return x


@pytest.mark.parametrize("dim", DIMS)
def test_the_corners_bound_every_point_of_their_cell(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = random_plant(rng, dim)
    plan, plant = learned(world, seed).plan, world.plant
    layer = plant.problem.graph.layers[0]
    for x in points(world, rng, 60):
        for number, u in enumerate(plant.inputs.values):
            pair = plant.cell(x) * len(plant.inputs) + number
            rows = slice(layer.row_ptr[pair], layer.row_ptr[pair + 1])
            upper, lower = plan.bounds.at(0, plant.features(0, x, u)[None])
            assert (upper[0] <= plan.bounds.upper[0][rows].max(axis=0) + 1e-12).all()
            assert (lower[0] >= plan.bounds.lower[0][rows].min(axis=0) - 1e-12).all()


@pytest.mark.parametrize("dim", DIMS)
def test_every_next_state_lies_in_a_declared_successor(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = random_plant(rng, dim)
    plant = world.plant
    for x in points(world, rng, 200):
        number = int(rng.integers(len(plant.inputs)))
        after, _ = world.step(0, x, plant.inputs.values[number], rng)
        declared = plant.problem.successors(0, plant.cell(x), number)
        assert plant.cell(after) in declared
        assert set(plant.next_cells(0, x, plant.inputs.values[number]).tolist()) <= set(declared)
        assert plant.may_follow(0, x, plant.inputs.values[number], after)
    assert not plant.check(2_000, seed).refuted


@pytest.mark.parametrize("dim", DIMS)
def test_a_point_is_never_certified_less_than_its_cell_and_never_wrongly(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = random_plant(rng, dim)
    agent, plant = learned(world, seed), world.plant
    plan, values = agent.plan, CentreValues(world.plant).of(agent.plan)
    assert world.event(plan)  # fails with a probability of 5 % at most; by far less, as bounds are wide
    bound = plant.limits[0].bound
    possible = _not_excluded(plan, world, rng)
    more = 0
    for x in points(world, rng, 100):
        h = int(rng.integers(plant.horizon - 1))
        point = at_point(plant, plan, values, h, x)
        fallback = np.array(plant.inputs.values) == 0.0
        assert (point.proved | ~point.whole_cell | fallback).all()
        more += int((point.certified & ~point.whole_cell).sum())
        for number in np.flatnonzero(point.proved):
            costs = possible @ plant.features(h, x, plant.inputs.values[number])
            assert costs.max() <= bound + 1e-9
            assert plan.certified_sets.states[h + 1][point.next_cells(int(number))].all()


def _not_excluded(plan: sf.Plan, world: RandomPlant, rng: np.random.Generator) -> np.ndarray:
    """(k, dc) parameters that the data do not exclude: the true one, and others in the confidence set around it."""
    true = world.cost[0]
    directions = rng.standard_normal((50, len(true)))
    found = [true]
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        upper = plan.bounds.at(0, direction[None])[0][0, 0]
        # The largest step along the direction that stays in the ball and below every bound of a grid of directions.
        for step in np.linspace(0.0, max(upper - float(direction @ true), 0.0), 8):
            candidate = true + step * direction
            bounds, lows = plan.bounds.at(0, directions)
            inside = (directions @ candidate <= bounds[:, 0]).all() and (directions @ candidate >= lows[:, 0]).all()
            if np.linalg.norm(candidate) <= 1.0 and inside and _in_ellipsoids(candidate, plan):
                found.append(candidate)
    return np.array(found)


def _in_ellipsoids(gamma: np.ndarray, plan: sf.Plan) -> bool:
    families = plan.bounds.known[0]
    assert families is not None
    (known,) = families
    turned = known.basis.turn(gamma)
    for k in range(known.radii.shape[0]):
        gap = turned - known.centres[k, 0]
        weight = known.weights[known.shape[k, 0]]
        if (gap * gap / weight).sum() > known.radii[k, 0] ** 2:
            return False
    return True
