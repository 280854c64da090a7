"""An office in summer: sustaingym's small office in Tucson, six zones in real weather; the model is not ours.

State: the mean indoor and the outdoor temperature. Input: the cooling power of all zones, hour by hour. Limit: the
hottest zone at the end of the hour, at most 26 °C. Reward: the energy that is saved. Fallback: full cooling. It
plays the even days of July and August; what is declared about the weather comes from the odd ones. Run it in its own
environment: ``make cases``; it writes ``cases/office.json``, which the page and the tests read.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

import surefoot as sf

POWER = 1500  # W per zone: holds the hottest zone at 23 °C when it is 45 °C outside
LEVELS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
JULY, SEPTEMBER, HOURS = 181, 243, 24
STORM = 10.0  # °C: the outdoor temperature may differ so much from its usual change within an hour; monsoon storms do
HOTTEST = 45.0  # °C outside, more than was ever recorded there in these months
EPISODES = 120


def office(drift: list[float], disturbance: dict[str, float], noise: float, error: float) -> sf.Plant:
    """What is declared; ``drift`` is the middle of how the outdoor temperature may change, hour by hour."""

    def warms(h: int, x: Any, power: float) -> list[Any]:
        """A building of one room: it keeps two thirds of its difference per hour, by the data sheet of its walls."""
        indoor, outdoor = x
        later = np.clip(outdoor + drift[h], 12.0 + disturbance["outdoor"], HOTTEST - disturbance["outdoor"])
        return [1.7 + 0.66 * indoor + 0.27 * outdoor - 6.35 * power, later]

    return sf.Plant(
        state={"indoor": (4.0, 38.0, 34), "outdoor": (12.0, HOTTEST, 11)},
        inputs={"power": LEVELS},
        horizon=HOURS + 1,
        start={"indoor": (20.0, 24.0), "outdoor": (18.0, 34.0)},
        models=[warms],
        disturbance=disturbance,
        measures=lambda h, x, power: [1.0, (x[0] - 23.0) / 10.0, (x[1] - 30.0) / 10.0, power],
        limits=[
            sf.Limit(
                "hottest zone",
                bound=26.0,
                noise=noise,
                prior=[(20.0, 30.0), (4.0, 9.0), (1.0, 5.0), (-9.0, -3.0)],
                misspecification=error,
            )
        ],
        reward=lambda h, x, power: 1.0 - power,
        fallback=lambda h, x: 1.0 if x[0] > 16.0 else 0.0,  # full cooling, but for a guard against cold
    )


class Building:
    """sustaingym's building; each episode is a day, from midnight, all zones alike at first."""

    def __init__(self, days: list[int]) -> None:
        from sustaingym.envs.building import BuildingEnv, ParameterGenerator

        with contextlib.redirect_stdout(io.StringIO()):  # it prints its zones
            self.env = BuildingEnv(
                ParameterGenerator("OfficeSmall", "Hot_Dry", "Tucson", time_res=3600, max_power=POWER, episode_len=24)
            )
        self.days = days

    def reset(self, rng: np.random.Generator) -> list[float]:
        env, indoor = self.env, float(rng.uniform(20.0, 24.0))
        env.reset(seed=0, options={"T_initial": np.full(env.n, indoor)})
        env.epoch = 24 * int(rng.choice(self.days))
        return [indoor, float(env.out_temp[env.epoch])]

    def step(self, h: int, x: Any, power: float, rng: np.random.Generator) -> tuple[list[float], float]:
        env = self.env
        env.step(np.full(env.n, -power))
        zones = env.state[: env.n].astype(float)
        return [float(zones.mean()), float(env.out_temp[env.epoch])], float(zones.max())

    def hottest(self) -> float:
        return float(self.env.state[: self.env.n].max())

    def weather(self) -> tuple[list[float], float]:
        """Hour by hour the middle of how the outdoor temperature changed on these days, and how far it was from it."""
        outside = self.env.out_temp
        change = np.array([[outside[24 * day + h + 1] - outside[24 * day + h] for day in self.days] for h in range(24)])
        low, high = change.min(axis=1), change.max(axis=1)
        return (0.5 * (low + high)).tolist(), float((0.5 * (high - low)).max())


def left(plant: sf.Plant, rows: list[dict[str, Any]]) -> float:
    """What the best coefficients leave of the hottest zone: how far two temperatures are from those of six zones."""
    x = np.array([plant.features(row["step"], row["state"], row["action"]) for row in rows])
    y = np.array([row["cost"][0] for row in rows])
    return float(np.abs(x @ np.linalg.lstsq(x, y, rcond=None)[0] - y).max())


def main(seed: int, episodes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Calibrate on the odd days, declare, and play everyone on the same even days."""
    odd, even = (Building([day for day in range(JULY, SEPTEMBER) if day % 2 == part]) for part in (1, 0))
    drift, spread = odd.weather()
    rng, disturbance = np.random.default_rng(seed), {"indoor": 0.8, "outdoor": STORM}
    blank = office(drift, disturbance, 0.2, 1.0)
    records = blank.simulate(odd.step, reset=odd.reset)
    quiet = blank.simulate(odd.step, reset=odd.reset, noise=False)
    logged = {"fallback": blank.fallback, "random power": lambda h, x: float(rng.choice(LEVELS))}
    seen = {name: sf.calibrate(blank, records.log(by, 40, seed + 1000)) for name, by in logged.items()}
    errors = {name: left(blank, quiet.log(by, 40, seed + 2000)) for name, by in logged.items()}
    error = 1.2 * errors["random power"]
    plant = office(drift, disturbance, 0.2, error)
    truth, agent = plant.simulate(even.step, reset=even.reset), sf.PlantAgent(plant, failure_probability=0.05)
    found: dict[str, Any] = {
        "drift": drift,
        "declared": {"disturbance": disturbance, "noise": 0.2, "misspecification": error},
        "spread of the odd days": spread,
        "left": errors,
        "seen": {
            name: {"disturbance": each.disturbance, "noise": each.limits[0].noise, "errors": each.errors}
            for name, each in seen.items()
        },
        "check": str(plant.check()),
    }
    players = {
        "fallback": plant.fallback,
        "thermostat, 24 °C": lambda h, x: float(even.hottest() > 24.0),
        "proportional, 22 … 26 °C": lambda h, x: float(np.clip((even.hottest() - 22.0) / 4.0, 0.0, 1.0)),
        "no cooling": lambda h, x: 0.0,
    }
    found["players"] = {name: sf.run(player, truth, 100, seed).to_dict() for name, player in players.items()}
    run = sf.run(agent, truth, episodes, seed)
    found["players"]["learner"] = run.to_dict()
    figure = sf.draw(plant, agent.plan, steps=[0, 6, 14, 20], paths=run.paths[-1:])
    return found, {"office": figure}
