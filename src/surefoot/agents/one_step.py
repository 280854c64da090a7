"""Learners whose next step is safe by their bounds, but that do not look ahead: each may enter unsafe states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from surefoot.agents.blocks.baseline import Baseline, Paced, no_bonus
from surefoot.agents.blocks.options import BaselineOptions, Slack, option
from surefoot.checks import at_least, whole
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.labels import Label, same_label
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified, certified_now
from surefoot.plan.drawing import best_mixture
from surefoot.plan.explore import pair_uncertainty, slacks
from surefoot.plan.plan import Plan
from surefoot.plan.segments import first_marked
from surefoot.plan.successors import assumed_excess
from surefoot.plan.values import StepValues, Values, backward_values, greedy, most_to_come


@dataclass(frozen=True, kw_only=True)
class SlucbQviOptions(BaselineOptions):
    """``bonus`` scales the bonus; 1 is published. ``slack`` is that of spec 5, by default bound − anchor cost."""

    bonus: float = option(1.0, at_least, 0.0)
    slack: Slack = None  # (H, m) once worked out


class SlucbQvi(Baseline):
    """SLUCB-QVI (Amani, Thrampoulidis, Yang 2021): safe actions at each step, without looking ahead.

    An action is allowed when all its successors keep every limit by their upper bounds now (eq:safetycondition1);

        Q = min(R_h, r + ⟨θ̂, φ_V⟩ + radius·‖φ_V‖_{A⁻¹} + (2H/slack)·(half the width of the cost bound))

    Port of: the paper's algorithm for star-convex actions. Sources: remembered; no code is public.
    Changed to fit: made for linear MDPs whose states are all safe, it runs here on a linear mixture with the cost
    bounds of spec 3 and the value regression of spec 6. Where no action is allowed, it plays the one with the least
    worst upper bound.
    Assumes: a safe action in every state.
    Guarantees: every step safe with probability 1 − p while it meets no state without an action that passes; else
    nothing.
    May violate: by entering states that have no safe action.
    """

    name: ClassVar[str] = "slucb-qvi"
    options: SlucbQviOptions

    def _prepare(self, problem: Problem) -> None:
        self._slack = slacks(problem, self.options.slack)  # (H, m)
        self._store(slack=self._slack)

    def _certify(self, bounds: CostBounds) -> tuple[Certified, Certified]:
        return certified_now(self.problem.graph, bounds, self.problem.bounds)

    def _bonuses(self, bounds: CostBounds) -> Sequence[FloatArray]:
        """(2H/slack)·(upper − lower)/2 = H·ω, ω the relative width of spec 5."""
        graph = self.problem.graph
        return [self.options.bonus * graph.horizon * width for width in pair_uncertainty(graph, bounds, self._slack)]


class RslucbQvi(SlucbQvi):
    """RSLUCB-QVI (Amani, Thrampoulidis, Yang 2021): SLUCB-QVI with actions drawn, so that they are safe on average.

    With u(s,a) = max_j (upper_j − c̄_j) of the worst successor, in every state the distribution w over its actions with

        the largest  Σ w(a) min(R_h, Q(s,a))   such that   Σ w(a) u(s,a) ≤ 0

    and V its value; Q as in SLUCB-QVI, with V of the next step. The optimum is on two actions (surefoot.plan.drawing).

    Port of: the randomised algorithm of the same paper. Sources: remembered; no code is public.
    Changed to fit: as SLUCB-QVI. The paper's bonus and bound are norms of the mixed feature, which is not concave; here
    both are mixed themselves, which is no smaller, so the mean cost is bounded as it promises. Of several limits the
    worst decides.
    Assumes: a safe action in every state.
    Guarantees: nothing about steps; in states with a safe action the mean cost of a step is within its limit.
    May violate: half of the time in a state where it mixes; and by entering states that have no safe action.
    """

    name: ClassVar[str] = "rslucb-qvi"

    def _make_plan(self) -> Plan:
        problem, graph = self.problem, self.problem.graph
        bounds, known = self._bounds(), self._known()
        bonus, most = self._bonuses(bounds), most_to_come(graph)
        excess = assumed_excess(graph, bounds, problem.bounds)
        value, q, chances = [graph.terminal.reward], list[FloatArray](), list[FloatArray]()
        for h in reversed(range(len(graph.layers))):
            layer = graph.layers[h]
            q.insert(0, layer.reward + expected_next_value(layer, value[0], known[h]) + bonus[h])
            mixed, worth = best_mixture(layer, np.minimum(q[0], most[h]), excess[h])
            chances.insert(0, mixed)
            value.insert(0, worth)
        return self._drawn_plan(bounds, tuple(chances), q, value, bonus)


class Oplb(SlucbQvi):
    """OPLB (Pacchiano, Ghavamzadeh, Bartlett, Jiang 2021, arXiv 2006.10185): a linear bandit that is safe on average.

    In every state, with u(s,a) = max_j (upper_j − c̄_j) of the worst successor, the distribution w over its actions
    with

        the largest  Σ w(a) (r(s,a) + α·half the width of the cost bound)   such that   Σ w(a) u(s,a) ≤ 0,
        α = α_r = 1 + 2/slack,   α_c = 1

    Port of: the optimistic–pessimistic linear bandit, every state a context of its own. Sources: the constants
    remembered; the linear program of its multi-armed version read in the authors' code, which finds the same mixtures
    (benchmarks/published_code.py).
    Changed to fit: rewards are known, so that only exploration of costs is left of its optimism; the bounds are those
    of spec 3; a bandit has no next state, so it looks at the reward of this step alone. Exact where the horizon is 2.
    Assumes: a known safe action in every state, with known cost (here the anchor).
    Guarantees: nothing about steps; in states with a safe action the mean cost of a step is within its limit.
    May violate: half of the time in a state where it mixes; and by entering states that have no safe action.

    ``bonus`` scales α.
    """

    name: ClassVar[str] = "oplb"

    def _bonuses(self, bounds: CostBounds) -> Sequence[FloatArray]:
        """α·(upper − lower)/2 = (1 + 2/slack)·(slack·ω)/2 = ω·(slack/2 + 1), ω the relative width of spec 5."""
        widths = pair_uncertainty(self.problem.graph, bounds, self._slack)
        return [self.options.bonus * w * (self._slack[h].min() / 2.0 + 1.0) for h, w in enumerate(widths)]

    def _make_plan(self) -> Plan:
        graph, bounds = self.problem.graph, self._bounds()
        bonus = self._bonuses(bounds)
        excess = assumed_excess(graph, bounds, self.problem.bounds)
        q = [layer.reward + bonus[h] for h, layer in enumerate(graph.layers)]
        mixed = [best_mixture(layer, q[h], excess[h]) for h, layer in enumerate(graph.layers)]
        # Nothing learned about transitions is used; its targets must still lie in their range.
        value = [*(np.clip(worth, 0.0, 1.0) for _, worth in mixed), graph.terminal.reward]
        chances = tuple(each for each, _ in mixed)
        return self._drawn_plan(bounds, chances, q, value, bonus)


@dataclass(frozen=True, kw_only=True)
class SafeLucbOptions(BaselineOptions):
    """``episodes`` is K, ``initial_episodes`` replaces K'."""

    episodes: int = option(1000, whole, 1)
    initial_episodes: int | None = option(None, whole, 0)


