"""What learners without features share: counts, budgets for whole episodes, and plans from a drawn policy.

**Budgets.** The constrained problems that they were made for limit the expected cost of an episode. A hard limit c̄ on
each of n steps becomes  E Σ cost_j ≤ n·c̄_j,  the usual soft form. It is very lax: its best policy breaks the hard limit
where that pays, and stays below it elsewhere. Rewards are known here, costs and transitions are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.agent import Chances, check_problem
from surefoot.agents.blocks.baseline import BaselineOptions, Paced
from surefoot.checks import at_least, whole
from surefoot.estimate.counts import Counts, Intervals
from surefoot.model.graph import NO_ACTION, FloatArray, LayeredGraph
from surefoot.model.problem import Problem
from surefoot.plan.certify import certify
from surefoot.plan.explore import slacks
from surefoot.plan.mirror import averaged
from surefoot.plan.occupancy import best_occupancy
from surefoot.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class TabularOptions(BaselineOptions):
    episodes: int
    scale: float


class Tabular(Paced):
    """Counts visits and costs, and knows nothing else. ``episodes`` is K, for which constants are computed."""

    traced: ClassVar[bool] = True

    def __init__(
        self,
        problem: Problem,
        failure_probability: float = 0.05,
        *,
        episodes: int = 1000,
        scale: float = 1.0,
        replan_growth: float = 0.1,
    ) -> None:
        self._episodes, self._scale = whole("episodes", episodes, 1), at_least("scale", scale, 0.0)
        self.counts = Counts(check_problem(problem))
        super().__init__(problem, failure_probability, replan_growth=replan_growth)

    def _with_own(self, options: BaselineOptions) -> BaselineOptions:
        return TabularOptions(**asdict(options), episodes=self._episodes, scale=self._scale)

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
        return math.log(6.0 * pairs * self._episodes / self.options.failure_probability)

    def _model(self) -> list[FloatArray]:
        """Per decision layer (E,) P̂."""
        return [self.counts.model(h) for h in range(self.problem.horizon - 1)]

    def _cost_width(self, h: int) -> FloatArray:
        """(N, m) σ_j√(l/n), n at least 1, of a layer's pairs; of the last layer's states likewise."""
        n = np.maximum(self.counts.measured[h], 1)[:, None]
        width: FloatArray = self._scale * self.problem.noise_of(1) * math.sqrt(self.log_term) / np.sqrt(n)
        return width

    def _hoped_costs(self, h: int) -> FloatArray:
        """(N, m) max(ĉ − σ√(l/n), min(0, ĉ)) of a layer: the least that a cost may be, but no gain out of nothing."""
        mean = self.counts.mean_costs(h)
        return np.maximum(mean - self._cost_width(h), np.minimum(mean, 0.0))

    def _counted_plan(self, chances: Chances) -> Plan:
        """A plan that draws its actions so; its values are those that the counts expect of it."""
        problem, graph, bounds = self.problem, self.problem.graph, self._bounds()
        q, value = on_model(graph, self._model(), chances)
        return self._drawn_plan(bounds, certify(graph, bounds, problem.bounds), chances, q, value)

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

    ``paid``: H of (N,), the last (S,); by default the rewards. ``within``: per decision layer what Q is cut to.
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


def total_slack(problem: Problem, slack: float | Sequence[float] | None) -> FloatArray:
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
    found = []
    for layer in graph.layers:
        played = np.zeros(layer.n_pairs)
        played[layer.fallback[layer.fallback != NO_ACTION]] = 1.0
        found.append(played)
    return tuple(found)
