"""Learners without features: counts, budgets for whole episodes, and plans from a randomised policy.

**Budgets.** These learners were made for limits on the expected cost of an episode. A hard limit c̄ on each of n steps
becomes the usual soft form  E Σ cost_j ≤ n·c̄_j. It is very lax: its best policy breaks the hard limit where that pays
and stays below it elsewhere. Rewards are known here, costs and transitions are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import Chances
from surefoot.agents.blocks.baseline import Paced
from surefoot.agents.blocks.options import BaselineOptions, Slack, option, worked_out
from surefoot.checks import at_least, whole
from surefoot.estimate.counts import Counts, Intervals, bernstein, empirical
from surefoot.model.arrays import FloatArray
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan.drawing import averaged, softmax
from surefoot.plan.explore import slacks
from surefoot.plan.occupancy import best_occupancy
from surefoot.plan.plan import Plan
from surefoot.plan.values import StepValues, backward_values, greedy, most_to_come


@dataclass(frozen=True, kw_only=True)
class TabularOptions(BaselineOptions):
    """``episodes`` is K, for which constants are computed; ``scale`` multiplies all widths, 1 is published."""

    ridges: Sequence[float] | None = worked_out(None)  # of bounds for the record only, as the three below
    shaped: float | None = worked_out(None)
    value_ridge: float = worked_out(1.0)
    optimism: float = worked_out(1.0)
    episodes: int = option(1000, whole, 1)
    scale: float = option(1.0, at_least, 0.0)


class Tabular(Paced):
    """Counts visits and costs, and knows nothing else."""

    options: TabularOptions
    traced = True

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        self.counts = Counts(problem)
        self._largest = np.maximum(problem.largest_costs, 1e-300)  # (m,) C_j

    def _note(self, episode: int, h: int, edge: int, cost: FloatArray | None) -> None:
        self.counts.add(h, edge, cost)

    def _note_last(self, state: int, cost: FloatArray | None) -> None:
        self.counts.add_last(state, cost)

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), **self.counts.arrays()}

    @property
    def log_term(self) -> float:
        """log(6·pairs·K/p), all steps' pairs together: the paper's log(6SAHK/p)."""
        pairs = sum(layer.n_pairs for layer in self.problem.graph.layers)
        return math.log(6.0 * pairs * self.options.episodes / self.options.failure_probability)

    def _model(self) -> list[FloatArray]:
        """Per decision layer (E,) P̂."""
        return [self.counts.model(h) for h in range(self.problem.horizon - 1)]

    def _cost_width(self, h: int) -> FloatArray:
        """(N, m) σ_j√(l/n), n at least 1, of a layer's pairs; of the last layer's states likewise."""
        n = np.maximum(self.counts.measured[h], 1)[:, None]
        width: FloatArray = self.options.scale * self.problem.noise_of(1) * math.sqrt(self.log_term) / np.sqrt(n)
        return width

    def _hoped_costs(self, h: int) -> FloatArray:
        """(N, m) max(ĉ − σ√(l/n), min(0, ĉ)) of a layer: an optimistic cost, negative only where ĉ is."""
        mean = self.counts.mean_costs(h)
        return np.maximum(mean - self._cost_width(h), np.minimum(mean, 0.0))

    def _counted_plan(self, chances: Chances) -> Plan:
        """A plan that draws its actions with these chances; its values are those that the counts predict."""
        bounds, (q, value) = self._bounds(), on_model(self.problem.graph, self._model(), chances)
        return self._drawn_plan(bounds, chances, q, value)

    def _within_budget(
        self, inside: Sequence[Intervals], rewards: Sequence[FloatArray], costs: Sequence[FloatArray]
    ) -> Plan:
        """The best policy of the best model within the intervals that keeps every budget; the fallback where none does.

        ``rewards``: per decision layer (N,). ``costs``: H of (N, m), the last of the last states (S, m).
        """
        graph = self.problem.graph
        low, high = [each.low for each in inside], [each.high for each in inside]
        rewards = [*rewards, graph.terminal.reward]
        found = best_occupancy(graph, low, high, rewards, by_triplet(graph, costs), budgets(self.problem))
        return self._counted_plan(fallback_chances(graph) if found is None else found.chances)


def on_model(
    graph: LayeredGraph,
    model: Sequence[FloatArray],
    chances: Chances,
    paid: Sequence[FloatArray] | None = None,
    within: Sequence[tuple[float, float]] | None = None,
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Q (H-1 of (N,)) and V (H of (S,)) of a policy where transitions are a model's (E,).

    ``paid``: H of (N,), the last (S,); by default the rewards. ``within``: per decision layer the range of Q.
    """
    now = [*(layer.reward for layer in graph.layers), graph.terminal.reward] if paid is None else paid
    value, q = [now[-1]], list[FloatArray]()
    for h in reversed(range(len(graph.layers))):
        layer = graph.layers[h]
        found = now[h] + np.add.reduceat(model[h] * value[0][layer.successor], layer.pair_ptr[:-1])
        q.insert(0, found if within is None else np.clip(found, *within[h]))
        value.insert(0, averaged(layer, chances[h], q[0]))
    return tuple(q), tuple(value)


