import numpy as np
import pytest

from mcode.models import BatchLogistic, DependentRelevance
from mcode.models import mutual as module
from mcode.models.mutual import mutual_log_proba
from oracles import both_directions
from tables import dependent_table


def responses_alone(d=4, penalty=0.5):
    _, Y = dependent_table(n=200)
    Y = np.hstack([Y, Y[::-1]])[:, :d]
    nothing = np.zeros((len(Y), 0), np.float32)
    model = DependentRelevance(BatchLogistic(penalty)).fit(nothing, Y)
    return model, Y, model.log_proba(nothing, Y)


@pytest.mark.parametrize("d", [2, 4, 7])
@pytest.mark.parametrize("penalty", [1e-3, 0.5, 50.0])
def test_a_response_is_asked_both_ways(d, penalty):
    model, Y, own = responses_alone(d, penalty)
    mutual = mutual_log_proba(model.conditionals_, Y, own)
    np.testing.assert_allclose(mutual, both_directions(model, Y), rtol=2e-4, atol=2e-4)
    assert np.abs(mutual - own).max() > 1e-4


def test_only_the_least_believed_responses_are_asked(monkeypatch):
    model, Y, own = responses_alone(7)
    monkeypatch.setattr(module, "ASKED", 2)
    mutual = mutual_log_proba(model.conditionals_, Y, own)
    least = own <= np.sort(own, axis=1)[:, [1]] + 1e-7
    np.testing.assert_allclose(mutual[least], both_directions(model, Y)[least], rtol=2e-4, atol=2e-4)
    np.testing.assert_array_equal(mutual[~least], own[~least])


def test_a_missing_response_says_nothing_of_the_others():
    model, Y, own = responses_alone(4)
    known = np.ones(Y.shape, bool)
    known[:, 1] = False
    mutual = mutual_log_proba(model.conditionals_, Y, own, known)
    np.testing.assert_allclose(mutual[known], both_directions(model, Y, known)[known], rtol=2e-4, atol=2e-4)
    np.testing.assert_array_equal(mutual[~known], own[~known])


def test_one_response_has_no_others():
    nothing, Y = np.zeros((50, 0), np.float32), np.arange(50)[:, None] % 3 == 0
    model = DependentRelevance(BatchLogistic(1.0)).fit(nothing, Y)
    own = model.log_proba(nothing, Y)
    np.testing.assert_array_equal(mutual_log_proba(model.conditionals_, Y.astype(np.uint8), own), own)


def test_rows_alone_are_as_in_a_batch_and_the_input_is_untouched():
    model, Y, own = responses_alone(4)
    before = own.copy()
    whole = mutual_log_proba(model.conditionals_, Y, own)
    alone = np.vstack([mutual_log_proba(model.conditionals_, Y[[i]], own[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, whole[:20], rtol=1e-6)
    np.testing.assert_array_equal(own, before)
