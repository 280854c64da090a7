"""Rays and the truth: how far each may really be opened, and the intensities of a policy (spec 9).

True costs are affine in the intensity, so the largest one that keeps every limit is a quotient:

    α = min over rows and limits of  (c̄ + tolerance − cost at 0) / (cost at 1 − cost at 0),   where it rises beyond c̄

Q is affine in α as well, so over the safe intensities it is largest at 0, which is the centre's own pair, or at that α.
If the centre keeps the limits, the best policy over these two is the best of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.layer import Layer, Rays
from surefoot.model.rays import FULL, NO_CENTER, Intensities, mixed
from surefoot.worlds.truth_tables import AtZero
from surefoot.worlds.world import World, check_world


def true_intensities(world: World) -> Intensities:
    """H-1 of (N,): the largest intensity of each pair whose own cost rows keep all limits; 0 without one."""
    graph, limits = world.problem.graph, world.problem.violation_thresholds
    made: dict[tuple[object, ...], FloatArray] = {}
    result = []
    for h, (layer, rays, zero, costs) in enumerate(
        zip(graph.layers, graph.rays, world.at_zero, world.costs, strict=True)
    ):
        key = (*map(id, (layer.row_ptr, rays, zero.costs, costs)), limits[h].tobytes())
        if key not in made:
            made[key] = freeze(_largest(layer, rays, zero, costs, limits[h]))
        result.append(made[key])
    return tuple(result)


def _largest(layer: Layer, rays: Rays, zero: AtZero, costs: FloatArray, limits: FloatArray) -> FloatArray:
    low, rise = zero.costs, costs - zero.costs
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(costs <= limits, FULL, np.where(rise > 0.0, (limits - low) / rise, 0.0))
    of_rows = np.clip(root, 0.0, FULL).min(axis=1)
    found = np.minimum.reduceat(of_rows, layer.row_ptr[:-1])
    found[rays.center == NO_CENTER] = FULL
    for _ in range(4):  # never beyond the limit by a last digit, as costs are computed
        over = np.any(mixed((low, costs), np.repeat(found, np.diff(layer.row_ptr))) > limits, axis=1)
        beyond = np.logical_or.reduceat(over, layer.row_ptr[:-1]) & (rays.center != NO_CENTER)
        if not beyond.any():
            break
        found = np.where(beyond, np.maximum(np.nextafter(found, 0.0) - 1e-15 * found, 0.0), found)
    return found


def at_truly_safe(world: World) -> World:
    """The world with every ray at its largest truly safe intensity; an ordinary world unchanged."""
    return world.at(true_intensities(world)) if world.problem.has_rays else world


def as_played(world: World, policy: Any) -> World:
    """The world with every ray at the intensity that a policy plays; an ordinary world unchanged.

    A policy gives them as ``intensities``, H-1 arrays (N,); plans and the result of :func:`solve` have them.
    """
    check_world(world, "an exact value")
    if not world.problem.has_rays:
        return world
    own = getattr(policy, "intensities", None)
    if own is None:
        raise InvalidInput(
            "at which intensities does the policy play?",
            got="a policy without any, in a world whose actions are rays",
            fix="Evaluate it in world.at(intensities).",
        )
    return world.at(own)
