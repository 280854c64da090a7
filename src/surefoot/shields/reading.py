"""Turns what an environment says into the problem's own states, actions and costs.

Our environments give them in ``info``, by index. For any other environment the user says which state an observation is
and what a transition cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from surefoot.agents.blocks.place import start_of
from surefoot.errors import AssumptionBroken, InvalidInput
from surefoot.model.features import Features
from surefoot.model.graph import NO_ACTION, BoolArray, FloatArray, IntArray, freeze
from surefoot.model.labels import Label
from surefoot.model.measured import Cost, measured, measured_features
from surefoot.model.problem import Problem


class Transition(NamedTuple):
    """One Gymnasium step of an environment, the argument of a shield's ``cost`` and ``terminal_cost``.

    Examples:
        >>> step = sf.Transition(0, 1, 5, 0.0, True, False, {})
        >>> (lambda step: float(step.terminated and step.reward == 0))(step)  # fell into a hole
        1.0
    """

    observation: Any  # before
    action: int
    next_observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Masks(Protocol):
    """Which actions are allowed, by state."""

    def __getitem__(self, state: int) -> BoolArray: ...


class Reader(Protocol):
    """What a shield must know about an environment."""

    def start(self, observation: Any, info: dict[str, Any]) -> int:
        """The start state of an episode, by index."""

    def arrival(self, h: int, step: Transition) -> int:
        """The state of step h that a transition has led to, by index; an error if the problem does not know it."""

    def costs(self, step: Transition) -> tuple[FloatArray | None, FloatArray | None]:
        """The measured costs (m,) of a transition and of the last state; None for what was not measured."""

    def features(self, h: int, edge: int, step: Transition) -> Features | None:
        """The features of the measured cost, one row, if they differ from those that the problem declares."""

    def masks(self, h: int, pairs: BoolArray) -> Masks:
        """For each state, (n,) the environment's actions whose pair exists and is marked in ``pairs`` (N,)."""

    def pair(self, h: int, state: int, action: int) -> int:
        """The pair that one of the environment's actions plays; it must exist."""

    def action(self, h: int, state: int, pair: int) -> int:
        """The environment's action that plays a pair."""


class Own:
    """A reader for our own environments."""

    def __init__(self, problem: Problem, n_actions: int) -> None:
        self._problem, self._n = problem, n_actions
        self._layers = problem.graph.layers

    def start(self, observation: Any, info: dict[str, Any]) -> int:
        return int(_told(info, "index"))

    def arrival(self, h: int, step: Transition) -> int:
        info = step.info
        if info.get("step") != h:
            _told(info, "step")
            raise AssumptionBroken(
                "the environment and its shield are at different steps",
                got=f"step {info['step']} where {h} is expected",
                fix="Step and reset only the shield, never the environment inside.",
            )
        if info["played"] != step.action:
            raise AssumptionBroken(
                "the environment has not played the action that its shield let through",
                where=f"step {h - 1}",
                got=f"{info['played']} instead of {step.action}",
                fix="Put wrappers that change actions around the shield, not inside.",
            )
        return int(info["index"])

    def costs(self, step: Transition) -> tuple[FloatArray | None, FloatArray | None]:
        info = step.info
        last = _finite(info["terminal_cost"]) if "terminal_cost" in info else None
        return _finite(info["measured"]), last

    def features(self, h: int, edge: int, step: Transition) -> Features | None:
        return None

    def masks(self, h: int, pairs: BoolArray) -> Masks:
        layer = self._layers[h]
        table, states = np.zeros((layer.n_states, self._n), bool), layer.pair_state()
        table[states, np.arange(layer.n_pairs) - layer.state_ptr[states]] = pairs
        return freeze(table)

    def pair(self, h: int, state: int, action: int) -> int:
        return int(self._layers[h].state_ptr[state]) + action

    def action(self, h: int, state: int, pair: int) -> int:
        return pair - int(self._layers[h].state_ptr[state])


