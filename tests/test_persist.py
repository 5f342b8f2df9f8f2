import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mcode
from mcode.corruption import Flip, Noise, Swap
from mcode.errors import DataFormatError, InputError
from mcode.models import BatchLogistic, BinaryRelevance, ClassifierChain, DependentRelevance, PerLabel
from mcode.persist import FORMAT, MAGIC, load_with_schema
from mcode.scores import LearnedScore, LOFScore, NoiseScore
from tables import dependent_table, sparse_table

skops_io = pytest.importorskip("skops.io", reason="skops comes with the extra that saves models")

DETECTORS = {
    "default": mcode.MCODE(),
    **{score: mcode.MCODE(score=score) for score in ("complement", "norm", "robust", "lof", "ocsvm", "noise")},
    "own errors": mcode.MCODE(score=LearnedScore({Swap(): 1.0}, max_rows=50)),
    "no context": mcode.MCODE(score=NoiseScore()),
    "br": mcode.MCODE(BinaryRelevance(BatchLogistic(penalty=2.0)), "complement"),
    "chain": mcode.MCODE(ClassifierChain(order=[3, 2, 1, 0]), "noise"),
    "tree": mcode.MCODE("tree", "noise"),
    "trimmed": mcode.MCODE(mcode.models.TrimmedModel(), "noise"),
    "reliability": mcode.MCODE(score=mcode.scores.ReliabilityScore("local")),
    "ensemble": mcode.MCODE("chain-ensemble", "noise"),
    "mixture": mcode.MCODE("mixture", "complement"),
    "per label": mcode.MCODE(DependentRelevance(PerLabel(LogisticRegression(), n_jobs=1)), "noise"),
    "forest": mcode.MCODE(DependentRelevance(PerLabel(RandomForestClassifier(3), n_jobs=1)), "complement"),
    "boosted forest": mcode.MCODE(
        DependentRelevance(PerLabel(HistGradientBoostingClassifier(max_iter=3), n_jobs=1)), "complement"
    ),
    **{
        name: mcode.MCODE(mcode.models.as_model("tree", name), "complement")
        for name in ("svm", "naive-bayes", "boosting")
    },
    "foreign": mcode.MCODE(score=IsolationForest(n_estimators=5, random_state=0)),
    "holdout": mcode.MCODE(score="lof", reference="holdout"),
    "batch": mcode.MCODE(score=LOFScore(k=5), reference="batch"),
    **{
        f"song {variant}": mcode.SongCAD(variant, context_components=3, response_components=3, restarts=1, folds=2)
        for variant in ("full", "split", "direct")
    },
    "song as published": mcode.SongCAD("direct", covariance="full", responses="gaussian", restarts=1, folds=2),
    **{f"joint {score}": mcode.JointDetector(score) for score in ("robust", "lof", "ocsvm")},
}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    X, Y = dependent_table()
    path = tmp_path_factory.mktemp("models") / "small.mcode"
    mcode.save(mcode.MCODE(score="complement").fit(X, Y), path)
    return path


def forged(parts):
    """Return a file with a right checksum around any parts."""
    lengths = {name: len(part) for name, part in parts.items()}
    content = json.dumps({"parts": lengths}).encode() + b"\n" + b"".join(parts.values())
    return MAGIC + str(FORMAT).encode() + b"\n" + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


@pytest.mark.parametrize("table", [dependent_table, sparse_table])
@pytest.mark.parametrize("name", DETECTORS)
def test_a_saved_detector_gives_the_same_scores_bit_for_bit(name, table, tmp_path):
    X, Y = table()
    if table is sparse_table and name in ("boosted forest", "forest", "foreign"):
        pytest.skip("a dense learner, or one more of the same")
    detector = DETECTORS[name].fit(X, Y)
    mcode.save(detector, tmp_path / "a.mcode")
    again = mcode.load(tmp_path / "a.mcode")
    np.testing.assert_array_equal(again.outlier_score(X, Y), detector.outlier_score(X, Y))
    np.testing.assert_array_equal(again.p_value(X, Y), detector.p_value(X, Y))
    if isinstance(detector, mcode.MCODE):
        np.testing.assert_array_equal(again.error_probability(X, Y), detector.error_probability(X, Y))
        assert again.explain(X[:20], Y[:20]) == detector.explain(X[:20], Y[:20])


def test_names_and_values_of_responses_are_kept(tmp_path):
    X, Y = dependent_table()
    detector = mcode.MCODE(score="complement").fit(X, np.where(Y == 1, "yes", "no"))
    mcode.save(detector, tmp_path / "a.mcode")
    finding = mcode.load(tmp_path / "a.mcode").explain(X[:1], np.where(Y[:1] == 1, "yes", "no"))[0]
    assert {response.observed for response in finding.responses} <= {"yes", "no"}


def test_a_schema_travels_with_the_detector(tmp_path):
    X, Y = dependent_table()
    detector = mcode.MCODE(score="complement").fit(X, Y)
    mcode.save(detector, tmp_path / "a.mcode", schema={"columns": ["age"]})
    assert load_with_schema(tmp_path / "a.mcode", schema_types=())[1] == {"columns": ["age"]}
    assert mcode.load(tmp_path / "a.mcode").n_features_in_ == X.shape[1]


