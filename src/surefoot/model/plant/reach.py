"""Where a plant may be next: boxes around the images of a cell's corners, and the cells that they meet (spec 9).

A function that is affine in each coordinate, and any monotone function of one, takes its extremes over a box at the
box's corners. So the next state of every point of a cell lies in the box hull of the images of the cell's 2ⁿ corners,
widened by the disturbance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.jit import compiled
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, pointer_of
from surefoot.model.plant.calls import Call, said
from surefoot.model.plant.cells import Cells, Inputs
from surefoot.tolerances import CELL, CHANCE_ASTRAY, CHANCE_LEFT

Boxes = list[tuple[FloatArray, FloatArray]]
"""The boxes of a union, each with low and high ends (n, P)."""


@dataclass(frozen=True, eq=False)
class Reach:
    """What is known of the next state: models, the disturbance, and how a cell's image is bounded."""

    models: tuple[Call, ...]
    disturbance: FloatArray  # (n,)
    reach: Call | None  # (h, low over high, u) → the ends of the image of a box, of all models; of rays (…, u, to)
    slopes: tuple[FloatArray, ...] | None  # per model (n, n): |∂f_k/∂x_d| is at most this
    rays: bool  # ``reach`` is asked for whole rays

    @property
    def cure(self) -> str:
        """What to do about a next state outside its box."""
        if self.reach is None and self.slopes is None:
            return "It is neither affine nor monotone in each coordinate: give reach= or slopes=."
        return f"Give {'slopes' if self.reach is None else 'reach'}= that allow for it."

    def at_points(self, h: int, x: FloatArray, u: Any) -> Boxes:
        """Per model, the boxes (n, P) of the states that may follow points (n, P)."""
        images = [model.at(h, x, u) for model in self.models]
        around = self.disturbance[:, None]
        return [(image - around, image + around) for image in images]

    def of_rays(self, cells: Cells, h: int, inputs: Inputs, centre: IntArray) -> list[Boxes]:
        """For every input :meth:`of_cells`, but for all inputs between it and the centre (cells,) of each cell."""
        low, high = cells.bounds(np.arange(cells.number))
        found = []
        for u in inputs.values:
            parts = [(np.empty_like(low), np.empty_like(low)) for _ in (self.models if self.reach is None else [None])]
            for c in np.unique(centre):
                cut = centre == c
                for box, own in zip(parts, self.over(h, low[:, cut], high[:, cut], inputs.values[c], u), strict=True):
                    box[0][:, cut], box[1][:, cut] = own
            found.append(parts)
        return found

    def of_cells(self, cells: Cells, h: int, u: Any) -> Boxes:
        """The boxes (n, cells) of what may follow anywhere in a cell; one list entry for each part of their union."""
        if self.reach is not None or self.slopes is not None:
            return self.over(h, *cells.bounds(np.arange(cells.number)), u)
        around, corners = self.disturbance[:, None], grid_points(cells)
        hulls = [corner_hull(cells, model.at(h, corners, u)) for model in self.models]
        return [(low - around, high + around) for low, high in hulls]

    def over(self, h: int, low: FloatArray, high: FloatArray, u: Any, to: Any = None) -> Boxes:
        """The same for any boxes (n, P) of states; with ``to``, for every input between the two.

        A model has its extremes at the ends of a ray, so all images lie in the hull of the boxes at both ends. The
        user's ``reach`` need not have this property, so it is called for whole rays.
        """
        around, n = self.disturbance[:, None], len(low)
        if self.reach is not None:
            inputs = (u, u if to is None else to) if self.rays else (u,)
            ends = self.reach.at(h, np.concatenate([low, high]), *inputs)
            return [(ends[:n] - around, ends[n:] + around)]
        if to is not None:
            both = zip(self.over(h, low, high, u), self.over(h, low, high, to), strict=True)
            return [(np.minimum(a, c), np.maximum(b, d)) for (a, b), (c, d) in both]
        found = []
        if self.slopes is not None:
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            for model, slope in zip(self.models, self.slopes, strict=True):
                image, wide = model.at(h, middle, u), slope @ half + around
                found.append((image - wide, image + wide))
            return found
        corners = corners_of(low, high)
        for model in self.models:
            images = model.at(h, corners.reshape(n, -1), u).reshape(n, -1, low.shape[1])
            found.append((images.min(axis=1) - around, images.max(axis=1) + around))
        return found


