"""Find the layered graph that a user's functions describe, breadth first from the start states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.graph import NO_ACTION, BoolArray, FloatArray, Layer, Terminal, freeze, rows_of_pairs
from surefoot.model.labels import Label, Names, Register, same_label, shown
from surefoot.model.naming import Naming
from surefoot.model.rays import NO_CENTER, Centers
from surefoot.model.reals import real, vector
from surefoot.model.rules import FallbackChoice, check_repeatable

Actions = Callable[[int, Label], Iterable[Label]]
Successors = Callable[[int, Label, Label], Iterable[Label]]
Reward = Callable[[int, Label, Label], float]
Features = Callable[[int, Label, Label, Label], ArrayLike]
CostFeatures = Features | Callable[[int, Label, Label], ArrayLike]
Forbidden = Callable[[int, Label], bool]
FallbackPolicy = Callable[[int, Label], Label]
Center = Callable[[int, Label], Label] | Callable[[int, Label, Label], Label]

Result = TypeVar("Result")


def check_function(name: str, given: object) -> None:
    if not callable(given):
        raise InvalidInput(f"{name} must be a function", got=shown(given))


@dataclass(frozen=True, eq=False, kw_only=True)
class Functions:
    """What a user declares by functions; each as in :meth:`surefoot.Problem.from_functions`."""

    actions: Actions
    successors: Successors
    reward: Reward
    cost_features: CostFeatures
    fallback: FallbackPolicy
    transition_features: Features | None = None
    terminal_reward: Callable[[Label], float] | None = None
    terminal_cost_features: Callable[[Label], ArrayLike | None] | None = None
    forbidden: Forbidden | None = None
    center: Center | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            if given is not None or each.default is not None:
                check_function(each.name, given)


def by_pair(cost_features: CostFeatures, transition_features: Features | None) -> bool:
    """True when the cost's features are a function of (h, s, a) alone: one row per pair (spec 9).

    Read from the signature; a function that may be called with four arguments is called with four.
    """
    try:
        signature = inspect.signature(cost_features)
    except (TypeError, ValueError):  # some builtins have none
        return False
    if takes(signature, 4):
        return False
    if not takes(signature, 3):
        raise InvalidInput(
            "cost_features takes the wrong number of arguments",
            got=f"cost_features{signature}",
            fix="Write it as a function of (h, s, a, s2), or of (h, s, a) for a cost that does not depend on s2.",
        )
    if transition_features is None:
        raise InvalidInput(
            "transition_features are missing",
            got=f"cost_features{signature} does not know the next state, so transitions cannot use it",
            fix="Give transition_features, a function of (h, s, a, s2).",
        )
    return True


def takes(signature: inspect.Signature, n: int) -> bool:
    """May such a function be called with so many arguments?"""
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True


def forbidden_mask(forbidden: Forbidden | None, names: Names, h: int) -> BoolArray:
    """(S,) the states of step h that must not be entered."""
    mask = np.zeros(len(names), bool)
    if forbidden is None:
        return freeze(mask)
    for i in range(len(names)):
        answer: Any = call("forbidden", forbidden, h, names[i])
        if not isinstance(answer, (bool, np.bool_)):
            where = f"step {h}, state {names[i]!r}"
            raise InvalidInput("forbidden must return True or False", where=where, got=shown(answer))
        mask[i] = answer
    return freeze(mask)


def call(name: str, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a user's function; a note on its errors says which call it was."""
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"surefoot was calling {name}({', '.join(map(shown, arguments))})")
        raise


def call_for_list(name: str, function: Callable[..., object], where: str, *arguments: object) -> list[Label]:
    """The labels that a user's function returns, in its order; anything without an order is refused."""
    given: Any = call(name, function, *arguments)
    fix = ""
    if isinstance(given, (set, frozenset)):
        fix = "A set has no order, and the order breaks ties: sort it into a list."
    elif isinstance(given, Mapping):
        fix = "Its values would be ignored: give a list of its keys."
    elif isinstance(given, (str, bytes)) or not _has_entries(given):
        fix = "Put a single label into a list, too."
    if fix:
        raise InvalidInput(f"{name} must return a list", where=where, got=shown(given), fix=fix)
    return call(name, lambda *_: list(given), *arguments)  # a generator runs only here


def _has_entries(value: Any) -> bool:
    try:
        iter(value)
    except TypeError:
        return False
    return True


def start_labels(start: Label | list[Label]) -> list[Label]:
    """One start state, or a list of several (a list is never a label, a tuple may be)."""
    starts = start if isinstance(start, list) else [start]
    if not starts:
        raise InvalidInput("a problem needs a start state", got="start is an empty list")
    return starts


