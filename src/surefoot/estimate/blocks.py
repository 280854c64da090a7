"""Which columns of features can occur together: the blocks of Σ z zᵀ. Dense features are one block.

Two columns are connected when some row that a regression can get has both:

    costs         the columns of one cost row x (of all rows of a pair, if it has several: what is measured lies between
                  them); with an anchor, also those of x⁰, because z = x − ρ x⁰ mixes them
    transitions   the columns of all successors of one pair, because φ_V(s,a) = Σ_{s'} φ(s,a,s') V(s')

Every row then lives in one connected set of columns, a *block*, and A = λI + Σ z zᵀ has no entry outside the squares of
its blocks: determinants are products, inverses and eigenvectors stay inside. One-hot costs have blocks of size 1, whose
Gram matrices are counts; tabular transitions have a block per pair, as large as its support.

The numbers of a regression are stored block after block, sorted by size, so that all blocks of one size are one stack
of matrices. A *slot* is a column's place in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput
from surefoot.model.arrays import IntArray, pointer_of
from surefoot.model.graph import LayeredGraph
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows

MOST_ENTRIES = 1 << 29  # of all Gram matrices of one kind of features: 4 GiB, and several arrays are of that size


class BlockShape(NamedTuple):
    """What compiled code reads of :class:`Blocks`. (R regressions, d columns, B blocks of all regressions)"""

    block: NDArray[np.int32]  # (R, d)   the block of a column
    place: NDArray[np.int32]  # (R, d)   its place within the block
    column: NDArray[np.int32]  # (R·d,)  the column in every slot
    size: NDArray[np.int64]  # (B,)
    slot: NDArray[np.int64]  # (B+1,)    where a block's slots begin
    entry: NDArray[np.int64]  # (B+1,)   where its matrix begins


class SameSize(NamedTuple):
    """Blocks first … first+n-1 are all of one size."""

    size: int
    first: int
    n: int


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of R regressions with features of length ``dim``."""

    dim: int
    shape: BlockShape
    first: IntArray  # (R+1,)  the blocks of regression r are first[r] : first[r+1]
    runs: tuple[tuple[SameSize, ...], ...]  # R

    @cached_property
    def largest(self) -> int:
        return int(self.shape.size.max())

    @cached_property
    def whole(self) -> bool:
        """Is every regression one block, as with dense features?"""
        return len(self.shape.size) == len(self.runs)


class Chain(NamedTuple):
    """Groups of connected columns: those of group g are columns[pointer[g] : pointer[g+1]]."""

    columns: IntArray
    pointer: IntArray


def cost_blocks(problem: Problem, families: int = 1) -> Blocks:
    """Of the cost regressions: one per layer, the last included, or one for all when stationary; for each family."""
    graph, steps = problem.graph, _together(problem.horizon, problem.stationary_costs) * families
    if not isinstance(graph.layers[0].cost_features, SparseRows):
        return one_block_each(graph.cost_dim, len(steps))
    return _blocks(graph.cost_dim, [_cost_sources(graph, each) for each in steps], "cost_features")


def value_blocks(problem: Problem) -> Blocks:
    """Of the value regressions: one per decision layer, or one for all when stationary."""
    graph, steps = problem.graph, _together(problem.horizon - 1, problem.stationary_transitions)
    if not isinstance(graph.layers[0].transition_features, SparseRows):
        return one_block_each(graph.transition_dim, len(steps))
    return _blocks(graph.transition_dim, [_value_sources(graph, each) for each in steps], "transition_features")


def _together(steps: int, stationary: bool) -> list[list[int]]:
    """The steps of each regression."""
    return [list(range(steps))] if stationary else [[h] for h in range(steps)]


def one_block_each(dim: int, n: int) -> Blocks:
    """All columns of a regression in one block, in their order."""
    own, size = np.arange(n), np.full(n, dim, np.int64)
    block, column = np.repeat(own, dim).astype(np.int32), np.tile(np.arange(dim, dtype=np.int32), n)
    shape = BlockShape(
        block.reshape(n, dim), column.reshape(n, dim), column, size, pointer_of(size), pointer_of(size * size)
    )
    return Blocks(dim, shape, np.arange(n + 1), tuple((SameSize(dim, r, 1),) for r in range(n)))


Source = tuple[object, Chain]
"""(the identity of its arrays; the columns that it connects)"""


