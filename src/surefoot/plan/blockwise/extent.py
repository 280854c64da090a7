"""Which states of a step a process owns, and what else it holds of the step so that it computes their very bits.

Rows and pairs are computed chunk by chunk, and the last digits of one may depend on the others in its chunk
(:func:`surefoot.estimate.kernels.cut`). So a process holds all chunks that its own states have a part in, with the
states around them. And the chunks of those: which pairs a policy plays there decides who is in a chunk when the policy
is evaluated, and has to be right to the last digit, too. That is some thousand rows beside millions of its own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surefoot.estimate.kernels import chunk_size
from surefoot.model.graph import IntArray, Layer


class Range(NamedTuple):
    first: int
    end: int

    @property
    def all(self) -> slice:
        return slice(self.first, self.end)

    @property
    def size(self) -> int:
        return self.end - self.first

    def beside(self, other: Range) -> slice:
        """This range, counted from where the other begins."""
        return slice(self.first - other.first, self.end - other.first)


class Extent(NamedTuple):
    """What one process has of one step, in numbers of the whole step."""

    own: Range  # states that it answers for
    own_pairs: Range
    states: Range  # that it holds
    pairs: Range
    edges: Range
    rows: Range
    table: Range  # rows of cost features, in whole chunks


def extents(layer: Layer, blocks: int) -> list[Extent]:
    """A step cut into parts of about as many triplets each; one without states is left out."""
    edge_ptr = layer.edge_ptr
    cuts = np.searchsorted(edge_ptr, np.linspace(0, layer.n_edges, blocks + 1)[1:-1])
    bounds = [0, *cuts.tolist(), layer.n_states]
    return [_extent(layer, Range(first, end)) for first, end in pairwise(bounds)]


def _extent(layer: Layer, own: Range) -> Extent:
    states = own
    for _ in range(2):
        states = _widened(layer, states)
    pairs = Range(int(layer.state_ptr[states.first]), int(layer.state_ptr[states.end]))
    edges, rows = (Range(int(p[pairs.first]), int(p[pairs.end])) for p in (layer.pair_ptr, layer.row_ptr))
    own_pairs = Range(int(layer.state_ptr[own.first]), int(layer.state_ptr[own.end]))
    return Extent(
        own, own_pairs, states, pairs, edges, rows, _in_chunks(rows, chunk_size(layer.cost_features), layer.n_rows)
    )


def _widened(layer: Layer, states: Range) -> Range:
    """All states with a pair, or a cost row, in a chunk that one of these states has a part in."""
    if not states.size:
        return states
    pairs = Range(int(layer.state_ptr[states.first]), int(layer.state_ptr[states.end]))
    rows = Range(int(layer.row_ptr[pairs.first]), int(layer.row_ptr[pairs.end]))
    rows = _in_chunks(rows, chunk_size(layer.cost_features), layer.n_rows)
    with_rows = _holding(layer.row_ptr, rows)
    pairs = _in_chunks(pairs, chunk_size(layer.transition_features), layer.n_pairs)
    return _holding(layer.state_ptr, Range(min(pairs.first, with_rows.first), max(pairs.end, with_rows.end)))


def _in_chunks(numbers: Range, step: int, n: int) -> Range:
    return Range(numbers.first // step * step, min(n, -(-numbers.end // step) * step))


def _holding(pointer: IntArray, numbers: Range) -> Range:
    """Those whose entries, between two of the pointer, have all of these numbers."""
    first = int(np.searchsorted(pointer, numbers.first, side="right")) - 1
    return Range(first, int(np.searchsorted(pointer, numbers.end, side="left")))
