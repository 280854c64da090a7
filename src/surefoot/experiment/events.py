"""Did the confidence sets hold? Asked of every plan, against the truth (spec 8)."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.layered import FloatArray
from surefoot.worlds.world import World

ROUNDING = 5e-10  # below tables.VIOLATION by more than certify.TOLERANCE: an event that held excludes violations


def cost_event(world: World, bounds: CostBounds) -> bool:
    """True when the true cost of every triplet, and of every last state, lies within [lower, upper]."""
    seen: set[tuple[int, int]] = set()
    for truth, upper, lower in zip(world.costs, bounds.upper, bounds.lower, strict=True):
        if (id(truth), id(upper)) in seen:  # layers may share both
            continue
        seen.add((id(truth), id(upper)))
        if not _within(truth, upper, lower):
            return False
    if world.terminal_costs is None or bounds.terminal_upper is None or bounds.terminal_lower is None:
        return True
    has = world.problem.graph.terminal.has_cost
    return _within(world.terminal_costs[has], bounds.terminal_upper[has], bounds.terminal_lower[has])


def _within(truth: FloatArray, upper: FloatArray, lower: FloatArray) -> bool:
    return bool((truth <= upper + ROUNDING).all() and (truth >= lower - ROUNDING).all())


def value_event(world: World, ellipsoids: Sequence[ValueEllipsoid]) -> bool:
    """True when every true μ lies in its layer's ellipsoid."""
    return all(known.contains(mu) for known, mu in zip(ellipsoids, world.transition, strict=True))
