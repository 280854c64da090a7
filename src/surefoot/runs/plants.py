"""Runs on a plant whose truth is a simulator: what was earned, and every true violation on the continuous state.

The randomness of episode k depends on the seed and on k alone, so a learner, its fallback and any other controller meet
the same disturbances.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.agents.plant_agent import PlantAgent
from surefoot.checks import of_kind, whole
from surefoot.compiling import compiling_said
from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.plant.given import make_function
from surefoot.model.plant.plant import Plant
from surefoot.model.plant.simulation import Simulation
from surefoot.plan.plan import Plan
from surefoot.runs.progress import Display, warn_interrupted
from surefoot.streams import stream

Controller = Callable[[int, FloatArray], Any]
"""(step, state) → input; it need not be on the grid."""

_NO_PROMISE = "no safety guarantee: your own controller"
PATHS = 16  #: of the last episodes whose states are kept


@dataclass(frozen=True, eq=False)
class PlantRun:
    """What :func:`surefoot.run` returns for a simulated plant. Arrays have an entry per episode.

    Examples:
        >>> truth = sf.worlds.tank()
        >>> run = sf.run(sf.PlantAgent(truth.plant), truth, episodes=50, seed=0)
        >>> run.episodes, int(run.violations.sum())
        (50, 0)
        >>> careless = sf.run(lambda h, x: 0.2, truth, episodes=50, seed=0)  # any controller, on the same disturbances
        >>> bool(careless.violations.sum() > 0)
        True
    """

    plant: Plant
    reward: FloatArray  # (K,)   collected
    steps: IntArray  # (K,)   played; a controller that leaves the box of states ends its episode
    violations: IntArray  # (K,)   steps whose true cost broke a limit, or that ended in a forbidden state
    margin: FloatArray  # (K, m) smallest bound − true cost
    certified: IntArray  # (K,)   pairs that the plan in force certifies; 0 for a controller
    by_point: IntArray  # (K,)   steps whose input was certified at the exact state only
    paths: tuple[FloatArray, ...] = field(repr=False)  # (steps + 1, n) of the last episodes
    played: tuple[tuple[Any, ...], ...] = field(repr=False)  # their inputs
    promise: str
    plan: Plan | None
    seconds: float

    @property
    def episodes(self) -> int:
        return len(self.reward)

    def last_reward(self, episodes: int = 100) -> float:
        """Mean reward of the last episodes."""
        return float(self.reward[-episodes:].mean())

    def to_dict(self) -> dict[str, Any]:
        """What happened, as JSON: rewards by episode, violations, margins, and the last episode step by step."""
        limits = [limit.name for limit in self.plant.limits]
        return {
            "episodes": self.episodes,
            "steps": int(self.steps.sum()),
            "reward": np.round(self.reward, 6).tolist(),
            "violations": int(self.violations.sum()),
            "episodes with violations": int((self.violations > 0).sum()),
            "nearest": dict(zip(limits, self.margin.min(axis=0).tolist(), strict=True)),
            "certified": int(self.certified[-1]),
            "promise": self.promise,
            "path": np.round(self.paths[-1], 6).tolist(),
            "inputs": [u if isinstance(u, tuple) else float(u) for u in self.played[-1]],
        }

    def report(self, path: str | Path) -> Path:
        """Write the report of this run to one HTML file; of several players: ``sf.report(runs, path)``."""
        return surefoot.report(self, path)

    @staticmethod
    def table(runs: Mapping[str, PlantRun]) -> str:
        """What each of several runs earned, how it ended, and how often it broke a limit, as text."""
        width = max(len(name) for name in runs)
        lines = [f"{'':{width}}  {'reward':>8}  {'at the end':>10}  {'violations':>10}  {'nearest to a limit':>18}"]
        for name, run in runs.items():
            earned = f"{run.reward.mean():8.3f}  {run.last_reward():10.3f}"
            lines.append(f"{name:{width}}  {earned}  {int(run.violations.sum()):10}  {float(run.margin.min()):18.3g}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"PlantRun(episodes={self.episodes}, reward={self.reward.mean():.4g}, last={self.last_reward():.4g}, "
            f"violations={int(self.violations.sum())}, {self.promise!r})"
        )


class _Table:
    """The columns of a run while it is played."""

    def __init__(self, plant: Plant, episodes: int) -> None:
        self.plant = plant
        self.reward = np.zeros(episodes)
        self.steps, self.violations, self.certified, self.by_point = (np.zeros(episodes, np.int64) for _ in range(4))
        self.margin = np.full((episodes, len(plant.limits)), np.inf)
        self.paths: list[FloatArray] = []
        self.played: list[tuple[Any, ...]] = []
        self._bounds, self._most = plant.problem.bounds, plant.problem.violation_thresholds  # (H, m)

    def enter(self, k: int, h: int, reward: float, cost: FloatArray, after: FloatArray) -> None:
        """Step h of episode k: its reward, its true costs, and the state that followed."""
        self.reward[k] += reward
        self.steps[k] += 1
        self.violations[k] += bool((cost > self._most[h]).any() or self.plant.breaks(after))
        self.margin[k] = np.minimum(self.margin[k], self._bounds[h] - cost)

    def keep(self, path: list[FloatArray], inputs: list[Any]) -> None:
        self.paths, self.played = (
            [*self.paths[-PATHS + 1 :], np.array(path)],
            [*self.played[-PATHS + 1 :], tuple(inputs)],
        )

    def headline(self, episodes: int) -> str:
        """What the bar says."""
        return f"reward {self.reward[episodes - 1]:.4g}, violations {int(self.violations[:episodes].sum()):,}"

    def first(self, episodes: int, promise: str, plan: Plan | None, seconds: float) -> PlantRun:
        cut = slice(0, episodes)
        return PlantRun(
            self.plant, self.reward[cut], self.steps[cut], self.violations[cut], self.margin[cut], self.certified[cut],
            self.by_point[cut], tuple(self.paths), tuple(self.played), promise, plan, seconds,
        )  # fmt: skip


def run_plant(
    agent: PlantAgent | Controller,
    truth: Simulation,
    episodes: int,
    seed: int | None,
    on_plan: Callable[[Plan, int], object] | None = None,
    progress: bool | None = None,
    name: str = "episodes",
) -> PlantRun:
    """Let a learner or a controller play episodes on a simulated plant. Ctrl-C ends it early and keeps what is done.

    ``progress``: show a bar; by default on a terminal, if it takes more than two seconds. ``name``: what it is called.
    """
    learner = agent if isinstance(agent, PlantAgent) else None
    if learner is not None and learner.plant is not truth.plant:
        raise InvalidInput("the agent is of another plant", fix="Make both from one Plant.")
    if learner is None and not callable(agent):
        rule = "a plant is run by a PlantAgent or a function of (h, x)"
        raise InvalidInput(rule, got=f"a {type(agent).__name__}", fix="Make one with sf.PlantAgent(plant).")
    if learner is None:
        make_function("a controller", agent, "h, x")
    table, began = _Table(truth.plant, whole("episodes", episodes, 1)), time.perf_counter()
    seed = 0 if seed is None else whole("seed", seed, 0)
    done, shown = 0, -1
    try:
        with compiling_said(progress), Display(1, episodes, progress) as display:
            while done < episodes:
                if learner is not None and on_plan is not None and learner.plan.number != shown:
                    shown = learner.plan.number
                    if on_plan(learner.plan, done):
                        break
                number = done if learner is None else learner.episodes
                rng, noise = stream(seed, f"plant {number}"), stream(seed, f"sensor {number}")
                _play(agent, truth, table, done, rng, noise)
                done += 1
                display.advance(name, done, table.headline(done))
    except KeyboardInterrupt:
        if learner is not None and learner.learner.place is not None:
            learner.abort_episode()
        warn_interrupted(done, episodes)
    own = "safe by assumption: the fallback" if agent == truth.plant.fallback else _NO_PROMISE
    promise = own if learner is None else learner.promise
    plan = None if learner is None else learner.plan
    return table.first(done, promise, plan, time.perf_counter() - began)


def _play(
    agent: PlantAgent | Controller,
    truth: Simulation,
    table: _Table,
    k: int,
    rng: np.random.Generator,
    noise: np.random.Generator,
) -> None:
    """One episode. A learner is told what it measures; a controller's ends if it leaves the box of states."""
    plant, x = truth.plant, truth.first(rng)
    learner = agent if isinstance(agent, PlantAgent) else None
    if learner is not None:
        learner.begin_episode(x)
        table.certified[k] = learner.plan.n_certified()
    path, inputs = [x], list[Any]()
    for h in range(plant.horizon - 1):
        u = _applied(h, x, agent, len(plant.inputs.names)) if learner is None else learner.act(h, x)
        after, cost = truth.step(h, x, u, rng)
        table.enter(k, h, plant.reward(h, x, u), cost, after)
        if learner is not None:
            table.by_point[k] += learner.by_point
            learner.observe(h, x, u, after, truth.measured(cost, noise))
        x = after
        path.append(x)
        inputs.append(u)
        if learner is None and plant.cell(x) == plant.cells.outside:  # nothing is declared there
            break
    else:
        table.reward[k] += plant.last_reward(x)
    if learner is not None:
        learner.end_episode()
    table.keep(path, inputs)


