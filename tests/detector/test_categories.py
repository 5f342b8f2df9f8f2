"""Audits of tables in which some responses have several values: what was put wrong is found, named and repaired."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import mcode
from categories import SEVERITY, clinic, with_errors
from mcode.corruption import Add, Drop, Flip, Noise, Several, Swap
from mcode.detector.redraw import redraw
from mcode.errors import InputError
from mcode.explain import Finding
from mcode.models import ClassifierChain, DependentRelevance
from mcode.models.encoding import ResponseEncoding
from mcode.models.panel import Panel
from mcode.scores import ReliabilityScore

K = (3, 4, 2)


@pytest.fixture(scope="module")
def wrong_table():
    X, Y = clinic()
    recorded, rows, columns = with_errors(Y)
    return X, Y, recorded, rows, columns


@pytest.fixture(scope="module")
def found(wrong_table):
    X, _, recorded, _, _ = wrong_table
    return mcode.audit(X, recorded)


def auc(scores, rows):
    return roc_auc_score(np.isin(np.arange(len(scores)), rows), scores)


def test_an_audit_finds_the_wrong_rows_and_names_the_response(found, wrong_table):
    _, _, _, rows, columns = wrong_table
    assert auc(found.outlier_score, rows) > 0.85
    assert found.rho.shape == (600, 3)
    top = np.intersect1d(found.ranking[:30], rows)
    named = found.response_error_probability[top].argmax(axis=1)
    truth = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    assert np.mean([named[at] == truth[int(row)] for at, row in enumerate(top)]) > 0.7


@pytest.mark.parametrize("score", ["noise", "complement", "norm", "robust", ReliabilityScore()])
def test_every_score_takes_rho_of_categories(wrong_table, score):
    X, _, recorded, rows, _ = wrong_table
    assert auc(mcode.audit(X, recorded, score=score).outlier_score, rows) > 0.7


def test_local_reliability_says_that_it_needs_two_values(wrong_table):
    X, _, recorded, _, _ = wrong_table
    with pytest.raises(InputError, match=r"more than two values; local weights need two"):
        mcode.audit(X, recorded, score=ReliabilityScore("local"))


def test_findings_speak_of_values_and_repair_to_the_right_one(found, wrong_table):
    _, right, recorded, rows, columns = wrong_table
    severe = [row for row, column in zip(rows, columns, strict=True) if column == 0 and row in found.ranking[:30]]
    findings = found.explain_rows(np.array(severe))
    repaired = 0
    for row, finding in zip(severe, findings, strict=True):
        assert Finding.from_json(finding.to_json()) == finding
        about = next(response for response in finding.responses if response.name == "severity")
        assert about.observed == recorded.severity[row]
        change = {change.name: change.after for change in finding.repair.changes}
        repaired += change.get("severity") == right.severity[row]
        if "severity" in change:
            assert about.sentence.startswith(f"`severity` is `{about.observed}` (")
            assert f"likely), expected `{about.expected}`" in about.sentence or "changed together" in about.sentence
            assert about.expected in SEVERITY
    assert repaired >= 0.7 * len(severe)


def test_weights_of_evidence_add_up_to_the_log_odds(wrong_table):
    X, Y, *_ = wrong_table
    detector = mcode.MCODE(DependentRelevance(mcode.models.BatchLogistic(1.0)), "complement").fit(X, Y)
    fitted, codes = detector.space_.models["model"].conditionals_, detector.encoding_.encode(Y)
    for row in range(4):
        finding = detector.explain(X[[row]], Y.iloc[[row]])[0]
        for response in finding.responses:
            if not response.evidence or response.observed == response.expected:
                continue
            j = list(Y.columns).index(response.name)
            values = detector.encoding_.values[j].tolist()
            eta = fitted.of_values(fitted.logits(X[[row]], codes[[row]]), j)[0]
            at_mean = fitted.linear
            assert at_mean.responses is not None
            gap = eta[values.index(response.expected)] - eta[values.index(response.observed)]
            base = _log_odds_of_the_typical_row(detector, j, response, values)
            assert sum(piece.weight for piece in response.evidence) == pytest.approx(gap - base, abs=1e-3)


def _log_odds_of_the_typical_row(detector, j, response, values):
    from mcode.models.indicators import Indicators

    linear = detector.space_.models["model"].conditionals_.linear
    x = detector.typical_.features
    if linear.scaling.mean is not None:
        x = (x - linear.scaling.mean) / linear.scaling.deviation
    eta = x @ linear.features + detector.typical_.responses @ linear.responses + linear.intercept
    part = eta[Indicators(K).columns(j)]
    part = np.array([0.0, part[0]]) if K[j] == 2 else part
    return part[values.index(response.expected)] - part[values.index(response.observed)]


def test_other_learners_explain_by_replacing(wrong_table):
    X, _, recorded, _, _ = wrong_table
    found = mcode.audit(X, recorded, model=DependentRelevance("naive-bayes"), score="complement")
    first = found.explain_rows(found.ranking[:3])[0]
    assert first.responses[0].evidence
    assert first.sentence


def test_a_detector_reads_new_rows_and_is_saved(wrong_table, tmp_path):
    X, Y, recorded, rows, _ = wrong_table
    detector = mcode.MCODE().fit(X[:400], Y[:400])
    assert detector.transform(X, recorded).shape == (600, 3)
    assert auc(detector.outlier_score(X, recorded), rows) > 0.85
    mcode.save(detector, tmp_path / "clinic.mcode")
    again = mcode.load(tmp_path / "clinic.mcode")
    np.testing.assert_array_equal(again.outlier_score(X, recorded), detector.outlier_score(X, recorded))
    np.testing.assert_array_equal(
        again.response_error_probability(X, recorded), detector.response_error_probability(X, recorded)
    )


@pytest.mark.parametrize("reference", ["holdout", "batch"])
def test_other_references_read_categories(wrong_table, reference):
    X, Y, recorded, rows, _ = wrong_table
    detector = mcode.MCODE(reference=reference).fit(X, Y)
    assert auc(detector.outlier_score(X, recorded), rows) > 0.85


@pytest.mark.parametrize("detector", [mcode.JointDetector(), mcode.SongCAD(response_components=4)])
def test_the_other_detectors_see_a_column_for_each_value(wrong_table, detector):
    X, Y, recorded, rows, _ = wrong_table
    assert auc(detector.fit(X, Y).outlier_score(X, recorded), rows) > 0.6


def test_a_missing_category_is_suggested(wrong_table):
    X, Y, *_ = wrong_table
    hidden = Y.astype(object).copy()
    hidden.loc[::6, "severity"] = None
    suggested = mcode.audit(X, hidden, score="complement").suggestions()
    assert len(suggested) == 100
    assert np.mean([one.value == Y.severity[one.row] for one in suggested]) > 0.7


def test_a_frame_names_the_likeliest_value(found):
    frame = found.to_frame(50)
    assert set(frame.label) <= {"severity", "drug", "admitted"}
    odd = frame[frame.observed != frame.expected]
    assert len(odd) > 20
    assert set(odd[odd.label == "severity"].expected) <= set(SEVERITY)


def test_order_of_the_responses_does_not_matter(wrong_table):
    X, _, recorded, _, _ = wrong_table
    model = DependentRelevance(mcode.models.BatchLogistic(1.0))
    one = mcode.audit(X, recorded, model=model, score="complement", random_state=3)
    other = mcode.audit(X, recorded[["admitted", "drug", "severity"]], model=model, score="complement", random_state=3)
    assert np.corrcoef(one.outlier_score, other.outlier_score)[0, 1] > 0.98


def test_closed_forms_are_the_likelihood_ratio_over_all_replacements():
    """P(recorded | one response was replaced), by summing over what may have been meant, against the closed form."""
    rng = np.random.default_rng(0)
    P = [rng.dirichlet(np.ones(k), size=5) for k in K]
    Y = np.column_stack([rng.integers(k, size=5) for k in K]).astype(np.uint8)
    rho = np.column_stack([P[j][np.arange(5), Y[:, j]] for j in range(3)])
    views = {"model": np.log(rho)}
    one_wrong = np.zeros(5)
    for i in range(5):
        for j in range(3):
            meant = sum(P[j][i, value] / (K[j] - 1) for value in range(K[j]) if value != Y[i, j])
            one_wrong[i] += meant * np.prod(np.delete(rho[i], j)) / 3
    np.testing.assert_allclose(np.exp(Flip().log_ratio(views, K)), one_wrong / rho.prod(axis=1))
    e = 0.2
    every = np.prod([(rho[:, j] + e * (1 - rho[:, j]) / (K[j] - 1)) for j in range(3)], axis=0)
    np.testing.assert_allclose(np.exp(Noise(e).log_ratio(views, K)), every / rho.prod(axis=1))
    share = np.array([(1 - rho[:, j]) / rho[:, j] / (K[j] - 1) for j in range(3)]).T
    np.testing.assert_allclose(Flip().share_of_blame(views, K), share / share.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", [Flip(), Flip(2), Noise(0.5), Add(), Drop(), Swap(), Several(Swap())])
def test_corruption_keeps_to_the_values_of_each_response(kind):
    rng = np.random.default_rng(0)
    Y = np.column_stack([rng.integers(k, size=400) for k in (3, 5, 2, 2)]).astype(np.uint8)
    wrong = kind.corrupt(Y, rng, (3, 5, 2, 2))
    assert (wrong < np.array([3, 5, 2, 2])).all()
    changed = (wrong != Y).sum(axis=1)
    if isinstance(kind, Flip):
        assert (changed == kind.k).all()
    elif isinstance(kind, Noise):
        assert changed.min() == 1
    elif isinstance(kind, Several):
        assert 1 < changed.max() <= 4
    else:  # presence is a matter of two values; as often as a response has more, one of those is replaced instead
        replaced = (wrong != Y)[:, :2].any(axis=1)
        assert 0.4 < replaced.mean() < 0.6
        assert (changed[replaced] == 1).all()
        assert changed.max() == (2 if isinstance(kind, Swap) else 1)


def test_replacements_are_spread_over_all_other_values():
    Y = np.zeros((3000, 1), np.uint8)
    wrong = Flip().corrupt(Y, np.random.default_rng(0), (4,))
    assert np.bincount(wrong[:, 0], minlength=4)[1:].min() > 900


def test_replacements_by_frequency_follow_how_often_each_value_occurs():
    Y = np.repeat(np.array([0, 1, 2], np.uint8), [1000, 3000, 1000])[:, None]
    wrong = Swap().corrupt(Y, np.random.default_rng(0), (3,))
    assert (wrong != Y).all()
    to = np.bincount(wrong[:1000, 0], minlength=3) / 1000  # from 0 to 1 and 2, which occur as three to one
    np.testing.assert_allclose(to, [0.0, 0.75, 0.25], atol=0.05)


def test_redrawn_responses_have_the_probabilities_of_the_model():
    X, Y = clinic(300)
    codes = ResponseEncoding.of(Y).encode(Y)
    chain = ClassifierChain([0, 1, 2]).fit(X, codes)
    same = np.repeat(X[:1], 4000, axis=0)
    drawn = redraw(chain.conditionals_, chain.parents_, same, np.zeros((4000, 3), np.uint8), np.random.default_rng(0))
    eta = chain.conditionals_.logits(X[:1], codes[:1])
    expected = np.exp(chain.conditionals_.of_values(eta, 0)[0])
    np.testing.assert_allclose(np.bincount(drawn[:, 0], minlength=3) / 4000, expected, atol=0.03)


def test_panels_of_some_rows_know_the_numbers_of_values():
    panel = Panel(np.zeros((3, 3), np.uint8), {"model": np.zeros((3, 3))}, None, K)
    assert panel[np.array([0, 2])].n_values == K
