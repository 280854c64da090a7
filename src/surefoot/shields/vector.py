"""A vector environment behind one shield: several episodes at a time and one learner.

The parts are processed in order, step by step, so data enter as from one environment with the same transitions. A plan
is made after a step in which some episode has ended; each episode keeps the plan that it began with.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from surefoot.agents.learner import Learner
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.arrays import BoolArray
from surefoot.shields.following import Follower, one_step_of
from surefoot.shields.reading import Transition
from surefoot.shields.shield import may_count


class VectorShield(gymnasium.vector.VectorWrapper):
    """A shielded vector environment, made by :func:`surefoot.shield`; ``infos`` hold what a shield's ``info`` holds."""

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any], followers: list[Follower]) -> None:
        super().__init__(env)
        self._followers = followers
        self._mode = env.metadata.get("autoreset_mode")
        if self._mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise InvalidInput(
                "a vector shield needs environments that reset themselves",
                got=f"autoreset_mode {self._mode}",
                fix="Make the vector environment with AutoresetMode.NEXT_STEP, the default, or SAME_STEP.",
            )
        self._seen: Any = None
        self._counts = [True] * len(followers)
        self._resetting = [False] * len(followers)  # in the step that resets

    @property
    def learner(self) -> Learner:
        """The learner that certifies."""
        return self._followers[0].learner

    @property
    def replacements(self) -> int:
        """How many actions were overruled."""
        return sum(follower.replacements for follower in self._followers)

    def action_masks(self) -> BoolArray:
        """(environments, n) the certified actions; if an episode is over and no action is played, the first one."""
        masks = np.stack([follower.mask for follower in self._followers])
        masks[self._resetting, 0] = True
        return masks

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every part."""
        if options is not None and "reset_mask" in options:
            raise InvalidInput("a vector shield resets all its parts", got="options['reset_mask']")
        if seed is not None:
            seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else list(seed)
            self._counts = may_count(self.learner, seeds)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        for i, follower in enumerate(self._followers):
            follower.begin(_part(observations, i), _info(infos, i), self._counts[i])
        self._resetting = [False] * self.num_envs
        self._seen = observations
        return observations, self._with_masks(infos)

    def step(self, actions: Any) -> tuple[Any, Any, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play the actions that are certified, and replace those that are not."""
        played, resetting = self._checked(actions), self._resetting
        for i, follower in enumerate(self._followers):
            if not resetting[i]:
                played[i] = follower.choose(int(played[i]))
        ended = 0
        self._resetting = [False] * self.num_envs
        with one_step_of(*self._followers):
            observations, rewards, terminated, truncated, infos = self.env.step(played)
            for i, follower in enumerate(self._followers):
                if resetting[i]:  # this step was the reset, and its action was ignored
                    continue
                over = bool(terminated[i]), bool(truncated[i])
                last = self._last(observations, infos, i) if any(over) else (_part(observations, i), _info(infos, i))
                step = Transition(_part(self._seen, i), int(played[i]), last[0], float(rewards[i]), *over, last[1])
                if follower.arrive(step):
                    self._refuse_longer(over, follower)
                    ended += follower.end()
                    self._resetting[i] = True
        if ended:
            self.learner.count_episodes(ended)
        for i, follower in enumerate(self._followers):
            if resetting[i] or (self._resetting[i] and self._mode == AutoresetMode.SAME_STEP):
                self._resetting[i] = False
                follower.begin(_part(observations, i), _info(infos, i), self._counts[i])
        self._seen = observations
        return observations, rewards, terminated, truncated, self._with_masks(infos)

    def _checked(self, actions: Any) -> NDArray[np.int64]:
        """Check that there is a whole number for each part, and that each is in an episode or about to begin one."""
        if any(part.place is None and not over for part, over in zip(self._followers, self._resetting, strict=True)):
            raise OutOfOrder("step before reset, or after an error", fix="Call reset first.")
        found = np.asarray(actions)
        if found.shape != (self.num_envs,) or found.dtype.kind not in "iu":
            got = f"shape {found.shape}, {found.dtype}"
            raise InvalidInput(f"actions must be {self.num_envs} whole numbers, one for each environment", got=got)
        return found.astype(np.int64)

    def _last(self, observations: Any, infos: dict[str, Any], i: int) -> tuple[Any, dict[str, Any]]:
        """The last observation and info of an episode that has ended."""
        if self._mode == AutoresetMode.NEXT_STEP:
            return _part(observations, i), _info(infos, i)
        return infos["final_obs"][i], _info(infos["final_info"], i)

    def _refuse_longer(self, over: tuple[bool, bool], follower: Follower) -> None:
        if not any(over):
            raise InvalidInput(
                "the episodes of the vector environment are longer than the problem's horizon",
                got=f"horizon {follower.learner.problem.horizon}",
                fix="Make it with max_episode_steps = horizon − 1, so that it truncates them itself.",
            )

    def _with_masks(self, infos: dict[str, Any]) -> dict[str, Any]:
        followers = self._followers
        return infos | {
            "action_mask": np.stack([follower.mask.view(np.int8) for follower in followers]),
            "exists_mask": np.stack([follower.exists.view(np.int8) for follower in followers]),
            "replaced": np.array([follower.replaced for follower in followers]),
            "replacements": np.array([follower.replacements for follower in followers]),
            "certificate": [follower.certificate for follower in followers],
        }


def _part(observations: Any, i: int) -> Any:
    """The observation of one environment."""
    if isinstance(observations, dict):
        return {key: _part(value, i) for key, value in observations.items()}
    return tuple(_part(value, i) for value in observations) if isinstance(observations, tuple) else observations[i]


def _info(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """The info of one environment."""
    return {
        key: _info(value, i) if isinstance(value, dict) else value[i]
        for key, value in infos.items()
        if not key.startswith("_") and (f"_{key}" not in infos or infos[f"_{key}"][i])
    }
