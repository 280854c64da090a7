"""Directed exploration transcribed from the specification, section 5, with dicts and loops.

What it shares with the bonuses (bounds, certified sets, value regression) is in `lsvi_new`. `doubtful` is set when
rounding alone may have decided something, so that another implementation may rightly differ from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .lsvi_new import Plan, Reference, ValueFit, ValueRow, _best
from .tables import Action, PairKey, State, StateKey, Tables

NEAR = 1e-9
Key = tuple[Any, ...]  # of a cost row, of a pair, or (H-1, s) for the cost of a last state


class Bonus(NamedTuple):
    """What exploring adds."""

    weight: float  # omega
    share: dict[Key, float]
    sure: dict[StateKey, float]  # V


class DirectedReference(Reference):
    """As `Reference`, but what is played narrows the bounds that are in the way of more reward."""

    def __init__(self, tables: Tables, p: float, budget: float, **rest: Any) -> None:
        self.budget, self.gap, self.weight = budget, 0.0, 0.0
        self.explored, self.exploring, self.planned_episodes = 0, False, 0
        self.sure, self.doubtful = dict[StateKey, float](), False
        self.directed_plans = self.undirected_plans = self.moved_plans = 0
        self.spaces_aimed_at = set[int]()
        self.came, self.came_then = dict[tuple[Any, ...], int](), dict[tuple[Any, ...], int]()
        self.lowered_shares = self.lowered_values = 0
        super().__init__(tables, p, **rest)

    # ------------------------------------------------------------------ the plan

    def _make_plan(self) -> None:
        plan = Plan(replans=self.replans)
        self._bounds(plan)
        self._certify(plan)
        fits = self._value_fits()
        certified = {pair for pair, yes in plan.certified.items() if yes}
        hopeful, hopeful_ends = self._hopeful(plan)
        best_value, best_play, best_q = self._sweep(fits, hopeful, hopeful_ends)
        safe_ends = {s for s in self.layers[self.H - 1] if (self.H - 1, s) in plan.safe}
        value, play, q = self._sweep(fits, certified, safe_ends)
        gap = max(best_value[0, s] - value[0, s] for s in self.t.starts)
        self.doubtful |= abs(gap - 1e-9 * self.H) < 1e-12 * self.H or 1e-12 < gap < 1e-8
        gap = gap if gap > 1e-9 * self.H else 0.0
        self._remember(gap)
        self.sure = value
        if gap > 0.0 and self._may_explore(self.episodes_ended):
            self.doubtful |= self._tied(best_play, best_q, hopeful)
            share = self._shares(plan, certified, best_play)
            if share:
                gaps = {s: best_value[0, s] - value[0, s] for s in self.t.starts}
                start = max(self.t.starts, key=gaps.__getitem__)
                self.doubtful |= sum(gaps[start] - each < NEAR for each in gaps.values()) > 1

                def explored(weight: float) -> tuple[Any, Any, Any]:
                    return self._sweep(fits, certified, safe_ends, Bonus(weight, share, value))

                weight = self._weigh(gap, lambda weight: explored(weight)[0][0, start] - value[0, start])
                richer, chosen, richer_q = explored(weight)
                self.doubtful |= self._tied(chosen, richer_q, certified) or self._tied(play, q, certified)
                self.exploring = self._met(chosen) != self._met(play)
                self.moved_plans += self.exploring
                value, play, q = richer, chosen, richer_q
        plan.value, plan.action, plan.q = value, play, q
        self.plans = dict.fromkeys(self.t.starts, plan)
        self.planned_at = self._log_determinants()

    def _weigh(self, gap: float, more: Callable[[float], float]) -> float:
        """Doubled, from the last one, while V_omega is worth too little; else halved while it is worth too much."""
        floor, most = 1e-5 * self.episodes_ended, 1e6 * self.H
        weight = max(floor, self.weight or gap)
        if more(weight) < gap / 2:
            while more(weight) < gap / 2 and weight < most:
                weight *= 2.0
        else:
            while more(weight) > 2 * gap and weight > floor and more(max(floor, weight / 2)) >= gap / 2:
                weight = max(floor, weight / 2)
        tried = ((weight, 0.5), (weight, 2.0), (weight / 2, 0.5), (2 * weight, 2.0))
        self.doubtful |= any(abs(more(one) - edge * gap) < NEAR for one, edge in tried)
        self.weight = weight
        return weight

    def _remember(self, gap: float) -> None:
        """What was explored is never forgotten."""
        since = self.episodes_ended - self.planned_episodes
        self.explored += since if self.exploring else 0
        self.gap, self.planned_episodes, self.exploring = gap, self.episodes_ended, False
        self.came_then = dict(self.came)

    def _may_explore(self, episodes: int) -> bool:
        spent = self.explored + (episodes - self.planned_episodes if self.exploring else 0)
        return spent < self.budget * math.sqrt(max(1, episodes))

    def _must_replan(self) -> bool:
        if super()._must_replan():
            return True
        if self.gap <= 0.0:
            return False
        grown = self.planned_episodes + max(1, math.ceil(self.replan_growth * self.planned_episodes))
        if self.episodes_ended >= grown or (self.exploring and not self._may_explore(self.episodes_ended)):
            return True
        age = self.episodes_ended - self.planned_episodes
        return age in {16 * 2**i for i in range(20)} and self._doubled()

    def _doubled(self) -> bool:
        """Some pair was played more than 16 times, and more often than before, since the plan."""
        now, then = dict[PairKey, int](), dict[PairKey, int]()
        for plays, came in ((now, self.came), (then, self.came_then)):
            for (h, s, a, _), times in came.items():
                plays[h, s, a] = plays.get((h, s, a), 0) + times
        return any(n - then.get(pair, 0) > max(16, then.get(pair, 0)) for pair, n in now.items())

    def observe(
        self, h: int, s: State, a: Action, s2: State, cost: Sequence[float], features: Sequence[float] | None = None
    ) -> None:
        super().observe(h, s, a, s2, cost, features)
        if self.gap > 0.0:
            self.came[h, s, a, s2] = self.came.get((h, s, a, s2), 0) + 1
        self.value_rows.pop()  # learned from V
        self.value_rows.append(ValueRow(h, self._value_features(self.sure, (h, s, a)), self.sure[h + 1, s2]))

    # ------------------------------------------------------------------ hopeful pairs, values

    def _hopeful(self, plan: Plan) -> tuple[set[PairKey], set[State]]:
        """Section 4 with lower in place of upper; bounds that contradict each other prove nothing."""
        last = self.H - 1
        ends_lower = {(last, s): lower for s, lower in plan.terminal_lower.items()}
        for key, lower in (*plan.lower.items(), *ends_lower.items()):
            self.doubtful |= any(abs(lo - self._bound(key[0], j)) < NEAR for j, lo in enumerate(lower))
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
        self, fits: list[ValueFit], allowed: set[PairKey], ends: set[State], bonus: Bonus | None = None
    ) -> tuple[dict[StateKey, float], dict[StateKey, Action], dict[PairKey, float]]:
        """(S7) over some pairs: V, the greedy action, Q of every pair."""
        bonus = bonus or Bonus(0.0, {}, {})
        last, weight, share = self.H - 1, bonus.weight, bonus.share
        value: dict[StateKey, float] = {}
        action: dict[StateKey, Action] = {}
        q: dict[PairKey, float] = {}
        for s in self.layers[last]:
            value[last, s] = self.t.terminal_reward[s] + weight * share.get((last, s), 0.0) if s in ends else 0.0
        for h in reversed(range(last)):
            cap = (self.H - h) * (1.0 + weight)
            for s in self.layers[h]:
                for a in self.t.actions[h, s]:
                    pair = (h, s, a)
                    follows = self._expected_next(fits[h], value, pair) + weight * share.get(pair, 0.0)
                    if share and self._plays(pair):
                        most = self._allowed(fits[h], value, pair, bonus)
                        self.lowered_values += most < follows - 1e-6
                        follows = min(follows, most)
                    q[pair] = self.t.reward[pair] + follows
                open_to = {a: q[h, s, a] for a in self.t.actions[h, s] if (h, s, a) in allowed}
                value[h, s] = 0.0
                if open_to:
                    action[h, s] = _best(open_to, cap)
                    value[h, s] = min(q[h, s, action[h, s]], cap)
        return value, action, q

    # ------------------------------------------------------------------ what came

    def _plays(self, pair: PairKey) -> int:
        return sum(self.came.get((*pair, s2), 0) for s2 in self.t.successors[pair])

    def _most(self, pair: PairKey, worth: dict[State, float]) -> float:
        """The most that can be expected: the best successors together are as likely as they can be."""
        triplets = sum(len(following) for following in self.t.successors.values())
        n, best = self._plays(pair), sorted(worth, key=worth.__getitem__, reverse=True)
        total, before = 0.0, 0.0
        for size, s2 in enumerate(best, 1):
            times = sum(self.came.get((*pair, one), 0) for one in best[:size])
            room = math.log(triplets * math.comb(len(best), size) / self.p)
            chance = 1.0
            for j in range(12 if n and size < len(best) else 0):
                rate = 0.25**j
                most = (rate * times + room + (j + 1) * math.log(2.0)) / ((1.0 - math.exp(-rate)) * n)
                chance = min(chance, most)
            total += (chance - before) * worth[s2]
            before = chance
        return total

    def _allowed(self, fit: ValueFit, value: dict[StateKey, float], pair: PairKey, bonus: Bonus) -> float:
        """What V expects, and the most of what the rest exceeds it by."""
        h, weight = pair[0], bonus.weight
        more = {s2: value[h + 1, s2] - bonus.sure[h + 1, s2] for s2 in self.t.successors[pair]}
        own = weight * bonus.share.get(pair, 0.0)
        if self.t.pair_rows is None:
            own, more = 0.0, {s2: one + weight * bonus.share.get((*pair, s2), 0.0) for s2, one in more.items()}
        return self._expected_next(fit, bonus.sure, pair) + self._most(pair, more) + own

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

    def _space(self, j: int) -> int:
        """The first limit with the same rows as limit j: here all have the same."""
        return 0

    def _row(self, space: int, h: int, x: Sequence[float]) -> list[float]:
        return self._project(h, x)[0]

    def _gram_in(self, space: int, h: int) -> np.ndarray[Any, Any]:
        """s, or the middle ridge of a grid, times I, plus the Gram matrix of the step."""
        return sorted(self.ridges)[len(self.ridges) // 2] * np.eye(self.dc) + self._cost_gram(h).astype(float)

    def _z(self, space: int, key: Key) -> np.ndarray[Any, Any] | None:
        x = self.t.x[key] if len(key) == 4 else self.t.terminal_features(key[1])
        return None if x is None else np.array(self._row(space, key[0], x))

    def _targets(self, plan: Plan, certified: set[PairKey], play: dict[StateKey, Action]) -> list[tuple[int, Key]]:
        """With the space of the limit that each fails most."""
        assert self.slack is not None
        found: list[tuple[int, Key]] = []
        for key in self._met(play):
            if len(key) == 4 and key[:3] not in certified:
                upper = plan.upper[key]
            elif len(key) == 2 and key not in plan.safe and key[1] in plan.terminal_upper:
                upper = plan.terminal_upper[key[1]]
            else:
                continue
            h, slack = key[0], self.slack[key[0]]
            over = [(up - self._bound(h, j)) / room for j, (up, room) in enumerate(zip(upper, slack, strict=True))]
            worst = max(range(len(over)), key=over.__getitem__)
            self.doubtful |= any(
                abs(each - over[worst]) < NEAR and self._space(j) != self._space(worst) for j, each in enumerate(over)
            )
            if over[worst] > 0.0:
                found.append((self._space(worst), key))
        assert len(found) <= 32, "the engine would leave some out"
        return found

    def _shares(self, plan: Plan, certified: set[PairKey], play: dict[StateKey, Action]) -> dict[Key, float]:
        """Of cost rows, of pairs and of last states."""
        targets = self._targets(plan, certified, play)
        every: dict[Key, list[float]] = {}
        alone: dict[Key, float] = {}
        for space in {self._space(j) for j in range(self.m)}:
            inverse = [np.linalg.inv(self._gram_in(space, h)) for h in range(self.H)]
            own = [(key[0], z) for other, key in targets if other == space and (z := self._z(space, key)) is not None]
            for key in self._reached(certified):
                x = self._z(space, key)
                if x is None:
                    continue
                u = float(x @ inverse[key[0]] @ x)
                alone[key] = max(alone.get(key, 0.0), u / (1.0 + u))
                told = every.setdefault(key, [])
                for h, z in own:
                    width = float(z @ inverse[h] @ z)
                    if h == key[0] or self.t.stationary_costs:
                        told.append(float(x @ inverse[h] @ z) ** 2 / ((1.0 + u) * width) if width > 0.0 else 0.0)
        aimed = {key: sum(told) / max(1, len(told)) for key, told in every.items()}
        least = min(0.1, max(0.01, self.episodes_ended / 1e5))
        score = {key: max(one, least * alone[key]) for key, one in aimed.items()}
        for pair in {key[:3] for key in score if len(key) == 4}:
            rows = self.t.rows(pair)
            highest = max(score[row] for row in rows)
            score[pair] = highest
            if self.t.pair_rows is None and self._plays(pair):
                score[pair] = self._most(pair, {row[3]: score[row] for row in rows})
                self.lowered_shares += score[pair] < highest - 1e-6
        most = max((one for key, one in score.items() if len(key) != 4), default=0.0)
        self.doubtful |= 0.0 < most < 1e-9
        if most <= 0.0:
            return {}
        directed = any(one > least * alone[key] for key, one in aimed.items())
        self.directed_plans += directed
        self.undirected_plans += not directed
        self.spaces_aimed_at |= {space for space, _ in targets}
        return {key: one / most for key, one in score.items()}
