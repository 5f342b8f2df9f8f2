import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from mcode.corruption import Add, Drop, Flip, Mismatch, Several, Swap
from mcode.errors import InputError, ParameterError
from mcode.models import BatchLogistic, DependentRelevance
from mcode.models.base_rate import rate_of_recorded, smoothed_base_rate
from mcode.models.folds import stratified_folds
from mcode.models.panel import Panel
from mcode.scores import LearnedScore, blame, learned
from mcode.scores.blame import Blame, cell_features
from mcode.scores.learned import CERTAIN, DEFAULT_ERRORS, ROUNDS
from mcode.scores.row_features import JOINED, NAMES, row_features, spread
from mcode.spaces.rho import RhoSpace
from tables import dependent_table


class Reading:
    """A small table read by out-of-fold models, as a detector does it."""

    def __init__(self, n=400, d=6, seed=0, table=None):
        self.X, self.Y = dependent_table(n=n, d=d, m=4, seed=seed) if table is None else table
        self.folds = stratified_folds(self.Y, 4, np.random.default_rng(0))
        model = DependentRelevance(BatchLogistic(1.0))
        self.space = RhoSpace(model, LearnedScore.needs).fit(self.X, self.Y, self.folds, final=True)
        self.panel = self.space.out_of_fold(self.X, self.Y)

    def reread(self, Y, rows):
        return self.space.out_of_fold(self.X[rows], Y, rows)

    def fit(self, score):
        return score.fit(self.panel, self.reread, self.folds)


@pytest.fixture(scope="module")
def reading():
    return Reading()


@pytest.fixture(scope="module")
def fitted(reading):
    return reading.fit(LearnedScore())


VIEWS = ("model", "chain", "br", "others", "mutual", "alike", "pairs", "prototypes")
OF_A_CELL = (*VIEWS, "twins", "company")


def features_by_hand(panel):
    """The same numbers, one row and one response at a time."""
    rows = []
    for i, y in enumerate(panel.Y):
        recorded = np.exp(panel.views["rate"][i])
        base_rate = np.where(y == 1, recorded, 1 - recorded)
        row, seen = [], [panel.views[view][i] for view in VIEWS]
        odds = [np.exp(-panel.views[view][i]) - 1 for view in ("br", "mutual")]
        base_odds = np.where(y == 1, 1 / base_rate - 1, base_rate / (1 - base_rate))
        seen.append(-np.log(1 + odds[0] * odds[1] / base_odds))
        for log_rho in seen:
            surprise = -log_rho
            odds = np.expm1(surprise)
            largest = np.sort(np.append(odds, [0.0, 0.0, 0.0]))[::-1]
            row += [surprise.sum()]
            row += [np.log(largest[k] + 1e-9) for k in range(3)]
            rho = np.exp(-surprise)
            row += [np.log(((1 - rho) / (rho + 0.01)).sum() + 1e-9)]
            row += [surprise[y == 1].sum(), surprise[y == 0].sum()]
            row += [np.log(odds[y == 1].sum() + 1e-6), np.log(odds[y == 0].sum() + 1e-6)]
        row += [-np.log(np.where(y == 1, base_rate, 1 - base_rate)).sum(), y.sum()]
        row += [max([-np.log(base_rate[j]) for j in np.flatnonzero(y)], default=0.0)]
        top = int(np.argmin(panel.views["model"][i]))
        odds = {name: np.log(np.exp(-log_rho[i, top]) - 1) for name, log_rho in panel.views.items()}
        base = np.log(base_rate[top] / (1 - base_rate[top]))
        row += [y[top], base, y[top] * base, odds["chain"], odds["br"]]
        row += [y[top] * odds["model"], y[top] * odds["br"]]
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("d", [1, 2, 6])
def test_the_features_of_a_row_are_what_their_names_say(d):
    rng = np.random.default_rng(d)
    views = {name: np.log(rng.uniform(1e-6, 1.0, (30, d))) for name in (*VIEWS, "rate")}
    panel = Panel(rng.integers(0, 2, (30, d)).astype(np.uint8), views)
    features = row_features(panel)
    assert features.shape == (30, len(NAMES))
    np.testing.assert_allclose(features, features_by_hand(panel), rtol=1e-9, atol=1e-9)


