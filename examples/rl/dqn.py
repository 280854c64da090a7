"""Stable-Baselines3's DQN, which learns from the data of its own old policies. Four environments share one learner."""

import sys

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import surefoot as sf


def train(steps: int = 4000, seed: int = 0) -> list[sf.exact.Witness]:
    torch.set_num_threads(1)
    world = sf.worlds.make("thermal/testing")
    learner = sf.LsviNew(world.problem)  # of costs and transitions; one for all four
    witnesses = [sf.exact.Witness(world.env(observation="features")) for _ in range(4)]
    envs = DummyVecEnv([lambda each=each: Monitor(sf.shield(each, learner)) for each in witnesses])
    model = DQN("MlpPolicy", envs, learning_starts=200, gamma=1.0, learning_rate=1e-3, seed=seed, device="cpu")
    model.learn(steps)
    print(f"{sum(w.steps for w in witnesses)} steps, {sum(w.violations for w in witnesses)} violations,", learner)
    return witnesses


if __name__ == "__main__":
    train(*map(int, sys.argv[1:]))
