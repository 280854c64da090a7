"""UCRL-VTR+ (Zhou, Gu, Szepesvári 2021, arXiv 2012.08507): UCRL-VTR with rows weighted by their estimated variance.

With R = H−1−h the range of V at the next step and λ = 1/L_μ², two regressions per step (surefoot.estimate.weighted):

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
Changed to fit: R and D take the places of H and 1, the expected next value is clipped to the known support, planning
is lazy. ``optimism`` scales b_h in Q only, never the weights; 1 is the paper, and does not move within 10⁵ episodes.
Assumes: transitions that are a linear mixture, and nothing about costs.
Guarantees: nothing about limits; regret of the unconstrained problem.
May violate: always; it does not look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import Paced
from surefoot.estimate.values import ValueEllipsoid
from surefoot.estimate.weighted import Row, WeightedData, by_edge
from surefoot.model.graph import FloatArray
from surefoot.model.problem import Problem


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
    """σ̄² of a row, from what both regressions say before it is counted."""
    second = min(max(tilde.mean, 0.0), reach**2)
    first = min(max(hat.mean, 0.0), reach)
    doubt = min(reach**2, 2.0 * reach * b_v * hat.length) + min(reach**2, b_t * tilde.length)
    return max(reach**2 / d, second - first**2 + doubt)


class UcrlVtrPlus(Paced):
    """Learns transitions where they vary little from few rows, and breaks limits."""

    name: ClassVar[str] = "ucrl-vtr-plus"
    traced: ClassVar[bool] = True

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        ridges: Sequence[float] | None = None,
        optimism: float = 1.0,
        replan_growth: float = 0.1,
    ) -> None:
        self._norm = max(check_problem(problem).transition_norm, 1e-9)
        self._most = problem.graph.largest_feature_sum()
        self.hat, self.tilde = (WeightedData(problem, 1.0 / self._norm**2) for _ in range(2))
        super().__init__(
            problem,
            failure_probability,
            ridges=ridges,
            value_ridge=1.0 / self._norm**2,
            optimism=optimism,
            replan_growth=replan_growth,
        )

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
        """R of step h; the largest, where all steps share a regression."""
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
        return self.hat.ellipsoids([self._radii(h)[0] for h in steps], self.options.optimism)

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), **self.hat.arrays("hat"), **self.tilde.arrays("tilde")}