def test_context_and_responses_are_two_witnesses_of_any_number_of_values():
    rng = np.random.default_rng(0)
    n_values, Y = (3, 2, 4), np.column_stack([rng.integers(0, k, 50) for k in (3, 2, 4)]).astype(np.uint8)
    views = {name: np.log(rng.uniform(0.01, 0.99, Y.shape)) for name in VIEWS}
    recorded = rate_of_recorded(Y, smoothed_base_rate(Y, n_values))
    features = row_features(Panel(Y, {**views, "rate": np.log(recorded)}, n_values=n_values))
    for i, rate in enumerate(recorded):
        against = [1 / np.exp(views[name][i]) - 1 for name in ("br", "mutual")]
        surprise = np.log(1 + against[0] * against[1] / (1 / rate - 1))
        assert features[i, NAMES.index(f"{JOINED}: sum of -log rho")] == pytest.approx(surprise.sum())


def test_features_stay_finite_for_many_impossible_responses():
    views = {name: np.full((2, 300), np.log(1e-12)) for name in VIEWS}
    panel = Panel(np.ones((2, 300), np.uint8), {**views, "rate": np.full((2, 300), np.log(0.83))})
    features = row_features(panel)
    assert np.isfinite(features).all()
    assert features[0, NAMES.index("model: sum over present")] == pytest.approx(300 * np.log(1e12))


def test_the_features_of_a_cell_are_what_each_model_says_of_it():
    said = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1 / 6, 1 / 8, 1 / 3, 0.7)
    rho = {name: [[value, 0.5]] for name, value in zip(OF_A_CELL, said, strict=True)}
    rho["rate"] = [[0.25, 0.5]]
    panel = Panel(np.array([[1, 0]], np.uint8), {name: np.log(value) for name, value in rho.items()})
    first, second = cell_features(panel)[0]
    odds = np.log([9.0, 4.0, 7 / 3, 1.5, 2 / 3, 0.25, 5.0, 7.0, 2.0, 3 / 7])
    base, number = -np.log(3), np.log(2)  # one response of the row is present
    np.testing.assert_allclose(first, [*odds, 1.0, base, base, np.log(9), np.log(5), number, number * base])
    np.testing.assert_allclose(second, np.zeros(17), atol=1e-12)


