"""A learner: an agent that keeps its data in two regressions and makes a new plan when they have grown."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import Agent, Chances, Policy
from surefoot.agents.blocks.place import refuse_inside, under_way
from surefoot.agents.blocks.random_actions import drawn
from surefoot.checks import promised
from surefoot.errors import AssumptionBroken, SurefootError
from surefoot.estimate.costs import CostData
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.families import Family, families
from surefoot.estimate.values import ValueConfidence, ValueData, ValueEllipsoid
from surefoot.estimate.waiting import Waiting
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.model.growing import grown_as_saved, saved_growth
from surefoot.model.layer import NO_ACTION, Layer
from surefoot.model.measured import measured_features
from surefoot.model.problem import Problem
from surefoot.model.rays import Intensities, pair_at, refuse_rays
from surefoot.plan.growth import grown, to_expand
from surefoot.plan.plan import Plan
from surefoot.threads import one_blas_thread

#: What a computation may raise when numbers overflow. LinAlgError is a ValueError.
FAILURES = (SurefootError, ArithmeticError, ValueError, LookupError, TypeError)

NO_PROMISE = "no safety guarantee"


@dataclass(frozen=True, kw_only=True)
class LearnerOptions:
    """What a learner depends on besides its problem. Manifests, journals and audits store these fields."""

    failure_probability: float
    replan_growth: float


class Learner(Agent):
    """Costs and transitions as ridge statistics; a new plan between episodes, when it is due (spec 6)."""

    options: LearnerOptions
    _plan: Plan
    traced: bool = False  #: learns more from an observation than the two regressions: :meth:`_note`
    _set_by_plans: ClassVar[tuple[str, ...]] = (
        *("planned_cost_log_det", "planned_value_log_det", "_planned_data", "_new_data", "_replans", "_plan"),
        *("problem", "_may_grow", "_planned_at"),
    )

    def __init__(
        self, problem: Problem, options: LearnerOptions, costs: CostConfidence, values: ValueConfidence
    ) -> None:
        super().__init__(problem)
        self.options, self.cost_confidence, self.value_confidence = options, costs, values
        self.replan_growth = options.replan_growth  # a study lifts it to ∞ while its data are in doubt
        self.costs = CostData(problem, min(costs.ridges), self._families(), shaped=costs.shaped)
        self.transitions = ValueData(problem, values.ridge)
        self._replans, self._failed = 0, 0
        self._planned_at = 0  # after how many episodes the plan in force was made
        self.plan_failure = ""  #: why a plan that is due could not be made; empty if it was made
        self._new_data, self._may_grow = False, False  # since the last plan; it allows more to be expanded
        self._waiting: Waiting | None = None  # observations of :meth:`take`, made when first needed
        self.environment_seeds: set[int] = set()  # of environments that :meth:`take` learned from
        self.disproved = ""  #: what a shield saw although it was declared impossible
        self.grows_alone = True  #: False: the owner lets the graph grow, by :meth:`adopt`
        self.replan()

    @property
    def constants(self) -> dict[str, Any]:
        stored = json.dumps(asdict(self.options), default=np.ndarray.tolist)
        found: dict[str, Any] = json.loads(stored)  # as they are read back from files
        return found

    @property
    def promise(self) -> str:
        safe = f"every step safe with probability {promised(self.options.failure_probability)}"
        return safe if self.guaranteed else NO_PROMISE

    def _families(self) -> tuple[Family, ...]:
        """Which limits learn together, and from which rows (spec 3)."""
        return families(self.problem)

    @abstractmethod
    def _make_plan(self) -> Plan:
        """A plan from all data so far."""

    @property
    def plan(self) -> Plan:
        """The plan in force; it never changes inside an episode."""
        return self._plan

    @property
    def replans(self) -> int:
        return self._replans

    @property
    def failed_replans(self) -> int:
        return self._failed

    def chances(self) -> Chances | None:
        return self.plan.chances

    def policy(self) -> Policy:
        return self.plan.values.action if self.plan.chances is None else self._drawn(self.plan.chances)

    def _drawn(self, chances: Chances) -> Policy:
        seed = 0 if self.draws is None else self.draws.seeds[-1]
        return drawn(self.problem.graph, chances, seed, self.episodes)

    def episodes_before_change(self) -> int | None:
        due = self._due_at()
        soon = 1 if self.chances() is not None or self.may_grow() else None
        return earliest(soon, None if due is None else max(1, due - self.episodes))

    def _choose(self, h: int, state: int) -> int:
        if (chances := self.chances()) is None:
            return self.plan.pair(h, state)
        pair = int(self._drawn(chances)[h][state])
        if pair == NO_ACTION:
            raise AssumptionBroken("the agent's policy has no action", where=self.problem.naming.at_state(h, state))
        return pair

    def _record(
        self,
        h: int,
        pair: int,
        edge: int,
        cost: FloatArray | None,
        features: Features | None = None,
        intensity: float | None = None,
    ) -> None:
        """Count one transition in both regressions, with the values of the plan in force."""
        self._enter()
        layer, at, along = self.played(h, pair, edge, intensity)
        if cost is not None and not under_way(self.place).strayed:
            if features is None:
                features = measured_features(self.problem, layer, along, None, self.place)
            self.costs.add(h, features, cost)
        self.transitions.add(h, layer, at, along, self.plan.targets[h + 1])
        self._new_data = True
        self._note(self.episodes, h, edge, cost)
        super()._record(h, pair, edge, cost, features, intensity)

    def played(self, h: int, pair: int, edge: int, intensity: float | None) -> tuple[Layer, int, int]:
        """(layer, pair, edge) with features at the intensity that was played, by default the planned one (spec 9)."""
        graph, planned = self.problem.graph, self.plan.intensities
        if planned is None:
            return graph.layers[h], pair, edge
        opened = float(planned[h][pair]) if intensity is None else intensity
        layer = graph.layers[h]
        return pair_at(layer, graph.rays[h], pair, opened), 0, edge - int(layer.pair_ptr[pair])

    def intensities(self) -> Intensities | None:
        return self.plan.intensities

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        """Learn whatever else a :attr:`traced` agent learns from a transition."""

    def _note_last(self, state: int, cost: FloatArray | None) -> None:
        """The same for the measured cost of a last state."""

    def retell(self, edges: IntArray, costs: FloatArray, told_last: bool) -> None:
        """Note the episodes of a compiled roll-out: edges (n, H-1) and measured costs (n, H, m)."""
        graph, last = self.problem.graph, self.problem.horizon - 2
        for k, (along, measured) in enumerate(zip(edges.tolist(), costs, strict=True)):
            for h, edge in enumerate(along):
                self._note(self.episodes + k, h, edge, measured[h])
            state = int(graph.layers[last].successor[along[last]])
            if told_last and graph.terminal.has_cost[state]:
                self._note_last(state, measured[-1])

    def _record_terminal(self, cost: FloatArray | None) -> None:
        self._enter()
        features, place = self.problem.graph.terminal.cost_features, under_way(self.place)
        if cost is not None and features is not None and not place.strayed:
            state = place.state
            self.costs.add(self.problem.horizon - 1, features[state : state + 1], cost)
            self._note_last(state, cost)
            self._new_data = True
        super()._record_terminal(cost)

    def skip(self, episodes: int) -> None:
        super().skip(episodes)
        self._new_data = self._new_data or episodes > 0

    # --- episodes that somebody else plays, several at a time (surefoot.shields) -------------------------

    def take(self, h: int, pair: int, edge: int, cost: FloatArray | None, features: Features | None = None) -> None:
        """Count one transition of an episode that somebody else plays; call it in the order in which they happen.

        Transitions may wait, and are counted before anything reads the data. ``features``: of the measured cost, a
        table of one row, if they are not the declared ones (spec 9).
        """
        refuse_rays(self.problem, "a learner that others play for")
        layer = self.problem.graph.layers[h]
        self._note(self.episodes, h, edge, cost)
        if features is not None and cost is not None:
            self._enter()
            self.costs.add(h, features, cost)
            cost = None  # counted already
        row, pointer = edge if layer.per_triplet else layer.row_of(edge), layer.pair_ptr
        self._room().add(h, row, pointer[pair], pointer[pair + 1], edge, cost)

    def take_terminal(self, state: int, cost: FloatArray | None) -> None:
        """Count the measured cost of a last state."""
        if cost is not None:
            self._room().add(self.problem.horizon - 1, state, 0, 0, 0, cost)

    def count_episodes(self, episodes: int) -> bool:
        """Count such episodes when they are over. → was a new plan made?

        Checks whether one is due (spec 6) once a 64th of all observations is new, and after 256 in any case.
        """
        before = self._replans
        super().skip(episodes)
        if self._waiting is not None and (self._waiting.worth_a_look() or self.replan_growth == 0):
            self.replan_if_due()
        return self._replans != before

    def _room(self) -> Waiting:
        if self._waiting is None:
            self._waiting = Waiting(self.problem, self.costs, self.transitions)
        if self._waiting.full:
            self._enter()
        self._new_data = True
        return self._waiting

    def _enter(self) -> None:
        if self._waiting is not None and self._waiting.n:
            self._waiting.enter(self.plan.targets)

    # --- plans ------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        super()._finish()
        self.replan_if_due()

    def replan_if_due(self) -> None:
        """Make a plan if the data have grown enough (spec 6); only between episodes."""
        self._enter()
        if self._replan_is_due():
            self.replan()

    def replan(self) -> None:
        """Make a plan now, from factors that are computed anew; only between episodes.

        If that fails, the previous plan, whose bounds still hold, stays in force, the data stay counted, the new plan
        stays due, and :attr:`plan_failure` says why.
        """
        refuse_inside(self.place, "a plan never changes inside an episode")
        self._enter()
        self.problem.verify()  # no bound holds for features that have changed
        before = self.planned() if self._replans > 0 else None
        if before is not None and self.problem.growth is not None and self.grows_alone:
            self._grow()
        self._replan_or(before)

    def _replan_or(self, before: Mapping[str, Any] | None) -> None:
        """Make a plan; if that fails, put back the previous one, if there is one."""
        if before is None:
            self._replan()
            return
        try:
            self._replan()
        except BaseException as error:
            self.put_back(before)
            if not isinstance(error, FAILURES):
                raise
            self._failed += 1
            self.plan_failure = f"no plan can be computed from the data, the one before stays in force: {error}"

    def _grow(self) -> None:
        """Expand what the plan in force allows (spec 9). If a user's function raises, nothing has changed."""
        if (larger := grown(self.plan)) is not None:
            self._move_to(larger)

    def _move_to(self, problem: Problem) -> None:
        """Go on with a graph that this one has grown into; nothing is waiting now."""
        self.problem, self._waiting = problem, None

    def adopt(self, problem: Problem) -> None:
        """Continue on a graph that this one has grown into, and plan; only between episodes."""
        refuse_inside(self.place, "a graph never grows inside an episode")
        self._enter()
        before = self.planned()
        self._move_to(problem)
        self._replan_or(before)

    def look_over(self, problem: Problem) -> None:
        """Move the plan in force to an equal problem, another object, that may be able to grow."""
        self.problem, self._waiting = problem, None
        self._plan = self.plan.over(problem)
        self._may_grow = any(mask.any() for mask in to_expand(problem, self._plan.bounds))

    def may_grow(self) -> bool:
        """Will the next plan expand more of the graph?"""
        return self._may_grow and math.isfinite(self.replan_growth)

    def _replan(self) -> None:
        with one_blas_thread():
            self.costs.bank.refresh()
            self.transitions.bank.refresh()
            self._replans += 1
            self._plan = self._make_plan()
        waiting = () if self.problem.growth is None else to_expand(self.problem, self._plan.bounds)
        self._may_grow = any(mask.any() for mask in waiting)
        self.planned_cost_log_det = self.costs.bank.log_det()
        self.planned_value_log_det = self.transitions.bank.log_det()
        self._planned_data = {name: array.copy() for name, array in self._data().items()}
        self._new_data, self.plan_failure, self._planned_at = False, "", self.episodes

    def planned(self) -> dict[str, Any]:
        """Everything that :meth:`replan` changes except data; :meth:`put_back` restores it if the next plan fails."""
        return {name: getattr(self, name) for name in self._set_by_plans}

    def put_back(self, planned: Mapping[str, Any]) -> None:
        for name in self._set_by_plans:
            setattr(self, name, planned[name])

    def inherit(self, other: Learner) -> None:
        """Take over the data of a learner with the same regressions and a narrower declaration; replan afterwards."""
        for name, array in self._data().items():
            array[...] = other._data().get(name, array)
        self.costs.follow(other.costs)
        self.episodes, self._replans, self._new_data = other.episodes, other._replans, True

    def value_ellipsoids(self) -> tuple[ValueEllipsoid, ...]:
        """Step 3: where the transition parameter of each decision step may lie."""
        return self.transitions.ellipsoids(self.value_confidence)

    def _due_at(self) -> int | None:
        """After how many episodes a plan is due by time (spec 5); None: never."""
        return None

    def overdue(self) -> bool:
        """Is a plan due by time alone, or because there is more to expand (spec 9)?"""
        due = self._due_at()
        return (self.grows_alone and self.may_grow()) or (due is not None and self.episodes >= due)

    def _replan_is_due(self) -> bool:
        """Has some log-determinant grown by more than log(1 + replan_growth) (spec 6), or is a plan :meth:`overdue`?"""
        if not self._new_data or self.replan_growth == 0:
            return self._new_data
        if self.overdue():
            return True
        threshold = math.log1p(self.replan_growth)
        return self.costs.bank.has_grown(self.planned_cost_log_det, threshold) or (
            self.transitions.bank.has_grown(self.planned_value_log_det, threshold)
        )

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        now = {f"now/{name}": array.copy() for name, array in self._data().items()}
        then = {f"then/{name}": array.copy() for name, array in self._planned_data.items()}
        names = {"replans": "_replans", "failed": "_failed", "new_data": "_new_data", "planned_at": "_planned_at"}
        counters = {name: np.array(getattr(self, own)) for name, own in names.items()}
        return {**super().checkpoint(), **now, **then, **counters, **saved_growth(self.problem)}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Make the plan again, from the data and after the episodes that it was made from, then load the later data."""
        unlike = self.problem
        self.problem = grown_as_saved(unlike, saved)
        try:
            super().restore(saved)
        except SurefootError:
            self.problem = unlike
            raise
        self._waiting = None
        self._load(saved, "then")
        self._planned_at = self.episodes = int(saved["planned_at"])
        self._replans = int(saved["replans"]) - 1
        self._replan_or(self.planned() if self._replans > 0 else None)
        if self.plan_failure:
            raise AssumptionBroken("the plan of the checkpoint cannot be made again", got=self.plan_failure)
        self._load(saved, "now")
        self.episodes = int(saved["episodes"])
        self._failed = int(saved["failed"])
        self._new_data = bool(saved["new_data"])

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        for name, array in self._data().items():
            array[...] = saved[f"{moment}/{name}"]

    def _data(self) -> dict[str, NDArray[Any]]:
        """Every array that observations change, by name."""
        self._enter()
        return {
            **{f"costs/{name}": array for name, array in self.costs.arrays().items()},
            **{f"values/{name}": array for name, array in self.transitions.bank.arrays().items()},
        }


def earliest(*moments: int | None) -> int | None:
    """The first of some moments; None is never."""
    return min((moment for moment in moments if moment is not None), default=None)
