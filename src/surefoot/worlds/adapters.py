"""Turns a Gymnasium environment that has a transition table into a World.

    world = surefoot.worlds.from_gymnasium(env, horizon=20, cost=lambda s, a, s2, reward: …, limit=…)

A table lists what can happen: ``env.unwrapped.P[state][action] = [(probability, next state, reward, terminated), …]``.

**State.** The table's. The reward for arriving is paid in the state arrived at, so that rewards are known although
probabilities are not; a state that can be reached with different rewards becomes several states, named
``(state, reward)``. After ``terminated`` the state is ``"over"`` until the last step.
**Action.** The table's; once the episode is over, ``"wait"``.

**Known.** The support: every row of the table, even one of probability 0. The rewards, scaled to [0, 1]: the smallest
reward of a row within the limit becomes 0, the largest becomes 1, and being over pays what 0 becomes. (Rewards of rows
beyond the limit are clipped; a safe policy never meets them.) And the features x of the cost.

**Hidden.** The probabilities, as weights μ of known kernels. If all lists have the same probabilities (their first row
μ_1, their second μ_2, …; a single row fits any), kernel i is "row i happens", which is what slipping means in these
environments. Any other table is declared as a mixture of itself and the uniform distribution on its support, with the
weights (1, 0). Also γ, with cost = ⟨γ, x⟩. Neither changes from step to step, and the problem says so.

**Fallback.** Given, or the most cautious policy: it keeps the limit in every state it may reach, and always takes the
action whose highest possible cost is lowest. If there is none, no policy could start safely, and the environment is
refused with the state and the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.functions import call
from surefoot.model.labels import Label, shown
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.reals import real, vector
from surefoot.model.rules import check_horizon
from surefoot.tolerances import TRUTH
from surefoot.worlds.gym_table import Arrival, Table, read_table
from surefoot.worlds.world import World

__all__ = ["OVER", "WAIT", "from_gymnasium"]

OVER, WAIT = "over", "wait"

Key = tuple[Label, Label, Arrival]  # state, action, and what follows


class PricedTriplet(NamedTuple):
    """A triplet of the table with its cost."""

    features: FloatArray  # x
    cost: float


def from_gymnasium(
    env: Any,
    horizon: int,
    *,
    cost: Callable[[Label, Label, Label, float], float],
    limit: Limit,
    cost_features: Callable[[Label, Label, Label, float], ArrayLike] | None = None,
    fallback: Callable[[int, Label], Label] | None = None,
    start: Label | list[Label] | None = None,
    anchor: tuple[ArrayLike, float] | None = None,
    reward_range: tuple[float, float] | None = None,
    noise: str | None = None,
) -> World:
    """Make a world from an environment with a transition table.

    Args:
        env: the environment, or any object with a table ``P``.
        horizon: number of steps H; an episode has H-1 actions.
        cost: ``cost(state, action, next_state, reward)``, the true cost of a row of the table.
        limit: the limit on it, and what else is known about it.
        cost_features: ``cost_features(state, action, next_state, reward)``, the vector x in which the cost is linear.
            By default (1, cost): the costs are known up to an offset and a scale.
        fallback: ``fallback(h, state)``, a safe action in a state of the table; by default the most cautious one.
        start: a state of the table or a list of several; by default where ``env.unwrapped.initial_state_distrib`` is
            positive.
        anchor: ``(features, cost)`` known exactly.
        reward_range: the rewards that become 0 and 1.
        noise: the kind of measurement noise, see :class:`~surefoot.World`.

    Examples:
        >>> import gymnasium
        >>> world = sf.worlds.from_gymnasium(  # the cliff costs 1, every other field 0
        ...     gymnasium.make("CliffWalking-v1"),
        ...     horizon=20,
        ...     cost=lambda state, action, next_state, reward: float(reward == -100),
        ...     limit=sf.Limit("fall", bound=0.5, noise=0.1, norm=1.5),
        ... )
        >>> sf.exact.violations(world, sf.exact.fallback(world.problem)).probability
        0.0
    """
    horizon = check_horizon(horizon)
    if not isinstance(limit, Limit):
        raise InvalidInput("limit must be a Limit", got=shown(limit))
    if not isinstance(limit.bound, float):
        raise InvalidInput("limit needs one bound for all steps here", got=shown(limit.bound))
    table = read_table(env, start)
    priced = _prices(table, cost, cost_features)
    gamma = _linear(priced)
    if fallback is None:
        fallback = _cautious(table, priced, horizon, limit.bound)
    layered = _Layered(table, priced, _payment(priced, limit.bound, reward_range), fallback, len(gamma))
    problem = Problem.from_functions(
        horizon=horizon,
        start=list(table.starts),
        actions=layered.actions,
        successors=layered.successors,
        reward=layered.reward,
        cost_features=layered.cost_features,
        transition_features=layered.kernels,
        terminal_reward=layered.terminal_reward,
        fallback=layered.fallback,
        anchor=None if anchor is None else lambda h: anchor,
        limits=limit,
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=table.weights, cost=gamma, noise=noise)


class _Layered:
    """The functions of a Problem on a table. A label stands for an arrival; at step 0, for a start."""

    def __init__(
        self,
        table: Table,
        priced: dict[Key, PricedTriplet],
        payment: Callable[[float], float],
        fallback: Callable[[int, Label], Label],
        cost_dim: int,
    ) -> None:
        self._table, self._priced, self._payment, self._policy = table, priced, payment, fallback
        self._nothing = np.zeros(cost_dim)
        self._arrival: dict[Label, Arrival] = {s: Arrival(s, 0.0, False) for s in table.starts}
        self._arrival |= {name: arrival for arrival, name in table.names.items()}
        self._arrival[OVER] = Arrival(OVER, 0.0, True)
        self._next: dict[tuple[Label, Label], dict[Label, Arrival]] = {}

    def actions(self, h: int, label: Label) -> list[Label]:
        arrival = self._arrival[label]
        return [WAIT] if arrival.ended else list(self._table.rows[arrival.state])

    def _after(self, label: Label, action: Label) -> dict[Label, Arrival]:
        """What can follow, by its label."""
        key = (label, action)
        if key not in self._next:
            arrival, names = self._arrival[label], self._table.names
            found = [self._arrival[OVER]] if arrival.ended else self._table.arrivals(arrival.state, action)
            self._next[key] = {names.get(each, OVER): each for each in found}
        return self._next[key]

    def successors(self, h: int, label: Label, action: Label) -> list[Label]:
        return list(self._after(label, action))

    def cost_features(self, h: int, label: Label, action: Label, after: Label) -> FloatArray:
        arrival = self._arrival[label]
        if arrival.ended:
            return self._nothing  # once it is over, nothing is measured
        return self._priced[arrival.state, action, self._after(label, action)[after]].features

    def kernels(self, h: int, label: Label, action: Label, after: Label) -> list[float]:
        arrival = self._arrival[label]
        if arrival.ended:
            return [1.0] * len(self._table.weights)
        return self._table.kernels(arrival.state, action, self._after(label, action)[after])

    def reward(self, h: int, label: Label, action: Label) -> float:
        return 0.0 if h == 0 else self.terminal_reward(label)  # a start is no arrival

    def terminal_reward(self, label: Label) -> float:
        return self._payment(self._arrival[label].reward)

    def fallback(self, h: int, label: Label) -> Label:
        arrival = self._arrival[label]
        return WAIT if arrival.ended else self._policy(h, arrival.state)


def _prices(
    table: Table, cost: Callable[..., float], cost_features: Callable[..., ArrayLike] | None
) -> dict[Key, PricedTriplet]:
    """Every triplet of the table with its features and its cost."""
    priced: dict[Key, PricedTriplet] = {}
    dim: int | None = None
    for state, action, _ in table.lists():
        for arrival in table.arrivals(state, action):
            row, where = (state, action, arrival.state, arrival.reward), _place(state, action, arrival)
            price = real("cost", call("cost", cost, *row), where)
            if not math.isfinite(price):
                raise InvalidInput("cost is not finite", where=where, got=repr(price))
            given = (1.0, price) if cost_features is None else call("cost_features", cost_features, *row)
            features = vector("cost feature", given, dim, where)
            dim = len(features)
            priced[state, action, arrival] = PricedTriplet(features, price)
    return priced


def _place(state: Label, action: Label, arrival: Arrival) -> str:
    return f"state {state!r}, action {action!r}, next state {arrival.state!r}"


def _linear(priced: dict[Key, PricedTriplet]) -> FloatArray:
    """γ, the shortest one with cost = ⟨γ, x⟩ in every triplet."""
    x = np.array([each.features for each in priced.values()])
    costs = np.array([each.cost for each in priced.values()])
    gamma: FloatArray = np.linalg.lstsq(x, costs, rcond=None)[0]
    errors = np.abs(x @ gamma - costs)
    worst = int(errors.argmax())
    if errors[worst] > TRUTH * float(np.linalg.norm(gamma) * np.linalg.norm(x, axis=1).max()):
        raise InvalidInput(
            "cost is not linear in cost_features",
            where=_place(*list(priced)[worst]),
            got=f"cost {costs[worst]:g}, the nearest linear one gives {x[worst] @ gamma:g}",
            fix="Give features whose weighted sum is the cost.",
        )
    return gamma


def _payment(
    priced: dict[Key, PricedTriplet], bound: float, reward_range: tuple[float, float] | None
) -> Callable[[float], float]:
    """From rewards of the table to [0, 1]."""
    if reward_range is None:
        within = [arrival.reward for (_, _, arrival), each in priced.items() if each.cost <= bound]
        within += [0.0 for _, _, arrival in priced if arrival.ended][:1]  # what is paid once it is over
        reward_range = (min(within, default=0.0), max(within, default=0.0))
    low, high = reward_range
    if not low <= high:
        raise InvalidInput("reward_range must be (low, high)", got=shown(reward_range))
    width = high - low or 1.0
    return lambda reward: min(max((reward - low) / width, 0.0), 1.0)


def _cautious(
    table: Table, priced: dict[Key, PricedTriplet], horizon: int, bound: float
) -> Callable[[int, Label], Label]:
    """The policy with the smallest highest cost among those that keep the limit in every state it can reach."""
    highest = {(s, a): max(priced[s, a, arrival].cost for arrival in table.arrivals(s, a)) for s, a, _ in table.lists()}
    after = {
        (s, a): {arrival.state for arrival in table.arrivals(s, a) if not arrival.ended} for s, a, _ in table.lists()
    }
    safe = set(table.rows)  # in the last step nothing more can happen
    chosen: list[dict[Label, Label]] = []
    for _ in range(horizon - 1):
        choice: dict[Label, Label] = {}
        for s, actions in table.rows.items():
            fine = [a for a in actions if highest[s, a] <= bound and after[s, a] <= safe]
            if fine:
                choice[s] = min(fine, key=lambda a, s=s: highest[s, a])  # type: ignore[misc]
        chosen.insert(0, choice)
        if len(chosen) == horizon - 1:
            _refuse_doomed(table, priced, choice, safe, bound)
        safe = set(choice)
    return lambda h, s: chosen[h][s]


def _refuse_doomed(
    table: Table, priced: dict[Key, PricedTriplet], choice: dict[Label, Label], safe: set[Label], bound: float
) -> None:
    """Refuse a start without a safe action; the error says for every action what may happen.

    ``safe`` holds the states of the next step from which an episode can continue safely.
    """
    for start in table.starts:
        if start in choice:
            continue
        reasons = []
        for action in table.rows[start]:
            arrivals = table.arrivals(start, action)
            worst = max(arrivals, key=lambda arrival, a=action: priced[start, a, arrival].cost)  # type: ignore[misc]
            cost = priced[start, action, worst].cost
            if cost > bound:
                reasons.append(f"{action!r} can lead to {worst.state!r} at cost {cost:g}")
            else:
                lost = min(  # another state says more than "stays here"
                    (each.state for each in arrivals if not each.ended and each.state not in safe),
                    key=lambda state: state == start,
                )
                reasons.append(f"{action!r} can lead to {lost!r}, from which no policy is safe")
        raise InvalidInput(
            "no policy is safe from the start",
            where=f"state {start!r}, limit {bound:g}",
            got="; ".join(reasons),
            fix="There is no fallback to start from: choose another start, a shorter horizon or another limit.",
        )
