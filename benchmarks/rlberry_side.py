"""rlberry-scool's LSVI-UCB on the grid, run by the Python of its own environment: seconds per episode, as JSON.

    python benchmarks/rlberry_side.py 50 100

One number per count of episodes. The features of a state and an action are one-hot, as is usual for it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import grid  # the folder of this script is on the path, the repository is not
import numpy as np
from rlberry.envs.finite_mdp import FiniteMDP
from rlberry_scool.agents import LSVIUCBAgent
from rlberry_scool.agents.features import FeatureMap


class OneHot(FeatureMap):
    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.shape = (states * actions,)
        self.table = np.eye(states * actions).reshape(states, actions, -1)

    def map(self, observation: int, action: int) -> Any:
        return self.table[observation, action]


def seconds_per_episode(episodes: int) -> float:
    states, actions = grid.STATES, grid.MOVES
    rewards = np.array([[grid.reward(s, a) for a in actions] for s in states])
    chances = np.array([[[grid.probability(s, a, after) for after in states] for a in actions] for s in states])
    env = FiniteMDP(rewards, chances, grid.START)
    agent = LSVIUCBAgent(env, grid.STEPS, lambda env: OneHot(len(states), len(actions)), gamma=1.0)
    agent.fit(1)  # everything imported and set up
    begin = time.perf_counter()
    agent.fit(episodes)
    return (time.perf_counter() - begin) / episodes


if __name__ == "__main__":
    print(json.dumps([seconds_per_episode(int(word)) for word in sys.argv[1:]]))
