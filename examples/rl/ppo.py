"""Stable-Baselines3's unmodified PPO with one more line: sf.shield. Actions that are not certified are overruled.

make rl        # once: the environment with its packages
.venv-rl/bin/python examples/rl/ppo.py
"""

import sys

import gymnasium
import torch
from stable_baselines3 import PPO

import surefoot as sf


def train(steps: int = 4000, seed: int = 0) -> sf.exact.Witness:
    torch.set_num_threads(1)
    witness = sf.exact.Witness(gymnasium.make("surefoot/thermal-testing-v0").unwrapped)  # counts what truly happened
    env = sf.shield(witness)  # the line
    model = PPO("MlpPolicy", env, n_steps=256, batch_size=64, ent_coef=0.01, gamma=1.0, seed=seed, device="cpu")
    model.learn(steps)
    print(f"{witness.steps} steps, {witness.violations} violations, {env.replacements} actions overruled")
    first, last = mean(witness.rewards[:100]), mean(witness.rewards[-100:])
    print(f"reward per episode: {first:.2f} in the first 100, {last:.2f} in the last 100")
    return witness


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


if __name__ == "__main__":
    train(*map(int, sys.argv[1:]))
