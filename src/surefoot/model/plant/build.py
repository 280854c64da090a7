"""From functions on a box of states to the arrays of a Problem (spec 9).

Pairs are numbered cell·U + input; the last state stands for everything outside the box, and is forbidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from surefoot.model.arrays import FloatArray, IntArray, pointer_of
from surefoot.model.plant.cells import Cells, Inputs
from surefoot.model.plant.measures import Measures
from surefoot.model.plant.reach import Boxes, chances, corner_values, grid_points, successors

if TYPE_CHECKING:
    from surefoot.model.plant.plant import Plant


@dataclass(frozen=True, eq=False)
class Step:
    """The arrays of one decision step, as ``Problem.from_arrays`` takes them."""

    pair_ptr: IntArray  # (N+1,)
    successors: IntArray  # (E,)
    reward: FloatArray  # (N,)
    cost_features: FloatArray  # (rows, dc)
    row_ptr: IntArray  # (N+1,)
    transition_features: FloatArray  # (E, models)
    fallback: IntArray  # (S,)
    center: IntArray | None = None  # (N,) of rays: the fallback's input of the cell; None: inputs are taken in full
    center_cost_features: FloatArray | None = None  # (rows, dc), where they are not those of the centre's own pair

    def sharing(self, before: Step) -> Step:
        """This step, sharing every array that equals the previous step's."""
        kept = {}
        for field in fields(self):
            own, old = getattr(self, field.name), getattr(before, field.name)
            kept[field.name] = old if own is not None and np.array_equal(own, old) else own
        return Step(**kept)


def build_step(plant: Plant, h: int, cells: Cells, own: IntArray) -> Step:
    """The arrays of step h for the plant's cells, or a part of them; the last state is the outside, which has one
    action and leads to itself. ``own`` (cells,): the fallback's input in each cell."""
    inputs, reach, measures = plant.inputs, plant.reach, plant.measures
    x, centre = centres(cells), own if plant.rays else None
    if centre is None:
        boxes = [reach.of_cells(cells, h, u) for u in inputs.values]
    else:
        boxes = reach.of_rays(cells, h, inputs, centre)
    pair_ptr, following, found = _successors(plant.cells, boxes)
    zero: Corners | None = None
    if measures.of_next:
        corners, zero = _next_corners(cells, inputs, boxes, measures, centre, h)
    else:
        corners = _corners(cells, inputs, measures, h)
    rows, row_ptr = _rows(plant, cells.number, corners)
    landing = np.ones((len(following), len(reach.models)))
    for u, (ptr, met, edges) in zip(inputs.values, found, strict=True):
        landing[edges] = chances(plant.cells, reach, h, u, cells, ptr, met, plant.quadrature)
    rewards = np.stack([plant.rewards(h, x, u) for u in inputs.values], axis=1)  # they steer values only
    return Step(
        pair_ptr=pair_ptr,
        successors=following,
        reward=np.append(rewards.reshape(-1), 0.0),
        cost_features=rows,
        row_ptr=row_ptr,
        transition_features=landing,
        fallback=np.append(own, -1),
        center=None if centre is None else np.append(np.repeat(centre, len(inputs)), -1),
        center_cost_features=None if centre is None or zero is None else _rows(plant, cells.number, zero)[0],
    )


def _successors(
    cells: Cells, boxes: Sequence[Boxes]
) -> tuple[IntArray, IntArray, list[tuple[IntArray, IntArray, IntArray]]]:
    """(pair_ptr, successor) of all pairs, with the outside's last; and for each input, where the successors of each
    cell begin, what they are, and which triplets they become."""
    found = [successors(cells, own) for own in boxes]
    counts = np.stack([np.diff(ptr) for ptr, _ in found], axis=1)  # (cells, inputs)
    pair_ptr = pointer_of(np.append(counts.reshape(-1), 1))
    kind = np.int32 if cells.number < np.iinfo(np.int32).max else np.int64
    following, placed = np.empty(pair_ptr[-1], kind), list[tuple[IntArray, IntArray, IntArray]]()
    for number, (ptr, met) in enumerate(found):
        begins = pair_ptr[:-2][number :: len(found)]
        edges = np.repeat(begins - ptr[:-1], np.diff(ptr)) + np.arange(len(met))
        following[edges] = met
        placed.append((ptr, met, edges))
    following[-1] = cells.outside
    return pair_ptr, following, placed


