"""A sparse table of features, stored like a CSR matrix.

    row e   columns[indptr[e] : indptr[e+1]], increasing, and its values likewise; every other entry is zero

It has as much of an array's interface (shape, len, rows by number, mask or slice, ``@``) as code needs that only reads
features. A problem with one column per triplet or pair then needs no d × d matrix: see :mod:`surefoot.estimate.blocks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InvalidInput

MOST_COLUMNS = 2**31 - 1  # column numbers are int32
FEW_COLUMNS, PER_ENTRY = 1 << 20, 4096  # beyond the first, a table may have so many columns per entry

_INDEX, _COLUMN, _VALUE = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.float64)


class RowParts(NamedTuple):
    """What compiled code reads of a table."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """n rows of length ``dim``. Make one with :func:`checked` or from another one, so that the entries are in order."""

    indptr: NDArray[np.int64]  # (n+1,)
    columns: NDArray[np.int32]  # (nnz,)  increasing within a row
    values: NDArray[np.float64]  # (nnz,)
    dim: int

    def __repr__(self) -> str:
        return f"SparseRows(shape={self.shape}, entries={self.size})"

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.dim

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def size(self) -> int:
        """Entries that are stored."""
        return len(self.values)

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        return self.indptr.nbytes + self.columns.nbytes + self.values.nbytes

    @property
    def parts(self) -> RowParts:
        return RowParts(self.indptr, self.columns, self.values)

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> NDArray[np.float64]: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any]) -> SparseRows: ...
    def __getitem__(self, rows: int | np.integer[Any] | slice | NDArray[Any]) -> NDArray[np.float64] | SparseRows:
        """One row as a dense array (d,), or a table of the rows in a slice, mask or list of numbers."""
        if isinstance(rows, (int, np.integer)):
            row = np.zeros(self.dim)
            e = range(len(self))[int(rows)]
            own = slice(self.indptr[e], self.indptr[e + 1])
            row[self.columns[own]] = self.values[own]
            return row
        if isinstance(rows, slice) and rows.step in (None, 1):
            first, end, _ = rows.indices(len(self))
            pointer = self.indptr[first : max(first, end) + 1]
            entries = slice(pointer[0], pointer[-1])
            return SparseRows(pointer - pointer[0], self.columns[entries], self.values[entries], self.dim)
        chosen = np.arange(len(self))[rows]
        lengths = self.indptr[chosen + 1] - self.indptr[chosen]
        pointer = np.concatenate([[0], np.cumsum(lengths)])
        picked = np.repeat(self.indptr[chosen] - pointer[:-1], lengths) + np.arange(pointer[-1])
        return SparseRows(pointer, self.columns[picked], self.values[picked], self.dim)

    def __matmul__(self, other: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) or (n, k): the products with a vector (d,) or the columns of a matrix (d, k)."""
        product: NDArray[np.float64] = np.asarray(self._scipy() @ other)
        return product

    def dense(self) -> NDArray[np.float64]:
        """(n, d) as a plain array, for small tables."""
        table = np.zeros(self.shape)
        table[self.row_of_entries(), self.columns] = self.values
        return table

    def row_of_entries(self) -> NDArray[np.int64]:
        """(nnz,) the row that each stored entry belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def norms(self) -> NDArray[np.float64]:
        """(n,) the length of every row."""
        lengths: NDArray[np.float64] = np.sqrt(self.squares())
        return lengths

    def squares(self) -> NDArray[np.float64]:
        """(n,) the squared length of every row."""
        with np.errstate(over="ignore"):
            squares: NDArray[Any] = np.bincount(self.row_of_entries(), self.values * self.values, len(self))
        return np.asarray(squares, np.float64)

    def not_zero(self) -> NDArray[np.bool_]:
        """(n,) which rows have an entry other than zero."""
        marks = np.zeros(len(self), bool)
        marks[self.row_of_entries()[self.values != 0.0]] = True
        return marks

    def distances(self, some: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
        """The length of row some[i] − row others[i] for every i."""
        table = self._scipy()
        gaps = (table[some] - table[others]).tocsr()
        return SparseRows(gaps.indptr.astype(np.int64), gaps.indices, gaps.data, self.dim).norms()

    def _scipy(self) -> Any:
        from scipy.sparse import csr_array  # slow to import, and seldom needed

        return csr_array((self.values, self.columns, self.indptr), shape=self.shape)


def stacked(tables: Sequence[SparseRows]) -> SparseRows:
    """The rows of several tables, end to end."""
    ends = np.cumsum([0, *(table.size for table in tables)])
    pointers = [table.indptr[1:] + end for table, end in zip(tables, ends[:-1], strict=True)]
    return SparseRows(
        np.concatenate([[0], *pointers]).astype(np.int64),
        np.concatenate([table.columns for table in tables]),
        np.concatenate([table.values for table in tables]),
        tables[0].dim,
    )


# --- what users give ------------------------------------------------------------------------------------


def is_sparse(value: object) -> bool:
    """True for a SparseRows or any matrix of scipy.sparse, which is not imported to find out."""
    return isinstance(value, SparseRows) or type(value).__module__.startswith("scipy.sparse")


class Taker:
    """Takes the user's CSR matrices without copying them; matrices of the same arrays become one table."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[object, SparseRows]] = {}  # keeps them alive, so that ids stay valid

    def each(self, name: str, value: Any) -> Any:
        """The argument with every sparse matrix in it, alone or in a list of layers, as :class:`SparseRows`."""
        if is_sparse(value):
            return self.table(name, value)
        if isinstance(value, (list, tuple)):
            return [self.table(name, item, f"step {h}") if is_sparse(item) else item for h, item in enumerate(value)]
        return value

    def table(self, name: str, value: Any, where: str = "") -> SparseRows:
        if isinstance(value, SparseRows):
            return value
        if getattr(value, "format", "") != "csr" or len(value.shape) != 2:
            got = f"a {type(value).__name__} of shape {value.shape}"
            raise InvalidInput(f"{name} must be a CSR matrix when sparse", where=where, got=got, fix="Pass ….tocsr().")
        key = (id(value.indptr), id(value.indices), id(value.data), *value.shape)
        if key not in self._known:
            self._known[key] = value, _taken(name, value, where)
        return self._known[key][1]


