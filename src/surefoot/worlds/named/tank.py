"""A plant to try things on: a tank that leaks, fills and foams, with its simulator (docs/plants.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.model.arrays import FloatArray
from surefoot.model.limit import Limit
from surefoot.model.plant.plant import Plant
from surefoot.model.plant.simulation import Simulation
from surefoot.worlds.world import World

_SPILL = 0.01  # by how much the level may differ from the model's
FOAM = (0.1, 0.4, 1.0)  # γ: at rest, by level, by flow


def tank(cells: int = 10, horizon: int = 9) -> Simulation:
    """A tank with its truth. How it fills is known; how much it foams, at most 0.6, is learned.

    Args:
        cells: of the level, between 0 and 1.
        horizon: H; the flow is chosen at steps 0 … H-2.

    Examples:
        >>> truth = sf.worlds.tank()
        >>> truth.plant
        Plant(level: 10 cells, 4 inputs, horizon=9)
        >>> run = sf.run(sf.PlantAgent(truth.plant), truth, episodes=50, seed=0)
        >>> int(run.violations.sum()), bool(run.last_reward(10) > 1.5 * run.reward[0])
        (0, True)
    """
    plant = Plant(
        state={"level": (0.0, 1.0, cells)},
        inputs={"flow": [0.05, 0.1, 0.15, 0.2]},
        horizon=horizon,
        start=[0.45],
        models=[_fills],
        disturbance=[_SPILL],
        measures=lambda h, x, u: [1.0, x[0], u],
        limits=[Limit("foam", bound=0.6, noise=0.05, norm=1.1)],
        reward=lambda h, x, u: 5 * u,
        fallback=0.1,
        same_at_every_step=True,
    )
    return simulated(plant, lambda h, x, u, rng: _fills(h, x, u) + rng.uniform(-_SPILL, _SPILL), [1.0], FOAM)


def simulated(plant: Plant, step: Callable[..., Any], transition: ArrayLike, cost: ArrayLike) -> Simulation:
    """A plant with a truth that its declaration allows: any other is refused, by the rules of a World.

    Args:
        plant: the plant.
        step: ``step(h, x, u, rng)`` gives the next state.
        transition: μ, how likely each model is.
        cost: γ; the true costs are ⟨γ, features⟩ at the exact state.
    """
    truth = World(plant.problem, transition, cost)

    def lived(h: int, x: Any, u: Any, rng: np.random.Generator) -> tuple[Any, FloatArray]:
        after = step(h, x, u, rng)
        return after, truth.cost_parameters[h] @ plant.features(h, x, u, after)

    return plant.simulate(lived)


def _fills(h: int, x: Any, u: float) -> Any:
    return 0.75 * x + u
