"""A world as a Gymnasium environment, for learners that surefoot did not write.

    env = gymnasium.make("surefoot/thermal-small-v0", observation="features")

**Observation.** ``"index"`` (the default), ``"onehot"`` or ``"features"``: :mod:`surefoot.worlds.observing`.
**Action.** An index into the state's own actions, in declaration order. An index that does not exist plays the
fallback's action (or the first, if there is none), or, with ``unknown_action="error"``, is an error. With rays (spec 9)
an action is a pair ``(index, intensity)`` of a ``Tuple(Discrete, Box(0, 1))``; for an action without an intensity, the
second number is ignored.

``info`` holds what a learner may know, never the truth:

    state          label of the state                      limits        (m,) bounds: safe means cost ≤ bound
    step           0 … H-1                                 action_mask   (n,) int8, 1 where the action exists
    index          number of the state in its step         measured      (m,) measured costs, noise included
    action         label of the action that was played     cost          as chosen by ``cost``, see below
    played         index of the action that was played     terminal_cost (m,) measured, where the last state has a cost
    forbidden      the state is forbidden: entering it was a violation
    invalid_action the index did not exist; another action was played
    intensity      at which the action was played, in worlds with rays

``reset`` gives state, step, index, forbidden, limits and action_mask. The last step adds the terminal reward.

``cost`` is ``"vector"`` (the default; ``info["cost"]`` is then ``info["measured"]``) or, for libraries that expect one
number, ``"excess"`` or ``"sum"``: with e_j = max(0, cost_j − bound_j) / |bound_j| (or / 1 for a bound of 0), the
largest e_j, or their sum. The last step's number also counts the cost of the last state; a forbidden state counts as an
excess of 1.

Pass a seed only to the first ``reset``. In Gymnasium the same seed gives the same episode, so ``reset(seed=0)`` before
every episode draws the same noise each time, and the bounds of a learner that counts it as new evidence fail. For
the same reason, if an agent has played here, give :func:`surefoot.run` a seed that no environment was reset with.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium
import numpy as np

from surefoot.checks import one_of
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.arrays import FloatArray
from surefoot.model.growing import refuse_growing
from surefoot.model.labels import Label
from surefoot.model.layer import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.model.rays import FULL, NO_CENTER
from surefoot.worlds import registry
from surefoot.worlds.observing import Observation, Observer
from surefoot.worlds.registry import environment_id, register_all
from surefoot.worlds.sampler import Sampler
from surefoot.worlds.world import World

__all__ = ["SurefootEnv", "environment_id", "make_env", "register_all"]

COSTS = ("vector", "excess", "sum")
Action = np.int64 | int | tuple[Any, Any]
UNKNOWN_ACTIONS = ("fallback", "error")
RENDER_MODES = ("rgb_array", "human")
# Worlds know nothing about drawing: pictures come from a room above, loaded by name when one is needed.
PAINTER = "surefoot.reports.pictures.draw:FramePainter"


@dataclass(frozen=True)
class Walked:
    """An episode so far, by index: the states of steps 0, 1, …, and the pairs that were played in all but the last."""

    states: list[int] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)


class Painter(Protocol):
    """Draws one world, again and again."""

    def frame(self, walked: Walked) -> Any:
        """(height, width, 3) uint8: the world with the way walked so far."""

    def close(self) -> None:
        """Close the window, if there is one."""


class SurefootEnv(gymnasium.Env[Observation, Any]):
    """One episode walks the H steps of a world's problem once."""

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012, as Gymnasium has it

    def __init__(
        self,
        world: World,
        render_mode: str | None = None,
        *,
        observation: str = "index",
        cost: str = "vector",
        unknown_action: str = "fallback",
    ) -> None:
        refuse_growing(world.problem, "an environment")
        self.render_mode = render_mode if render_mode is None else one_of("render_mode", RENDER_MODES, render_mode)
        self._painter: Painter | None = None
        self._world = world
        problem, graph = world.problem, world.problem.graph
        self._observer = Observer(problem, observation)
        self._cost = one_of("cost", COSTS, cost)
        self._unknown_action = one_of("unknown_action", UNKNOWN_ACTIONS, unknown_action)
        most_actions = max(int(np.diff(layer.state_ptr).max()) for layer in graph.layers)
        self.observation_space = self._observer.space
        self._n_actions = most_actions
        self.action_space = gymnasium.spaces.Discrete(most_actions)
        if problem.has_rays:
            opening = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float64)
            self.action_space = gymnasium.spaces.Tuple((self.action_space, opening))
        self._state_label = stackable({type(label) for names in problem.naming.states for label in names[:]})
        self._action_label = stackable({type(label) for names in problem.naming.actions for label in names or (0,)})
        self._sampler: Sampler | None = None
        self._layer = 0
        self._state = NO_ACTION  # until reset
        self._walked = Walked()

    @property
    def problem(self) -> Problem:
        """What is known; a learner may read it."""
        return self._world.problem

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in ``options["state"]``, one of the start states; the first one by default."""
        start = self._start(options or {})
        super().reset(seed=seed)
        if seed is not None or self._sampler is None:
            # The world's own streams, from Gymnasium's seed: env.reset(seed=3) draws as world.sampler(3).
            self._sampler = self._world.sampler(self.np_random_seed)
        self._sampler.begin_episode()
        self._layer, self._state, self._walked = 0, start, Walked([start])
        self._show()
        return self._observer.see(0, start), self._info()

    def _start(self, options: dict[str, Any]) -> int:
        unknown = sorted(set(options) - {"state"})
        if unknown:
            raise InvalidInput("no such reset option", got=repr(unknown[0]), fix='The only one is "state".')
        problem = self._world.problem
        if "state" not in options:
            return int(problem.graph.starts[0])
        label = options["state"]
        for index, known in zip(problem.graph.starts.tolist(), problem.starts, strict=True):
            if known == label:
                return int(index)
        raise InvalidInput("no such start state", got=repr(label), fix=f"Starts are {list(problem.starts)!r}.")

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one action; ``terminated`` on arrival in the last step, never ``truncated``."""
        problem, h, sampler = self._world.problem, self._layer, self._sampler
        if sampler is None:
            raise OutOfOrder("step before reset", fix="Call reset first.")
        if h == problem.horizon - 1:
            raise OutOfOrder("step after the end of the episode", fix="Call reset first.")
        layer = problem.graph.layers[h]
        pair, intensity, valid = self._chosen(action)
        edge = sampler.step(h, pair, intensity)
        reward = float(layer.reward[pair])
        if intensity != FULL:
            reward = (1.0 - intensity) * float(problem.graph.rays[h].reward(layer)[pair]) + intensity * reward
        measured, last_cost = sampler.measure(h, edge, intensity), None
        result: dict[str, Any] = {
            "action": self._action_label(problem.naming.action(layer, h, pair)),
            "played": pair - int(layer.state_ptr[self._state]),
            "measured": measured,
            "invalid_action": not valid,
            **({"intensity": intensity} if problem.has_rays else {}),
        }
        self._layer, self._state = h + 1, int(layer.successor[edge])
        self._walked.states.append(self._state)
        self._walked.pairs.append(pair)
        terminated = self._layer == problem.horizon - 1
        if terminated:
            last = problem.graph.terminal
            reward += float(last.reward[self._state])
            if last.has_cost[self._state]:
                last_cost = result["terminal_cost"] = sampler.measure_terminal(self._state)
        result["cost"] = measured if self._cost == "vector" else self._number(measured, last_cost)
        self._show()
        return self._observer.see(self._layer, self._state), reward, terminated, False, self._info() | result

    def _chosen(self, action: Action) -> tuple[int, float, bool]:
        """The pair to play, its intensity, and whether it is the requested one."""
        problem = self._world.problem
        if not problem.has_rays:
            pair, valid = self._pair(action)
            return pair, FULL, valid
        try:
            index, opening = action  # type: ignore[misc]
            intensity = float(np.asarray(opening, np.float64).reshape(()) if np.ndim(opening) == 0 else opening[0])
        except (TypeError, ValueError, IndexError):
            raise InvalidInput("an action is an index and an intensity", got=repr(action)) from None
        if not 0.0 <= intensity <= 1.0:
            raise InvalidInput("an intensity is between 0 and 1", got=repr(intensity))
        pair, valid = self._pair(index)
        is_ray = valid and problem.graph.rays[self._layer].center[pair] != NO_CENTER
        return pair, intensity if is_ray else FULL, valid

    def _pair(self, action: Any) -> tuple[int, bool]:
        """The pair to play, and whether it is the requested one."""
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)):
            raise InvalidInput("action must be a whole number", got=repr(action))
        layer, state = self._world.problem.graph.layers[self._layer], self._state
        own = layer.pairs_of(state)
        if 0 <= action < len(own):
            return own[int(action)], True
        if self._unknown_action == "error":
            where = self._world.problem.naming.at_state(self._layer, state)
            raise InvalidInput("no such action", where=where, got=repr(int(action)), fix=f"It has {len(own)}.")
        fallback = int(layer.fallback[state])
        return (own.start if fallback == NO_ACTION else fallback), False

    def _number(self, *costs: FloatArray | None) -> float:
        """The excess over all limits in one number, see above."""
        problem = self._world.problem
        measured = np.array([cost for cost in costs if cost is not None])
        bounds = problem.bounds[self._layer - 1 : self._layer - 1 + len(measured)]  # of the step, and of the last state
        excess = np.maximum(measured - bounds, 0.0) / np.where(bounds == 0, 1.0, np.abs(bounds))
        entered = float(problem.graph.forbidden(self._layer)[self._state])
        return max(float(excess.max()), entered) if self._cost == "excess" else float(excess.sum()) + entered

    def _info(self) -> dict[str, Any]:
        problem = self._world.problem
        mask = np.zeros(self._n_actions, dtype=np.int8)
        if self._layer < problem.horizon - 1:
            pointer = problem.graph.layers[self._layer].state_ptr
            mask[: int(pointer[self._state + 1] - pointer[self._state])] = 1
        return {
            "state": self._state_label(problem.naming.states[self._layer][self._state]),
            "step": self._layer,
            "index": self._state,
            "forbidden": bool(problem.graph.forbidden(self._layer)[self._state]),
            "limits": problem.bounds[self._layer].copy(),
            "action_mask": mask,
        }

    # --- pictures ---------------------------------------------------------------------------------------

    def render(self) -> Any:
        """With ``render_mode="rgb_array"`` a picture, (height, width, 3) uint8, of the way walked so far; else None."""
        if self.render_mode is None:
            gymnasium.logger.warn("render is called without a render_mode; give one to gymnasium.make or world.env")
            return None
        if not self._walked.states:
            raise OutOfOrder("render before reset", fix="Call reset first.")
        return self._paint() if self.render_mode == "rgb_array" else None

    def _show(self) -> None:
        """With ``render_mode="human"`` every step is shown in a window."""
        if self.render_mode == "human":
            self._paint()

    def _paint(self) -> Any:
        if self._painter is None:
            module, _, name = PAINTER.partition(":")
            self._painter = getattr(importlib.import_module(module), name)(self._world, self.render_mode == "human")
        assert self._painter is not None
        return self._painter.frame(self._walked)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._painter is not None:
            self._painter.close()
            self._painter = None


class _Whole(int):
    """A number that is a name. Gymnasium's vector environments stack plain numbers into arrays of numbers, which do not
    take the names of other states; anything else they leave as it is."""


class _Real(float):
    __doc__ = _Whole.__doc__


def stackable(kinds: set[type]) -> Callable[[Label], Label]:
    """Makes labels of these types fit for a vector environment's infos."""
    if len(kinds) == 1:
        return lambda label: label
    special: dict[type, Callable[[Label], Label]] = {int: _Whole, float: _Real}
    return lambda label: special[type(label)](label) if type(label) in special else label


def make_env(
    name: str,
    render_mode: str | None = None,
    observation: str = "index",
    cost: str = "vector",
    unknown_action: str = "fallback",
    **options: Any,
) -> SurefootEnv:
    """The environment of a named world, as ``gymnasium.make`` calls it. Further ``options`` are those of the world."""
    world = registry.make(name, **options)
    return SurefootEnv(world, render_mode, observation=observation, cost=cost, unknown_action=unknown_action)
