"""Fitted detectors as files that execute nothing when they are read.

A file is two lines and then the parts: a line that says what it is and in which format, a line with the SHA-256 of all
that follows, and a line of JSON with the length of each part. A part is a skops archive. Reading goes the same way:
first line, checksum, names of all types inside, and only then is anything built.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mcode._optional import require
from mcode.detector import MCODE, DetectorBase, JointDetector, SongCAD
from mcode.errors import DataFormatError, InputError

PathLike: TypeAlias = "str | os.PathLike[str]"

MAGIC = b"mcode model "
FORMAT = 5  # raise it when a file of the old kind can no longer be read, and say so in docs/explaining.md

# Everything a detector may consist of, beside what skops trusts itself: numbers, arrays and scikit-learn's estimators.
TRUSTED = (
    "mcode.corruption.Add",
    "mcode.corruption.Drop",
    "mcode.corruption.Flip",
    "mcode.corruption.Mismatch",
    "mcode.corruption.Noise",
    "mcode.corruption.Several",
    "mcode.corruption.Swap",
    "mcode.detector.joint.JointDetector",
    "mcode.detector.judged.Typical",
    "mcode.detector.mcode.MCODE",
    "mcode.detector.song.Axes",
    "mcode.detector.song.SongCAD",
    "mcode.detector.song.SongDensity",
    "mcode.models.alike.RememberedRows",
    "mcode.models.company.Company",
    "mcode.models.company.CompanyConditionals",
    "mcode.models.pairs.PairLifts",
    "mcode.models.prototypes.PrototypeConditionals",
    "mcode.models.prototypes.Prototypes",
    "mcode.models.categorical.CategoricalConditionals",
    "mcode.models.classifiers.Boosting",
    "mcode.models.classifiers.CalibratedSVM",
    "mcode.models.classifiers.NaiveBayes",
    "mcode.models.components.Bernoullis",
    "mcode.models.components.DiagonalGaussians",
    "mcode.models.components.FullGaussians",
    "mcode.models.conditional.BinaryRelevance",
    "mcode.models.conditional.ClassifierChain",
    "mcode.models.conditional.DependentRelevance",
    "mcode.models.encoding.ResponseEncoding",
    "mcode.models.logistic.BatchLogistic",
    "mcode.models.logistic.LinearConditionals",
    "mcode.models.logistic.Scaling",
    "mcode.models.mixture.ChainEnsemble",
    "mcode.models.mixture.Member",
    "mcode.models.mixture.MixtureConditionals",
    "mcode.models.mixture.MixtureModel",
    "mcode.models.per_label.ClassifierConditionals",
    "mcode.models.per_label.PerLabel",
    "mcode.models.song.MappedMixtures",
    "mcode.models.song.Mixture",
    "mcode.models.tree.TreeRelevance",
    "mcode.models.trimmed.TrimmedModel",
    "mcode.scores.blame.Blame",
    "mcode.scores.columns.Columns",
    "mcode.scores.complement.ComplementScore",
    "mcode.scores.distinct.DistinctRows",
    "mcode.scores.foreign.ForeignScore",
    "mcode.scores.foreign._ScikitLearn",
    "mcode.scores.kernel_features.NystroemFeatures",
    "mcode.scores.learned.LearnedScore",
    "mcode.scores.learned._Contrast",
    "mcode.scores.lof.LOFScore",
    "mcode.scores.neighbours.NeighbourSearch",
    "mcode.scores.neighbours.Neighbourhoods",
    "mcode.scores.neighbours._DenseRows",
    "mcode.scores.neighbours._SparseRows",
    "mcode.scores.noise.NoiseScore",
    "mcode.scores.norm.NormScore",
    "mcode.scores.ocsvm.OneClassScore",
    "mcode.scores.reliability.ReliabilityScore",
    "mcode.scores.robust.RobustScore",
    "mcode.scores.scatter.DualScatter",
    "mcode.scores.scatter.PrimalScatter",
    "mcode.scores.scatter.Shift",
    "mcode.spaces.rho.RhoSpace",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)


def save(detector: DetectorBase, path: PathLike, *, schema: object = None, schema_types: Sequence[str] = ()) -> None:
    """Write a fitted detector to a file, whole or not at all.

    Parameters
    ----------
    detector : MCODE, JointDetector or SongCAD
    path : str or path
    schema : what is needed to read further tables for it, optional
    schema_types : names of the types that the schema consists of

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2)); Y = X > 0
    >>> detector = MCODE(score="complement").fit(X, Y)
    >>> path = Path(tempfile.mkdtemp()) / "small.mcode"
    >>> save(detector, path)
    >>> bool((load(path).outlier_score(X, Y) == detector.outlier_score(X, Y)).all())
    True
    """
    if not isinstance(detector, MCODE | JointDetector | SongCAD):
        raise InputError(
            "detector", f"it is of type {type(detector).__name__}", "an MCODE, JointDetector or SongCAD is saved"
        )
    parts = {"detector": _pack(_slim(detector), "detector", TRUSTED)}
    if schema is not None:
        parts["schema"] = _pack(schema, "schema", schema_types)
    lengths = {name: len(part) for name, part in parts.items()}
    content = json.dumps({"parts": lengths}).encode() + b"\n" + b"".join(parts.values())
    digest = hashlib.sha256(content).hexdigest().encode()
    _write_whole(Path(path), MAGIC + str(FORMAT).encode() + b"\n" + digest + b"\n" + content)


def load(path: PathLike) -> Any:
    """Read a detector that `save` wrote; a file that is anything else is refused before anything is built.

    The checksum tells a damaged file, not a forged one: what protects against that is the fixed list of types.

    Parameters
    ----------
    path : str or path

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pickle.mcode"
    >>> _ = path.write_bytes(b"cos system (S'echo' tR.")
    >>> load(path)
    Traceback (most recent call last):
    mcode.errors.DataFormatError: ...pickle.mcode: it is no mcode model file.
    """
    return load_with_schema(path)[0]


def load_with_schema(path: PathLike, schema_types: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Read a detector and the schema saved with it, None where no `schema_types` are given or none was saved."""
    file = Path(path)
    parts = _open(file)
    detector = _unpack(file, parts["detector"], TRUSTED)
    if not isinstance(detector, MCODE | JointDetector | SongCAD):
        raise DataFormatError(file, reason="it holds something else than a detector")
    _rewrite_errors(detector, lambda errors: isinstance(errors, dict) and "kinds" in errors, _as_shares)
    if schema_types is None or "schema" not in parts:
        return detector, None
    return detector, _unpack(file, parts["schema"], schema_types)


