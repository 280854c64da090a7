"""What waiting for certification costs: regret with the bounds of (S3), with those around the estimate, and without.

Each world is run with ten seeds that nothing was tuned on by three learners: ours; ours with one ellipsoid around the
estimate per ridge (its radius σ√(…) + √λ·L, half of p, ridges that follow the noise), which is what least squares
usually comes with; and one that is told the true safe set and has nothing to wait for. Seeds run in parallel: nothing
is timed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

import surefoot as sf
from benchmarks.playing import by_seed, played
from benchmarks.rows import Row, row
from benchmarks.timing import show
from surefoot import theory
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified

WORLDS = {
    "thermal/small": 0.45,
    "driving/testing": 0.45,
    "rover/testing": 0.30,
    "power/testing": 0.35,
    "thermal/medium": 0.45,
    "driving/small": 0.45,
    "rover/small": 0.45,
}
SEEDS, EPISODES = range(100, 110), 10_000


def around_the_estimate(problem: Problem, p: float = 0.05) -> sf.LsviNew:
    """LsviNew with exploration by ideas and the bounds that least squares usually comes with."""
    longest = problem.graph.largest_cost_norm()
    q = max([1e-6 * longest**2, *((x.noise / x.norm) ** 2 for x in problem.limits if x.norm)])
    agent = sf.LsviNew(problem, p, exploration="ideas", ridges=[4 * q, 40 * q, 400 * q])
    log_term = math.log(2 * len(problem.limits) * problem.horizon * 3 / p)

    def radius(ratio: float, ridge: float, noise: float, norm: float) -> float:
        return theory.self_normalised_radius(
            ratio, noise=noise, norm=norm, ridge=ridge, log_inverse_probability=log_term
        )

    agent.cost_confidence = CostConfidence(
        agent.options.ridges, (), radius, shaped=0.0, dual=False, prior=True, scale=1.0, guard=True
    )
    agent.replan()
    return agent


class Told(sf.LsviNew):
    """Told the true safe set, which no learner can know: what remains is the regret of learning transitions."""

    def __init__(self, world: sf.World) -> None:
        states, pairs = sf.exact.safe_sets(world)
        self._safe = Certified(pairs, states)
        super().__init__(world.problem, explore=(0.0, 0.0, 0.0))

    def _certify(self, problem: Problem, bounds: CostBounds) -> tuple[Certified, Certified]:
        return self._safe, self._safe


@dataclass(frozen=True)
class Regrets:
    """Of the three learners in one world with one seed."""

    ours: float
    usual: float
    told: float
    violations: int
    best: float  # value of an episode


def regrets(name: str, episodes: int, seed: int) -> Regrets:
    world = sf.worlds.make(name)
    agents = sf.LsviNew(world.problem), around_the_estimate(world.problem), Told(world)
    runs = [played(agent, world, episodes, seed) for agent in agents]
    ours, usual, told = (float(each.regret.sum()) for each in runs)
    return Regrets(ours, usual, told, sum(int(each.violations.sum()) for each in runs), float(runs[0].best_value))


def run(worlds: dict[str, float] = WORLDS, seeds: range = SEEDS, episodes: int = EPISODES) -> list[Row]:
    found: list[Row] = []
    for name, aim in worlds.items():
        found += rows(name, aim, episodes, by_seed(partial(regrets, name, episodes), seeds))
    return found


def rows(name: str, aim: float, episodes: int, found: list[Regrets]) -> list[Row]:
    ours, usual, told = ([getattr(each, kind) for each in found] for kind in ("ours", "usual", "told"))
    return [
        row(
            f"{name}: regret at {episodes:,} episodes over that with ellipsoids around the estimate",
            float(np.mean(ours) / np.mean(usual)),
            at_most=aim,
            ours=ours,
            usual=usual,
            violations=sum(each.violations for each in found),
        ),
        row(
            f"{name}: price of safety, regret over one episode's worth and that of one told the safe set",
            float(np.mean(ours) / (np.mean(told) + found[0].best)),
            told=told,
            share_of_certification=float(1.0 - np.mean(told) / np.mean(ours)),
        ),
    ]


if __name__ == "__main__":
    show(run())
