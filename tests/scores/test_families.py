"""The families of the related-work section, over [x, y] and over rho: what PyOD says of the same matrix."""

import warnings

import numpy as np
import pytest

import mcode
from mcode.models import BatchLogistic, DependentRelevance
from mcode.spaces.joint import joint
from tables import dependent_table

N = 40


def families():
    pytest.importorskip("pyod")
    from pyod.models.abod import ABOD
    from pyod.models.cof import COF
    from pyod.models.knn import KNN
    from pyod.models.loci import LOCI
    from pyod.models.sod import SOD

    return {
        "ABOD": lambda: ABOD(n_neighbors=10),
        "SOD": lambda: SOD(n_neighbors=12, ref_set=6),
        "KNN": KNN,
        "COF": lambda: COF(n_neighbors=10),
        "LOCI": LOCI,
    }


@pytest.mark.parametrize("name", ["ABOD", "SOD", "KNN", "COF", "LOCI"])
@pytest.mark.parametrize("space", ["joint", "rho"])
@pytest.mark.filterwarnings("ignore")
def test_a_family_scores_the_rows_as_it_does_by_itself(name, space):
    X, Y = dependent_table(N, 4, 4)
    make = families()[name]
    if space == "joint":
        M = joint(X, Y)
        found = mcode.JointDetector(make(), reference="batch").fit(X, Y).outlier_score(X, Y)
    else:
        model = DependentRelevance(BatchLogistic(penalty=1.0))
        M = np.exp(model.fit(X, Y).log_proba(X, Y))
        found = mcode.MCODE(model, make(), reference="batch").fit(X, Y).outlier_score(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = make().fit(M).decision_scores_
    np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-6)