class SafeLucb(Paced):
    """Safe-LUCB (Amani, Alizadeh, Thrampoulidis 2019): a linear bandit that plays what is surely safe now.

        phase 1   the known safe policy, for K' = ⌈K^(2/3)⌉ episodes
        phase 2   in every state the action that pays most now, of those whose upper bounds keep every limit now

    Port of: the algorithm without a known safety gap, every state and action an arm. Sources: remembered; the length of
    the first phase only weakly.
    Changed to fit: its constraint shares the reward's unknown parameter; here costs have their own and are measured,
    rewards are known, so what is left is the first condition alone, with the bounds of spec 3. The first phase plays
    the fallback instead of uniform actions of a safe ball. Where no action passes, the least worst upper bound. Exact
    where the horizon is 2.
    Assumes: that every state has a safe action, and that this step is all there is.
    Guarantees: nothing.
    May violate: by entering states that have no safe action; it does not look ahead at all.
    """

    name: ClassVar[str] = "safe-lucb"
    options: SafeLucbOptions

    def _prepare(self, problem: Problem) -> None:
        self._begin_with_fallback(self.options.initial_episodes, math.ceil(self.options.episodes ** (2.0 / 3.0) - 1e-9))

    def _make_plan(self) -> Plan:
        graph, bounds = self.problem.graph, self._bounds()
        certified, allowed = certified_now(graph, bounds, self.problem.bounds)
        now = [greedy(layer, layer.reward, allowed.pairs[h], 1.0) for h, layer in enumerate(graph.layers)]
        action = [chosen for _, chosen in now]
        if self.playing_fallback:
            action = [np.where(own == NO_ACTION, other, own) for own, other in zip(graph.fallback, action, strict=True)]
        q, worth = tuple(layer.reward for layer in graph.layers), (*(worth for worth, _ in now), graph.terminal.reward)
        values = Values(q, no_bonus(graph), worth, tuple(action))
        return Plan(self.problem, bounds, certified, values, self._known(), self.replans)


