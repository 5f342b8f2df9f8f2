"""What the detectors and the audit accept, and the one sentence with which they refuse the rest."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import mcode
from mcode import MCODE, JointDetector
from mcode.errors import InputError, McodeError, ParameterError
from mcode.models import BatchLogistic, BinaryRelevance, ClassifierChain, DependentRelevance
from mcode.models.names import MODELS
from mcode.scores import NoiseScore, NormScore
from tables import dependent_table, sparse_table

X, Y = dependent_table(n=60)
TEXT = np.array(["absent", "present"])[Y]
NAMES = ["a", "b", "c", "d"]
GIVEN = DependentRelevance(BatchLogistic(penalty=1.0))


def quick(**parameters):
    return MCODE(GIVEN, "complement", **parameters)


SAME_X = {
    "array": X,
    "columns first": np.asfortranarray(X),
    "every other row": np.repeat(X, 2, axis=0)[::2],
    "read-only": np.frombuffer(X.tobytes()).reshape(X.shape),
    "nested lists": X.tolist(),
    "csr": sp.csr_matrix(X),
    "csc": sp.csc_matrix(X),
    "coo": sp.coo_matrix(X),
    "sparse array": sp.csr_array(X),
    "pandas": pd.DataFrame(X),
    "polars": pl.DataFrame(X),
}
SAME_Y = {
    "bool": Y.astype(bool),
    "uint8": Y,
    "int64": Y.astype(np.int64),
    "float32": Y.astype(np.float32),
    "float64": Y.astype(np.float64),
    "text": TEXT,
    "nested lists": Y.tolist(),
    "csr": sp.csr_matrix(Y),
    "csc of floats": sp.csc_matrix(Y.astype(float)),
    "pandas": pd.DataFrame(Y, columns=NAMES),
    "pandas text": pd.DataFrame(TEXT, columns=NAMES),
    "polars": pl.DataFrame(Y, schema=NAMES),
    "polars bool": pl.DataFrame(Y.astype(bool), schema=NAMES),
}


@pytest.fixture(scope="module")
def expected():
    return quick().fit(X, Y).outlier_score(X, Y)


@pytest.mark.parametrize("kind", SAME_X)
def test_context_in_any_container_gives_the_same_scores(kind, expected):
    np.testing.assert_allclose(quick().fit(SAME_X[kind], Y).outlier_score(SAME_X[kind], Y), expected, atol=1e-4)


@pytest.mark.parametrize("kind", SAME_Y)
def test_responses_in_any_container_and_type_give_the_same_scores(kind, expected):
    np.testing.assert_allclose(quick().fit(X, SAME_Y[kind]).outlier_score(X, SAME_Y[kind]), expected, atol=1e-5)


@pytest.mark.parametrize("kind", SAME_Y)
def test_the_audit_takes_any_container_too(kind):
    found = mcode.audit(X, SAME_Y[kind], model=GIVEN, score="complement", folds=3)
    same = mcode.audit(X, Y, model=GIVEN, score="complement", folds=3)
    np.testing.assert_allclose(found.outlier_score, same.outlier_score, atol=1e-5)


def test_single_precision_scores_nearly_like_double(expected):
    single = X.astype(np.float32)
    np.testing.assert_allclose(quick().fit(single, Y).outlier_score(single, Y), expected, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.bool_])
def test_features_of_other_types_are_taken(dtype):
    counts = np.round(np.abs(X)).astype(dtype)
    expected = quick().fit(counts.astype(float), Y).outlier_score(counts.astype(float), Y)
    np.testing.assert_allclose(quick().fit(counts, Y).outlier_score(counts, Y), expected, atol=1e-6)


def every_method(detector, X, Y):
    """Fit and read the rows in every way."""
    detector.fit(X, Y)
    out = [detector.outlier_score(X, Y), detector.p_value(X, Y), detector.percentile_rank(X, Y)]
    if isinstance(detector, MCODE):
        out += [detector.error_probability(X, Y), detector.transform(X, Y), detector.response_p_value(X, Y)]
        out += [detector.response_error_probability(X, Y)]
    return out


DETECTORS = {
    "default": MCODE,
    "chain, noise": lambda: MCODE("chain", "noise"),
    "br, norm": lambda: MCODE("br", "norm"),
    "robust": lambda: MCODE(score="robust"),
    "joint": lambda: JointDetector("robust"),
}


def one_response():
    return X, Y[:, 0]


def constant_responses():
    constant = Y.copy()
    constant[:, 1], constant[:, 3] = 0, 1
    return X, constant


def duplicates():
    return np.repeat(X[:15], 4, axis=0), np.repeat(Y[:15], 4, axis=0)


def wide():
    return dependent_table(n=40, m=120)


def wide_and_sparse():
    return sparse_table(n=40, m=500, density=0.02)


def no_features():
    return np.empty((60, 0)), Y


def no_features_sparse():
    return sp.csr_matrix((60, 0)), Y


def constant_features():
    return np.hstack([X, np.full((60, 2), 7.0)]), Y


ODD_TABLES = [one_response, constant_responses, duplicates, wide, wide_and_sparse, no_features, no_features_sparse]


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("make", [*ODD_TABLES, constant_features])
def test_odd_but_honest_tables_are_scored(make, detector):
    for numbers in every_method(DETECTORS[detector](), *make()):
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize("make", ODD_TABLES)
def test_odd_but_honest_tables_are_audited(make):
    found = mcode.audit(*make(), folds=3)
    for numbers in (found.outlier_score, found.p_value, found.error_probability, found.rho):
        assert np.isfinite(numbers).all()


def test_responses_with_one_value_are_reported_and_scored_by_their_smoothed_base_rate():
    table = pd.DataFrame(constant_responses()[1], columns=NAMES)
    detector = quick().fit(X, table)
    assert detector.one_valued_ == ["b", "d"]
    np.testing.assert_allclose(detector.transform(X, table)[:, [1, 3]], 60.5 / 61.0, rtol=1e-5)
    found = mcode.audit(X, table, score="complement")
    assert found.one_valued == ["b", "d"]
    assert (found.rho[:, 1] > 0.98).all()


def test_no_response_varies_at_all():
    found = mcode.audit(X, np.zeros_like(Y))
    assert found.one_valued == ["0", "1", "2", "3"]
    assert np.isfinite(found.outlier_score).all()


def with_value(value, row=4, column=2):
    changed = X.copy()
    changed[row, column] = value
    return changed


def named(table):
    return pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])


def sparse_with(value):
    return sp.csr_matrix(with_value(value))


A_HALF = np.where((np.arange(60) == 7)[:, None], 0.5, Y)
BAD_TABLES = {
    "different lengths": (
        lambda: (X[:50], Y),
        "X and Y: they have 50 and 60 rows; each row of X belongs to one row of Y.",
    ),
    "NaN": (lambda: (with_value(np.nan), Y), "X: row 4, column 2 is NaN; fill or drop missing values first."),
    "infinity": (lambda: (with_value(np.inf), Y), "X: row 4, column 2 is infinity; fill or drop missing values first."),
    "minus infinity": (lambda: (with_value(-np.inf), Y), "X: row 4, column 2 is infinity; fill or drop"),
    "two infinities": (lambda: (with_value([np.inf, -np.inf], column=[1, 2]), Y), "X: row 4, column 1 is infinity;"),
    "NaN by name": (
        lambda: (named(with_value(np.nan)), Y),
        "X: row 4, column 'x2' is NaN; fill or drop missing values",
    ),
    "NaN in polars": (
        lambda: (pl.DataFrame(with_value(np.nan)), Y),
        "X: row 4, column 'column_2' is NaN; fill or drop",
    ),
    "null in polars": (lambda: (pl.DataFrame({"x": [1.0, None] * 30}), Y), "X: row 1, column 'x' is NaN; fill or drop"),
    "NaN in sparse": (
        lambda: (sparse_with(np.nan), Y),
        "X: row 4, column 2 is NaN; fill or drop missing values first.",
    ),
    "infinity in sparse": (lambda: (sparse_with(np.inf), Y), "X: row 4, column 2 is infinity; fill or drop"),
    "text in X": (lambda: (pd.DataFrame({"x": ["red"] * 60}), Y), "X: the value 'red' is not a number; encode text"),
    "complex X": (lambda: (X + 1j, Y), "X: Complex data not supported; give real numbers."),
    "flat X": (lambda: (X[:, 0], Y), "X: it has 1 dimension(s); a table with rows and columns is expected"),
    "no X": (lambda: (None, Y), "X: it has 0 dimension(s); a table with rows and columns is expected"),
    "ragged X": (lambda: ([[1.0], [1.0, 2.0]], Y[:2]), "X: its rows differ in length; a table with rows and columns"),
    "ragged Y": (lambda: (X[:2], [[0], [1, 0]]), "Y: its rows differ in length; a table with rows and columns"),
    "no Y": (lambda: (X, None), "Y: it has 0 dimensions; a table of rows and responses is expected."),
    "a half": (lambda: (X, A_HALF), "Y: row 7, column '0' holds 0.5; each response may have two values"),
    "many texts": (
        lambda: (X, np.array([f"v{i:02}" for i in range(60)])),
        "Y: column '0' has 60 different values ('v00', 'v01', 'v02', ...)",
    ),
    "continuous": (lambda: (X, X), "Y: row 0, column '0' holds 0.12573"),
    "no rows": (lambda: (X[:0], Y[:0]), "Y: it is empty (shape (0, 4)); at least one row and one response are needed."),
    "no rows in X": (
        lambda: (X[:0], Y),
        "X: it has 0 row(s) (shape=(0, 5)); 0 sample(s) while a minimum of 1 is required.",
    ),
    "no responses": (
        lambda: (X, Y[:, :0]),
        "Y: it is empty (shape (60, 0)); at least one row and one response are needed.",
    ),
    "no responses, sparse": (lambda: (X, sp.csr_matrix((60, 0))), "Y: it is empty (shape (60, 0)); at least one row"),
    "fewer rows than folds": (lambda: (X[:4], Y[:4]), "X: it has 4 row(s) (n_samples=4); 5 folds need at least 5."),
}


def one_sentence(error, sentence):
    """Check that the error is ours, says what is expected, and is one line."""
    assert isinstance(error, McodeError)
    assert isinstance(error, ValueError)
    assert str(error).startswith(sentence)
    assert "\n" not in str(error)


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_table_that_cannot_be_used_is_refused_in_one_sentence(case):
    make, sentence = BAD_TABLES[case]
    doors = [quick().fit, lambda X, Y: mcode.audit(X, Y, score="complement")]
    if case != "fewer rows than folds":  # a baseline has no folds
        doors.append(JointDetector("robust").fit)
    for door in doors:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            door(*make())
        one_sentence(caught.value, sentence)


BAD_ROWS = {
    "more features": (
        X[:, [0, 1, 2, 3, 4, 4]],
        Y,
        "X: it has 6 columns (features); the model was fitted on 5 features.",
    ),
    "fewer responses": (X, Y[:, :3], "Y: it has 3 columns; the model was fitted on 4 responses."),
    "different lengths": (X[:9], Y[:8], "X and Y: they have 9 and 8 rows; each row of X belongs to one row of Y."),
    "unknown value": (X[:1], np.array([[0, 1, 2, 0]]), "Y: row 0, column '2' holds 2; its values are [0, 1]."),
    "text": (X[:1], np.array([["a", "b", "c", "d"]]), "Y: column '0' mixes numbers with other values; each response"),
    "NaN": (with_value(np.nan), Y, "X: row 4, column 2 is NaN; fill or drop missing values first."),
    "no rows": (X[:0], Y[:0], "X: it has 0 row(s) (shape=(0, 5)); 0 sample(s) while a minimum of 1 is required."),
}


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, Y), JointDetector("robust").fit(X, Y)


@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows_that_do_not_fit_the_detector_are_refused_by_every_method(case, fitted):
    *rows, sentence = BAD_ROWS[case]
    for detector in fitted:
        methods = [detector.outlier_score, detector.p_value, detector.percentile_rank, detector.predict]
        if isinstance(detector, MCODE):
            methods += [detector.transform, detector.error_probability, detector.response_p_value]
        for method in methods:
            with pytest.raises(ValueError) as caught:  # noqa: PT011
                method(*rows)
            one_sentence(caught.value, sentence)


MODEL_NAMES = ", ".join(repr(name) for name in sorted(MODELS))
BAD_PARAMETERS = {
    "model": (
        MCODE("dbrr"),
        f"model must be one of {MODEL_NAMES} or an instance; got 'dbrr'. Did you mean 'dbr'?",
    ),
    "model class": (MCODE(BinaryRelevance), f"model must be one of {MODEL_NAMES} or an instance; got <class"),
    "score": (MCODE(score="complment"), "score must be one of 'complement', 'learned', 'lof'"),
    "score class": (MCODE(score=NormScore), "score must be one of 'complement', 'learned', 'lof'"),
    "no score": (MCODE(score=None), "score must be one of 'complement', 'learned', 'lof'"),
    "joint score": (JointDetector("robst"), "score must be one of 'complement', 'learned', 'lof'"),
    "reference": (MCODE(reference="crossfit"), "reference must be one of 'batch', 'cross-fit', 'holdout'"),
    "joint reference": (JointDetector(reference="half"), "reference must be one of 'batch', 'cross-fit', 'holdout'"),
    "folds": (MCODE(folds=1), "folds must be a whole number of at least 2; got 1."),
    "half a fold": (MCODE(folds=2.5), "folds must be a whole number of at least 2; got 2.5."),
    "error rate": (MCODE(error_rate=1.5), "error_rate must be 'auto' or a number between 0 and 1; got 1.5."),
    "error rate text": (MCODE(error_rate="none"), "error_rate must be 'auto' or a number between 0 and 1; got 'none'."),
    "no error rate": (MCODE(error_rate=None), "error_rate must be 'auto' or a number between 0 and 1; got None."),
    "alarm rate": (MCODE(alarm_rate=0), "alarm_rate must be a number between 0 and 1; got 0."),
    "alarm rate text": (JointDetector(alarm_rate="1%"), "alarm_rate must be a number between 0 and 1; got '1%'."),
    "learner": (MCODE(BinaryRelevance(LogisticRegression())), "learner must be a learner such as BatchLogistic()"),
    "penalty": (MCODE(BinaryRelevance(BatchLogistic(-1.0))), "penalty must be 'cv' or a positive number; got -1.0."),
    "order": (MCODE(ClassifierChain([0, 1])), "order must be a list of each response from 0 to 3 once, without [2, 3]"),
    "norm": (MCODE(score=NormScore(0.5)), "r must be a number of at least 1, or infinity; got 0.5."),
    "errors": (MCODE(score=NoiseScore(["flip"])), "errors must be a list of kinds of error"),
    "rho alone": (
        JointDetector("complement"),
        "score must be a score over any matrix: this one is defined on rho alone",
    ),
    "rho alone, noise": (JointDetector(NoiseScore([mcode.corruption.Flip()])), "score must be a score over any matrix"),
    "rho alone, learned": (JointDetector("learned"), "score must be a score over any matrix"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_a_bad_parameter_is_refused_at_fit_in_one_sentence(case):
    detector, sentence = BAD_PARAMETERS[case]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        detector.fit(X, Y)
    one_sentence(caught.value, sentence)


def test_a_misspelt_name_is_answered_with_the_nearest_one():
    for score, nearest in (("complment", "complement"), ("learnd", "learned"), ("robst", "robust")):
        with pytest.raises(ValueError, match=f"Did you mean '{nearest}'\\?"):
            MCODE(score=score).fit(X, Y)


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_inputs_are_left_alone(detector):
    for rows in ((X.copy(), Y.copy()), (sp.csr_matrix(X), sp.csr_matrix(Y)), (named(X), pd.DataFrame(TEXT))):
        kept = [table.copy() for table in rows]
        every_method(DETECTORS[detector](), *rows)
        for table, before in zip(rows, kept, strict=True):
            if sp.issparse(table):
                assert (table != before).nnz == 0
            else:
                assert np.array_equal(np.asarray(table), np.asarray(before))


def test_sparse_rows_with_64_bit_indices_are_read(expected):
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(quick().fit(wide, Y).outlier_score(wide, Y), expected, atol=1e-4)


def test_unsorted_sparse_rows_with_repeated_entries_are_read_right_and_left_alone():
    repeated = sp.csr_matrix((np.ones(4), np.array([3, 1, 1, 0]), np.array([0, 3, 4])), shape=(2, 5))
    rows = sp.vstack([repeated] * 30).tocsr()
    rows.has_canonical_format = False
    indices, data = rows.indices.copy(), rows.data.copy()
    scores = quick().fit(rows, Y).outlier_score(rows, Y)
    np.testing.assert_array_equal(rows.indices, indices)
    np.testing.assert_array_equal(rows.data, data)
    np.testing.assert_allclose(quick().fit(rows.toarray(), Y).outlier_score(rows.toarray(), Y), scores, atol=1e-4)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_features_beyond_single_precision_are_refused(store):
    with pytest.raises(InputError, match=r"X: it holds .*e\+100; numbers up to 1e\+18 are accepted"):
        mcode.audit(store(np.full((20, 2), -1e100)), Y[:20])


def test_the_halves_of_a_holdout_are_counted_as_the_user_counts():
    with pytest.raises(InputError, match=r"it has 9 row\(s\) .*half of them are held out, and 5 folds .* need 10"):
        MCODE(reference="holdout").fit(X[:9], Y[:9])


def test_folds_are_checked_also_where_they_are_not_used():
    with pytest.raises(ParameterError, match="folds must be a whole number"):
        MCODE("br", "robust", reference="batch", folds=1).fit(X, Y)


def test_a_reference_is_named_and_no_instance():
    with pytest.raises(ParameterError) as caught:
        MCODE(reference="crossfit").fit(X, Y)
    assert "instance" not in str(caught.value)
    assert "'cross-fit'" in str(caught.value)
