"""SafeMDP's set and target, and the mixtures of OPLB and RSLUCB-QVI, once more: a Gaussian process in function space,
graph search over dicts, a linear program per state. Imports nothing of surefoot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog

from .lsvi_new import Plan, Reference
from .tables import PairKey, StateKey, Tables, TripletKey, dot


class Process:
    """Costs as Gaussian processes with a linear kernel: mean and deviation from the kernel's matrix of all samples."""

    def __init__(self, tables: Tables, beta: float = 2.0) -> None:
        self.t, self.beta = tables, beta
        self.samples: list[tuple[int, list[float], list[float]]] = []  # (step, z, cost beyond what is known)
        d = len(next(iter(tables.x.values())))
        # gamma_j ~ N(0, v_j I), v_j = L_j^2/d; of several limits the ridge sigma^2/v that is largest serves all
        ridge = max(limit.noise**2 * d / limit.norm**2 for limit in tables.limits)
        self.variances = [limit.noise**2 / ridge for limit in tables.limits]

    def split(self, h: int, x: list[float]) -> tuple[list[float], list[float]]:
        """(z, known part of every cost): along the anchor a cost is known."""
        anchor = self.t.anchor(h)
        if anchor is None:
            return x, [0.0] * len(self.t.limits)
        rho = dot(x, anchor[0]) / dot(anchor[0], anchor[0])
        return [a - rho * b for a, b in zip(x, anchor[0], strict=True)], [rho * c for c in anchor[1]]

    def tell(self, h: int, x: list[float], cost: list[float]) -> None:
        z, known = self.split(h, x)
        self.samples.append((h, z, [c - k for c, k in zip(cost, known, strict=True)]))

    def interval(self, h: int, x: list[float]) -> tuple[list[float], list[float]]:
        """(upper, lower) per limit: mean +- beta deviations."""
        z, known = self.split(h, x)
        own = [sample for sample in self.samples if self.t.stationary_costs or sample[0] == h]
        upper, lower = [], []
        for j, (limit, v) in enumerate(zip(self.t.limits, self.variances, strict=True)):
            mean, variance = 0.0, v * dot(z, z)
            if own:
                rows = np.array([sample[1] for sample in own])
                gram = v * rows @ rows.T + limit.noise**2 * np.eye(len(own))
                across = v * rows @ np.array(z)
                solved = np.linalg.solve(gram, np.column_stack([across, [sample[2][j] for sample in own]]))
                mean, variance = float(across @ solved[:, 1]), variance - float(across @ solved[:, 0])
            wide = self.beta * math.sqrt(max(variance, 0.0))
            upper.append(known[j] + mean + wide)
            lower.append(known[j] + mean - wide)
        return upper, lower


