"""What all agents share: the episode's order of calls, and what an agent can be asked.

An agent is handed a Problem, never a World: nothing here, or below, can read the truth.
Every call checks its arguments before it changes anything; a refused call leaves the agent as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.agents import draws
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.graph import NO_ACTION, FloatArray, IntArray
from surefoot.model.labels import Label
from surefoot.model.problem import Problem
from surefoot.plan.plan import Plan

Policy = tuple[IntArray, ...]
"""Per decision layer (S,) the pair that is played, NO_ACTION where there is none."""

Cost = float | Sequence[float] | FloatArray | None
"""A measured cost: a number when there is one limit, one number per limit otherwise; None: not measured."""


def check_problem(problem: Problem) -> Problem:
    """The problem itself; a World, above all, is refused. Learners call it before they read from it."""
    if not isinstance(problem, Problem):
        raise InvalidInput("an agent needs a Problem", got=f"a {type(problem).__name__}")
    return problem


class Agent(ABC):
    """begin_episode → (act → observe) × (H-1) → [observe_terminal] → end_episode."""

    name: ClassVar[str]

    def __init__(self, problem: Problem) -> None:
        self.problem = check_problem(problem)
        self.episodes = 0  # finished or aborted
        self.draws: draws.Draws | None = None  # what runs fed it with; None before the first
        self._layer: int | None = None  # None between episodes
        self._state = NO_ACTION
        self._start = int(problem.graph.starts[0])
        self._terminal_told = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(episodes={self.episodes}, replans={self.replans})"

    # --- what an agent is -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def guaranteed(self) -> bool:
        """True when every step is promised to be safe."""

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is promised, in words; stamped on every record."""

    @property
    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """Every constant in use, JSON-able, for manifests."""

    @property
    def plan(self) -> Plan | None:
        """The plan in force, for agents that make one."""
        return None

    @property
    def replans(self) -> int:
        """Plans made so far."""
        return 0

    @property
    def failed_replans(self) -> int:
        """Plans that were due and could not be computed: the plan before stayed in force each time."""
        return 0

    @abstractmethod
    def policy(self) -> Policy:
        """The pair played in every state of the episode under way, or of the next one."""

    @property
    def plans_by_start(self) -> bool:
        """True when the plan depends on the start state of the episode."""
        return False

    @property
    def under_way(self) -> bool:
        """True inside an episode."""
        return self._layer is not None

    def foresee(self, start: int) -> None:  # noqa: B027, most agents plan alike for all starts
        """Let :attr:`plan` and :meth:`policy` speak of an episode that begins in this state."""

    def episodes_before_change(self) -> int | None:
        """How many more episodes the policy surely stays as it is without new data; None: for ever."""
        return None

    def episodes_left(self) -> int | None:
        """How many more episodes the agent's constants allow; None: any number."""
        return None

    def skip(self, episodes: int) -> None:
        """Count episodes whose observations were entered elsewhere, by the compiled roll-out."""
        self.episodes += episodes

    # --- the episode, by labels -------------------------------------------------------------------------

    def begin_episode(self, start_state: Label = None) -> None:
        """Start an episode; ``start_state`` may be left out when the problem has one start."""
        if self._layer is not None:
            raise OutOfOrder("an episode is already under way", where=self._where(), fix="End or abort it first.")
        starts = self.problem.graph.starts
        if start_state is None and None not in self.problem.starts:
            if len(starts) > 1:
                raise InvalidInput("name the start state", got=f"the problem has {len(starts)} of them")
            state = int(starts[0])
        else:
            state = self.problem.state_index(0, start_state)
            if state not in starts:
                raise InvalidInput("not a start state", got=repr(start_state))
        self.begin(state)

    def act(self, h: int, state: Label) -> Label:
        """The action to take now."""
        i = self._expect("act", h, state)
        if i is None or h == self.problem.horizon - 1:
            raise OutOfOrder("no action is taken in the last step", where=self._where())
        return self.problem.naming.action(self.problem.graph.layers[h], h, self.choose(h, i))

    def observe(self, h: int, state: Label, action: Label, next_state: Label, cost: Cost) -> None:
        """Tell what the action did: the next state and the measured cost of the transition."""
        self._expect("observe", h, state)
        if h == self.problem.horizon - 1:
            raise OutOfOrder("the last step has no transition", where=self._where(), fix="Use observe_terminal.")
        pair = self.problem.pair_index(h, state, action)
        edge = self.problem.edge_index(h, state, action, next_state)
        self.record(h, pair, edge, self._measured(cost))

    def observe_terminal(self, state: Label, cost: Cost) -> None:
        """Tell the measured cost of the last state, where the problem declares one."""
        last = self.problem.horizon - 1
        i = self._expect("observe_terminal", last, state)
        if not self.problem.graph.terminal.has_cost[i]:
            raise OutOfOrder("this state has no terminal cost", where=self._where())
        if self._terminal_told:
            raise OutOfOrder("the terminal cost was already told", where=self._where())
        self.record_terminal(self._measured(cost))

    def end_episode(self) -> None:
        """Finish the episode; between episodes a new plan is made if the data have grown enough."""
        if self._layer is None:
            raise OutOfOrder("no episode is under way", fix="Call begin_episode first.")
        if self._layer < self.problem.horizon - 1:
            raise OutOfOrder("the episode is not over", where=self._where(), fix="Use abort_episode to stop early.")
        if self.problem.graph.terminal.has_cost[self._state] and not self._terminal_told:
            raise OutOfOrder("the terminal cost was not told", where=self._where(), fix="Call observe_terminal.")
        self.finish()

    def abort_episode(self) -> None:
        """Stop an episode anywhere; what was observed counts."""
        if self._layer is None:
            raise OutOfOrder("no episode is under way")
        self.finish()

    # --- the episode, by indices: the same steps without look-ups, for simulators -----------------------

    def begin(self, state: int) -> None:
        self._layer, self._state, self._start, self._terminal_told = 0, state, state, False

    @abstractmethod
    def choose(self, h: int, state: int) -> int:
        """The pair to play."""

    def record(self, h: int, pair: int, edge: int, cost: FloatArray | None) -> None:
        """Take note of one transition."""
        self._layer, self._state = h + 1, int(self.problem.graph.layers[h].successor[edge])

    def record_terminal(self, cost: FloatArray | None) -> None:
        self._terminal_told = True

    def finish(self) -> None:
        self._layer = None
        self.episodes += 1

    # --- checkpoints: between episodes, exact to the bit ------------------------------------------------

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """All state as plain arrays; only between episodes."""
        if self._layer is not None:
            raise OutOfOrder("a checkpoint is taken between episodes", where=self._where())
        return {
            "episodes": np.array(self.episodes),
            "start": np.array(self._start),
            "draws": draws.to_array(self.draws),
        }

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a checkpoint of an agent that was made alike; only between episodes."""
        if self._layer is not None:
            raise OutOfOrder("a checkpoint is restored between episodes", where=self._where())
        for name, array in self.checkpoint().items():
            fits = name in saved and (
                np.ndim(saved[name]) == 1 if name == "draws" else np.shape(saved[name]) == array.shape
            )
            if not fits:
                found = f"shape {np.shape(saved[name])}" if name in saved else "nothing"
                raise InvalidInput(
                    "the checkpoint is of another agent", where=name, got=f"{found} where {array.shape} is expected"
                )
        if int(saved["start"]) not in self.problem.graph.starts:
            raise InvalidInput("the checkpoint is of another agent", where="start", got=repr(int(saved["start"])))
        self.draws = draws.from_array(saved["draws"])
        self.episodes, self._start = int(saved["episodes"]), int(saved["start"])

    # --- checks -----------------------------------------------------------------------------------------

    def _where(self) -> str:
        return "" if self._layer is None else self.problem.naming.at_state(self._layer, self._state)

    def _expect(self, call: str, h: int, state: Label) -> int:
        if self._layer is None:
            raise OutOfOrder(f"{call} outside an episode", fix="Call begin_episode first.")
        i = self.problem.state_index(h, state)
        if h != self._layer or i != self._state:
            got = f"{call} was called for step {h}, state {state!r}"
            raise OutOfOrder("the episode is elsewhere", where=self._where(), got=got)
        return i

    def _measured(self, cost: Cost) -> FloatArray | None:
        """(m,) finite numbers, or None."""
        if cost is None:
            return None
        m = len(self.problem.limits)
        try:
            given = np.atleast_1d(np.asarray(cost))
            if given.dtype.kind not in "fiub":  # "0.5" would convert, and is a mistake all the same
                raise TypeError
            values = given.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(
                "cost must be a number or a list of numbers", where=self._where(), got=repr(cost)
            ) from None
        if values.shape != (m,):
            raise InvalidInput(
                "wrong number of costs",
                where=self._where(),
                got=f"{cost!r}: {values.size} where {m} are expected",
            )
        if not np.isfinite(values).all():
            raise InvalidInput("cost is not finite", where=self._where(), got=repr(cost))
        return values
