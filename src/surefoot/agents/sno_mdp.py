"""SNO-MDP (Wachi, Sui 2020): first explore the safe set, then earn in it.

    phase 1   SafeMDP's trips (surefoot.agents.safe_mdp), until the best policy of the optimistic safe set would, in
              every state of the pessimistic one, stay in the pessimistic one (the stopping rule ES²),
              or the widest row is narrower than ``tolerance``, or ``trips`` were made
    phase 2   Q = min(R_h, r + expected next value) over the pessimistic safe set

Port of: the published code with ES². Sources: read in the authors' code.
Changed to fit: as SafeMDP; rewards are known, so their bounds fall away; transitions are estimated, with the optimism
of spec 6; the probabilistic rule P-ES² is left out. Trips are at most 100, as in the code's experiments.
Assumes: deterministic transitions (``successors="one"``), and β = 2 standard deviations (``confidence="published"``).
Guarantees: every step safe with probability 1 − p with ``confidence="proved", successors="all"``; else nothing.
May violate: where an action has a second outcome, and where two standard deviations are not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.blocks.baseline import BaselineOptions
from surefoot.agents.blocks.two_sets import Sets, TwoSets, TwoSetsOptions
from surefoot.agents.safe_mdp import reached_pairs, target, towards
from surefoot.checks import at_least, whole
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.values import Values


@dataclass(frozen=True, kw_only=True)
class SnoMdpOptions(TwoSetsOptions):
    trips: int
    tolerance: float


class SnoMdp(TwoSets):
    """Looks around, then settles."""

    name: ClassVar[str] = "sno-mdp"

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        trips: int = 100,
        tolerance: float = 0.005,
        **shared: Any,
    ) -> None:
        self._trips = whole("trips", trips, 0)
        self._tolerance = at_least("tolerance", tolerance, 0.0)
        self.settled = np.zeros(1, bool)  # in phase 2
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> SnoMdpOptions:
        own = asdict(super()._with_own(options))
        return SnoMdpOptions(**own, trips=self._trips, tolerance=self._tolerance)

    def _values(self, sets: Sets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        problem = self.problem
        if not self.settled[0]:
            h, pair, width = target(problem, bounds, sets.sure)
            done = self.episodes >= self._trips or width < self._tolerance
            self.settled[0] = done or stays(problem, sets.sure, self._optimistic(sets.hoped, known))
        if self.settled[0]:
            return self._optimistic(sets.playable, known)
        return towards(problem.graph, sets.playable, (h, pair))

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), "settled": self.settled}


def stays(problem: Problem, sure: Certified, dream: Values) -> bool:
    """True when the hoped-for policy plays pairs of the pessimistic set in all states that the set reaches (ES²)."""
    graph = problem.graph
    for h, inside in enumerate(reached_pairs(graph, sure)):
        layer = graph.layers[h]
        here = np.logical_or.reduceat(inside, layer.state_ptr[:-1])
        if not sure.pairs[h][dream.action[h][here]].all():
            return False
    return True