def _applied(h: int, x: FloatArray, controller: Any, inputs: int) -> Any:
    """A controller's input, which need not be on the grid: a number, or a tuple where there are several inputs."""
    given = controller(h, x.copy())
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        numbers = np.full(0, np.nan)
    if numbers.size != inputs or not np.isfinite(numbers).all():
        rule = f"a controller gives {'a number' if inputs == 1 else f'{inputs} numbers'}"
        raise InvalidInput(rule, where=f"step {h}, state {x.tolist()}", got=f"{given!r:.80}")
    return float(numbers.reshape(-1)[0]) if inputs == 1 else tuple(numbers.reshape(-1).tolist())


def compare(
    truth: Simulation,
    players: Mapping[str, Any],
    episodes: int,
    seed: int = 0,
    progress: bool | None = None,
) -> dict[str, PlantRun]:
    """Run learners and controllers of a plant on the same disturbances; the fallback is among them.

    ``progress``: show a bar for each; by default on a terminal, if it takes more than two seconds.

    Examples:
        >>> truth = sf.worlds.tank()
        >>> runs = sf.compare(truth, {"open": lambda h, x: 0.2, "surefoot": sf.PlantAgent(truth.plant)}, episodes=30)
        >>> [int(run.violations.sum()) > 0 for run in runs.values()]
        [False, True, False]
    """
    of_kind(truth, Simulation, "compare plays a simulation", "Give plant.simulate(step) first, then the players.")
    of_kind(players, Mapping, "players have names", "Give {name: player}.")
    plant = truth.plant
    everyone = {"fallback": plant.fallback, **players}
    return {
        name: run_plant(player, truth, episodes, seed, progress=progress, name=name)
        for name, player in everyone.items()
    }