def budgets(problem: Problem) -> FloatArray:
    """(m,) n·c̄_j, n the number of steps that have a cost; where bounds differ by step, their sum."""
    total: FloatArray = problem.bounds[: costed_steps(problem)].sum(axis=0)
    return total


def costed_steps(problem: Problem) -> int:
    return problem.horizon - 1 + bool(problem.graph.terminal.has_cost.any())


def total_slack(problem: Problem, slack: Slack) -> FloatArray:
    """(m,) how far the fallback stays below each budget: the slacks of spec 5 over all steps that have a cost."""
    result: FloatArray = slacks(problem, slack)[: costed_steps(problem)].sum(axis=0)
    return result


def by_triplet(graph: LayeredGraph, costs: Sequence[FloatArray]) -> list[FloatArray]:
    """Per decision layer (E, m): the cost of the pair, and of the last step the cost of the state it ends in as well.

    ``costs``: H of (N, m), the last (S, m).
    """
    found = [costs[h][layer.edge_pair()] for h, layer in enumerate(graph.layers)]
    found[-1] = found[-1] + costs[-1][graph.layers[-1].successor]
    return found


def fallback_chances(graph: LayeredGraph) -> Chances:
    """The fallback as a policy with chances, 0 in states that it never reaches."""
    return tuple(layer.played_by_fallback().astype(np.float64) for layer in graph.layers)


class OptCmdp(Tabular):
    """OptCMDP (Efroni, Mannor, Pirotta 2020): the best policy of the best model that the counts allow, within a budget.

    Before a plan, over all models with P̂ − b ≤ P ≤ P̂ + b on the declared support, b the Bernstein width of
    surefoot.estimate.counts, the linear program of surefoot.plan.occupancy with rewards r, costs and budgets

        c~ = max( ĉ − σ√(l/n), min(0, ĉ) ),    E Σ c~_j ≤ n·c̄_j,        l = log(6·pairs·K/p)

    Port of: the extended linear program. Sources: read in the code of DOPE's authors, who compare with it, and which
    finds the same widths and optima (benchmarks/published_code.py); the optimistic costs remembered.
    Changed to fit: costs are measured with noise σ, and a pair's optimistic cost is not below 0 unless its mean is;
    widths are known to be 0 where an action has one declared successor. ``scale`` multiplies all widths; 1 is
    published.
    Assumes: nothing about features; limits on the expected cost of an episode.
    Guarantees: regret and the total excess over the budget that grow like √K; nothing about steps.
    May violate: single steps wherever the budget of the whole episode leaves room; and the budget, while it learns.
    """

    name: ClassVar[str] = "opt-cmdp"

    def _make_plan(self) -> Plan:
        layers = self.problem.graph.layers
        inside = [bernstein(self.counts, h, self.log_term, self.options.scale) for h in range(len(layers))]
        costs = [self._hoped_costs(h) for h in range(self.problem.horizon)]
        return self._within_budget(inside, [layer.reward for layer in layers], costs)


