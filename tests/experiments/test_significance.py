"""Tests of differences: against SciPy and the numbers that the paper prints."""

import numpy as np
import pytest
from scipy import stats

from mcode.errors import ParameterError
from mcode.experiments import paper
from mcode.experiments.significance import (
    against,
    best_methods,
    critical_difference,
    friedman,
    holm,
    level_with_best,
    paired_t,
    ranks,
    t_of_summaries,
)


def test_printed_means_give_the_printed_rank_row():
    test = friedman(ranks(paper.AUC))
    np.testing.assert_allclose(test.mean_rank, paper.RANK, atol=0.005)
    assert test.chi2 == pytest.approx(28.40, abs=0.005)
    assert test.f == pytest.approx(10.44, abs=0.005)


def test_printed_standard_deviations_of_two_ranks_are_swapped():
    sd = friedman(ranks(paper.AUC)).sd_rank
    np.testing.assert_allclose(sd[:6], paper.RANK_SD[:6], atol=0.011)
    np.testing.assert_allclose(sd[[7, 6]], paper.RANK_SD[6:], atol=0.011)


def test_printed_means_give_the_bold_pattern_of_the_rank_row():
    level = level_with_best(ranks(paper.AUC))
    assert {paper.METHODS[j] for j in np.flatnonzero(level)} == paper.BOLD_RANK


def test_printed_means_and_deviations_give_the_bold_cells_but_one():
    found = {}
    for i, name in enumerate(paper.DATA_SETS):
        level = t_of_summaries(paper.AUC[i], paper.SD[i], paper.RUNS) > 0.05
        found[name] = {paper.METHODS[j] for j in np.flatnonzero(level)}
    # LOF prints 1.000 (0.000), so pairing cannot sharpen 0.975 (0.102): t = 1.34. The mark is not in the numbers.
    expected = {**paper.BOLD, "Genbase": paper.BOLD["Genbase"] | {"MCODE-RD"}}
    assert found == expected


def test_friedman_agrees_with_scipy():
    quality = np.random.default_rng(0).random((9, 5))
    theirs = stats.friedmanchisquare(*quality.T)
    ours = friedman(ranks(quality))
    assert ours.chi2 == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_holm_steps_down():
    # Holm by hand: 4 * .01, 3 * .02, 2 * .03, 1 * .2, each at least the one before
    np.testing.assert_allclose(holm(np.array([0.2, 0.03, 0.01, 0.02])), [0.2, 0.06, 0.04, 0.06])


def test_control_is_never_worse_than_itself():
    p = against(1, np.array([1.0, 2.0, 3.0]), 20)
    assert p[1] == 1.0
    assert p[0] == p[2]


def test_critical_difference_is_that_of_nemenyis_table():
    # Demsar 2006, table 5: q_0.05 of 2, 5 and 10 methods is 1.960, 2.728, 3.164
    for k, q in ((2, 1.960), (5, 2.728), (10, 3.164)):
        assert critical_difference(k, 10) == pytest.approx(q * np.sqrt(k * (k + 1) / 60), abs=2e-3)


def test_paired_t_agrees_with_scipy():
    a, b = np.random.default_rng(0).random((2, 30))
    assert paired_t(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_correction_for_overlap_divides_t():
    a, b = np.random.default_rng(0).random((2, 30))
    t = stats.ttest_rel(a, b).statistic / np.sqrt(30 * (1 / 30 + 1 / 9))
    assert paired_t(a, b, overlap=1 / 9) == pytest.approx(2 * stats.t.sf(abs(t), 29))


def test_equal_runs_are_level_and_a_constant_difference_is_not():
    ones = np.ones(30)
    assert paired_t(ones, ones) == 1.0
    assert paired_t(ones, ones - 0.1) == 0.0


def test_summaries_agree_with_welch():
    rng = np.random.default_rng(0)
    runs = rng.random((30, 3)) + np.array([0.0, 0.1, 0.3])
    p = t_of_summaries(runs.mean(axis=0), runs.std(axis=0, ddof=1), 30)
    for j in (0, 1):
        assert p[j] == pytest.approx(stats.ttest_ind(runs[:, 2], runs[:, j], equal_var=False).pvalue)


def test_best_methods_are_the_best_and_its_equals():
    noise = np.random.default_rng(0).normal(size=(30, 1))
    runs = np.hstack([noise, noise + 1e-3 * np.random.default_rng(1).normal(size=(30, 1)), noise - 1.0])
    assert best_methods(runs).tolist() == [True, True, False]


def test_one_run_is_refused():
    with pytest.raises(ParameterError, match="at least 2"):
        paired_t(np.ones(1), np.zeros(1))
