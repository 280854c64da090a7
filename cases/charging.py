"""Fast charging in PyBaMM (SPMe with lumped heat, Chen2020): a cell model that is not ours.

State: charge and temperature. Limits: the anode's surface potential must stay above 0 V (below it lithium plates), the
voltage below 4.2 V, the temperature below 45 °C (known). Fallback: C/5. Run it in its own environment:
``make cases``; it writes ``cases/charging.json``, which the page and the tests read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf

SECONDS, AMPERE_HOURS, AMBIENT = 180.0, 5.0, 25.0
RATES = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
KNOTS = [0.2, 0.35, 0.5, 0.65, 0.8]
EPISODES = 100


def warms(h: int, x: Any, rate: float) -> list[Any]:
    """Charge by counting ampere-hours, exact; heat by a data sheet's resistance and cooling."""
    charge, temperature = x
    warmer = temperature - 0.22 * (temperature - AMBIENT) + 0.61 * rate + 2.37 * rate**2
    return [np.minimum(charge + rate * SECONDS / 3600.0, 0.9), warmer]  # at 90 % the charger stops


MEASURES: list[Any] = [
    sf.hat("charge", KNOTS),
    sf.hat("charge", KNOTS) * (lambda h, x, rate: rate),
    lambda h, x, rate: (x[1] - AMBIENT) / 20.0,
    lambda h, x, rate: rate * (x[1] - AMBIENT) / 20.0,
]


def charging(anode_error: float, voltage_error: float) -> sf.Plant:
    """What is declared. Units of the costs: 0.1 V of anode potential below 0, volts above 3.7."""
    open_circuit, slope = [(-3.0, 0.0)] * 5, [(0.0, 3.0)] * 5
    voltage, resistance = [(-0.2, 0.6)] * 5, [(0.0, 0.6)] * 5
    warm = [(-1.0, 1.0), (-2.0, 1.0)]
    return sf.Plant(
        state={"charge": [0.2, 0.275, 0.35, 0.425, 0.5, 0.575, 0.65, 0.725, 0.8, 0.9], "temperature": (24.0, 46.0, 11)},
        inputs={"rate": RATES},
        horizon=13,
        start={"charge": 0.2, "temperature": AMBIENT},
        models=[warms],
        disturbance={"temperature": 0.3},
        measures=MEASURES,
        limits=[
            sf.Limit(
                "plating", bound=0.0, noise=0.02, prior=[*open_circuit, *slope, *warm], misspecification=anode_error
            ),
            sf.Limit(
                "voltage", bound=0.5, noise=0.002, prior=[*voltage, *resistance, *warm], misspecification=voltage_error
            ),
        ],
        reward=lambda h, x, rate: rate,
        fallback=0.2,
        forbidden={"temperature": (45.0, None)},
        same_at_every_step=True,
    )


class Cell:
    """PyBaMM's cell, from 20 % charge at the first step of every episode. It remembers what two numbers cannot say."""

    def __init__(self) -> None:
        import pybamm

        pybamm.set_logging_level("ERROR")
        values = pybamm.ParameterValues("Chen2020")
        values["Current function [A]"] = "[input]"
        values["Upper voltage cut-off [V]"] = 5.0  # the limit is ours to keep
        self._simulation = pybamm.Simulation(pybamm.lithium_ion.SPMe({"thermal": "lumped"}), parameter_values=values)
        self._simulation.build(initial_soc=0.2, inputs={"Current function [A]": -1.0})

    def reset(self, rng: np.random.Generator) -> list[float]:
        self._simulation._solution = None
        return [0.2, AMBIENT]

    def step(self, h: int, x: Any, rate: float, rng: np.random.Generator) -> tuple[list[float], list[float]]:
        solved = self._simulation.step(
            SECONDS,
            t_eval=np.linspace(0, SECONDS, 7),
            save=False,
            inputs={"Current function [A]": -AMPERE_HOURS * rate},
        )
        anode = solved["Negative electrode surface potential difference at separator interface [V]"].entries[-6:].min()
        voltage = solved["Terminal voltage [V]"].entries[-6:].max()
        temperature = solved["X-averaged cell temperature [K]"].entries[-1] - 273.15
        return [x[0] + rate * SECONDS / 3600.0, float(temperature)], [-10.0 * float(anode), float(voltage) - 3.7]


def fitted_error(plant: sf.Plant, rows: list[dict[str, Any]]) -> list[float]:
    """What the best coefficients leave, per limit: a measure of how far two numbers are from the cell's whole state."""
    x = np.array([plant.features(row["step"], row["state"], row["action"]) for row in rows])
    y = np.array([row["cost"] for row in rows])
    return [float(np.abs(x @ np.linalg.lstsq(x, y[:, j], rcond=None)[0] - y[:, j]).max()) for j in range(y.shape[1])]


def changing(seed: int) -> Any:
    """Rates that change now and then, as a type test would have them."""
    rng, rate = np.random.default_rng(seed), [RATES[0]]

    def chosen(h: int, x: Any) -> float:
        if h == 0 or rng.random() < 0.4:
            rate[0] = float(rng.choice(RATES))
        return rate[0]

    return chosen


def main(seed: int, episodes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Calibrate, declare, check, and play everyone."""
    cell, blank = Cell(), charging(0.0, 0.0)
    bench = blank.simulate(cell.step, reset=cell.reset, noise=False)
    logs = {
        "fallback": bench.log(blank.fallback, 2, seed + 1000),
        "all rates": bench.log(changing(seed), 30, seed + 1000),
    }
    errors = {name: fitted_error(blank, rows) for name, rows in logs.items()}
    seen = {name: sf.calibrate(blank, rows).disturbance for name, rows in logs.items()}
    declared = [1.2 * error for error in errors["all rates"]]
    plant = charging(*declared)
    truth, agent = plant.simulate(cell.step, reset=cell.reset), sf.PlantAgent(plant, failure_probability=0.05)
    found: dict[str, Any] = {"errors": errors, "declared": declared, "seen": seen, "check": str(plant.check())}
    players = {"fallback C/5": plant.fallback, "1C": lambda h, x: 1.0, "2C": lambda h, x: 2.0}
    found["players"] = {name: sf.run(player, truth, 2, seed).to_dict() for name, player in players.items()}
    run = sf.run(agent, truth, episodes, seed)
    found["players"]["learner"] = run.to_dict()
    return found, {"charging": sf.draw(plant, agent.plan, paths=run.paths[-1:])}
