"""Small problems for tests of the diagnosis, with numbers that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import surefoot as sf
from surefoot.model.layer import NO_ACTION

HEAT = sf.Limit("heat", bound=1.0, noise=0.1, norm=1.0)
Features = dict[Any, list[float]]


def walk(steps: Features, last: Features | None = None, **changes: Any) -> sf.Problem:
    """steps: (h, s, a, s2) → cost features. The anchor (1, 0) costs 0.25; the fallback plays 'stay'."""
    states = {(0, "s"): None} | {(h + 1, s2): None for h, _, _, s2 in steps}
    declared: dict[str, Any] = {
        "horizon": 1 + max(h for h, _ in states),
        "start": "s",
        "actions": lambda h, s: list(dict.fromkeys(a for g, t, a, _ in steps if (g, t) == (h, s))),
        "successors": lambda h, s, a: [s2 for g, t, b, s2 in steps if (g, t, b) == (h, s, a)],
        "reward": lambda h, s, a: 0.5,
        "cost_features": lambda *triplet: steps[triplet],
        "terminal_cost_features": None if last is None else last.get,
        "fallback": lambda h, s: "stay",
        "anchor": lambda h: ([1.0, 0.0], 0.25),
        "limits": HEAT,
        "transition_norm": 2.0,  # the cost features are the transition features
    }
    return sf.Problem.from_functions(**(declared | changes))


def one_step(**changes: Any) -> sf.Problem:
    """'go' costs at most 0.25 + 0.5 L if it stays and 0.25 + L if it leads to 't'."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "s"): [1.0, 0.5],
        (0, "s", "go", "t"): [1.0, 1.0],
    }
    return walk(steps, **changes)


def two_steps(**changes: Any) -> sf.Problem:
    """'go' is cheap; in 't', which it leads to, both actions may cost too much, 'rest' 0.25 + L, 'run' 0.25 + 2 L."""
    steps = {
        (0, "s", "stay", "s"): [1.0, 0.0],
        (0, "s", "go", "t"): [1.0, 0.2],
        (1, "s", "stay", "s"): [1.0, 0.0],
        (1, "t", "run", "s"): [1.0, 2.0],
        (1, "t", "rest", "s"): [1.0, 1.0],
    }
    return walk(steps, **changes)


def last_state(**changes: Any) -> sf.Problem:
    """'go' is free, but the last state 't' may itself cost 0.25 + L."""
    steps = {(0, "s", "stay", "s"): [1.0, 0.0], (0, "s", "go", "t"): [1.0, 0.0]}
    return walk(steps, last={"s": [1.0, 0.0], "t": [1.0, 1.0]}, **changes)


def imprecise(**changes: Any) -> sf.Problem:
    """With ζ = 0.05: 0.25 + 2ζ + L for 't'."""
    return one_step(**({"limits": replace(HEAT, misspecification=0.05)} | changes))


def two_limits(**changes: Any) -> sf.Problem:
    """Limit 'wear' (c⁰ = 0, L = 0.5) keeps its bound of 2 by far; only 'heat' is in the way."""
    wear = sf.Limit("wear", bound=2.0, noise=0.2, norm=0.5)
    return one_step(**({"limits": [HEAT, wear], "anchor": lambda h: ([1.0, 0.0], [0.25, 0.0])} | changes))


def with_limit(problem: sf.Problem, j: int, **changes: float) -> sf.Problem:
    limits = list(problem.limits)
    limits[j] = replace(limits[j], **changes)
    return replace(problem, limits=tuple(limits))


def moves(problem: sf.Problem) -> bool:
    """By the agent itself: does its first plan certify an action beyond the fallback's where the fallback comes?"""
    masks = sf.LsviNew(problem).plan.certified_sets.pairs
    for layer, certified in zip(problem.graph.layers, masks, strict=True):
        beyond = certified & np.repeat(layer.fallback != NO_ACTION, np.diff(layer.state_ptr))
        beyond[layer.fallback_pairs()] = False
        if beyond.any():
            return True
    return False