def _taken(name: str, matrix: Any, where: str) -> SparseRows:
    """The matrix's own arrays, if they are in order; int32 columns and float64 values are not copied."""
    if matrix.dtype != _VALUE:
        got = f"{matrix.dtype} where {_VALUE} is expected"
        raise InvalidInput(f"{name} has the wrong dtype", where=where, got=got, fix="Pass ….astype(float).")
    if matrix.shape[1] > MOST_COLUMNS:
        raise InvalidInput(f"{name} has too many columns", where=where, got=f"{matrix.shape[1]}")
    return checked(
        name, matrix.indptr, matrix.indices, matrix.data, int(matrix.shape[1]), where, n_rows=matrix.shape[0]
    )


def checked(
    name: str,
    indptr: NDArray[Any],
    columns: NDArray[Any],
    values: NDArray[Any],
    dim: int,
    where: str = "",
    n_rows: int | None = None,
) -> SparseRows:
    """A table of these arrays; in every row the columns must exist, increase and each have a value."""
    for part, array in (("indptr", indptr), ("columns", columns)):
        if array.dtype.kind not in "iu":
            raise _damaged(name, where, f"{part} are {array.dtype}, not whole numbers")
    ends = indptr.astype(_INDEX, copy=False)
    n = len(indptr) - 1 if n_rows is None else n_rows
    if ends.ndim != 1 or len(ends) != n + 1 or len(ends) < 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
        raise _damaged(name, where, "indptr does not rise from 0 with one step per row")
    if columns.ndim != 1 or values.ndim != 1 or not ends[-1] <= min(len(columns), len(values)):
        raise _damaged(
            name, where, f"indptr ends at {ends[-1]}, there are {len(columns)} columns, {len(values)} values"
        )
    if len(columns) != ends[-1] or len(values) != ends[-1]:  # scipy allows room at the end; else the very arrays
        columns, values = columns[: ends[-1]], values[: ends[-1]]
    if dim > max(FEW_COLUMNS, PER_ENTRY * len(columns)):
        raise InvalidInput(
            f"{name} has far more columns than entries",
            where=where,
            got=f"{dim} columns, {len(columns)} entries",
            fix="Remove columns that no row uses.",
        )
    if len(columns) and not (int(columns.min()) >= 0 and int(columns.max()) < dim):
        entry = int(np.flatnonzero((columns < 0) | (columns >= dim))[0])
        row = int(np.searchsorted(ends, entry, side="right")) - 1
        raise _damaged(name, where, f"column {columns[entry]} in row {row}, outside 0 … {dim - 1}")
    rising = columns[1:] > columns[:-1]
    begins = ends[1:-1]
    rising[begins[(begins > 0) & (begins < len(columns))] - 1] = True  # a new row may begin anywhere
    if not rising.all():
        entry = int(np.flatnonzero(~rising)[0]) + 1
        row = int(np.searchsorted(ends, entry, side="right")) - 1
        raise InvalidInput(
            f"{name} has columns out of order, or one twice",
            where=f"{where}, row {row}" if where else f"row {row}",
            got=f"column {columns[entry]} after {columns[entry - 1]}",
            fix="Call ….sum_duplicates() on it first, which sorts as well.",
        )
    return SparseRows(ends, np.ascontiguousarray(columns, _COLUMN), np.ascontiguousarray(values), dim)


def _damaged(name: str, where: str, got: str) -> InvalidInput:
    return InvalidInput(f"{name} is not a valid CSR matrix", where=where, got=got)


def arrays_of(table: object) -> Iterator[NDArray[Any]]:
    """The arrays behind a table of either kind."""
    if isinstance(table, SparseRows):
        yield from table.parts
    elif isinstance(table, np.ndarray):
        yield table
