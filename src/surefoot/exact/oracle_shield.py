"""A shield that knows the truth: UCRL-VTR over the truly safe pairs. No learner can be allowed more.

It permits what a published shield would permit if its model of the costs were exact, and learns transitions as the
others do. LSVI-NEW's regret divided by this one's is the price of having to find out what is safe. An agent may not see
the truth, so this shield is here and takes a World.

Port of: shields on a known abstraction (Alshiekh et al. 2018), with the true costs. Sources: remembered.
Changed to fit: the safety game is won where exact.solve finds a truly safe action; inside, UCRL-VTR.
Assumes: the truth.
Guarantees: every step safe.
May violate: never; it cannot be built without knowing the answer.
"""

from __future__ import annotations

from typing import Any, ClassVar

from surefoot.agents.blocks.baseline import Baseline
from surefoot.estimate.costs import CostBounds
from surefoot.exact.best import safe_sets
from surefoot.plan.certify import Certified
from surefoot.worlds.world import World, check_world


class OracleShield(Baseline):
    """The unreachable comparison.

    Examples:
        >>> world = sf.worlds.make("thermal/testing")
        >>> run = sf.run(sf.exact.OracleShield(world), world, episodes=200, seed=0)
        >>> int(run.violations.sum()), run.promise
        (0, 'every step safe, by knowing the truth')
    """

    name: ClassVar[str] = "oracle-shield"
    guaranteed = True
    promise = "every step safe, by knowing the truth"

    def __init__(self, world: World, failure_probability: float = 0.05, **shared: Any) -> None:
        check_world(world, "the oracle shield")
        states, pairs = safe_sets(world)
        self._safe = Certified(pairs, states)
        super().__init__(world.problem, failure_probability, **shared)

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        return self._safe, self._safe
