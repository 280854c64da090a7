"""walk: a sled on an endless track, pushed on by gusts. The track never ends, so the graph grows (spec 9).

**State.** (place, speed): whole numbers from 0, as large as may be. **Action.** Brake, roll or push: the speed changes
by −1, 0 or 1, and by 1 more in a gust; it is never negative. Then the place grows by the speed. **Known.** The track, a
bump every 8 places; rewards, 0.1 at rest and up to 1 from speed 4 on; two winds, calm (a gust in one of ten steps) and
stormy (in nine of ten).

**Hidden.** How often each wind blows; and the jolt, 0.05 + 0.3·v/4 + 0.5·bump·v/4 at the speed v and the place that the
sled comes to, of which the first number, at rest, is known (the anchor). **Limit.** jolt ≤ 0.7, measured with noise of
scale 0.05. **Fallback.** Brakes: from rest it stays where it is.

**Look-ahead.** At speed 5 the flat track is smooth (0.43), but a bump is not (1.05), and the sled slows down by 1 a
step at most, in a gust not at all: a fast sled must know where the next bumps are. Most of the places and speeds that
some sequence of actions could reach are never reached by a safe sled: a graph that grows leaves them out.

``walk/testing`` is small enough to be built whole, and is. The others grow, from one state per step.
"""

from __future__ import annotations

import math
from typing import Any

from surefoot.checks import whole as whole_number
from surefoot.model.labels import Label
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.worlds.world import World

__all__ = ["bump", "walk"]

SIZES = {"testing": 6, "small": 12, "long": 40}  # steps
CHANGES = {"brake": -1, "roll": 0, "push": 1}
APART = 8  # places from bump to bump
GUSTS = (0.1, 0.9)  # of a calm and of a stormy wind
WINDS = (0.7, 0.3)  # how often each blows, hidden
JOLT = (0.05, 0.3, 0.5)  # at rest, by speed, by speed on a bump; the last two are hidden
UNIT = 4.0  # of speed
LONGEST = 1.0e3  # no row of features is longer: a speed of 2,800


def bump(place: float) -> float:
    """How high the track is bent there, 0 to 1."""
    return (1.0 + math.cos(2.0 * math.pi * place / APART)) / 2.0 if place > 0.5 * APART else 0.0


def walk(
    size: str = "small",
    *,
    horizon: int | None = None,
    bound: float = 0.7,
    grows: bool | None = None,
    most_states: int = 100_000,
) -> World:
    """A sled on an endless track.

    Args:
        size: "testing" (6 steps, the whole graph), "small" (12 steps) or "long" (40 steps).
        horizon: number of steps, instead of the size's.
        bound: the limit on jolts.
        grows: False builds the whole graph, which ends with the horizon.
        most_states: of a graph that grows.
    """
    steps = SIZES[size] if horizon is None else whole_number("horizon", horizon, 2)
    growing = size != "testing" if grows is None else grows
    known: dict[str, Any] = {
        "horizon": steps,
        "start": (0, 0),
        "actions": lambda h, s: list(CHANGES),
        "successors": lambda h, s, a: [_after(s, a, gust) for gust in (0, 1)] if _moves(s, a) else [s],
        "reward": lambda h, s, a: min(1.0, 0.1 + 0.9 * s[1] / UNIT),
        "cost_features": lambda h, s, a, s2: [1.0, s2[1] / UNIT, bump(s2[0]) * s2[1] / UNIT],
        "transition_features": _chances,
        "fallback": lambda h, s: "brake",
        "anchor": lambda h: ([1.0, 0.0, 0.0], JOLT[0]),
        "limits": Limit("jolt", bound=bound, noise=0.05, norm=0.7),
        "stationary_costs": True,
        "stationary_transitions": True,
    }
    if growing:
        problem = Problem.growing(**known, most_states=most_states, longest_row=LONGEST)
    else:
        problem = Problem.from_functions(**known)
    return World(problem, transition=WINDS, cost=[JOLT])


def _moves(s: Label, a: Label) -> bool:
    """False where a gust makes no difference: the sled rests and brakes."""
    return bool(s[1] + CHANGES[a] >= 0)


def _after(s: Label, a: Label, gust: int) -> tuple[int, int]:
    place, speed = s
    faster = max(0, speed + CHANGES[a] + gust)
    return place + faster, faster


def _chances(h: int, s: Label, a: Label, s2: Label) -> list[float]:
    """How likely this is in each wind."""
    if not _moves(s, a):
        return [1.0, 1.0]
    return [gust if s2 == _after(s, a, 1) else 1.0 - gust for gust in GUSTS]