def competition(n, d, weights, seed):
    """Rows in which one response is wrong, drawn by a softmax of known weights, and what is known of its cells."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d, len(weights)))
    one = (features @ weights + rng.gumbel(size=(n, d))).argmax(axis=1)
    return features, np.arange(d) == one[:, None]


def test_blame_finds_the_weights_by_which_one_response_of_each_row_was_made_wrong():
    weights = np.array([2.0, 0.5, 0.0, -1.0, 0.3, 0.0, 1.0, 0.0])
    learnt = Blame.fit([competition(3000, 5, weights, 0), competition(3000, 5, weights, 1)], np.ones(2) / 2)
    np.testing.assert_allclose(learnt.w, weights, atol=0.12)
    np.testing.assert_allclose(learnt.calibration, [0.0, 1.0], atol=0.12)  # then the softmax is right as it is


def test_blame_is_at_the_optimum_where_features_overlap_and_several_responses_are_wrong():
    """Against the loss as it is written down, minimised in double precision along the features themselves."""
    features, wrong = competition(400, 5, np.array([2.0, 0.5, -1.0]), 3)
    features[:, :, 1] = features[:, :, 0] + 0.1 * features[:, :, 1]
    features[:, :, 2] = 100.0 * features[:, :, 2]
    wrong[::7, 0] = True
    scale = features.std(axis=(0, 1))

    def loss(w):
        eta = features @ (w / scale)
        named = logsumexp(eta, axis=1, b=wrong) - logsumexp(eta, axis=1)
        return 0.5 * blame.PENALTY * w @ w - named.sum()

    found = Blame.fit([(features, wrong)], np.ones(1)).w * scale
    assert loss(found) == pytest.approx(minimize(loss, np.zeros(3)).fun, rel=1e-5)


def test_blame_adds_up_to_the_number_of_wrong_responses_where_there_are_several():
    features, wrong = competition(2000, 5, np.array([2.0, 0, 0, 0, 0, 0, 0, 0]), 0)
    second = ~wrong & (features[:, :, 0] == np.where(wrong, -9, features[:, :, 0]).max(axis=1, keepdims=True))
    learnt = Blame.fit([(features, wrong | second)], np.ones(1))
    assert learnt.calibration[0] > 0.2  # more than one response is wrong
    assert learnt.calibration[1] > 0


def test_kinds_teach_blame_by_their_shares_for_each_response_that_they_make_wrong():
    """As if rows of a kind with half the share were half as many, and rows with two wrong responses half as many."""
    one, two = competition(400, 5, np.array([2.0, 0.0]), 0), competition(400, 5, np.array([0.0, 2.0]), 1)
    twice = tuple(np.concatenate([part, part]) for part in two)
    by_share = Blame.fit([one, two], np.array([1.0, 3.0])).w
    np.testing.assert_allclose(Blame.fit([one, twice], np.array([1.0, 3.0])).w, by_share, atol=0.05)
    assert Blame.fit([one, two], np.array([3.0, 1.0])).w[0] > by_share[0]
    features, wrong = two
    several = wrong | (np.arange(5) == 0)
    second = several.sum() / wrong.sum()
    alone = Blame.fit([one, (features, several)], np.array([1.0, second])).w
    rows = np.repeat([1.0 / 400, 1.0 / 400], 400)
    expected = blame.fit_competition(
        np.concatenate([one[0], features]), np.concatenate([one[1], several]), rows * 800 / rows.sum()
    )
    np.testing.assert_allclose(alone, expected, atol=1e-3)


def test_a_fitted_row_with_other_responses_is_judged_by_the_contrasts_without_its_fold(reading, fitted):
    rows = np.arange(0, 400, 7)
    own = fitted.own_outlier_score(reading.panel[rows], reading.folds[rows])
    np.testing.assert_allclose(own, fitted.training_score_[rows], rtol=1e-9)
    wrong = Flip(3).corrupt(reading.Y[rows], np.random.default_rng(0))
    judged = fitted.own_outlier_score(reading.reread(wrong, rows), reading.folds[rows])
    assert (judged > own).mean() > 0.8


@pytest.mark.parametrize("kind", [Flip(), Flip(3), Add(), Drop(), Mismatch(), Swap()], ids=repr)
def test_rows_with_an_error_score_higher_than_recorded_ones(reading, fitted, kind):
    rng = np.random.default_rng(9)
    rows = np.arange(len(reading.Y))
    corrupted = kind.corrupt(reading.Y, rng)
    changed = np.flatnonzero((corrupted != reading.Y).any(axis=1))
    wrong = fitted.outlier_score(reading.reread(corrupted[changed], rows[changed]))
    scores = np.concatenate([fitted.training_score_[changed], wrong])
    truth = np.repeat([0, 1], len(changed))
    assert roc_auc_score(truth, scores) > 0.65


def test_blame_falls_on_the_response_that_was_changed(reading, fitted):
    corrupted = Flip().corrupt(reading.Y, np.random.default_rng(3))
    panel = reading.reread(corrupted, np.arange(len(corrupted)))
    blame = fitted.response_blame(panel)
    assert ((blame >= 0) & (blame <= 1)).all()
    right = blame.argmax(axis=1) == (corrupted != reading.Y).argmax(axis=1)
    assert right.mean() > 0.5  # one in six by chance


def test_the_scores_of_the_rows_it_was_fitted_on_come_from_contrasts_without_them(reading, fitted):
    own = fitted.outlier_score(reading.panel)
    assert own.shape == fitted.training_score_.shape
    assert (own != fitted.training_score_).all()
    assert np.corrcoef(own, fitted.training_score_)[0, 1] > 0.9


def contrasts_by_hand(F, fold, n, penalty, rounds):
    """The same regressions by scikit-learn, the recorded rows that are certainly wrong taken out round by round."""
    Z = (F - F.mean(axis=0)) / spread(F)
    target, folds, kept = np.repeat([0, 1], n), np.tile(fold, 2), np.ones(2 * n, bool)
    surprise = F[:, NAMES.index("model: sum of -log rho")]
    drastic = surprise[:n] > max(np.quantile(surprise[n:], 0.7), np.quantile(surprise[:n], 0.95))
    assert drastic.mean() > 0.0125
    kept[:n] = ~drastic
    left = np.zeros(n, bool)
    for _ in range(rounds + 1):
        own = np.empty(n)
        for f in [*range(fold.max() + 1), -1]:  # the last is on all rows
            seen = kept & (folds != f)
            model = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=5000).fit(Z[seen], target[seen])
            ratio = model.decision_function(Z[:n]) - np.log(target[seen].sum() / (1 - target[seen]).sum())
            own[fold == f] = ratio[fold == f]
        left |= own > CERTAIN
        if (left == ~kept[:n]).all():
            break
        kept[:n] = ~left
    return own, ratio, kept[:n]


def test_each_contrast_is_a_logistic_regression_of_corrupted_against_recorded_rows(reading):
    score = reading.fit(LearnedScore([Flip()], penalty=3.0))
    rng = np.random.default_rng(0)
    rng.permutation(len(reading.Y))  # the choice of rows comes first
    corrupted = Flip().corrupt(reading.Y, rng)
    panels = reading.panel, reading.reread(corrupted, np.arange(len(corrupted)))
    F = np.vstack([row_features(panel) for panel in panels])
    own, everywhere, kept = contrasts_by_hand(F, reading.folds, len(corrupted), 3.0, ROUNDS)
    assert 0 < (~kept).sum() < 10
    np.testing.assert_allclose(score.training_score_, own, atol=0.02)
    np.testing.assert_allclose(score.outlier_score(reading.panel), everywhere, atol=0.02)


def test_wrong_rows_in_the_table_do_not_hide_their_kind(monkeypatch):
    table = Reading(n=600, d=12)
    wrong = np.arange(len(table.Y)) < 12  # two in a hundred
    table.Y = np.where(wrong[:, None], Flip(5).corrupt(table.Y, np.random.default_rng(1)), table.Y).astype(np.uint8)
    table.panel = table.reread(table.Y, np.arange(len(table.Y)))

    def ratios_of_wrong_rows():
        score = table.fit(LearnedScore([Flip(5), Flip()]))
        return score.contrast_.own_log_ratios(row_features(table.panel), table.folds)[wrong, 0]

    found = ratios_of_wrong_rows()
    monkeypatch.setattr(learned, "ROUNDS", 0)
    assert (found - ratios_of_wrong_rows()).mean() > 0.25


@pytest.mark.parametrize("k", [2, 6])
def test_wrong_rows_of_a_kind_it_does_not_know_are_not_taken_for_right_ones(real_data, monkeypatch, k):
    X, Y = real_data("genbase")
    rng = np.random.default_rng(0)
    wrong = np.arange(len(Y)) < 13  # two in a hundred
    assert Flip(k) not in DEFAULT_ERRORS
    table = Reading(table=(X, np.where(wrong[:, None], Flip(k).corrupt(Y, rng), Y).astype(np.uint8)))
    assert average_precision_score(wrong, table.fit(LearnedScore()).training_score_) > 0.75
    monkeypatch.setattr(learned, "ROUNDS", 0)  # no row is taken out
    errors = {kind: share for kind, share in DEFAULT_ERRORS.items() if not isinstance(kind, Several)}
    assert average_precision_score(wrong, table.fit(LearnedScore(errors)).training_score_) < 0.6


def test_the_score_is_the_sum_of_the_kinds_in_their_shares(reading):
    both = reading.fit(LearnedScore({Flip(): 3.0, Mismatch(): 1.0}))
    ratios = both.contrast_.log_ratios(row_features(reading.panel))
    expected = np.log(0.75 * np.exp(ratios[:, 0]) + 0.25 * np.exp(ratios[:, 1]))
    np.testing.assert_allclose(both.outlier_score(reading.panel), expected, rtol=1e-9)
    corrected = both.against_right_rows(both.outlier_score(reading.panel))
    np.testing.assert_array_equal(both.log_likelihood_ratio(reading.panel), corrected)


def test_the_likelihood_ratio_is_about_1_on_average_over_recorded_rows(monkeypatch):
    monkeypatch.setattr(learned, "ROUNDS", 0)  # no row is taken out
    score = Reading(n=4000).fit(LearnedScore([Flip()]))  # a mean of ratios hangs on its largest: it takes many rows
    assert np.exp(score.training_score_).mean() == pytest.approx(1.0, abs=0.1)


def test_the_same_seed_gives_the_same_bits_and_another_one_others(reading):
    one, again = reading.fit(LearnedScore(random_state=1)), reading.fit(LearnedScore(random_state=1))
    other = reading.fit(LearnedScore(random_state=2))
    np.testing.assert_array_equal(one.training_score_, again.training_score_)
    assert (one.training_score_ != other.training_score_).any()


@pytest.mark.parametrize("at_once", [0, 5000])
def test_kinds_of_error_may_be_read_together_or_one_by_one(reading, fitted, monkeypatch, at_once):
    monkeypatch.setattr(learned, "CELLS_TOGETHER", at_once)
    apart = reading.fit(LearnedScore())
    np.testing.assert_allclose(apart.training_score_, fitted.training_score_, atol=1e-3)
    np.testing.assert_allclose(apart.blame_.w, fitted.blame_.w, atol=1e-3)


@pytest.mark.parametrize("at_once", [60, 700])
def test_copies_may_be_read_all_at_once_or_a_few_rows_at_a_time(reading, fitted, monkeypatch, at_once):
    monkeypatch.setattr(learned, "CELLS_AT_ONCE", at_once)
    monkeypatch.setattr(blame, "CELLS_AT_ONCE", at_once)
    in_parts = reading.fit(LearnedScore())
    np.testing.assert_allclose(in_parts.training_score_, fitted.training_score_, atol=1e-3)
    np.testing.assert_allclose(in_parts.blame_.w, fitted.blame_.w, atol=1e-3)


def test_fewer_rows_to_corrupt_still_score_all_rows(reading):
    few = reading.fit(LearnedScore(max_rows=100))
    assert few.training_score_.shape == (400,)
    assert np.corrcoef(few.training_score_, reading.fit(LearnedScore()).training_score_)[0, 1] > 0.8


def test_a_kind_that_can_change_no_row_is_left_out():
    reading = Reading(n=60, d=3)
    reading.Y[:] = 0
    panel = reading.reread(reading.Y, np.arange(60))
    score = LearnedScore([Drop(), Flip(), Swap()]).fit(panel, reading.reread, reading.folds)
    assert score.kinds_ == [Flip()]
    np.testing.assert_array_equal(score.shares_, [1.0])
    with pytest.raises(InputError, match="Y: no stated kind of error can change any row; give other errors"):
        LearnedScore([Drop()]).fit(panel, reading.reread, reading.folds)


def test_a_kind_that_can_change_one_row_only_gives_scores_of_ordinary_size():
    X, Y = dependent_table(n=60)
    Y[:] = 0
    Y[3, 1] = 1
    folds = stratified_folds(Y, 5, np.random.default_rng(0))
    space = RhoSpace(DependentRelevance(), LearnedScore.needs).fit(X, Y, folds, final=True)
    score = LearnedScore([Drop()])
    own = score.fit_outlier_score(space.out_of_fold(X, Y), lambda Yc, rows: space.out_of_fold(X[rows], Yc, rows), folds)
    assert np.abs(own).max() < 50
    assert np.abs(score.outlier_score(space.panel(X, Y))).max() < 50


def test_a_plain_matrix_is_refused():
    with pytest.raises(InputError, match="M: it is a plain matrix; the learned score needs a Panel"):
        LearnedScore().fit(np.full((5, 2), 0.5), None)


def test_what_is_no_kind_of_error_is_refused(reading):
    with pytest.raises(ParameterError, match="errors must be a list of kinds of error"):
        reading.fit(LearnedScore(["flip"]))


def test_a_score_that_was_not_fitted_says_so(reading):
    for method in (LearnedScore().outlier_score, LearnedScore().response_blame):
        with pytest.raises(NotFittedError):
            method(reading.panel)