class Explorer:
    """Walks the user's functions step by step and collects arrays."""

    def __init__(self, given: Functions) -> None:
        self.given, self.by_pair = given, by_pair(given.cost_features, given.transition_features)
        self.centers: list[Centers | None] = []  # of every step that was expanded
        self._states = Register("state")
        self._actions = Register("action")
        self._cost_dim: int | None = None
        self._transition_dim: int | None = None

    @property
    def cost_dim(self) -> int:
        """The length of cost features, once some were asked for; of transition features likewise."""
        return self._cost_dim or 0

    @property
    def transition_dim(self) -> int:
        return self._transition_dim or 0

    def walk(self, horizon: int, starts: list[Label]) -> tuple[list[Layer], Naming]:
        states = self._new_states(starts, "start")
        if len(states) < len(starts):
            raise InvalidInput("a start state is listed twice", where="start", got=shown(starts))
        layers: list[Layer] = []
        names = [Names(len(states), list(states))]
        action_names: list[tuple[Label, ...]] = []
        for h in range(horizon - 1):
            layer, labels, states = self._expand(h, list(states))
            layers.append(layer)
            action_names.append(tuple(labels))
            names.append(Names(len(states), list(states)))
        naming = Naming(tuple(names), tuple(action_names))
        check_repeatable(layers, naming, self.support_of, self.reward_of)
        return layers, naming

    def _new_states(self, labels: Iterable[Label], where: str) -> dict[Label, int]:
        found: dict[Label, int] = {}
        for label in labels:
            self._states.add(label, where)
            found.setdefault(label, len(found))
        return found

    def _expand(self, h: int, states: list[Label]) -> tuple[Layer, list[Label], dict[Label, int]]:
        """One step: all actions of all its states, and the states of the next step."""
        found: dict[Label, int] = {}
        action_labels: list[Label] = []
        state_ptr, pair_ptr, successor = [0], [0], []
        rewards: list[float] = []
        x_rows: list[FloatArray] = []
        phi_rows: list[FloatArray] = []
        base_rows: list[FloatArray] = []  # the cost features of rays at intensity 0
        centers: list[int] = []
        for s in states:
            actions = self.actions_of(h, s)
            for a in actions:
                action_labels.append(a)
                rewards.append(self.reward_of(h, s, a))
                number = self.center_of(h, s, a, actions)
                centers.append(NO_CENTER if number is None else state_ptr[-1] + number)
                middle = a if number is None else actions[number]
                if self.by_pair:
                    x_rows.append(self.cost_features_of(h, s, a))
                own = self.successors_of(h, s, a)
                for k, s2 in enumerate(self._joined(h, s, a, middle, own)):
                    successor.append(found.setdefault(s2, len(found)))
                    if not self.by_pair:
                        x_rows.append(self.cost_features_of(h, s, a, s2))
                        if self.given.center is not None:
                            base_rows.append(self.cost_features_of(h, s, middle, s2))
                    if self.given.transition_features is not None:
                        row = self.transition_features_of(h, s, a if k < len(own) else middle, s2)
                        phi_rows.append(row if k < len(own) else np.zeros_like(row))  # at intensity 1 the chance is 0
                pair_ptr.append(len(successor))
            state_ptr.append(len(action_labels))
        self.centers.append(self._declared_centers(centers, base_rows))
        x = phi = table(x_rows, self._cost_dim)
        if self.given.transition_features is not None:
            phi = table(phi_rows, self._transition_dim)
        edges_of = freeze(np.array(pair_ptr, np.int64))
        row_ptr = rows_of_pairs(freeze(np.arange(len(edges_of))), edges_of) if self.by_pair else edges_of
        layer = Layer(
            state_ptr=freeze(np.array(state_ptr, np.int64)),
            pair_ptr=edges_of,
            successor=freeze(np.array(successor, np.int64)),
            reward=freeze(np.array(rewards, np.float64)),
            cost_features=freeze(x),
            transition_features=freeze(phi),
            fallback=freeze(np.full(len(states), NO_ACTION, np.int64)),
            row_ptr=row_ptr,
            forbidden=forbidden_mask(self.given.forbidden, Names(len(states), states), h),
        )
        return layer, action_labels, found

    def _declared_centers(self, centers: list[int], base_rows: list[FloatArray]) -> Centers | None:
        if self.given.center is None:
            return None
        return Centers(freeze(np.array(centers, np.int64)), None if self.by_pair else table(base_rows, self._cost_dim))

    def center_of(self, h: int, s: Label, a: Label, actions: list[Label]) -> int | None:
        """The number of the action that a is at intensity 0, None where it has no intensity."""
        if self.given.center is None:
            return None
        answer: Any = call("center", self.given.center, h, s, *([a] if self._by_action else []))
        for number, known in enumerate(actions):
            if same_label(known, answer):
                return None if same_label(answer, a) else number
        if answer is None:
            return None
        raise InvalidInput(
            "the centre is no action of the state",
            where=_place(h, s, a),
            got=f"center returns {shown(answer)}",
            fix=f"Actions there: {', '.join(map(repr, actions[:12]))}; None is for an action without an intensity.",
        )

    @cached_property
    def _by_action(self) -> bool:
        """The centre is a function of (h, s, a), not of (h, s): read from its signature."""
        assert self.given.center is not None
        try:
            return takes(inspect.signature(self.given.center), 3)
        except (TypeError, ValueError):  # some builtins have none
            return False

    def support_of(self, h: int, s: Label, a: Label) -> list[Label]:
        """What may follow an action, at whatever intensity."""
        own = self.successors_of(h, s, a)
        if self.given.center is None:
            return own
        actions = self.actions_of(h, s)
        number = self.center_of(h, s, a, actions)
        return self._joined(h, s, a, a if number is None else actions[number], own)

    def _joined(self, h: int, s: Label, a: Label, middle: Label, own: list[Label]) -> list[Label]:
        """An action's own successors, then those that only its centre has (spec 9)."""
        if same_label(middle, a):
            return own
        return own + [s2 for s2 in self.successors_of(h, s, middle) if s2 not in own]

    def actions_of(self, h: int, s: Label) -> list[Label]:
        where = f"step {h}, state {s!r}"
        labels = call_for_list("actions", self.given.actions, where, h, s)
        for a in labels:
            self._actions.add(a, f"{where}, action")
        if len(set(labels)) < len(labels):
            raise InvalidInput("duplicate actions", where=where, got=shown(labels), fix="List each action once.")
        return labels

    def reward_of(self, h: int, s: Label, a: Label) -> float:
        value = call("reward", self.given.reward, h, s, a)
        return real("reward", value, f"step {h}, state {s!r}, action {a!r}")

    def successors_of(self, h: int, s: Label, a: Label) -> list[Label]:
        where = f"step {h}, state {s!r}, action {a!r}"
        labels = call_for_list("successors", self.given.successors, where, h, s, a)
        for s2 in labels:
            self._states.add(s2, f"{where}, successor")
        return labels

    def cost_features_of(self, *place: Label) -> FloatArray:
        value = call("cost_features", self.given.cost_features, *place)
        row = vector("cost feature", value, self._cost_dim, _place(*place))
        self._cost_dim = len(row)
        return row

    def rows_of(self, h: int, s: Label, a: Label) -> list[FloatArray]:
        """The cost rows of a pair: one vector, or a table of several."""
        value = call("cost_features", self.given.cost_features, h, s, a)
        rows = value if isinstance(value, np.ndarray) and value.ndim == 2 and len(value) else [value]
        found = [vector("cost feature", row, self._cost_dim, _place(h, s, a)) for row in rows]
        self._cost_dim = len(found[0])
        return found

    def transition_features_of(self, *triplet: Label) -> FloatArray:
        assert self.given.transition_features is not None
        value = call("transition_features", self.given.transition_features, *triplet)
        row = vector("transition feature", value, self._transition_dim, _place(*triplet))
        self._transition_dim = len(row)
        return row