def _slim(detector: DetectorBase) -> DetectorBase:
    """Return the detector as it is stored: without the models of its folds, which only served to fit it."""
    slim = copy.copy(detector)
    if isinstance(slim, MCODE) and hasattr(slim, "space_"):
        slim.space_ = copy.copy(slim.space_)
        slim.space_.cross = {}
    _rewrite_errors(slim, lambda errors: isinstance(errors, Mapping), _as_lists)
    return slim


def _rewrite_errors(detector: DetectorBase, applies: Callable[[Any], bool], rewrite: Callable[[Any], Any]) -> None:
    """Write the shares of the kinds of error in another way, in copies of the scores that hold them."""
    for name in ("score", "score_", "ratio_score_"):
        score = getattr(detector, name, None)
        if applies(getattr(score, "errors", None)):
            changed: Any = copy.copy(score)
            changed.errors = rewrite(changed.errors)
            setattr(detector, name, changed)


def _as_lists(errors: Mapping[Any, float]) -> dict[str, list[Any]]:
    """Return shares by kind as two lists: an archive has only texts as keys."""
    return {"kinds": list(errors), "shares": list(errors.values())}


def _as_shares(errors: dict[str, list[Any]]) -> dict[Any, float]:
    return dict(zip(errors["kinds"], errors["shares"], strict=True))


def _pack(value: object, name: str, trusted: Sequence[str]) -> bytes:
    skops = require("skops.io", extra="persist")
    data: bytes = skops.dumps(value)
    unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(trusted))
    if unknown:
        raise InputError(
            name, f"it holds {', '.join(unknown[:3])}", "only mcode's and scikit-learn's own parts are saved"
        )
    return data


def _open(file: Path) -> dict[str, bytes]:
    """Return the parts of a file whose format and checksum are right."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise DataFormatError(file, reason="there is no such file") from None
    except OSError as error:
        raise DataFormatError(file, reason=f"it cannot be read ({error.strerror})") from None
    first, _, rest = data.partition(b"\n")
    if not first.startswith(MAGIC):
        raise DataFormatError(file, reason="it is no mcode model file")
    version = first.removeprefix(MAGIC)
    if version != str(FORMAT).encode():
        shown = version[:20].decode("ascii", "replace")
        raise DataFormatError(file, reason=f"its format is {shown!r} and this mcode reads {FORMAT}; fit the model anew")
    digest, _, content = rest.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise DataFormatError(file, reason="it is damaged: its checksum does not match; save the model anew")
    return _split(file, content)


def _split(file: Path, content: bytes) -> dict[str, bytes]:
    header, _, body = content.partition(b"\n")
    parts, start = {}, 0
    try:
        for name, length in json.loads(header)["parts"].items():
            parts[name] = body[start : start + length]
            start += length
        if start != len(body) or "detector" not in parts:
            raise ValueError("the parts are not those of a model")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DataFormatError(file, reason="it is damaged: its list of parts cannot be read") from None
    return parts


def _unpack(file: Path, part: bytes, trusted: Sequence[str]) -> Any:
    """Build what a part holds, once every type in it is known."""
    skops = require("skops.io", extra="persist")
    try:
        with zipfile.ZipFile(io.BytesIO(part)) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise DataFormatError(file, reason="it holds compressed parts, which mcode never writes")
        unknown = sorted(set(skops.get_untrusted_types(data=part)) - set(trusted))
        if unknown:
            raise DataFormatError(file, reason=f"it holds types that no model has ({', '.join(unknown[:3])})")
        return skops.loads(part, trusted=list(trusted))
    except DataFormatError:
        raise
    except Exception as error:  # whatever a forged archive breaks in the parser, the answer is the same
        raise DataFormatError(file, reason=f"its content cannot be read ({type(error).__name__})") from error


def _write_whole(path: Path, data: bytes) -> None:
    """Write beside the target and rename, so that no reader ever sees a half-written file."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise DataFormatError(path, reason=f"it cannot be written ({error.strerror})") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
