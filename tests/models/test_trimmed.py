import numpy as np
import pytest

import mcode
from mcode.errors import ParameterError
from mcode.models import BatchLogistic, BinaryRelevance, DependentRelevance, TreeRelevance, TrimmedModel
from tables import dependent_table

GIVEN = BatchLogistic(penalty=1.0)


def contaminated(n=400, share=0.05, seed=0):
    """Return X, the truth, Y with one wrong response in a share of the rows, and where those are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = (X @ rng.normal(size=(4, 5)) * 3 + rng.logistic(size=(n, 5)) > 0).astype(np.uint8)
    wrong = np.zeros(truth.shape, bool)
    wrong[rng.permutation(n)[: int(share * n)], rng.integers(0, 5, size=int(share * n))] = True
    return X, truth, truth ^ wrong, wrong


def test_the_cells_that_are_left_out_are_mostly_wrong():
    X, _, Y, wrong = contaminated()
    model = TrimmedModel(DependentRelevance(GIVEN), share=0.02).fit(X, Y)
    assert model.trimmed_.sum() == 8
    assert wrong[model.trimmed_].mean() > 0.7


def test_right_rows_are_predicted_better_from_a_contaminated_table():
    X, truth, Y, _ = contaminated(n=1000)
    plain = BinaryRelevance(GIVEN).fit(X[:500], Y[:500]).log_proba(X[500:], truth[500:]).sum()
    trimmed = TrimmedModel(BinaryRelevance(GIVEN), share=0.05).fit(X[:500], Y[:500])
    assert trimmed.log_proba(X[500:], truth[500:]).sum() > plain + 10


def test_nothing_is_left_out_where_nothing_is_asked_for():
    X, _, Y, _ = contaminated(n=100)
    plain = DependentRelevance(GIVEN).fit(X, Y).log_proba(X, Y)
    np.testing.assert_array_equal(TrimmedModel(DependentRelevance(GIVEN), share=0.0).fit(X, Y).log_proba(X, Y), plain)


def test_a_rare_response_keeps_what_it_is_learned_from():
    X, _, Y, _ = contaminated(n=100)
    Y[:, 0] = 0
    Y[7, 0] = 1
    model = TrimmedModel(TreeRelevance(GIVEN), share=0.1).fit(X, Y)
    assert not model.trimmed_[7, 0]


def test_it_serves_an_audit_that_judges_what_was_recorded():
    X, _, Y, wrong = contaminated(n=300)
    found = mcode.audit(X, Y, model=TrimmedModel())
    assert (found.rho[wrong] < 1 - 1e-6).all()
    rank = np.empty(300)
    rank[found.ranking] = np.arange(300)
    assert np.median(rank[wrong.any(axis=1)]) < 60


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (TrimmedModel(share=0.7), "share must be a number from 0 to below 0.5"),
        (TrimmedModel("dbr"), "model must be a model such as"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(model, sentence):
    with pytest.raises(ParameterError, match=sentence):
        model.fit(*dependent_table())
