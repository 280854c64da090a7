"""A world as a Gymnasium environment, for learners that surefoot did not write.

Observation ``(step, state index)``; action: an index into the state's own actions, in declaration order.
``info`` holds what a learner may know, never the truth:

    state          label of the state                      limits        (m,) bounds: safe means cost ≤ bound
    step           0 … H-1                                 action_mask   (n,) int8, 1 where the action exists
    action         label of the action that was played     cost          (m,) measured, noise included
    forbidden      the state is one that must not be entered
    invalid_action the index did not exist; the fallback's action (where it has none, the first) was played
    terminal_cost  (m,) measured, after the last step, where the last state has a cost

``reset`` gives state, step, forbidden, limits and action_mask. The last step adds the terminal reward.

Pass a seed to the first ``reset`` only. Gymnasium asks that the same seed gives the same episode, so ``reset(seed=0)``
before every episode draws the same noise each time: the bounds of a learner that counts it as new evidence do not hold,
and an environment cannot detect that. For the same reason, give :func:`surefoot.run` a seed that no environment was
reset with if its agent has played here.

Importing this module registers every named world with Gymnasium, so that this works:
``gymnasium.make("surefoot.worlds.env:surefoot/thermal-small-v0")``.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.graph import NO_ACTION
from surefoot.model.problem import Problem
from surefoot.worlds import registry
from surefoot.worlds.sampler import Sampler
from surefoot.worlds.world import World

Observation = NDArray[np.int64]


class SurefootEnv(gymnasium.Env[Observation, np.int64]):
    """One episode walks the H steps of a world's problem once."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012, declared so by Gymnasium

    def __init__(self, world: World, render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise InvalidInput(
                "this environment has no render mode",
                got=f"render_mode {render_mode!r}",
                fix="Use surefoot's reports for pictures.",
            )
        self.render_mode = render_mode
        self._world = world
        graph = world.problem.graph
        most_states = max(graph.n_states(h) for h in range(graph.horizon))
        most_actions = max(int(np.diff(layer.state_ptr).max()) for layer in graph.layers)
        self.observation_space = gymnasium.spaces.MultiDiscrete([graph.horizon, most_states])
        self.action_space = gymnasium.spaces.Discrete(most_actions)
        self._sampler: Sampler | None = None
        self._layer = 0
        self._state = NO_ACTION  # until reset

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
        self._layer, self._state = 0, start
        return self._observation(), self._info()

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

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one action; ``terminated`` on arrival in the last step, never ``truncated``."""
        problem, h, sampler = self._world.problem, self._layer, self._sampler
        if sampler is None:
            raise OutOfOrder("step before reset", fix="Call reset first.")
        if h == problem.horizon - 1:
            raise OutOfOrder("step after the end of the episode", fix="Call reset first.")
        layer = problem.graph.layers[h]
        pair, valid = self._pair(action)
        edge = sampler.step(h, pair)
        reward = float(layer.reward[pair])
        result = {
            "action": problem.naming.action(layer, h, pair),
            "cost": sampler.measure(h, edge),
            "invalid_action": not valid,
        }
        self._layer, self._state = h + 1, int(layer.successor[edge])
        terminated = self._layer == problem.horizon - 1
        if terminated:
            last = problem.graph.terminal
            reward += float(last.reward[self._state])
            if last.has_cost[self._state]:
                result["terminal_cost"] = sampler.measure_terminal(self._state)
        return self._observation(), reward, terminated, False, self._info() | result

    def _pair(self, action: np.int64 | int) -> tuple[int, bool]:
        """The pair to play, and whether it is the requested one."""
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)):
            raise InvalidInput("action must be a whole number", got=repr(action))
        layer, state = self._world.problem.graph.layers[self._layer], self._state
        first, end = int(layer.state_ptr[state]), int(layer.state_ptr[state + 1])
        if 0 <= action < end - first:
            return first + int(action), True
        fallback = int(layer.fallback[state])
        return (first if fallback == NO_ACTION else fallback), False

    def _observation(self) -> Observation:
        return np.array([self._layer, self._state], dtype=np.int64)

    def _info(self) -> dict[str, Any]:
        problem = self._world.problem
        mask = np.zeros(int(self.action_space.n), dtype=np.int8)  # type: ignore[attr-defined]
        if self._layer < problem.horizon - 1:
            pointer = problem.graph.layers[self._layer].state_ptr
            mask[: int(pointer[self._state + 1] - pointer[self._state])] = 1
        return {
            "state": problem.naming.states[self._layer][self._state],
            "step": self._layer,
            "forbidden": bool(problem.graph.forbidden(self._layer)[self._state]),
            "limits": problem.bounds[self._layer].copy(),
            "action_mask": mask,
        }


def make_env(name: str, render_mode: str | None = None, **options: Any) -> SurefootEnv:
    """The environment of a named world; what ``gymnasium.make`` calls."""
    return SurefootEnv(registry.make(name, **options), render_mode=render_mode)


def environment_id(name: str) -> str:
    """``thermal/small`` is ``surefoot/thermal-small-v0`` in Gymnasium, whose names hold one slash at most."""
    return f"surefoot/{name.replace('/', '-')}-v0"


def register_all() -> None:
    """Enter every named world into Gymnasium's registry; those already there stay.

    Examples:
        >>> import gymnasium
        >>> sf.worlds.register_all()
        >>> gymnasium.make("surefoot/thermal-testing-v0").action_space
        Discrete(3)
    """
    for name in registry.names():
        if environment_id(name) not in gymnasium.registry:
            gymnasium.register(
                id=environment_id(name),
                entry_point="surefoot.worlds.env:make_env",
                kwargs={"name": name},
            )


register_all()
