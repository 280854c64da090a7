"""What all agents share: the order of calls in an episode, and what can be asked of an agent.

An agent gets a Problem, never a World: nothing here or below can read the truth. Every call checks its arguments before
it changes anything, so a refused call leaves the agent as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.agents.blocks import draws
from surefoot.agents.blocks.place import Place, refuse_inside, start_of, under_way
from surefoot.checks import of_kind
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.arrays import FloatArray, IntArray
from surefoot.model.features import Features
from surefoot.model.growing import refuse_growing
from surefoot.model.labels import Label
from surefoot.model.measured import Cost, finite_cost, measured_features
from surefoot.model.problem import Problem
from surefoot.model.rays import Intensities, refuse_rays
from surefoot.plan.plan import Plan

Policy = tuple[IntArray, ...]
"""Per decision layer (S,) the pair that is played, NO_ACTION where there is none."""
Chances = tuple[FloatArray, ...]
"""Per decision layer (N,) how likely each pair is played in its state; all zero in states without an action."""


GROWS = ("draws", "came/")  #: arrays of a checkpoint that grow with the episodes


def check_problem(problem: Problem, grows: bool = False) -> Problem:
    """The problem itself; anything else, above all a World, is refused. ``grows``: the agent can play problems whose
    graph grows (spec 9)."""
    of_kind(
        problem, Problem, "an agent needs a Problem", "A Plant takes sf.PlantAgent; of a World, pass world.problem."
    )
    if not grows:
        refuse_growing(problem, "this agent")
    return problem


class Agent(ABC):
    """begin_episode → (act → observe) × (H-1) → [observe_terminal] → end_episode."""

    name: ClassVar[str]
    grows: ClassVar[bool] = False  #: can play problems whose graph grows (spec 9)
    knows_rays: ClassVar[bool] = False  #: plays actions at an intensity (spec 9); the others refuse such problems

    def __init__(self, problem: Problem) -> None:
        self.problem = check_problem(problem, self.grows)
        if not self.knows_rays:
            refuse_rays(problem, f"{type(self).__name__}")
        self.episodes = 0  # finished or aborted
        self.draws: draws.Draws | None = None  # what runs fed it with; None before the first
        self.place: Place | None = None  # of the episode under way
        self._start = int(problem.graph.starts[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(episodes={self.episodes}, replans={self.replans})"

    # --- what an agent is -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def guaranteed(self) -> bool:
        """True when every step is promised to be safe."""

    @property
    @abstractmethod
    def promise(self) -> str:
        """What is promised, in words; every record includes it."""

    @property
    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """Every constant in use, as JSON, for manifests."""

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
        """Plans that were due and could not be computed; each time the previous plan stayed in force."""
        return 0

    @abstractmethod
    def policy(self) -> Policy:
        """The pair played in every state of the episode under way, or of the next one.

        An agent that draws its actions has drawn them for the whole episode, since no state is met twice.
        """

    def chances(self) -> Chances | None:
        """How likely each pair is, for an agent that draws its actions; None: it always plays :meth:`policy`."""
        return None

    def intensities(self) -> Intensities | None:
        """H-1 of (N,): the intensity at which each pair would be played (spec 9); None: all in full."""
        return None

    @property
    def plans_by_start(self) -> bool:
        """True when the plan depends on the start state of the episode."""
        return False

    def foresee(self, start: int) -> None:  # noqa: B027, most agents plan alike for all starts
        """Make :attr:`plan` and :meth:`policy` those of an episode that begins in this state."""

    def episodes_before_change(self) -> int | None:
        """For how many more episodes the policy cannot change without new data; None: for ever."""
        return None

    def episodes_left(self) -> int | None:
        """For how many more episodes the agent's constants hold; None: any number."""
        return None

    def refuse_beyond(self) -> None:
        """Refuse an episode that the agent's constants do not cover."""
        if self.episodes_left() == 0:
            got = f"episodes={self.episodes}"
            raise OutOfOrder("the paper's constants were computed for fewer episodes", got=got)

    def skip(self, episodes: int) -> None:
        """Count episodes whose observations the compiled roll-out has already entered."""
        self.episodes += episodes

    # --- the episode, by labels -------------------------------------------------------------------------

    def begin_episode(self, start_state: Label = None) -> None:
        """Start an episode; ``start_state`` may be left out when the problem has one start."""
        refuse_inside(self.place, "an episode is already under way")
        self._begin(start_of(self.problem, start_state))

    def act(self, h: int, state: Label) -> Label:
        """The action to take now."""
        place = under_way(self.place)
        place.expect_at("act", h, state)
        return self.problem.naming.action(self.problem.graph.layers[h], h, self._choose(h, place.state))

    def observe(
        self,
        h: int,
        state: Label,
        action: Label,
        next_state: Label,
        cost: Cost,
        features: ArrayLike | None = None,
        intensity: float | None = None,
    ) -> None:
        """Tell what the action did: the next state and the measured cost of the transition.

        ``features``: the cost features at the exact state, where an action has several cost rows; ``intensity``: of the
        action as it was played, if it was not :meth:`intensity` (spec 9).
        """
        place = under_way(self.place)
        place.expect_at("act", h, state)
        pair = self.problem.pair_index(h, state, action)
        edge = self.problem.edge_index(h, state, action, next_state)
        told, x = finite_cost(self.problem, cost, str(place)), None
        played = None if intensity is None else self.problem.intensity(h, pair, intensity, str(place))
        if told is not None and (features is not None or not self.problem.has_rays):
            x = measured_features(self.problem, self.problem.graph.layers[h], edge, features, str(place))
        place.strayed |= self.problem.shared_offsets and self._departs(h, place.state, pair, played)
        self._record(h, pair, edge, told, x, played)

    def _departs(self, h: int, state: int, pair: int, intensity: float | None) -> bool:
        """Is this not the agent's own choice? Whoever made it may have seen a measurement of this episode."""
        planned = self.intensities()
        opened = intensity is None or planned is None or intensity == planned[h][pair]
        return not opened or int(self.policy()[h][state]) != pair

    def intensity(self, h: int, state: Label, action: Label) -> float:
        """The intensity at which to play this action now; 1 for an action without one (spec 9)."""
        played, pair = self.intensities(), self.problem.pair_index(h, state, action)
        return 1.0 if played is None else float(played[h][pair])

    def observe_terminal(self, state: Label, cost: Cost) -> None:
        """Tell the measured cost of the last state, if the problem declares one."""
        place = under_way(self.place)
        place.expect_at("terminal", self.problem.horizon - 1, state)
        self._record_terminal(finite_cost(self.problem, cost, str(place)))

    def end_episode(self) -> None:
        """Finish the episode and, if the data have grown enough, make a new plan."""
        under_way(self.place).expect("end")
        self._finish()

    def abort_episode(self) -> None:
        """Stop an episode anywhere; what was observed counts."""
        under_way(self.place)
        self._finish()

    # --- the episode, by indices: the same without look-ups, for runs and studies -------------------------

    def _begin(self, state: int) -> None:
        self.refuse_beyond()
        self.place, self._start = Place(self.problem, self.episodes + 1, 0, state), state

    @abstractmethod
    def _choose(self, h: int, state: int) -> int:
        """The pair to play."""

    def _record(
        self,
        h: int,
        pair: int,
        edge: int,
        cost: FloatArray | None,
        features: Features | None = None,
        intensity: float | None = None,
    ) -> None:
        """Record one transition. ``features``: of the cost, a table of one row, by default the declared one;
        ``intensity``: by default that of :meth:`intensities`."""
        under_way(self.place).move(edge)

    def _record_terminal(self, cost: FloatArray | None) -> None:
        under_way(self.place).told = True

    def _finish(self) -> None:
        self.place = None
        self.episodes += 1

    # --- checkpoints: between episodes, exact to the bit ------------------------------------------------

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """All state as plain arrays; only between episodes."""
        refuse_inside(self.place, "a checkpoint is taken between episodes")
        return {
            "episodes": np.array(self.episodes),
            "start": np.array(self._start),
            "draws": draws.to_array(self.draws),
        }

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the checkpoint of an agent made in the same way; only between episodes."""
        refuse_inside(self.place, "a checkpoint is restored between episodes")
        for name, array in self.checkpoint().items():
            fits = name in saved and (
                np.ndim(saved[name]) == 1 if name.startswith(GROWS) else np.shape(saved[name]) == array.shape
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
