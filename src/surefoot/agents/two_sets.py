"""SafeMDP and its successors: learners with a pessimistic and an optimistic safe set.

They were made for known, deterministic transitions and a Gaussian process over a safety feature. With a linear kernel
the process is Bayesian linear regression: with the prior γ_j ~ N(0, v I), v = L_j²/d, and noise σ_j

    mean ± β·std,    std = σ_j √(zᵀ(G + λI)⁻¹z),    λ = σ²/v    (of several limits the largest)

which has no model error: a declared misspecification counts in the proved bounds only.

``confidence``: ``"published"`` is that, with β = 2, and no proof; ``"proved"`` is (S3) of the specification.
``successors``: ``"one"`` takes every action to have one outcome, the likeliest by the estimated transitions, as
deterministic transitions would; ``"all"`` uses every declared successor. With ``"proved"`` and ``"all"`` the
pessimistic set is the certified set of spec 4, which keeps every limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.blocks.baseline import Paced, no_bonus
from surefoot.agents.blocks.options import BaselineOptions, option, word
from surefoot.checks import at_least, whole
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import CostBounds
from surefoot.estimate.ellipsoids import CostConfidence
from surefoot.estimate.families import Family, families, of_norms
from surefoot.estimate.values import ValueEllipsoid, expected_next_value
from surefoot.model.arrays import FloatArray, IntArray, owner
from surefoot.model.features import Features
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows
from surefoot.plan.certify import Certified, certify, not_refuted, with_least_worst
from surefoot.plan.confidence import checked_ridge, default_ridge
from surefoot.plan.explore import relative_uncertainty
from surefoot.plan.hope import followed, played, reached
from surefoot.plan.plan import Plan
from surefoot.plan.segments import segment_max, spread
from surefoot.plan.successors import with_one_successor
from surefoot.plan.values import StepValues, Values, backward_values, greedy, most_to_come

CONFIDENCES, SUCCESSORS, SETTLE = ("published", "proved"), ("one", "all"), ("states", "steps")


class SafeSets(NamedTuple):
    graph: LayeredGraph  # with one successor of every pair, or with all that are declared
    sure: Certified  # the pessimistic safe set
    hoped: Certified  # the optimistic one, which contains it
    playable: Certified  # sure, and the least bad action in states that only a neglected outcome can reach


@dataclass(frozen=True, kw_only=True)
class TwoSetsOptions(BaselineOptions):
    """``confidence`` and ``successors`` decide what is taken to be safe, as above; ``beta`` is β."""

    confidence: str = option("published", word, CONFIDENCES)
    successors: str = option("one", word, SUCCESSORS)
    beta: float = option(2.0, at_least, 0.0)


class TwoSets(Paced):
    """Keeps a set that it takes to be safe, and one that may turn out to be."""

    options: TwoSetsOptions

    def _prepare(self, problem: Problem) -> None:
        exact = tuple(replace(limit, misspecification=0.0) for limit in problem.limits)
        self._believed = problem if self.options.confidence == "proved" else replace(problem, limits=exact)

    def _confidence_in_costs(self, problem: Problem) -> CostConfidence:
        if self.options.confidence == "proved":
            return super()._confidence_in_costs(problem)
        ridges, beta = self.options.ridges, self.options.beta
        if ridges is not None and len(tuple(ridges)) != 1:
            raise InvalidInput("the published confidence has one ridge", got=repr(ridges))
        lam = prior_ridge(problem) if ridges is None else checked_ridge(next(iter(ridges)))

        def radius(log_det_ratio: float, ridge: float, noise: float, norm: float) -> float:
            return beta * noise

        return CostConfidence((lam,), (), radius, shaped=0.0, dual=False, prior=False, scale=1.0, guard=False)

    @property
    def guaranteed(self) -> bool:
        return (self.options.confidence, self.options.successors) == ("proved", "all")

    def _families(self) -> tuple[Family, ...]:
        return of_norms(self._believed) if self.options.confidence == "published" else families(self._believed)

    def _make_plan(self) -> Plan:
        bounds, known = self._bounds(), self._known()
        sets = self._sets(bounds, known)
        return Plan(self.problem, bounds, sets.sure, self._values(sets, bounds, known), known, self.replans)

    @abstractmethod
    def _values(self, sets: SafeSets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        """The values that decide what to play in the pessimistic set."""

    def _sets(self, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> SafeSets:
        limits, graph, seen = self.problem.bounds, self.problem.graph, bounds
        if self.options.successors == "one":
            graph, seen = with_one_successor(graph, bounds, known)
        sure, hoped = certify(graph, seen, limits), not_refuted(graph, seen, limits)
        either = Certified(
            tuple(a | b for a, b in zip(sure.pairs, hoped.pairs, strict=True)),
            tuple(a | b for a, b in zip(sure.states, hoped.states, strict=True)),
        )
        every = self.options.successors == "all"
        return SafeSets(
            graph, sure, either, sure if every else with_least_worst(self.problem.graph, sure, bounds, limits)
        )


def prior_ridge(problem: Problem) -> float:
    """λ = max_j σ_j² d/L_j²: the noise over the variance of a prior that expects ‖γ_j‖² = L_j²."""
    d = problem.graph.cost_dim
    sizes = zip(problem.noises.tolist(), (prior.norm for prior in problem.priors), strict=True)
    found = max(noise**2 * d / norm**2 if norm > 0 else 0.0 for noise, norm in sizes)
    return max(found, 1e-7 * default_ridge(problem))  # without noise, costs are learned at once


DENSE = 1 << 24  #: the largest table that is copied, in numbers


class SafeMdp(TwoSets):
    """SafeMDP (Turchetta, Berkenkamp, Krause 2016): explore all that can be explored safely, whatever it pays.

    Before a plan, of the rows that the pessimistic safe set reaches from a start,

        expanders   lower_j + L_j·‖x − x'‖ ≤ c̄_j for all j and some x' of a pair that is not in the set
        target      the expander with the largest width max_j (upper_j − lower_j)/scale_j; without expanders the widest

    The plan goes to the target along pairs of the set, by the shortest way that the declared support allows.

    Port of: the algorithm as its published code has it. Sources: read in the authors' code, which finds the same
    intervals and sets (benchmarks/published_code.py).
    Changed to fit: returnability becomes that every step of the set has a next one, to the end of the episode; the
    Lipschitz constant is the declared norm, which bounds |cost(x) − cost(x')| by L‖x − x'‖, for any x' where the code
    asks for the same action; the variance of the noise, which the code's library adds to that of the mean, is left out;
    once safe is not always safe, as the set is computed anew; an episode makes one trip; last states are no targets.
    Features too many for a dense copy: no expanders.
    Assumes: deterministic transitions (``successors="one"``), and β = 2 standard deviations
    (``confidence="published"``).
    Guarantees: every step safe with probability 1 − p with ``confidence="proved", successors="all"``; else nothing.
    May violate: where an action has a second outcome, and where two standard deviations are not enough.
    """

    name: ClassVar[str] = "safe-mdp"

    def _values(self, sets: SafeSets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        return towards(self.problem.graph, sets.playable, target(self.problem, bounds, sets.sure)[:2])


def target(problem: Problem, bounds: CostBounds, sure: Certified) -> tuple[int, int, float]:
    """(step, pair, width) of the row to measure next."""
    graph, scales = problem.graph, problem.cost_scales
    inside = list(reached(graph, sure.pairs)[:-1])
    away = _away(problem, inside, sure)
    norm = np.array([prior.norm for prior in problem.priors])
    best, widest = (0, int(graph.layers[0].fallback_pairs()[0]), 0.0), (-1, -1.0)
    for h, layer in enumerate(graph.layers):
        own = inside[h]
        if len(own) == 0:
            continue
        width = relative_uncertainty(bounds.upper[h][own], bounds.lower[h][own], scales)
        # Could a row outside the set be safe, if this one's cost were as low as its lower bound?
        opens = np.all(bounds.lower[h][own] + norm * away[h][own, None] <= problem.bounds[h], axis=1)
        top = int(np.argmax(np.where(opens, width, -1.0) if opens.any() else width))
        rank = (int(opens.any()), float(width[top]))  # any expander comes before all else
        if rank > widest:
            pair = owner(layer.row_ptr, int(own[top]))
            best, widest = (h, pair, float(width[top])), rank
    return best


def _away(problem: Problem, inside: list[IntArray], sure: Certified) -> list[FloatArray]:
    """Per decision layer (R,): how far each row of the set is from the nearest row outside it; ∞ for all other rows.

    Outside are rows of the same step, or of all steps if costs are stationary.
    """
    layers = problem.graph.layers
    outside = [np.repeat(~sure.pairs[h], np.diff(layer.row_ptr)) for h, layer in enumerate(layers)]
    groups = [range(len(layers))] if problem.stationary_costs else [range(h, h + 1) for h in range(len(layers))]
    found: list[FloatArray] = [np.full(layer.n_rows, np.inf) for layer in layers]
    for group in groups:
        beyond: dict[int, tuple[Features, NDArray[np.bool_]]] = {}
        for h in group:
            table = layers[h].cost_features
            beyond[id(table)] = table, outside[h] | beyond[id(table)][1] if id(table) in beyond else outside[h]
        nearest = nearest_distance([table[np.flatnonzero(rows)] for table, rows in beyond.values() if rows.any()])
        for h in group:
            if len(inside[h]):
                found[h][inside[h]] = nearest(layers[h].cost_features[inside[h]])
    return found


def nearest_distance(tables: list[Features]) -> Callable[[Features], FloatArray]:
    """Rows (n, d) → (n,) the distance of each from the nearest row of the tables; ∞ without any."""
    from scipy.spatial import cKDTree

    size = sum(table.size for table in tables)
    tree = cKDTree(np.vstack([_dense(table) for table in tables])) if 0 < size <= DENSE else None

    def distance(x: Features) -> FloatArray:
        if tree is None or size + x.size > DENSE:
            return np.full(len(x), np.inf)
        return np.asarray(tree.query(_dense(x))[0])

    return distance


def _dense(x: Features) -> FloatArray:
    return x.dense() if isinstance(x, SparseRows) else np.asarray(x, np.float64)


def towards(graph: LayeredGraph, allowed: Certified, aim: tuple[int, int]) -> Values:
    """Backward along allowed pairs: 1 at the target, 0 elsewhere, and of several successors the best."""

    def step(h: int, following: FloatArray) -> StepValues:
        layer = graph.layers[h]
        ahead = segment_max(following[layer.successor], layer.pair_ptr)
        if h == aim[0]:
            ahead = np.where(np.arange(layer.n_pairs) == aim[1], 1.0, 0.0)
        worth, chosen = greedy(layer, ahead, allowed.pairs[h], 1.0)
        return np.where(allowed.pairs[h], ahead, np.nan), np.where(allowed.states[h], worth, 0.0), chosen

    return backward_values(step, no_bonus(graph), np.zeros(graph.terminal.n_states))


@dataclass(frozen=True, kw_only=True)
class SnoMdpOptions(TwoSetsOptions):
    """``settle``: ``"states"`` is the published rule, which asks where the best policy leads; ``"steps"`` also asks
    that it leads there by steps of the pessimistic set, which matters where several actions lead to one state.
    """

    trips: int = option(100, whole, 0)
    tolerance: float = option(0.005, at_least, 0.0)
    settle: str = option("states", word, SETTLE)


class SnoMdp(TwoSets):
    """SNO-MDP (Wachi, Sui 2020): first explore the safe set, then earn in it.

        phase 1   SafeMDP's trips (:class:`SafeMdp`), until the best policy of the optimistic safe set would, in
                  every state that the pessimistic one reaches, lead to such a state (the stopping rule ES²),
                  or the widest row is narrower than ``tolerance``, or ``trips`` were made
        phase 2   Q = min(R_h, r + expected next value) over the pessimistic safe set

    Port of: the published code with ES². Sources: read in the authors' code.
    Changed to fit: as SafeMDP; rewards are known, so their bounds fall away; transitions are estimated, with the
    optimism of spec 6; the probabilistic rule P-ES² is left out. Trips are at most 100, as in the code's experiments.
    Assumes: deterministic transitions (``successors="one"``), and β = 2 standard deviations
    (``confidence="published"``).
    Guarantees: every step safe with probability 1 − p with ``confidence="proved", successors="all"``; else nothing.
    May violate: where an action has a second outcome, and where two standard deviations are not enough.
    """

    name: ClassVar[str] = "sno-mdp"
    options: SnoMdpOptions

    def _prepare(self, problem: Problem) -> None:
        super()._prepare(problem)
        self.settled = np.zeros(1, bool)  # in phase 2

    def _values(self, sets: SafeSets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        problem, options = self.problem, self.options
        if not self.settled[0]:
            h, pair, width = target(problem, bounds, sets.sure)
            done = self.episodes >= options.trips or width < options.tolerance
            dream, by_steps = self._optimistic(sets.hoped, known), options.settle == "steps"
            self.settled[0] = done or stays(sets.graph, sets.sure, dream, by_steps)
        if self.settled[0]:
            return self._optimistic(sets.playable, known)
        return towards(problem.graph, sets.playable, (h, pair))

    def _data(self) -> dict[str, NDArray[Any]]:
        return {**super()._data(), "settled": self.settled}


def stays(graph: LayeredGraph, sure: Certified, dream: Values, by_steps: bool = False) -> bool:
    """True when the hoped-for policy leads from all states that the pessimistic set reaches to such states (ES²);
    ``by_steps``: along steps of the set."""
    here = np.zeros(graph.n_states(0), bool)
    here[graph.starts] = True
    for h, layer in enumerate(graph.layers):
        chosen = played(layer, dream.action[h])
        dreamt = followed(layer, chosen, here, graph.n_states(h + 1))[1]
        strays = np.any(chosen & spread(here, layer.state_ptr) & ~sure.pairs[h]) if by_steps else False
        here = followed(layer, sure.pairs[h], here, graph.n_states(h + 1))[1]
        if strays or np.any(dreamt & ~here):
            return False
    return True


def at_most_one(name: str, value: float) -> float:
    if at_least(name, value, 0.0) > 1.0:
        raise InvalidInput(f"{name} must be at most 1", got=repr(value))
    return float(value)


@dataclass(frozen=True, kw_only=True)
class SafeExpOptOptions(TwoSetsOptions):
    """``hope`` is η."""

    hope: float = option(0.6, at_most_one)


class SafeExpOpt(TwoSets):
    """SafeExpOpt-MDP (Wachi et al. 2018): between what is safe now and what may turn out to be.

    V_o and V_p are the optimistic values (spec 6) over the optimistic and over the pessimistic safe set.
    In every state, over the actions of the pessimistic set,

        argmax of  η·(r + expected V_o) + (1 − η)·(r + expected V_p),     η = 0.6

    Port of: the rule as the first author's later code has it. Sources: read in that code; the paper's own is not
    public.
    Changed to fit: rewards are known; leaving a set is never chosen, where the code leads to a state worth −10⁵; a
    finite horizon in place of a discount.
    Assumes: deterministic transitions (``successors="one"``), and β = 2 standard deviations
    (``confidence="published"``).
    Guarantees: every step safe with probability 1 − p with ``confidence="proved", successors="all"``; else nothing.
    May violate: where an action has a second outcome, and where two standard deviations are not enough.
    """

    name: ClassVar[str] = "safe-exp-opt"
    options: SafeExpOptOptions

    def _values(self, sets: SafeSets, bounds: CostBounds, known: Sequence[ValueEllipsoid]) -> Values:
        graph, allowed, eta = self.problem.graph, sets.playable, self.options.hope
        pess, opti = self._optimistic(allowed, known), self._optimistic(sets.hoped, known)
        most, actions = most_to_come(graph), []
        for h, layer in enumerate(graph.layers):
            o, p = (expected_next_value(layer, each.value[h + 1], known[h]) for each in (opti, pess))
            mixed = layer.reward + eta * o + (1.0 - eta) * p
            actions.append(greedy(layer, mixed, allowed.pairs[h], most[h])[1])
        return replace(pess, action=tuple(actions))
