"""An exothermic reactor: pcgym's stirred tank (the model is not ours), which runs away if it gets too hot.

State: concentration and temperature. Input: the coolant's temperature. Limit: the heat of reaction, measured by
calorimetry, must not exceed what the jacket can remove; above it no cooling helps. The temperature must stay below
350 K (known). Fallback: the coldest coolant of the published environment. Run it in its own environment:
``make cases``; it writes ``cases/reactor.json``, which the page and the tests read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf

MINUTES, STEPS = 0.1, 40
FLOW, FEED, INLET = 1.0, 1.0, 350.0  # per minute; mol/l; K
EXCHANGE, HEAT = 5e4 / (1000 * 0.239 * 100), 5e4 / (1000 * 0.239)  # UA/ρcV per minute; K per mol/l
COOLANT = [295.0, 297.0, 299.0, 301.0, 303.0, 305.0, 307.0]
EDGES = np.linspace(305.0, 350.0, 46)  # of the cells of temperature
SET_POINT = 0.72  # mol/l, for the published controller: near the conversion that the heat limit allows
SHEET = {"concentration": 0.002, "temperature": 0.65}  # per step: 5 % of the reaction at the limit, 3 % of the jacket
BOUND = 80.0  # K/min
EPISODES = 150


def rate(temperature: Any) -> Any:
    """The data sheet's rate constant, per minute."""
    return 7.2e10 * np.exp(-8750.0 / temperature)


def balances(h: int, x: Any, coolant: float) -> list[Any]:
    """The balances of mass and energy, in two steps of Heun's rule; rates as the data sheet has them."""
    c, t = x
    for _ in range(2):
        c1, t1 = _slope(c, t, coolant)
        c2, t2 = _slope(c + 0.5 * MINUTES * c1, t + 0.5 * MINUTES * t1, coolant)
        c, t = c + 0.25 * MINUTES * (c1 + c2), t + 0.25 * MINUTES * (t1 + t2)
    return [c, t]


def _slope(c: Any, t: Any, coolant: float) -> tuple[Any, Any]:
    reacts = rate(t) * c
    return FLOW * (FEED - c) - reacts, FLOW * (INLET - t) + HEAT * reacts + EXCHANGE * (coolant - t)


def heat_features(h: int, x: Any, coolant: float) -> list[Any]:
    """The data sheet's heat of reaction, K/min, and the same times the distance from 325 K: straight in a cell."""
    c, t = x
    heat = HEAT * rate(EDGES)
    return [c * np.interp(t, EDGES, heat), c * np.interp(t, EDGES, heat * (EDGES - 325.0) / 20.0)]


def reactor(disturbance: dict[str, float], noise: float, error: float) -> sf.Plant:
    """What is declared."""
    return sf.Plant(
        state={"concentration": (0.6, 1.0, 20), "temperature": EDGES},
        inputs={"coolant": COOLANT},
        horizon=STEPS + 1,
        start={"concentration": (0.92, 0.94), "temperature": (316.0, 319.0)},
        models=[balances],
        disturbance=disturbance,
        measures=heat_features,
        limits=[
            sf.Limit(
                "heat of reaction",
                bound=BOUND,
                noise=noise,
                prior=[(0.7, 1.3), (-0.3, 0.3)],  # the activity, and how it may change over 20 K
                misspecification=error,
            )
        ],
        reward=lambda h, x, u: (1.0 - x[0]) / 0.4,
        fallback=295.0,
        same_at_every_step=True,
    )


class Tank:
    """pcgym's reactor. Its catalyst is 3 % more active than the data sheet says, and its jacket 2 % fouled."""

    def __init__(self) -> None:
        from pcgym import make_env
        from pcgym.model_classes import cstr

        self.env = make_env(published(custom_model=cstr(k0=1.03 * 7.2e10, UA=0.98 * 5e4)))
        self.env.reset()

    def step(self, h: int, x: Any, coolant: float, rng: np.random.Generator) -> tuple[Any, float]:
        env = self.env
        model, env.t, env.state[:2] = env.model, 0, x
        reacts = model.q / model.V * (model.Caf - x[0]) - float(model(np.asarray(x), np.array([[coolant]]))[0].item())
        heat = -model.deltaHr / (model.rho * model.C) * reacts
        env.step(np.array([coolant]))
        return env.state[:2].copy(), heat


