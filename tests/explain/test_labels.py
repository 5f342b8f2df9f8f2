import numpy as np
import pytest

from mcode.data.features import Feature
from mcode.errors import InputError
from mcode.explain.finding import Evidence
from mcode.explain.labels import Labels
from mcode.explain.sentence import sentence
from mcode.models.encoding import ResponseEncoding

ENCODING = ResponseEncoding([np.array([0, 1]), np.array(["A", "B"])], ["insulin", "grade"])


def labels(features, binary=None):
    return Labels(ENCODING, np.zeros(len(features), bool) if binary is None else np.array(binary), features)


def evidence(names, features, x):
    piece = names.feature_evidence(features, np.array(x, dtype=np.float32), 1.0)
    return piece.name, piece.value


def test_without_descriptions_features_are_counted():
    names = Labels(ENCODING, np.array([False, True]))
    assert evidence(names, [0], [9.1]) == ("feature 0", 9.1)
    assert evidence(names, [1], [1.0]) == ("feature 1", True)


def test_the_categories_of_a_column_are_one_fact():
    names = labels([("sex", "F"), ("sex", "M"), ("age", None)])
    assert names.group(0) == names.group(1) != names.group(2)
    assert evidence(names, [0, 1], [0.0, 1.0]) == ("sex", "M")
    assert evidence(names, [0, 1], [0.0, 0.0]) == ("sex = F", False)
    assert evidence(names, [2], [41.0]) == ("age", 41)


def test_features_of_a_data_set_speak_for_themselves():
    names = labels(
        [
            Feature("hba1c", "hba1c"),
            Feature("hba1c?", "hba1c", "missing"),
            Feature("smoker", "smoker", "boolean", None, ("no", "yes")),
            Feature("visited", "visited", "date", "day"),
            Feature("reason_thirst", "reason", "word", "thirst"),
        ]
    )
    assert names.group(0) == names.group(1)
    assert evidence(names, [0, 1], [9.1, 0.0]) == ("hba1c", 9.1)
    assert evidence(names, [0, 1], [6.0, 1.0]) == ("hba1c is missing", True)
    assert evidence(names, [2], [1.0]) == ("smoker", "yes")
    assert evidence(names, [3], [19783.0]) == ("visited", "2024-03-01")
    assert evidence(names, [4], [0.0]) == ("reason mentions 'thirst'", False)


def test_descriptions_that_do_not_fit_the_context_are_refused():
    with pytest.raises(InputError, match="it describes 1 features; the context has 2"):
        Labels(ENCODING, np.zeros(2, bool), [("age", None)])


def test_values_of_responses_are_the_users_own():
    names = Labels(ENCODING, np.zeros(0, bool))
    assert names.response_value(0, 1) == 1
    assert names.response_value(1, 0) == "A"


PRESENT, ABSENT = Evidence("response", "diabetes", 1, 3.0), Evidence("response", "statin", 0, 2.0)
NUMBER, CATEGORY = Evidence("feature", "hba1c", 9.1, 2.5), Evidence("feature", "sex", "F", 1.0)
AGAINST, WEAK = Evidence("feature", "age", 41, -5.0), Evidence("feature", "bmi", 20.5, 0.1)


@pytest.mark.parametrize(
    ("pieces", "reasons"),
    [
        ([PRESENT, NUMBER], "although `diabetes` and `hba1c = 9.1` are present."),
        ([PRESENT], "although `diabetes` is present."),
        ([NUMBER], "although `hba1c = 9.1`."),
        ([NUMBER, CATEGORY], "although `hba1c = 9.1` and `sex = F`."),
        ([ABSENT], "although `statin` is absent."),
        ([PRESENT, ABSENT], "although `diabetes` is present and `statin` is absent."),
        ([AGAINST, PRESENT, WEAK], "although `diabetes` is present."),
        (
            [PRESENT, NUMBER, ABSENT, CATEGORY],
            "although `diabetes` and `hba1c = 9.1` are present and `statin` is absent.",
        ),
    ],
)
def test_sentences_name_what_speaks_for_the_expected_value(pieces, reasons):
    assert sentence("insulin", 0, 1, 0.031, pieces) == f"`insulin` is absent (3 % likely) {reasons}"


def test_sentences_of_other_cases():
    assert sentence("grade", "B", "A", 0.2, [AGAINST]) == "`grade` is B (20 % likely): it is usually A."
    assert sentence("insulin", 1, 1, 0.999, []) == "`insulin` is present, as expected (more than 99 % likely)."
    told = sentence("insulin", 1, 0, 0.8, [PRESENT], together="metformin")
    assert told == "`insulin` is present (80 % likely), but changed together with `metformin` the row becomes ordinary."
