"""The episode under way: where it is, which call is due, and the error for a call that is not.

Agents and studies share this state machine. What is due goes from "act", once for each of the H−1 decisions, to
"terminal", if the last state has a cost that was not told yet, to "end". Once an action was applied that the problem
does not know, nobody knows where the plant is, and only "abort" is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.labels import Label, shown
from surefoot.model.naming import MOST
from surefoot.model.problem import Problem

_DUE = {
    "act": ("an action is due", "Take it and tell what it did, or abort the episode."),
    "terminal": ("the cost of the last state is awaited", "Tell it; None is a cost that was not measured."),
    "end": ("nothing is left to tell of this episode", "End it."),
    "abort": (
        "an action that the problem does not know was applied, so where the plant is, is not known",
        "Abort the episode.",
    ),
}


@dataclass
class Place:
    """Where an episode is."""

    problem: Problem = field(repr=False, compare=False)
    episode: int  # its number, from 1
    step: int
    state: int
    told: bool = False  # is the cost of the last state known?
    lost: bool = False  # an unknown action was applied
    strayed: bool = False  # an action was played that may depend on an offset of this episode (spec 3)
    exact: list[float] | None = field(default=None, compare=False)  # where a plant is, in a study of one

    def __str__(self) -> str:
        return f"episode {self.episode}, step {self.step}, state {self.said!r}"

    @property
    def said(self) -> Label | list[float]:
        """The state as people know it: the exact state of a plant, otherwise its label."""
        return self.label if self.exact is None else self.exact

    @property
    def label(self) -> Label:
        """The state's own name."""
        return self.problem.naming.states[self.step][self.state]

    @property
    def due(self) -> str:
        if self.lost:
            return "abort"
        if self.step < self.problem.horizon - 1:
            return "act"
        return "terminal" if self.problem.graph.terminal.has_cost[self.state] and not self.told else "end"

    def expect(self, call: str) -> None:
        """Refuse a call that is not due."""
        if call != self.due:
            rule, fix = _DUE[self.due]
            raise OutOfOrder(rule, where=str(self), fix=fix)

    def expect_at(self, call: str, h: int, state: Label) -> None:
        """Refuse a call that is not due, or that is about another place."""
        if (h, self.problem.state_index(h, state)) != (self.step, self.state):
            got = f"state {state!r}" if h == self.step else f"step {h}"
            raise OutOfOrder("the episode is elsewhere", where=str(self), got=got)
        self.expect(call)

    def move(self, edge: int) -> None:
        """Follow a transition."""
        self.state = int(self.problem.graph.layers[self.step].successor[edge])
        self.step += 1


def under_way(place: Place | None) -> Place:
    """The episode under way; an error if there is none."""
    if place is None:
        raise OutOfOrder("no episode is under way", fix="Begin one first.")
    return place


def refuse_inside(place: Place | None, what: str) -> None:
    """Refuse what may be done between episodes only."""
    if place is not None:
        raise OutOfOrder(what, where=str(place), fix="Bring the episode to its end, or abort it, first.")


def start_of(problem: Problem, start: Label) -> int:
    """The index of a start state, which may be left out if the problem has only one."""
    starts = problem.graph.starts
    if start is None and None not in problem.starts:
        if len(starts) > 1:
            named = [shown(label) for label in problem.starts[:MOST]]
            fix = f"They are {', '.join(named)}{', …' if len(starts) > MOST else ''}."
            raise InvalidInput("name the start state", got=f"the problem has {len(starts)} of them", fix=fix)
        return int(starts[0])
    state = problem.state_index(0, start)
    if state not in starts:
        raise InvalidInput("not a start state", got=repr(start))
    return state
