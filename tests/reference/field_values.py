"""Value-targeted learners once more, by loops over dicts, from their formulas: UCRL-VTR, UCRL-VTR+ and HF-UCRL-VTR+.
Imports nothing of surefoot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .tables import PairKey, StateKey, Tables, TripletKey, norm


class Regression:
    """A = ridge I + sum phi_f phi_f^T / w^2, b = sum phi_f f / w^2 per step, or for all; phi_f = sum_s' phi f(s')."""

    def __init__(self, tables: Tables, ridge: float, pooled: bool) -> None:
        self.t, self.pooled = tables, pooled
        d = len(next(iter(tables.phi.values())))
        self.matrix = [ridge * np.eye(d) for _ in range(tables.horizon - 1)]
        self.vector = [np.zeros(d) for _ in range(tables.horizon - 1)]
        self.rows = [0] * (tables.horizon - 1)

    def at(self, h: int) -> int:
        return 0 if self.pooled else h

    def phi(self, pair: PairKey, f: dict[Any, float]) -> Any:
        return sum(np.array(self.t.phi[(*pair, s2)]) * f[s2] for s2 in self.t.successors[pair])

    def mean_and_length(self, pair: PairKey, f: dict[Any, float]) -> tuple[float, float]:
        h, phi = self.at(pair[0]), self.phi(pair, f)
        inverse = np.linalg.inv(self.matrix[h])
        return float(phi @ inverse @ self.vector[h]), math.sqrt(float(phi @ inverse @ phi))

    def expected(self, pair: PairKey, f: dict[Any, float], radius: float) -> float:
        """<theta, phi> + radius |phi|, within the range of f on the support."""
        mean, length = self.mean_and_length(pair, f)
        return min(max(mean + radius * length, min(f.values())), max(f.values()))

    def tell(self, key: TripletKey, f: dict[Any, float], square: float = 1.0) -> None:
        h, phi = self.at(key[0]), self.phi(key[:3], f)
        self.matrix[h] = self.matrix[h] + np.outer(phi, phi) / square
        self.vector[h] = self.vector[h] + phi * f[key[3]] / square
        self.rows[h] += 1


class Vtr:
    """UCRL-VTR: plans before every episode, all actions."""

    def __init__(self, tables: Tables, p: float, optimism: float = 1.0) -> None:
        self.t, self.p, self.optimism, self.pooled = tables, p, optimism, tables.stationary_transitions
        self.begin()
        self.plan()

    def begin(self) -> None:
        self.data = Regression(self.t, 1.0, self.pooled)

    def span(self, h: int) -> int:
        """The range of values ahead: H-1-h, of all steps together the largest."""
        return self.t.horizon - 1 - (0 if self.pooled else h)

    def radius(self, h: int) -> float:
        _, log_det = np.linalg.slogdet(self.data.matrix[self.data.at(h)])
        return (
            self.span(h) / 2 * math.sqrt(float(log_det) + 2 * math.log(self.t.horizon / self.p))
            + self.t.transition_norm
        )

    def plan(self) -> None:
        self.q: dict[PairKey, float] = {}
        last = self.t.horizon - 1
        self.value: dict[StateKey, float] = {(last, s): r for s, r in self.t.terminal_reward.items()}
        for h in range(last - 1, -1, -1):
            radius = self.optimism * self.radius(h)
            for s in self.t.states(h):
                for a in self.t.actions[h, s]:
                    ahead = self.ahead((h, s, a))
                    self.q[h, s, a] = self.t.reward[h, s, a] + self.data.expected((h, s, a), ahead, radius)
                self.value[h, s] = min(max(self.q[h, s, a] for a in self.t.actions[h, s]), float(self.t.horizon - h))

    def ahead(self, pair: PairKey, power: float = 1.0, unit: float = 1.0) -> dict[Any, float]:
        return {s2: (self.value[pair[0] + 1, s2] / unit) ** power for s2 in self.t.successors[pair]}

    def tell(self, key: TripletKey) -> None:
        self.data.tell(key, self.ahead(key[:3]))

    def end_episode(self) -> None:
        self.plan()


class VtrPlus(Vtr):
    """UCRL-VTR+: rows weighted by an upper bound of their variance."""

    def begin(self) -> None:
        lam = 1 / self.t.transition_norm**2
        self.data, self.squares = (Regression(self.t, lam, self.pooled) for _ in range(2))
        self.d = len(next(iter(self.t.phi.values())))
        self.most = max(sum(norm(self.t.phi[(*pair, s2)]) for s2 in ends) for pair, ends in self.t.successors.items())

    def constants(self, h: int) -> tuple[float, float, float]:
        """(log(1 + t D^2/lam), l, t) of the row to come."""
        t = self.data.rows[self.data.at(h)] + 1
        log = math.log(4 * t * t * self.t.horizon / self.p)
        return math.log(1 + t * self.most**2 * self.t.transition_norm**2), log, t

    def radius(self, h: int) -> float:
        growth, log, _ = self.constants(h)
        return 8 * math.sqrt(self.d * growth * log) + 4 * math.sqrt(self.d) * log + 1

    def tell(self, key: TripletKey) -> None:
        pair, reach, d = key[:3], self.span(key[0]), self.d
        growth, log, t = self.constants(key[0])
        b_v = 8 * d * math.sqrt(growth * log) + 4 * math.sqrt(d) * log + 1
        inner = d * math.log(1 + t * reach**4 * self.most**2 * self.t.transition_norm**2 / d) * log
        b_t = 8 * reach**2 * math.sqrt(inner) + 4 * reach**2 * log + 1
        once, twice = self.ahead(pair), self.ahead(pair, 2.0)
        first, length = self.data.mean_and_length(pair, once)
        second, length2 = self.squares.mean_and_length(pair, twice)
        variance = min(max(second, 0.0), reach**2) - min(max(first, 0.0), reach) ** 2
        doubt = min(reach**2, 2 * reach * b_v * length) + min(reach**2, b_t * length2)
        self.data.tell(key, once, max(reach**2 / d, variance + doubt))
        self.squares.tell(key, twice)


class Moments(Vtr):
    """HF-UCRL-VTR+: each power of V has a regression, weighted by what the next one says of its variance."""

    def __init__(self, tables: Tables, p: float, optimism: float, episodes: int) -> None:
        self.n, self.k, self.done = tables.horizon - 1, episodes, 0
        super().__init__(tables, p, optimism)

    def begin(self) -> None:
        self.d = len(next(iter(self.t.phi.values())))
        self.most = max(sum(norm(self.t.phi[(*pair, s2)]) for s2 in ends) for pair, ends in self.t.successors.items())
        self.lam = self.d / self.t.transition_norm**2
        count = math.ceil(math.log2(7 * self.k * self.n))
        self.each = [Regression(self.t, self.lam, self.pooled) for _ in range(count)]
        self.data = self.each[0]
        self.freeze()

    def freeze(self) -> None:
        """The statistics at the episode's begin."""
        self.frozen = []
        for data in self.each:
            copy = Regression(self.t, self.lam, self.pooled)
            copy.matrix, copy.vector = list(data.matrix), list(data.vector)
            self.frozen.append(copy)

    def radius(self, h: int) -> float:
        k = self.done + 1
        a, g2 = self.n**-0.5, self.d**-0.5
        eta = math.log(1 + k * self.n * self.most**2 / (a**2 * self.d * self.lam))
        tau = math.log(32 * (math.log(max(1.0, g2 / a)) + 1) * k**2 * self.n**2 / self.p)
        return 12 * math.sqrt(self.d * eta * tau) + 30 * tau / g2 + math.sqrt(self.lam) * self.t.transition_norm

    def tell(self, key: TripletKey) -> None:
        pair, b, last = key[:3], self.radius(key[0]), len(self.each) - 1
        powers = [self.ahead(pair, 2.0**m, self.t.horizon) for m in range(last + 1)]
        seen = [data.mean_and_length(pair, f) for data, f in zip(self.frozen, powers, strict=True)]
        squares = []
        for m, f in enumerate(powers):
            square = 1.0
            if m < last:
                square = min(max(seen[m + 1][0], 0.0), 1.0) - min(max(seen[m][0], 0.0), 1.0) ** 2
                square += min(1.0, 2 * b * seen[m][1]) + min(1.0, b * seen[m + 1][1])
            now = self.each[m].mean_and_length(pair, f)[1]
            squares.append(max(self.d**-0.5 * now, square, 1 / self.n))
        for data, f, square in zip(self.each, powers, squares, strict=True):
            data.tell(key, f, square)

    def end_episode(self) -> None:
        self.done += 1
        self.freeze()
        self.plan()
