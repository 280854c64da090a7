"""A pump with a known truth, and logs of its fallback, truthful or not. For tests of calibration and of check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import surefoot as sf

SPEEDS = {"idle": 0.0, "slow": 0.5, "fast": 1.0}
NOISE = 0.05
RISES = {"idle": (-1, 0), "slow": (0, 1, 2), "fast": (1, 2, 3)}


def successors(h: int, level: int, speed: str) -> list[int]:
    return sorted({max(0, min(8, level + rise)) for rise in RISES[speed]})


def true_strain(x: Sequence[float]) -> float:
    return 0.2 * x[0] + 0.4 * x[1] + 0.1 * x[2]


def features(h: int, level: int, speed: str, following: int) -> list[float]:
    return [1.0, following / 8, SPEEDS[speed]]


def pump(**changes: Any) -> sf.Problem:
    """Declared rightly: true_strain has norm 0.46, readings of it have noise NOISE."""
    declared: dict[str, Any] = {
        "horizon": 6,
        "start": 0,
        "actions": lambda h, level: list(SPEEDS),
        "successors": successors,
        "reward": lambda h, level, speed: 0.2 + 0.8 * SPEEDS[speed],
        "cost_features": features,
        "transition_features": lambda h, level, speed, following: [1 / len(successors(h, level, speed))],
        "fallback": lambda h, level: "slow" if level < 4 else "idle",
        "limits": sf.Limit("strain", bound=0.68, noise=NOISE, norm=0.6),
        "stationary_costs": True,
        "stationary_transitions": True,
    }
    return sf.Problem.from_functions(**(declared | changes))


def log(
    problem: sf.Problem,
    rng: np.random.Generator,
    episodes: int,
    *,
    strain: Callable[[Sequence[float]], float] = true_strain,
    noise: float = NOISE,
    offset: float = 0.0,
    clip: float = np.inf,
    leak: bool = False,
) -> list[dict[str, Any]]:
    """Rows of the fallback; ``offset``: shared within an episode; ``leak``: now and then the level falls by two."""
    rows = list[dict[str, Any]]()
    for episode in range(episodes):
        level, shared = 0, offset * rng.normal()
        for h in range(problem.horizon - 1):
            speed = problem.fallback_action(h, level)
            following = int(rng.choice(problem.successors(h, level, speed)))
            if leak and level >= 3 and rng.random() < 0.1:
                following = level - 2
            cost = strain(features(h, level, speed, following)) + noise * rng.normal() + shared
            row = {"episode": episode, "step": h, "state": level, "action": speed, "next_state": following}
            rows.append({**row, "cost": float(min(cost, clip))})
            if following not in problem.successors(h, level, speed):
                break
            level = following
    return rows
