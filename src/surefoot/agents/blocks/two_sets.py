"""What the learners of the deterministic line share: a pessimistic and an optimistic safe set (SafeMDP and after).

They were made for known, deterministic transitions and a Gaussian process over a safety feature. Here a process with a
linear kernel is Bayesian linear regression: with the prior γ_j ~ N(0, v I), v = L_j²/d, and noise σ_j

    mean ± β·std,    std = σ_j √(zᵀ(G + λI)⁻¹z),    λ = σ²/v    (of several limits the largest)

which knows of no error of the model: a declared misspecification counts in the proved bounds alone.

``confidence``: ``"published"`` is that, with β = 2, and no proof; ``"proved"`` is (S3) of the specification.
``successors``: ``"one"`` takes every action to have one outcome, the likeliest by the estimated transitions, as
deterministic transitions would; ``"all"`` asks for every declared successor. With ``"proved"`` and ``"all"`` the
pessimistic set is the certified set of spec 4, and whoever plays it alone keeps every limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import BaselineOptions, Paced
from surefoot.checks import at_least, one_of, promised
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.families import Family, families, of_norms
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify, not_refuted, with_least_worst
from surefoot.plan.confidence import checked_ridge, default_ridges
from surefoot.plan.plan import Plan
from surefoot.plan.successors import with_one_successor
from surefoot.plan.values import Values

CONFIDENCES, SUCCESSORS = ("published", "proved"), ("one", "all")


@dataclass(frozen=True, kw_only=True)
class TwoSetsOptions(BaselineOptions):
    confidence: str
    successors: str
    beta: float


class Sets(NamedTuple):
    sure: Certified  # the pessimistic safe set
    hoped: Certified  # the optimistic one, which contains it
    playable: Certified  # the first, and the least bad action where an outcome that was left out may lead


class TwoSets(Paced):
    """Keeps a set that it takes to be safe, and one that may yet be."""

    options: TwoSetsOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        confidence: str = "published",
        successors: str = "one",
        beta: float = 2.0,
        **shared: Any,
    ) -> None:
        check_problem(problem)
        self._confidence = one_of("confidence", CONFIDENCES, confidence)
        self._successors = one_of("successors", SUCCESSORS, successors)
        self._beta = at_least("beta", beta, 0.0)
        exact = tuple(replace(limit, misspecification=0.0) for limit in problem.limits)
        self._believed = problem if confidence == "proved" else replace(problem, limits=exact)
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> TwoSetsOptions:
        return TwoSetsOptions(
            **asdict(options), confidence=self._confidence, successors=self._successors, beta=self._beta
        )

    def _confidence_in_costs(self, problem: Problem, p: float, ridges: Sequence[float] | None) -> CostConfidence:
        if self._confidence == "proved":
            return super()._confidence_in_costs(problem, p, ridges)
        if ridges is not None and len(tuple(ridges)) != 1:
            raise InvalidInput("the published confidence has one ridge", got=repr(ridges))
        lam = prior_ridge(problem) if ridges is None else checked_ridge(next(iter(ridges)))

        def radius(log_det_ratio: float, ridge: float, noise: float, norm: float) -> float:
            return self._beta * noise

        return CostConfidence((lam,), radius, dual=False, prior=False, scale=1.0, guard=False)

    @property
    def guaranteed(self) -> bool:
        return (self._confidence, self._successors) == ("proved", "all")

    @property
    def promise(self) -> str:
        if not self.guaranteed:
            return super().promise
        return f"every step safe with probability {promised(self.options.failure_probability)}"

    def _families(self) -> tuple[Family, ...]:
        return of_norms(self._believed) if self._confidence == "published" else families(self._believed)

    def _make_plan(self) -> Plan:
        bounds, known = self._bounds(), self._known()
        sets = self._sets(bounds, known)
        return Plan(self.problem, bounds, sets.sure, self._values(sets, bounds, known), known, self.replans)

    @abstractmethod
    def _values(self, sets: Sets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        """What to play in the pessimistic set."""

    def _sets(self, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Sets:
        limits, graph, seen = self.problem.bounds, self.problem.graph, bounds
        if self._successors == "one":
            graph, seen = with_one_successor(graph, bounds, known)
        sure, hoped = certify(graph, seen, limits), not_refuted(graph, seen, limits)
        either = Certified(
            tuple(a | b for a, b in zip(sure.pairs, hoped.pairs, strict=True)),
            tuple(a | b for a, b in zip(sure.states, hoped.states, strict=True)),
        )
        every = self._successors == "all"
        return Sets(sure, either, sure if every else with_least_worst(self.problem.graph, sure, bounds, limits))


def prior_ridge(problem: Problem) -> float:
    """λ = max_j σ_j² d/L_j²: the noise over the variance of a prior that expects ‖γ_j‖² = L_j²."""
    d = problem.graph.cost_dim
    sizes = zip(problem.noises.tolist(), (prior.norm for prior in problem.priors), strict=True)
    found = max(noise**2 * d / norm**2 if norm > 0 else 0.0 for noise, norm in sizes)
    return max(found, 1e-6 * min(default_ridges(problem)))  # costs without noise are learned at once
