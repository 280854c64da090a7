"""Plants: how long a million cells take to build and in how much memory, the charger after 1,000 episodes, and a sled
on a track without an end, which grows."""

from __future__ import annotations

import importlib.util
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import show
from surefoot.model.sparse_rows import arrays_of


def cube(cells: int) -> sf.Plant:
    """Three coordinates that relax to the middle, two inputs, four features."""
    return sf.Plant(
        state=dict.fromkeys("abc", (0.0, 1.0, cells)),
        inputs={"u": [0.0, 1.0]},
        horizon=3,
        start=[0.5, 0.5, 0.5],
        models=[lambda h, x, u: [0.5 + 0.9 * (x[0] - 0.5) + 0.02 * u, 0.5 + 0.9 * (x[1] - 0.5), 0.1 + 0.8 * x[2]]],
        disturbance=0.001,
        measures=lambda h, x, u: [1.0, x[0], u, u * x[1]],
        reward=lambda h, x, u: u,
        fallback=0.0,
        limits=[sf.Limit("stress", bound=2.0, noise=0.1, norm=1.0)],
        same_at_every_step=True,
        quadrature=2,
    )


def run(cells: int = 100, episodes: int = 1000, steps: int = 40) -> list[Row]:
    cube(6)  # compile
    began = time.perf_counter()
    plant = cube(cells)
    seconds = time.perf_counter() - began
    own = {id(a): a.nbytes for layer in plant.problem.graph.layers for t in vars(layer).values() for a in arrays_of(t)}
    del plant
    tracemalloc.start()
    cube(cells // 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    number = cells**3
    return [
        row(
            f"a plant of {number:,} cells in three dimensions, seconds to build",
            seconds,
            at_most=60.0,
            megabytes_of_arrays=sum(own.values()) / 1e6,
        ),
        row(
            f"peak memory while {number // 8:,} cells are built, over the arrays they end in",
            peak / (sum(own.values()) / 8),
            at_most=6.0,
        ),
        *charger(episodes),
        *sled(steps, 15_000),
    ]


def bump(place: Any) -> Any:
    return abs(place % 8 - 4) / 4


def sled(horizon: int, most_states: int) -> list[Row]:
    """The plant without an edge of docs/plants.md, with more steps: time to its first input, and its budget."""
    began = time.process_time()
    plant = sf.Plant(
        state={"place": (None, None, 1.0), "speed": (None, None, 0.1)},
        inputs={"push": [0.0, 0.05, 0.1, 0.2, 0.4]},
        horizon=horizon,
        start=[0.5, 0.0],
        models=[lambda h, x, u: [x[0] + x[1], 0.7 * x[1] + u]],
        disturbance=[0.05, 0.02],
        measures=lambda h, x, u: [1.0, x[1], bump(x[0]) * x[1]],
        limits=[sf.Limit("jolt", bound=0.55, noise=0.05, norm=1.0)],
        reward=lambda h, x, u: np.clip(0.1 + 0.6 * x[1], 0, 1),
        fallback=0.0,
        same_at_every_step=True,
        longest_row=50.0,
        most_states=most_states,
    )
    agent, held = sf.PlantAgent(plant), list[int]()
    agent.begin_episode([0.5, 0.0])
    agent.act(0, [0.5, 0.0])
    seconds = time.process_time() - began
    agent.abort_episode()

    def slide(h: int, x: Any, u: float, rng: np.random.Generator) -> Any:
        after = np.array([x[0] + x[1], 0.7 * x[1] + u]) + rng.uniform(-1, 1, 2) * [0.05, 0.02]
        return after, 0.05 + 0.2 * x[1] + 0.5 * bump(x[0]) * x[1]

    def look(plan: Any, episode: int) -> None:
        held.append(plan.problem.graph.n_all_states)

    played = sf.run(agent, plant.simulate(slide), 40, 1, on_plan=look)
    return [
        row(
            f"a sled without an edge, {horizon} steps: processor seconds until its first input",
            seconds,
            at_most=10.0,
            states=held[0],
        ),
        row(
            f"a sled without an edge, {horizon} steps: most states held, of {most_states:,} allowed",
            max(held) / most_states,
            at_most=1.0,
            violations=int(played.violations.sum()),
            reward=[float(played.reward[0]), float(played.last_reward(10))],
            processor_seconds=time.process_time() - began,
        ),
    ]


def charger_example() -> Any:
    """The module ``examples/charger.py``."""
    path = Path(__file__).parents[1] / "examples" / "charger.py"
    spec = importlib.util.spec_from_file_location("charger", path)
    assert spec is not None
    assert spec.loader is not None
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def charger(episodes: int) -> list[Row]:
    """The example at 10 × 10 cells: what is certified of what is safe, and its value beside a grid of 24 × 24."""
    example = charger_example()
    plant, fine = example.charger(10), example.charger(24)
    agent = sf.PlantAgent(plant)
    played = sf.run(agent, plant.simulate(example.truth), episodes, 0)
    _, safe = sf.exact.safe_sets(sf.World(plant.problem, transition=[1.0], cost=[example.STRESS]))
    policy = sf.exact.solve(sf.World(fine.problem, transition=[1.0], cost=[example.STRESS])).policy

    def play(h: int, x: Any) -> Any:
        return fine.inputs.values[policy.action(h, fine.cell(x))]

    best = sf.run(play, fine.simulate(example.truth), 100, 0).reward.mean()
    found = sum(int((a & b).sum()) for a, b in zip(agent.plan.certified_sets.pairs, safe, strict=True))
    share = found / sum(int(b.sum()) for b in safe)
    return [
        row(
            f"charger, 10 × 10 cells, {episodes:,} episodes: certified of all pairs that are safe",
            share,
            at_least=0.97,
            violations=int(played.violations.sum()),
        ),
        row(
            f"charger, 10 × 10 cells, {episodes:,} episodes: value over the best of 24 × 24 cells",
            float(played.last_reward(100) / np.float64(best)),
            at_least=0.98,
        ),
    ]


if __name__ == "__main__":
    show(run())
