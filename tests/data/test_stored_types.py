import numpy as np
import pandas as pd
import pytest

from mcode.data import read
from mcode.data.stored_types import STORED_TYPES
from mcode.data.synthetic import clinic_visits

skops_io = pytest.importorskip("skops.io", reason="skops comes with the extra that saves models")


@pytest.mark.parametrize("kind", ["mixed", "numbers", "other dates"])
def test_a_schema_is_stored_with_the_listed_types_only_and_reads_the_same_again(kind):
    frame = clinic_visits(300).to_pandas()
    if kind == "numbers":
        frame = frame[["age", "systolic", "hba1c", "dx_diabetes"]]
    if kind == "other dates":
        texts = pd.to_datetime(frame["visit_date"]).dt.strftime("%d.%m.%Y")
        frame = frame[["age", "dx_diabetes"]].assign(day=texts, size=[f"{i}.5" for i in range(300)])
    data = read(frame, labels=[name for name in frame.columns if name[:3] in ("dx_", "rx_")])
    stored = skops_io.dumps(data.schema)
    assert set(skops_io.get_untrusted_types(data=stored)) <= set(STORED_TYPES)
    again = read(frame, like=skops_io.loads(stored, trusted=list(STORED_TYPES)))
    assert again.feature_names == data.feature_names
    assert np.array_equal(again.X, data.X)