class Foreign:
    """A reader for any other environment with discrete actions, using the user's functions."""

    def __init__(
        self,
        problem: Problem,
        n_actions: int,
        state: Callable[[Any], Label],
        cost: Callable[[Transition], Cost],
        terminal_cost: Callable[[Transition], Cost],
        features: Callable[[Transition], ArrayLike] | None,
        actions: Sequence[Label] | None,
    ) -> None:
        if features is None and problem.graph.several_rows:
            raise InvalidInput(
                "the features of measured costs are missing",
                got="some action has several cost rows, and none of them is what was measured",
                fix="Give features=lambda step: …, the cost features at the exact state.",
            )
        self._features = features
        self._problem, self._state, self._cost, self._terminal_cost = problem, state, cost, terminal_cost
        self._names = tuple(range(n_actions)) if actions is None else tuple(actions)
        if len(self._names) != n_actions:
            got = f"{len(self._names)} names where the environment has {n_actions} actions"
            raise InvalidInput("actions must name every action of the environment", got=got)
        self._known: dict[tuple[int, int], IntArray] = {}

    def start(self, observation: Any, info: dict[str, Any]) -> int:
        return start_of(self._problem, self._state(observation))

    def arrival(self, h: int, step: Transition) -> int:
        return self._problem.state_index(h, self._state(step.next_observation))

    def costs(self, step: Transition) -> tuple[FloatArray | None, FloatArray | None]:
        return self._checked(self._cost(step)), self._checked(self._terminal_cost(step))

    def _checked(self, cost: Cost) -> FloatArray | None:
        numbers, _ = measured(self._problem, cost, "the cost of a step")
        return None if numbers is None else np.array(numbers)

    def pairs(self, h: int, state: int) -> IntArray:
        """(n,) the pair of every action."""
        if (h, state) not in self._known:
            layer, naming = self._problem.graph.layers[h], self._problem.naming
            own = range(int(layer.state_ptr[state]), int(layer.state_ptr[state + 1]))
            number = {naming.action(layer, h, pair): pair for pair in own}
            self._known[h, state] = np.array([number.get(name, NO_ACTION) for name in self._names])
        return self._known[h, state]

    def features(self, h: int, edge: int, step: Transition) -> Features | None:
        if self._features is None:
            return None
        return measured_features(self._problem, self._problem.graph.layers[h], edge, self._features(step), f"step {h}")

    def masks(self, h: int, pairs: BoolArray) -> Masks:
        return _ForeignMasks(self, h, pairs)

    def pair(self, h: int, state: int, action: int) -> int:
        return int(self.pairs(h, state)[action])

    def action(self, h: int, state: int, pair: int) -> int:
        found = np.flatnonzero(self.pairs(h, state) == pair)
        if len(found) == 0:
            raise AssumptionBroken(
                "the environment has no such action",
                where=self._problem.naming.at_pair(self._problem.graph.layers[h], h, pair),
                fix="Name the environment's actions as the problem does, with actions=[…].",
            )
        return int(found[0])


class _ForeignMasks:
    """Made for each state when needed, because names have to be looked up."""

    def __init__(self, reader: Foreign, h: int, marked: BoolArray) -> None:
        self._reader, self._h, self._marked = reader, h, marked
        self._known: dict[int, BoolArray] = {}

    def __getitem__(self, state: int) -> BoolArray:
        if state not in self._known:
            pairs = self._reader.pairs(self._h, state)
            self._known[state] = freeze((pairs != NO_ACTION) & self._marked[pairs])
        return self._known[state]


def _told(info: dict[str, Any], key: str) -> Any:
    if key not in info:
        raise InvalidInput(
            "the environment's info does not say where it is",
            got=f"no {key!r} in {sorted(info)}",
            fix="Put wrappers that drop info around the shield, not inside.",
        )
    return info[key]


def _finite(cost: FloatArray) -> FloatArray | None:
    """A cost that is not finite counts as not measured."""
    return cost if all(map(math.isfinite, cost.tolist())) else None
