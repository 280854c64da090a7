"""Which states of a step a process owns, and what belongs to them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surefoot.model.graph import Layer


class Range(NamedTuple):
    first: int
    end: int

    @property
    def all(self) -> slice:
        return slice(self.first, self.end)

    @property
    def size(self) -> int:
        return self.end - self.first


class Extent(NamedTuple):
    """What one process has of one step, in numbers of the whole step."""

    states: Range
    pairs: Range
    edges: Range
    rows: Range


def extents(layer: Layer, blocks: int) -> list[Extent]:
    """A step cut into parts of about as many triplets each; some may have no states."""
    cuts = np.searchsorted(layer.edge_ptr, np.linspace(0, layer.n_edges, blocks + 1)[1:-1])
    found = []
    for first, end in pairwise([0, *cuts.tolist(), layer.n_states]):
        pairs = Range(int(layer.state_ptr[first]), int(layer.state_ptr[end]))
        edges, rows = (Range(int(p[pairs.first]), int(p[pairs.end])) for p in (layer.pair_ptr, layer.row_ptr))
        found.append(Extent(Range(first, end), pairs, edges, rows))
    return found
