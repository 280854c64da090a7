"""Fast charging in PyBaMM (SPMe with lumped heat, Chen2020): a cell that nobody here wrote.

State: charge and temperature. Limits: the anode's surface potential must stay above 0 V (below it lithium plates), the
voltage below 4.2 V, the temperature below 45 °C (known). Fallback: C/5. Run it in an environment of its own:
``make cases``; it writes ``cases/charging.json``, which the page and the tests read.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf

SECONDS, AMPERE_HOURS, AMBIENT = 180.0, 5.0, 25.0
RATES = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
KNOTS = [0.2, 0.35, 0.5, 0.65, 0.8]
RESULT = Path(__file__).with_suffix(".json")


def warms(h: int, x: Any, rate: float) -> list[Any]:
    """Charge by counting ampere-hours, exact; heat by a data sheet's resistance and cooling."""
    charge, temperature = x
    warmer = temperature - 0.22 * (temperature - AMBIENT) + 0.61 * rate + 2.37 * rate**2
    return [np.minimum(charge + rate * SECONDS / 3600.0, 0.9), warmer]  # at 90 % the charger stops


MEASURES = [
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

    def step(self, h: int, x: Any, rate: float, rng: np.random.Generator) -> tuple[list[float], list[float]]:
        if h == 0:
            self._simulation._solution = None
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


def fitted_error(plant: sf.Plant, rows: list[tuple[int, Any, float, list[float]]]) -> list[float]:
    """What the best coefficients leave, per limit: a measure of how far two numbers are from the cell's whole state."""
    x = np.array([plant.measures.one(h, np.array(s), u) for h, s, u, _ in rows])
    y = np.array([cost for *_, cost in rows])
    return [float(np.abs(x @ np.linalg.lstsq(x, y[:, j], rcond=None)[0] - y[:, j]).max()) for j in range(y.shape[1])]


def characterise(cell: Cell, plant: sf.Plant, episodes: int, rates: list[float]) -> list[Any]:
    """Charges with rates that change now and then, as a type test would have them."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(episodes):
        x, rate = [0.2, AMBIENT], rates[0]
        for h in range(plant.horizon - 1):
            if rng.random() < 0.4:
                rate = float(rng.choice(rates))
            after, cost = cell.step(h, x, rate, rng)
            rows.append((h, x, rate, cost))
            x = after
    return rows


def main(episodes: int) -> dict[str, Any]:
    cell, began = Cell(), time.perf_counter()
    blank = charging(0.0, 0.0)
    errors = {
        "fallback": fitted_error(blank, characterise(cell, blank, 2, [0.2])),
        "all rates": fitted_error(blank, characterise(cell, blank, 30, RATES)),
    }
    declared = [1.2 * error for error in errors["all rates"]]
    plant = charging(*declared)
    truth = plant.simulate(cell.step)
    found: dict[str, Any] = {"episodes": episodes, "errors": errors, "declared": declared, "check": str(plant.check())}
    agent = sf.PlantAgent(plant, failure_probability=0.05)
    players: dict[str, Any] = {"fallback C/5": plant.fallback, "1C": lambda h, x: 1.0, "2C": lambda h, x: 2.0}
    for name, player in {**players, "learner": agent}.items():
        run = sf.run(player, truth, episodes if player is agent else 2, 0)
        found[name] = {
            "charge at the end": float(run.paths[-1][-1, 0]),
            "reward": run.reward.tolist() if player is agent else float(run.reward.mean()),
            "violations": int(run.violations.sum()),
            "steps": int(run.episodes * (plant.horizon - 1)),
            "anode_margin_mV": 100.0 * float(run.margin[:, 0].min()),
            "voltage_margin_mV": 1000.0 * float(run.margin[:, 1].min()),
            "inputs": list(map(float, run.played[-1])),
            "path": np.round(run.paths[-1], 4).tolist(),
        }
    found["certified"] = [int(blank.problem.graph.layers[0].n_pairs), agent.plan.n_certified()]
    found["seconds"] = time.perf_counter() - began
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=300)
    result = main(parser.parse_args().episodes)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({k: v for k, v in result.items() if k != "learner"}, indent=1)[:1500])
    print({k: v for k, v in result["learner"].items() if k not in ("reward", "path")})
