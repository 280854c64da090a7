"""A layered problem spelled out in dicts, together with the hidden truth that makes its histories.

Keys: (h, s) for a state at layer h, (h, s, a) for a pair, (h, s, a, s2) for a triplet. A cost row has the key of its
triplet or, where rows belong to pairs, (h, s, a, i) with i = 0, 1, .. (spec 9). Decisions are taken at
layers 0 .. H-2; layer H-1 is terminal. `Tables` carries what the learner may know and what it may not (`mu`,
`gamma`, `deviation`); the reference implementation reads the former only.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

State = Hashable
Action = Hashable
StateKey = tuple[int, State]
PairKey = tuple[int, State, Action]
TripletKey = tuple[int, State, Action, State]
Anchor = tuple[list[float], list[float]]


@dataclass(frozen=True)
class LimitSpec:
    """One limit: cost <= bound, noise scale sigma, norm bound L, misspecification zeta (spec 2 and 3)."""

    name: str
    bound: float
    noise: float
    norm: float
    misspecification: float = 0.0


def dot(u: Sequence[float], v: Sequence[float]) -> float:
    """Plain inner product."""
    return sum(a * b for a, b in zip(u, v, strict=True))


def norm(u: Sequence[float]) -> float:
    """Euclidean length."""
    return math.sqrt(dot(u, u))


@dataclass
class Tables:
    """The problem (known) and the truth (hidden). `phi is x` exactly when the features are shared."""

    horizon: int
    starts: list[State]
    actions: dict[StateKey, list[Action]]
    successors: dict[PairKey, list[State]]
    reward: dict[PairKey, float]
    x: dict[TripletKey, list[float]]
    phi: dict[TripletKey, list[float]]
    shared_features: bool
    terminal_reward: dict[State, float]
    terminal_x: dict[State, list[float] | None] | None
    fallback: dict[StateKey, Action]
    anchors: dict[int, Anchor | None] | None
    limits: list[LimitSpec]
    transition_norm: float
    stationary_costs: bool
    stationary_transitions: bool
    mu: list[list[float]]
    gamma: list[list[list[float]]]
    # Deviation from linearity, at most `misspecification` in size; a missing key means none.
    deviation: dict[TripletKey, list[float]] = field(default_factory=dict)
    terminal_deviation: dict[State, list[float]] = field(default_factory=dict)
    # Spec 9. `pair_rows`: how many cost rows each pair has; None: each triplet has its own.
    pair_rows: dict[PairKey, int] | None = None
    forbidden: set[StateKey] = field(default_factory=set)

    def rows(self, pair: PairKey) -> list[TripletKey]:
        """The keys of a pair's cost rows in `x`."""
        last = self.successors[pair] if self.pair_rows is None else range(self.pair_rows[pair])
        return [(*pair, end) for end in last]

    def measured_row(self, key: TripletKey) -> TripletKey | None:
        """The cost row of what is measured on a triplet; None: the pair has several, and it lies between them."""
        own = self.rows(key[:3])
        return key if self.pair_rows is None else own[0] if len(own) == 1 else None

    def states(self, h: int) -> list[State]:
        """The states of layer h in declaration order."""
        if h == self.horizon - 1:
            return list(self.terminal_reward)
        return [s for layer, s in self.actions if layer == h]

    def pairs(self) -> list[PairKey]:
        """Every (h, s, a)."""
        return list(self.successors)

    def triplets(self) -> list[TripletKey]:
        """Every (h, s, a, s2)."""
        return [(h, s, a, s2) for (h, s, a), support in self.successors.items() for s2 in support]

    def terminal_features(self, s: State) -> list[float] | None:
        """Cost features of a terminal state, None where it has no cost."""
        return None if self.terminal_x is None else self.terminal_x[s]

    def anchor(self, h: int) -> Anchor | None:
        """The layer's triplet of known cost, if any."""
        return None if self.anchors is None else self.anchors.get(h)

    def fallback_pairs(self) -> set[PairKey]:
        """Pairs that the fallback plays."""
        return {(h, s, a) for (h, s), a in self.fallback.items()}

    def fallback_terminals(self) -> set[State]:
        """Terminal states that the fallback can end in."""
        last = self.horizon - 2
        return {s2 for (h, s), a in self.fallback.items() if h == last for s2 in self.successors[h, s, a]}

    def probability(self, key: TripletKey) -> float:
        """Hidden truth: P(s2 | s, a) = <mu_h, phi>."""
        return dot(self.mu[key[0]], self.phi[key])

    def cost(self, key: TripletKey) -> list[float]:
        """Hidden truth: the cost vector of a row, deviation included."""
        off = self.deviation.get(key, [0.0] * len(self.limits))
        return [dot(g, self.x[key]) + e for g, e in zip(self.gamma[key[0]], off, strict=True)]

    def terminal_cost(self, s: State) -> list[float] | None:
        """Hidden truth: the cost vector of a terminal state, None where it has none."""
        features = self.terminal_features(s)
        if features is None:
            return None
        off = self.terminal_deviation.get(s, [0.0] * len(self.limits))
        return [dot(g, features) + e for g, e in zip(self.gamma[self.horizon - 1], off, strict=True)]

    def functions(self) -> dict[str, Any]:
        """Keywords for `Problem.from_functions`, all but `limits`.

        `fallback` raises KeyError off the fallback's reach, so that code which asks too much is noticed.
        """
        by_pair = self.pair_rows is not None
        declared: dict[str, Any] = {
            "horizon": self.horizon,
            "start": self.starts[0] if len(self.starts) == 1 else list(self.starts),
            "actions": lambda h, s: list(self.actions[h, s]),
            "successors": lambda h, s, a: list(self.successors[h, s, a]),
            "reward": lambda h, s, a: self.reward[h, s, a],
            "cost_features": (lambda h, s, a: list(self.x[h, s, a, 0]))
            if by_pair
            else (lambda h, s, a, s2: list(self.x[h, s, a, s2])),
            "forbidden": (lambda h, s: (h, s) in self.forbidden) if self.forbidden else None,
            "terminal_reward": lambda s: self.terminal_reward[s],
            "terminal_cost_features": None if self.terminal_x is None else self.terminal_features,
            "fallback": lambda h, s: self.fallback[h, s],
            "anchor": None if self.anchors is None else self.anchor,
            "transition_norm": self.transition_norm,
            "stationary_costs": self.stationary_costs,
            "stationary_transitions": self.stationary_transitions,
        }
        if not self.shared_features:
            declared["transition_features"] = lambda h, s, a, s2: list(self.phi[h, s, a, s2])
        return declared

    def faults(self) -> list[str]:
        """Everything about the tables that breaks the promises of spec 2; empty for a valid problem."""
        return [*self._truth_faults(), *self._fallback_faults(), *self._anchor_faults()]

    def _truth_faults(self) -> list[str]:
        out: list[str] = []
        if self.shared_features != (self.phi is self.x):
            out.append("shared_features disagrees with the identity of phi and x")
        for (h, s, a), support in self.successors.items():
            chances = [self.probability((h, s, a, s2)) for s2 in support]
            if min(chances) < 0.0 or abs(sum(chances) - 1.0) > 1e-12:
                out.append(f"probabilities at {(h, s, a)}: {chances}")
            if not 0.0 <= self.reward[h, s, a] <= 1.0:
                out.append(f"reward at {(h, s, a)}")
        out += [f"norm of mu at layer {h}" for h, m in enumerate(self.mu) if norm(m) > self.transition_norm]
        for h, layer in enumerate(self.gamma):
            for limit, g in zip(self.limits, layer, strict=True):
                if norm(g) > limit.norm:
                    out.append(f"norm of gamma at layer {h}, limit {limit.name}")
        if self.stationary_costs and any(layer != self.gamma[0] for layer in self.gamma):
            out.append("gamma differs between layers of a stationary problem")
        if self.stationary_transitions and any(m != self.mu[0] for m in self.mu):
            out.append("mu differs between layers of a stationary problem")
        return out

    def _fallback_faults(self) -> list[str]:
        out: list[str] = []
        reached: set[StateKey] = {(0, s) for s in self.starts}
        for h in range(self.horizon - 1):
            for s in [s for layer, s in reached if layer == h]:
                if (h, s) not in self.fallback:
                    out.append(f"fallback has no action at {(h, s)}")
                    continue
                a = self.fallback[h, s]
                reached |= {(h + 1, s2) for s2 in self.successors[h, s, a]}
                out += [f"fallback is unsafe at {key}" for key in self.rows((h, s, a)) if self._unsafe(self.cost(key))]
        out += [f"fallback may enter the forbidden {key}" for key in reached & self.forbidden]
        for s in [s for layer, s in reached if layer == self.horizon - 1]:
            cost = self.terminal_cost(s)
            if cost is not None and self._unsafe(cost):
                out.append(f"fallback is unsafe in terminal state {s}")
        out += [f"fallback speaks off its reach at {key}" for key in self.fallback if key not in reached]
        return out

    def _anchor_faults(self) -> list[str]:
        out: list[str] = []
        for h in range(self.horizon):
            anchor = self.anchor(h)
            if anchor is None:
                continue
            features, costs = anchor
            for limit, g, c in zip(self.limits, self.gamma[h], costs, strict=True):
                if abs(dot(g, features) - c) > 1e-12 * (1 + abs(c)):
                    out.append(f"anchor of layer {h} has the wrong cost")
                if c >= limit.bound or abs(c) > limit.norm * norm(features):
                    out.append(f"anchor of layer {h} is not below the limit, or too large for the norm")
        return out

    def _unsafe(self, cost: Sequence[float]) -> bool:
        return any(c > limit.bound for c, limit in zip(cost, self.limits, strict=True))
