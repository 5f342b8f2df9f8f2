"""Measures of a ranking: against scikit-learn, and where it cannot go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from mcode.errors import InputError
from mcode.experiments.metrics import all_of, auc, average_precision, of_injections, precision_at

rankings = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=60).filter(
    lambda rows: any(w for w, _ in rows) and not all(w for w, _ in rows)
)


def arrays(rows):
    return np.array([w for w, _ in rows]), np.array([s for _, s in rows], dtype=float)


@given(rankings)
def test_areas_agree_with_scikit_learn_also_with_ties(rows):
    wrong, score = arrays(rows)
    assert auc(wrong, score) == pytest.approx(roc_auc_score(wrong, score))
    assert average_precision(wrong, score) == pytest.approx(average_precision_score(wrong, score))


@given(rankings, st.integers(1, 60))
def test_precision_is_the_mean_over_orders_of_ties(rows, k):
    wrong, score = arrays(rows)
    k = min(k, len(wrong))
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(2000 if len(set(score)) < len(score) else 1):
        order = np.lexsort((rng.random(len(score)), -score))
        shares.append(wrong[order[:k]].mean())
        if len(shares) > 300:
            break
    assert precision_at(wrong, score, k) == pytest.approx(np.mean(shares), abs=0.15)


def test_infinite_scores_are_an_order_like_any_other():
    wrong, score = np.array([True, False, False]), np.array([np.inf, 1.0, -np.inf])
    assert all_of(wrong, score) == {"auc": 1.0, "ap": 1.0, "precision": 1.0}


def test_what_is_no_ranking_is_refused():
    with pytest.raises(InputError, match="NaN"):
        auc(np.array([True, False]), np.array([np.nan, 1.0]))
    with pytest.raises(InputError, match="some of each"):
        auc(np.array([True, True]), np.array([0.0, 1.0]))


@given(st.integers(0, 10_000), st.integers(1, 4), st.booleans())
def test_many_injections_at_once_are_those_of_a_loop(seed, size, tied):
    rng = np.random.default_rng(seed)
    right, wrong = rng.normal(size=30), 1.0 + rng.normal(size=30)
    if tied:
        right, wrong = right.round(), wrong.round()
        right[0], wrong[1], wrong[2] = np.inf, np.inf, -np.inf
    injections = list(rng.permutation(30)[: 5 * size].reshape(5, size))
    found = of_injections(injections, wrong, right)
    for rows, measures in zip(injections, found, strict=True):
        injected = np.isin(np.arange(30), rows)
        np.testing.assert_allclose(measures, list(all_of(injected, np.where(injected, wrong, right)).values()))


def test_injections_without_an_order_are_refused():
    with pytest.raises(InputError, match="NaN"):
        of_injections([np.array([0])], np.array([np.nan, 0.0]), np.zeros(2))
