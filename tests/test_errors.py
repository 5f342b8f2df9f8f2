import pickle

import pytest

from mcode._optional import MissingExtraError
from mcode.errors import InputError, McodeError, NotConvergedWarning, ParameterError, UnknownNameError

ERRORS = [
    InputError("X", "row 1, column 2 is NaN", "fill or drop missing values first"),
    ParameterError("r", 0.5, "a number of at least 1, or infinity"),
    UnknownNameError("score", "complment", ["complement", "norm"]),
    MissingExtraError("pyod", "pyod"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_from_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert isinstance(error, McodeError)


def test_code_written_for_scikit_learn_catches_input_and_parameter_errors():
    assert all(isinstance(error, ValueError) for error in ERRORS[:3])
    assert isinstance(ERRORS[3], ImportError)


@pytest.mark.parametrize(
    ("came", "nearest"), [("complment", "complement"), ("nrm", "norm"), ("xyz", None), (None, None), (7, None)]
)
def test_the_nearest_known_name_is_suggested_where_there_is_one(came, nearest):
    sentence = str(UnknownNameError("score", came, ["complement", "norm"]))
    assert sentence.startswith(f"score must be one of 'complement', 'norm' or an instance; got {came!r}.")
    assert sentence.endswith(f"Did you mean {nearest!r}?") == (nearest is not None)


def test_a_long_list_of_columns_is_cut_short():
    few = NotConvergedWarning(["response 0", "response 3"], 2e-3)
    many = NotConvergedWarning([f"response {j}" for j in range(40)], 1.0)
    assert "2 of the fitted models did not converge (response 0, response 3):" in str(few)
    assert "40 of the fitted models did not converge (response 0, " in str(many)
    assert "response 4 and others)" in str(many)
    assert str(pickle.loads(pickle.dumps(few))) == str(few)
