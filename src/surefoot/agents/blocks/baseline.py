"""What the learners that LSVI-NEW is compared with share: proved confidence sets, optimism, and no promise.

Most of them plan like UCRL-VTR over the pairs that they allow, with a bonus of their own (spec 6):

    Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹} + bonus)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from inspect import Signature, signature
from typing import Any, ClassVar, get_type_hints

import numpy as np

from surefoot.agents.agent import Chances, check_problem
from surefoot.agents.blocks.options import BaselineOptions
from surefoot.agents.learner import Learner, earliest
from surefoot.estimate.costs import CostBounds, bound_costs
from surefoot.estimate.ellipsoids import MULTIPLIERS, CostConfidence
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import FloatArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certify, everything
from surefoot.plan.confidence import cost_confidence, value_confidence
from surefoot.plan.plan import Plan
from surefoot.plan.segments import likeliest_pair
from surefoot.plan.values import Values, most_to_come, optimistic_values


class Baseline(Learner):
    """A learner with the confidence sets of spec 3 and 6.

    All baselines share this constructor. One with options of its own annotates ``options`` with their dataclass, and
    computes in :meth:`_prepare` what depends on the problem.
    """

    options: BaselineOptions
    _takes: ClassVar[type[BaselineOptions]] = BaselineOptions
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        """Name every option in the signature, for ``help`` and for options that come from a file."""
        cls._takes = get_type_hints(cls)["options"]
        given, hints = signature(cls.__init__).parameters, get_type_hints(cls._takes)
        named = [p for p in given.values() if p.name != "self" and p.kind != p.VAR_KEYWORD]
        others = [p for p in signature(cls._takes).parameters.values() if p.name not in given]
        cls.__signature__ = Signature([p.replace(annotation=hints.get(p.name, Any)) for p in (*named, *others)])

    def __init__(self, problem: Problem, failure_probability: float = 0.05, **options: Any) -> None:
        check_problem(problem)
        self.options = self._takes(failure_probability=failure_probability, **options)
        self._prepare(problem)
        given, costs = self.options, self._confidence_in_costs(problem)
        values = value_confidence(
            problem,
            failure_probability=given.failure_probability,
            value_ridge=given.value_ridge,
            optimism=given.optimism,
        )
        self._store(ridges=costs.ridges, shaped=costs.shaped, value_ridge=values.ridge, optimism=values.optimism)
        super().__init__(problem, self.options, costs, values)

    def _prepare(self, problem: Problem) -> None:
        """Make what the first plan needs, and compute the options that were left open."""

    def _store(self, **found: Any) -> None:
        """Store computed values as options."""
        self.options = copy(self.options)
        for name, value in found.items():
            object.__setattr__(self.options, name, value)

    def _confidence_in_costs(self, problem: Problem) -> CostConfidence:
        """The proved confidence sets, unless a learner has its own."""
        given = self.options
        return cost_confidence(
            problem,
            failure_probability=given.failure_probability,
            multipliers=MULTIPLIERS,
            scale=1.0,
            ridges=given.ridges,
            shaped=given.shaped,
        )

    @property
    def guaranteed(self) -> bool:
        return False

    # --- plans ------------------------------------------------------------------------------------------

    def _make_plan(self) -> Plan:
        bounds, known = self._bounds(), self._known()
        certified, allowed = self._certify(bounds)
        values = self._optimistic(allowed, known, self._bonuses(bounds))
        return Plan(self.problem, bounds, certified, values, known, self.replans)

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        """What is certified, for the record, and what may be played: by default everything."""
        graph = self.problem.graph
        return certify(graph, bounds, self.problem.bounds), everything(graph)

    def _known(self) -> tuple[ValueEllipsoid, ...]:
        """Where the plan takes the transition parameter of each decision step to lie."""
        return self.value_ellipsoids()

    def _bonuses(self, bounds: CostBounds) -> Sequence[FloatArray]:
        """Per decision layer (N,): the exploration bonus in Q."""
        return no_bonus(self.problem.graph)

    def _bounds(self) -> CostBounds:
        return bound_costs(self.problem, self.costs, self.cost_confidence)

    def _optimistic(
        self, allowed: Certified, known: Sequence[ValueEllipsoid], bonus: Sequence[FloatArray] | None = None
    ) -> Values:
        """Q, V and the greedy pair, over allowed pairs."""
        graph = self.problem.graph
        return optimistic_values(graph, allowed, bonus or no_bonus(graph), known, most_to_come(graph))

    def _drawn_plan(
        self,
        bounds: CostBounds,
        chances: Chances,
        q: Sequence[FloatArray],
        value: Sequence[FloatArray],
        bonus: Sequence[FloatArray] | None = None,
    ) -> Plan:
        """A plan that draws its actions with these chances, from the agent's own estimates of q and value."""
        graph = self.problem.graph
        action = tuple(likeliest_pair(c, layer.state_ptr) for c, layer in zip(chances, graph.layers, strict=True))
        values = Values(tuple(q), tuple(bonus or no_bonus(graph)), tuple(value), action)
        known, certified = self._known(), self._certify(bounds)[0]
        return Plan(self.problem, bounds, certified, values, known, self.replans, chances=tuple(chances))


def no_bonus(graph: LayeredGraph) -> tuple[FloatArray, ...]:
    return tuple(np.zeros(layer.n_pairs) for layer in graph.layers)


class Paced(Baseline):
    """A baseline whose plans also depend on the number of episodes: a plan is due after ``replan_growth`` more of them,
    and at the end of the first episodes, which play the fallback."""

    _initial_episodes = 0  # episodes that play the fallback before all others

    def _begin_with_fallback(self, given: int | None, published: int) -> None:
        """Play the fallback for so many episodes, by default as many as published."""
        self._initial_episodes = published if given is None else given
        self._store(initial_episodes=self._initial_episodes)

    @property
    def playing_fallback(self) -> bool:
        return self.episodes < self._initial_episodes

    def _due_at(self) -> int | None:
        grown = self.replan_growth * self._planned_at
        later = self._planned_at + max(1, math.ceil(grown)) if math.isfinite(self.replan_growth) else None
        return earliest(later, self._initial_episodes if self._planned_at < self._initial_episodes else None)
