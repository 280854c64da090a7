"""Rays: actions with an intensity α in [0, 1], such as a throttle, a dose or a set-point (spec 9).

A ray starts from its *centre*, another action of the same state. Reward, cost rows and transition features are affine
in α, from those of the centre (α = 0) to the action's own (α = 1); for α > 0 any successor of either may follow.

With a fixed intensity for every pair, a problem is an ordinary one: see :meth:`Throttled.at`. How rays are declared is
in surefoot.model.centers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.model.arrays import FloatArray, freeze
from surefoot.model.graph import LayeredGraph
from surefoot.model.labels import shown
from surefoot.model.layer import NO_ACTION, Layer, Rays
from surefoot.model.lookup import Lookup
from surefoot.model.reals import reals
from surefoot.model.sharing import made_once

if TYPE_CHECKING:
    from surefoot.model.problem import Problem
    from surefoot.model.ray_groups import RayGroup

NO_CENTER = -1  #: of an action without an intensity
FULL = 1.0  #: the intensity of such an action
_KEPT = ("bounds", "priors", "noises", "largest_costs", "cost_scales", "violation_thresholds")

Intensities = tuple[FloatArray, ...]
"""Per decision layer (N,): the intensity of every pair, 1 for actions that have none."""


def refuse_rays(problem: Problem, who: str) -> None:
    """Refuse rays where intensities are not supported: to ignore them would be to play every action in full."""
    if problem.graph.rays:
        raise InvalidInput(
            f"{who} does not know intensities",
            got="a problem whose actions are rays",
            fix="Give it problem.at(1.0) (or world.at(1.0)), where every action is played in full or not at all; "
            "of a plant the same without rays=True.",
        )


def at_intensity(intensity: float | None) -> str:
    """What to add to the name of an action; empty if it is played in full."""
    return "" if intensity is None or intensity == FULL else f" at {intensity:.6g}"


def mixed(ends: tuple[Any, Any], share: FloatArray) -> Any:
    """(1 − α)·(at 0) + α·(at 1), exact at both ends; ``share`` has an α for every row."""
    at_zero, at_one = ends
    weight = share if at_one.ndim == 1 else share[:, None]
    return (1.0 - weight) * at_zero + weight * at_one


def features_at(layer: Layer, rays: Rays, intensity: FloatArray) -> dict[str, Any]:
    """The rewards and features of a layer with every ray at its intensity (N,), by name."""
    by_row, by_edge = (np.repeat(intensity, np.diff(pointer)) for pointer in (layer.row_ptr, layer.pair_ptr))
    reward = freeze(mixed((rays.reward(layer), layer.reward), intensity))
    x = phi = freeze(mixed((rays.cost_features, layer.cost_features), by_row))
    if not layer.shares_features:
        phi = freeze(mixed((rays.transition_features, layer.transition_features), by_edge))
    return {"reward": reward, "cost_features": x, "transition_features": phi}


def layers_at(graph: LayeredGraph, intensities: Sequence[FloatArray]) -> list[Layer]:
    """The layers with every ray at its intensity, H-1 of (N,) (ass:starconvexity); steps go on sharing arrays."""
    steps = list(zip(graph.layers, graph.rays, intensities, strict=True))
    keys = [tuple(map(id, (y.cost_features, y.transition_features, y.reward, r, i))) for y, r, i in steps]
    mixed_once = made_once(keys, lambda h: features_at(*steps[h]))
    return [replace(layer, **own) for layer, own in zip(graph.layers, mixed_once, strict=True)]


def pair_at(layer: Layer, rays: Rays, pair: int, intensity: float) -> Layer:
    """The layer that consists of this pair alone, at an intensity: its data are recorded with these features."""
    rows, edges = (slice(int(p[pair]), int(p[pair + 1])) for p in (layer.row_ptr, layer.pair_ptr))
    costs, chances = (cast(FloatArray, table) for table in (layer.cost_features, layer.transition_features))
    x, phi = (
        freeze(mixed((at_zero[own], at_one[own]), np.full(own.stop - own.start, intensity)))
        for at_zero, at_one, own in (
            (rays.cost_features, costs, rows),
            (rays.transition_features, chances, edges),
        )
    )
    pair_ptr = np.array([0, edges.stop - edges.start])
    return replace(
        layer,
        state_ptr=np.array([0, 1]),
        pair_ptr=pair_ptr,
        row_ptr=pair_ptr if layer.per_triplet else np.array([0, rows.stop - rows.start]),
        successor=layer.successor[edges],
        reward=mixed((rays.reward(layer)[pair : pair + 1], layer.reward[pair : pair + 1]), np.array([intensity])),
        cost_features=x,
        transition_features=phi,
        fallback=np.array([NO_ACTION]),
        forbidden=np.array([False]),
    )


class Throttled(Lookup):
    """A declaration whose actions may have an intensity."""

    @property
    def has_rays(self) -> bool:
        """True when some action has an intensity (spec 9)."""
        return bool(self.graph.rays)

    def at(self, intensity: float | Sequence[FloatArray]) -> Problem:
        """The problem with every ray at a fixed intensity: one for all, or H-1 arrays (N,).

        Examples:
            >>> problem = sf.worlds.make("dosing/testing").problem
            >>> problem.has_rays, problem.at(0.5).has_rays
            (True, False)
        """
        known: Any = self  # which is a Problem
        if not self.has_rays:
            return cast("Problem", known)
        return self.with_layers(layers_at(self.graph, self.intensities(intensity)))

    def with_layers(self, layers: Sequence[Layer]) -> Problem:
        """The problem with these layers, in which rays have a fixed intensity."""
        made: Problem = replace(cast(Any, self), graph=replace(self.graph, layers=tuple(layers), rays=()))
        for name in _KEPT:  # tolerances and thresholds stay those of the declaration
            made.__dict__[name] = getattr(self, name)
        return made

    @cached_property
    def ray_groups(self) -> tuple[RayGroup, ...]:
        """The steps, grouped as a plan handles them."""
        from surefoot.model.ray_groups import ray_groups

        return ray_groups(cast("Problem", self))

    def is_ray(self, h: int, pair: int) -> bool:
        """True for an action with an intensity."""
        return self.has_rays and bool(self.graph.rays[h].center[pair] != NO_CENTER)

    def intensity(self, h: int, pair: int, given: Any, where: str) -> float:
        """The intensity as a number; anything that this action cannot have is refused."""
        number, ray = None if isinstance(given, (bool, np.bool_)) else reals(given), self.is_ray(h, pair)
        if number is None or number.ndim:
            raise InvalidInput("an intensity is a number", where=where, got=shown(given), fix="Give it without quotes.")
        value = float(number)
        if not (0.0 <= value <= FULL and (ray or value == FULL)):  # not for a NaN
            fix = "It is between 0 and 1." if ray else "This action has no intensity: it is played in full."
            raise InvalidInput("no such intensity", where=where, got=shown(given), fix=fix)
        return value

    def intensities(self, given: float | Sequence[FloatArray]) -> Intensities:
        """H-1 of (N,), checked: one intensity for all rays, or arrays as given; 1 for actions without one."""
        graph = self.graph
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            if not 0.0 <= given <= 1.0:
                raise InvalidInput("an intensity is between 0 and 1", got=repr(given))
            known = {id(rays): freeze(np.where(rays.center == NO_CENTER, FULL, float(given))) for rays in graph.rays}
            return tuple(known[id(rays)] for rays in graph.rays)
        rows = [row for each in given if (row := reals(each)) is not None] if isinstance(given, (list, tuple)) else []
        if not isinstance(given, (list, tuple)) or len(rows) < len(given):
            fix = "Give one number for all rays, or an array of numbers for each step."
            raise InvalidInput("intensities are numbers", got=shown(given), fix=fix)
        sizes = [layer.n_pairs for layer in graph.layers]
        if [row.shape for row in rows] != [(size,) for size in sizes]:
            got = f"{[row.shape for row in rows]}, pairs are {sizes}"
            raise InvalidInput("intensities have the wrong shape", got=got)
        for h, (row, rays) in enumerate(zip(rows, graph.rays, strict=True)):
            fits = (row >= 0.0) & (row <= 1.0) & ((row == FULL) | (rays.center != NO_CENTER))  # False for a NaN
            if not fits.all():
                pair = int(np.flatnonzero(~fits)[0])
                rule, got = (
                    "an intensity is between 0 and 1, and 1 without a centre",
                    f"{float(row[pair])!r} for pair {pair}",
                )
                raise InvalidInput(rule, where=f"step {h}", got=got)
        return tuple(rows)
