"""MASE (Wachi, Hashimoto, Shen, Hashimoto 2023): safe actions at each step, and a price on having to stop.

An action passes when all its successors keep every limit by their upper bounds now. A state in which none passes is met
with an emergency stop: nothing is earned from there on, and having come there is punished, the more the less there is
left to be learned in it. With ω(s,a) the relative width of spec 5,

    Q = min(R_h, r + expected V(s')),    V(s) = max of Q over the actions that pass,  −c / min_a ω(s,a) where none does

Port of: the meta-algorithm with generalised linear bounds, UCRL-VTR as the learner inside. Sources: remembered; no code
was read.
Changed to fit: the bounds are those of spec 3, c = ``punishment``. The stop is the action ``stop``, which every state
must have; without one it is the action with the least worst upper bound.
Assumes: that stopping is possible and safe in every state.
Guarantees: every step safe with probability 1 − p where that is so; else nothing.
May violate: by having to stop where stopping is not safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.baseline import Baseline, BaselineOptions, certified_now, no_bonus
from surefoot.checks import at_least
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.graph import NO_ACTION, FloatArray, IntArray
from surefoot.model.labels import Label, same_label
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.explore import pair_uncertainty, slacks
from surefoot.plan.plan import Plan
from surefoot.plan.segments import first_marked
from surefoot.plan.values import Values, greedy, most_to_come

LEAST = 1e-9  #: a width below which nothing is left to be learned


@dataclass(frozen=True, kw_only=True)
class MaseOptions(BaselineOptions):
    punishment: float
    stop: Any


class Mase(Baseline):
    """Goes where it can still act, and stops where it cannot. ``punishment`` is c."""

    name: ClassVar[str] = "mase"

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        punishment: float = 1.0,
        stop: Label = None,
        **shared: Any,
    ) -> None:
        self._punishment, self._stop = at_least("punishment", punishment, 0.0), stop
        self._stops = None if stop is None else stops(check_problem(problem), stop)
        super().__init__(problem, failure_probability, **shared)

    def _with_own(self, options: BaselineOptions) -> MaseOptions:
        return MaseOptions(**asdict(options), punishment=self._punishment, stop=self._stop)

    def _make_plan(self) -> Plan:
        bounds, known = self._bounds(), self._known()
        passes, playable = certified_now(self.problem, bounds)
        values = self._shaped(bounds, known, passes)
        others = self._stops or [greedy(z, z.reward, playable.pairs[h], 1.0)[1] for h, z in self._layers()]
        action = tuple(np.where(a == NO_ACTION, b, a) for a, b in zip(values.action, others, strict=True))
        return Plan(self.problem, bounds, passes, replace(values, action=action), known, self.replans)

    def _shaped(self, bounds: CostBounds, known: Sequence[ValueEllipsoid], passes: Certified) -> Values:
        """Values of the problem in which having to stop costs, and earns nothing afterwards."""
        graph, most = self.problem.graph, most_to_come(self.problem.graph)
        widths = pair_uncertainty(graph, bounds, slacks(self.problem, None))
        worth = np.where(passes.states[-1], graph.terminal.reward, 0.0)
        value, q, action = [worth], list[FloatArray](), list[IntArray]()
        for h, layer in reversed(list(self._layers())):
            q.insert(0, layer.reward + expected_next_value(layer, worth, known[h]))
            best, chosen = greedy(layer, q[0], passes.pairs[h], most[h])
            least = np.minimum.reduceat(widths[h], layer.state_ptr[:-1])
            worth = np.where(chosen == NO_ACTION, -self._punishment / np.maximum(least, LEAST), best)
            value.insert(0, np.maximum(worth, 0.0))  # what transitions are learned from lies in [0, R_h]
            action.insert(0, chosen)
        return Values(tuple(q), no_bonus(graph), tuple(value), tuple(action))

    def _layers(self) -> Any:
        return enumerate(self.problem.graph.layers)


def stops(problem: Problem, stop: Label) -> list[IntArray]:
    """Per decision layer (S,) the pair that stops; every state must have one."""
    found: list[IntArray] = []
    for h, layer in enumerate(problem.graph.layers):
        marked = [same_label(problem.naming.action(layer, h, pair), stop) for pair in range(layer.n_pairs)]
        own = first_marked(np.array(marked), layer.state_ptr).tolist()
        if NO_ACTION in own:
            where = problem.naming.at_state(h, own.index(NO_ACTION))
            raise InvalidInput("the emergency stop must be an action of every state", where=where, got=repr(stop))
        found.append(np.array(own, np.int64))
    return found
