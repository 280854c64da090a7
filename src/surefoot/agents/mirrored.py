"""Learners whose policy changes in small steps: mirror ascent, with prices for budgets (surefoot.plan.drawing).

A plan is made every ``stride`` episodes and takes that many steps at once; as published, ``stride`` is 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.blocks.baseline import Paced
from surefoot.agents.blocks.options import BaselineOptions, Slack, option, worked_out
from surefoot.agents.learner import earliest
from surefoot.agents.tabular import Tabular, TabularOptions, budgets, on_model, total_slack
from surefoot.checks import at_least, whole
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.counts import bernstein
from surefoot.estimate.weighted import WeightedData, by_edge, prefixed_arrays
from surefoot.model.arrays import FloatArray
from surefoot.model.problem import Problem
from surefoot.plan.drawing import averaged, dual_step, mirror_step, most_actions, uniform
from surefoot.plan.plan import Plan
from surefoot.plan.successors import expected_of_triplets
from surefoot.plan.values import most_to_come


@dataclass(frozen=True, kw_only=True)
class MirroredOptions(BaselineOptions):
    """``stride``: episodes from one plan to the next."""

    stride: int = option(10, whole, 1)


class Mirrored(Paced):
    """Keeps a randomised policy, which each plan changes."""

    options: MirroredOptions
    _set_by_plans = (*Paced._set_by_plans, "mirror", "prices", "_seen")
    _seen: Any = None  # the evaluation of the policy in force, for the next step

    def _make_plan(self) -> Plan:
        due = self.episodes - self._planned_at  # how many steps the policy is behind
        if self._seen is not None and due > 0:
            self._step(self._seen, due)
        return self._evaluated_plan()

    @abstractmethod
    def _step(self, seen: Any, times: int) -> None:
        """Change the policy by so many steps, given its evaluation."""

    @abstractmethod
    def _evaluated_plan(self) -> Plan:
        """Evaluate the policy for the next step, and make the plan that plays it."""

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        self.mirror = tuple(uniform(layer) for layer in problem.graph.layers)
        self.prices = np.zeros(len(problem.limits))

    def _due_at(self) -> int | None:
        stride = self._planned_at + self.options.stride if math.isfinite(self.replan_growth) else None
        return earliest(super()._due_at(), stride)

    def _climb(self, gains: Sequence[FloatArray], explore: float = 0.0) -> None:
        """One step of mirror ascent in every state; the gains include the step size."""
        steps = zip(self.problem.graph.layers, self.mirror, gains, strict=True)
        self.mirror = tuple(mirror_step(layer, own, gain, explore) for layer, own, gain in steps)

    def _policy_now(self) -> tuple[FloatArray, ...]:
        return tuple(each.copy() for each in self.mirror)

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), "prices": self.prices, **{f"mirror/{h}": pi for h, pi in enumerate(self.mirror)}}


class Evaluated(NamedTuple):
    """A policy as the regressions see it."""

    gains: tuple[FloatArray, ...]  # H-1 of (N,)  Q_r − Σ Y_j Q_j
    worth: tuple[tuple[FloatArray, ...], ...]  # 1+m functions, each H-1 of (E,): what their regressions are told
    cost: FloatArray  # (m,)  V_j of the start, of several the mean
    q: tuple[FloatArray, ...]
    value: tuple[FloatArray, ...]


@dataclass(frozen=True, kw_only=True)
class OpdopOptions(MirroredOptions):
    """``episodes`` is K, ``scale`` multiplies β; ``slack`` is that of spec 5, for ξ."""

    value_ridge: float = worked_out(1.0)
    optimism: float = worked_out(1.0)
    episodes: int = option(1000, whole, 1)
    scale: float = option(1.0, at_least, 0.0)
    slack: Slack = None  # (m,) ξ once worked out


class Opdop(Mirrored):
    """OPDOP (Ding, Wei, Yang, Wang, Jovanović 2021): optimistic policy optimisation with a price on each budget.

    The only learner for constrained problems that was made for linear mixtures. Per episode, with Q_r, Q_j and V_j of
    the episode before, V_j = V_j of the start, and prices Y_j,

        π(a|s) ∝ ((1−θ) π(a|s) + θ/|A|) · exp(α (Q_r − Σ Y_j Q_j)),   Y_j = [Y_j + η (V_j − n·c̄_j)] in [0, χ_j]
        Q_r = r + ⟨θ̂_r, φ_f⟩ + β‖φ_f‖,      f = V_r(s')                  at most R_h, as optimistic as may be
        Q_j = ⟨θ̂_j, φ_f⟩ − C_j·β‖φ_f‖,      f = lower_j + V_j(s')        V under π, each f with its own regression

        α = √log|A|/(n²√K),  η = 1/√K,  θ = 1/K,  χ_j = 2n/ξ_j,  λ = 1,  β = scale·√(d·R²·log(dnK/p)),  n steps

    Port of: the paper's algorithm, for costs in place of utilities. Sources: remembered with some confidence; no code
    is public.
    Changed to fit: a cost belongs to a triplet here and is estimated by the lower bound of spec 3; expectations are
    clipped to the known support; C_j = L_j·max‖x‖ is the scale of a cost, and ξ_j the fallback's slack, spec 5's summed
    over the steps. A plan is made every ``stride`` episodes, and then takes that many steps at once; 1 is the paper.
    Assumes: transitions that are a linear mixture, a policy strictly below the expected budget.
    Guarantees: regret and total excess over the budget that grow like √K; nothing about steps.
    May violate: single steps wherever the budget of the whole episode leaves room; and the budget, while it learns.
    """

    name: ClassVar[str] = "opdop"
    traced = True
    options: OpdopOptions
    _seen: Evaluated | None

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        self._slack = total_slack(problem, self.options.slack)  # (m,) ξ
        # of rewards, then of each limit's costs
        self.functions = tuple(WeightedData(problem, 1.0) for _ in range(1 + len(problem.limits)))
        self._store(slack=self._slack)

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        assert self._seen is not None
        layer = self.problem.graph.layers[h]
        for data, worth in zip(self.functions, self._seen.worth, strict=True):
            data.count(data.row(h, layer, edge, worth[h]))

    def _evaluated_plan(self) -> Plan:
        for data in self.functions:
            data.bank.refresh()
        bounds = self._bounds()
        seen = self._seen = self._evaluate(bounds)
        return self._drawn_plan(bounds, self._policy_now(), seen.q, seen.value)

    def _step(self, seen: Evaluated, times: int) -> None:
        """So many steps of mirror ascent and of the prices, with the evaluation of the policy in force."""
        graph, k, n = self.problem.graph, self.options.episodes, self.problem.horizon - 1
        rates = [times * math.sqrt(math.log(most_actions(layer))) / (n * n * math.sqrt(k)) for layer in graph.layers]
        gains = [rate * gain for rate, gain in zip(rates, seen.gains, strict=True)]
        self._climb(gains, explore=1.0 - (1.0 - 1.0 / k) ** times)
        pace, most = times / math.sqrt(k), 2.0 * n / self._slack
        self.prices = dual_step(self.prices, seen.cost, budgets(self.problem), pace, most)

    def _evaluate(self, bounds: CostBounds) -> Evaluated:
        """Optimistic values of rewards and of every limit's costs under the policy, backward."""
        problem, graph = self.problem, self.problem.graph
        m, most = len(problem.limits), most_to_come(graph)
        last = np.zeros((graph.terminal.n_states, m))
        if bounds.terminal_lower is not None:
            last = np.where(graph.terminal.has_cost[:, None], bounds.terminal_lower, 0.0)
        ahead = [graph.terminal.reward, *last.T]
        values, q, gains = [ahead[0]], list[FloatArray](), list[FloatArray]()
        worth: list[list[FloatArray]] = [[] for _ in range(1 + m)]
        steps = range(problem.horizon - 1)
        signs = (1.0, *(-problem.largest_costs))
        known = [
            data.around([sign * self._beta(h) for h in steps], 1.0)
            for data, sign in zip(self.functions, signs, strict=True)
        ]
        for h in reversed(steps):
            layer = graph.layers[h]
            now = [np.zeros(layer.n_edges), *layer.worst_of_edges(bounds.lower[h]).T]
            told = [cost + by_edge(layer, v) for cost, v in zip(now, ahead, strict=True)]
            found = [expected_of_triplets(layer, f, each[h]) for f, each in zip(told, known, strict=True)]
            found[0] = np.clip(layer.reward + found[0], 0.0, most[h])
            gains.insert(0, found[0] - sum((y * each for y, each in zip(self.prices, found[1:], strict=True)), 0.0))
            ahead = [averaged(layer, self.mirror[h], each) for each in found]
            for row, f in zip(worth, told, strict=True):
                row.insert(0, f)
            q.insert(0, found[0])
            values.insert(0, ahead[0])
        cost = np.array([each[graph.starts].mean() for each in ahead[1:]])
        return Evaluated(tuple(gains), tuple(map(tuple, worth)), cost, tuple(q), tuple(values))

    def _beta(self, h: int) -> float:
        d, n = self.problem.graph.transition_dim, self.problem.horizon - 1
        log = math.log(max(d, 2) * n * self.options.episodes / self.options.failure_probability)
        return self.options.scale * (n - h) * math.sqrt(d * log)

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), **prefixed_arrays("function", self.functions)}


