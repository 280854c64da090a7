"""UCRL-VTR+ and OPSE-LCMDP once more, by loops over lists, from their formulas. Imports nothing of surefoot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


class VtrPlus:
    """Both regressions of UCRL-VTR+, one pair of them per step."""

    def __init__(self, d: int, horizon: int, norm: float, most: float, p: float, pooled: bool) -> None:
        self.d, self.horizon, self.norm, self.most, self.p, self.pooled = d, horizon, norm, most, p, pooled
        steps = range(horizon - 1)
        self.hat = [(np.eye(d) / norm**2, np.zeros(d)) for _ in steps]
        self.tilde = [(np.eye(d) / norm**2, np.zeros(d)) for _ in steps]
        self.rows = [0 for _ in steps]

    def tell(self, h: int, features: list[list[float]], v: list[float], seen: int) -> None:
        """One visit: the features of all successors, V of each, and which one came."""
        phi = sum(np.array(x) * w for x, w in zip(features, v, strict=True))
        phi2 = sum(np.array(x) * w * w for x, w in zip(features, v, strict=True))
        h = 0 if self.pooled else h
        reach, d, lam = self.horizon - 1 - h, self.d, 1 / self.norm**2
        t = self.rows[h] + 1
        log = math.log(4 * t**2 * self.horizon / self.p)
        b_v = 8 * d * math.sqrt(math.log(1 + t * self.most**2 / lam) * log) + 4 * math.sqrt(d) * log + 1
        inner = d * math.log(1 + t * reach**4 * self.most**2 / (d * lam)) * log
        b_t = 8 * reach**2 * math.sqrt(inner) + 4 * reach**2 * log + 1
        (gram, target), (gram2, target2) = self.hat[h], self.tilde[h]
        inverse, inverse2 = np.linalg.inv(gram), np.linalg.inv(gram2)
        first = min(max(float(phi @ inverse @ target), 0.0), reach)
        second = min(max(float(phi2 @ inverse2 @ target2), 0.0), reach**2)
        doubt = min(reach**2, 2 * reach * b_v * math.sqrt(phi @ inverse @ phi))
        doubt += min(reach**2, b_t * math.sqrt(phi2 @ inverse2 @ phi2))
        square = max(reach**2 / d, second - first**2 + doubt)
        self.hat[h] = (gram + np.outer(phi, phi) / square, target + phi * v[seen] / square)
        self.tilde[h] = (gram2 + np.outer(phi2, phi2), target2 + phi2 * v[seen] ** 2)
        self.rows[h] += 1


@dataclass
class Tables:
    """Counts of a tabular problem with one limit and one start, state 0; pairs are numbered state by state."""

    actions: list[list[int]]  # by step and state: how many
    successors: list[list[list[int]]]  # by step and pair
    rewards: list[list[float]]
    last: list[float]
    visits: list[list[list[int]]]  # as successors
    measured: list[list[int]]  # by step and pair, then the last states
    costs: list[list[float]]  # sums, likewise
    has_cost: list[bool]  # of the last states


def opse_policy(tables: Tables, price: float, kappa: float, noise: float, largest: float) -> tuple[Any, list[float]]:
    """(chances by step and pair, [V_u of state 0]) of one price, all constants 1."""

    def utility(h: int, i: int, beta: float) -> float:
        n = tables.measured[h][i]
        total = sum(0.5 for _ in range(n)) - tables.costs[h][i] / (2 * largest)
        return min(1.0, max(0.0, total / (1 + n) - noise * beta / (2 * largest)))

    end = len(tables.actions)
    v_r, v_plus = list(tables.last), [0.0 for _ in tables.last]
    v_u = [0.0 for _ in tables.last]
    if any(tables.has_cost):
        for i, costed in enumerate(tables.has_cost):
            v_u[i] = utility(end, i, 1 / math.sqrt(1 + tables.measured[end][i])) if costed else 0.5
    policy: list[list[float]] = [[] for _ in range(end)]
    for h in range(end - 1, -1, -1):
        left, pair = end - h, 0
        new_r, new_plus, new_u = [], [], []
        for n_actions in tables.actions[h]:
            q_r, q_plus, q_u = [], [], []
            for i in range(pair, pair + n_actions):
                n = 1 + sum(tables.visits[h][i])
                beta = 1 / math.sqrt(n)
                ahead = [
                    sum(k * v[s] for k, s in zip(tables.visits[h][i], tables.successors[h][i], strict=True)) / n
                    for v in (v_r, v_plus, v_u)
                ]
                q_r.append(
                    tables.rewards[h][i] + min(max(beta + ahead[0], 0), left * (1 + kappa * math.log(n_actions)))
                )
                q_plus.append(beta + min(max(beta + ahead[1], 0), left))
                q_u.append(utility(h, i, beta) + min(max(ahead[2] - beta, 0), left))
            score = [(a + b + price * c) / kappa for a, b, c in zip(q_plus, q_r, q_u, strict=True)]
            weight = [math.exp(each - max(score)) for each in score]
            pi = [each / sum(weight) for each in weight]
            policy[h] += pi
            new_r.append(sum(p * (q - kappa * math.log(max(p, 5e-308))) for p, q in zip(pi, q_r, strict=True)))
            new_plus.append(sum(p * q for p, q in zip(pi, q_plus, strict=True)))
            new_u.append(sum(p * q for p, q in zip(pi, q_u, strict=True)))
            pair += n_actions
        v_r, v_plus, v_u = new_r, new_plus, new_u
    return policy, [v_u[0]]
