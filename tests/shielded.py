"""Learners that surefoot did not write, each a few lines, and an agent that plays what it is told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

import surefoot as sf
from surefoot.agents.agent import Agent, Policy
from surefoot.errors import AssumptionBroken
from surefoot.runs.record import cost_event

Choose = Callable[[Any, Any, dict[str, Any]], int]


class Random:
    """Any action of the space, certified or not."""

    def __init__(self, world: sf.World, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def choose(self, env: Any, seen: Any, info: dict[str, Any]) -> int:
        return int(self._rng.integers(env.action_space.n))

    def learn(self, seen: Any, action: int, reward: float, after: Any, over: bool) -> None:
        pass


class Masked(Random):
    """Any action that the environment's masks allow."""

    def choose(self, env: Any, seen: Any, info: dict[str, Any]) -> int:
        return int(self._rng.choice(np.flatnonzero(info["action_mask"])))


class Greedy(Random):
    """Q-learning with ε-greedy choices over all actions; blind to limits."""

    def __init__(self, world: sf.World, seed: int) -> None:
        super().__init__(world, seed)
        self._q: dict[Any, Any] = defaultdict(lambda: np.zeros(32))

    def choose(self, env: Any, seen: Any, info: dict[str, Any]) -> int:
        n = env.action_space.n
        return int(self._rng.integers(n) if self._rng.random() < 0.2 else self._q[tuple(seen)][:n].argmax())

    def learn(self, seen: Any, action: int, reward: float, after: Any, over: bool) -> None:
        row = self._q[tuple(seen)]
        row[action] += 0.2 * (reward + (0.0 if over else self._q[tuple(after)].max()) - row[action])


class Tempted(Random):
    """Knows the truth, and always wants the action that is most likely to break a limit, then the best paid one."""

    def __init__(self, world: sf.World, seed: int) -> None:
        super().__init__(world, seed)
        self._world = world
        self._safe = sf.exact.safe_sets(world)[1]

    def choose(self, env: Any, seen: Any, info: dict[str, Any]) -> int:
        layer, h = self._world.problem.graph.layers[info["step"]], info["step"]
        pairs = np.arange(layer.state_ptr[info["index"]], layer.state_ptr[info["index"] + 1])
        return int(np.lexsort((-layer.reward[pairs], self._safe[h][pairs]))[0])


POLICIES = {"random": Random, "masked": Masked, "q-learning": Greedy, "tempted": Tempted}


def play(env: Any, policy: Random, steps: int, seed: int) -> None:
    """So many steps, and to the end of the last episode."""
    seen, info = env.reset(seed=seed)
    done = 0
    while True:
        action = policy.choose(env, seen, info)
        after, reward, terminated, truncated, info = env.step(action)
        policy.learn(seen, action, float(reward), after, terminated or truncated)
        seen, done = after, done + 1
        if terminated or truncated:
            if done >= steps:
                return
            seen, info = env.reset()


class Watched(sf.LsviNew):
    """LSVI-NEW that remembers whether the bounds of every plan held the truth."""

    def __init__(self, world: sf.World, **options: Any) -> None:
        self._truth, self.event = world, True
        super().__init__(world.problem, **options)

    def _make_plan(self) -> sf.Plan:
        plan = super()._make_plan()
        self.event = self.event and cost_event(self._truth, plan.bounds)
        return plan


class Fixed(Agent):
    """Plays ``actions[h, s]``; in states without an entry it is lost."""

    name: ClassVar[str] = "fixed"

    def __init__(self, problem: sf.Problem, actions: Mapping[tuple[int, Any], Any]) -> None:
        super().__init__(problem)
        self._policy = tuple(np.full(layer.n_states, -1) for layer in problem.graph.layers)
        for (h, s), a in actions.items():
            self._policy[h][problem.state_index(h, s)] = problem.pair_index(h, s, a)

    @property
    def guaranteed(self) -> bool:
        return False

    @property
    def promise(self) -> str:
        return "none"

    @property
    def constants(self) -> dict[str, Any]:
        return {"policy": [row.tolist() for row in self._policy]}

    def _choose(self, h: int, state: int) -> int:
        if self._policy[h][state] < 0:
            raise AssumptionBroken("lost", where=self.problem.naming.at_state(h, state))
        return int(self._policy[h][state])

    def policy(self) -> Policy:
        return self._policy
