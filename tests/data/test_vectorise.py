import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mcode.data import Feature, read, vectorise
from mcode.errors import DataFormatError


def features(data):
    return {f.name: f for f in data.features}


def test_missing_numbers_get_the_median_and_a_mark():
    data = read(pd.DataFrame({"x": [1.0, np.nan, 3.0, 8.0], "dx": [0, 1, 0, 1]}), "dx")
    assert data.feature_names == ("x", "x is missing")
    assert data.X.tolist() == [[1, 0], [3, 1], [3, 0], [8, 0]]
    assert [data.say(1, j) for j in range(2)] == ["x is missing", "x is missing"]
    assert data.cell(1, "x") is None


def test_a_value_that_is_missing_only_later_is_filled_without_a_new_feature():
    data = read(pd.DataFrame({"x": [1.0, 2.0, 6.0], "dx": [0, 1, 0]}), "dx")
    later = read(pd.DataFrame({"x": [np.nan, 4.0], "dx": [0, 1]}), like=data)
    assert later.X.tolist() == [[2], [4]]
    assert later.say(0, 0) == "x is missing"


def test_missing_categories_and_dates_are_marked():
    data = read(
        pd.DataFrame(
            {
                "sex": ["F", None, "M"],
                "seen": ["2024-03-01", "2024-03-05", None],
                "ok": ["yes", "no", None],
                "dx": [0, 1, 0],
            }
        ),
        "dx",
    )
    names = features(data)
    assert names["sex is missing"].source == ("sex", None)
    assert data.X[:, data.feature_names.index("sex is missing")].tolist() == [0, 1, 0]
    assert data.X[:, data.feature_names.index("seen is missing")].tolist() == [0, 0, 1]
    assert data.X[:, data.feature_names.index("ok")].tolist()[:2] == [1, 0]
    assert data.say(2, data.feature_names.index("ok")) == "ok is missing"
    assert data.say(1, data.feature_names.index("seen (day)")) == "seen = 2024-03-05"
    assert np.isfinite(data.X).all()


def test_an_unknown_category_is_none_of_the_known_ones():
    data = read(pd.DataFrame({"dept": ["a", "b", "a"], "ok": ["yes", "no", "no"], "dx": [0, 1, 0]}), "dx")
    later = read(pd.DataFrame({"dept": ["z", None], "ok": ["maybe", "yes"], "dx": [0, 1]}), like=data)
    places = [data.feature_names.index(name) for name in ("dept=a", "dept=b")]
    assert not later.X[:, places].any()
    assert later.say(0, data.feature_names.index("ok")) == "ok is missing"


def test_texts_are_read_for_their_words():
    reasons = [f"{'knee' if i % 2 else 'thirst'} case {i}" for i in range(60)]
    data = read(pd.DataFrame({"reason": reasons, "x": range(60), "dx": [0, 1] * 30}), "dx")
    assert data.feature_names == ("reason: knee", "reason: thirst", "x")
    assert data.features[1].source == ("reason", "thirst")
    assert data.say(0, 1) == "reason mentions 'thirst'"
    assert data.say(0, 0) == "reason does not mention 'knee'"


def test_numbers_written_as_texts_are_numbers():
    values = [str(v) for v in range(45)] + ["unknown"] * 3
    frame = pd.DataFrame({"x": pd.Series(values[:45], dtype=object), "dx": [0, 1, 0] * 15})
    assert read(frame, "dx").features[0].kind == "number"


def test_unique_texts_alone_are_no_context():
    frame = pd.DataFrame({"name": [f"person{i}" for i in range(60)], "dx": [0, 1] * 30})
    with pytest.raises(DataFormatError, match="no context column holds anything that repeats"):
        read(frame, "dx")


def test_columns_and_features_of_the_same_name_are_told_apart():
    frame = pd.DataFrame({"a=b": [1.0, 2.0, 3.0], "a": ["b", "c", "b"], "dx": [0, 1, 0]})
    data = read(frame, "dx")
    assert data.feature_names == ("a=b", "a=b (2)", "a=c")
    assert data.features[1] == Feature("a=b (2)", "a", "category", "b")


def test_large_mixed_tables_stay_sparse_and_agree_with_dense_ones(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame((rng.random((40, 120)) < 0.05).astype(float), columns=[f"w{j}" for j in range(120)])
    frame.iloc[3, 7] = np.nan
    frame = frame.assign(sex=rng.choice(["F", "M"], 40), ok=rng.choice(["yes", "no"], 40), dx=[0, 1] * 20)
    dense = read(frame, "dx")
    monkeypatch.setattr(vectorise, "LARGEST_DENSE", 0)
    sparse = read(frame, "dx")
    assert not sp.issparse(dense.X)
    assert sp.issparse(sparse.X)
    assert np.array_equal(sparse.X.toarray(), dense.X)
    assert sparse.cell(3, "w7") is None
    assert np.array_equal(read(frame, like=sparse).X.toarray(), dense.X)


def test_infinity_is_refused():
    with pytest.raises(DataFormatError, match="column 'x' is infinite in row 1"):
        read(pd.DataFrame({"x": [1.0, np.inf], "dx": [0, 1]}), "dx")


@pytest.mark.parametrize(
    ("feature", "value", "phrase"),
    [
        (Feature("x", "x"), 2.0, "x = 2"),
        (Feature("ok", "ok", "boolean", no_yes=("no", "yes")), 1, "ok = yes"),
        (Feature("d (month)", "d", "date", "month"), 3, "month of d = 3"),
        (Feature("d (day)", "d", "date", "day"), 1e12, "d = 1000000000000 days after 1970-01-01"),
        (Feature("x is missing", "x", "missing"), 0, "x is known"),
    ],
)
def test_a_feature_says_its_value(feature, value, phrase):
    assert feature.say(value) == phrase
