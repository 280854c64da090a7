"""A table of sparse rows, what is taken for one, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.model import seals
from surefoot.model.features import row_distances, row_norms, rows_equal_to
from surefoot.model.sharing import pool
from surefoot.model.sparse_rows import SparseRows, Taker
from tests.saved_problems import template

HAND = np.array([[0.0, 3.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])


def table() -> SparseRows:
    return Taker().table("x", scipy.sparse.csr_array(HAND))


# --- its face -------------------------------------------------------------------------------------------


def test_it_is_made_of_columns_and_values() -> None:
    x = table()
    assert x.indptr.tolist() == [0, 2, 2, 3]
    assert x.columns.tolist() == [1, 3, 0]
    assert x.values.tolist() == [3.0, 4.0, 1.0]
    assert (x.shape, len(x), x.size) == ((3, 4), 3, 3)
    assert x.nbytes == 4 * 8 + 3 * 4 + 3 * 8


def test_rows_by_number_slice_mask_and_list() -> None:
    x = table()
    for e in (0, 1, 2, -1):
        assert np.array_equal(x[e], HAND[e])
    with pytest.raises(IndexError):
        x[3]
    for rows in (slice(1, 3), slice(0, 0), slice(2, 99), np.array([True, False, True]), np.array([2, 0, 2])):
        assert np.array_equal(x[rows].dense(), HAND[rows])


def test_products_lengths_and_distances() -> None:
    x = table()
    assert (x @ np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [22.0, 0.0, 1.0]
    assert np.array_equal(x @ np.arange(8.0).reshape(4, 2), HAND @ np.arange(8.0).reshape(4, 2))
    assert row_norms(x).tolist() == row_norms(HAND).tolist() == [5.0, 0.0, 1.0]
    some, others = np.array([0, 2, 1]), np.array([1, 0, 1])
    assert np.array_equal(row_distances(x, some, others), row_distances(HAND, some, others))
    assert x.not_zero().tolist() == [True, False, True]


def test_which_rows_are_the_anchor() -> None:
    for row in HAND:
        assert rows_equal_to(table(), row).tolist() == rows_equal_to(HAND, row).tolist()
    stored_zero = SparseRows(np.array([0, 2]), np.array([0, 2], np.int32), np.array([1.0, 0.0]), 4)
    assert rows_equal_to(stored_zero, HAND[2]).tolist() == [True]
    assert rows_equal_to(stored_zero, HAND[1]).tolist() == [False]


def test_tables_are_pooled_once_each() -> None:
    one, two = table(), table()
    flat, offsets = pool([one, two, one])
    assert offsets.tolist() == [0, 3, 0]
    assert np.array_equal(flat.dense(), np.vstack([HAND, HAND]))


# --- what users give ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_a_large_csr_matrix_is_taken_without_a_copy(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "COPIED", 0)
    given = make(np.eye(12, 5))
    problem = template(cost_features=given)
    layers = problem.graph.layers
    assert layers[0].cost_features is layers[2].cost_features is layers[1].transition_features
    assert problem.graph.shared_features
    assert layers[0].cost_features.values is given.data
    assert layers[0].cost_features.columns is given.indices
    assert not given.data.flags.writeable, "it is the problem's own now"
    assert np.array_equal(layers[0].cost_features.dense(), np.eye(12, 5))


def test_a_refused_declaration_leaves_the_matrix_as_it_was() -> None:
    given = scipy.sparse.csr_array(np.eye(12, 5))
    with pytest.raises(InvalidInput):
        template(cost_features=given, horizon=1)
    assert given.data.flags.writeable


def test_matrices_of_the_same_arrays_are_one_table() -> None:
    x = scipy.sparse.csr_array(np.eye(12))
    again = scipy.sparse.csr_array(np.eye(12))
    again.data, again.indices, again.indptr = x.data, x.indices, x.indptr
    assert template(cost_features=x, transition_features=again).graph.shared_features
    assert not template(cost_features=x, transition_features=x.copy()).graph.shared_features


def test_long_column_numbers_are_shortened() -> None:
    given = scipy.sparse.csr_array(np.eye(12))
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    x = template(cost_features=given).graph.layers[0].cost_features
    assert (x.columns.dtype, x.indptr.dtype) == (np.int32, np.int64)


def damaged(**changes: Any) -> Any:
    given = scipy.sparse.csr_array(np.eye(12))
    for name, value in changes.items():
        setattr(given, name, value)
    return given


REFUSED = [
    (scipy.sparse.coo_array(np.eye(12)), r"cost_features must be a CSR matrix when sparse.*coo_array.*tocsr"),
    (scipy.sparse.csr_array(np.eye(12, dtype=np.float32)), r"wrong dtype.*float32 where float64"),
    (scipy.sparse.csr_array(np.eye(11)), r"wrong shape.*\(11, 11\) where one row per triplet \(12\)"),
    (scipy.sparse.csr_array(np.eye(12) * np.nan), r"cost feature is not finite.*nan in column 0"),
    (scipy.sparse.csr_array((12, 0)), r"wrong length.*0 columns where one or more"),
    (
        scipy.sparse.csr_array((np.ones(12), np.arange(12), np.arange(13)), shape=(12, 20_000_000)),
        r"far more columns than entries.*20000000 columns, 12 entries.*no row uses",
    ),
    (damaged(indices=np.full(12, 12, np.int32)), r"not a valid CSR matrix.*in row 0, outside 0 … 11"),
    (damaged(indices=np.full(12, -1, np.int32)), r"not a valid CSR matrix.*in row 0, outside 0 … 11"),
    (damaged(indptr=np.arange(13)[::-1].astype(np.int32)), r"not a valid CSR matrix.*does not rise from 0"),
    (damaged(indptr=2 * np.arange(13, dtype=np.int32)), r"not a valid CSR matrix.*ends at 24, there are 12"),
    (  # its differences wrap around and look positive
        damaged(indptr=np.array([0, 2**63 - 1, -(2**63), -1, *range(2, 10), 12])),
        r"not a valid CSR matrix.*does not rise from 0",
    ),
    (damaged(indices=np.linspace(0.0, 6.9, 12)), r"not a valid CSR matrix.*columns are float64, not whole numbers"),
    (
        scipy.sparse.csr_array((np.ones(24), np.tile([1, 0], 12), 2 * np.arange(13)), shape=(12, 3)),
        r"columns out of order, or one twice: row 0: column 0 after 1.*sum_duplicates",
    ),
    (
        scipy.sparse.csr_array((np.ones(24), np.tile([1, 1], 12), 2 * np.arange(13)), shape=(12, 3)),
        r"columns out of order, or one twice: row 0: column 1 after 1",
    ),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        template(cost_features=given)


def test_the_layer_is_named() -> None:
    x = scipy.sparse.csr_array(np.eye(12))
    with pytest.raises(InvalidInput, match="step 1"):
        template(cost_features=[x, x.tocoo(), x])


def test_layers_are_all_sparse_or_all_dense() -> None:
    x = scipy.sparse.csr_array(np.eye(12))
    with pytest.raises(InvalidInput, match=r"sparse in one step and dense in another: step 1: dense"):
        template(cost_features=[x, np.eye(12), x])
    with pytest.raises(InvalidInput, match=r"terminal_cost_features is sparse.*last step: dense, step 0 has sparse"):
        template(cost_features=x, terminal_cost_features=np.zeros((6, 12)))
    mixed = template(cost_features=x, transition_features=np.ones((12, 1)))  # of two kinds is fine
    assert not mixed.graph.shared_features


def test_last_states_without_a_cost_have_no_entries() -> None:
    x = scipy.sparse.csr_array(np.eye(12))
    with pytest.raises(InvalidInput, match="without a cost has cost features"):
        template(
            cost_features=x,
            terminal_cost_features=scipy.sparse.csr_array(np.eye(6, 12)),
            terminal_has_cost=np.zeros(6, bool),
        )


def test_a_pruned_problem_keeps_the_rows_that_are_left() -> None:
    x = np.diag(np.arange(1.0, 13.0))
    dense, sparse = (template(cost_features=kind(x), start=4).pruned() for kind in (np.array, scipy.sparse.csr_array))
    for one, two in zip(dense.graph.layers, sparse.graph.layers, strict=True):
        assert np.array_equal(one.cost_features, two.cost_features.dense())
        assert two.transition_features is two.cost_features


def test_a_study_refuses_sparse_features(tmp_path: Any) -> None:
    problem = template(cost_features=scipy.sparse.csr_array(np.eye(12)))
    with pytest.raises(InvalidInput, match=r"a study takes dense features only: sparse cost_features with 12 columns"):
        sf.Study.open(tmp_path / "study", problem)
    assert not any(tmp_path.iterdir())  # nothing was begun
