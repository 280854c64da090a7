"""Optimistic learners without look-ahead: UCRL-VTR and its successors, and LSVI-AE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from numpy.typing import NDArray

from surefoot.agents.blocks.baseline import Baseline, Paced
from surefoot.agents.blocks.options import BaselineOptions, option, worked_out
from surefoot.checks import whole
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.estimate.weighted import Row, WeightedData, by_edge, prefixed_arrays
from surefoot.model.arrays import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify, not_refuted, with_least_worst


class UcrlVtr(Baseline):
    """UCRL-VTR (Jia et al. 2020; Ayoub et al. 2020): optimism by value-targeted regression, blind to limits.

        Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}),   all actions

    Port of: the algorithm as its author's code has it. Sources: read in that code, which gives
    the same Q with its radius and its clip (benchmarks/published_code.py).
    Changed to fit: the radius is that of spec 6, the expected next value is clipped to the known support, and planning
    is lazy. Costs are estimated for the record only.
    Assumes: transitions that are a linear mixture, and nothing about costs.
    Guarantees: nothing about limits; regret of the unconstrained problem.
    May violate: always; it does not look.
    """

    name: ClassVar[str] = "ucrl-vtr"


class LsviAe(Baseline):
    """LSVI-AE (Wei, Liu, Ying 2023, arXiv 2312.14470): optimism about rewards and about safety, without a safe start.

        Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹}) over pairs that no lower bound proves unsafe (spec 5, hopeful)

    Port of: the rule argmax_a Q − Z·[lower − c̄]₊ in the limit Z → ∞. Sources: remembered; how the paper lets Z grow
    was not read, and no code of it is public.
    Changed to fit: a pair is refused when it, or all that may follow it, is proved unsafe; where all are, the action
    whose lower bound exceeds its limit least is played. The fallback counts as hopeful.
    Assumes: costs that are linear in the features; no fallback is needed.
    Guarantees: no step that is known to be unsafe; violations that grow slower than the number of episodes.
    May violate: whatever it does not know yet; that is how it learns.
    """

    name: ClassVar[str] = "lsvi-ae"

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        graph, limits = self.problem.graph, self.problem.bounds
        lowered = replace(bounds, upper=bounds.lower, terminal_upper=bounds.terminal_lower)
        hopeful = with_least_worst(graph, not_refuted(graph, bounds, limits), lowered, limits)
        return certify(graph, bounds, limits), hopeful


def radii(t: int, *, d: int, horizon: int, reach: float, most: float, norm: float, p: float) -> tuple[float, ...]:
    """(b_h, b_v, b_t) after t rows; ``reach`` is R, ``most`` is D, ``norm`` is L_μ."""
    lam, log = 1.0 / norm**2, math.log(4.0 * t * t * horizon / p)
    growth, bias = math.log1p(t * most**2 / lam), math.sqrt(lam) * norm
    squares = math.log1p(t * reach**4 * most**2 / (d * lam))
    return (
        8.0 * math.sqrt(d * growth * log) + 4.0 * math.sqrt(d) * log + bias,
        8.0 * d * math.sqrt(growth * log) + 4.0 * math.sqrt(d) * log + bias,
        8.0 * reach**2 * math.sqrt(d * squares * log) + 4.0 * reach**2 * log + bias,
    )


def variance(hat: Row, tilde: Row, *, reach: float, d: int, b_v: float, b_t: float) -> float:
    """σ̄² of a row, from both regressions before it is counted."""
    second = min(max(tilde.mean, 0.0), reach**2)
    first = min(max(hat.mean, 0.0), reach)
    doubt = min(reach**2, 2.0 * reach * b_v * hat.length) + min(reach**2, b_t * tilde.length)
    return max(reach**2 / d, second - first**2 + doubt)


@dataclass(frozen=True, kw_only=True)
class WeightedOptions(BaselineOptions):
    """λ is computed from L_μ."""

    value_ridge: float = worked_out(1.0)  # λ


class UcrlVtrPlus(Paced):
    """UCRL-VTR+ (Zhou, Gu, Szepesvári 2021, arXiv 2012.08507): UCRL-VTR with rows weighted by their estimated variance.

    With R = H−1−h the range of V at the next step and λ = 1/L_μ², two regressions per step
    (surefoot.estimate.weighted):

        hat     rows φ_V/σ̄ with targets V(s')/σ̄          tilde   rows φ_{V²} with targets V(s')²
        σ̄² = max( R²/d ,  [⟨φ_{V²}, θ~⟩]_{0..R²} − [⟨φ_V, θ̂⟩]²_{0..R}
                           + min(R², 2R·b_v·‖φ_V‖) + min(R², b_t·‖φ_{V²}‖) )
        Q = min(R_h, r + ⟨θ̂, φ_V⟩ + optimism · b_h · ‖φ_V‖),   all actions

        b_h = 8√(d·log(1 + tD²/λ)·l) + 4√d·l + √λ·L_μ        l = log(4t²H/p), t = rows so far + 1
        b_v = 8d√(log(1 + tD²/λ)·l) + 4√d·l + √λ·L_μ         D = max over pairs of Σ_{s'} ‖φ(s,a,s')‖, 1 in the paper
        b_t = 8R²√(d·log(1 + tR⁴D²/(dλ))·l) + 4R²·l + √λ·L_μ

    Port of: Algorithm 2 of the paper. Sources: the radii were derived from the paper's Bernstein theorem for
    vector-valued martingales, and agree with what a later text of the same group prints; the paper itself was not read,
    and no code of it is public.
    Changed to fit: R and D take the places of H and 1, the expected next value is clipped to the known support,
    planning is lazy. ``optimism`` scales b_h in Q only, never the weights; 1 is the paper, and does not move within 10⁵
    episodes.
    Assumes: transitions that are a linear mixture, and nothing about costs.
    Guarantees: nothing about limits; regret of the unconstrained problem.
    May violate: always; it does not look.
    """

    name: ClassVar[str] = "ucrl-vtr-plus"
    traced = True
    options: WeightedOptions

    def _prepare(self, problem: Problem) -> None:
        self._norm = max(problem.transition_norm, 1e-9)
        self._most = problem.graph.largest_feature_sum()
        lam = 1.0 / self._norm**2
        self.hat, self.tilde = (WeightedData(problem, lam) for _ in range(2))
        self._store(value_ridge=lam)

    def _radii(self, h: int) -> tuple[float, ...]:
        return radii(
            int(self.hat.bank.rows[self.hat.regression(h)]) + 1,
            d=self.problem.graph.transition_dim,
            horizon=self.problem.horizon,
            reach=self._reach(h),
            most=self._most,
            norm=self._norm,
            p=self.options.failure_probability,
        )

    def _reach(self, h: int) -> float:
        """R of step h; if all steps share a regression, the largest."""
        last = self.problem.horizon - 1
        return float(last if self.problem.stationary_transitions else last - h)

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        layer = self.problem.graph.layers[h]
        worth = by_edge(layer, self.plan.targets[h + 1])
        hat, tilde = self.hat.row(h, layer, edge, worth), self.tilde.row(h, layer, edge, worth**2)
        _, b_v, b_t = self._radii(h)
        d = self.problem.graph.transition_dim
        square = variance(hat, tilde, reach=self._reach(h), d=d, b_v=b_v, b_t=b_t)
        self.hat.count(hat, math.sqrt(square))
        self.tilde.count(tilde)

    def _known(self) -> tuple[ValueEllipsoid, ...]:
        self.hat.bank.refresh()
        self.tilde.bank.refresh()
        steps = range(self.problem.horizon - 1)
        return self.hat.around([self._radii(h)[0] for h in steps], self.options.optimism)

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), **self.hat.arrays("hat"), **self.tilde.arrays("tilde")}


def moment_radius(k: int, *, d: int, steps: int, most: float, norm: float, p: float) -> float:
    """b in episode k; ``most`` is D, ``norm`` is L_μ."""
    a, g, lam = 1.0 / math.sqrt(steps), 1.0 / math.sqrt(math.sqrt(d)), d / norm**2
    eta = math.log1p(k * steps * most**2 / (a * a * d * lam))
    tau = math.log(32.0 * (math.log(max(1.0, g * g / a)) + 1.0) * k * k * steps * steps / p)
    return 12.0 * math.sqrt(d * eta * tau) + 30.0 * tau / (g * g) + math.sqrt(lam) * norm


def row_variances(before: Sequence[Row], now: Sequence[Row], b: float, *, a: float, g: float) -> list[float]:
    """σ_m² of all rows of a visit, from the regressions at the begin of the episode and now."""
    found = []
    for m, (row, running) in enumerate(zip(before, now, strict=True)):
        square = 1.0
        if m + 1 < len(before):
            ahead = before[m + 1]
            variance = min(max(ahead.mean, 0.0), 1.0) - min(max(row.mean, 0.0), 1.0) ** 2
            square = variance + min(1.0, 2.0 * b * row.length) + min(1.0, b * ahead.length)
        found.append(max(g * g * running.length, square, a * a))
    return found


@dataclass(frozen=True, kw_only=True)
class HfUcrlVtrPlusOptions(WeightedOptions):
    """``episodes`` is K."""

    episodes: int = option(1000, whole, 1)


class HfUcrlVtrPlus(Paced):
    """HF-UCRL-VTR+ (Zhou, Gu 2022, arXiv 2205.11507): UCRL-VTR with variances of variances, regret without the horizon.

    With V divided by the most that can be earned, so that it lies in [0, 1], and V_m = V^(2^m), m < M, a regression
    each (surefoot.estimate.weighted), whose rows φ_m = φ_{V_m} are weighted by the variance that the next one
    estimates:

        σ_m² = max( g²·‖φ_m‖ now,  [⟨φ_{m+1}, θ_{m+1}⟩] − [⟨φ_m, θ_m⟩]² + min(1, 2b‖φ_m‖) + min(1, b‖φ_{m+1}‖),  a² )
        σ_{M−1}² = max( g²·‖φ_{M−1}‖ now,  1 )     [·] cut to [0, 1]; θ and norms are of the episode's begin, but "now"
        Q = min(R_h, r + ⟨θ_0, φ_V⟩ + optimism·b·‖φ_V‖),   all actions

        a = n^(−½), g = d^(−¼), λ = d/L_μ², M = ⌈log₂(7Kn)⌉, n steps;  D as in UCRL-VTR+
        b = 12√(d·η·τ) + 30τ/g² + √λ·L_μ  in episode k,  η = log(1 + knD²/(a²dλ)),
                                                         τ = log(32(log(max(1, g²/a)) + 1)k²n²/p)

    Port of: the algorithm with its higher-order moment estimator. Sources: the estimator read in a text of the same
    group and in public code, which gives the same estimates once a missing square is put in
    (benchmarks/published_code.py); constants read for its reward-free twin and remembered to be the same here.
    Changed to fit: D, and the logarithm is cut at 1; planning is lazy. Where transitions differ by step every step has
    an estimator of its own, which is sound and loses what the paper gains. ``optimism`` scales b in Q only, never the
    weights.
    Assumes: transitions that are a linear mixture, the same at every step, and nothing about costs.
    Guarantees: nothing about limits; regret of the unconstrained problem.
    May violate: always; it does not look.
    """

    name: ClassVar[str] = "hf-ucrl-vtr-plus"
    traced = True
    options: HfUcrlVtrPlusOptions

    def _prepare(self, problem: Problem) -> None:
        self._norm = max(problem.transition_norm, 1e-9)
        self._most = problem.graph.largest_feature_sum()
        steps, lam = problem.horizon - 1, problem.graph.transition_dim / self._norm**2
        moments = range(math.ceil(math.log2(7 * self.options.episodes * steps)))
        self.moments, self._before = ([WeightedData(problem, lam) for _ in moments] for _ in range(2))
        self._begun = -1  # the episode at whose begin self._before was copied
        self._store(value_ridge=lam)

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
        worth = by_edge(layer, self.plan.targets[h + 1]) / graph.horizon  # R_0: no value is larger
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
        return self.moments[0].around([radius] * (self.problem.horizon - 1), self.options.optimism)

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        super()._load(saved, moment)
        self._begun = -1

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), **prefixed_arrays("moment", self.moments)}
