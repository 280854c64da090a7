"""Learners of other libraries inside the shield. Run by ``make rl``, which has torch; not a part of ``make test``.

Each learner trains bare and shielded on the same worlds. Bare it breaks limits; shielded it does not, unless the
confidence event failed, and it earns more than the fallback.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

import surefoot as sf
from tests.shielded import Watched

ROOT = Path(__file__).parents[2]
STEPS = 2048
torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PPO_SETTINGS: dict[str, Any] = {"n_steps": 256, "batch_size": 64, "n_epochs": 4, "gamma": 1.0, "device": "cpu"}


def ppo(env: Any, seed: int) -> Any:
    return PPO("MlpPolicy", env, seed=seed, **PPO_SETTINGS)


def maskable(env: Any, seed: int) -> Any:
    return MaskablePPO("MlpPolicy", env, seed=seed, **PPO_SETTINGS)


def dqn(env: Any, seed: int) -> Any:
    return DQN("MlpPolicy", env, seed=seed, learning_starts=100, gamma=1.0, device="cpu")


LEARNERS: dict[str, Callable[[Any, int], Any]] = {"ppo": ppo, "maskable": maskable, "dqn": dqn}


@pytest.mark.parametrize("name", ["thermal/testing", "driving/testing", "rover/testing"])
@pytest.mark.parametrize("kind", LEARNERS)
def test_a_learner_inside_the_shield(kind: str, name: str, seed: int) -> None:
    world = sf.worlds.make(name)
    learner, witness = Watched(world), sf.exact.Witness(world.env(observation="features"))
    env = sf.shield(witness, learner)
    LEARNERS[kind](env, seed).learn(STEPS)
    assert witness.steps >= STEPS
    assert witness.violations == 0 or not learner.event
    assert (env.replacements == 0) is (kind == "maskable")


@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_the_same_learner_without_it(kind: str, seed: int) -> None:
    for name in ("thermal/testing", "driving/testing", "rover/testing"):
        witness = sf.exact.Witness(sf.worlds.make(name).env(observation="features"))
        LEARNERS[kind](witness, seed).learn(STEPS)
        assert witness.violations > 10


@pytest.mark.parametrize("name", [n for n in sf.worlds.names() if "ladder/1e" not in n and not n.endswith("-ac")])
def test_check_env_of_stable_baselines(name: str) -> None:
    for observation in ("index", "features"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=".*[Ww]e recommend.*")  # of flat or symmetric spaces
            check_env(sf.worlds.make(name).env(observation=observation), skip_render_check=True)


def test_by_id_alone() -> None:
    model = PPO("MlpPolicy", "surefoot/thermal-testing-v0", n_steps=64, batch_size=32, device="cpu")
    model.learn(64)
    make_vec_env("surefoot/thermal-testing-v0", n_envs=2).reset()


def test_spawned_workers_find_the_environments() -> None:
    code = """
import gymnasium, surefoot
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv
if __name__ == "__main__":
    for name in ("surefoot/thermal-testing-v0", "surefoot:surefoot/thermal-testing-v0"):
        envs = make_vec_env(name, n_envs=2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "spawn"})
        envs.reset()
        envs.close()
    print("ok")
"""
    script = Path(ROOT / "build" / "spawned.py")
    script.parent.mkdir(exist_ok=True)
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == "ok\n", done.stderr


def test_eight_of_theirs_share_a_learner(seed: int) -> None:
    """Their vector environments call each shield in turn; the learner is the same object."""
    world = sf.worlds.make("thermal/testing")
    learner = Watched(world)
    witnesses = [sf.exact.Witness(world.env()) for _ in range(8)]
    envs = DummyVecEnv([lambda each=each: sf.shield(each, learner) for each in witnesses])
    maskable(envs, seed).learn(STEPS)
    assert sum(w.steps for w in witnesses) >= STEPS
    assert learner.episodes >= sum(len(w.rewards) for w in witnesses)
    assert sum(w.violations for w in witnesses) == 0 or not learner.event


@pytest.mark.parametrize("name", ["ppo", "maskable_ppo", "dqn", "single_file"])
def test_the_examples_run(name: str, seed: int) -> None:
    train = runpy.run_path(str(ROOT / "examples" / "rl" / f"{name}.py"))["train"]
    found = train(2048, seed)
    witnesses = found if isinstance(found, list) else [found]
    assert sum(w.steps for w in witnesses) >= 2000
    assert sum(w.violations for w in witnesses) == 0


def test_the_programs_of_the_page_run() -> None:
    """Those that need torch; ``make test`` runs the others."""
    names: dict[str, Any] = {"sf": sf}
    programs = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "shield.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 2
    for source in programs:
        exec(compile(source, "shield.md", "exec"), names)
    assert names["env"].learner.episodes > 300


def test_a_learner_of_another_library_earns_more_than_the_fallback(seed: int) -> None:
    world = sf.worlds.make("thermal/testing")
    witness = sf.exact.Witness(world.env())
    maskable(sf.shield(witness), seed).learn(2 * STEPS)
    assert np.mean(witness.rewards[-50:]) > sf.exact.fallback_value(world) + 0.5


def test_gymnasiums_own_vector_environment(seed: int) -> None:
    spawn = {"context": "spawn"}  # a fork would hang: torch has threads
    made = gymnasium.make_vec("surefoot/driving-testing-v0", 8, vectorization_mode="async", vector_kwargs=spawn)
    envs = sf.shield(made)
    envs.reset(seed=seed)
    envs.action_space.seed(seed)
    for _ in range(100):
        envs.step(envs.action_space.sample())
    assert envs.learner.episodes > 50
    envs.close()
