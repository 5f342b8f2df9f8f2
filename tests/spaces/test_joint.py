import numpy as np
import pytest
import scipy.sparse as sp

from mcode.spaces.joint import joint
from tables import sparse_table


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_context_and_responses_stand_side_by_side_in_the_storage_of_the_context(storage):
    X, Y = sparse_table(n=10)
    M = joint(storage(X.toarray()), Y)
    assert sp.issparse(M) == (storage is sp.csr_matrix)
    np.testing.assert_array_equal(M.toarray() if sp.issparse(M) else M, np.hstack([X.toarray(), Y]))


def test_without_features_the_responses_are_the_space():
    Y = np.array([[0, 1], [1, 1]], np.uint8)
    np.testing.assert_array_equal(joint(np.empty((2, 0)), Y), Y)
