"""``sf.shield(env, learner)``: whatever learns in this environment, only certified actions are played.

The shield follows the environment step by step with a learner of its own. It uses neither rewards nor knowledge of how
an action was chosen.

**Why a foreign policy keeps the guarantee.** The confidence statements of spec 3 and 6 hold however the data were
gathered, as long as the measurement could not be known when the action was taken. Formally: the rows x_1, x_2, … of
costs are predictable (x_t is decided before the noise η_t is drawn, by the past, the policy's random numbers and the
successor), and η_t is σ-sub-Gaussian given all of that. Then Σ x_t η_t is a martingale, and its self-normalised bound
holds for all t at once, whoever chose the actions: our planner, a half-trained neural network, or an adversary who
knows the plan. The same holds for transitions, whose targets are the values of the plan in force. So with probability
at least 1 − p the bounds of *every* plan hold, what a plan certifies is safe with all that may follow (Theorem 1), and
a policy that is masked or overruled cannot break a limit. The shield records the action that was played, not the one
requested.

What breaks it: a policy that sees the noise before it acts, the same noise twice (the shield does not count episodes
after a seed that its learner has learned from), or costs of another action than the one played. With ``episode_noise``
a measurement tells about the noise of the next one: then the policy must not act on measurements of the same episode,
and episodes that share a learner are played one after another, or in step (spec 3).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from surefoot.agents.learner import Learner
from surefoot.agents.lsvi_new import LsviNew
from surefoot.checks import of_kind, one_of
from surefoot.errors import InvalidInput, OutOfOrder
from surefoot.model.arrays import BoolArray
from surefoot.model.growing import refuse_growing
from surefoot.model.labels import Label
from surefoot.model.measured import Cost
from surefoot.model.problem import Problem
from surefoot.model.rays import refuse_rays
from surefoot.shields.following import OUTSIDE, Follower, check_action, one_step_of
from surefoot.shields.reading import Foreign, Own, Reader, Transition
from surefoot.worlds.env import SurefootEnv

__all__ = ["Shield", "Transition", "shield"]


def shield(
    env: Any,
    learner: Learner | None = None,
    *,
    outside: str = "fallback",
    state: Callable[[Any], Label] | None = None,
    cost: Callable[[Transition], Cost] | None = None,
    terminal_cost: Callable[[Transition], Cost] | None = None,
    features: Callable[[Transition], ArrayLike] | None = None,
    actions: Sequence[Label] | None = None,
) -> Any:
    """Put an environment behind a shield: a Gymnasium wrapper, or a vector wrapper for a vector environment.

    Args:
        env: one of our environments, or any other with a ``Discrete`` action space, which needs ``state`` and ``cost``;
            or a Gymnasium vector environment of either, whose parts share the learner.
        learner: one of our agents with certified sets, by default ``sf.LsviNew(problem)`` with the environment's own
            problem. Several shields in one process may share a learner, which then has one plan and all their data.
        outside: what to play instead of an action that is not certified: ``"fallback"``, the fallback's action (where
            it has none, the plan's best certified one), or ``"nearest"``, the certified action with the nearest number.
        state: for a foreign environment, the problem's state that an observation stands for.
        cost: for a foreign environment, the measured cost of a :class:`Transition`; by default ``info["cost"]``.
        terminal_cost: likewise for the last state; by default ``info["terminal_cost"]`` if there is one.
        features: for a foreign environment, the cost features at which the cost was measured; by default the declared
            ones, which is not enough if an action has several rows (spec 9).
        actions: for a foreign environment, the problem's names for its actions 0, 1, …; by default these numbers.

    ``action_masks()`` gives the certified actions (n,), as sb3-contrib expects. ``info`` has

        action_mask    (n,) int8, 1 where the action is certified       replaced      the last action was overruled
        exists_mask    (n,) int8, 1 where the action exists             replacements  how many have been, in all
        certificate    plan (its number), certified_actions, consistent, guaranteed, promise, and counted: whether the
                       learner uses this episode

    A foreign environment's episode is truncated at the problem's horizon. If it reaches a state that the problem
    declared impossible, it continues with the fallback alone, and the certificate says so; if the fallback has no
    action there or the problem does not know the state, it stops with an error. From then on no certificate of this
    learner promises anything, because the declaration is wrong.

    The guarantee is the learner's, whatever the policy: :mod:`surefoot.shields.shield` says why.

    Examples:
        >>> env = sf.shield(sf.worlds.make("thermal/testing").env())
        >>> observation, info = env.reset(seed=0)
        >>> env.action_masks(), info["certificate"]["promise"]
        (array([ True,  True, False]), 'every step safe with probability ≥ 0.95')
        >>> *_, info = env.step(2)  # full power, which nobody has proved safe yet
        >>> info["action"], info["replaced"]
        (0, True)
    """
    of_kind(
        env,
        (gymnasium.Env, gymnasium.vector.VectorEnv),
        "a shield needs an environment",
        "Of a World: world.env(); a Plant has sf.PlantAgent, and no environment.",
    )
    foreign = state is not None
    if not foreign and any(each is not None for each in (cost, terminal_cost, features, actions)):
        rule = "cost, terminal_cost, features and actions are for foreign environments"
        raise InvalidInput(rule, fix="Give state, too.")
    one_of("outside", OUTSIDE, outside)
    vector = isinstance(env, gymnasium.vector.VectorEnv)
    known = None if foreign else _problem_of(env, vector)
    learner = _learner(learner, known)
    space = env.single_action_space if vector else env.action_space
    if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise InvalidInput("a shield needs a Discrete action space that starts at 0", got=repr(space))
    n = int(space.n)
    reader: Reader
    if state is None:
        reader = Own(learner.problem, n)
    else:
        costs = cost or _cost, terminal_cost or _terminal_cost
        reader = Foreign(learner.problem, n, state, *costs, features, actions)
    if vector:
        from surefoot.shields.vector import VectorShield

        _refuse_partial_episodes(learner, env.num_envs)

        return VectorShield(env, [Follower(learner, reader, n, outside) for _ in range(env.num_envs)])
    return Shield(env, Follower(learner, reader, n, outside))


def _problem_of(env: Any, vector: bool) -> Problem:
    """The problem of one of our environments; the parts of a vector environment must share it."""
    try:
        parts = env.get_attr("problem") if vector else [env.unwrapped.problem]
    except AttributeError:
        parts = []
    ours = parts and all(isinstance(part, Problem) for part in parts)
    if not ours or not (vector or isinstance(env.unwrapped, SurefootEnv)):
        raise InvalidInput(
            "a foreign environment needs a function from observations to states",
            got=repr(env),
            fix="Give state=lambda observation: …, and a learner that was made with your Problem.",
        )
    found: Problem = parts[0]
    for i, part in enumerate(parts):
        if part is not found and part.digest != found.digest:
            fix = "Give each its own shield and learner."
            raise InvalidInput("environments of different problems cannot share a shield", got=f"0 and {i}", fix=fix)
    return found


def _learner(learner: Any, known: Problem | None) -> Learner:
    if learner is None:
        if known is None:
            raise InvalidInput("a foreign environment needs a learner", fix="Give sf.LsviNew(problem).")
        learner = LsviNew(known)
    if not isinstance(learner, Learner):
        fix = "Give an agent with certified sets, such as sf.LsviNew(problem)."
        raise InvalidInput("a shield needs a learner", got=repr(learner), fix=fix)
    found: Learner = learner
    refuse_rays(found.problem, "a shield")
    refuse_growing(found.problem, "a shield")  # which keeps the numbers of transitions
    if known is not None and known is not found.problem and known.digest != found.problem.digest:
        fix = "Make it with sf.LsviNew(env.unwrapped.problem)."
        raise InvalidInput("the learner was made for a different problem from the environment's", fix=fix)
    return found


def _refuse_partial_episodes(learner: Learner, environments: int) -> None:
    """If rows of one regression share an offset, plans may use only whole episodes (spec 3)."""
    if environments > 1 and learner.problem.shared_offsets and learner.problem.stationary_costs:
        raise InvalidInput(
            "episodes are played one at a time where costs are stationary and a limit declares episode_noise",
            got=f"{environments} environments",
            fix="Use a vector environment of one, or a learner for each environment.",
        )


def _cost(step: Transition) -> Cost:
    if "cost" not in step.info:
        raise InvalidInput(
            "the environment does not say what a step costs",
            got=f"no 'cost' in {sorted(step.info)}",
            fix="Give cost=lambda step: …; it may use step.reward, step.info and step.next_observation.",
        )
    found: Cost = step.info["cost"]
    return found


def _terminal_cost(step: Transition) -> Cost:
    found: Cost = step.info.get("terminal_cost")
    return found


def may_count(learner: Learner, seeds: Sequence[int | None]) -> list[bool]:
    """Which environments draw noise that their learner has not seen; remembers their seeds."""
    played = () if learner.draws is None else learner.draws.seeds
    fresh = []
    for seed in seeds:
        fresh.append(seed is None or (seed not in learner.environment_seeds and seed not in played))
        if seed is not None:
            learner.environment_seeds.add(int(seed))
    if not all(fresh):
        warnings.warn(
            "the shield's learner has learned from this seed before: what follows draws the same noise again and is "
            "not counted. Pass a seed to the first reset only.",
            stacklevel=3,
        )
    return fresh


class Shield(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One environment behind a shield; made by :func:`shield`."""

    def __init__(self, env: gymnasium.Env[Any, Any], follower: Follower) -> None:
        super().__init__(env)
        self._follower = follower
        self._seen: Any = None
        self._counts = True

    @property
    def learner(self) -> Learner:
        """The learner that certifies."""
        return self._follower.learner

    @property
    def replacements(self) -> int:
        """How many actions were overruled."""
        return self._follower.replacements

    def action_masks(self) -> BoolArray:
        """(n,) the certified actions of the current state; none once an episode is over."""
        return self._follower.mask.copy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and abandon one in progress, of which what was seen counts."""
        if seed is not None:
            (self._counts,) = may_count(self.learner, [seed])
        observation, info = self.env.reset(seed=seed, options=options)
        self._follower.begin(observation, info, self._counts)
        self._seen = observation
        return observation, self._with_masks(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play the action if it is certified, otherwise another one instead."""
        follower = self._follower
        if follower.place is None:
            raise OutOfOrder("step before reset, or after the end of the episode", fix="Call reset first.")
        played = follower.choose(check_action(action))
        with one_step_of(follower):
            observation, reward, terminated, truncated, info = self.env.step(played)
            seen = Transition(self._seen, played, observation, float(reward), terminated, truncated, info)
            done = follower.arrive(seen)
        if done:
            follower.learner.count_episodes(follower.end())
            truncated = truncated or not terminated
        self._seen = observation
        return observation, reward, terminated, truncated, self._with_masks(info)

    def _with_masks(self, info: dict[str, Any]) -> dict[str, Any]:
        follower = self._follower
        info["action_mask"] = follower.mask.copy().view(np.int8)
        info["exists_mask"] = follower.exists.copy().view(np.int8)
        info["replaced"] = follower.replaced
        info["replacements"] = follower.replacements
        info["certificate"] = follower.certificate
        return info
