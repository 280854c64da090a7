"""Follows one episode of an environment: which actions are certified now, what is played, what was learned.

An episode keeps its plan to the end, even if the learner, which may follow several episodes at a time, makes a new one
meanwhile: a state that certified actions lead to has a certified action in the same plan, but perhaps not in another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from surefoot.agents.blocks.place import Place, refuse_inside, under_way
from surefoot.agents.learner import Learner
from surefoot.errors import AssumptionBroken, InvalidInput, UnknownLabel
from surefoot.model.arrays import BoolArray, FloatArray
from surefoot.model.layer import NO_ACTION
from surefoot.plan.plan import Plan
from surefoot.shields.reading import Reader, Transition

OUTSIDE = ("fallback", "nearest")


class Allowed:
    """What one plan certifies, as masks over an environment's actions, computed when needed."""

    def __init__(self, learner: Learner, reader: Reader) -> None:
        self.plan: Plan = learner.plan
        self._reader = reader
        self._masks: dict[tuple[int, int], BoolArray] = {}
        self.certificate: dict[str, Any] = {
            "plan": self.plan.number,
            "certified_actions": self.plan.n_certified(),
            "consistent": self.plan.consistent,
            "guaranteed": learner.guaranteed,
            "promise": learner.promise,
            "counted": True,
        }

    def mask(self, h: int, state: int) -> BoolArray:
        """(n,) the certified actions of a state."""
        found = self._masks.get((h, state))
        if found is None:
            pairs = self._reader.pairs(h, state)
            found = self._masks[h, state] = (pairs != NO_ACTION) & self.plan.certified_sets.pairs[h][pairs]
        return found


