"""Rows gathered a block at a time are the rows stacked, and columns are shed without a copy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mcode.data.gathering import ROWS_AT_ONCE, GatheredRows, keep_columns


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1), st.booleans(), st.booleans()), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_gathered_rows_are_the_blocks_stacked(blocks, seed):
    rng = np.random.default_rng(seed)
    rows, expected = GatheredRows(7), []
    for n, share, is_sparse, is_double in blocks:
        block = np.where(rng.random((n, 7)) < share, rng.normal(size=(n, 7)), 0).astype("f8" if is_double else "f4")
        expected.append(block)
        rows.add(sp.csr_matrix(block) if is_sparse else block)
    stacked, found = np.concatenate(expected), rows.matrix()
    assert sp.issparse(found) == (np.count_nonzero(stacked) < 0.25 * max(1, stacked.size))
    assert np.array_equal(found.toarray() if sp.issparse(found) else found, stacked)
    assert found.dtype == np.float64 if any(block.dtype == np.float64 for block in expected) else np.float32


@pytest.mark.parametrize("storage", [np.array, sp.csr_matrix])
@pytest.mark.parametrize("kept", [[], [0, 3], [1, 2, 4, 5], [0, 1, 2, 3, 4, 5]])
def test_kept_columns_are_those_columns(storage, kept):
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((2 * ROWS_AT_ONCE + 17, 6)) < 0.4, rng.normal(size=(2 * ROWS_AT_ONCE + 17, 6)), 0)
    found = keep_columns(storage(cells), np.array(kept, np.intp))
    if sp.issparse(found):
        found.check_format(full_check=True)
        assert found.nnz == np.count_nonzero(cells[:, kept])
        found = found.toarray()
    assert np.array_equal(found, cells[:, kept])


def test_wide_sparse_rows_take_no_more_than_their_entries():
    rows = GatheredRows(1000)
    for start in range(0, 1000, 10):
        block = sp.csr_matrix((np.ones(10), (np.arange(10), np.arange(start, start + 10))), shape=(10, 1000))
        rows.add(block.astype(np.float32))
    found = rows.matrix()
    assert found.data.nbytes + found.indices.nbytes == 1000 * 8
    assert found.indices.dtype == found.indptr.dtype == np.int32