@dataclass(frozen=True, kw_only=True)
class MaseOptions(BaselineOptions):
    """``punishment`` is c, ``stop`` the action that stops."""

    punishment: float = option(1.0, at_least, 0.0)
    stop: Label = None


class Mase(Baseline):
    """MASE (Wachi, Hashimoto, Shen, Hashimoto 2023): safe actions at each step, and a price on having to stop.

    An action passes when all its successors keep every limit by their upper bounds now. A state in which none passes is
    met with an emergency stop: nothing is earned from there on, and having come there is punished, the more the less
    there is left to be learned in it. With ω(s,a) the relative width of spec 5,

        Q = min(R_h, r + expected V(s')),   V(s) = max of Q over actions that pass,  −c / min_a ω(s,a) where none does

    Port of: the meta-algorithm with generalised linear bounds, UCRL-VTR as the learner inside. Sources: remembered; no
    code was read.
    Changed to fit: the bounds are those of spec 3, c = ``punishment``. The stop is the action ``stop``, which every
    state must have; without one it is the action with the least worst upper bound.
    Assumes: that stopping is possible and safe in every state.
    Guarantees: every step safe with probability 1 − p where that is so; else nothing.
    May violate: by having to stop where stopping is not safe.
    """

    name: ClassVar[str] = "mase"
    options: MaseOptions

    def _prepare(self, problem: Problem) -> None:
        self._stops = None if self.options.stop is None else stops(problem, self.options.stop)

    def _make_plan(self) -> Plan:
        bounds, known = self._bounds(), self._known()
        graph = self.problem.graph
        passes, playable = certified_now(graph, bounds, self.problem.bounds)
        values = self._shaped(bounds, known, passes)
        others = self._stops or [greedy(z, z.reward, playable.pairs[h], 1.0)[1] for h, z in enumerate(graph.layers)]
        action = tuple(np.where(a == NO_ACTION, b, a) for a, b in zip(values.action, others, strict=True))
        return Plan(self.problem, bounds, passes, replace(values, action=action), known, self.replans)

    def _shaped(self, bounds: CostBounds, known: Sequence[ValueEllipsoid], passes: Certified) -> Values:
        """Values if having to stop costs something and earns nothing afterwards."""
        graph, most = self.problem.graph, most_to_come(self.problem.graph)
        widths = pair_uncertainty(graph, bounds, slacks(self.problem, None))

        def step(h: int, following: FloatArray) -> StepValues:
            layer = graph.layers[h]
            q = layer.reward + expected_next_value(layer, following, known[h])
            best, chosen = greedy(layer, q, passes.pairs[h], most[h])
            least = np.minimum.reduceat(widths[h], layer.state_ptr[:-1])
            return q, np.where(chosen == NO_ACTION, -self.options.punishment / np.maximum(least, 1e-9), best), chosen

        found = backward_values(step, no_bonus(graph), np.where(passes.states[-1], graph.terminal.reward, 0.0))
        # Transitions are learned from values in [0, R_h].
        return replace(found, value=tuple(np.maximum(each, 0.0) for each in found.value))


def stops(problem: Problem, stop: Label) -> list[IntArray]:
    """Per decision layer (S,) the pair that stops, which every state must have."""
    found: list[IntArray] = []
    for h, layer in enumerate(problem.graph.layers):
        marked = [same_label(problem.naming.action(layer, h, pair), stop) for pair in range(layer.n_pairs)]
        own = first_marked(np.array(marked), layer.state_ptr).tolist()
        if NO_ACTION in own:
            where = problem.naming.at_state(h, own.index(NO_ACTION))
            raise InvalidInput("the emergency stop must be an action of every state", where=where, got=repr(stop))
        found.append(np.array(own, np.int64))
    return found
