"""Learners for expected budgets once more, by loops, from their formulas: OPSE-LCMDP's policy of a price, the extended
linear program of OptCMDP and DOPE, and an episode of OPDOP. Imports nothing of surefoot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from .field_values import Regression
from .tables import PairKey, Tables, TripletKey, norm


@dataclass
class Counted:
    """Counts of a tabular problem with one limit and one start, state 0; pairs are numbered state by state."""

    actions: list[list[int]]  # by step and state: how many
    successors: list[list[list[int]]]  # by step and pair
    rewards: list[list[float]]
    last: list[float]
    visits: list[list[list[int]]]  # as successors
    measured: list[list[int]]  # by step and pair, then the last states
    costs: list[list[float]]  # sums, likewise
    has_cost: list[bool]  # of the last states


def opse_policy(tables: Counted, price: float, kappa: float, noise: float, largest: float) -> tuple[Any, list[float]]:
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


# --- the extended linear program -----------------------------------------------------------------------------


def bernstein_width(p: float, n: int, log: float) -> float:
    """OptCMDP: 2 sqrt(l p(1-p)/n) + 14 l/(3n), n at least 1."""
    n = max(n, 1)
    return 2 * math.sqrt(log * p * (1 - p) / n) + 14 * log / (3 * n)


def dope_width(p: float, n: int, log: float) -> float:
    """DOPE's code: min(sqrt(l p(1-p)/n) + l/n, l/sqrt(n))."""
    n = max(n, 1)
    return min(math.sqrt(log * p * (1 - p) / n) + log / n, log / math.sqrt(n))


@dataclass
class Visits:
    """What a learner without features has seen: visits of triplets, costs of pairs and of last states, one limit."""

    triplets: dict[TripletKey, int]
    costs: dict[Any, list[float]]  # by (h, s, a), or (H-1, s)


class Program:
    """One variable per triplet, dense rows, the interior point method. ``scale`` multiplies widths; 1 is published."""

    def __init__(self, tables: Tables, seen: Visits, episodes: int, p: float, scale: float) -> None:
        self.t, self.seen, self.scale = tables, seen, scale
        self.log = math.log(6 * len(tables.pairs()) * episodes / p)
        self.keys = tables.triplets()
        self.steps = tables.horizon - 1
        self.largest = tables.limits[0].norm * max(
            [norm(x) for x in tables.x.values()]
            + [norm(x) for x in (tables.terminal_x or {}).values() if x is not None]
        )

    def model(self, key: TripletKey) -> tuple[float, int]:
        """(p^, n of the pair)."""
        support = self.t.successors[key[:3]]
        n = sum(self.seen.triplets.get((*key[:3], s2), 0) for s2 in support)
        return (self.seen.triplets.get(key, 0) / n if n else 1 / len(support)), n

    def measured(self, key: Any) -> tuple[float, int]:
        """(mean, how often) of a pair's cost, or of a last state's."""
        costs = self.seen.costs.get(key, [])
        return (sum(costs) / len(costs) if costs else 0.0), len(costs)

    def width(self, key: TripletKey, rule: Any) -> float:
        known = len(self.t.successors[key[:3]]) == 1
        return 0.0 if known else min(1.0, self.scale * rule(*self.model(key), self.log))

    def hoped(self, key: Any) -> float:
        mean, n = self.measured(key)
        return max(mean - self.scale * self.t.limits[0].noise * math.sqrt(self.log / max(n, 1)), min(mean, 0.0))

    def feared(self, key: Any) -> float:
        mean, n = self.measured(key)
        return mean + self.scale * self.t.limits[0].noise * math.sqrt(self.log / n) if n else self.largest

    def opt_cmdp(self) -> float | None:
        """The optimum; None where there is none."""
        costs = {pair: self.hoped(pair) for pair in self.t.pairs()}
        ends = {s: self.hoped((self.steps, s)) for s in self.t.states(self.steps)}
        return self.optimum(bernstein_width, self.t.reward, costs, ends)

    def dope(self, bonus: float, slack: float) -> float | None:
        """Doubt is added to rewards (3H/slack times bonus) and to costs (H times the largest cost)."""
        doubt = {
            pair: sum(self.width((*pair, s2), dope_width) for s2 in support)
            for pair, support in self.t.successors.items()
        }
        costs = {pair: self.feared(pair) + self.largest * self.steps * doubt[pair] for pair in doubt}
        rewards = {pair: self.t.reward[pair] + bonus * 3 * self.steps / slack * doubt[pair] for pair in doubt}
        last = self.t.states(self.steps)
        ends = {s: 0.0 if self.t.terminal_features(s) is None else self.feared((self.steps, s)) for s in last}
        return self.optimum(dope_width, rewards, costs, ends)

    def optimum(
        self, rule: Any, rewards: dict[PairKey, float], costs: dict[PairKey, float], ends: dict[Any, float]
    ) -> float | None:
        index = {key: i for i, key in enumerate(self.keys)}
        gain, spent = np.zeros(len(index)), np.zeros(len(index))
        below, equal, right = [], [], []
        for key, i in index.items():
            h, s2 = key[0], key[3]
            gain[i], spent[i] = rewards[key[:3]], costs[key[:3]]
            if h == self.steps - 1:
                gain[i] += self.t.terminal_reward[s2]
                spent[i] += ends[s2]
            own = [index[(*key[:3], end)] for end in self.t.successors[key[:3]]]
            p, b = self.model(key)[0], self.width(key, rule)
            for sign, edge in ((1.0, min(1.0, p + b)), (-1.0, max(0.0, p - b))):
                row = np.zeros(len(index))
                row[own] -= sign * edge
                row[i] += sign
                below.append(row)
        for h, s in self.t.actions:
            row = np.zeros(len(index))
            for key, i in index.items():
                row[i] += float(key[:2] == (h, s)) - float(key[0] == h - 1 and key[3] == s)
            equal.append(row)
            right.append(self.t.starts.count(s) / len(self.t.starts) if h == 0 else 0.0)
        costed = self.steps + any(self.t.terminal_features(s) is not None for s in self.t.states(self.steps))
        found = linprog(
            -gain,
            A_ub=np.array([*below, spent]),
            b_ub=np.array([0.0] * len(below) + [costed * self.t.limits[0].bound]),
            A_eq=np.array(equal),
            b_eq=np.array(right),
            method="highs-ipm",
        )
        return -float(found.fun) if found.status == 0 else None


