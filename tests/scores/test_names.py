import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from mcode.errors import UnknownNameError
from mcode.scores import ComplementScore, ForeignScore, LearnedScore, NormScore, as_score
from mcode.scores.names import SCORES


@pytest.mark.parametrize("name", SCORES)
def test_a_name_stands_for_a_fresh_score(name):
    assert type(as_score(name)) is SCORES[name]
    assert as_score(name) is not as_score(name)


def test_an_instance_is_copied_unfitted():
    given = NormScore(r=3).fit([[0.5]])
    copy = as_score(given)
    assert copy is not given
    assert copy.r == 3
    assert not hasattr(copy, "n_features_in_")


def test_a_foreign_detector_is_wrapped():
    assert isinstance(as_score(IsolationForest()), ForeignScore)


@pytest.mark.parametrize(
    ("score", "hint"),
    [
        ("complment", "got 'complment'. Did you mean 'complement'?"),
        ("norms", "got 'norms'. Did you mean 'norm'?"),
        ("LOF", "got 'LOF'."),
        (None, "got None."),
        (3, "got 3."),
        (LearnedScore, "got <class 'mcode.scores.learned.LearnedScore'>."),
        (np.ones(3), "got array([1., 1., 1.])."),
    ],
)
def test_what_stands_for_no_score_is_refused_with_the_nearest_name(score, hint):
    with pytest.raises(UnknownNameError) as caught:
        as_score(score)
    assert str(caught.value).startswith("score must be one of 'complement', 'learned', 'lof', 'noise', 'norm', 'ocsvm'")
    assert str(caught.value).endswith(hint)


def test_the_complement_score_is_found_by_its_name():
    assert isinstance(as_score("complement"), ComplementScore)