def test_shares_of_the_kinds_of_error_are_kept(tmp_path):
    X, Y = dependent_table()
    mcode.save(mcode.MCODE(score=NoiseScore({Noise(0.1): 3.0, Flip(): 1.0})).fit(X, Y), tmp_path / "a.mcode")
    assert mcode.load(tmp_path / "a.mcode").score.errors == {Noise(0.1): 3.0, Flip(): 1.0}


def test_saving_leaves_the_detector_as_it_was(tmp_path):
    X, Y = dependent_table()
    detector = mcode.MCODE(score="complement").fit(X, Y)
    folds = detector.space_.cross
    mcode.save(detector, tmp_path / "a.mcode")
    assert detector.space_.cross is folds
    assert folds


class Strange:
    """A type that no model has."""


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="it is of type str; an MCODE, JointDetector or SongCAD is saved"):
        mcode.save("a text", tmp_path / "a.mcode")
    X, Y = dependent_table()
    detector = mcode.MCODE(score="complement").fit(X, Y)
    detector.extra_ = Strange()
    with pytest.raises(InputError, match=r"it holds .*Strange"):
        mcode.save(detector, tmp_path / "a.mcode")
    assert not list(tmp_path.iterdir())


def test_every_changed_byte_is_noticed(model_file, tmp_path):
    data = model_file.read_bytes()
    places = np.linspace(0, len(data) - 1, 60).astype(int)
    for place in {*range(90), *places.tolist()}:
        changed = bytearray(data)
        changed[place] ^= 0x01
        (tmp_path / "changed.mcode").write_bytes(changed)
        with pytest.raises(DataFormatError, match=r"changed\.mcode: it"):
            mcode.load(tmp_path / "changed.mcode")


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.999])
def test_truncated_files_are_refused(model_file, tmp_path, share):
    data = model_file.read_bytes()
    (tmp_path / "short.mcode").write_bytes(data[: int(share * len(data))])
    with pytest.raises(DataFormatError, match=r"it is (damaged|no mcode model file)"):
        mcode.load(tmp_path / "short.mcode")


def test_another_format_is_refused(model_file, tmp_path):
    other = model_file.read_bytes().replace(MAGIC + b"%d" % FORMAT, MAGIC + b"1", 1)
    (tmp_path / "old.mcode").write_bytes(other)
    said = f"its format is '1' and this mcode reads {FORMAT}; fit the model anew\\."
    with pytest.raises(DataFormatError, match=said):
        mcode.load(tmp_path / "old.mcode")


def test_files_that_are_not_there_or_no_files_are_refused(tmp_path):
    with pytest.raises(DataFormatError, match="there is no such file"):
        mcode.load(tmp_path / "nothing.mcode")
    with pytest.raises(DataFormatError, match="it cannot be read"):
        mcode.load(tmp_path)
    X, Y = dependent_table()
    with pytest.raises(DataFormatError, match="it cannot be written"):
        mcode.save(mcode.MCODE(score="complement").fit(X, Y), tmp_path / "no" / "folder.mcode")


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def archive(schema, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as zipped:
        zipped.writestr("schema.json", json.dumps(schema))
    return file.getvalue()


HOSTILE_TYPE = {
    "__class__": "mkdir",
    "__module__": "posix",
    "__loader__": "FunctionNode",
    "content": "x",
    "protocol": 2,
    "_skops_version": "0.11",
}


def test_a_pickle_is_refused_and_not_run(tmp_path):
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    for data in (bomb, forged({"detector": bomb})):
        (tmp_path / "bomb.mcode").write_bytes(data)
        with pytest.raises(DataFormatError):
            mcode.load(tmp_path / "bomb.mcode")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "part",
    [
        archive(HOSTILE_TYPE),
        archive(HOSTILE_TYPE, zipfile.ZIP_DEFLATED),
        archive({}),
        archive([]),
        skops_io.dumps(Strange()),
        skops_io.dumps({"a": 1}),
        skops_io.dumps(LogisticRegression()),
        b"",
        b"PK\x03\x04",
    ],
)
def test_forged_content_is_refused(part, tmp_path):
    (tmp_path / "forged.mcode").write_bytes(forged({"detector": part}))
    with pytest.raises(DataFormatError, match=r"forged\.mcode: it(s content|) (holds|cannot be read)"):
        mcode.load(tmp_path / "forged.mcode")


@pytest.mark.parametrize("parts", [{}, {"other": b"x"}])
def test_other_parts_are_refused(parts, tmp_path):
    (tmp_path / "forged.mcode").write_bytes(forged(parts))
    with pytest.raises(DataFormatError, match="its list of parts cannot be read"):
        mcode.load(tmp_path / "forged.mcode")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(model_file, tmp_path, monkeypatch):
    target = tmp_path / "kept.mcode"
    target.write_bytes(model_file.read_bytes())
    detector = mcode.load(target)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataFormatError, match="No space left on device"):
        mcode.save(detector, target)
    assert target.read_bytes() == model_file.read_bytes()
    assert list(tmp_path.iterdir()) == [target]
