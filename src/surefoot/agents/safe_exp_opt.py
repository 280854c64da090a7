"""SafeExpOpt-MDP (Wachi et al. 2018): between what is safe now and what may yet be.

V_o and V_p are the optimistic values (spec 6) over the optimistic and over the pessimistic safe set
(surefoot.agents.blocks.two_sets). In every state, over the actions of the pessimistic set,

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
from typing import Any, ClassVar

from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.two_sets import Sets, TwoSets, TwoSetsOptions
from surefoot.checks import at_least
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.problem import Problem
from surefoot.plan.values import Values, greedy, most_to_come


@dataclass(frozen=True, kw_only=True)
class SafeExpOptOptions(TwoSetsOptions):
    hope: float


class SafeExpOpt(TwoSets):
    """Goes where safety may be found to pay. ``hope`` is η."""

    name: ClassVar[str] = "safe-exp-opt"
    options: SafeExpOptOptions

    def __init__(
        self, problem: Problem, failure_probability: float = 0.05, *, hope: float = 0.6, **shared: Any
    ) -> None:
        self._hope = at_least("hope", hope, 0.0)
        if self._hope > 1.0:
            raise InvalidInput("hope must be at most 1", got=repr(hope))
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> SafeExpOptOptions:
        return SafeExpOptOptions(**asdict(super()._with_own(options)), hope=self._hope)

    def _values(self, sets: Sets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        graph, allowed, eta = self.problem.graph, sets.playable, self._hope
        pess, opti = self._optimistic(allowed, known), self._optimistic(sets.hoped, known)
        most, actions = most_to_come(graph), []
        for h, layer in enumerate(graph.layers):
            o, p = (expected_next_value(layer, each.value[h + 1], known[h]) for each in (opti, pess))
            mixed = layer.reward + eta * o + (1.0 - eta) * p
            actions.append(greedy(layer, mixed, allowed.pairs[h], most[h])[1])
        return replace(pess, action=tuple(actions))
