import json

import numpy as np
import pandas as pd
import pytest

import mcode
from mcode.detector.redraw import drawing_order, redraw
from mcode.errors import InputError
from mcode.explain import Finding
from mcode.models import BinaryRelevance, ClassifierChain, DependentRelevance, PerLabel
from tables import dependent_table, sparse_table

ROW, RESPONSE = 7, 1


@pytest.fixture(scope="module")
def table():
    """Three responses, the second follows the first; one cell of the second is wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = pd.DataFrame({"a": X[:, 0] > 0, "b": X[:, 0] > 0, "c": X[:, 1] > 0}).astype(int)
    Y.iloc[ROW, RESPONSE] ^= 1
    return X, Y


@pytest.fixture(scope="module")
def found(table):
    return mcode.audit(*table)


def test_a_finding_names_the_wrong_response_why_and_what_it_should_have_been(table, found):
    _, Y = table
    finding = found.explain(ROW, features=[("height", None), ("weight", None)], ids=["K7"])
    first = finding.responses[0]
    assert (finding.row, finding.id, finding.rank) == (ROW, "K7", 1)
    assert (first.name, first.observed, first.expected) == ("b", Y.iloc[ROW, 1], 1 - Y.iloc[ROW, 1])
    assert first.probability == pytest.approx(found.rho[ROW, 1])
    assert {piece.name for piece in first.evidence} <= {"height", "weight", "a", "c"}
    assert first.evidence[0].weight > 0
    assert finding.sentence == first.sentence
    assert finding.sentence.startswith(f"`b` is {'present' if first.observed else 'absent'} (")
    assert [(c.name, c.before, c.after) for c in finding.repair.changes] == [("b", first.observed, first.expected)]
    assert finding.repair.probability_after > 10 * finding.repair.probability_before
    assert finding.score == found.outlier_score[ROW]
    assert finding.p_value == found.p_value[ROW]


def test_findings_are_plain_and_come_back_from_json(found):
    for finding in found.explain_rows([ROW, 0, 1]):
        assert Finding.from_json(finding.to_json()) == finding
        json.loads(finding.to_json(), parse_constant=pytest.fail)


def test_ordinary_rows_have_nothing_to_repair(found):
    finding = found.explain(int(found.ranking[-1]))
    assert finding.repair.changes == ()
    assert finding.repair.probability_before == finding.repair.probability_after
    assert "as expected" in finding.sentence


def test_rows_of_an_audit_are_explained_by_models_that_never_saw_them(found, monkeypatch):
    import mcode.explain.explain as room

    seen = []
    monkeypatch.setattr(room, "Whole", lambda models, X, real=room.Whole: seen.append((models, X)) or real(models, X))
    rows = np.arange(20)
    found.explain_rows(rows)
    cross = found.space.cross["model"]
    for models, X in seen:
        fold = next(f for f, folded in enumerate(cross.folds) if folded is models["model"])
        np.testing.assert_array_equal(X, found.X[rows[cross.fold_of_row[rows] == fold]])


def test_explaining_a_row_alone_says_what_a_batch_says(found):
    batch = found.explain_rows(np.arange(10))
    for row in (0, 9):
        alone = found.explain(row)
        assert alone.sentence == batch[row].sentence
        assert [r.name for r in alone.responses] == [r.name for r in batch[row].responses]


@pytest.mark.parametrize("rows", [[300], [-1], [[1]]])
def test_rows_that_are_not_there_are_refused(found, rows):
    with pytest.raises(InputError, match="rows are counted from 0 to 299"):
        found.explain_rows(rows)


def test_as_many_ids_as_rows(found):
    with pytest.raises(InputError, match="it has 1 entries; 2 rows are explained"):
        found.explain_rows([0, 1], ids=["A"])


@pytest.mark.parametrize("reference", ["cross-fit", "holdout", "batch"])
def test_a_fitted_detector_explains_new_rows(table, reference):
    X, Y = table
    detector = mcode.MCODE(score="noise", reference=reference).fit(X, Y)
    new_X, new_Y = np.array([[2.0, 2.0], [2.0, 2.0], [-2.0, -2.0]]), np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0]])
    findings = detector.explain(new_X, new_Y, ids=["x", "y", "z"])
    assert [finding.id for finding in findings] == ["x", "y", "z"]
    assert findings[1].rank == 1
    assert findings[1].responses[0].name == "b"
    assert findings[1].score == detector.outlier_score(new_X, new_Y)[1]
    assert findings[1].p_value == detector.p_value(new_X, new_Y)[1]


@pytest.mark.parametrize("model", ["br", "chain", "dbr"])
def test_every_model_explains_sparse_rows(model):
    X, Y = sparse_table()
    found = mcode.audit(X, Y, model=model, score="complement")
    finding = found.explain(int(found.ranking[0]))
    assert len(finding.responses) == Y.shape[1]
    assert all(piece.name.startswith("feature ") or piece.name.isdigit() for piece in finding.responses[0].evidence)


def test_learners_that_are_not_linear_are_explained(table):
    from sklearn.ensemble import RandomForestClassifier

    X, Y = table
    learner = PerLabel(RandomForestClassifier(10, min_samples_leaf=5, random_state=0), n_jobs=1)
    found = mcode.audit(X, Y, model=DependentRelevance(learner), score="noise", folds=2)
    finding = found.explain(ROW)
    assert finding.responses[0].name == "b"
    assert finding.responses[0].evidence[0].name in ("a", "feature 0")


def test_text_values_are_spoken_as_they_are():
    X, Y = dependent_table()
    words = np.where(Y == 1, "ill", "well")
    finding = mcode.audit(X, words, score="noise").explain(0)
    assert {response.observed for response in finding.responses} <= {"ill", "well"}


def test_the_most_blamed_response_of_the_table_is_that_of_the_finding(found):
    rows = found.ranking[:5]
    labels = found.to_frame(5)["label"].tolist()
    repaired_alone = [f for f in found.explain_rows(rows) if len(f.repair.changes) <= 1]
    for finding in repaired_alone:
        assert finding.responses[0].name == labels[finding.rank - 1]


@pytest.mark.parametrize(
    ("kind", "exact"), [(BinaryRelevance, True), (ClassifierChain, True), (DependentRelevance, False)]
)
def test_responses_drawn_anew_are_distributed_as_the_model_says(kind, exact):
    X, Y = dependent_table(n=300, d=3)
    model = kind().fit(X, Y)
    order, is_exact = drawing_order(model.parents_)
    assert (sorted(order), is_exact) == ([0, 1, 2], exact)
    many = np.repeat(X[:1], 20_000, axis=0)
    drawn = redraw(
        model.conditionals_, model.parents_, many, np.repeat(Y[:1], 20_000, axis=0), np.random.default_rng(0)
    )
    if exact:
        vectors, counts = np.unique(drawn, axis=0, return_counts=True)
        expected = np.exp(model.log_proba(many[: len(vectors)], vectors).sum(axis=1))
        np.testing.assert_allclose(counts / 20_000, expected, atol=0.015)
    else:
        assert 0 < drawn.mean() < 1


def test_redrawing_needs_no_linear_learner():
    from sklearn.naive_bayes import GaussianNB

    X, Y = dependent_table(d=3)
    model = ClassifierChain(learner=PerLabel(GaussianNB(), n_jobs=1)).fit(X, Y)
    many = np.repeat(X[:1], 5_000, axis=0)
    drawn = redraw(model.conditionals_, model.parents_, many, np.repeat(Y[:1], 5_000, axis=0), np.random.default_rng(0))
    vectors, counts = np.unique(drawn, axis=0, return_counts=True)
    expected = np.exp(model.log_proba(many[: len(vectors)], vectors).sum(axis=1))
    np.testing.assert_allclose(counts / 5_000, expected, atol=0.03)


def test_the_cut_flags_the_most_suspicious_rows_first():
    X = np.random.default_rng(0).normal(size=(600, 2))
    Y = np.repeat(X[:, :1] > 0, 6, axis=1).astype(int)
    wrong = np.arange(0, 600, 50)
    Y[wrong, wrong // 50 % 6] ^= 1
    found = mcode.audit(X, Y, score="noise")
    flagged = found.flagged(0.1)
    assert len(flagged) > 0
    np.testing.assert_array_equal(flagged, found.ranking[: len(flagged)])
    assert set(found.flagged(0.01)) <= set(flagged)
    assert np.isin(flagged, wrong).mean() >= 0.8


def test_the_cut_holds_its_level_on_generated_tables():
    false_share = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, Y = dependent_table(n=150, seed=seed)
        wrong = rng.random(len(Y)) < 0.03
        Y[wrong, rng.integers(4, size=wrong.sum())] ^= 1
        flagged = mcode.audit(X, Y, score="noise", folds=3).flagged(0.1)
        false_share.append((~wrong[flagged]).sum() / max(1, len(flagged)))
    assert np.mean(false_share) <= 0.1 + 2 * np.std(false_share) / np.sqrt(len(false_share)) + 0.01


def test_on_real_rows_the_wrong_response_is_mostly_named_first(real_data):
    X, Y = real_data("yeast")
    X, Y = X[:800], Y[:800].copy()
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(Y))[:40]
    cells = rng.integers(Y.shape[1], size=len(rows))
    Y[rows, cells] ^= 1
    found = mcode.audit(X, Y)
    named = [int(finding.responses[0].name) for finding in found.explain_rows(rows)]
    assert np.mean(np.array(named) == cells) > 0.5
