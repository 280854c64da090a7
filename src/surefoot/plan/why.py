"""Why an action is certified, or not yet: the successor and the limit, or the future, that decide.

The *shortfall* of an action is how much the upper bounds that matter would have to fall to certify it. Backward from
the last layer, with excess(x) = max_j upper_j(x) − bound_j of a cost row x (of a triplet, or of the pair):

    shortfall(h, s, a) = max( excess of all its rows, shortfall(h+1, s') of all s' ),   −∞ for the fallback's own pairs
    shortfall(h, s)    = min over a of shortfall(h, s, a),                              ∞ for a forbidden state

A pair is certified exactly if its shortfall is at most 0. If not, :func:`why` names what decides: a successor of this
step, if one breaks a limit by its upper bound; otherwise the future state with the largest shortfall, the action there
that is nearest to being certified, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from surefoot.errors import AssumptionBroken
from surefoot.estimate.costs import CostBounds
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, owner
from surefoot.model.features import Features
from surefoot.model.labels import Label
from surefoot.model.naming import row_entries, told_entries
from surefoot.model.problem import Problem
from surefoot.plan.certify import Certified
from surefoot.plan.purpose import purposes
from surefoot.plan.rays import opening, opening_in_words
from surefoot.plan.segments import first_largest, segment_any, segment_max, spread

if TYPE_CHECKING:
    from surefoot.plan.plan import Plan


class Kind(IntEnum):
    """What decides about an action."""

    FALLBACK = 0  # certified by assumption: the fallback's own
    PROVED = 1  # certified: every successor keeps every limit and has a certified action
    UNPROVED = 2  # allowed to an agent without a guarantee, though not proved safe
    COST = 3  # a successor may break a limit in this very step
    FUTURE = 4  # a successor has no certified action
    INCONSISTENT = 5  # the data contradict the assumptions: the fallback alone is certified
    LAST = 6  # a state of the last layer may break a limit by its own cost
    FORBIDDEN = 7  # a successor is forbidden
    INSIDE = 8  # the state itself is forbidden
    OUTSIDE = 9  # keeps its limits now, and what may follow is not expanded


_SAID = {
    Kind.FALLBACK: " is the fallback's own, safe by assumption",
    Kind.UNPROVED: " is open to this agent, though it is not proved safe",
    Kind.FUTURE: " may lead to {successor!r}, which has no certified action",
    Kind.INCONSISTENT: ": the data contradict the assumptions, and the fallback alone is certified",
    Kind.FORBIDDEN: " may lead to {successor!r}, which is forbidden",
    Kind.OUTSIDE: " keeps every limit now, and what may follow is not expanded",
    Kind.INSIDE: " is not certified: the state itself is forbidden",
}


@dataclass(frozen=True)
class Link:
    """One link of the chain; numbers are those of the plan."""

    kind: Kind
    step: int
    state: Label
    action: Label  # None in the last layer
    successor: Label = None  # the deciding limit: the one that fails, or the tightest of a certified action
    limit: str = ""
    bound: float = float("nan")
    lower: float = float("nan")
    upper: float = float("nan")
    by_pair: bool = False  # the cost does not depend on the successor
    features: tuple[tuple[str, float], ...] = ()  # of the row that decides: those the limit depends on, if named

    def __str__(self) -> str:
        place = f"step {self.step}, state {self.state!r}"
        if self.kind == Kind.LAST:
            ending = f"may end with {self.limit} up to {self.highest}{self._with()}"
            return f"{place} {ending}, and the limit is {self.bound:.4g}"
        place += f", action {self.action!r}"
        if self.kind in _SAID:
            return place + _SAID[self.kind].format(successor=self.successor)
        if self.kind == Kind.PROVED:
            towards = "" if self.by_pair else f" (towards {self.successor!r})"
            tight = f"{self.limit} is at most {self.upper:.4g}{towards}{self._with()}"
            return f"{place} is proved safe: {tight}, and the limit is {self.bound:.4g}"
        towards = "" if self.by_pair else f" towards {self.successor!r}"
        limit = f"{towards}{self._with()}, and the limit is {self.bound:.4g}"
        if self.lower > self.bound:
            return f"{place} is proved unsafe: {self.limit} is at least {self.lower:.4g}{limit}"
        return f"{place} is not certified: {self.limit} may be {self.highest}{limit}"

    @property
    def highest(self) -> str:
        """The upper bound in words; never as if it were the limit when it is above it."""
        text = f"{self.upper:.4g}"
        return f"just over {text}" if self.upper > self.bound and text == f"{self.bound:.4g}" else text

    def _with(self) -> str:
        return f" with {told_entries(self.features)}" if self.features else ""


@dataclass(frozen=True)
class Explanation:
    """Why an action is or is not certified; the first step is about the action itself, the last one decides."""

    certified: bool
    chain: tuple[Link, ...]
    purpose: str = ""  # of an action that the plan plays to explore: what for
    opening: str = ""  # of a certified action with an intensity: how far it may be opened, and why no further

    @property
    def kind(self) -> Kind:
        return self.chain[0].kind

    @property
    def cause(self) -> Link:
        return self.chain[-1]

    def __str__(self) -> str:
        opened = f";\nit {self.opening}" if self.opening else ""
        played = f";\nit is played {self.purpose}" if self.purpose else ""
        return ";\n  there, the nearest is: ".join(map(str, self.chain)) + opened + played


@dataclass(frozen=True, eq=False)
class Reasons:
    """What decides about every pair: arrays in graph order for H-1 layers."""

    kinds: tuple[IntArray, ...]  # (N,) a Kind
    edges: tuple[IntArray, ...]  # (N,) the edge that decides; of certified pairs the tightest
    rows: tuple[IntArray, ...]  # (N,) the cost row that decides, that of the edge where triplets have their own
    limits: tuple[IntArray, ...]  # (N,) the limit that decides, in that row
    nearest: tuple[IntArray, ...]  # (S,) the pair with the least shortfall
    last_limits: IntArray  # (S,) of the last layer: the limit with the largest excess; 0 without a cost


def reasons(problem: Problem, bounds: CostBounds, certified: Certified, first: int = 0) -> Reasons:
    """One backward sweep down to layer ``first``; layers before it are left empty."""
    graph = problem.graph
    shortfall, last_limits = _last(problem, bounds, problem.bounds[-1], certified.states[-1])
    layers = range(len(graph.layers))
    empty: IntArray = np.empty(0, np.int64)
    kinds, edges, rows, limits, nearest = ([empty for _ in layers] for _ in range(5))
    for h in reversed(range(first, len(layers))):
        layer = graph.layers[h]
        excess = bounds.upper[h] - problem.bounds[h]
        now = np.nan_to_num(excess.max(axis=1), nan=np.inf, posinf=np.inf, neginf=-np.inf)
        later = shortfall[layer.successor]
        pair_now, pair_later = segment_max(now, layer.row_ptr), segment_max(later, layer.pair_ptr)
        pair = np.maximum(pair_now, pair_later)
        banned = graph.known_forbidden(h + 1)[layer.successor]
        into = segment_any(banned, layer.pair_ptr)
        if layer.per_triplet:
            by_cost = ((pair_now > 0) | (pair_later <= 0)) & ~into
            deciding = np.where(spread(by_cost, layer.pair_ptr), now, later)
        else:
            deciding = later
        deciding = np.where(spread(into, layer.pair_ptr), np.where(banned, np.inf, -np.inf), deciding)
        edges[h] = first_largest(deciding, layer.pair_ptr)
        rows[h] = edges[h] if layer.per_triplet else first_largest(now, layer.row_ptr)
        limits[h] = excess[rows[h]].argmax(axis=1)
        open_to = certified.pairs[h]
        fallbacks = layer.played_by_fallback() & open_to  # without the deviation "fallback" they may not be certified
        pair[fallbacks] = -np.inf
        kinds[h] = np.select(
            [
                fallbacks,
                open_to & (pair <= 0),
                open_to,
                spread(layer.forbidden, layer.state_ptr),
                into,
                np.full(len(pair), not bounds.consistent),
                pair_now > 0,
                ~graph.expanded(h) if graph.beyond is not None else np.zeros(len(pair), bool),
            ],
            [
                *(Kind.FALLBACK, Kind.PROVED, Kind.UNPROVED, Kind.INSIDE, Kind.FORBIDDEN),
                *(Kind.INCONSISTENT, Kind.COST, Kind.OUTSIDE),
            ],
            Kind.FUTURE,
        )
        nearest[h] = first_largest(-pair, layer.state_ptr)
        shortfall = np.where(layer.forbidden, np.inf, pair[nearest[h]])
    return Reasons(tuple(kinds), tuple(edges), tuple(rows), tuple(limits), tuple(nearest), last_limits)


def _last(problem: Problem, bounds: CostBounds, bound: FloatArray, certified: BoolArray) -> tuple[FloatArray, IntArray]:
    """Shortfall of the last layer's states (S,), and the limit that decides it."""
    last = problem.graph.terminal
    if bounds.terminal_upper is None:
        return np.where(last.forbidden, np.inf, -np.inf), np.zeros(last.n_states, np.int64)
    excess = np.nan_to_num(bounds.terminal_upper - bound, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    kept = ~last.has_cost | (last.fallback_reached & certified)
    shortfall = np.where(kept, -np.inf, excess.max(axis=1))
    return np.where(last.forbidden, np.inf, shortfall), excess.argmax(axis=1)


def why(plan: Plan, h: int, s: Label, a: Label) -> Explanation:
    """Why action ``a`` in state ``s`` of layer ``h`` is or is not certified by the plan."""
    pair = plan.problem.pair_index(h, s, a)
    found = reasons(plan.problem, plan.bounds, plan.certified_sets, h)
    explained = explain(plan.problem, plan.bounds, plan.certified_sets, found, h, pair)
    if explained.certified and plan.opened is not None:
        bounds = {limit.name: bound for limit, bound in zip(plan.problem.limits, plan.problem.bounds[h], strict=True)}
        explained = replace(explained, opening=opening_in_words(opening(plan.opened, h, pair), bounds))
    state = plan.problem.state_index(h, s)
    played = plan.directed is not None and pair == int(plan.values.action[h][state])
    return replace(explained, purpose=purposes(plan).of(h, state)) if played else explained


def explain(
    problem: Problem, bounds: CostBounds, certified: Certified, found: Reasons, h: int, pair: int
) -> Explanation:
    """The chain of what decides, from a pair to its cause."""
    steps, is_certified = [], bool(certified.pairs[h][pair])
    while True:
        step, successor = _step(problem, bounds, found, h, pair)
        steps.append(step)
        if step.kind != Kind.FUTURE:
            break
        h += 1
        if h == problem.horizon - 1:
            steps.append(_ending(problem, bounds, found, successor))
            break
        pair = int(found.nearest[h][successor])
        if certified.pairs[h][pair]:
            raise AssumptionBroken("a plan contradicts itself", where=problem.naming.at_state(h, successor))
    return Explanation(is_certified, tuple(steps))


def _step(problem: Problem, bounds: CostBounds, found: Reasons, h: int, pair: int) -> tuple[Link, int]:
    layer, naming = problem.graph.layers[h], problem.naming
    state = owner(layer.state_ptr, pair)
    edge, row, j = int(found.edges[h][pair]), int(found.rows[h][pair]), int(found.limits[h][pair])
    successor = int(layer.successor[edge])
    step = Link(
        kind=Kind(int(found.kinds[h][pair])),
        step=h,
        state=naming.states[h][state],
        action=naming.action(layer, h, pair),
        successor=naming.states[h + 1][successor],
        limit=problem.limits[j].name,
        bound=float(problem.bounds[h, j]),
        lower=float(bounds.lower[h][row, j]),
        upper=float(bounds.upper[h][row, j]),
        by_pair=not layer.per_triplet,
        features=_features(problem, j, layer.cost_features, row),
    )
    return step, successor


def _features(problem: Problem, j: int, table: Features | None, row: int) -> tuple[tuple[str, float], ...]:
    """The features of a cost row on which limit j depends, by name; empty where features have no names."""
    if problem.features is None or table is None:
        return ()
    prior = problem.priors[j]
    depends = (prior.width > 0.0) | (prior.centre != 0.0)
    return row_entries(problem.features, np.where(depends, table[row], 0.0))


def _ending(problem: Problem, bounds: CostBounds, found: Reasons, state: int) -> Link:
    j, h = int(found.last_limits[state]), problem.horizon - 1
    upper, lower = bounds.terminal_upper, bounds.terminal_lower
    return Link(
        kind=Kind.LAST,
        step=h,
        state=problem.naming.states[h][state],
        action=None,
        limit=problem.limits[j].name,
        bound=float(problem.bounds[h, j]),
        lower=float("nan") if lower is None else float(lower[state, j]),
        upper=float("nan") if upper is None else float(upper[state, j]),
        features=_features(problem, j, problem.graph.terminal.cost_features, state),
    )
