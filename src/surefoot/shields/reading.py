"""Translates what an environment says into the problem's states, actions and costs.

Our environments give them in ``info``, by index. For any other environment, the user's functions do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefoot.agents.blocks.place import start_of
from surefoot.errors import AssumptionBroken, InvalidInput
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
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


class Reader(ABC):
    """What a shield must know about an environment: where it is, what a step cost, and which pair an action plays."""

    def __init__(self, problem: Problem, n_actions: int) -> None:
        self._problem, self._n = problem, n_actions
        self._known: dict[tuple[int, int], IntArray] = {}

    @abstractmethod
    def start(self, observation: Any, info: dict[str, Any]) -> int:
        """The start state of an episode, by index."""

    @abstractmethod
    def arrival(self, h: int, step: Transition) -> int:
        """The state of step h that a transition has led to, by index; an error if the problem does not know it."""

    @abstractmethod
    def costs(self, step: Transition) -> tuple[FloatArray | None, FloatArray | None]:
        """The measured costs (m,) of a transition and of the last state, finite or not; None where not measured."""

    def features(self, h: int, edge: int, step: Transition) -> Features | None:
        """The features of the measured cost, one row, if they differ from those that the problem declares."""
        return None

    @abstractmethod
    def _find_pairs(self, h: int, own: range) -> Sequence[int]:
        """The pair that each of the environment's actions plays, among those of a state; NO_ACTION where none."""

    def pairs(self, h: int, state: int) -> IntArray:
        """(n,) the pair that each of the environment's actions plays; NO_ACTION where it does not exist."""
        found = self._known.get((h, state))
        if found is None:
            own = self._problem.graph.layers[h].pairs_of(state)
            found = self._known[h, state] = np.array(self._find_pairs(h, own))
        return found

    def action(self, h: int, state: int, pair: int) -> int:
        """The environment's action that plays a pair."""
        found = np.flatnonzero(self.pairs(h, state) == pair)
        if len(found) == 0:
            raise AssumptionBroken(
                "the environment has no such action",
                where=self._problem.naming.at_pair(self._problem.graph.layers[h], h, pair),
                fix="Name the environment's actions as the problem does, with actions=[…].",
            )
        return int(found[0])


class Own(Reader):
    """A reader for our own environments."""

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
        return info["measured"], info.get("terminal_cost")

    def _find_pairs(self, h: int, own: range) -> Sequence[int]:
        return [*own, *[NO_ACTION] * (self._n - len(own))]


class Foreign(Reader):
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
        super().__init__(problem, n_actions)
        if features is None and problem.graph.several_rows:
            raise InvalidInput(
                "the features of measured costs are missing",
                got="some action has several cost rows, and none of them is what was measured",
                fix="Give features=lambda step: …, the cost features at the exact state.",
            )
        self._state, self._cost, self._terminal_cost, self._features = state, cost, terminal_cost, features
        self._names = tuple(range(n_actions)) if actions is None else tuple(actions)
        if len(self._names) != n_actions:
            got = f"{len(self._names)} names where the environment has {n_actions} actions"
            raise InvalidInput("actions must name every action of the environment", got=got)

    def start(self, observation: Any, info: dict[str, Any]) -> int:
        return start_of(self._problem, self._state(observation))

    def arrival(self, h: int, step: Transition) -> int:
        return self._problem.state_index(h, self._state(step.next_observation))

    def costs(self, step: Transition) -> tuple[FloatArray | None, FloatArray | None]:
        return self._checked(self._cost(step)), self._checked(self._terminal_cost(step))

    def _checked(self, cost: Cost) -> FloatArray | None:
        numbers, raw = measured(self._problem, cost, "the cost of a step")
        found = numbers if raw is None else [float(number) for number in raw]
        return None if found is None else np.array(found)

    def _find_pairs(self, h: int, own: range) -> Sequence[int]:
        naming, layer = self._problem.naming, self._problem.graph.layers[h]
        number = {naming.action(layer, h, pair): pair for pair in own}
        return [number.get(name, NO_ACTION) for name in self._names]

    def features(self, h: int, edge: int, step: Transition) -> Features | None:
        if self._features is None:
            return None
        return measured_features(self._problem, self._problem.graph.layers[h], edge, self._features(step), f"step {h}")


def _told(info: dict[str, Any], key: str) -> Any:
    if key not in info:
        raise InvalidInput(
            "the environment's info does not say where it is",
            got=f"no {key!r} in {sorted(info)}",
            fix="Put wrappers that drop info around the shield, not inside.",
        )
    return info[key]
