"""Put a plan of surefoot beside a plan of the reference, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.errors import AssumptionBroken
from tests.reference.lsvi_new import Plan as ReferencePlan
from tests.reference.lsvi_new import Reference
from tests.reference.tables import Tables

CLOSE = 1e-9


def problem_of(tables: Tables) -> sf.Problem:
    limits = [
        sf.Limit(f"limit {j}", bound=x.bound, noise=x.noise, norm=x.norm, misspecification=x.misspecification)
        for j, x in enumerate(tables.limits)
    ]
    problem = sf.Problem.from_functions(**tables.functions(), limits=limits)
    several = tables.pair_rows is not None and max(tables.pair_rows.values()) > 1
    return _with_all_rows(tables, problem) if several else problem


def _with_all_rows(tables: Tables, problem: sf.Problem) -> sf.Problem:
    """By arrays: functions can give one cost row per pair only."""
    graph, n = problem.graph, problem.horizon - 1
    pairs = [[(h, s, a) for s in problem.states(h) for a in problem.actions(h, s)] for h in range(n)]
    last = graph.terminal
    return sf.Problem.from_arrays(
        horizon=problem.horizon,
        start=graph.starts.tolist(),
        state_ptr=[layer.state_ptr for layer in graph.layers],
        pair_ptr=[layer.pair_ptr for layer in graph.layers],
        successors=[layer.successor for layer in graph.layers],
        reward=[layer.reward for layer in graph.layers],
        cost_features=[np.array([tables.x[row] for pair in own for row in tables.rows(pair)]) for own in pairs],
        row_ptr=[np.cumsum([0] + [len(tables.rows(pair)) for pair in own]) for own in pairs],
        transition_features=[layer.transition_features for layer in graph.layers],
        fallback=[np.where(layer.fallback < 0, -1, layer.fallback - layer.state_ptr[:-1]) for layer in graph.layers],
        terminal_reward=last.reward,
        terminal_cost_features=last.cost_features,
        terminal_has_cost=None if last.cost_features is None else last.has_cost,
        forbidden=[graph.forbidden(h) for h in range(problem.horizon)],
        anchor=None if tables.anchors is None else tables.anchor,
        limits=list(problem.limits),
        transition_norm=problem.transition_norm,
        stationary_costs=problem.stationary_costs,
        stationary_transitions=problem.stationary_transitions,
        state_labels=[list(problem.states(h)) for h in range(problem.horizon)],
        action_labels=[[a for _, _, a in own] for own in pairs],
    )


@dataclass
class Comparison:
    """What was compared, what was left out because it lies within rounding of a limit, what differed."""

    pairs: int = 0
    excluded: int = 0
    mixed: int = 0
    condition_2_only: int = 0
    worst: float = 0.0
    faults: list[str] = field(default_factory=list)

    def number(self, what: Any, ours: Any, theirs: Any) -> None:
        size = np.maximum(1.0, np.abs(np.asarray(theirs)))  # absolute below 1, relative above
        difference = float(np.max(np.abs(np.asarray(ours) - np.asarray(theirs)) / size, initial=0.0))
        self.worst = max(self.worst, difference)
        if not difference <= CLOSE:
            self.faults.append(f"{what}: {ours} and {theirs}")


def compare(tables: Tables, ours: Any, reference: Reference, tally: Comparison) -> None:
    """Bounds, masks, values and greedy actions of one plan."""
    theirs = reference.plan
    if not theirs.consistent:  # bounds that contradict each other mean nothing; who is certified does
        if ours.consistent or any(ours.certified(*pair) != theirs.certified[pair] for pair in theirs.certified):
            tally.faults.append("contradiction")
        return
    guarded = _guarded(tables, theirs)
    for pair in tables.pairs() if tables.pair_rows is not None else ():
        h, p, own = pair[0], ours.problem.pair_index(*pair), tables.rows(pair)
        rows = slice(*ours.problem.graph.layers[h].row_ptr[p : p + 2])
        tally.number(("upper", pair), ours.bounds.upper[h][rows], [theirs.upper[row] for row in own])
        tally.number(("lower", pair), ours.bounds.lower[h][rows], [theirs.lower[row] for row in own])
    for key in theirs.upper if tables.pair_rows is None else ():
        tally.number(("upper", key), ours.upper(*key), theirs.upper[key])
        tally.number(("lower", key), ours.lower(*key), theirs.lower[key])
    for s in theirs.terminal_upper:
        tally.number(("terminal upper", s), ours.terminal_upper(s), theirs.terminal_upper[s])
        tally.number(("terminal lower", s), ours.terminal_lower(s), theirs.terminal_lower[s])
    if ours.consistent != theirs.consistent:
        tally.faults.append("consistent")
    for pair, certified in theirs.certified.items():
        tally.pairs += 1
        if pair in guarded:
            tally.excluded += 1
        elif ours.certified(*pair) != certified:
            tally.faults.append(f"certified {pair}: {not certified} and {certified}")
        tally.condition_2_only += theirs.consistent and theirs.condition1[pair] and not certified
    if guarded:
        return  # a mask that may differ changes every value before it
    for pair, q in theirs.q.items():
        tally.number(("q", pair), ours.q(*pair), q)
    for state, value in theirs.value.items():
        tally.number(("value", state), ours.value(*state), value)
    for (h, s), action in theirs.action.items():
        chosen = _played(ours, h, s)
        if chosen != action and not _tied(theirs, h, s, action, chosen):
            tally.faults.append(f"action {(h, s)}: {chosen} and {action}")


def _played(plan: Any, h: int, s: Any) -> Any:
    try:
        return plan.action(h, s)
    except AssumptionBroken:
        return None


def _guarded(tables: Tables, plan: ReferencePlan) -> set[Any]:
    """Pairs within rounding of a limit, and all that lead to them."""
    bounds = [limit.bound for limit in tables.limits]

    def near(upper: Any) -> bool:
        return any(abs(u - b) <= CLOSE for u, b in zip(upper, bounds, strict=True))

    doubtful = {(tables.horizon - 1, s) for s, upper in plan.terminal_upper.items() if near(upper)}
    pairs = set()
    for h, s, a in sorted(tables.successors, key=lambda key: -key[0]):
        tight = any(near(plan.upper[row]) for row in tables.rows((h, s, a)))
        if tight or any((h + 1, s2) in doubtful for s2 in tables.successors[h, s, a]):
            pairs.add((h, s, a))
            doubtful.add((h, s))
    return pairs


def _tied(plan: ReferencePlan, h: int, s: Any, one: Any, other: Any) -> bool:
    """Both actions are equally good to within rounding, so that the last bit may decide."""
    return other is not None and plan.certified[h, s, other] and abs(plan.q[h, s, one] - plan.q[h, s, other]) <= CLOSE
