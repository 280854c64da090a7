"""Graphs that grow: how soon an endless plant acts, what it holds, and what growing costs beside the whole graph.

    python -m benchmarks.bench_growing

The plant is ``walk/long``: 40 steps on an endless track. Listed whole, its graph has millions of states.
"""

from __future__ import annotations

import time

import surefoot as sf
from benchmarks.rows import Row, row
from benchmarks.timing import show

BUDGET = 20_000


def bytes_held(problem: sf.Problem) -> int:
    """Of all arrays of a problem, each counted once."""
    return sum({id(array): array.nbytes for array in problem.graph.arrays()}.values())


def run(episodes: int = 200, seed: int = 0, budget: int = BUDGET) -> list[Row]:
    warm = sf.worlds.make("walk/small", horizon=5)  # compiles
    sf.run(sf.LsviNew(warm.problem), warm, 20, seed)
    began = time.perf_counter()
    world = sf.worlds.make("walk/long", most_states=budget)
    agent = sf.LsviNew(world.problem)
    agent.begin_episode()
    agent.act(0, (0, 0))
    agent.abort_episode()
    first = time.perf_counter() - began
    agent = sf.LsviNew(world.problem)
    began = time.perf_counter()
    agent.replan()
    grown = time.perf_counter() - began
    after = agent.problem.graph.n_all_states
    found = sf.run(sf.LsviNew(world.problem), world, episodes, seed)
    assert found.plan is not None
    problem = found.plan.problem
    states = problem.graph.n_all_states
    return [
        row("walk/long: seconds from the functions to the first action", first, at_most=5.0),
        row(f"walk/long: seconds of the first growth, to {after:,} states, and its plan", grown, at_most=5.0),
        row(f"walk/long: states held, of a budget of {budget:,}", states, at_most=budget),
        row("walk/long: bytes of arrays per state", bytes_held(problem) / states, at_most=1_000.0),
        row(f"walk/long: violations in {episodes} episodes", float(found.violations.sum()), at_most=0.0),
        *_beside_the_whole(seed, 5 * episodes // 2),
    ]


def _beside_the_whole(seed: int, episodes: int) -> list[Row]:
    """walk/small with 12 steps, once growing and once whole, one after the other."""
    seconds, regret, states = [], [], []
    for grows in (False, True, False, True):
        began = time.perf_counter()
        world = sf.worlds.make("walk/small", grows=grows)
        agent = sf.LsviNew(world.problem, ridges=(0.1, 1.0, 10.0))
        found = sf.run(agent, world, episodes, seed)
        seconds.append(time.perf_counter() - began)
        regret.append(float(found.regret.sum()))
        states.append(agent.problem.graph.n_all_states)
    return [
        row(
            f"walk/small: seconds growing to {states[1]:,} states over seconds with all {states[0]:,}",
            (seconds[1] + seconds[3]) / (seconds[0] + seconds[2]),
        ),
        row(f"walk/small: regret growing over regret with the whole graph, {episodes} episodes", regret[1] / regret[0]),
    ]


if __name__ == "__main__":
    show(run())