class Follower:
    """Follows one environment; the learner may be shared."""

    def __init__(self, learner: Learner, reader: Reader, n_actions: int, outside: str) -> None:
        self.learner, self.reader, self.outside = learner, reader, outside
        self.place: Place | None = None
        self.replaced = False  # the last action
        self.replacements = 0  # all of them
        self._nothing: BoolArray = np.zeros(n_actions, bool)
        self.mask, self.exists = self._nothing, self._nothing  # (n,) what may be played, what there is
        self._allowed = Allowed(learner, reader)
        self._layers, self._last = learner.problem.graph.layers, learner.problem.horizon - 1
        self._counts = True
        self._lost = ""

    @property
    def certificate(self) -> dict[str, Any]:
        """What is promised for this episode, and the plan that promises it."""
        plain, lost = self._allowed.certificate, self._lost or self.learner.disproved
        plain = plain if self._counts else plain | {"counted": False}
        return plain | {"guaranteed": False, "promise": lost} if lost else plain

    # --- an episode -------------------------------------------------------------------------------------

    def begin(self, observation: Any, info: dict[str, Any], counts: bool) -> None:
        """Begin an episode and abandon one in progress. ``counts``: may the learner use what it sees?"""
        learner = self.learner
        if self.place is not None:
            learner.count_episodes(self.end())
        refuse_inside(learner.place, "the learner of a shield has an episode of its own under way")
        learner.refuse_beyond()
        start = self.reader.start(observation, info)
        if learner.plan is not self._allowed.plan:
            self._allowed = Allowed(learner, self.reader)
        self._counts, self._lost, self.replaced = counts, "", False
        self.place = Place(learner.problem, learner.episodes + 1, 0, start)
        self._look(0, start)

    def choose(self, action: int) -> int:
        """The action itself if it is certified, otherwise the one played instead."""
        self.replaced = not (0 <= action < len(self.mask) and self.mask[action])
        if not self.replaced:
            return action
        self.replacements += 1
        return self._instead(action)

    def arrive(self, step: Transition) -> bool:
        """Record what the action did. → is the episode over?"""
        place = under_way(self.place)
        h, pair = place.step, int(self.reader.pairs(place.step, place.state)[step.action])
        try:
            state = self.reader.arrival(h + 1, step)
        except UnknownLabel as error:
            self.learner.disproved = f"no guarantee: {place} led to {error.got}, which the problem does not know"
            raise AssumptionBroken(
                "the environment has reached a state that the problem does not know",
                where=str(place),
                got=error.got,
                fix="Declare it among the successors: without it nothing that follows is certified.",
            ) from error
        edge = self._layers[h].edge_to(pair, state)
        if self._lost or edge is None:
            self._stray(h + 1, state)
        else:
            if place.problem.shared_offsets and int(self._allowed.plan.values.action[h][place.state]) != pair:
                place.strayed = True  # whoever chose it may know the offset of this episode
            place.move(edge)
            if self._counts:
                cost, last = (None, None) if place.strayed else map(self._finite, self.reader.costs(step))
                self.learner.take(h, pair, edge, cost, self.reader.features(h, edge, step))
                if h + 1 == self._last and place.due == "terminal":
                    self.learner.take_terminal(state, last)
        if step.terminated or step.truncated or h + 1 == self._last:
            return True
        self._look(h + 1, state)
        return False

    def _finite(self, cost: FloatArray | None) -> FloatArray | None:
        """A cost that is not finite is not learned from and ends the promise: a sensor may fail at high costs."""
        if cost is None or all(map(math.isfinite, cost.tolist())):
            return cost
        where, got = under_way(self.place), cost.tolist()
        self.learner.disproved = f"no guarantee: {where} measured {got}; a cost that was not measured is None"
        return None

    def end(self) -> int:
        """End the episode. → 1 if the learner may count it, otherwise 0"""
        self.place, self.mask, self.exists = None, self._nothing, self._nothing
        return int(self._counts)

    # --- what is certified ------------------------------------------------------------------------------

    def _look(self, h: int, state: int) -> None:
        pairs = self.reader.pairs(h, state)
        self.exists = pairs != NO_ACTION
        self.mask = pairs == self._fallback(h, state) if self._lost else self._allowed.mask(h, state)

    def _instead(self, action: int) -> int:
        place = under_way(self.place)
        h, state = place.step, place.state
        if self.outside == "nearest" and self.mask.any():
            certified = np.flatnonzero(self.mask)
            return int(certified[np.abs(certified - action).argmin()])
        pair = int(self._layers[h].fallback[state])
        return self.reader.action(h, state, self._allowed.plan.pair(h, state) if pair == NO_ACTION else pair)

    def _stray(self, h: int, state: int) -> None:
        """Something declared impossible has happened: from now on play only the fallback, and learn nothing."""
        place = under_way(self.place)
        if not self._lost:
            where, to = str(place), place.problem.naming.states[h][state]
            self.learner.disproved = f"no guarantee: {where} led to {to!r}, which was declared impossible"
            self._lost = f"{self.learner.disproved}; the fallback plays on"
            self._counts = False
        place.step, place.state = h, state

    def _fallback(self, h: int, state: int) -> int:
        pair = int(self._layers[h].fallback[state])
        if pair == NO_ACTION:
            raise AssumptionBroken(
                "the environment has left the declared support, and the fallback has no action here",
                where=self.learner.problem.naming.at_state(h, state),
                fix="Declare every successor that is possible.",
            )
        return pair


@contextmanager
def one_step_of(*followers: Follower) -> Iterator[None]:
    """A step of their environments. If it fails, nobody knows where they are, and only a reset helps."""
    try:
        yield
    except BaseException:
        for follower in followers:
            follower.end()
        raise


def check_action(action: Any) -> int:
    """Check that the action is a whole number, as in Gymnasium's Discrete spaces."""
    if type(action) is int:
        return action
    if isinstance(action, np.ndarray) and action.ndim == 0:
        action = action.item()
    if isinstance(action, bool) or not isinstance(action, (int, np.integer)):
        raise InvalidInput("action must be a whole number", got=repr(action))
    return int(action)