def corners_of(low: FloatArray, high: FloatArray) -> FloatArray:
    """(n, 2ⁿ, P) the corners of boxes (n, P)."""
    ends, n = np.stack([low, high]), len(low)
    return np.stack([ends[list(corner), np.arange(n)] for corner in product((0, 1), repeat=n)], axis=1)


def grid_points(cells: Cells) -> FloatArray:
    """(n, V) the corners of all cells, numbered as a grid with one more point per coordinate."""
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*map(np.asarray, cells.edges), indexing="ij")])


def corner_values(cells: Cells, values: FloatArray, corner: Sequence[int]) -> FloatArray:
    """(k, cells) the values (k, V at the grid's points) at one corner of each cell: 0 is the low end, 1 the high."""
    box = values.reshape(len(values), *(n + 1 for n in cells.shape))
    cut = tuple(slice(at, at + n) for at, n in zip(corner, cells.shape, strict=True))
    return box[(slice(None), *cut)].reshape(len(values), -1)


def corner_hull(cells: Cells, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(k, cells) the least and the largest of values (k, V) over the corners of each cell."""
    low: FloatArray | None = None
    high: FloatArray | None = None
    for corner in product((0, 1), repeat=cells.dim):
        part = corner_values(cells, values, corner)
        low = part.copy() if low is None else np.minimum(low, part, out=low)
        high = part.copy() if high is None else np.maximum(high, part, out=high)
    assert low is not None
    assert high is not None
    return low, high


def successors(cells: Cells, boxes: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[IntArray, IntArray]:
    """(ptr (P+1,), cells): all cells that each union of boxes meets, with ``outside`` last if a box leaves the grid."""
    found = [_met(cells, low, high) for low, high in boxes]
    if len(found) == 1:
        return found[0]
    whose = np.concatenate([np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)) for ptr, _ in found])
    cell = np.concatenate([met for _, met in found])
    order = np.lexsort((cell, whose))
    whose, cell = whose[order], cell[order]
    new = np.append(True, (np.diff(whose) != 0) | (np.diff(cell) != 0))[: len(cell)]  # each once
    return pointer_of(np.bincount(whose[new], minlength=len(found[0][0]) - 1)), cell[new]


def _met(cells: Cells, low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray]:
    first, last, leaves = cells.met(low, high)
    wide = np.maximum(last - first + 1, 0)
    wide[:, (wide == 0).any(axis=0)] = 0
    inside = wide.prod(axis=0)
    ptr = pointer_of(inside + leaves)
    pair = np.repeat(np.arange(len(inside)), np.diff(ptr))
    left = np.arange(ptr[-1]) - ptr[:-1][pair]
    out = left == inside[pair]
    met, stride = np.zeros(len(pair), np.int64), 1
    for d in reversed(range(cells.dim)):
        left, along = np.divmod(left, np.maximum(wide[d][pair], 1))
        met += stride * (first[d][pair] + along)
        stride *= cells.shape[d]
    return ptr, np.where(out, cells.outside, met)


# --- chances: they steer values, never safety -----------------------------------------------------------------


@cache
def quadrature(dim: int, points: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre in the unit cube: (n, Q) points and (Q,) weights that sum to one."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    at = np.array(list(product(0.5 * (nodes + 1.0), repeat=dim))).T
    return at, np.array([np.prod(w) for w in product(0.5 * weights, repeat=dim)])


def chances(
    cells: Cells, reach: Reach, h: int, u: Any, own: Cells, ptr: IntArray, following: IntArray, points: int
) -> FloatArray:
    """(E, models) the chance to land in each cell that may follow an input in the cells ``own``: those that may follow
    cell i of these are following[ptr[i] : ptr[i+1]]. The state is uniform in its cell, the disturbance in its range.
    """
    found, (at, weights) = np.zeros((len(reach.models), len(following))), quadrature(cells.dim, points)
    box = np.array([[edge[0], edge[-1]] for edge in cells.edges])
    for first in range(0, own.number, _TOGETHER):
        some = ptr[first : first + _TOGETHER + 1]
        edges = slice(int(some[0]), int(some[-1]))
        outside = following[edges] == cells.outside
        low, high = cells.bounds(np.where(outside, 0, following[edges]))
        least, most = (end[:, :, None] for end in own.bounds(np.arange(first, first + len(some) - 1)))
        x = least + at[:, None, :] * (most - least)  # (n, P, Q)
        for i, model in enumerate(reach.models):
            y = model.at(h, x.reshape(cells.dim, -1), u).reshape(x.shape)
            p, q = _land(y, reach.disturbance, weights, some - some[0], low, high, outside, box, found[i, edges])
            if p >= 0:
                raise InvalidInput(
                    "a model leaves the box that was computed for its cell",
                    where=f"{said(h, x[:, p, q])}, model {i}, input {u!r}",
                    got=f"next state {y[:, p, q].tolist()}",
                    fix=reach.cure,
                )
    return found.T


_TOGETHER = 1 << 12  # cells that are looked at together


@compiled
def _land(
    y: FloatArray,  # (n, P, Q) images of Q points in each of P cells
    half: FloatArray,
    weights: FloatArray,
    ptr: IntArray,
    low: FloatArray,  # (n, E) lower ends of the cells that may follow
    high: FloatArray,
    outside: BoolArray,  # (E,) the last one of a cell may be the outside
    box: FloatArray,  # (n, 2)
    found: FloatArray,  # (E,) written: the chances
) -> tuple[int, int]:
    """→ (cell, point) of an image that lies where nothing may follow, (-1, -1) without one."""
    n = len(box)
    for p in range(len(ptr) - 1):
        last = ptr[p + 1] - 1
        for q in range(len(weights)):
            left, largest, takes_rest = 1.0, 0.0, last
            for e in range(ptr[p], last + 1):
                if not outside[e]:
                    share = 1.0
                    for d in range(n):
                        share *= _share(y[d, p, q], half[d], low[d, e], high[d, e], box[d, 0], box[d, 1])
                    found[e] += weights[q] * share
                    left -= share
                    if share > largest and not outside[last]:
                        largest, takes_rest = share, e
            if left > CHANCE_LEFT:
                inside = 1.0
                for d in range(n):
                    inside *= _share(y[d, p, q], half[d], box[d, 0], box[d, 1], box[d, 0], box[d, 1])
                if left - (1.0 - inside if outside[last] else 0.0) > CHANCE_ASTRAY:
                    return p, q
                found[takes_rest] += weights[q] * left
    return -1, -1


@compiled
def _share(y: float, half: float, low: float, high: float, least: float, most: float) -> float:
    """The share of [y − half, y + half] in the cell [low, high); for a single point, 1 or 0. The first and the last
    cell also hold what rounding moves beyond the ends of the grid."""
    if half > 0.0:
        return max(0.0, min(high, y + half) - max(low, y - half)) / (2.0 * half)
    tiny = CELL * (abs(y) + high - low)
    above = y >= low or (low == least and y >= low - tiny)
    below = y < high or (high == most and y <= high + tiny)
    return 1.0 if above and below else 0.0


def cells_around(cells: Cells, y: FloatArray) -> tuple[IntArray, FloatArray]:
    """(2ⁿ, P) the cells whose centres are around points (n, P), and their weights in a linear interpolation."""
    low, share = np.empty(y.shape, np.int64), np.empty(y.shape)
    for d, edge in enumerate(cells.edges):
        last = cells.shape[d] - 1
        if last == 0:
            low[d], share[d] = 0, 0.0
            continue
        own = cells.along(d, y[d])
        own -= y[d] < 0.5 * (edge[own] + edge[own + 1])
        low[d] = np.clip(own, 0, last - 1)
        centre, after = (0.5 * (edge[low[d] + i] + edge[low[d] + i + 1]) for i in (0, 1))
        share[d] = np.clip((y[d] - centre) / (after - centre), 0.0, 1.0)
    found, weights = [], []
    for corner in product((0, 1), repeat=cells.dim):
        up = np.array(corner)[:, None]
        at = np.minimum(low + up, np.array(cells.shape)[:, None] - 1)
        found.append(np.ravel_multi_index(tuple(at), cells.shape))
        weights.append(np.where(up == 1, share, 1.0 - share).prod(axis=0))
    return np.array(found), np.array(weights)
