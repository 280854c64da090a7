"""Find the layered graph that a user's functions describe, breadth first from the start states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput, SurefootError
from surefoot.model.labels import Label, Names, Register, same_label
from surefoot.model.layered import NO_ACTION, FloatArray, IntArray, Layer, Terminal, freeze
from surefoot.model.naming import Naming
from surefoot.model.validate import SeedChoice

Actions = Callable[[int, Label], Iterable[Label]]
Successors = Callable[[int, Label, Label], Iterable[Label]]
Reward = Callable[[int, Label, Label], float]
Features = Callable[[int, Label, Label, Label], ArrayLike]
SeedPolicy = Callable[[int, Label], Label]


def start_labels(start: Label | list[Label]) -> list[Label]:
    """One start state, or a list of several (a list is never a label, a tuple may be)."""
    starts = start if isinstance(start, list) else [start]
    if not starts:
        raise InvalidInput("a problem needs a start state", got="start is an empty list")
    return starts


class Explorer:
    """Walks the user's functions layer by layer and collects arrays."""

    def __init__(
        self,
        actions: Actions,
        successors: Successors,
        reward: Reward,
        cost_features: Features,
        transition_features: Features | None,
    ) -> None:
        self.actions, self.successors, self.reward = actions, successors, reward
        self.cost_features, self.transition_features = cost_features, transition_features
        self._states = Register("state")
        self._actions = Register("action")
        self._cost_dim: int | None = None
        self._transition_dim: int | None = None
        self._now: tuple[Any, ...] = ("actions",)

    def walk(self, horizon: int, starts: list[Label]) -> tuple[list[Layer], Naming]:
        try:
            return self._walk(horizon, starts)
        except SurefootError:
            raise
        except Exception as error:  # the user's own: say in which of their functions it came up
            function, *arguments = self._now
            error.add_note(f"surefoot was calling {function}({', '.join(map(repr, arguments))})")
            raise

    def _walk(self, horizon: int, starts: list[Label]) -> tuple[list[Layer], Naming]:
        states = self._new_states(starts, "start")
        if len(states) < len(starts):
            raise InvalidInput("a start state is listed twice", got=repr(starts))
        layers: list[Layer] = []
        names = [Names(len(states), list(states))]
        action_names: list[tuple[Label, ...]] = []
        for h in range(horizon - 1):
            layer, labels, states = self._expand(h, list(states))
            layers.append(layer)
            action_names.append(tuple(labels))
            names.append(Names(len(states), list(states)))
        return layers, Naming(tuple(names), tuple(action_names))

    def _new_states(self, labels: Iterable[Label], where: str) -> dict[Label, int]:
        found: dict[Label, int] = {}
        for label in labels:
            self._states.add(label, where)
            found.setdefault(label, len(found))
        return found

    def _expand(self, h: int, states: list[Label]) -> tuple[Layer, list[Label], dict[Label, int]]:
        """One layer: all actions of all its states, and the states of the next layer."""
        found: dict[Label, int] = {}
        action_labels: list[Label] = []
        state_ptr, pair_ptr, successor = [0], [0], []
        rewards: list[float] = []
        x_rows: list[Any] = []
        phi_rows: list[Any] = []
        triplets: list[tuple[Label, Label, Label]] = []
        for s in states:
            for a in self._actions_of(h, s):
                action_labels.append(a)
                rewards.append(self._reward_of(h, s, a))
                for s2 in self._successors_of(h, s, a):
                    successor.append(found.setdefault(s2, len(found)))
                    triplets.append((s, a, s2))
                    self._now = ("cost_features", h, s, a, s2)
                    x_rows.append(self.cost_features(h, s, a, s2))
                    if self.transition_features is not None:
                        self._now = ("transition_features", h, s, a, s2)
                        phi_rows.append(self.transition_features(h, s, a, s2))
                pair_ptr.append(len(successor))
            state_ptr.append(len(action_labels))

        def place(edge: int) -> str:
            s, a, s2 = triplets[edge]
            return f"layer {h}, state {s!r}, action {a!r}, successor {s2!r}"

        x = stack("cost feature", x_rows, self._cost_dim, place)
        self._cost_dim = x.shape[1]
        phi = x
        if self.transition_features is not None:
            phi = stack("transition feature", phi_rows, self._transition_dim, place)
            self._transition_dim = phi.shape[1]
        layer = Layer(
            state_ptr=freeze(np.array(state_ptr, np.int64)),
            pair_ptr=freeze(np.array(pair_ptr, np.int64)),
            successor=freeze(np.array(successor, np.int64)),
            reward=freeze(np.array(rewards, np.float64)),
            cost_features=freeze(x),
            transition_features=freeze(phi),
            seed=freeze(np.full(len(states), NO_ACTION, np.int64)),
        )
        return layer, action_labels, found

    def _actions_of(self, h: int, s: Label) -> list[Label]:
        self._now = ("actions", h, s)
        labels = list(self.actions(h, s))
        for a in labels:
            self._actions.add(a, f"layer {h}, state {s!r}, action")
        if len(set(labels)) < len(labels):
            raise InvalidInput("duplicate actions", where=f"layer {h}, state {s!r}", got=repr(labels))
        return labels

    def _reward_of(self, h: int, s: Label, a: Label) -> float:
        self._now = ("reward", h, s, a)
        value = self.reward(h, s, a)
        return number("reward", value, f"layer {h}, state {s!r}, action {a!r}")

    def _successors_of(self, h: int, s: Label, a: Label) -> list[Label]:
        self._now = ("successors", h, s, a)
        labels = list(self.successors(h, s, a))
        for s2 in labels:
            self._states.add(s2, f"layer {h}, state {s!r}, action {a!r}, successor")
        return labels


