"""The picture of docs/shield.md: reward and true violations over steps, of four learners on three worlds.

    .venv-rl/bin/python examples/rl/compare.py            # train what is missing in compared.json, then draw
    .venv-rl/bin/python examples/rl/compare.py --draw     # draw only

*bare*: Stable-Baselines3's PPO, which sees no limits. *penalised*: the same, but its reward loses 1 at every step whose
measured cost exceeds a limit. *shielded*: sb3-contrib's MaskablePPO inside ``sf.shield``, with the same settings.
*LSVI-NEW*: ours, which plans by itself. A witness that no learner sees counts the true violations.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import surefoot as sf

HERE = Path(__file__).parent
RESULTS = HERE / "compared.json"
IMAGES = HERE.parents[1] / "docs" / "images"
WORLDS = ("thermal/testing", "driving/testing", "rover/testing")
KINDS = ("bare", "penalised", "shielded", "LSVI-NEW")
SEEDS = range(5)
STEPS, BINS = 8192, 32
SETTINGS = {"n_steps": 256, "batch_size": 64, "n_epochs": 6, "learning_rate": 1e-3, "ent_coef": 0.01, "gamma": 1.0}


class Penalty(gymnasium.Wrapper):
    """Takes 1 from the reward of a step whose measured cost exceeds a limit, as many do by hand."""

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        costs = [info["measured"], *([info["terminal_cost"]] if "terminal_cost" in info else [])]
        over = any((cost > info["limits"]).any() for cost in costs)
        return observation, float(reward) - over, terminated, truncated, info


def trained(name: str, kind: str, seed: int) -> dict[str, Any]:
    """One run, in bins of steps: mean reward of the episodes that ended in each, and violations up to its end."""
    world = sf.worlds.make(name)
    if kind == "LSVI-NEW":
        length = world.problem.horizon - 1
        run = sf.run(sf.LsviNew(world.problem), world, episodes=STEPS // length, seed=seed)
        ends = length * np.arange(1, run.episodes + 1)
        rewards, violated = run.episodes_table.reward, np.repeat(ends, run.violations)
        return binned(ends, rewards, violated)
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    witness = sf.exact.Witness(world.env())
    env = {"bare": lambda e: e, "penalised": Penalty, "shielded": sf.shield}[kind](witness)
    model = (MaskablePPO if kind == "shielded" else PPO)("MlpPolicy", env, **SETTINGS, seed=seed, device="cpu")
    model.learn(STEPS)
    return binned(np.array(witness.ended_at), np.array(witness.rewards), np.array(witness.violated_at))


def binned(ends: Any, rewards: Any, violated: Any) -> dict[str, Any]:
    edges = np.linspace(0, STEPS, BINS + 1)
    number = np.minimum(np.digitize(ends, edges, right=True), BINS) - 1
    return {
        "reward": [round(float(rewards[number == i].mean()), 4) for i in range(BINS)],
        "violations": [int((violated <= edge).sum()) for edge in edges[1:]],
    }


def train_missing() -> None:
    found: dict[str, Any] = {"steps": STEPS, "values": {}, "runs": {}}
    if RESULTS.exists():
        found = json.loads(RESULTS.read_text())
    if found["steps"] != STEPS:
        raise SystemExit(f"{RESULTS} is of {found['steps']} steps; delete it first")
    for seed in SEEDS:
        for name in WORLDS:
            world = sf.worlds.make(name)
            values = {"fallback": sf.exact.fallback_value(world), "best safe": sf.exact.solve(world).value}
            found["values"][name] = {key: round(value, 4) for key, value in values.items()}
            for kind in KINDS:
                key = f"{name} {kind} {seed}"
                if key not in found["runs"]:
                    found["runs"][key] = trained(name, kind, seed)
                    print(key, found["runs"][key]["reward"][-1], found["runs"][key]["violations"][-1], flush=True)
                    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


# --- the picture ----------------------------------------------------------------------------------------

LOOKS = {  # Okabe and Ito's colours, each with dashes of its own
    "bare": ("#D55E00", (0, (5, 2))),
    "penalised": ("#CC79A7", (0, (6, 2, 1, 2))),
    "shielded": ("#009E73", "-"),
    "LSVI-NEW": ("#0072B2", (0, (2, 1))),
}


def interval(rows: Any) -> tuple[Any, Any, Any]:
    """Mean over seeds, and its 95 % interval by Student's t."""
    from scipy.stats import t

    table = np.array(rows, float)
    middle, n = table.mean(axis=0), len(table)
    width = t.ppf(0.975, n - 1) * table.std(axis=0, ddof=1) / np.sqrt(n)
    return middle - width, middle, middle + width


def draw() -> None:
    from surefoot.reports.pictures.style import DARK, LIGHT, pyplot, save_figure

    found = json.loads(RESULTS.read_text())
    at = np.linspace(0, STEPS, BINS + 1)[1:]
    for paper in (LIGHT, DARK):
        plt, context = pyplot(paper)
        with context:
            figure, grid = plt.subplots(2, len(WORLDS), figsize=(12, 6.6), sharex=True, layout="constrained")
            for column, name in zip(grid.T, WORLDS, strict=True):
                for part, axes in zip(("reward", "violations"), column, strict=True):
                    for kind, (colour, dashes) in LOOKS.items():
                        low, middle, high = interval([found["runs"][f"{name} {kind} {s}"][part] for s in SEEDS])
                        low = np.maximum(low, 0)
                        axes.plot(at, middle, color=colour, linestyle=dashes, linewidth=2, label=kind)
                        axes.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
                for level, value in found["values"][name].items():
                    column[0].axhline(value, color=paper.ink, linewidth=0.9, linestyle=(0, (1, 2)))
                    plate = {"facecolor": paper.background, "edgecolor": "none", "pad": 1, "alpha": 0.8}
                    place = {"xytext": (-2, 4), "textcoords": "offset points", "ha": "right", "bbox": plate}
                    column[0].annotate(level, (STEPS, value), fontsize=9, **place)
                column[0].set_title(name)
                column[1].set_yscale("symlog", linthresh=1)
                column[1].set_ylim(-0.15, None)
                column[1].set_xlabel("environment steps")
            grid[0, 0].set_ylabel("reward per episode")
            grid[1, 0].set_ylabel("true violations so far")
            figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
            print(save_figure(plt, figure, IMAGES / f"shield-{paper.name}.png"))


if __name__ == "__main__":
    if "--draw" not in sys.argv:
        train_missing()
    draw()
