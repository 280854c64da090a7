"""A witness of an environment: it records what truly happened, to compare learners, never for the learner itself.

It wraps one of our environments directly, inside any shield, and changes nothing. An agent may not see the truth, so
the witness is here.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from surefoot.errors import InvalidInput
from surefoot.exact.best import terminal_within
from surefoot.model.rays import refuse_rays
from surefoot.worlds.env import SurefootEnv


class Witness(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps whose true cost breaks a limit (spec 8) or that enter a forbidden state (spec 9), and the reward
    of every episode.

    Examples:
        >>> witness = sf.exact.Witness(sf.worlds.make("thermal/testing").env())
        >>> _ = witness.reset(seed=0)
        >>> for _ in range(5):
        ...     _ = witness.step(2)  # full power
        >>> witness.steps, witness.violations, len(witness.rewards)
        (5, 2, 1)
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        if not isinstance(env, SurefootEnv):
            raise InvalidInput("a witness must wrap one of our environments directly", got=repr(env))
        self._world = env._world
        refuse_rays(self._world.problem, "a witness")
        self._within_last = terminal_within(self._world)
        self._state = 0
        self._reward = 0.0
        self.steps = 0
        self.violated_at: list[int] = []  # the number of every step that broke a limit, from 1
        self.rewards: list[float] = []  # of every episode that came to its end
        self.ended_at: list[int] = []  # after how many steps

    @property
    def violations(self) -> int:
        """Steps that broke a limit."""
        return len(self.violated_at)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._state, self._reward = info["index"], 0.0
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        if self._violates(info["step"] - 1, info["played"], info["index"]):
            self.violated_at.append(self.steps)
        self._state = info["index"]
        self._reward += float(reward)
        if terminated:
            self.rewards.append(self._reward)
            self.ended_at.append(self.steps)
        return observation, reward, terminated, truncated, info

    def _violates(self, h: int, played: int, after: int) -> bool:
        world, layer = self._world, self._world.problem.graph.layers[h]
        edge = layer.edge_to(layer.pairs_of(self._state)[played], after)
        assert edge is not None
        broken = bool((world.arrival_costs[h][edge] > world.problem.violation_thresholds[h]).any())
        return broken or (h + 1 == world.problem.horizon - 1 and not self._within_last[after])
