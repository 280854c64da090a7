"""A tank that must not overflow, for tests of spec 9: costs of the action alone, and a level that is forbidden."""

from __future__ import annotations

from typing import Any

import numpy as np

import surefoot as sf

FULL = 4
TRUTH = {"transition": [0.7, 0.3], "cost": [0.2, 0.25, 0.5]}


def levels(s: int, a: int) -> list[int]:
    """What may follow: it drains by one or not at all, and fills by ``a``."""
    return sorted({max(0, s - 1 + a), min(FULL, s + a)})


def features(h: int, s: int, a: int) -> list[float]:
    return [1.0, s / FULL, a / 2]


def tank(*, by_pair: bool = True, forbidden: Any = True, horizon: int = 6, **options: Any) -> sf.Problem:
    declared: dict[str, Any] = {
        "horizon": horizon,
        "start": 0,
        "actions": lambda h, s: [0, 1, 2],
        "successors": lambda h, s, a: levels(s, a) if s + a - 1 <= FULL else [FULL],
        "reward": lambda h, s, a: 0.1 + 0.4 * a,
        "cost_features": features if by_pair else lambda h, s, a, s2: features(h, s, a),
        "transition_features": kernels,
        "fallback": lambda h, s: 0,
        "forbidden": {True: lambda h, s: s == FULL, False: None}.get(forbidden, forbidden),
        "limits": sf.Limit("strain", bound=0.8, noise=0.02, norm=0.7),
    }
    return sf.Problem.from_functions(**{**declared, **options})


def kernels(h: int, s: int, a: int, s2: int) -> list[float]:
    after = levels(s, a) if s + a - 1 <= FULL else [FULL]
    return [1.0, 1.0] if len(after) == 1 else [1.0, 0.0] if s2 == after[0] else [0.0, 1.0]


def tank_world(**options: Any) -> sf.World:
    return sf.World(tank(**options), **TRUTH)  # type: ignore[arg-type]


def cell(rows: list[list[float]], limit: sf.Limit | None = None) -> sf.Problem:
    """One state and two actions: that of the fallback has a row of zeros, the other has these; three steps."""
    d = len(rows[0])
    return sf.Problem.from_arrays(
        horizon=3,
        start=0,
        state_ptr=np.array([0, 2]),
        pair_ptr=np.array([0, 1, 2]),
        successors=np.array([0, 0]),
        reward=np.array([0.1, 0.9]),
        cost_features=np.array([[0.0] * d, *rows]),
        row_ptr=np.array([0, 1, 1 + len(rows)]),
        transition_features=np.ones((2, 1)),
        fallback=np.array([0]),
        limits=limit or sf.Limit("load", bound=0.5, noise=0.01, norm=2.0),
        stationary_costs=True,
    )
