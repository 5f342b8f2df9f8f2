import numpy as np
import pytest

from mcode.corruption import Add, Mismatch
from mcode.data import read
from mcode.data.synthetic import LABELS, clinic_visits
from mcode.errors import ParameterError


def test_the_truth_is_known():
    visits = clinic_visits(3000, random_state=1)
    truth = visits.truth
    assert truth.is_wrong.sum() == 60
    assert np.array_equal(truth.is_wrong, truth.kind != "")
    assert len(set(truth.kind[truth.is_wrong])) == 6
    assert np.array_equal(truth.recorded, np.column_stack([visits.columns[name] for name in LABELS]))


def test_same_seed_same_table():
    one, two, other = clinic_visits(200), clinic_visits(200), clinic_visits(200, random_state=1)
    assert all(np.array_equal(one.columns[name], two.columns[name]) for name in one.columns)
    assert not np.array_equal(one.truth.Y, other.truth.Y)


def test_responses_depend_on_the_context_and_on_each_other():
    visits = clinic_visits(5000, error_rate=0.0)
    Y = dict(zip(LABELS, visits.truth.Y.T.astype(bool), strict=True))
    assert min(y.mean() for y in Y.values()) > 0.02
    assert Y["rx_insulin"][Y["dx_diabetes"]].mean() > 20 * Y["rx_insulin"][~Y["dx_diabetes"]].mean()
    hba1c = np.array([np.nan if v is None else v for v in visits.columns["hba1c"]])
    assert np.nanmean(hba1c[Y["dx_diabetes"]]) > np.nanmean(hba1c[~Y["dx_diabetes"]]) + 1.5
    assert not visits.truth.is_wrong.any()


def test_kinds_of_error_are_chosen():
    truth = clinic_visits(500, error_rate=0.1, errors=[Add(), Mismatch()]).truth
    assert set(truth.kind) == {"", "Add()", "Mismatch()"}
    assert (truth.recorded[truth.kind == "Add()"].sum(1) == truth.Y[truth.kind == "Add()"].sum(1) + 1).all()


def test_the_table_reads_the_same_from_memory_and_from_csv(tmp_path):
    visits = clinic_visits(1000)
    visits.write_csv(tmp_path / "visits.csv")
    memory = read(visits.to_pandas(), labels=["dx_*", "rx_*"], id="visit_id")
    file = read(tmp_path / "visits.csv", labels=["dx_*", "rx_*"], id="visit_id")
    assert memory.feature_names == file.feature_names
    np.testing.assert_allclose(memory.X, file.X, rtol=1e-6)
    assert np.array_equal(memory.Y, visits.truth.recorded)
    assert memory.row_ids[0] == "V000000"
    assert {"hba1c is missing", "smoker", "sex=F", "visit_date (day)", "reason: thirst"} <= set(memory.feature_names)


@pytest.mark.parametrize("bad", [{"n_rows": 1}, {"error_rate": 2.0}, {"errors": []}])
def test_parameters_out_of_range_are_named(bad):
    with pytest.raises(ParameterError):
        clinic_visits(**{"n_rows": 100, **bad})