class Hoped(NamedTuple):
    """An optimistic evaluation of a policy."""

    gains: tuple[FloatArray, ...]  # H-1 of (N,)  Q_r − Σ Y_j Q_j
    spent: FloatArray  # (m,)  V_j of the start, of several the mean


@dataclass(frozen=True, kw_only=True)
class OptPrimalDualOptions(TabularOptions, MirroredOptions):
    """``step`` multiplies the step size t; ``slack`` is that of spec 5, for ξ."""

    step: float = option(1.0, at_least, 0.0)
    slack: Slack = None  # (m,) ξ once worked out


class OptPrimalDual(Mirrored, Tabular):
    """OptPrimalDual-CMDP (Efroni, Mannor, Pirotta 2020): optimistic counts, mirror ascent, and a price on each budget.

    Per episode, with Q and V of the policy in force, as optimistic about rewards and costs as the counts allow, and C_j
    = L_j·max‖x‖ the unit of a cost,

        Q_r = [r + n·Σ_{s'} b(s,a,s') + P̂V_r] in [0, R_h],   Q_j = [c~_j/C_j − n·Σ_{s'} b(s,a,s') + P̂V_j] in [l_j, n−h]
        π ∝ π·exp(t·(Q_r − Σ Y_j Q_j)),       Y_j = [Y_j + (V_j − n·c̄_j/C_j)/u]₊

        t = √(2 log A / (n²(1+ρ)²K)),  u = √(n²K/ρ²),  ρ = n/ξ,   ξ the fallback's slack below the budget in units of C,
        b and c~ as in OptCMDP; l_j = (n−h)·min(0, the least ĉ_j/C_j)

    Port of: the paper's optimistic primal-dual algorithm. Sources: remembered, step sizes only weakly; no code was
    found.
    Changed to fit: costs are measured with noise; values of costs may be negative where costs are. ``scale`` multiplies
    all widths, ``step`` the step size t; 1 is published. A plan every ``stride`` episodes takes that many steps at
    once.
    Assumes: nothing about features; a fallback strictly below the expected budget.
    Guarantees: regret and the total excess over the budget that grow like √K; nothing about steps.
    May violate: single steps wherever the budget of the whole episode leaves room; and the budget, while it learns.
    """

    name: ClassVar[str] = "opt-primal-dual"
    options: OptPrimalDualOptions
    _seen: Hoped | None

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        self._slack = total_slack(problem, self.options.slack) / self._largest  # (m,) ξ
        self._store(slack=self._slack)

    def _evaluated_plan(self) -> Plan:
        self._seen = self._hope()
        return self._counted_plan(self._policy_now())

    def _step(self, seen: Hoped, times: int) -> None:
        n, k = self.problem.horizon - 1, self.options.episodes
        rho = n / float(self._slack.min())
        size = times * self.options.step / (n * (1.0 + rho)) * math.sqrt(2.0 / k)
        layers = self.problem.graph.layers
        rates = [size * math.sqrt(math.log(most_actions(layer))) for layer in layers]
        self._climb([rate * gain for rate, gain in zip(rates, seen.gains, strict=True)])
        pace = times * rho / (n * math.sqrt(k))
        budget, unlimited = budgets(self.problem) / self._largest, np.full(len(self.prices), np.inf)
        self.prices = dual_step(self.prices, seen.spent, budget, pace, unlimited)

    def _hope(self) -> Hoped:
        graph, n = self.problem.graph, self.problem.horizon - 1
        model, most = self._model(), most_to_come(graph)
        inside = [bernstein(self.counts, h, self.log_term, self.options.scale) for h in range(n)]
        doubt = [n * np.add.reduceat(inside[h].width, z.pair_ptr[:-1]) for h, z in enumerate(graph.layers)]
        rewards = [*(layer.reward + doubt[h] for h, layer in enumerate(graph.layers)), graph.terminal.reward]
        gains, _ = on_model(graph, model, self.mirror, rewards, [(0.0, cap) for cap in most])
        hoped = [self._hoped_costs(h) / self._largest for h in range(n + 1)]
        lowest = [self.counts.mean_costs(h).min(axis=0) / self._largest for h in range(n + 1)]
        least = np.minimum(0.0, lowest).min(axis=0)
        spent = np.zeros(len(self.prices))
        for j, price in enumerate(self.prices):
            costs = [*(hoped[h][:, j] - doubt[h] for h in range(n)), hoped[-1][:, j]]
            within = [(float((n - h) * least[j]), float(n - h)) for h in range(n)]
            q, value = on_model(graph, model, self.mirror, costs, within)
            gains = tuple(gain - price * own for gain, own in zip(gains, q, strict=True))
            spent[j] = value[0][graph.starts].mean()
        return Hoped(gains, spent)