@dataclass(frozen=True, kw_only=True)
class DopeOptions(TabularOptions):
    """``bonus`` scales the reward's bonus, ``initial_episodes`` replaces K₀; ``slack`` is that of spec 5, for ξ."""

    bonus: float = option(1.0, at_least, 0.0)
    initial_episodes: int | None = option(None, whole, 0)
    slack: Slack = None  # (m,) ξ once worked out


class Dope(Tabular):
    """DOPE (Bura et al. 2022): optimistic about models and rewards, pessimistic about costs; the fallback first.

        first K₀ = S³H³/ξ² episodes: the fallback; ξ its slack below the budget, in units of the largest cost
        then the program of OptCMDP with the narrower widths b of the published code and
            costs    ĉ + σ√(l/n) + C·H·Σ_{s'} b(s,a,s')          C_j = L_j·max‖x‖, no cost is larger; ĉ = C unseen
            rewards  r + (3H/ξ)·Σ_{s'} b(s,a,s')
        where no policy keeps the budget so: the fallback again

    Port of: the paper's learner. Sources: widths, costs, K₀ and the way out read in the authors' code, which finds the
    same optima (benchmarks/published_code.py); the reward's bonus remembered, and the code for two of their problems
    leaves it out.
    Changed to fit: costs are measured with noise σ; Σb is over the declared successors, where the code takes all
    states; ``scale`` multiplies all widths, ``bonus`` the reward's bonus and ``initial_episodes`` replaces K₀; by
    default all are as published, and only the fallback is played for very long.
    Assumes: nothing about features; a fallback strictly below the expected budget.
    Guarantees: with probability 1 − p no episode whose *expected* cost exceeds the budget; nothing about steps.
    May violate: single steps wherever the budget of the whole episode leaves room.
    """

    name: ClassVar[str] = "dope"
    options: DopeOptions

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        self._slack = total_slack(problem, self.options.slack) / self._largest  # (m,) ξ
        states, decisions = max(layer.n_states for layer in problem.graph.layers), problem.horizon - 1
        first = math.ceil((states * decisions) ** 3 / float(self._slack.min()) ** 2)  # K₀, S of the largest step
        self._begin_with_fallback(self.options.initial_episodes, first)
        self._store(slack=self._slack)

    def _make_plan(self) -> Plan:
        graph, steps = self.problem.graph, self.problem.horizon - 1
        if self.playing_fallback:
            return self._counted_plan(fallback_chances(graph))
        inside = [empirical(self.counts, h, self.log_term, self.options.scale) for h in range(steps)]
        doubt = [np.add.reduceat(inside[h].width, layer.pair_ptr[:-1]) for h, layer in enumerate(graph.layers)]
        costs = [self._feared(h) for h in range(steps + 1)]
        for h in range(steps):
            costs[h] = costs[h] + self._largest * steps * doubt[h][:, None]
        costs[-1] = np.where(graph.terminal.has_cost[:, None], costs[-1], 0.0)
        extra = self.options.bonus * 3.0 * steps / float(self._slack.min())
        rewards = [layer.reward + extra * doubt[h] for h, layer in enumerate(graph.layers)]
        return self._within_budget(inside, rewards, costs)

    def _feared(self, h: int) -> FloatArray:
        """(N, m) ĉ + σ√(l/n) of a layer, C where nothing was seen."""
        seen = self.counts.measured[h][:, None] > 0
        return np.where(seen, self.counts.mean_costs(h) + self._cost_width(h), self._largest)