def _place(*place: Label) -> str:
    kinds = ("step", "state", "action", "successor")
    return ", ".join(f"{kind} {label!r}" for kind, label in zip(kinds, place, strict=False))


def table(rows: list[FloatArray], length: int | None) -> FloatArray:
    """(rows, length)"""
    return np.array(rows) if rows else np.empty((0, length or 0))


def terminal_layer(names: Names, h: int, cost_dim: int, given: Functions) -> Terminal:
    """The last step; a state whose cost_features are None has no cost there."""
    reward, cost_features = given.terminal_reward, given.terminal_cost_features
    labels = [names[i] for i in range(len(names))]
    rewards, rows, has_cost = np.zeros(len(labels)), np.zeros((len(labels), cost_dim)), np.zeros(len(labels), bool)
    for i, s in enumerate(labels):
        where = f"step {h}, state {s!r}"
        if reward is not None:
            rewards[i] = real("terminal reward", call("terminal_reward", reward, s), where)
        x = None if cost_features is None else call("terminal_cost_features", cost_features, s)
        if x is not None:
            rows[i], has_cost[i] = vector("terminal cost feature", x, cost_dim, where), True
    return Terminal(
        reward=freeze(rewards),
        cost_features=freeze(rows) if has_cost.any() else None,
        has_cost=freeze(has_cost),
        fallback_reached=freeze(np.zeros(len(labels), bool)),
        forbidden=forbidden_mask(given.forbidden, names, h),
    )


def policy_choice(policy: FallbackPolicy, layers: Sequence[Layer], naming: Naming) -> FallbackChoice:
    """Ask the fallback only in states that it can reach."""

    return lambda h, states: [_fallback_action(policy, layers[h], h, int(i), naming) for i in states]


def _fallback_action(policy: FallbackPolicy, layer: Layer, h: int, state: int, naming: Naming) -> int:
    label = naming.states[h][state]
    first, end = int(layer.state_ptr[state]), int(layer.state_ptr[state + 1])
    listed = naming.actions[h]
    available = listed[first:end] if listed is not None else tuple(range(end - first))
    try:
        action = call("fallback", policy, h, label)
    except LookupError:
        return NO_ACTION  # a table without an entry here: the caller says where the fallback leaks
    for number, candidate in enumerate(available):
        if same_label(candidate, action):
            return number
    if action is None:
        return NO_ACTION
    raise InvalidInput(
        "fallback's action does not exist",
        where=naming.at_state(h, state),
        got=f"fallback returns {shown(action)}",
        fix=f"Actions there: {', '.join(map(repr, available[:12]))}.",
    )
