"""Reads a transition table like those of Gymnasium's toy-text environments.

    env.unwrapped.P[state][action] = [(probability, next state, reward, terminated), …]

Only states that can be reached from the start states are considered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.labels import Label, check_label, shown
from surefoot.tolerances import PROBABILITY_SUM


class Arrival(NamedTuple):
    """A state of the table, the reward for arriving there, and whether that was the end."""

    state: Label
    reward: float
    ended: bool


Row = tuple[float, Arrival]  # its probability


@dataclass(frozen=True, eq=False)
class Table:
    """The reachable part of a table: ``rows[state][action]``, in the order of the environment."""

    starts: tuple[Label, ...]
    rows: dict[Label, dict[Label, tuple[Row, ...]]]

    def lists(self) -> Iterable[tuple[Label, Label, tuple[Row, ...]]]:
        """(state, action, its rows), all of them."""
        return ((s, a, rows) for s, actions in self.rows.items() for a, rows in actions.items())

    def arrivals(self, state: Label, action: Label) -> list[Arrival]:
        """What an action can lead to, each once."""
        return list(dict.fromkeys(arrival for _, arrival in self.rows[state][action]))

    # --- kernels ----------------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """μ: the probabilities of the first row, the second, …, if all lists agree on them; otherwise (1, 0)."""
        return self._common or (1.0, 0.0)

    @cached_property
    def _common(self) -> tuple[float, ...] | None:
        kinds = {tuple(p for p, _ in rows) for _, _, rows in self.lists() if len(rows) > 1}
        return kinds.pop() if len(kinds) == 1 else None if kinds else (1.0,)

    def kernels(self, state: Label, action: Label, arrival: Arrival) -> list[float]:
        """φ of an arrival: its probability under each of the known kernels."""
        rows = self.rows[state][action]
        if self._common is None:
            return [
                sum(p for p, each in rows if each == arrival),
                1.0 / len(self.arrivals(state, action)),
            ]
        if len(rows) == 1:
            return [1.0] * len(self._common)
        return [float(each == arrival) for _, each in rows]

    # --- names ------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> dict[Arrival, Label]:
        """The name of each arrival: its state or, if that is ambiguous, ``(state, reward)``, and so on.

        A start has the name of its state, and shares it with the arrival there if both continue in the same way.
        """
        every = dict.fromkeys(arrival for _, _, rows in self.lists() for _, arrival in rows)
        of_state = Counter(arrival.state for arrival in every)
        of_reward = Counter((arrival.state, arrival.reward) for arrival in every)
        names: dict[Arrival, Label] = {}
        for arrival in every:
            state, reward, ended = arrival
            if of_state[state] == 1 and not (ended and state in self.starts):
                names[arrival] = state
            else:
                names[arrival] = (state, reward) if of_reward[state, reward] == 1 else (state, reward, ended)
        return names


def read_table(env: Any, start: Label | list[Label] | None) -> Table:
    """The table of an environment, from the given start states or its own."""
    plain = getattr(env, "unwrapped", env)
    given = getattr(plain, "P", None)
    if not isinstance(given, (Mapping, Sequence)):
        raise InvalidInput(
            "the environment has no transition table",
            got=f"{type(plain).__name__}.P is {shown(given)}",
            fix="P[state][action] must list (probability, next state, reward, terminated).",
        )
    starts = _starts(plain, start)
    rows: dict[Label, dict[Label, tuple[Row, ...]]] = {}
    waiting = list(starts)
    while waiting:
        state = waiting.pop()
        if state in rows:
            continue
        rows[state] = {a: _rows(each, state, a) for a, each in _entries(given, state)}
        waiting += [arrival.state for each in rows[state].values() for _, arrival in each if not arrival.ended]
    return Table(starts, rows)


def _starts(env: Any, start: Label | list[Label] | None) -> tuple[Label, ...]:
    if start is None:
        chances = getattr(env, "initial_state_distrib", None)
        if chances is None:
            raise InvalidInput("the environment does not say where it starts", fix="Give start, a state of its table.")
        start = np.flatnonzero(np.asarray(chances)).tolist()
    starts = start if isinstance(start, list) else [start]
    if not starts:
        raise InvalidInput("a world needs a start state", got="none")
    return tuple(_plain(each) for each in starts)


def _entries(table: Any, state: Label) -> list[tuple[Label, Any]]:
    try:
        actions = table[state]
    except LookupError:
        raise InvalidInput("the table has no such state", got=shown(state)) from None
    pairs = actions.items() if isinstance(actions, Mapping) else enumerate(actions)
    return [(_plain(a), rows) for a, rows in pairs]


def _rows(given: Any, state: Label, action: Label) -> tuple[Row, ...]:
    where = f"state {state!r}, action {action!r}"
    rows: list[Row] = []
    for row in given:
        try:
            probability, after, reward, ended = row
            chance, paid = float(probability), float(reward)
        except (TypeError, ValueError):
            raise InvalidInput(
                "a row of the table must be (probability, next state, reward, terminated)",
                where=where,
                got=shown(row),
            ) from None
        if not (0.0 <= chance <= 1.0 and math.isfinite(paid)):
            raise InvalidInput("a row of the table is impossible", where=where, got=shown(row))
        arrival = Arrival(_plain(after), paid, bool(ended))
        check_label(arrival.state, where)
        rows.append((chance, arrival))
    total = math.fsum(chance for chance, _ in rows)
    if abs(total - 1.0) > PROBABILITY_SUM:
        raise InvalidInput("probabilities of the table do not sum to one", where=where, got=f"sum {total!r}")
    return tuple(rows)


def _plain(label: Any) -> Label:
    """Tables mix numpy's numbers with Python's; labels are Python's."""
    return label.item() if isinstance(label, np.generic) else label