def terminal_layer(
    names: Names,
    h: int,
    cost_dim: int,
    reward: Callable[[Label], float] | None,
    cost_features: Callable[[Label], ArrayLike | None] | None,
) -> Terminal:
    """The last layer; a state whose cost_features are None has no cost there."""
    labels = [names[i] for i in range(len(names))]
    places = [f"layer {h}, state {s!r}" for s in labels]
    rewards = [
        0.0 if reward is None else number("terminal reward", reward(s), place)
        for s, place in zip(labels, places, strict=True)
    ]
    rows = [None if cost_features is None else cost_features(s) for s in labels]
    has_cost = np.array([row is not None for row in rows], bool)
    x = None
    if has_cost.any():
        zero = np.zeros(cost_dim)
        filled = [zero if row is None else row for row in rows]
        x = freeze(stack("terminal cost feature", filled, cost_dim, places.__getitem__))
    return Terminal(
        reward=freeze(np.array(rewards, np.float64)),
        cost_features=x,
        has_cost=freeze(has_cost),
        seed_reached=freeze(np.zeros(len(labels), bool)),
    )


def seed_choice(policy: SeedPolicy, layers: Sequence[Layer], naming: Naming) -> SeedChoice:
    """Ask the seed policy only where the seed itself can come."""

    def choose(h: int, states: IntArray) -> list[int]:
        return [_seed_action(policy, layers[h], h, int(i), naming) for i in states]

    return choose


def _seed_action(policy: SeedPolicy, layer: Layer, h: int, state: int, naming: Naming) -> int:
    label = naming.states[h][state]
    first, end = int(layer.state_ptr[state]), int(layer.state_ptr[state + 1])
    listed = naming.actions[h]
    available = listed[first:end] if listed is not None else tuple(range(end - first))
    try:
        action = policy(h, label)
    except LookupError:
        return NO_ACTION  # a table without an entry here: the caller says where the seed leaks
    for number_, candidate in enumerate(available):
        if candidate == action and same_label(candidate, action):
            return number_
    if action is None:
        return NO_ACTION
    raise InvalidInput(
        "seed's action does not exist",
        where=naming.at_state(h, state),
        got=f"seed_policy gives {action!r}",
        fix=f"Actions there: {', '.join(map(repr, available[:12]))}.",
    )


def number(what: str, value: object, where: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{what} must be a number", where=where, got=repr(value)) from None


def vector(what: str, value: object, where: str) -> FloatArray:
    """A flat float64 vector, or an error that says what came instead."""
    try:
        row = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        row = np.empty((0, 0))
    if row.ndim != 1 or len(row) == 0:
        raise InvalidInput(f"{what} must be a list of numbers", where=where, got=_short(value))
    return row


def stack(what: str, rows: list[Any], length: int | None, place: Callable[[int], str]) -> FloatArray:
    """(rows, length) float64; a row that does not fit is named by its place."""
    if not rows:
        return np.empty((0, length or 0))
    if length is None:
        length = len(vector(what, rows[0], place(0)))
    table = np.empty((len(rows), length))
    for i, value in enumerate(rows):
        row = vector(what, value, place(i))
        if len(row) != length:
            raise InvalidInput(
                f"{what} has the wrong length",
                where=place(i),
                got=f"{len(row)} numbers where {length} are expected: {_short(value)}",
            )
        table[i] = row
    return table


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
