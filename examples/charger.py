"""Charge a battery as fast as its hidden plating stress and its temperature allow, with a continuous state.

State of charge and temperature, five charging rates, twelve steps of three minutes. It is known, up to half a degree,
that the cell warms with the square of the rate, and that it must stay below 45 °C. How much each rate stresses the
anode at which charge and temperature is learned from noisy measurements, without ever exceeding the limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf

HOURS, AMBIENT = 1 / 20, 25.0
STRESS = np.array([0.0, 0.1, -0.15, 0.25, 0.35])  # the truth, of the measures below; no learner sees it


def heats(h: int, x: Any, rate: float) -> list[Any]:
    charge, temperature = x
    return [np.minimum(charge + HOURS * rate, 1.0), temperature + 0.3 * (AMBIENT - temperature) + 1.8 * rate**2]


def measures(h: int, x: Any, rate: float) -> list[Any]:
    charge, temperature = x
    return [1.0, charge, (temperature - AMBIENT) / 20.0, rate, rate * charge]


def gained(h: int, x: Any, rate: float) -> Any:
    return np.minimum(rate * HOURS, 1.0 - x[0]) / (2 * HOURS)


def charger(cells: int = 10, rates: Any = (0.0, 0.5, 1.0, 1.5, 2.0), rays: bool = False, norm: float = 0.5) -> sf.Plant:
    """With ``rays`` any rate between those given may be chosen: ``charger(rates=[0.0, 0.5, 2.0], rays=True)``."""
    return sf.Plant(
        state={"charge": (0.0, 1.0, cells), "temperature [°C]": (20.0, 50.0, cells)},
        inputs={"rate": list(rates)},
        horizon=13,
        start={"charge": 0.1, "temperature [°C]": 25.0},
        models=[heats],
        disturbance={"temperature [°C]": 0.5},
        measures=measures,
        reward=gained,
        fallback=0.5,
        forbidden={"temperature [°C]": (45.0, None)},
        limits=[sf.Limit("stress", bound=0.6, noise=0.05, norm=norm)],
        same_at_every_step=True,
        rays=rays,
    )


def truth(h: int, x: Any, rate: float, rng: np.random.Generator) -> tuple[Any, float]:
    after = np.array(heats(h, x, rate), float)
    after[1] += rng.uniform(-0.5, 0.5)
    return after, float(STRESS @ np.array(measures(h, x, rate), float))


if __name__ == "__main__":
    plant = charger()
    print(plant.check())
    simulated = plant.simulate(truth)
    players = {"1C": lambda h, x: 1.0, "2C": lambda h, x: 2.0, "surefoot": sf.PlantAgent(plant)}
    runs = sf.compare(simulated, players, episodes=300)
    print(sf.PlantRun.table(runs))