class SafeSet:
    """The pairs after which every step can be followed by a safe one, to the end; and where to measure next."""

    def __init__(self, tables: Tables, process: Process) -> None:
        self.t = tables
        self.bounds = {key: process.interval(key[0], tables.x[key]) for key in tables.triplets()}
        last = tables.horizon - 1
        self.ends = {s: process.interval(last, x) for s, x in (tables.terminal_x or {}).items() if x is not None}
        self.known: dict[Any, bool] = {}
        self.pairs = {pair for pair in tables.pairs() if self.safe(pair)}

    def kept(self, upper: list[float]) -> bool:
        return all(c <= limit.bound for c, limit in zip(upper, self.t.limits, strict=True))

    def safe(self, pair: PairKey) -> bool:
        if pair not in self.known:
            keys: list[TripletKey] = [(*pair, s2) for s2 in self.t.successors[pair]]
            safe = all(self.kept(self.bounds[key][0]) and self.alive((key[0] + 1, key[3])) for key in keys)
            self.known[pair] = safe or pair in self.t.fallback_pairs()
        return self.known[pair]

    def alive(self, state: StateKey) -> bool:
        h, s = state
        if h == self.t.horizon - 1:
            return s not in self.ends or self.kept(self.ends[s][0]) or s in self.t.fallback_terminals()
        return any(self.safe((h, s, a)) for a in self.t.actions[state])

    def reached(self) -> set[PairKey]:
        """Pairs of the set in states that it leads to from a start."""
        found, todo = set(), [(0, s) for s in self.t.starts]
        while todo:
            h, s = todo.pop()
            for a in self.t.actions.get((h, s), []):
                if (h, s, a) in self.pairs and (h, s, a) not in found:
                    found.add((h, s, a))
                    todo += [(h + 1, s2) for s2 in self.t.successors[h, s, a]]
        return found

    def width(self, key: TripletKey, scales: list[float]) -> float:
        upper, lower = self.bounds[key]
        return max((a - b) / c for a, b, c in zip(upper, lower, scales, strict=True))

    def expands(self, key: TripletKey) -> bool:
        """Could a row outside the set be safe, if this one cost as little as it may?"""
        outside = [
            self.t.x[other]
            for other in self.t.triplets()
            if other[:3] not in self.pairs and (self.t.stationary_costs or other[0] == key[0])
        ]
        lower, x = self.bounds[key][1], np.array(self.t.x[key])
        return any(
            all(
                low + limit.norm * float(np.linalg.norm(x - np.array(other))) <= limit.bound
                for low, limit in zip(lower, self.t.limits, strict=True)
            )
            for other in outside
        )

    def target_width(self, scales: list[float]) -> float:
        """Of the widest expander; without any, of the widest row."""
        rows = [(*pair, s2) for pair in self.reached() for s2 in self.t.successors[pair]]
        expanders = [key for key in rows if self.expands(key)]
        return max(self.width(key, scales) for key in expanders or rows)


# --- mixtures ------------------------------------------------------------------------------------------------


def best_mean(scores: list[float], excesses: list[float]) -> float:
    """The largest mean score of a distribution whose mean excess is at most 0; without one, of the least excess."""
    if min(excesses) > 0:
        return scores[int(np.argmin(excesses))]
    n = len(scores)
    found = linprog(
        [-s for s in scores], A_ub=[excesses], b_ub=[0.0], A_eq=[[1.0] * n], b_eq=[1.0], bounds=(0, 1), method="highs"
    )
    return -float(found.fun)


def excess(reference: Reference, plan: Plan, pair: PairKey) -> float:
    """By how much the worst upper bound of a pair exceeds its limit; the fallback's by nothing."""
    t = reference.t
    found = max(up - limit.bound for row in t.rows(pair) for up, limit in zip(plan.upper[row], t.limits, strict=True))
    return min(found, 0.0) if pair in t.fallback_pairs() else found


def oplb_values(reference: Reference, bonus: float) -> dict[StateKey, float]:
    """Reward now and alpha half-widths, alpha = 1 + 2/slack: omega (slack/2 + 1), mixed in every state."""
    t, plan, slack = reference.t, reference.plan, reference.slack
    assert slack is not None
    found = {}
    for (h, s), actions in t.actions.items():
        pairs = [(h, s, a) for a in actions]
        scores = [t.reward[pair] + bonus * plan.omega[pair] * (min(slack[h]) / 2 + 1) for pair in pairs]
        found[h, s] = best_mean(scores, [excess(reference, plan, pair) for pair in pairs])
    return found


def rslucb_values(reference: Reference, expected: Any, bonus: float) -> dict[StateKey, float]:
    """Backward: Q = r + expected next value + bonus H omega, at most R_h, mixed; ``expected(pair, values ahead)``."""
    t, plan = reference.t, reference.plan
    last = t.horizon - 1
    value: dict[StateKey, float] = {(last, s): r for s, r in t.terminal_reward.items()}
    for h in range(last - 1, -1, -1):
        for s in t.states(h):
            pairs = [(h, s, a) for a in t.actions[h, s]]
            scores = []
            for pair in pairs:
                ahead = {s2: value[h + 1, s2] for s2 in t.successors[pair]}
                q = t.reward[pair] + expected(pair, ahead) + bonus * t.horizon * plan.omega[pair]
                scores.append(min(q, float(t.horizon - h)))
            value[h, s] = best_mean(scores, [excess(reference, plan, pair) for pair in pairs])
    return value