# --- OPDOP ---------------------------------------------------------------------------------------------------


class Opdop:
    """One step of mirror ascent per episode; lower bounds of costs are told by whoever has them (one limit)."""

    def __init__(self, tables: Tables, episodes: int, p: float, slack: float, scale: float) -> None:
        self.t, self.k, self.p, self.slack, self.scale = tables, episodes, p, slack, scale
        self.n = tables.horizon - 1
        pooled = tables.stationary_transitions
        self.data = {name: Regression(tables, 1.0, pooled) for name in ("reward", "cost")}
        self.pi = {pair: 1 / len(tables.actions[pair[:2]]) for pair in tables.pairs()}
        self.price = 0.0
        sizes = [norm(x) for x in tables.x.values()]
        sizes += [norm(x) for x in (tables.terminal_x or {}).values() if x is not None]
        self.largest = tables.limits[0].norm * max(sizes)

    def evaluate(self, lower: dict[TripletKey, list[float]], last: dict[Any, list[float]]) -> None:
        """Q of rewards and of costs under the policy, and what the regressions will be told."""
        t, d = self.t, len(next(iter(self.t.phi.values())))
        v = {
            "reward": dict(t.terminal_reward),
            "cost": {s: last[s][0] if s in last else 0.0 for s in t.terminal_reward},
        }
        self.q: dict[str, dict[PairKey, float]] = {"reward": {}, "cost": {}}
        self.worth: dict[str, dict[TripletKey, float]] = {"reward": {}, "cost": {}}
        for h in range(self.n - 1, -1, -1):
            beta = self.scale * (self.n - h) * math.sqrt(d * math.log(max(d, 2) * self.n * self.k / self.p))
            for pair in [pair for pair in t.pairs() if pair[0] == h]:
                for name, sign in (("reward", 1.0), ("cost", -self.largest)):
                    f = {}
                    for s2 in t.successors[pair]:
                        f[s2] = v[name][s2] + (lower[(*pair, s2)][0] if name == "cost" else 0.0)
                        self.worth[name][(*pair, s2)] = f[s2]
                    found = self.data[name].expected(pair, f, sign * beta)
                    if name == "reward":
                        found = min(max(t.reward[pair] + found, 0.0), t.horizon - h)
                    self.q[name][pair] = found
            v = {
                name: {s: sum(self.pi[h, s, a] * self.q[name][h, s, a] for a in t.actions[h, s]) for s in t.states(h)}
                for name in v
            }
        self.spent = sum(v["cost"][s] for s in t.starts) / len(t.starts)

    def tell(self, key: TripletKey) -> None:
        for name, data in self.data.items():
            data.tell(key, {s2: self.worth[name][(*key[:3], s2)] for s2 in self.t.successors[key[:3]]})

    def step(self) -> None:
        """After an episode: the policy and the price."""
        t, k, n = self.t, self.k, self.n
        old = dict(self.pi)
        for (h, s), actions in t.actions.items():
            most = max(2, *(len(own) for (step, _), own in t.actions.items() if step == h))
            alpha = math.sqrt(math.log(most)) / (n * n * math.sqrt(k))
            weight = {}
            for a in actions:
                base = (1 - 1 / k) * old[h, s, a] + 1 / k / len(actions)
                weight[a] = base * math.exp(alpha * (self.q["reward"][h, s, a] - self.price * self.q["cost"][h, s, a]))
            for a in actions:
                self.pi[h, s, a] = weight[a] / sum(weight.values())
        costed = n + any(t.terminal_features(s) is not None for s in t.states(n))
        price = self.price + (self.spent - costed * t.limits[0].bound) / math.sqrt(k)
        self.price = min(max(price, 0.0), 2 * n / self.slack)