class LsviUcb(Tabular):
    """LSVI-UCB (Jin et al. 2020) with a feature per pair: least-squares value iteration on counts, blind to limits.

        w(s,a) = Σ (r + V(s'))/(1 + n),     Q = min(R_h, w + β/√(1 + n)),     β = scale·d·H·√log(2dKH/p)

    over all visits of the pair, with the V of this plan; d is the number of pairs of the step.

    Port of: the paper's algorithm; a linear mixture is no linear MDP, but a feature per pair makes any finite problem
    one. Sources: remembered, textbook.
    Changed to fit: R_h takes the place of H; planning is lazy. At ``scale`` 1, as published, the bonus stays at its cap
    for longer than any run.
    Assumes: nothing about features or costs.
    Guarantees: nothing about limits; regret of the unconstrained problem.
    May violate: always; it does not look.
    """

    name: ClassVar[str] = "lsvi-ucb"

    def _make_plan(self) -> Plan:
        graph, most = self.problem.graph, most_to_come(self.problem.graph)
        seen = [self.counts.of_pairs(h) for h in range(len(graph.layers))]
        bonus = [self._beta(layer.n_pairs) / np.sqrt(1.0 + n) for layer, n in zip(graph.layers, seen, strict=True)]

        def step(h: int, following: FloatArray) -> StepValues:
            layer, n = graph.layers[h], seen[h]
            ahead = np.add.reduceat(self.counts.visits[h] * following[layer.successor], layer.pair_ptr[:-1])
            q = (n * layer.reward + ahead) / (1.0 + n) + bonus[h]
            return q, *greedy(layer, q, np.ones(layer.n_pairs, bool), most[h])

        bounds, values = self._bounds(), backward_values(step, bonus, graph.terminal.reward)
        return Plan(self.problem, bounds, self._certify(bounds)[0], values, self._known(), self.replans)

    def _beta(self, d: int) -> float:
        steps = self.problem.horizon - 1
        log = math.log(2.0 * d * self.options.episodes * steps / self.options.failure_probability)
        return self.options.scale * d * steps * math.sqrt(log)


class Priced(NamedTuple):
    """The policy of one price."""

    chances: Chances
    utilities: FloatArray  # (m,)  V_j of the start, of several the mean


@dataclass(frozen=True, kw_only=True)
class OpseLcmdpOptions(TabularOptions):
    """``largest_price`` is Y, ``temperature`` κ."""

    episodes: int = worked_out(1000)  # it needs none
    largest_price: float = option(300.0, at_least, 0.0)
    temperature: float = option(0.1, at_least, 0.0, strictly=True)


