"""SafeExpOpt-MDP (Wachi et al. 2018): between what is safe now and what may yet be.

V_o and V_p are the optimistic values (spec 6) over the optimistic and over the pessimistic safe set
(surefoot.agents.safe_sets). In every state, over the actions of the pessimistic set,

    argmax of  η·(r + expected V_o) + (1 − η)·(r + expected V_p),     η = 0.6

Port of: the rule as the first author's later code has it. Sources: read in that code; the paper's own is not public.
Changed to fit: rewards are known; leaving a set is never chosen, where the code leads to a state worth −10⁵; a finite
horizon in place of a discount.
Assumes: deterministic transitions (``successors="one"``), and β = 2 standard deviations (``confidence="published"``).
Guarantees: every step safe with probability 1 − p with ``confidence="proved", successors="all"``; else nothing.
May violate: where an action has a second outcome, and where two standard deviations are not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from surefoot.agents.baseline import BaselineOptions
from surefoot.agents.safe_sets import SafeSets, SafeSetsOptions, no_bonus
from surefoot.checks import at_least
from surefoot.errors import InvalidInput
from surefoot.estimate.values import expected_next_value
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan
from surefoot.plan.values import greedy, most_to_come, optimistic_values


@dataclass(frozen=True, kw_only=True)
class SafeExpOptOptions(SafeSetsOptions):
    hope: float


class SafeExpOpt(SafeSets):
    """Goes where safety may be found to pay. ``hope`` is η."""

    name: ClassVar[str] = "safe-exp-opt"
    options: SafeExpOptOptions

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        hope: float = 0.6,
        confidence: str = "published",
        successors: str = "one",
        beta: float = 2.0,
        ridges: Sequence[float] | None = None,
        value_ridge: float = 1.0,
        optimism: float = 1.0,
        replan_growth: float = 0.1,
    ) -> None:
        self._hope = at_least("hope", hope, 0.0)
        if self._hope > 1.0:
            raise InvalidInput("hope must be at most 1", got=repr(hope))
        super().__init__(
            problem,
            failure_probability,
            confidence=confidence,
            successors=successors,
            beta=beta,
            ridges=ridges,
            value_ridge=value_ridge,
            optimism=optimism,
            replan_growth=replan_growth,
        )

    def _with_own(self, options: BaselineOptions) -> SafeExpOptOptions:
        return SafeExpOptOptions(**asdict(super()._with_own(options)), hope=self._hope)

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds = self._bounds()
        known = self.value_ellipsoids()
        sure, hoped = self._sets(bounds, known)
        allowed, nothing, most = self._playable(sure, bounds), no_bonus(problem), most_to_come(graph)
        pess = optimistic_values(graph, allowed, nothing, known, most)
        opti = optimistic_values(graph, hoped, nothing, known, most)
        eta, actions = self._hope, []
        for h, layer in enumerate(graph.layers):
            o, p = (expected_next_value(layer, each.value[h + 1], known[h]) for each in (opti, pess))
            mixed = layer.reward + eta * o + (1.0 - eta) * p
            actions.append(greedy(layer, mixed, allowed.pairs[h], most[h])[1])
        return Plan(problem, bounds, sure, replace(pess, action=tuple(actions)), known, self.replans)
