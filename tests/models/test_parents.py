import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcode.errors import ParameterError
from mcode.models import parents as see


@given(st.integers(1, 12))
def test_nobody_is_its_own_parent(d):
    for parents in (see.none(d), see.all_others(d), see.chain(range(d), d)):
        assert parents.shape == (d, d)
        assert not np.diag(parents).any()


@given(st.integers(1, 12))
def test_all_others_lacks_the_own_response_only(d):
    assert see.all_others(d).sum() == d * (d - 1)
    assert not see.none(d).any()


@given(st.permutations(range(7)))
def test_in_a_chain_each_response_sees_those_before_it(order):
    parents = see.chain(order, 7)
    for place, j in enumerate(order):
        assert sorted(np.flatnonzero(parents[j])) == sorted(order[:place])


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ([0, 1], "order must be a list of each response from 0 to 2 once, without [2]; got [0, 1]."),
        ([0, 1, 1], "order must be a list of each response from 0 to 2 once, without [2]; got [0, 1, 1]."),
        ([0, 1, 2, 3], "order must be a list of each response from 0 to 2 once; got [0, 1, 2, 3]."),
    ],
)
def test_an_order_that_is_none_is_refused(order, sentence):
    with pytest.raises(ParameterError) as caught:
        see.chain(order, 3)
    assert str(caught.value) == sentence
