import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mcode.scores import distinct
from mcode.scores.distinct import distinct_rows

small_tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 3)),
    elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5, 1e-300]),
)


@settings(deadline=None)
@given(small_tables)
def test_merging_loses_no_row_and_repeats_none(M):
    found = distinct_rows(M)
    np.testing.assert_array_equal(found.rows[found.which], M)
    assert len({tuple(row) for row in found.rows + 0.0}) == found.counts.size == len({tuple(row) for row in M + 0.0})
    assert found.counts.sum() == found.total == len(M)


@settings(deadline=None)
@given(small_tables, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(M, random):
    order = list(range(len(M)))
    random.shuffle(order)
    a, b = distinct_rows(M), distinct_rows(M[order])
    assert a.rows.tobytes() == b.rows.tobytes()
    np.testing.assert_array_equal(a.counts, b.counts)


@settings(deadline=None)
@given(small_tables)
def test_sparse_rows_merge_in_the_same_way(M):
    explicit = sp.csr_matrix(
        (np.r_[M.ravel()], np.tile(np.arange(M.shape[1]), len(M)), range(0, M.size + 1, M.shape[1]))
    )
    found = distinct_rows(explicit)
    np.testing.assert_array_equal(found.rows.toarray()[found.which], M)
    assert found.counts.size == distinct_rows(M).counts.size
    assert explicit.nnz == M.size  # the caller's matrix keeps its explicit zeros


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_rows_with_the_same_hash_are_told_apart(store, monkeypatch):
    monkeypatch.setattr(distinct, "_row_keys", lambda rows: np.zeros(rows.shape[0], np.uint64))
    M = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
    found = distinct_rows(store(M))
    rows = found.rows.toarray() if sp.issparse(found.rows) else found.rows
    np.testing.assert_array_equal(rows[found.which], M)
    assert sorted(found.counts) == [1, 1, 2]
