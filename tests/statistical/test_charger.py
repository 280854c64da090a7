"""The charger of the examples: coarse cells lose little when their corners decide, and nothing at the exact state."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf

EPISODES = 300  # benchmarks/bench_plants.py plays 1,000


def example() -> Any:
    path = Path(__file__).parents[2] / "examples" / "charger.py"
    spec = importlib.util.spec_from_file_location("charger", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best_of_grid(charger: Any, cells: int, episodes: int, seed: int) -> float:
    """What the best safe policy of a grid, under the true parameters, earns on the continuous plant."""
    plant = charger.charger(cells)
    world = sf.World(plant.problem, transition=[1.0], cost=[charger.STRESS])
    policy = sf.exact.solve(world).policy

    def play(h: int, x: Any) -> Any:
        return plant.inputs.values[policy.action(h, plant.cell(x))]

    run = sf.run(play, plant.simulate(charger.truth), episodes, seed)
    assert int(run.violations.sum()) == 0
    return float(run.reward.mean())


@pytest.mark.statistical
def test_ten_by_ten_cells_certify_what_is_safe_and_earn_what_a_finer_grid_does(seed: int) -> None:
    charger = example()
    plant = charger.charger(10)
    agent = sf.PlantAgent(plant)
    run = sf.run(agent, plant.simulate(charger.truth), EPISODES, seed)
    assert int(run.violations.sum()) == 0
    world = sf.World(plant.problem, transition=[1.0], cost=[charger.STRESS])
    _, safe = sf.exact.safe_sets(world)
    found = sum(int((mine & true).sum()) for mine, true in zip(agent.plan.certified_sets.pairs, safe, strict=True))
    assert found >= 0.97 * sum(int(true.sum()) for true in safe)
    assert run.last_reward(100) >= 0.93 * best_of_grid(charger, 24, 50, seed)  # still exploring; cells alone: 0.93
    assert run.by_point[-100:].sum() > 0  # it is the exact state that makes up for coarse cells
    assert np.isfinite(run.margin).all()
