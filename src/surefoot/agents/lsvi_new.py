"""LSVI-NEW: least-squares value iteration by looking ahead and peeking backward (Algorithm 1 of the paper).

Between episodes, from the last step to the first:

    Step 1  bound the cost of every triplet                    surefoot.estimate.costs    (spec 3)
    Step 2  certify actions whose every future is safe         surefoot.plan.certify      (spec 4, Idea I)
    Step 3  estimate what follows a state and an action        surefoot.estimate.values   (spec 6)
    Step 4  optimistic values, with bonuses for what narrows
            the bounds that are in the way                     surefoot.plan.directed     (spec 5)
            or for uncertain transitions, futures and pasts    surefoot.plan.explore      (spec 5, Ideas II-IV)
    Step 5  in the episode, play the best certified action     surefoot.plan.values       (spec 6)

Port of: the paper, with proved radii. Sources: read; docs/specification.md has every deviation.
Changed to fit: exploration weights are scaled, or directed, where the paper's do not move.
Assumes: what the Problem declares: features, norms, noise, supports, and a safe fallback.
Guarantees: every step safe with probability 1 − p.
May violate: with probability p at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import check_problem
from surefoot.agents.blocks.look_ahead import IDEAS, LookAhead, LookAheadOptions, check_ideas
from surefoot.agents.learner import Learner, earliest
from surefoot.checks import at_least, list_of, one_of, probability, whole
from surefoot.clusters import Cluster, cluster_of, is_cluster
from surefoot.errors import InvalidInput
from surefoot.estimate.arrivals import Arrivals
from surefoot.estimate.costs import CostBounds, bound_costs
from surefoot.estimate.ellipsoids import MULTIPLIERS
from surefoot.estimate.families import Family, with_ratios
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.model.rules import check_flag
from surefoot.plan.certify import Certified
from surefoot.plan.confidence import cost_confidence, refuse_unusable, value_confidence
from surefoot.plan.directed import Directed, Explored, InMemory, Waited, weighed
from surefoot.plan.explore import bonuses, future_uncertainty, pair_uncertainty, slacks, terminal_uncertainty
from surefoot.plan.hope import Hope, hope
from surefoot.plan.mapped import Mapped
from surefoot.plan.plan import Plan
from surefoot.plan.rays import Opened, open_rays
from surefoot.plan.shares import useful
from surefoot.plan.values import most_to_come, optimistic_values

if TYPE_CHECKING:
    from surefoot.plan.blockwise.planner import Blockwise
    from surefoot.plan.blockwise.team import Team

EXPLORATIONS = ("directed", "ideas")
FIRST_LOOK = 16  #: episodes of a plan
REMEMBERED = ("episodes", "weight", "explored")  # of Waited, with which a plan is made again


@dataclass(frozen=True, kw_only=True)
class LsviNewOptions(LookAheadOptions):
    shaped: float
    ridge_ratios: tuple[float, ...]  # (m,)
    multipliers: tuple[float, ...]
    optimism: float
    exploration: str
    budget: float
    explore: tuple[float, float, float]  # 0 for an idea that is switched off
    slack: tuple[tuple[float, ...], ...]  # (H, m)
    literal_future: bool


def _budget(problem: Problem) -> float:
    """The default of spec 5; a model error as small as rounding does not count."""
    erring = any(limit.misspecification > 0.01 * limit.noise for limit in problem.limits)
    return 2.0 if erring else 20.0


class LsviNew(LookAhead):
    """The paper's algorithm with proved radii for safety and scaled weights for exploration.

    Args:
        problem: what is known.
        failure_probability: p; all steps of all episodes are safe with probability at least 1 − p.
        exploration: ``"directed"``, towards whatever would certify more reward, or ``"ideas"``, the paper's bonuses
            for everything uncertain (spec 5). Directed by default, unless ``explore``, ``ideas`` or
            ``literal_future`` is given; these are about the bonuses.
        budget: directed exploration may use at most this times √k of the first k episodes; by default 20, or 2 if a
            limit declares a model error above a hundredth of its noise, since no amount of data may then settle what is
            hoped for.
        explore: (w₂, w₃, w₄), the weights of Ideas II, III and IV (spec 5); by default (0.1, 0.02, 0.02).
        ridges: the grid Λ of cost ridges (spec 3); by default one, the mean ‖z‖² of the features, in their shape.
        shaped: how many times a single ridge is taken in the shape of the features (spec 3); 0: as it is, the same in
            all directions. By default 0 with ``ridges``, otherwise up to 10, less with little noise.
        ridge_ratios: for each limit, the factor of its ridges (spec 3); by default the mean ‖z‖² of its rows over that
            of rows as they are declared, so 1 without a prior. Fixed before any data.
        multipliers: of (R/L)², how much of the norm's ball joins each noise ellipsoid (spec 3). More of them give
            slightly tighter bounds and slower plans, with the same guarantee.
        value_ridge: λ₂ of the value regression (spec 6).
        optimism: w₁, the share of the value radius that is used (spec 6).
        slack: what uncertainty is measured against (spec 5); by default bound − anchor cost.
        replan_growth: plan anew when some log-determinant has grown by log(1 + this); 0 = before every episode.
        initial_episodes: K′, episodes that play the fallback first.
        ideas: which of the paper's four ideas to use. Without ``"I"`` there is no safety guarantee.
        safety_radius_scale: multiplies the safety radius; below 1 there is no safety guarantee.
        literal_future: let Idea III consider uncertified actions too, as the paper prints it.
        on: make plans on a Dask cluster: ``"dask"`` for one on this machine, a scheduler's address, or a TOML file
            that describes one (:mod:`surefoot.clusters`). Each worker holds some of the states of every step. Plans are
            the same, bit for bit. For problems that one machine cannot plan in time; needs directed exploration.

    Examples:
        >>> agent = sf.LsviNew(sf.worlds.make("thermal/testing").problem, failure_probability=0.01)
        >>> agent.promise
        'every step safe with probability ≥ 0.99'
    """

    name: ClassVar[str] = "lsvi-new"
    grows: ClassVar[bool] = True
    knows_rays: ClassVar[bool] = True
    options: LsviNewOptions
    _set_by_plans = (*LookAhead._set_by_plans, "_waited", "_arrivals", "_arrivals_then", "traced")

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        exploration: str | None = None,
        budget: float | None = None,
        explore: Sequence[float] | None = None,
        ridges: Sequence[float] | None = None,
        shaped: float | None = None,
        ridge_ratios: Sequence[float] | None = None,
        multipliers: Sequence[float] = MULTIPLIERS,
        value_ridge: float = 1.0,
        optimism: float = 1.0,
        slack: float | Sequence[float] | None = None,
        replan_growth: float = 0.1,
        initial_episodes: int = 0,
        ideas: Iterable[str] = IDEAS,
        safety_radius_scale: float = 1.0,
        literal_future: bool = False,
        on: str | Cluster | None = None,
    ) -> None:
        check_problem(problem, self.grows)
        p, chosen = probability("failure_probability", failure_probability), check_ideas(ideas)
        literal = check_flag("literal_future", literal_future)
        rule = _exploration(exploration, chosen != IDEAS or literal or explore is not None)
        cluster = None if on is None else _cluster(on, rule)
        costs = cost_confidence(
            problem,
            failure_probability=p,
            multipliers=multipliers,
            scale=safety_radius_scale,
            ridges=ridges,
            shaped=shaped,
        )
        values = value_confidence(problem, failure_probability=p, value_ridge=value_ridge, optimism=optimism)
        self._learning = with_ratios(problem, ridge_ratios)
        for family in self._learning:
            refuse_unusable("ridges times ridge_ratios", [x * family.ratio for x in costs.ridges], family.longest)
        ratios = [(j, family.ratio) for family in self._learning for j in family.members]
        self._slack = slacks(problem, slack)  # (H, m)
        self._waited = Waited()
        self._arrivals = Arrivals(problem.graph)
        self._arrivals_then = self._arrivals.flat()  # when the plan in force was made
        self._cluster, self._blockwise = cluster, cast("Blockwise | None", None)
        options = LsviNewOptions(
            failure_probability=p,
            ridges=costs.ridges,
            shaped=costs.shaped,
            ridge_ratios=tuple(ratio for _, ratio in sorted(ratios)),
            multipliers=costs.multipliers,
            value_ridge=values.ridge,
            replan_growth=at_least("replan_growth", replan_growth, 0.0),
            ideas=chosen,
            initial_episodes=whole("initial_episodes", initial_episodes, 0),
            safety_radius_scale=costs.scale,
            optimism=values.optimism,
            exploration=rule,
            budget=at_least("budget", _budget(problem) if budget is None else budget, 0.0),
            explore=_weights((0.1, 0.02, 0.02) if explore is None else explore, chosen),
            slack=tuple(map(tuple, self._slack.tolist())),
            literal_future=literal,
        )
        super().__init__(problem, options, costs, values)

    def _families(self) -> tuple[Family, ...]:
        return self._learning

    def _make_plan(self) -> Plan:
        if self._cluster is not None:
            return self._make_plan_on(self._cluster)
        problem, opened = self.problem, None
        plain = not problem.has_rays and problem.growth is None
        if problem.mapped and plain and self.options.exploration == "directed":
            return self._make_plan_by(Mapped(problem))
        if problem.has_rays:  # an ordinary problem from here on: every ray at the intensity that its rows certify
            opened = open_rays(problem, self.costs, self.cost_confidence)
            problem, bounds = opened.problem, opened.bounds
        else:
            bounds = bound_costs(problem, self.costs, self.cost_confidence)  # Step 1
        certified, allowed = self._certify(problem, bounds)  # Step 2
        known, graph = self.value_ellipsoids(), problem.graph  # Step 3
        if self.options.exploration == "directed":  # Step 4
            hoped = hope(problem, bounds, certified, known, opened)
            return self._directed(problem, bounds, certified, known, hoped, InMemory(), opened)
        values = optimistic_values(graph, allowed, self._ideas(graph, bounds, allowed), known, most_to_come(graph))
        return Plan(problem, bounds, certified, values, known, self.replans, opened=opened)

    def _ideas(self, graph: LayeredGraph, bounds: CostBounds, allowed: Certified) -> tuple[FloatArray, ...]:
        """The bonuses of Ideas II, III and IV."""
        omega = pair_uncertainty(graph, bounds, self._slack)
        last = terminal_uncertainty(graph, bounds, self._slack)
        along = [np.ones_like(mask) for mask in allowed.pairs] if self.options.literal_future else allowed.pairs
        return bonuses(graph, omega, future_uncertainty(graph, omega, last, along), self.options.explore)

    @property
    def team(self) -> Team | None:
        """The workers that make the plans, if there are any."""
        return None if self._blockwise is None else self._blockwise.team

    def _make_plan_on(self, cluster: Cluster) -> Plan:
        """The same, by the workers of a cluster."""
        from surefoot.plan.blockwise.planner import Blockwise

        if self._blockwise is None:
            self._blockwise = Blockwise(self.problem, self.costs, self._slack, cluster)
        by, waited = self._blockwise, self._waited

        def make() -> Plan:
            self._waited = waited
            return self._make_plan_by(by)

        return by.team.together(make)

    def _make_plan_by(self, by: Blockwise | Mapped) -> Plan:
        known = self.value_ellipsoids()
        bounds = by.bound_costs(self.costs, self.cost_confidence, known)
        certified, hoped = by.hope(bounds)
        return self._directed(self.problem, bounds, certified, known, hoped, by)

    def _directed(
        self,
        problem: Problem,
        bounds: CostBounds,
        certified: Certified,
        known: tuple[ValueEllipsoid, ...],
        hoped: Hope,
        by: Any,
        opened: Opened | None = None,
    ) -> Plan:
        """A plan that explores towards what is hoped for. ``by``: who computes shares and values,
        :class:`surefoot.plan.directed.InMemory` or something with the same methods."""
        self._waited = self._waited.at(self.episodes, hoped.gap)
        self._arrivals_then = self._arrivals.flat()
        self.traced = hoped.gap > 0
        values, found = hoped.sure, None
        told = self._told(problem, certified, hoped, by)
        if told is not None:

            def exploring(weight: float) -> Explored:
                result: Explored = by.exploring_values(problem, certified, known, hoped, told, weight)
                return result

            weight, explored = weighed(problem.graph, hoped, self._waited, exploring)
            self._waited = replace(self._waited, weight=weight, exploring=not explored.alike())
            values, found = explored.values, Directed(weight, told)
        return Plan(problem, bounds, certified, values, known, self.replans, found, hoped, opened=opened)

    def _told(self, problem: Problem, certified: Certified, hoped: Hope, by: Any) -> Any:
        """How much what can be played tells about what is hoped for; None if there is nothing to explore."""
        options = self.options
        if not (hoped.gap > 0 and self._waited.may_explore(self.episodes, options.budget)):
            return None
        ridge = sorted(options.ridges)[len(options.ridges) // 2]
        played = self._arrivals.played(self.problem.graph, options.failure_probability)
        return by.shares(problem, self.costs, certified, hoped, ridge, self._slack, useful(self.episodes), played)

    def _due_at(self) -> int | None:
        return self._waited.due_at(self.replan_growth, self.options.budget)

    def episodes_before_change(self) -> int | None:
        age = self.episodes - self._planned_at
        look = max(FIRST_LOOK, 1 << age.bit_length()) - age  # the next power of two
        return earliest(super().episodes_before_change(), look if self.traced else None)

    def overdue(self) -> bool:
        """Likewise when what came says much more than the plan knew: looked at when its age is a power of two."""
        age = self.episodes - self._planned_at
        look = self.traced and math.isfinite(self.replan_growth) and age >= FIRST_LOOK and age & (age - 1) == 0
        return super().overdue() or (look and self._arrivals.doubled(self._arrivals_then, self.problem.graph))

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        if self.traced:
            self._arrivals.add(h, [edge])

    def retell(self, edges: IntArray, costs: FloatArray, told_last: bool) -> None:
        for h in range(edges.shape[1]):
            self._arrivals.add(h, edges[:, h].tolist())

    def _move_to(self, problem: Problem) -> None:
        super()._move_to(problem)
        self._arrivals = Arrivals(problem.graph)  # its triplets have other numbers

    def inherit(self, other: Learner) -> None:
        super().inherit(other)
        if isinstance(other, LsviNew):
            self._waited = other._waited

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        waited = {f"waited/{name}": np.array(getattr(self._waited, name)) for name in REMEMBERED}
        moments = {"now": self._arrivals.flat(), "then": self._arrivals_then}
        came = {f"came/{moment}/{name}": array for moment, flat in moments.items() for name, array in flat.items()}
        return {**super().checkpoint(), **waited, **came}

    def _load(self, saved: Mapping[str, NDArray[Any]], moment: str) -> None:
        super()._load(saved, moment)
        names = {name: saved[f"came/{moment}/{name}"] for name in self._arrivals_then}
        self._arrivals.load(names, self.problem.graph)
        if moment == "then":
            self._waited = Waited(**{name: saved[f"waited/{name}"].item() for name in REMEMBERED})


def _exploration(given: str | None, with_bonuses: bool) -> str:
    if given is None:
        return "ideas" if with_bonuses else "directed"
    if one_of("exploration", EXPLORATIONS, given) == "directed" and with_bonuses:
        fix = 'Leave them out, or give exploration="ideas".'
        raise InvalidInput("explore, ideas and literal_future are not for directed exploration", fix=fix)
    return given


def _cluster(on: str | Cluster, exploration: str) -> Cluster:
    if exploration != "directed":
        fix = "Leave out on=, or explore, ideas and literal_future."
        raise InvalidInput("plans on a cluster are made with directed exploration only", fix=fix)
    if isinstance(on, Cluster):
        return on
    if not is_cluster(on):
        fix = 'Give "dask", a scheduler\'s address such as tcp://host:8786, or a TOML file.'
        raise InvalidInput("no such cluster", got=repr(on), fix=fix)
    return cluster_of(on, None)


def _weights(explore: Sequence[float], ideas: tuple[str, ...]) -> tuple[float, float, float]:
    given = list_of("explore", explore)
    if len(given) != 3:
        raise InvalidInput("explore must be three weights, for ideas II, III and IV", got=repr(explore))
    w2, w3, w4 = (
        at_least("explore", w, 0.0) if idea in ideas else 0.0 for w, idea in zip(given, IDEAS[1:], strict=True)
    )
    return w2, w3, w4