def _cost_sources(graph: LayeredGraph, layers: Sequence[int]) -> list[Source]:
    sources: list[Source] = []
    for h in layers:
        last = h == len(graph.layers)
        table = graph.terminal.cost_features if last else graph.layers[h].cost_features
        if isinstance(table, SparseRows):
            groups = None if last or not graph.layers[h].several_rows else graph.layers[h].row_ptr
            pointer = table.indptr if groups is None else table.indptr[groups]
            sources.append(((id(table), id(groups)), Chain(table.columns, pointer)))
        anchor = graph.anchors[h]
        if anchor is not None:
            columns = np.flatnonzero(anchor.features.any(axis=0))  # several mix with each other too
            sources.append((columns.tobytes(), Chain(columns, np.array([0, len(columns)]))))
    return sources


def _value_sources(graph: LayeredGraph, layers: Sequence[int]) -> list[Source]:
    sources: list[Source] = []
    for h in layers:
        table, pairs = graph.layers[h].transition_features, graph.layers[h].pair_ptr
        if isinstance(table, SparseRows):
            sources.append(((id(table), id(pairs)), Chain(table.columns, table.indptr[pairs])))
    return sources


def _blocks(dim: int, sources: Sequence[list[Source]], name: str) -> Blocks:
    """The blocks of a regression for each list of sources; one that occurs twice is processed once."""
    if len(sources) * dim > MOST_ENTRIES:  # before anything of that size is allocated
        got = f"{dim} columns in {len(sources)} regressions"
        raise InvalidInput(f"{name} have too many columns", got=got, fix="Leave out columns that no row uses.")
    distinct = [dict(each) for each in sources]
    keys, known = [frozenset(each) for each in distinct], dict[frozenset[object], IntArray]()
    for key, each in zip(keys, distinct, strict=True):
        if key not in known:
            known[key] = _connected(dim, each.values())
    n, slots = len(sources), np.arange(dim)
    block, place = np.empty((n, dim), np.int32), np.empty((n, dim), np.int32)
    column = np.empty(n * dim, np.int32)
    sizes: list[IntArray] = []
    runs = []
    end = 0
    for r, key in enumerate(keys):
        labels = known[key]
        size = np.bincount(labels)
        ordered = np.argsort(size, kind="stable")  # among equal sizes, by smallest column
        number = np.empty_like(ordered)
        number[ordered] = np.arange(len(ordered))
        size = size[ordered]
        begin = np.cumsum(size) - size
        inside = np.argsort(number[labels], kind="stable")
        own = number[labels[inside]]
        column[r * dim : (r + 1) * dim] = inside
        block[r, inside] = own + end
        place[r, inside] = slots - begin[own]
        values, first, count = np.unique(size, return_index=True, return_counts=True)
        runs.append(tuple(SameSize(int(s), end + int(i), int(k)) for s, i, k in zip(values, first, count, strict=True)))
        sizes.append(size)
        end += len(size)
    size = np.concatenate(sizes).astype(np.int64)
    entries = int((size * size).sum())
    if entries > MOST_ENTRIES:
        raise InvalidInput(
            f"{name} tie too many columns together",
            got=f"{int(size.max())} of {dim} columns in one block, {entries:.3g} numbers for all Gram matrices",
            fix="Give rows fewer common columns, let steps share a regression, or leave out the anchor.",
        )
    shape = BlockShape(block, place, column, size, pointer_of(size), pointer_of(size * size))
    return Blocks(dim, shape, pointer_of(np.array([len(each) for each in sizes])), tuple(runs))


def _connected(dim: int, chains: Iterable[Chain]) -> IntArray:
    """(d,) the component of every column, numbered by its smallest one."""
    ends: list[tuple[IntArray, IntArray]] = []
    for columns, pointer in chains:
        linked = np.ones(max(0, len(columns) - 1), bool)
        begins = pointer[1:-1]
        linked[begins[(begins > 0) & (begins < len(columns))] - 1] = False  # a group ends there
        ends.append((columns[:-1][linked], columns[1:][linked]))
    some, others = (np.concatenate([np.empty(0, np.int64), *(pair[i] for pair in ends)]) for i in (0, 1))
    if len(some) == 0:
        return np.arange(dim)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(some), np.int8), (some, others)), shape=(dim, dim))
    found = connected_components(links, directed=False)[1]
    _, smallest, labels = np.unique(found, return_index=True, return_inverse=True)
    order = np.empty(len(smallest), np.int64)
    order[np.argsort(smallest)] = np.arange(len(smallest))
    result: IntArray = order[labels]
    return result
