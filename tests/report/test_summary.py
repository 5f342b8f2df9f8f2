import numpy as np
import pytest

import mcode
from mcode.report import Cut, findings_table, ranked_table, summarise, summary_lines
from mcode.report.histogram import Histogram, bars
from mcode.report.summary import predictability
from mcode.report.table import COLUMNS
from mcode.report.text import cut_line
from report.made import finding, summary


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 0] + X[:, 1] > 0, np.zeros(200)]).astype(np.uint8)
    return mcode.audit(X, Y, score="noise")


def summarised(found, flagged=(0, 1)):
    rows = np.array(flagged)
    names = ["a", "b", "c"]
    cut = Cut("top", len(rows), len(rows), 0.0)
    return summarise(
        found, rows, cut, source="t.csv", n_features=3, label_names=names, first_named=["b"], model="dbr", score="noise"
    )


def test_every_row_is_in_the_histogram_once(audited):
    scores = summarised(audited).scores
    assert sum(scores.counts) == 200
    assert sum(scores.flagged) == 2


def test_health_has_every_response_most_suspicious_first(audited):
    health = summarised(audited).health
    assert {row.name for row in health} == {"a", "b", "c"}
    assert [row.suspicious for row in health] == sorted((row.suspicious for row in health), reverse=True)
    assert {row.name: row.flagged for row in health} == {"a": 0, "b": 1, "c": 0}
    assert all(0.0 <= row.predictable <= 1.0 for row in health)


def test_a_response_with_one_value_is_named(audited):
    found = summarised(audited)
    assert found.one_valued == ("c",)
    assert "One value only, so nothing to audit: c." in summary_lines(found)
    assert next(row for row in found.health if row.name == "c").reliable is None


def test_predictability_compares_with_the_base_rate():
    guess = np.full((100, 1), 0.5)
    assert predictability(guess, np.array([0.5]))[0] == pytest.approx(0.0)
    assert predictability(np.full((100, 1), 0.9), np.array([0.5]))[0] > 0.8
    assert predictability(np.full((100, 1), 0.1), np.array([0.5]))[0] == 0.0


@pytest.mark.parametrize("scores", [[np.inf, np.inf], [1.0, 1.0], [-np.inf, 0.0, np.inf], [np.nan, 0.0, 2.0]])
def test_scores_that_are_infinite_or_all_equal_have_a_histogram(scores):
    histogram = Histogram.of(np.array(scores), np.array([0]))
    assert sum(histogram.counts) == len(scores)
    assert all(np.isfinite([bar.height, bar.y, bar.marked_height]).all() for bar in bars(histogram))


@pytest.mark.parametrize(
    ("cut", "sentence"),
    [
        (Cut("fdr", 0.05, 1, 0.01), "1 row is flagged at a false-discovery rate of 5.0 %; expect hardly a false alarm"),
        (Cut("top", 20, 20, 7.4), "20 rows are flagged because the top 20 were asked for; expect about 7"),
        (Cut("rate", 0.01, 30, 1.2), "30 rows are flagged as the most suspicious 1.0 % of all rows; expect about"),
    ],
)  # fmt: skip
def test_the_cut_is_said_in_one_sentence(cut, sentence):
    assert cut_line(cut).startswith(sentence)


def test_tables_have_the_documented_columns(audited):
    assert tuple(findings_table([finding(id="A")], "patient")) == ("patient", *COLUMNS)
    assert tuple(findings_table([finding()], None)) == ("row", *COLUMNS)


def test_the_ranked_table_has_every_row_and_sentences_where_there_are_findings(audited):
    first = int(audited.ranking[0])
    told = audited.explain(first)
    table = ranked_table(
        audited,
        [told],
        row_ids=np.arange(200),
        id_name=None,
        label_names=["a", "b", "c"],
        written=[("no", "yes")] * 3,
    )
    assert table["rank"] == list(range(1, 201))
    assert sorted(table["row"]) == list(range(200))
    assert table["sentence"][0] == told.sentence
    assert set(table["sentence"][1:]) == {""}
    assert set(table["observed"][1:]) <= {"no", "yes"}


def test_a_summary_in_text_says_what_was_audited():
    assert summary_lines(summary())[0] == "visits.csv: 100 rows, 2 responses, 7 features (model dbr, score learned)."


def test_as_many_rows_are_said_to_be_wrong_as_their_probabilities_add_up_to(audited):
    assert summarised(audited).error_rate * 200 == pytest.approx(audited.error_probability.sum())
