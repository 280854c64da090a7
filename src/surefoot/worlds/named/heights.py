"""heights: the random grids of SNO-MDP (Wachi and Sui 2020), on which the deterministic line is compared.

**State.** A cell of an n × n grid, half a unit apart. **Action.** Stay, or go to one of up to four neighbours; moves
succeed. **Known.** The grid; rewards, a smooth random map scaled to [0, 1], paid for the cell one goes to.

**Hidden.** A height map drawn from a Gaussian process with the kernel exp(−distance²/(2·2²)); a move costs the climb,
height(s') − height(s). With the kernel's matrix K = U diag(e) Uᵀ over the cells and F = U √e, its first d columns,
height = F·γ + rest, γ standard normal: the climb is linear in x = F(s') − F(s), and the rest is declared as
misspecification, four standard deviations of it at either end. **Limit.** climb ≤ 0.25, measured with noise of scale
0.001. **Fallback.** A path back and forth over a patch that is flat enough, then stay; ‖γ‖ ≤ 1.3·√d is declared. Maps
without such a patch, or beyond what is declared, are drawn again.

**Thresholds.** ``"constant"``, or ``"varying"``: at step h of n a climb must be at most 0.25·(1 + 0.6·sin(4πh/n)).

In the paper's experiments rewards are unknown, too, and a robot walks on without end; here an episode has n steps.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from surefoot.checks import one_of, whole
from surefoot.errors import InvalidInput
from surefoot.model.arrays import BoolArray, FloatArray, IntArray
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.streams import stream
from surefoot.worlds.world import World

__all__ = ["heights"]

SPACING, LENGTH, BOUND, NOISE = 0.5, 2.0, 0.25, 0.001
SIZES = {"testing": (7, 24, 10), "small": (10, 36, 16), "published": (20, 90, 24)}  # cells a side, features, steps
PATCH = {"testing": 3, "small": 4, "published": 5}  # cells a side
THRESHOLDS = ("constant", "varying")
TRIES = 2000


class Grid(NamedTuple):
    """What all worlds of a size share."""

    root: FloatArray  # (cells, cells) a square root of the kernel's matrix, columns by falling eigenvalue
    state_ptr: IntArray
    successor: IntArray  # by pair: stay, up, down, left, right where they exist
    cell: IntArray  # by pair


@lru_cache(maxsize=4)
def _grid(n: int) -> Grid:
    x, y = np.divmod(np.arange(n * n), n)
    square = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    values, vectors = np.linalg.eigh(np.exp(-square * SPACING**2 / (2.0 * LENGTH**2)))
    root = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    root = root * np.where(root[np.abs(root).argmax(axis=0), np.arange(n * n)] < 0, -1.0, 1.0)  # one sign for all
    cells, goes, pointer = [], [], [0]
    for s in range(n * n):
        for dx, dy in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)):
            if 0 <= x[s] + dx < n and 0 <= y[s] + dy < n:
                cells.append(s)
                goes.append(int((x[s] + dx) * n + y[s] + dy))
        pointer.append(len(goes))
    return Grid(root, np.array(pointer), np.array(goes), np.array(cells))


def heights(size: str = "testing", seed: int = 0, thresholds: str = "constant") -> World:
    """The world of a seed. ``thresholds``: ``"constant"`` or ``"varying"``."""
    n, d, steps = SIZES[size]
    one_of("thresholds", THRESHOLDS, thresholds)
    grid, rng = _grid(n), stream(whole("seed", seed, 0), "heights")
    norm, rest = 1.3 * math.sqrt(d), _rest(grid, d)
    least = BOUND * (1.0 - 0.6)
    for _ in range(TRIES):
        drawn, pays = grid.root @ rng.standard_normal(n * n), None
        gamma: FloatArray = np.asarray(np.linalg.lstsq(grid.root[:, :d], drawn, rcond=None)[0], np.float64)
        off = drawn - grid.root[:, :d] @ gamma
        reward = grid.root @ rng.standard_normal(n * n)
        path = _flat(drawn, n, PATCH[size], steps, least)
        if np.linalg.norm(gamma) <= norm and np.abs(off).max() <= rest and path is not None:
            pays = (reward - reward.min()) / np.ptp(reward)
            break
    if path is None or pays is None:
        raise InvalidInput("no map of this seed has a flat patch", got=f"seed {seed}", fix="Take another seed.")
    return _world(grid, off, gamma, pays, path, thresholds, (d, steps, norm, 2.0 * rest))


def _rest(grid: Grid, d: int) -> float:
    """Four standard deviations of what d features miss of a height, where they miss most."""
    return 4.0 * float(np.sqrt((grid.root[:, d:] ** 2).sum(axis=1).max()))


def _flat(height: FloatArray, n: int, side: int, steps: int, most: float) -> list[int] | None:
    """A path of cells, back and forth over a patch, whose climbs are at most ``most``; None where there is none."""
    best: tuple[float, list[int]] = (math.inf, [])
    for first in range((n - side + 1) ** 2):
        i, j = divmod(first, n - side + 1)
        rows = [[(i + a) * n + j + b for b in range(side)] for a in range(side)]
        for turned in (rows, [list(each) for each in zip(*rows, strict=True)]):
            snake = [cell for k, row in enumerate(turned) for cell in (row if k % 2 == 0 else row[::-1])]
            for path in (snake, snake[::-1]):
                path = path[: steps + 1]
                climb = float(np.diff(height[path]).max())
                best = min(best, (climb, path))
    return best[1] if best[0] <= most else None


def _world(
    grid: Grid,
    off: FloatArray,
    gamma: FloatArray,
    pays: FloatArray,
    path: list[int],
    thresholds: str,
    declared: tuple[int, int, float, float],
) -> World:
    d, steps, norm, error = declared
    swing = 0.6 if thresholds == "varying" else 0.0
    bounds = [BOUND * (1.0 + swing * math.sin(4.0 * math.pi * h / steps)) for h in range(steps + 1)]
    x = grid.root[grid.successor, :d] - grid.root[grid.cell, :d]
    problem = Problem.from_arrays(
        horizon=steps + 1,
        start=path[0],
        state_ptr=grid.state_ptr,
        pair_ptr=np.arange(len(grid.successor) + 1),
        successors=grid.successor,
        reward=pays[grid.successor],
        cost_features=x,
        transition_features=np.ones((len(x), 1)),
        fallback=_fallback(grid, path, steps),
        limits=Limit("climb", bound=bounds, noise=NOISE, norm=norm, misspecification=error),
        stationary_costs=True,
        stationary_transitions=True,
    )
    deviation = (off[grid.successor] - off[grid.cell])[:, None]
    return World(problem, transition=[1.0], cost=gamma, deviation=[deviation] * steps)


def _fallback(grid: Grid, path: list[int], steps: int) -> list[IntArray]:
    """Per step the action of every cell, -1 off the path: along it, then stay."""
    found: list[IntArray] = []
    for h in range(steps):
        row = np.full(len(grid.state_ptr) - 1, -1, np.int64)
        here = path[min(h, len(path) - 1)]
        goes = path[min(h + 1, len(path) - 1)]
        own: BoolArray = (grid.cell == here) & (grid.successor == goes)
        row[here] = int(np.flatnonzero(own)[0]) - int(grid.state_ptr[here])
        found.append(row)
    return found
