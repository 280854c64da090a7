"""Did the confidence sets hold? Asked of every plan, against the truth (spec 8)."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.estimate.costs import CostBounds
from surefoot.estimate.values import ValueEllipsoid
from surefoot.model.graph import FloatArray
from surefoot.tolerances import EVENT
from surefoot.worlds.world import World


def cost_event(world: World, bounds: CostBounds) -> bool:
    """True when the true cost of every triplet, and of every last state, lies within [lower, upper]."""
    seen, rounding = set[tuple[int, int]](), EVENT * world.problem.cost_scales
    for truth, upper, lower in zip(world.costs, bounds.upper, bounds.lower, strict=True):
        if (id(truth), id(upper)) in seen:  # layers may share both
            continue
        seen.add((id(truth), id(upper)))
        if not _within(truth, upper, lower, rounding):
            return False
    if world.terminal_costs is None or bounds.terminal_upper is None or bounds.terminal_lower is None:
        return True
    has = world.problem.graph.terminal.has_cost
    return _within(world.terminal_costs[has], bounds.terminal_upper[has], bounds.terminal_lower[has], rounding)


def _within(truth: FloatArray, upper: FloatArray, lower: FloatArray, rounding: FloatArray) -> bool:
    return bool((truth <= upper + rounding).all() and (truth >= lower - rounding).all())


def value_event(world: World, ellipsoids: Sequence[ValueEllipsoid]) -> bool:
    """True when every true μ lies in its layer's ellipsoid."""
    return all(known.contains(mu) for known, mu in zip(ellipsoids, world.transition, strict=True))