def published(**changes: Any) -> dict[str, Any]:
    """The environment's parameters, as its documentation has them but for the steps, the inputs and the set point."""
    return {
        "model": "cstr",
        "N": STEPS,
        "tsim": STEPS * MINUTES,
        "SP": {"Ca": [SET_POINT] * STEPS},
        "x0": np.array([0.93, 317.5, SET_POINT]),
        "a_space": {"low": np.array([COOLANT[0]]), "high": np.array([COOLANT[-1]])},
        "o_space": {"low": np.array([0.0, 300.0, 0.0]), "high": np.array([1.0, 500.0, 1.0])},
        "normalise_a": False,
        "normalise_o": False,
        "integration_method": "casadi",
        **changes,
    }


class Predictive:
    """pcgym's own controller, a nonlinear MPC with the data sheet's model, on the true plant."""

    def __init__(self, **changes: Any) -> None:
        from pcgym import make_env
        from pcgym.oracle import oracle

        changes |= {"done_on_cons_vio": False, "r_penalty": False}
        self._mpc, _ = oracle(make_env, published(**changes), {"N": 10}).setup_mpc()
        given = self._mpc.p_fun  # it wants the time as a number, and is given an array of one
        self._mpc.p_fun = lambda t: given(float(np.ravel(t)[0]))

    def __call__(self, h: int, x: Any) -> float:
        if h == 0:
            self._mpc.reset_history()
            self._mpc.x0 = x
            self._mpc.set_initial_guess()
        return float(self._mpc.make_step(np.asarray(x).reshape(-1, 1)).item())


def drawn(seed: int) -> Any:
    """Coolant at random, another one at every step."""
    rng = np.random.default_rng(seed)
    return lambda h, x: float(rng.choice(COOLANT))


def bend() -> float:
    """By how much lines between the edges miss the data sheet's heat of reaction, at 1 mol/l, up to the limit."""
    t = np.linspace(EDGES[0], EDGES[-1], 4001)
    heat = HEAT * rate(t)
    return float(np.abs(np.interp(t, EDGES, HEAT * rate(EDGES)) - heat)[heat <= 1.1 * BOUND].max())


def main(seed: int, episodes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Calibrate, declare, check, and play everyone on the same starts."""
    tank, error = Tank(), 1.2 * bend()
    blank = reactor(SHEET, 1.0, error)
    logged = {"fallback": blank.fallback, "random coolant": drawn(seed + 1)}
    seen = {
        name: sf.calibrate(blank, blank.simulate(tank.step).log(by, 20, seed + 1000)) for name, by in logged.items()
    }
    noise = seen["fallback"].limits[0].noise
    assert noise is not None
    plant = reactor(SHEET, noise, error)
    truth, agent = plant.simulate(tank.step), sf.PlantAgent(plant, failure_probability=0.05)
    found: dict[str, Any] = {
        "declared": {"disturbance": SHEET, "noise": noise, "misspecification": error},
        "seen": {name: {"disturbance": each.disturbance, "errors": each.errors} for name, each in seen.items()},
        "check": str(plant.check()),
    }
    players = {
        "fallback": plant.fallback,
        "random coolant": drawn(seed),
        "published MPC": Predictive(),
        "published MPC, at most 338 K": Predictive(constraints={"T": [338.0]}, cons_type={"T": ["<="]}),
    }
    found["players"] = {name: sf.run(player, truth, 50, seed).to_dict() for name, player in players.items()}
    run = sf.run(agent, truth, episodes, seed)
    found["players"]["learner"] = run.to_dict()
    found["best"] = best_by_cells(plant, agent.plan)
    steps = [0, 4, 12, STEPS - 1]
    figure = sf.draw(plant, agent.plan, steps=steps, paths=run.paths[-1:])
    return found, {"reactor": figure}


def best_by_cells(plant: sf.Plant, plan: Any) -> dict[str, Any]:
    """With the true activity: what the best policy by whole cells earns, how many pairs are safe, how many of these are
    certified, and how many cells have no safe input at the first step although they break no limit themselves."""
    world = sf.World(plant.problem, transition=[1.0], cost=[[1.03, 0.0]])
    states, pairs = sf.exact.safe_sets(world)
    heat = plant.problem.graph.layers[0].cost_features @ np.array([1.03, 0.0])
    cool = np.maximum.reduceat(heat, plant.problem.graph.layers[0].row_ptr[:-1])[:-1].reshape(-1, len(COOLANT))[:, 0]
    lost = ~states[0][:-1] & (cool <= BOUND)
    certified = sum(int((a & b).sum()) for a, b in zip(plan.certified_sets.pairs, pairs, strict=True))
    return {
        "value": sf.exact.solve(world).value,
        "safe pairs": sum(int(each.sum()) for each in pairs),
        "of them certified": certified,
        "cells": plant.cells.number,
        "cells that no cooling saves": int(lost.sum()),
    }
