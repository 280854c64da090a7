"""Directed exploration transcribed from the specification, section 5, with dicts and loops.

What it shares with the bonuses (bounds, certified sets, value regression) is in `lsvi_new`. `doubtful` is set when
rounding alone may have decided something, so that another implementation may rightly differ from then on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .lsvi_new import Plan, Reference, ValueFit, ValueRow, _best
from .tables import Action, PairKey, State, StateKey, Tables

NEAR = 1e-9
Key = tuple[Any, ...]  # of a cost row, or (H-1, s) for the cost of a last state


class DirectedReference(Reference):
    """As `Reference`, but what is played narrows the bounds that are in the way of more reward."""

    def __init__(self, tables: Tables, p: float, curiosity: float, patience: float, budget: float, **rest: Any) -> None:
        self.curiosity, self.patience, self.budget = curiosity, patience, budget
        self.gap, self.least, self.foregone = 0.0, math.inf, 0.0
        self.explored, self.exploring, self.planned_episodes = 0, False, 0
        self.scale, self.doubtful = 1.0, False
        self.directed_plans = self.undirected_plans = self.moved_plans = 0
        super().__init__(tables, p, **rest)

    # ------------------------------------------------------------------ the plan

    def _make_plan(self) -> None:
        plan = Plan(replans=self.replans)
        self._bounds(plan)
        self._certify(plan)
        fits = self._value_fits()
        certified = {pair for pair, yes in plan.certified.items() if yes}
        hopeful, hopeful_ends = self._hopeful(plan)
        best_value, best_play, best_q = self._sweep(fits, hopeful, hopeful_ends, {}, 0.0)
        safe_ends = {s for s in self.layers[self.H - 1] if (self.H - 1, s) in plan.safe}
        value, play, q = self._sweep(fits, certified, safe_ends, {}, 0.0)
        gap = max(best_value[0, s] - value[0, s] for s in self.t.starts)
        self.doubtful |= abs(gap - 1e-9 * self.H) < 1e-12 * self.H or 1e-12 < gap < 1e-8
        gap = gap if gap > 1e-9 * self.H else 0.0
        self._remember(gap)
        self.scale = 1.0
        if gap > 0.0 and self._may_explore(self.episodes_ended):
            self.doubtful |= self._tied(best_play, best_q, hopeful)
            share = self._shares(plan, certified, best_play)
            weight = max(gap * self.curiosity * max(1.0, self.foregone / self.patience), 1e-5 * self.episodes_ended)
            if share:
                bonus = {key: weight * one for key, one in share.items()}
                richer, chosen, richer_q = self._sweep(fits, certified, safe_ends, bonus, weight)
                self.doubtful |= self._tied(chosen, richer_q, certified) or self._tied(play, q, certified)
                if weight >= 8.0 or self._met(chosen) != self._met(play):
                    value, play, q = richer, chosen, richer_q
                    self.scale, self.exploring = 1.0 / (1.0 + weight), True
                    self.moved_plans += 1
        plan.value, plan.action, plan.q = value, play, q
        self.plans = dict.fromkeys(self.t.starts, plan)
        self.planned_at = self._log_determinants()

    def _remember(self, gap: float) -> None:
        """What is foregone counts from when the gap last fell by a tenth; what was explored is never forgotten."""
        since = self.episodes_ended - self.planned_episodes
        self.foregone += self.gap * since
        self.explored += since if self.exploring else 0
        if 0.0 < gap < 0.9 * self.least:
            self.foregone, self.least = 0.0, gap
        self.gap, self.planned_episodes, self.exploring = gap, self.episodes_ended, False

    def _may_explore(self, episodes: int) -> bool:
        spent = self.explored + (episodes - self.planned_episodes if self.exploring else 0)
        return spent < self.budget * math.sqrt(max(1, episodes))

    def _must_replan(self) -> bool:
        if super()._must_replan():
            return True
        if self.gap <= 0.0:
            return False
        grown = self.planned_episodes + max(1, math.ceil(self.replan_growth * self.planned_episodes))
        return self.episodes_ended >= grown or (self.exploring and not self._may_explore(self.episodes_ended))

    def observe(
        self, h: int, s: State, a: Action, s2: State, cost: Sequence[float], features: Sequence[float] | None = None
    ) -> None:
        super().observe(h, s, a, s2, cost, features)
        row = self.value_rows.pop()  # learned from V/(1 + omega)
        self.value_rows.append(ValueRow(h, [self.scale * f for f in row.features], self.scale * row.target))

    # ------------------------------------------------------------------ hopeful pairs, values

    def _hopeful(self, plan: Plan) -> tuple[set[PairKey], set[State]]:
        """Section 4 with lower in place of upper; bounds that contradict each other prove nothing."""
        last = self.H - 1
        for lower in (*plan.lower.values(), *plan.terminal_lower.values()):
            self.doubtful |= any(abs(lo - lim.bound) < NEAR for lo, lim in zip(lower, self.t.limits, strict=True))
        fallback, ends = self.t.fallback_pairs(), set(self.t.fallback_terminals())
        for s in self.layers[last]:
            if not plan.consistent or s not in plan.terminal_lower or self._within(self.H - 1, plan.terminal_lower[s]):
                ends.add(s)
        ends -= {s for h, s in self.t.forbidden if h == last}
        pairs: set[PairKey] = set()
        alive = {(last, s) for s in ends}
        for h in reversed(range(last)):
            for s in self.layers[h]:
                for a in self.t.actions[h, s]:
                    kept = all(self._within(h, plan.lower[row]) for row in self.t.rows((h, s, a)))
                    kept &= all((h + 1, s2) in alive for s2 in self.t.successors[h, s, a])
                    hoped = not plan.consistent or kept or (h, s, a) in fallback
                    if hoped and (h, s) not in self.t.forbidden:
                        pairs.add((h, s, a))
                        alive.add((h, s))
        return pairs, ends

    def _sweep(
        self, fits: list[ValueFit], allowed: set[PairKey], ends: set[State], bonus: dict[Key, float], weight: float
    ) -> tuple[dict[StateKey, float], dict[StateKey, Action], dict[PairKey, float]]:
        """(S7) over some pairs: V, the greedy action, Q of every pair."""
        last = self.H - 1
        value: dict[StateKey, float] = {}
        action: dict[StateKey, Action] = {}
        q: dict[PairKey, float] = {}
        for s in self.layers[last]:
            value[last, s] = self.t.terminal_reward[s] + bonus.get((last, s), 0.0) if s in ends else 0.0
        for h in reversed(range(last)):
            cap = (self.H - h) * (1.0 + weight)
            for s in self.layers[h]:
                for a in self.t.actions[h, s]:
                    rows = [bonus.get(row, 0.0) for row in self.t.rows((h, s, a))]
                    expected = self._expected_next(fits[h], value, (h, s, a))
                    q[h, s, a] = self.t.reward[h, s, a] + expected + max(rows)
                open_to = {a: q[h, s, a] for a in self.t.actions[h, s] if (h, s, a) in allowed}
                value[h, s] = 0.0
                if open_to:
                    action[h, s] = _best(open_to, cap)
                    value[h, s] = min(q[h, s, action[h, s]], cap)
        return value, action, q

    def _tied(self, play: dict[StateKey, Action], q: dict[PairKey, float], allowed: set[PairKey]) -> bool:
        """Another action is as good to within rounding, in a state that may be met."""
        met = {key[:2] for key in self._met(play) if len(key) == 4}
        return any(
            a != play[h, s] and (h, s, a) in allowed and abs(q[h, s, a] - q[h, s, play[h, s]]) < NEAR
            for h, s in met
            for a in self.t.actions[h, s]
        )

    # ------------------------------------------------------------------ targets and shares

    def _met(self, play: dict[StateKey, Action]) -> list[Key]:
        return self._reached({(h, s, a) for (h, s), a in play.items()})

    def _reached(self, pairs: set[PairKey]) -> list[Key]:
        """Cost rows and last states that may be met from the starts along some pairs."""
        here, met = list(self.t.starts), list[Key]()
        for h in range(self.H - 1):
            following = []
            for s in self.layers[h]:
                for a in self.t.actions[h, s]:
                    if s in here and (h, s, a) in pairs:
                        met += self.t.rows((h, s, a))
                        following += self.t.successors[h, s, a]
            here = following
        return met + [(self.H - 1, s) for s in self.layers[self.H - 1] if s in here]

    def _z(self, key: Key) -> np.ndarray[Any, Any] | None:
        x = self.t.x[key] if len(key) == 4 else self.t.terminal_features(key[1])
        return None if x is None else np.array(self._project(key[0], x)[0])

    def _targets(self, plan: Plan, certified: set[PairKey], play: dict[StateKey, Action]) -> list[Key]:
        assert self.slack is not None
        found: list[tuple[float, Key]] = []
        for key in self._met(play):
            if len(key) == 4 and key[:3] not in certified:
                upper = plan.upper[key]
            elif len(key) == 2 and key not in plan.safe and key[1] in plan.terminal_upper:
                upper = plan.terminal_upper[key[1]]
            else:
                continue
            limits, slack = self.t.limits, self.slack[key[0]]
            over = max((up - lim.bound) / room for up, lim, room in zip(upper, limits, slack, strict=True))
            if over > 0.0:
                found.append((over, key))
        assert len(found) <= 32, "the engine would leave some out"
        return [key for _, key in found]

    def _shares(self, plan: Plan, certified: set[PairKey], play: dict[StateKey, Action]) -> dict[Key, float]:
        ridge = sorted(self.ridges)[len(self.ridges) // 2]
        inverse = [np.linalg.inv(ridge * np.eye(self.dc) + self._cost_gram(h)) for h in range(self.H)]
        targets = [(key[0], z) for key in self._targets(plan, certified, play) if (z := self._z(key)) is not None]
        score: dict[Key, float] = {}
        alone: dict[Key, float] = {}
        for key in self._reached(certified):
            x = self._z(key)
            if x is None:
                continue
            u = float(x @ inverse[key[0]] @ x)
            alone[key], score[key] = u / (1.0 + u), 0.0
            for h, z in targets:
                width = float(z @ inverse[h] @ z)
                if (h == key[0] or self.t.stationary_costs) and width > 0.0:
                    score[key] = max(score[key], float(x @ inverse[h] @ z) ** 2 / ((1.0 + u) * width))
        most, most_alone = max(score.values(), default=0.0), max(alone.values(), default=0.0)
        self.doubtful |= abs(most - 0.01 * most_alone) < 1e-9 or 0.0 < most_alone < 1e-9
        if most_alone <= 0.0:
            return {}
        if most < 0.01 * most_alone:
            self.undirected_plans += 1
            return {key: one / most_alone for key, one in alone.items()}
        self.directed_plans += 1
        return {key: one / most for key, one in score.items()}
