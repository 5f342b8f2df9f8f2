"""The scores on real tables: singular, sparse, wider than long, full of ties."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from mcode.models import BatchLogistic, DependentRelevance
from mcode.scores.lof import LOFScore
from mcode.scores.ocsvm import OneClassScore
from mcode.scores.robust import RobustScore

DATA = Path(os.environ.get("MCODE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def load(name):
    path = DATA / f"{name}.npz"
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name}.npz is missing; set MCODE_DATA to the directory that holds it")
        pytest.skip(f"{name}.npz is not there; MCODE_DATA names its directory")
    file = np.load(path, allow_pickle=False)
    X = sp.csr_matrix((file["x_data"], file["x_indices"], file["x_indptr"]), shape=tuple(file["x_shape"]))
    return X.astype(np.float64), file["Y"]


def test_single_flips_are_found_where_the_half_sample_is_singular():
    X, Y = load("corel5k")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(Y))
    model = DependentRelevance(BatchLogistic(penalty=1.0)).fit(X[order[:2500]], Y[order[:2500]])
    drawn = rng.choice(order[2500:3000], 5000)
    flipped = rng.choice(5000, 25, replace=False)
    changed = Y[drawn].copy()
    changed[flipped, rng.integers(0, Y.shape[1], 25)] ^= 1
    score = RobustScore()
    found = score.fit_outlier_score(np.exp(model.log_proba(X[drawn], changed)))
    assert score.ridge_ > 0
    assert roc_auc_score(np.isin(np.arange(5000), flipped), found) > 0.8


@pytest.mark.parametrize("name", ["medical", "reuters_aligned"])
@pytest.mark.parametrize(
    "score",
    [RobustScore(), LOFScore(), OneClassScore(), OneClassScore(exact_limit=0)],
    ids=["robust", "lof", "one-class", "one-class features"],
)
def test_a_wide_sparse_joint_space_is_scored_as_it_is(name, score):
    X, Y = load(name)
    M = sp.csr_matrix(sp.hstack([X[:400], sp.csr_matrix(Y[:400], dtype=np.float64)]))
    fitted_rows = score.fit_outlier_score(M)
    assert fitted_rows.shape == (400,)
    assert np.isfinite(score.outlier_score(M[:5])).all()
    strange = M[:1].tolil()
    strange[0, -Y.shape[1] :] = 1.0  # every response at once
    assert score.outlier_score(strange.tocsr())[0] > np.median(fitted_rows)
