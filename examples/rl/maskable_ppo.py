"""sb3-contrib's MaskablePPO: the shield's action_masks() are all it needs, and nothing is ever overruled."""

import sys

import gymnasium
import torch
from sb3_contrib import MaskablePPO

import surefoot as sf


def train(steps: int = 4000, seed: int = 0) -> sf.exact.Witness:
    torch.set_num_threads(1)
    witness = sf.exact.Witness(gymnasium.make("surefoot/thermal-testing-v0").unwrapped)
    env = sf.shield(witness)
    model = MaskablePPO("MlpPolicy", env, n_steps=256, batch_size=64, gamma=1.0, seed=seed, device="cpu")
    model.learn(steps)
    print(f"{witness.steps} steps, {witness.violations} violations, {env.replacements} actions overruled")
    assert env.replacements == 0
    return witness


if __name__ == "__main__":
    train(*map(int, sys.argv[1:]))
