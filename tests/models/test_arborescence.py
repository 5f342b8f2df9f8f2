import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcode.models.arborescence import ROOT, best_arborescence


def is_forest(parent):
    for start in range(len(parent)):
        node, steps = start, 0
        while node != ROOT:
            node, steps = parent[node], steps + 1
            if steps > len(parent):
                return False
    return True


def total(gain, parent):
    return sum(gain[i, j] for i, j in enumerate(parent) if j != ROOT)


def by_trying_all(gain):
    d = len(gain)
    return max(total(gain, p) for p in itertools.product(range(ROOT, d), repeat=d) if is_forest(p))


@settings(max_examples=150)
@given(st.integers(1, 5).flatmap(lambda d: arrays(float, (d, d), elements=st.integers(-3, 12).map(float))))
def test_no_forest_has_a_larger_gain(gain):
    parent = best_arborescence(gain)
    assert is_forest(parent)
    assert total(gain, parent) == by_trying_all(gain)


def test_circles_within_circles_are_resolved():
    """Each pair wants each other, and the pairs want each other next: the worst case for contraction."""
    d = 64
    gain = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            gain[i, j] = 100.0 - (i ^ j).bit_length() * 10 + 0.001 * i
    parent = best_arborescence(gain)
    assert is_forest(parent)
    assert (parent == ROOT).sum() == 1


def test_nothing_is_gained_by_nobody():
    assert best_arborescence(np.full((4, 4), -1.0)).tolist() == [ROOT] * 4


def test_many_nodes_agree_with_a_tree_that_is_better_than_its_neighbours():
    rng = np.random.default_rng(0)
    gain = rng.exponential(size=(60, 60))
    parent = best_arborescence(gain)
    best = total(gain, parent)
    for _ in range(2000):
        other = parent.copy()
        other[rng.integers(60)] = rng.integers(ROOT, 60)
        if is_forest(other) and (other != np.arange(60)).all():
            assert total(gain, other) <= best + 1e-12
