"""Finds the layered graph that a user's functions describe, breadth first from the start states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze, rows_of_pairs
from surefoot.model.centers import Centers
from surefoot.model.draft import Draft, Drafted, longer
from surefoot.model.functions import Functions, by_pair, call, call_for_list, takes
from surefoot.model.labels import Label, Names, Register, same_label, shown
from surefoot.model.layer import NO_ACTION, Layer, Terminal
from surefoot.model.naming import Naming
from surefoot.model.outline import FallbackChoice, Outline
from surefoot.model.rays import NO_CENTER
from surefoot.model.reals import real, vector
from surefoot.model.rules import check_repeatable


def start_labels(start: Label | list[Label]) -> list[Label]:
    """The start states: one, or a list of several. (A list is never a label; a tuple may be one.)"""
    starts = start if isinstance(start, list) else [start]
    if not starts:
        raise InvalidInput("a problem needs a start state", got="start is an empty list")
    return starts


def outline_of_functions(horizon: int, start: Label | list[Label], given: Functions) -> Outline:
    """The graph of everything that the functions lead to, breadth first from the start states."""
    starts, explorer = start_labels(start), Explorer(given)
    found = explorer.numbers(starts, "start")
    if len(found) < len(starts):
        raise InvalidInput("a start state is listed twice", where="start", got=shown(starts))
    drafts: list[Draft] = []
    for h in range(horizon - 1):
        here, found, draft = found, dict[Label, int](), Draft()
        for s in here:
            actions = explorer.actions_of(h, s)
            pairs = [explorer.pair(h, s, a, actions) for a in actions]
            draft.add(s, actions, pairs, explorer.forbids(h, s), _numbered_in(found))
        drafts.append(draft)
    last = Draft()
    for s in found:
        reward, x = explorer.last(horizon - 1, s)
        last.add_last(s, reward, x, explorer.forbids(horizon - 1, s), explorer.cost_dim)
    names = tuple(Names(len(draft.labels), draft.labels) for draft in (*drafts, last))
    naming = Naming(names, tuple(tuple(draft.actions) for draft in drafts))
    layers = [explorer.layer(draft) for draft in drafts]
    layers = [replace(layer, row_ptr=rows_of_pairs(layer.row_ptr, layer.pair_ptr)) for layer in layers]
    terminal = explorer.terminal(last, None)
    if not terminal.has_cost.any():
        terminal = replace(terminal, cost_features=None)
    check_repeatable(layers, naming, explorer.support_of, explorer.reward_of)
    return Outline(
        layers,
        terminal,
        naming,
        freeze(np.arange(len(starts))),
        policy_choice(explorer, layers, naming),
        [explorer.centers(draft) for draft in drafts],
    )


def _numbered_in(found: dict[Label, int]) -> Callable[[Label], int]:
    """Numbers states in order of appearance."""
    return lambda label: found.setdefault(label, len(found))


class Explorer:
    """Calls the user's functions and checks each answer."""

    def __init__(self, given: Functions) -> None:
        self.given, self.by_pair = given, by_pair(given.cost_features, given.transition_features)
        if given.center_cost_features is not None and not (self.by_pair and given.center is not None):
            fix = "Leave it out: where cost features belong to triplets, those of the centre are used."
            raise InvalidInput("center_cost_features is for rays whose cost rows belong to actions", fix=fix)
        self._states = Register("state")
        self._actions = Register("action")
        self._cost_dim: int | None = None
        self._transition_dim: int | None = None

    def copy(self) -> Explorer:
        """Another one for the same functions, which keeps its own record of labels."""
        other = copy(self)
        other._states, other._actions = self._states.copy(), self._actions.copy()
        return other

    @property
    def cost_dim(self) -> int:
        """The length of the cost features, 0 before any were asked for."""
        return self._cost_dim or 0

    @property
    def transition_dim(self) -> int:
        return self._transition_dim or 0

    @property
    def rows_at_zero(self) -> bool:
        """True if rays have their own cost rows at intensity 0; otherwise they have those of their centre."""
        return not self.by_pair or self.given.center_cost_features is not None

    # --- what a step becomes ----------------------------------------------------------------------------

    def layer(self, draft: Draft) -> Layer:
        """The arrays of a step with what was drafted; new states have no fallback yet."""
        old = draft.layer or self._empty_layer()
        x = phi = longer(old.cost_features, draft.x)
        if self.given.transition_features is not None:
            phi = longer(old.transition_features, draft.phi)
        pair_ptr, successor = longer(old.pair_ptr, draft.pair_ptr), longer(old.successor, draft.successor)
        if draft.leads:
            successor = successor.copy()
            successor[list(draft.leads)] = list(draft.leads.values())
        return Layer(
            state_ptr=longer(old.state_ptr, draft.state_ptr),
            pair_ptr=pair_ptr,
            successor=freeze(successor),
            reward=longer(old.reward, draft.reward),
            cost_features=x,
            transition_features=phi,
            fallback=longer(old.fallback, [NO_ACTION] * len(draft.labels)),
            row_ptr=longer(old.row_ptr, draft.row_ptr) if self.by_pair else pair_ptr,
            forbidden=longer(old.forbidden, draft.forbidden),
        )

    def _empty_layer(self) -> Layer:
        pointer, numbers, none = np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)
        x, phi = np.zeros((0, self.cost_dim)), np.zeros((0, self.transition_dim))
        return Layer(pointer, pointer, numbers, none, x, phi, numbers, pointer, np.zeros(0, bool))

    def terminal(self, draft: Draft, old: Terminal | None) -> Terminal:
        """The arrays of the last step with what was drafted; ``old`` are those that it has already."""
        if old is None:
            x, none = np.zeros((0, self.cost_dim)), np.zeros(0, bool)
            declared = self.given.terminal_cost_features is not None
            old = Terminal(np.zeros(0), x if declared else None, none, none, none)
        return Terminal(
            reward=longer(old.reward, draft.reward),
            cost_features=None if old.cost_features is None else longer(old.cost_features, draft.x),
            has_cost=longer(old.has_cost, draft.has_cost),
            fallback_reached=longer(old.fallback_reached, [False] * len(draft.labels)),
            forbidden=longer(old.forbidden, draft.forbidden),
        )

    def centers(self, draft: Draft) -> Centers | None:
        """The rays of a step with what was drafted (spec 9)."""
        if self.given.center is None:
            return None
        old = draft.rays or Centers(np.zeros(0, np.int64), np.zeros((0, self.cost_dim)))
        at_zero = longer(old.cost_features, draft.x0) if self.rows_at_zero else None
        return Centers(longer(old.center, draft.center), at_zero)

    # --- what a state has -------------------------------------------------------------------------------

    def numbers(self, labels: Iterable[Label], where: str) -> dict[Label, int]:
        """A number for each state, in order of appearance."""
        found: dict[Label, int] = {}
        for label in labels:
            self._states.add(label, where)
            _numbered_in(found)(label)
        return found

    def pair(self, h: int, s: Label, a: Label, actions: list[Label]) -> Drafted:
        """Everything that is declared about an action."""
        own, number = self.successors_of(h, s, a), self.center_of(h, s, a, actions)
        middle = a if number is None else actions[number]
        after = self._joined(h, s, a, middle, own)
        x = self.rows_of(h, s, a) if self.by_pair else [self.cost_features_of(h, s, a, s2) for s2 in after]
        x0: tuple[FloatArray, ...] = ()
        if number is not None and not self.by_pair:
            x0 = tuple(self.cost_features_of(h, s, middle, s2) for s2 in after)
        elif number is not None and self.given.center_cost_features is not None:
            x0 = tuple(self._rows("center_cost_features", self.given.center_cost_features, h, s, a))
        phi = list[FloatArray]()
        for k, s2 in enumerate(after if self.given.transition_features is not None else ()):
            row = self.transition_features_of(h, s, a if k < len(own) else middle, s2)
            phi.append(row if k < len(own) else np.zeros_like(row))  # at full intensity the action never leads there
        return Drafted(self.reward_of(h, s, a), after, x, phi, NO_CENTER if number is None else number, x0)

    def last(self, h: int, s: Label) -> tuple[float, FloatArray | None]:
        """Reward and cost features of a state of the last step; None if it has no cost."""
        reward, features, where = self.given.terminal_reward, self.given.terminal_cost_features, _place(h, s)
        x = None if features is None else call("terminal_cost_features", features, s)
        return (
            0.0 if reward is None else real("terminal reward", call("terminal_reward", reward, s), where),
            None if x is None else vector("terminal cost feature", x, self.cost_dim, where),
        )

    def forbids(self, h: int, s: Label) -> bool:
        """True if entering the state is forbidden."""
        if self.given.forbidden is None:
            return False
        answer: Any = call("forbidden", self.given.forbidden, h, s)
        if not isinstance(answer, (bool, np.bool_)):
            raise InvalidInput("forbidden must return True or False", where=_place(h, s), got=shown(answer))
        return bool(answer)

    def fallback_of(self, h: int, s: Label, actions: Sequence[Label]) -> int:
        """The number of the fallback's action in a state, or NO_ACTION."""
        try:
            action = call("fallback", self.given.fallback, h, s)
        except LookupError:
            return NO_ACTION  # a table without an entry here; the caller reports it
        for number, candidate in enumerate(actions):
            if same_label(candidate, action):
                return number
        if action is None:
            return NO_ACTION
        raise InvalidInput(
            "fallback's action does not exist",
            where=_place(h, s),
            got=f"fallback returns {shown(action)}",
            fix=f"Actions there: {', '.join(map(repr, actions[:12]))}.",
        )

    def center_of(self, h: int, s: Label, a: Label, actions: list[Label]) -> int | None:
        """The number of the action's centre; None if the action has no intensity."""
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
            fix=f"Actions there: {', '.join(map(repr, actions[:12]))}. Return None for an action without an intensity.",
        )

    @cached_property
    def _by_action(self) -> bool:
        """True if the signature says that the centre is a function of (h, s, a), not of (h, s)."""
        return self.given.center is not None and takes(self.given.center, 3)

    def support_of(self, h: int, s: Label, a: Label) -> list[Label]:
        """What may follow an action at any intensity."""
        own = self.successors_of(h, s, a)
        if self.given.center is None:
            return own
        actions = self.actions_of(h, s)
        number = self.center_of(h, s, a, actions)
        return self._joined(h, s, a, a if number is None else actions[number], own)

    def _joined(self, h: int, s: Label, a: Label, middle: Label, own: list[Label]) -> list[Label]:
        """An action's own successors, and after them those that only its centre has (spec 9)."""
        if same_label(middle, a):
            return own
        return own + [s2 for s2 in self.successors_of(h, s, middle) if s2 not in own]

    def actions_of(self, h: int, s: Label) -> list[Label]:
        where = _place(h, s)
        labels = call_for_list("actions", self.given.actions, where, h, s)
        for a in labels:
            self._actions.add(a, f"{where}, action")
        if len(set(labels)) < len(labels):
            raise InvalidInput("duplicate actions", where=where, got=shown(labels), fix="List each action once.")
        return labels

    def reward_of(self, h: int, s: Label, a: Label) -> float:
        return real("reward", call("reward", self.given.reward, h, s, a), _place(h, s, a))

    def successors_of(self, h: int, s: Label, a: Label) -> list[Label]:
        where = _place(h, s, a)
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
        return self._rows("cost_features", self.given.cost_features, h, s, a)

    def _rows(self, name: str, function: Callable[..., ArrayLike], h: int, s: Label, a: Label) -> list[FloatArray]:
        value = call(name, function, h, s, a)
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


def policy_choice(explorer: Explorer, layers: Sequence[Layer], naming: Naming) -> FallbackChoice:
    """The fallback from a function, which is called only in states that the fallback can reach."""

    def chosen(h: int, state: int) -> int:
        own = layers[h].pairs_of(state)
        return explorer.fallback_of(h, naming.states[h][state], (naming.actions[h] or ())[own.start : own.stop])

    return lambda h, states: [chosen(h, int(state)) for state in states]
