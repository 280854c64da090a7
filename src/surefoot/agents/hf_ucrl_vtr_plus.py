"""HF-UCRL-VTR+ (Zhou, Gu 2022, arXiv 2205.11507): UCRL-VTR with variances of variances, for regret without the horizon.

With V divided by the most that can be earned, so that it lies in [0, 1], and V_m = V^(2^m), m < M, a regression each
(surefoot.estimate.weighted), whose rows φ_m = φ_{V_m} are weighted by the variance that the next one estimates:

    σ_m² = max( g²·‖φ_m‖ now,  [⟨φ_{m+1}, θ_{m+1}⟩] − [⟨φ_m, θ_m⟩]² + min(1, 2b‖φ_m‖) + min(1, b‖φ_{m+1}‖),  a² )
    σ_{M−1}² = max( g²·‖φ_{M−1}‖ now,  1 )         [·] cut to [0, 1]; θ and norms are of the episode's begin, but "now"
    Q = min(R_h, r + ⟨θ_0, φ_V⟩ + optimism·b·‖φ_V‖),   all actions

    a = n^(−½), g = d^(−¼), λ = d/L_μ², M = ⌈log₂(7Kn)⌉, n steps;  D as in UCRL-VTR+
    b = 12√(d·η·τ) + 30τ/g² + √λ·L_μ,   η = log(1 + knD²/(a²dλ)),   τ = log(32(log(max(1, g²/a)) + 1)k²n²/p),  episode k

Port of: the algorithm with its higher-order moment estimator. Sources: the estimator read in a text of the same group
and in public code, which gives the same estimates once a missing square is put in (benchmarks/published_code.py);
constants read for its reward-free twin and remembered to be the same here.
Changed to fit: D, and the logarithm is cut at 1; planning is lazy. Where transitions differ by step every step has an
estimator of its own, which is sound and loses what the paper gains. ``optimism`` scales b in Q only, never the weights.
Assumes: transitions that are a linear mixture, the same at every step, and nothing about costs.
Guarantees: nothing about limits; regret of the unconstrained problem.
May violate: always; it does not look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import BaselineOptions, Paced
from surefoot.checks import whole
from surefoot.estimate.values import ValueEllipsoid
from surefoot.estimate.weighted import Row, WeightedData, by_edge
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem


@dataclass(frozen=True, kw_only=True)
class HfUcrlVtrPlusOptions(BaselineOptions):
    episodes: int


def moment_radius(k: int, *, d: int, steps: int, most: float, norm: float, p: float) -> float:
    """b in episode k; ``most`` is D, ``norm`` is L_μ."""
    a, g, lam = 1.0 / math.sqrt(steps), 1.0 / math.sqrt(math.sqrt(d)), d / norm**2
    eta = math.log1p(k * steps * most**2 / (a * a * d * lam))
    tau = math.log(32.0 * (math.log(max(1.0, g * g / a)) + 1.0) * k * k * steps * steps / p)
    return 12.0 * math.sqrt(d * eta * tau) + 30.0 * tau / (g * g) + math.sqrt(lam) * norm


def row_variances(before: Sequence[Row], now: Sequence[Row], b: float, *, a: float, g: float) -> list[float]:
    """σ_m² of all rows of a visit, by the regressions at the episode's begin and now."""
    found = []
    for m, (row, running) in enumerate(zip(before, now, strict=True)):
        square = 1.0
        if m + 1 < len(before):
            ahead = before[m + 1]
            variance = min(max(ahead.mean, 0.0), 1.0) - min(max(row.mean, 0.0), 1.0) ** 2
            square = variance + min(1.0, 2.0 * b * row.length) + min(1.0, b * ahead.length)
        found.append(max(g * g * running.length, square, a * a))
    return found


class HfUcrlVtrPlus(Paced):
    """Learns from how much its values vary, and breaks limits. ``episodes`` is K."""

    name: ClassVar[str] = "hf-ucrl-vtr-plus"
    traced: ClassVar[bool] = True
    options: HfUcrlVtrPlusOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        episodes: int = 1000,
        ridges: Sequence[float] | None = None,
        optimism: float = 1.0,
        replan_growth: float = 0.1,
    ) -> None:
        self._norm, self._episodes = max(check_problem(problem).transition_norm, 1e-9), whole("episodes", episodes, 1)
        self._most = problem.graph.largest_feature_sum()
        steps, lam = problem.horizon - 1, problem.graph.transition_dim / self._norm**2
        moments = range(math.ceil(math.log2(7 * self._episodes * steps)))
        self.moments, self._before = ([WeightedData(problem, lam) for _ in moments] for _ in range(2))
        self._begun = -1  # the episode at whose begin self._before was taken
        super().__init__(
            problem, failure_probability, ridges=ridges, value_ridge=lam, optimism=optimism, replan_growth=replan_growth
        )

    def _with_own(self, options: BaselineOptions) -> HfUcrlVtrPlusOptions:
        return HfUcrlVtrPlusOptions(**asdict(options), episodes=self._episodes)

    def _radius(self, k: int) -> float:
        d, steps, p = self.problem.graph.transition_dim, self.problem.horizon - 1, self.options.failure_probability
        return moment_radius(k, d=d, steps=steps, most=self._most, norm=self._norm, p=p)

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        if episode != self._begun:
            self._begun = episode
            for then, data in zip(self._before, self.moments, strict=True):
                for mine, own in zip(then.arrays("").values(), data.arrays("").values(), strict=True):
                    mine[...] = own
        graph = self.problem.graph
        layer = graph.layers[h]
        worth = by_edge(layer, self.plan.targets[h + 1]) / graph.horizon  # R_0, which no value exceeds
        powers = [worth ** (2**m) for m in range(len(self.moments))]
        before = [data.row(h, layer, edge, f) for data, f in zip(self._before, powers, strict=True)]
        now = [data.row(h, layer, edge, f) for data, f in zip(self.moments, powers, strict=True)]
        a, g = 1.0 / math.sqrt(self.problem.horizon - 1), 1.0 / math.sqrt(math.sqrt(graph.transition_dim))
        squares = row_variances(before, now, self._radius(episode + 1), a=a, g=g)
        for data, row, square in zip(self.moments, now, squares, strict=True):
            data.count(row, math.sqrt(square))

    def _known(self) -> tuple[ValueEllipsoid, ...]:
        for data in self.moments:
            data.bank.refresh()
        radius = self._radius(self.episodes + 1)
        return self.moments[0].ellipsoids([radius] * (self.problem.horizon - 1), self.options.optimism)

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        super()._load(saved, moment)
        self._begun = -1

    def _data(self) -> dict[str, NDArray[Any]]:
        found = super()._data()
        for m, data in enumerate(self.moments):
            found.update(data.arrays(f"moment{m}"))
        return found