Corners = tuple[int, Iterator[tuple[int, int, FloatArray]]]
"""Rows per pair, and each row as (input, number of the row within the pair, features (dc, cells))."""


def _corners(cells: Cells, inputs: Inputs, measures: Measures, h: int) -> Corners:
    """The features at the corners of every cell, for every input.

    Corners that differ only in coordinates that the features ignore share one row.
    """
    found = [measures.at(h, grid_points(cells), u, None) for u in inputs.values]
    moving = [d for d in range(cells.dim) if any(_depends(cells, values, d) for values in found)]
    chosen = [
        c for c in product((0, 1), repeat=cells.dim) if not any(c[d] for d in range(cells.dim) if d not in moving)
    ]
    each = product(enumerate(found), enumerate(chosen))
    return len(chosen), ((i, c, corner_values(cells, values, corner)) for (i, values), (c, corner) in each)


def _next_corners(
    cells: Cells, inputs: Inputs, boxes: Sequence[Boxes], measures: Measures, centre: IntArray | None, h: int
) -> tuple[Corners, Corners]:
    """Features that depend on the next state, at the corners of every cell and of the boxes of its next states; and the
    same with the input from which the cell's rays begin. Along a ray, features lie between the two."""
    ends, found = np.stack(cells.bounds(np.arange(cells.number))), list[list[FloatArray]]()
    for number, own in enumerate(boxes):
        one, zero = list[FloatArray](), list[FloatArray]()
        for box in own:
            both = np.concatenate([ends, np.stack(box)], axis=1)  # (2, 2n, cells)
            for corner in product((0, 1), repeat=2 * cells.dim):
                z = both[list(corner), np.arange(2 * cells.dim)]
                x, after = z[: cells.dim], z[cells.dim :]
                one.append(measures.at(h, x, inputs.values[number], after))
                zero.append(one[-1].copy())
                for c in () if centre is None else np.unique(centre):
                    cut = centre == c
                    zero[-1][:, cut] = measures.at(h, x[:, cut], inputs.values[c], after[:, cut])
        found += [one, zero]
    kept = [
        r for r in range(len(found[0])) if not any(all(np.array_equal(of[r], of[q]) for of in found) for q in range(r))
    ]

    def some(first: int) -> Corners:
        return len(kept), ((i, c, of[r]) for i, of in enumerate(found[first::2]) for c, r in enumerate(kept))

    return some(0), some(1)


def _rows(plant: Plant, n: int, corners: Corners) -> tuple[FloatArray, IntArray]:
    """((rows, dc), row_ptr): the cost rows of all pairs of n cells, and one for the outside."""
    (many, each), inputs, extra = corners, plant.inputs, len(plant.remainder)
    pairs, dim = n * len(inputs), plant.measures.call.values or 0
    rows = np.zeros((pairs * many + 1, dim + extra))
    table = rows[:-1].reshape(n, len(inputs), many, dim + extra)
    for number, c, values in each:
        table[:, number, c, :dim] = values.T
    table[..., dim:] = plant.remainder
    # Between the corners features may be longer; the row of the outside, which is never played, accounts for that.
    if extra:
        rows[-1] = 2.0 * rows[int(np.linalg.norm(rows, axis=1).argmax())]
    row_ptr = np.append(np.arange(pairs + 1) * many, pairs * many + 1)
    return rows, row_ptr


def _depends(cells: Cells, values: FloatArray, d: int) -> bool:
    box = values.reshape(len(values), *(n + 1 for n in cells.shape))
    return bool((np.diff(box, axis=d + 1) != 0.0).any())


def centres(cells: Cells, own: IntArray | None = None) -> FloatArray:
    """(n, P) the centres of these cells (default: all), where the fallback and the rewards are evaluated."""
    low, high = cells.bounds(np.arange(cells.number) if own is None else own)
    return np.asarray(0.5 * (low + high))