class Evaluation(NamedTuple):
    """A policy as the counts see it: rewards, and costs in units of C."""

    rewards: tuple[FloatArray, ...]  # H-1 of (N,)  Q_r
    costs: tuple[tuple[FloatArray, ...], ...]  # m of H-1 of (N,)  Q_j/C_j
    spent: FloatArray  # (m,)  V_j/C_j of the start, of several the mean


@dataclass(frozen=True, kw_only=True)
class CrpoOptions(TabularOptions, MirroredOptions):
    """``tolerance`` is τ in units of C; by default the published one."""

    tolerance: float | None = option(None, at_least, 0.0)


class Crpo(Mirrored, Tabular):
    """CRPO (Xu, Liang, Lan 2021): one objective at a time, the reward while budgets are kept, else what is overspent.

    With Q_r, Q_j and the expected costs V_j of the start, of the policy in force and by the counts, an episode's step
    is

        π ∝ π·exp(α Q_r)      while  V_j ≤ n·c̄_j + τ_j  for all j
        π ∝ π·exp(−α Q_j/C_j) else, for the j that is overspent most in units of C_j = L_j·max‖x‖

        α = scale / √(n³·S·A·K),      τ_j = tolerance·C_j,  by default √(n³·S·A/K)·C_j,      n steps

    Port of: Algorithm 1 with a table for a policy. Sources: the rule read in a detailed text and, for its deep version,
    in the code of a library; its constants are orders, taken with the factor 1.
    Changed to fit: 1/(1 − γ) becomes n; Q is that of the model that was counted, where the paper samples it anew for
    every step; all iterates are played, where the paper returns one that passed the test; a plan every ``stride``
    episodes.
    Assumes: nothing about features; limits on the expected cost of an episode; and no need to explore.
    Guarantees: nothing about steps; an excess over the budget of the order τ.
    May violate: single steps wherever the budget of the whole episode leaves room; and the budget, by its tolerance.
    """

    name: ClassVar[str] = "crpo"
    options: CrpoOptions
    _seen: Evaluation | None

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        # n³·S·A, of the step with the most states and actions
        self._size = (problem.horizon - 1) ** 3 * max(layer.n_pairs for layer in problem.graph.layers)
        given, published = self.options.tolerance, math.sqrt(self._size / self.options.episodes)
        self._tolerance = published if given is None else given
        self._store(tolerance=self._tolerance)

    def _evaluated_plan(self) -> Plan:
        self._seen = self._evaluate()
        return self._counted_plan(self._policy_now())

    def _step(self, seen: Evaluation, times: int) -> None:
        alpha = times * self.options.scale / math.sqrt(self._size * self.options.episodes)
        excess = seen.spent - budgets(self.problem) / self._largest
        worst = int(np.argmax(excess))
        if excess[worst] <= self._tolerance:
            self._climb([alpha * q for q in seen.rewards])
        else:
            self._climb([-alpha * q for q in seen.costs[worst]])

    def _evaluate(self) -> Evaluation:
        graph, model, m = self.problem.graph, self._model(), len(self._largest)
        rewards, _ = on_model(graph, model, self.mirror)
        mean = [self.counts.mean_costs(h) / self._largest for h in range(graph.horizon)]
        found = [on_model(graph, model, self.mirror, [each[:, j] for each in mean]) for j in range(m)]
        spent = np.array([value[0][graph.starts].mean() for _, value in found])
        return Evaluation(rewards, tuple(q for q, _ in found), spent)