class OpseLcmdp(Tabular):
    """OPSE-LCMDP (Kitamura et al. 2025): within the expected budget in every episode, by a softmax policy and a price.

    With one feature per pair, β = 1/√(1 + n) and P̂V = Σ_{s'} n(s,a,s') V(s')/(1 + n); u_j = ½ − cost_j/(2C_j) in [0,
    1] is a utility, C_j = L_j·max‖x‖, and b_j what a policy has that spends n·c̄_j. Backward, for a price y,

        Q_r = r + [C_r β + P̂V_r] in [0, (steps left)(1 + κ log A)]          V_r = Σ π (Q_r − κ log π)
        Q_+ = B β + [C_+ β + P̂V_+] in [0, B·(steps left)]                   makes up for the pessimism below
        Q_j = u_j + [−C_u β + P̂V_j] in [0, steps left]
        π ∝ exp((Q_+ + Q_r + y Σ_j Q_j)/κ)

    and the least y in [0, Y] for which V_j ≥ b_j for every j (20 bisections); the fallback, where even y = Y is too
    little.

    Port of: the paper's learner with features of tables. Sources: read in the authors' code, which finds the same
    policies once the entropy in its values is put right (benchmarks/published_code.py).
    Changed to fit: utilities are known there and measured here: u_j is Σu/(1 + n) of the measurements, less
    σ_j/(2C_j)·β; one price for all limits. Constants are those of the paper's experiments with random tables, C_r = C_u
    = C_+ = B = 1, Y = 300, κ = 0.1; the theory's are larger by orders. ``scale`` multiplies C_r, C_u, C_+ and B.
    Assumes: nothing about features here; a fallback strictly below the expected budget.
    Guarantees: with the theory's constants, no episode whose *expected* cost exceeds the budget; nothing about steps.
    May violate: single steps wherever the budget of the whole episode leaves room.
    """

    name: ClassVar[str] = "opse-lcmdp"
    options: OpseLcmdpOptions

    def _make_plan(self) -> Plan:
        problem = self.problem
        needed = 0.5 * costed_steps(problem) - budgets(problem) / (2.0 * self._largest)
        dear = self._priced(self.options.largest_price)
        if not np.all(dear.utilities >= needed):
            return self._counted_plan(fallback_chances(problem.graph))
        found = self._priced(0.0)
        if not np.all(found.utilities >= needed):
            low, high, found = 0.0, self.options.largest_price, dear
            for _ in range(20):
                middle = 0.5 * (low + high)
                tried = self._priced(middle)
                if np.all(tried.utilities >= needed):
                    high, found = middle, tried
                else:
                    low = middle
        return self._counted_plan(found.chances)

    def _priced(self, price: float) -> Priced:
        """The softmax policy of a price, computed backward together with its utilities."""
        graph, c = self.problem.graph, self.options.scale
        value_r, value_u = graph.terminal.reward, self._last_utilities()
        value_plus = np.zeros(graph.terminal.n_states)
        chances = list[FloatArray]()
        for h in reversed(range(len(graph.layers))):
            layer, visits = graph.layers[h], self.counts.visits[h]
            seen = 1.0 + self.counts.of_pairs(h)
            beta, left = 1.0 / np.sqrt(seen), float(graph.horizon - 1 - h)
            actions = np.diff(layer.state_ptr)
            after = [
                np.add.reduceat(visits * value[layer.successor], layer.pair_ptr[:-1]) / seen  # P̂V of every pair
                for value in (value_r, value_plus, *value_u.T)
            ]
            most = left * (1.0 + self.options.temperature * np.log(np.repeat(actions, actions)))
            q_r = layer.reward + np.clip(c * beta + after[0], 0.0, most)
            q_plus = c * beta + np.clip(c * beta + after[1], 0.0, c * left)
            q_u = self._utilities(h, beta) + np.clip(np.array(after[2:]).T - c * beta[:, None], 0.0, left)
            pi = softmax(layer, (q_plus + q_r + price * q_u.sum(axis=1)) / self.options.temperature)
            entropy = -self.options.temperature * np.log(np.maximum(pi, np.finfo(np.float64).tiny))
            value_r, value_plus = averaged(layer, pi, q_r + entropy), averaged(layer, pi, q_plus)
            value_u = np.array([averaged(layer, pi, each) for each in q_u.T]).T
            chances.insert(0, pi)
        return Priced(tuple(chances), value_u[graph.starts].mean(axis=0))

    def _utilities(self, h: int, beta: FloatArray) -> FloatArray:
        """(N, m) Σu_j/(1 + n) of a layer's pairs, less what the noise of n measurements may hide."""
        noise, largest = self.problem.noise_of(1), self._largest
        n = self.counts.measured[h][:, None]
        mean = (0.5 * n - self.counts.cost_sums[h] / (2.0 * largest)) / (1.0 + n)
        return np.clip(mean - self.options.scale * noise * beta[:, None] / (2.0 * largest), 0.0, 1.0)

    def _last_utilities(self) -> FloatArray:
        """(S, m) of the last states; one without a cost has the utility of cost 0, if any has a cost."""
        last = self.problem.graph.terminal
        if not last.has_cost.any():
            return np.zeros((last.n_states, len(self.problem.limits)))
        found = self._utilities(self.problem.horizon - 1, 1.0 / np.sqrt(1.0 + self.counts.measured[-1]))
        return np.where(last.has_cost[:, None], found, 0.5)
